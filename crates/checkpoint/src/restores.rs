//! What a project remembers of each restore, beside what every history does.

use nono_history::HistoryError;
use serde::{Deserialize, Serialize};

use crate::error::CheckpointError;
use crate::history::{Checkpoint, TurnLink};
use crate::marks::Their;
use crate::origin::Origin;

/// Number of restores that can be taken back; with older ones go the snapshots that they were made safe by.
pub(crate) const RESTORES: usize = 10;

/// Restores of a project.
pub(crate) type Log = nono_history::Log<Details>;
pub(crate) type Restore = nono_history::Restore<Details>;
pub(crate) type Under = nono_history::Under<Details>;

/// The project's own part of a restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Details {
    pub(crate) checkpoint: Checkpoint,
    /// Who asked for it.
    pub(crate) who: Origin,
    /// Paths that others had changed and that were restored all the same, or merged.
    pub(crate) forced: Vec<Their>,
    /// Turns that it took back.
    pub(crate) turns: Vec<TurnLink>,
    /// One turn was taken back, and later ones stayed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) alone: bool,
    /// Whether the mark moves with it.
    pub(crate) marked: bool,
}

impl From<HistoryError> for CheckpointError {
    fn from(error: HistoryError) -> CheckpointError {
        match error {
            HistoryError::Io { path, source } => CheckpointError::Io { path, source },
            HistoryError::Damaged { path, what } => CheckpointError::Damaged { path, what },
            HistoryError::Format { path, format } => {
                CheckpointError::Damaged { path, what: format!("its format {format} is not known") }
            }
            HistoryError::PartOfRepository { path, git } => CheckpointError::PartOfRepository { path, git },
            HistoryError::Snapshot(error) => CheckpointError::Snapshot(error),
            other => CheckpointError::Restores(other),
        }
    }
}
