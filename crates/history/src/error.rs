//! Errors of restores and undos.

use std::io;
use std::path::PathBuf;

use nono_snapshot::SnapshotError;
use nono_snapshot::session::SessionError;

/// Result with [`HistoryError`], unless another error is named.
pub(crate) type Result<T, E = HistoryError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error("{}: unknown format {format}", path.display())]
    Format { path: PathBuf, format: u32 },
    #[error("there is no restore to undo")]
    NothingToUndo,
    #[error("there is no restore {id}")]
    NoSuchRestore { id: String },
    #[error("restore {id} was undone already")]
    UndoneAlready { id: String },
    #[error("{} is a part of a git repository, which is restored as a whole", path.display())]
    PartOfRepository { path: PathBuf, git: PathBuf },
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

impl From<SessionError> for HistoryError {
    fn from(error: SessionError) -> HistoryError {
        HistoryError::Snapshot(error.into())
    }
}

impl HistoryError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> HistoryError {
        let path = path.into();
        move |source| HistoryError::Io { path, source }
    }

    pub(crate) fn damaged(path: impl Into<PathBuf>, what: impl std::fmt::Display) -> HistoryError {
        HistoryError::Damaged { path: path.into(), what: what.to_string() }
    }
}
