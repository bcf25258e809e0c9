//! The order in which sessions began and restores were made: a counter in `rollbacks/`.

use super::catalogue::{Catalogue, SessionEntry};
use super::error::RollbackError;
use super::restore::Log;
use crate::pick;

/// In `rollbacks/`: the last number that was given.
pub(super) const FILE: &str = ".sequence";

impl Catalogue {
    /// The next number; nothing where there is no place for sessions.
    pub(super) fn next_sequence(&self) -> Result<Option<u64>, RollbackError> {
        let path = self.sessions_dir().join(FILE);
        // Every number that was given stands in a session or a restore.
        let taken = nono_history::sequence::next(&path, || self.highest().ok());
        taken.map_err(RollbackError::io(path))
    }

    fn highest(&self) -> Result<u64, RollbackError> {
        let (sessions, _) = self.list()?;
        let mut highest = 0;
        for entry in sessions {
            let restores = Log::load(&entry.dir)?.restores;
            let restored = restores.iter().filter_map(|restore| restore.sequence).max();
            highest = highest.max(entry.metadata.sequence.unwrap_or(0)).max(restored.unwrap_or(0));
        }
        Ok(highest)
    }
}

/// Where a session stands among others: by its number; those of before there were numbers first, by their times.
pub(super) fn order(entry: &SessionEntry) -> impl Ord + use<> {
    (entry.metadata.sequence.unwrap_or(0), pick::age(&entry.metadata.started, &entry.id))
}
