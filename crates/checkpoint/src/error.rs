//! Errors of checkpoints.

use std::io;
use std::path::PathBuf;

use nono_history::HistoryError;
use nono_snapshot::SnapshotError;

/// Result with [`CheckpointError`], unless another error is named.
pub type Result<T, E = CheckpointError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("{} is too broad for a project: {why}", path.display())]
    TooBroad { path: PathBuf, why: &'static str },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error("{} was replaced by another folder during the operation; run the command again", project.display())]
    Moved { project: PathBuf },
    #[error("{} has no checkpoints", path.display())]
    NoProject { path: PathBuf },
    #[error("{} has no checkpoint \"{text}\"", project.display())]
    NotFound { text: String, project: PathBuf },
    #[error("{text} is ambiguous: it could be {}", ids.join(", "))]
    Ambiguous { text: String, ids: Vec<String> },
    #[error("checkpoint {text} belongs to {}, not to {}", other.display(), project.display())]
    OtherProject { text: String, other: PathBuf, project: PathBuf },
    #[error("turn {turn} of {} cannot be undone by itself: its checkpoints were removed", project.display())]
    TurnGone { turn: String, project: PathBuf, checkpoint: crate::history::CheckpointId },
    #[error("no checkpoint of {} was taken in turn {turn}", project.display())]
    NoTurn { turn: String, project: PathBuf },
    #[error("{} is not below {}", path.display(), project.display())]
    Outside { path: PathBuf, project: PathBuf },
    #[error("{} is the project itself; forget takes a path inside it", project.display())]
    IsProject { project: PathBuf },
    #[error("{} is a part of a git repository, which is restored as a whole", path.display())]
    PartOfRepository { path: PathBuf, git: PathBuf },
    #[error("{} has more than {max} files; raise max_files in [checkpoints] of config.toml", project.display())]
    TooManyFiles { project: PathBuf, max: u64 },
    #[error("{name:?} cannot be a checkpoint's name: {why}")]
    BadName { name: String, why: &'static str },
    #[error("{} has no restore to undo", project.display())]
    NothingToUndo { project: PathBuf },
    #[error(transparent)]
    Restores(HistoryError),
    #[error("{} is not in a folder that this sandbox may write", path.display())]
    NotAllowed { path: PathBuf },
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

impl CheckpointError {
    pub(crate) fn damaged(path: impl Into<PathBuf>, what: impl std::fmt::Display) -> CheckpointError {
        CheckpointError::Damaged { path: path.into(), what: what.to_string() }
    }

    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> CheckpointError {
        let path = path.into();
        move |source| CheckpointError::Io { path, source }
    }
}
