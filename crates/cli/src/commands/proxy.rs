//! Helper process of the network filter; not a command for users. See `nono::network`.

use crate::failure::Failure;

/// First argument of nono when it runs as that process.
pub(crate) const HELPER: &str = "__proxy";

/// Serves until the supervisor closes the socket. Errors go to the supervisor over the socket.
pub(crate) fn serve() -> Result<u8, Failure> {
    nono::network::serve(std::io::stdin()).map_err(|error| Failure::new(format!("proxy helper: {error}")))?;
    Ok(0)
}
