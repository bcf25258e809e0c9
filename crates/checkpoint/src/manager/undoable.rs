//! Checkpoints that undo can go back to, newest first: each undo goes one further.

use std::path::{Path, PathBuf};

use nono_history::LastRestore;
use nono_snapshot::session::{Session, SnapshotList};
use nono_snapshot::{ChangedByOthers, SnapshotError, SnapshotId};

use super::CheckpointManager;
use super::open::Bounds;
use crate::error::{CheckpointError, Result};
use crate::history::{Checkpoint, CheckpointId, History};
use crate::pending_calls::{PendingCalls, Theirs, Whose};
use crate::project;
use crate::restores::{ProjectRestores, Restore};

/// Possible undos and redos of a project.
#[derive(Debug)]
pub struct Undoable {
    pub project: PathBuf,
    /// Checkpoints taken before work of an agent or a command, and not undone by a restore, newest first.
    pub checkpoints: Vec<Checkpoint>,
    /// Checkpoints that were restored and not undone, with nanoseconds since 1970; the latest restore last.
    pub gone_to: Vec<(Checkpoint, u64)>,
    /// Last one of these, if no work began since.
    pub here: Option<CheckpointId>,
    /// The last restore that was not undone.
    pub last: Option<LastRestore<Checkpoint>>,
}

impl CheckpointManager {
    /// Paths that others changed between the calls of agents, with the content the agent had left.
    pub fn others(&self, dir: &Path) -> Result<Vec<ChangedByOthers>> {
        let mut open = self.open(dir, Bounds::Settings)?;
        let marks = PendingCalls::load(&open.folder)?;
        let mut theirs = Theirs::load(&open.folder)?;
        if let Some(mark) = marks.settled_mark() {
            // Changes since the last call are not attributed yet.
            let now = open.manager.look_now_as(mark)?;
            theirs.take(&open.manager.changes_until(mark, &now)?, Whose::Theirs);
        }
        Ok(theirs.into_paths().into_iter().map(|(path, left)| ChangedByOthers { path, left }).collect())
    }

    /// Checkpoint that the whole project was restored to, if no work began since.
    pub fn here(&self, dir: &Path) -> Result<Option<CheckpointId>> {
        Ok(self.undoable(dir, &[])?.and_then(|undoable| undoable.here))
    }

    /// Possible undos in a directory, or for these paths in it; `None` without checkpoints. Waits for no lock.
    pub fn undoable(&self, dir: &Path, paths: &[PathBuf]) -> Result<Option<Undoable>> {
        let project = match self.root_of(dir) {
            Err(CheckpointError::NoProject { .. } | CheckpointError::TooBroad { .. }) => return Ok(None),
            other => other?.dir,
        };
        let folder = project::folder_of(self.host(), &project);
        let Some(record) = Session::new(&folder).record().map_err(SnapshotError::from)? else {
            return Ok(None);
        };
        let log = ProjectRestores::load(&folder)?;
        let restores: Vec<&Restore> = log
            .restores
            .iter()
            .filter(|restore| restore.undoes.is_none() && !log.is_undone(&restore.id))
            // The undo of a single turn leaves later ones unchanged.
            .filter(|restore| !restore.details.as_ref().is_some_and(|details| details.alone))
            .filter(|restore| restore.steps.first().is_some_and(|step| step.scope.covers(paths)))
            .collect();
        let is_ahead = |line: &Checkpoint| !restores.iter().any(|restore| is_behind(line, restore, &record));
        let mut checkpoints = History::load(&folder)?.checkpoints;
        let here = restores.last().filter(|last| is_present(last, checkpoints.last(), &record));
        let here = here.and_then(|last| Some(last.details.as_ref()?.checkpoint.id.clone()));
        checkpoints.retain(|line| {
            line.is_before_work() && is_ahead(line) && record.find(&line.snapshot_id()).is_some()
        });
        checkpoints.reverse();
        let last = log.last_to_undo().and_then(|restore| {
            let details = restore.details.as_ref()?;
            let mut last = LastRestore::new(restore, details.checkpoint.clone());
            // Paths kept by the undo of a single turn do not mean that the checkpoint is incomplete.
            last.kept &= !details.alone;
            Some(last)
        });
        let gone_to = restores
            .iter()
            .filter_map(|restore| Some((restore.details.as_ref()?.checkpoint.clone(), restore.at)));
        let gone_to = gone_to.collect();
        Ok(Some(Undoable { project, checkpoints, gone_to, here, last }))
    }
}

/// Whether an earlier checkpoint was restored after this one was taken, so that restoring this one would go forward.
fn is_behind(line: &Checkpoint, restore: &Restore, record: &SnapshotList) -> bool {
    let SnapshotId::Number(target) = restore.target else { return false };
    line.snapshot > target && is_taken_before(line, restore, record)
}

fn is_taken_before(line: &Checkpoint, restore: &Restore, record: &SnapshotList) -> bool {
    let place = |id: &SnapshotId| record.snapshots.iter().position(|recorded| recorded.id == *id);
    let safety = restore.safety().and_then(place);
    safety.zip(place(&line.snapshot_id())).is_some_and(|(safety, taken)| taken < safety)
}

/// Whether no work began since a restore, according to the newest checkpoint.
fn is_present(restore: &Restore, newest: Option<&Checkpoint>, record: &SnapshotList) -> bool {
    let begun = |line: &Checkpoint| line.begun.as_ref().is_some_and(|begun| begun.at > restore.at);
    newest.is_some_and(|newest| is_taken_before(newest, restore, record) && !begun(newest))
}
