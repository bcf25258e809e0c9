//! Audit of restores: with an [`Author`] set on the catalogue each restore, undo and completion is recorded in the
//! audit log.

use nono_history::Restore;
use nono_snapshot::SnapshotId;

use super::catalogue::{Catalogue, RollbackSession};
use super::error::RollbackError;
use super::restore::{Done, RestoreChoice, SessionRestores};
use crate::audit::{Author, RestoreOwner, RestoreSubject, recorded};

impl Catalogue {
    /// Record restores made with this catalogue under `author`.
    #[must_use]
    pub fn recording(self, author: Author) -> Catalogue {
        Catalogue { author: Some(author), ..self }
    }
}

impl RollbackSession {
    pub(super) fn chosen(&self, choice: &RestoreChoice) -> RestoreSubject {
        let hunks = choice.hunks.iter().map(|(item, _)| item.path.clone());
        RestoreSubject {
            owner: RestoreOwner::Session(self.entry.id.clone()),
            snapshot: choice.snapshot.to_string(),
            paths: choice.paths.iter().cloned().chain(hunks).collect(),
            except: choice.except.len(),
        }
    }

    /// Subject of a restore that is undone or was interrupted.
    pub(super) fn subject(&self, restore: Option<&Restore<()>>) -> RestoreSubject {
        let snapshot = restore.map_or(SnapshotId::Number(0), |restore| restore.target.clone());
        RestoreSubject {
            owner: RestoreOwner::Session(self.entry.id.clone()),
            snapshot: snapshot.to_string(),
            paths: restore.map(Restore::paths).unwrap_or_default(),
            except: 0,
        }
    }

    /// Subject of the interrupted restore.
    pub(super) fn cut_off(&self) -> Result<RestoreSubject, RollbackError> {
        let restore = SessionRestores::load(&self.entry.dir)?.take_cut_off();
        Ok(self.subject(restore.as_ref()))
    }

    /// Run `work` and record it. A restore by the process that runs the session is recorded in the log of the run
    /// instead.
    pub(super) fn recorded(
        &mut self,
        subject: RestoreSubject,
        work: impl FnOnce(&mut RollbackSession) -> Result<Done, RollbackError>,
    ) -> Result<Done, RollbackError> {
        let Some(author) = self.catalogue.author.clone().filter(|_| !self.running) else {
            return work(self);
        };
        let (state_dir, roots) =
            (self.catalogue.state_dir.clone(), self.entry.metadata.tracked_paths.clone());
        let event = |outcome: &Result<Done, RollbackError>| subject.event(outcome.as_ref());
        let (done, unrecorded) = recorded(&state_dir, &author, &roots, || work(self), event)?;
        Ok(Done { unrecorded, ..done })
    }
}
