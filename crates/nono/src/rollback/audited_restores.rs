//! Audit of restores: with an [`Author`] set on the catalogue each restore, undo and completion is recorded in the
//! audit log.
//!
//! A log that cannot be written stops no restore, since what it restores is the user's; the result reports it.

use std::path::PathBuf;

use nono_audit::event::Restore as Event;
use nono_history::Restore;
use nono_snapshot::SnapshotId;
use nono_sys::time::now_ms;

use super::catalogue::{Catalogue, RollbackSession};
use super::error::RollbackError;
use super::restore::{Done, RestoreChoice, SessionRestores};
use crate::audit::{Author, RestoreLog};

/// Subject of a restore: session, snapshot and paths.
pub(super) struct Subject {
    session_id: String,
    snapshot: SnapshotId,
    /// Everything if empty.
    paths: Vec<PathBuf>,
    except: usize,
}

impl Subject {
    pub(super) fn to(self, snapshot: SnapshotId) -> Subject {
        Subject { snapshot, ..self }
    }

    pub(super) fn event(self, outcome: &Result<Done, RollbackError>) -> Event {
        let said = match outcome {
            Ok(done) => sentence(done),
            Err(error) => format!("not restored: {error}"),
        };
        let but = if self.except > 0 { format!("all but {} paths: ", self.except) } else { String::new() };
        let count = |count: fn(&Done) -> usize| outcome.as_ref().map_or(0, count) as u64;
        Event {
            time_ms: now_ms(),
            session_id: self.session_id,
            snapshot: self.snapshot.to_string(),
            paths: self.paths,
            restored: count(|done| done.changes.len()),
            kept: count(|done| done.kept.len()),
            // A restore that ends in an error, or is interrupted, has failed as a whole.
            failed: match outcome {
                Ok(done) => done.failed.len() as u64 + u64::from(done.interrupted),
                Err(_) => 1,
            },
            outcome: but + &said,
        }
    }
}

impl Catalogue {
    /// Record restores made with this catalogue under `author`.
    #[must_use]
    pub fn recording(self, author: Author) -> Catalogue {
        Catalogue { author: Some(author), ..self }
    }
}

/// One-line summary of a result.
pub(crate) fn sentence(done: &Done) -> String {
    let Done { changes, kept, failed, undo, .. } = done;
    let text = format!("restored {}, kept {}, failed {}", changes.len(), kept.len(), failed.len());
    let text = if done.interrupted { text + ", interrupted" } else { text };
    match undo {
        Some(undo) => format!("{text}; undo with `nono rollback undo {undo}`"),
        None => text,
    }
}

impl RollbackSession {
    pub(super) fn chosen(&self, choice: &RestoreChoice) -> Subject {
        let hunks = choice.hunks.iter().map(|(item, _)| item.path.clone());
        Subject {
            session_id: self.entry.id.clone(),
            snapshot: choice.snapshot.clone(),
            paths: choice.paths.iter().cloned().chain(hunks).collect(),
            except: choice.except.len(),
        }
    }

    /// Subject of a restore that is undone or was interrupted.
    pub(super) fn subject(&self, restore: Option<&Restore<()>>) -> Subject {
        let paths = restore.map(Restore::paths).unwrap_or_default();
        let snapshot = restore.map_or(SnapshotId::Number(0), |restore| restore.target.clone());
        Subject { session_id: self.entry.id.clone(), snapshot, paths, except: 0 }
    }

    /// Subject of the interrupted restore.
    pub(super) fn cut_off(&self) -> Result<Subject, RollbackError> {
        let restore = SessionRestores::load(&self.entry.dir)?.take_cut_off();
        Ok(self.subject(restore.as_ref()))
    }

    /// Run `work` and record it. A restore by the process that runs the session is recorded in the log of the run
    /// instead.
    pub(super) fn recorded(
        &mut self,
        subject: Subject,
        work: impl FnOnce(&mut RollbackSession) -> Result<Done, RollbackError>,
    ) -> Result<Done, RollbackError> {
        let Some(author) = self.catalogue.author.as_ref().filter(|_| !self.running) else {
            return work(self);
        };
        let log = RestoreLog::begin(&self.catalogue.state_dir, author, &self.entry.metadata.tracked_paths);
        let outcome = work(self);
        let written = log.and_then(|log| log.end(subject.event(&outcome)));
        // After a failure only the failure matters; what it left incomplete is completed, and recorded, later.
        let mut done = outcome?;
        done.unrecorded = written.err().map(|error| error.to_string());
        Ok(done)
    }
}
