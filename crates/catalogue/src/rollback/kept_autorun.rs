//! Detection of kept files that run later, which a restore must report.

use std::path::PathBuf;

use nono_snapshot::SnapshotId;
use nono_snapshot::restore::Skipped;

use super::autorun::Later;
use super::catalogue::RollbackSession;
use super::error::RollbackError;

impl RollbackSession {
    /// Files that the session changed since `target`, that run later, and that are still there because they, or a
    /// folder above them, are kept.
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
        // It may have been removed since. Used only for a warning, so a check by path is enough.
        let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
        let still = items.filter_map(|item| Some((item.path, item.executes_later?)));
        Ok(still.filter(|(path, _)| is_kept(path) && is_there(path)).collect())
    }
}
