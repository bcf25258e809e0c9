//! Restores in progress or interrupted on some roots. A capture or restore of the same roots never waits for them: one
//! in progress is an error, an interrupted one is completed first.

use std::path::{Path, PathBuf};

use nono_history::{has_journal, lock};

use super::catalogue::{Catalogue, overlap};
use super::entry::{SessionEntry, Status};
use super::error::RollbackError;
use super::recorder::Recorder;

impl Catalogue {
    /// Sessions that track something around or below one of `roots`.
    fn around(&self, roots: &[PathBuf]) -> Result<Vec<(SessionEntry, PathBuf)>, RollbackError> {
        // A session that cannot be read cannot be restored either.
        let (sessions, _) = self.list()?;
        let shared = |entry: &SessionEntry| {
            let mut tracked = entry.metadata.tracked_paths.iter();
            tracked.find(|path| roots.iter().any(|root| overlap(path, root))).cloned()
        };
        Ok(sessions.into_iter().filter_map(|entry| shared(&entry).map(|root| (entry, root))).collect())
    }

    /// Refuse if another session is being restored on these roots. `own`: the caller's session.
    pub(super) fn refuse_restoring(&self, roots: &[PathBuf], own: &Path) -> Result<(), RollbackError> {
        for (entry, root) in self.around(roots)?.into_iter().filter(|(entry, _)| entry.dir != own) {
            if lock::is_locked(&entry.dir)? {
                return Err(RollbackError::Restoring { id: entry.id, root });
            }
        }
        Ok(())
    }

    /// Refuse if a restore by another session was interrupted on these roots: a snapshot now would capture half of it.
    pub(super) fn refuse_cut_off(&self, roots: &[PathBuf], own: &Path) -> Result<(), RollbackError> {
        let others = self.around(roots)?.into_iter().filter(|(entry, _)| entry.dir != own);
        let mut cut_off = others.filter(|(entry, _)| has_journal(&entry.dir));
        match cut_off.next() {
            Some((entry, root)) => Err(RollbackError::Restoring { id: entry.id, root }),
            None => Ok(()),
        }
    }

    /// Complete interrupted restores on these roots; returns messages for the user.
    pub(super) fn complete_restores(
        &self,
        roots: &[PathBuf],
        recorder: &dyn Recorder,
    ) -> Result<Vec<String>, RollbackError> {
        let mut completed = Vec::new();
        for (entry, root) in self.around(roots)?.into_iter().filter(|(entry, _)| entry.status != Status::Live)
        {
            let id = entry.id.clone();
            if lock::is_locked(&entry.dir)? {
                return Err(RollbackError::Restoring { id, root });
            }
            if has_journal(&entry.dir) {
                let mut session = self.open(entry)?;
                let subject = session.cut_off()?;
                if let Some(done) = session.recover()? {
                    recorder.restored(subject.event::<RollbackError>(Ok(&done)));
                }
                completed.push(format!("completed an interrupted restore of session {id} first"));
            } else if super::restore::left_open(&entry.dir) {
                self.open(entry)?.recover()?;
            }
        }
        Ok(completed)
    }
}
