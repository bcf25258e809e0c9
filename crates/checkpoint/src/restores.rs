//! Details that a project keeps of each restore, in addition to those of every history.

use nono_history::HistoryError;
use serde::{Deserialize, Serialize};

use crate::error::CheckpointError;
use crate::history::{Checkpoint, TurnLink};
use crate::origin::Origin;
use crate::pending_calls::Their;

/// Number of restores that can be undone; older ones are dropped with their safety snapshots.
pub(crate) const RESTORES: usize = 10;

/// Log of a project's restores.
pub(crate) type ProjectRestores = nono_history::RestoreHistory<Details>;
pub(crate) type Restore = nono_history::Restore<Details>;
pub(crate) type Under = nono_history::Under<Details>;

/// Details of a project's restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Details {
    pub(crate) checkpoint: Checkpoint,
    /// Origin of the request.
    pub(crate) who: Origin,
    /// Paths that others had changed and that were restored by force, or merged.
    pub(crate) forced: Vec<Their>,
    /// Turns that it undid.
    pub(crate) turns: Vec<TurnLink>,
    /// Whether a single turn was undone and later ones stayed.
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
                CheckpointError::damaged(path, format!("unknown format {format}"))
            }
            HistoryError::PartOfRepository { path, git } => CheckpointError::PartOfRepository { path, git },
            HistoryError::Snapshot(error) => CheckpointError::Snapshot(error),
            other => CheckpointError::Restores(other),
        }
    }
}
