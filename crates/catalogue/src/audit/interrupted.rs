//! Logs of sessions whose supervisor was killed: a later command closes them.

use std::path::Path;

use nono_audit::AuditLog;
use nono_audit::event::{AuditEvent, SessionEnded, Warning};
use nono_audit::log::{Options, ResumeError};
use nono_sys::time::now_ms;

use super::error::AuditError;

/// Reopen the log of a session whose supervisor was killed, to close it. None if there is none, it is closed, or
/// another process has it open.
pub fn resume(state_dir: &Path, id: &str) -> Result<Option<AuditLog>, ResumeError> {
    let audit = super::dir(state_dir);
    if !audit.join(id).is_dir() {
        return Ok(None);
    }
    // The signing key is not available. Whether the log was to be sealed is unknown, and a seal does no harm.
    AuditLog::resume(&audit, id, Options { integrity: true, key: None })
}

/// Record what happened; `by_now`: what a later command did.
pub fn note(log: &AuditLog, by_now: &str) {
    let message = format!("nono was killed; {by_now}, by a later command");
    // A write error is kept in the log and reported when it is closed.
    let _ = log.note(&AuditEvent::Warning(Warning { time_ms: now_ms(), message }));
}

/// Close the log of a session that tracked nothing. `false` if there was none to close; an error is the reason why it
/// is not closed.
pub fn close(state_dir: &Path, id: &str) -> Result<bool, AuditError> {
    let Some(log) = resume(state_dir, id)? else { return Ok(false) };
    note(&log, "this log was closed");
    let finished = log.finish(SessionEnded::interrupted(now_ms()), None)?;
    finished.ledger.map_or(Ok(true), |error| Err(error.into()))
}
