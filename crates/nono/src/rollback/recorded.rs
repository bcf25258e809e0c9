//! Restores on record: whoever opened the catalogue as an [`Author`] has each restore, undo and completion written down.
//!
//! A log that cannot be written stops no restore, since what it puts back is the user's; it is said in the outcome.

use std::path::PathBuf;

use nono_audit::event::Restore as Event;
use nono_history::Restore;
use nono_snapshot::SnapshotId;
use nono_sys::time::now_ms;

use super::catalogue::{Catalogue, RollbackSession};
use super::error::RollbackError;
use super::restore::{Done, Log, RestoreChoice};
use crate::audit::{Author, RestoreLog};

/// What is put back.
pub(super) struct Subject {
    session_id: String,
    snapshot: SnapshotId,
    /// Everything, if empty.
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
            // A restore that ends in an error, or before its time, has failed as a whole.
            failed: match outcome {
                Ok(done) => done.failed.len() as u64 + u64::from(done.interrupted),
                Err(_) => 1,
            },
            outcome: but + &said,
        }
    }
}

impl Catalogue {
    /// Restores that are made with it are written down as this one's.
    #[must_use]
    pub fn recording(self, author: Author) -> Catalogue {
        Catalogue { author: Some(author), ..self }
    }
}

/// A result in a sentence.
pub(crate) fn sentence(done: &Done) -> String {
    let Done { changes, kept, failed, undo, .. } = done;
    let text = format!("restored {}, kept {}, failed {}", changes.len(), kept.len(), failed.len());
    let text = if done.interrupted { text + ", interrupted" } else { text };
    match undo {
        Some(undo) => format!("{text}; `nono rollback undo {undo}` takes it back"),
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

    /// A restore that is taken back, or was cut off: what it was about.
    pub(super) fn subject(&self, restore: Option<&Restore<()>>) -> Subject {
        let paths = restore.map(Restore::paths).unwrap_or_default();
        let snapshot = restore.map_or(SnapshotId::Number(0), |restore| restore.target.clone());
        Subject { session_id: self.entry.id.clone(), snapshot, paths, except: 0 }
    }

    /// Of a restore that was cut off.
    pub(super) fn cut_off(&self) -> Result<Subject, RollbackError> {
        let restore = Log::load(&self.entry.dir)?.take_cut_off();
        Ok(self.subject(restore.as_ref()))
    }

    /// Do it, and have it on record. What the one who runs a session restores meanwhile stands in the log of the run.
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
        // Of one that failed, the failure is what has to be known; what it left half done is completed, and recorded, later.
        let mut done = outcome?;
        done.unrecorded = written.err().map(|error| error.to_string());
        Ok(done)
    }
}
