//! Order of sessions and restores, by the counter of [`nono_history::sequence`].

use super::catalogue::Catalogue;
use super::entry::SessionEntry;
use super::error::RollbackError;
use crate::session_ref;

pub(super) use nono_history::sequence::FILE;

impl Catalogue {
    /// Take the next number; None if there is no sessions folder.
    pub(super) fn next_sequence(&self) -> Result<Option<u64>, RollbackError> {
        let taken = nono_history::sequence::next_in(&self.state_dir);
        taken.map_err(RollbackError::io(nono_history::sequence::counter(&self.state_dir)))
    }
}

/// Sort key of a session: its number; older sessions without a number come first, by time.
pub(super) fn order(entry: &SessionEntry) -> impl Ord + use<> {
    (entry.metadata.sequence.unwrap_or(0), session_ref::age(&entry.metadata.started, &entry.id))
}
