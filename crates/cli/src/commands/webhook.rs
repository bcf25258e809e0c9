//! The helper that talks to a webhook: not a command for people. See `nono::approval::webhook`.

use crate::failure::Failure;

/// Serve until the supervisor closes the pipe. What goes wrong it hears over the pipe.
pub(crate) fn serve() -> Result<u8, Failure> {
    nono::approval::webhook::serve(std::io::stdin(), std::io::stdout())
        .map_err(|error| Failure::new(format!("webhook helper: {error}")))?;
    Ok(0)
}
