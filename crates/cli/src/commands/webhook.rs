//! Helper process that talks to a webhook; not a command for users. See `nono::approval::webhook`.

use crate::failure::Failure;

/// Serves until the supervisor closes the pipe. Errors go to the supervisor over the pipe.
pub(crate) fn serve() -> Result<u8, Failure> {
    nono::approval::webhook::serve(std::io::stdin(), std::io::stdout())
        .map_err(|error| Failure::new(format!("webhook helper: {error}")))?;
    Ok(0)
}
