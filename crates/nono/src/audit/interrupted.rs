//! Logs of sessions whose supervisor was killed: a later command closes them.

use std::path::Path;

use nono_audit::AuditLog;
use nono_audit::event::{AuditEvent, SessionEnded, Warning};
use nono_audit::log::{Options, ResumeError};
use nono_sys::time::now_ms;

/// Reopen the log of a session whose supervisor was killed, to close it. None if there is none, it is closed, or
/// another process has it open.
pub(crate) fn resume(state_dir: &Path, id: &str) -> Result<Option<AuditLog>, ResumeError> {
    let audit = super::dir(state_dir);
    if !audit.join(id).is_dir() {
        return Ok(None);
    }
    // The signing key is not available. Whether the log was to be sealed is unknown, and a seal does no harm.
    AuditLog::resume(&audit, id, Options { integrity: true, key: None })
}

/// Record what happened; `by_now`: what a later command did.
pub(crate) fn note(log: &AuditLog, by_now: &str) {
    let message = format!("nono was killed; {by_now}, by a later command");
    // A write error is kept in the log and reported when it is closed.
    let _ = log.note(&AuditEvent::Warning(Warning { time_ms: now_ms(), message }));
}

/// Close the log of a session that tracked nothing. `false` if there was none to close; an error is the reason why it
/// is not closed.
pub(crate) fn close(state_dir: &Path, id: &str) -> Result<bool, String> {
    let Some(log) = resume(state_dir, id).map_err(|error| error.to_string())? else { return Ok(false) };
    note(&log, "this log was closed");
    let finished =
        log.finish(SessionEnded::interrupted(now_ms()), None).map_err(|error| error.to_string())?;
    finished.ledger.map_or(Ok(true), |error| Err(error.to_string()))
}
