//! Errors of listing, reading, restoring and undoing sessions.

use std::io;
use std::path::PathBuf;

use nono_history::HistoryError;
use nono_snapshot::session::SessionError;
use nono_snapshot::{SnapshotError, SnapshotId};
use nono_sys::errno;
use thiserror::Error;

use super::entry::SessionEntry;
use crate::config_file::SettingProblem;

#[derive(Debug, Error)]
pub enum RollbackError {
    #[error("no session is called \"{text}\"")]
    NotFound { text: String },
    #[error("there are no sessions yet")]
    NoSessions,
    #[error("{text} matches several sessions: {}", .ids.join(", "))]
    Ambiguous { text: String, ids: Vec<String> },
    #[error("session {id} is running on {}", root.display())]
    Live { id: String, root: PathBuf },
    #[error("a restore of session {id} is under way on {}", root.display())]
    Restoring { id: String, root: PathBuf },
    #[error("there is no restore to undo in session {id}")]
    NothingToUndo { id: String },
    #[error("no restore is left to undo")]
    NoRestores,
    #[error("no session has snapshots of {}", dir.display())]
    NoneHere { dir: PathBuf, last: Option<Box<SessionEntry>> },
    /// No session was named, and none has snapshots of this directory.
    #[error("no session has snapshots of {}", dir.display())]
    NoSessionHere { dir: PathBuf, last: Option<Box<SessionEntry>> },
    #[error("there is nothing left to undo in {}", dir.display())]
    AllUndone { dir: PathBuf },
    #[error("nothing to redo in {}", dir.display())]
    NoRestoresHere { dir: PathBuf },
    #[error("there is no restore {undo}")]
    NoSuchRestore { undo: String },
    #[error("restore {undo} was undone already")]
    UndoneAlready { undo: String },
    /// `session`: its id; None if the path was looked up in a project.
    #[error("{} has no path {}", session.as_ref().map_or_else(|| "the project".to_owned(), |id| format!("session {id}")), path.display())]
    NoSuchPath { path: PathBuf, session: Option<String> },
    #[error("{} is a part of a git repository, which is restored as a whole", path.display())]
    PartOfRepository { path: PathBuf, git: PathBuf },
    #[error("invalid pattern {pattern}: {what}")]
    Pattern { pattern: String, what: &'static str },
    #[error("session {id} has no snapshot {snapshot}")]
    NoSnapshot { id: String, snapshot: SnapshotId },
    #[error("{}: {}", path.display(), errno::describe(.source))]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error("{} is not a session: {what}", path.display())]
    NoSession { path: PathBuf, what: &'static str },
    #[error("{}: {source}", path.display())]
    Settings { path: PathBuf, source: SettingProblem },
    #[error("{}: unknown format {format}", path.display())]
    Format { path: PathBuf, format: u32 },
    /// The snapshot does not fit into the store, and pruning everything that may be pruned would not be enough.
    #[error("{what}; the snapshot needs about {}, and {} of {} are free", megabytes(*needed), left.map_or_else(|| "an unknown part".to_owned(), megabytes), megabytes(*limit))]
    NoRoom { what: String, needed: u64, left: Option<u64>, limit: u64 },
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20)
}

impl From<SessionError> for RollbackError {
    fn from(error: SessionError) -> RollbackError {
        RollbackError::Snapshot(error.into())
    }
}

impl From<HistoryError> for RollbackError {
    fn from(error: HistoryError) -> RollbackError {
        match error {
            HistoryError::Io { path, source } => RollbackError::Io { path, source },
            HistoryError::Damaged { path, what } => RollbackError::Damaged { path, what },
            HistoryError::Format { path, format } => RollbackError::Format { path, format },
            HistoryError::NothingToUndo => RollbackError::NoRestores,
            HistoryError::NoSuchRestore { id: undo } => RollbackError::NoSuchRestore { undo },
            HistoryError::UndoneAlready { id: undo } => RollbackError::UndoneAlready { undo },
            HistoryError::PartOfRepository { path, git } => RollbackError::PartOfRepository { path, git },
            HistoryError::Snapshot(error) => RollbackError::Snapshot(error),
        }
    }
}

impl RollbackError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> RollbackError {
        let path = path.into();
        move |source| RollbackError::Io { path, source }
    }

    pub(crate) fn damaged(path: impl Into<PathBuf>, what: impl std::fmt::Display) -> RollbackError {
        RollbackError::Damaged { path: path.into(), what: format!("{what}") }
    }
}
