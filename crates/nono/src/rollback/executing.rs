//! What a restore keeps although it will run later: the one thing about it that must not go unsaid.

use std::path::PathBuf;

use nono_snapshot::SnapshotId;
use nono_snapshot::restore::Skipped;

use super::catalogue::RollbackSession;
use super::error::RollbackError;
use super::later::Later;

impl RollbackSession {
    /// What the session changed since `target` so that it runs later, and what is in its place still because it, or what
    /// it is in, is kept.
    pub(super) fn still_executing(
        &self,
        target: &SnapshotId,
        kept: &[Skipped],
    ) -> Result<Vec<(PathBuf, Later)>, RollbackError> {
        if kept.is_empty() {
            return Ok(Vec::new());
        }
        let items = self.changes(target, &self.last()?)?.items.into_iter();
        let is_kept = |path: &PathBuf| kept.iter().any(|kept| path.starts_with(&kept.path));
        // Somebody may have removed it since. This is for a warning alone, so a look by its path will do.
        let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
        let still = items.filter_map(|item| Some((item.path, item.executes_later?)));
        Ok(still.filter(|(path, _)| is_kept(path) && is_there(path)).collect())
    }
}
