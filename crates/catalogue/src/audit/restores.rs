//! Audit log of a restore made after a run. The log of the run is sealed by then, so a restore has a log of its own,
//! with its own seal and line in the ledger: later changes are recorded like those of the session.
//!
//! The log begins before anything is changed: a killed restore leaves a beginning without an end. A log that cannot be
//! written stops no restore, since what it restores is the user's; the result reports it.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use nono_audit::event::{AuditEvent, Restore, SessionEnded, SessionStarted};
use nono_audit::ledger::LedgerError;
use nono_audit::log::{CreateError, FinishError, Options};
use nono_audit::{AuditLog, Digest, WriteError};
use nono_history::Done;
use nono_sys::time::now_ms;
use thiserror::Error;

use super::error::AuditError;
use crate::session_ref::new_id;

/// Value in the log of a restore of a project in place of a session id.
pub const RECORDED_AS: &str = "checkpoints";

/// Command on whose behalf restores are made.
#[derive(Clone, Debug)]
pub struct Author {
    /// Command line as typed; secrets in it are redacted.
    pub command: Vec<OsString>,
    pub workdir: PathBuf,
}

/// Reason why a restore is not recorded, or not completely.
#[derive(Debug, Error)]
pub enum RecordError {
    #[error(transparent)]
    Redaction(#[from] AuditError),
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Finish(#[from] FinishError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// Owner of the history that is restored.
#[derive(Clone, Debug)]
pub enum RestoreOwner {
    /// A session, by its id.
    Session(String),
    Project,
}

impl RestoreOwner {
    /// One-line summary of a result.
    pub fn sentence(&self, done: &Done) -> String {
        let Done { changes, kept, failed, undo, .. } = done;
        let text = format!("restored {}, kept {}, failed {}", changes.len(), kept.len(), failed.len());
        let text = if done.interrupted { text + ", interrupted" } else { text };
        match (undo, self) {
            (None, _) => text,
            (Some(undo), RestoreOwner::Session(_)) => {
                format!("{text}; undo with `nono rollback undo {undo}`")
            }
            (Some(_), RestoreOwner::Project) => format!("{text}; undo with `nono checkpoints undo`"),
        }
    }
}

/// Subject of a restore: owner, snapshot and paths.
#[derive(Clone, Debug)]
pub struct RestoreSubject {
    pub owner: RestoreOwner,
    pub snapshot: String,
    /// Restored paths; empty means all.
    pub paths: Vec<PathBuf>,
    /// Number of paths that were left out of it.
    pub except: usize,
}

impl RestoreSubject {
    pub fn event<E: Display>(self, outcome: Result<&Done, &E>) -> Restore {
        let said = match outcome {
            Ok(done) => self.owner.sentence(done),
            Err(error) => format!("not restored: {error}"),
        };
        let but = if self.except > 0 { format!("all but {} paths: ", self.except) } else { String::new() };
        let count = |count: fn(&Done) -> usize| outcome.map_or(0, count) as u64;
        Restore {
            time_ms: now_ms(),
            session_id: match self.owner {
                RestoreOwner::Session(id) => id,
                RestoreOwner::Project => RECORDED_AS.to_owned(),
            },
            snapshot: self.snapshot,
            paths: self.paths,
            restored: count(|done| done.changes.len()),
            kept: count(|done| done.kept.len()),
            // A restore that ends in an error, or is interrupted, has failed as a whole.
            failed: outcome.map_or(1, |done| done.failed.len() as u64 + u64::from(done.interrupted)),
            outcome: but + &said,
        }
    }
}

/// Run `work` and record it under `author`. Returns its result, and the reason if it is not recorded.
pub fn recorded<T, E>(
    state_dir: &Path,
    author: &Author,
    roots: &[PathBuf],
    work: impl FnOnce() -> Result<T, E>,
    event: impl FnOnce(&Result<T, E>) -> Restore,
) -> Result<(T, Option<String>), E> {
    let log = begin(state_dir, author, roots);
    let outcome = work();
    let written = log.and_then(|log| end(&log, event(&outcome)));
    // After a failure only the failure matters; what it left incomplete is completed, and recorded, later.
    Ok((outcome?, written.err().map(|error| error.to_string())))
}

/// Start a log. `roots`: tracked roots of the session that is restored.
fn begin(state_dir: &Path, author: &Author, roots: &[PathBuf]) -> Result<AuditLog, RecordError> {
    let redactor = super::redactor(state_dir)?;
    let started = SessionStarted {
        time_ms: now_ms(),
        session_id: new_id(),
        name: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        command: redactor.argv(&author.command),
        workdir: author.workdir.clone(),
        executable: None,
        // Nothing is run, so nothing is confined.
        policy_digest: Digest::ZERO,
        tracked_paths: roots.to_vec(),
        network: "none".to_owned(),
        // The log fills in `ledger_head`.
        project_profiles: Vec::new(),
        ledger_head: None,
    };
    create(state_dir, &started)
}

/// Record the result and close the log.
fn end(log: &AuditLog, restore: Restore) -> Result<(), RecordError> {
    let whole = restore.kept == 0 && restore.failed == 0;
    let ended = SessionEnded {
        time_ms: now_ms(),
        exit_code: i32::from(!whole),
        signal: None,
        limit: None,
        stopped: false,
        interrupted: false,
    };
    let noted = log.note(&AuditEvent::Restore(restore));
    // Closed even if the event could not be recorded: the end shows it.
    let finished = log.finish(ended, None);
    noted?;
    finished?.ledger.map_or(Ok(()), |error| Err(error.into()))
}

/// Create the log under an unused id: one process may restore more than once in a second, and right after a run.
fn create(state_dir: &Path, started: &SessionStarted) -> Result<AuditLog, RecordError> {
    let options = || Options { integrity: true, key: None };
    let (dir, stamp) = (super::dir(state_dir), started.session_id.clone());
    let mut attempt = 0u32;
    loop {
        let session_id = if attempt == 0 { stamp.clone() } else { format!("{stamp}-{attempt}") };
        attempt += 1;
        if state_dir.join("rollbacks").join(&session_id).symlink_metadata().is_ok() {
            continue;
        }
        match AuditLog::create(&dir, SessionStarted { session_id, ..started.clone() }, options()) {
            Err(CreateError::Io { source, .. }) if source.kind() == ErrorKind::AlreadyExists => {}
            result => return Ok(result?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_differ_only_in_their_id_and_the_command_that_undoes() {
        let event = |owner, outcome: Result<&Done, &&str>| {
            let subject = RestoreSubject { owner, snapshot: "0".to_owned(), paths: Vec::new(), except: 2 };
            let Restore { session_id, restored, kept, failed, outcome, .. } = subject.event(outcome);
            (session_id, [restored, kept, failed], outcome)
        };
        let done = Done { undo: Some("a.1".to_owned()), interrupted: true, ..Done::default() };
        let said = "all but 2 paths: restored 0, kept 0, failed 0, interrupted; undo with ";
        assert_eq!(
            event(RestoreOwner::Session("a".to_owned()), Ok(&done)),
            ("a".to_owned(), [0, 0, 1], format!("{said}`nono rollback undo a.1`"))
        );
        assert_eq!(
            event(RestoreOwner::Project, Ok(&done)),
            ("checkpoints".to_owned(), [0, 0, 1], format!("{said}`nono checkpoints undo`"))
        );
        let not = "all but 2 paths: not restored: no room".to_owned();
        assert_eq!(event(RestoreOwner::Project, Err(&"no room")), ("checkpoints".to_owned(), [0, 0, 1], not));
    }
}
