//! The process the network filter runs in: not a command for people. See `nono::network`.

use crate::failure::Failure;

/// How this program is called when it is that process.
pub(crate) const HELPER: &str = "__proxy";

/// Serve until the supervisor closes the socket. What goes wrong it hears over the socket.
pub(crate) fn serve() -> Result<u8, Failure> {
    nono::network::serve(std::io::stdin()).map_err(|error| Failure::new(format!("proxy helper: {error}")))?;
    Ok(0)
}
