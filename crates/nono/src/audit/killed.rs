//! Logs of sessions whose supervisor was killed: whoever finds one closes it.

use std::path::Path;

use nono_audit::Log;
use nono_audit::event::{Event, SessionEnded, Warning};
use nono_audit::log::{Options, ResumeError};
use nono_sys::time::now_ms;

/// The log of a session whose supervisor was killed, to be closed. None where there is none, it is closed, or somebody is at it.
pub(crate) fn resume(state_dir: &Path, id: &str) -> Result<Option<Log>, ResumeError> {
    let audit = super::dir(state_dir);
    if !audit.join(id).is_dir() {
        return Ok(None);
    }
    // The key that was to sign it is not at hand. Whether it was to be sealed is not known, and a seal harms nobody.
    Log::resume(&audit, id, Options { integrity: true, key: None })
}

/// Say in the log what happened; `by_now`: what a later command did.
pub(crate) fn note(log: &Log, by_now: &str) {
    let message = format!("nono was killed; {by_now}, by a later command");
    // What cannot be written is the log's own trouble, and closing it says so.
    let _ = log.note(&Event::Warning(Warning { time_ms: now_ms(), message }));
}

/// Close the log of a session that tracked nothing. `false`: there was none to close. An error says why it is not closed.
pub(crate) fn close(state_dir: &Path, id: &str) -> Result<bool, String> {
    let Some(log) = resume(state_dir, id).map_err(|error| error.to_string())? else { return Ok(false) };
    note(&log, "this log was closed");
    let finished =
        log.finish(SessionEnded::interrupted(now_ms()), None).map_err(|error| error.to_string())?;
    finished.ledger.map_or(Ok(true), |error| Err(error.to_string()))
}
