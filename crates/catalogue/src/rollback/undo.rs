//! Undoing a restore of a session, completing an interrupted one, and finding the session to undo.

use std::path::{Path, PathBuf};

use nono_history::{LastRestore, Recovered};
use nono_snapshot::SnapshotId;

use super::catalogue::{Catalogue, RollbackSession};
use super::entry::{SessionEntry, Status};
use super::error::RollbackError;
use super::restore::{Done, Plan, SessionRestores, left_open};
use crate::audit::RestoreSubject;

impl RollbackSession {
    /// Plan the undo of a restore. `undo`: id of the restore; None for the last one that was not undone.
    pub fn plan_undo(&mut self, undo: Option<&str>) -> Result<Plan, RollbackError> {
        let _paused = self.ready(&SnapshotId::Number(0))?;
        let plan = self.history().plan_undo::<()>(undo);
        plan.map_err(|error| self.said(error))
    }

    pub fn undo(&mut self, undo: Option<&str>) -> Result<Done, RollbackError> {
        let _paused = self.ready(&SnapshotId::Number(0))?;
        let restore = self.history().to_undo::<()>(undo).map_err(|error| self.said(error))?;
        let target = restore.steps.last().map_or(SnapshotId::Number(0), |step| step.safety.clone());
        let subject = RestoreSubject { snapshot: target.to_string(), ..self.subject(Some(&restore)) };
        let whole = restore.paths().is_empty() && restore.target == SnapshotId::Number(0);
        let done = self.recorded(subject, |session| session.undo_now(undo))?;
        Ok(self.tell_projects(done, whole.then_some(true)))
    }

    fn undo_now(&mut self, undo: Option<&str>) -> Result<Done, RollbackError> {
        let _lock = self.lock()?;
        let begin = self.begin()?;
        let undone = self.history().undo(undo, begin);
        let (mut under, mut done) = undone.map_err(|error| self.said(error))?;
        self.history().finish(&mut under, &mut done)?;
        Ok(done)
    }

    /// Complete an interrupted restore, if there is one.
    pub fn recover(&mut self) -> Result<Option<Done>, RollbackError> {
        if let Some(done) = self.recovered.take() {
            return Ok(Some(done));
        }
        if !self.history().is_cut_off::<()>()? {
            // A running session resets the permissions that a capture opened itself; else the next command does.
            if left_open(&self.entry.dir) && self.refuse_live().is_ok() {
                self.manager.recover()?;
            }
            return Ok(None);
        }
        self.refuse_live()?;
        let mut met = true;
        let completed = self.recorded(self.cut_off()?, |session| {
            let done = session.complete()?;
            met = done.is_some();
            Ok(done.unwrap_or_default())
        })?;
        Ok(met.then_some(completed))
    }

    /// Complete the restore; None if it had not begun to change anything.
    fn complete(&mut self) -> Result<Option<Done>, RollbackError> {
        let _lock = self.lock()?;
        let mut history = self.history();
        let Some(Recovered { under, mut done }) = history.recover::<()>()? else { return Ok(None) };
        if let Some(mut under) = under {
            history.finish(&mut under, &mut done)?;
        }
        Ok(Some(done))
    }

    /// Result of an interrupted restore that a plan, a restore or an undo found and completed. Returned once.
    pub fn take_recovered(&mut self) -> Option<Done> {
        self.recovered.take()
    }
}

impl Catalogue {
    /// Sessions to undo in a directory, newest first: those that changed something there (or at these paths) and were
    /// not undone. Each undo goes one session further back.
    pub fn to_undo_in(&self, dir: &Path, paths: &[PathBuf]) -> Result<Vec<ToUndo>, RollbackError> {
        let here = self.here(dir)?;
        if here.is_empty() {
            let last = self.list()?.0.into_iter().next().map(Box::new);
            return Err(RollbackError::NoneHere { dir: dir.to_owned(), last });
        }
        let mut to_undo = Vec::new();
        for entry in here {
            // A running session is refused by name, not skipped.
            let running = entry.status == Status::Live;
            let log = SessionRestores::load(&entry.dir)?;
            let undone = log.brought_back(paths).filter(|_| !running);
            let is_done = undone.is_some_and(|restore| !restore.kept);
            if is_done || (!running && entry.is_empty()) {
                continue;
            }
            let again = undone.is_some();
            if running || paths.is_empty() || self.has_changed(&entry, paths)? {
                to_undo.push(ToUndo { entry, again });
            }
        }
        Ok(to_undo)
    }

    /// Sessions in a directory that were undone (at these paths), each with the time of the undo in nanoseconds since
    /// 1970.
    pub(crate) fn undone_in(
        &self,
        dir: &Path,
        paths: &[PathBuf],
    ) -> Result<Vec<(SessionEntry, u64)>, RollbackError> {
        let mut undone = Vec::new();
        for entry in self.here(dir)? {
            let at = SessionRestores::load(&entry.dir)?.brought_back(paths).map(|restore| restore.at);
            undone.extend(at.map(|at| (entry, at)));
        }
        Ok(undone)
    }

    /// The last restore of sessions in a directory that was not undone.
    pub(crate) fn last_restore_in(
        &self,
        dir: &Path,
    ) -> Result<Option<LastRestore<SessionEntry>>, RollbackError> {
        last_restore(self.here(dir)?)
    }

    /// Whether a session changed anything at these paths; one that is not known to have ended may have.
    fn has_changed(&self, entry: &SessionEntry, paths: &[PathBuf]) -> Result<bool, RollbackError> {
        let session = self.open(entry.clone())?;
        let Some(last) = session.final_snapshot()? else { return Ok(true) };
        let mut changed = false;
        session.manager.each_change(&SnapshotId::Number(0), &last, &mut |change| {
            changed |=
                paths.iter().any(|path| change.path.starts_with(path) || path.starts_with(&change.path));
        })?;
        Ok(changed)
    }

    /// Session of the last restore that was not undone.
    pub fn last_restored(&self) -> Result<SessionEntry, RollbackError> {
        let last = last_restore(self.list()?.0)?;
        last.map(|last| last.point).ok_or(RollbackError::NoRestores)
    }
}

/// A session that can be undone.
#[derive(Debug)]
pub struct ToUndo {
    pub entry: SessionEntry,
    /// Undone before, but some paths were kept: only those are left.
    pub again: bool,
}

/// The last restore of these sessions that was not undone.
fn last_restore(sessions: Vec<SessionEntry>) -> Result<Option<LastRestore<SessionEntry>>, RollbackError> {
    let mut all = Vec::new();
    for entry in sessions {
        let log = SessionRestores::load(&entry.dir)?;
        all.extend(log.last_to_undo().map(|restore| LastRestore::new(restore, entry)));
    }
    Ok(LastRestore::latest(all))
}
