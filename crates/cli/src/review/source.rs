//! Interface between the review and a session, so that tests can use a fake.

use nono::rollback::restore::CONTEXT;
use nono::rollback::{
    ChangeSet, Done, FileDiff, Item, Plan, RestoreChoice, RollbackError, RollbackSession, SnapshotInfo, patch,
};
use nono::snapshot::{Coverage, SnapshotId};

pub(super) trait ReviewSource {
    fn id(&self) -> String;
    /// Every snapshot of the run, oldest first.
    fn timeline(&self) -> Result<Vec<SnapshotInfo>, RollbackError>;
    /// Changes from that snapshot to the last one.
    fn changes(&self, from: &SnapshotId) -> Result<ChangeSet, RollbackError>;
    fn diff(&self, item: &Item) -> Result<FileDiff, RollbackError>;
    fn is_binary(&self, item: &Item) -> Result<bool, RollbackError>;
    fn coverage(&self, id: &SnapshotId) -> Result<Coverage, RollbackError>;
    fn plan(&mut self, choice: &RestoreChoice) -> Result<Plan, RollbackError>;
    fn restore(&mut self, choice: &RestoreChoice) -> Result<Done, RollbackError>;
}

impl ReviewSource for RollbackSession {
    fn id(&self) -> String {
        self.entry().id.clone()
    }

    fn timeline(&self) -> Result<Vec<SnapshotInfo>, RollbackError> {
        let mut snapshots = self.snapshots()?;
        snapshots.retain(|snapshot| matches!(snapshot.id, SnapshotId::Number(_)));
        Ok(snapshots)
    }

    fn changes(&self, from: &SnapshotId) -> Result<ChangeSet, RollbackError> {
        RollbackSession::changes(self, from, &self.last()?)
    }

    fn diff(&self, item: &Item) -> Result<FileDiff, RollbackError> {
        patch::file_diff(self.engine(), item, CONTEXT)
    }

    fn is_binary(&self, item: &Item) -> Result<bool, RollbackError> {
        patch::is_binary(self.engine(), item)
    }

    fn coverage(&self, id: &SnapshotId) -> Result<Coverage, RollbackError> {
        RollbackSession::coverage(self, id)
    }

    fn plan(&mut self, choice: &RestoreChoice) -> Result<Plan, RollbackError> {
        let mut plan = RollbackSession::plan(self, choice)?;
        if let Some(done) = self.take_recovered() {
            plan.notes.push("an interrupted restore was completed first".to_owned());
            plan.notes.extend(done.unrecorded.as_deref().map(crate::message::unrecorded));
        }
        Ok(plan)
    }

    fn restore(&mut self, choice: &RestoreChoice) -> Result<Done, RollbackError> {
        RollbackSession::restore(self, choice)
    }
}
