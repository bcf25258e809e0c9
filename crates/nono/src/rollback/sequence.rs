//! Counter in `rollbacks/` that orders the starts of sessions and the restores.

use super::catalogue::Catalogue;
use super::entry::SessionEntry;
use super::error::RollbackError;
use crate::session_ref;

/// File in `rollbacks/` with the last number used.
pub(super) const FILE: &str = ".sequence";

impl Catalogue {
    /// Take the next number; None if there is no sessions folder.
    pub(super) fn next_sequence(&self) -> Result<Option<u64>, RollbackError> {
        let path = self.sessions_dir().join(FILE);
        // Every number used is stored in a session or a restore.
        let taken = nono_history::sequence::next(&path, || self.highest().ok());
        taken.map_err(RollbackError::io(path))
    }

    fn highest(&self) -> Result<u64, RollbackError> {
        let (sessions, _) = self.list()?;
        let mut highest = 0;
        for entry in sessions {
            let restores = nono_history::RestoreHistory::<()>::load(&entry.dir)?.restores;
            let restored = restores.iter().filter_map(|restore| restore.sequence).max();
            highest = highest.max(entry.metadata.sequence.unwrap_or(0)).max(restored.unwrap_or(0));
        }
        Ok(highest)
    }
}

/// Sort key of a session: its number; older sessions without a number come first, by time.
pub(super) fn order(entry: &SessionEntry) -> impl Ord + use<> {
    (entry.metadata.sequence.unwrap_or(0), session_ref::age(&entry.metadata.started, &entry.id))
}
