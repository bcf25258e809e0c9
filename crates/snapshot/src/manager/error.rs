//! Errors of a manager's operations.

use std::path::PathBuf;

use crate::capture::CaptureError;
use crate::exclusion::RulesError;
use crate::manifest::SnapshotId;
use crate::restore::{JournalError, PreflightError, RestoreError};
use crate::session::SessionError;
use crate::state::ObjectError;
use crate::store::StoreError;

/// Result with [`SnapshotError`], unless another error is named.
pub(crate) type Result<T, E = SnapshotError> = std::result::Result<T, E>;

/// Reason why an operation failed. No existing data is lost by any of these.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("cannot track {}: {source}", path.display())]
    Root { path: PathBuf, source: std::io::Error },
    #[error("cannot track {}: it is not a path below a directory", path.display())]
    NoName { path: PathBuf },
    #[error("cannot track {}: {reason}", path.display())]
    NotCaptured { path: PathBuf, reason: String },
    #[error("cannot track {}: it is nono's own state", path.display())]
    OwnState { path: PathBuf },
    #[error("no snapshot in {} yet: take a baseline first", dir.display())]
    NoBaseline { dir: PathBuf },
    #[error("{} has snapshots already: take the next one, or use another folder", dir.display())]
    HasSnapshots { dir: PathBuf },
    #[error("{} has snapshots of other paths: {}", dir.display(), roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>().join(", "))]
    OtherRoots { dir: PathBuf, roots: Vec<PathBuf> },
    #[error("{} is not a session: it has no record of snapshots", dir.display())]
    NoSession { dir: PathBuf },
    #[error("cannot find the store of session {}: it has none of its own; name the store", dir.display())]
    NoStore { dir: PathBuf },
    #[error("cannot drop snapshot {number}: it is {why}")]
    Needed { number: u32, why: &'static str },
    #[error("{} is not a regular file that can be captured", path.display())]
    NoFile { path: PathBuf },
    #[error("{} is named twice", path.display())]
    Twice { path: PathBuf },
    #[error("{} is not below a tracked path", path.display())]
    NotTracked { path: PathBuf },
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Object(#[from] ObjectError),
    #[error(transparent)]
    Rules(#[from] RulesError),
    #[error(transparent)]
    Restore(#[from] RestoreError),
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("no room for the restore's records in {}: {source}; free 1 MB, then restore again", store.display())]
    NoRoom { store: PathBuf, source: Box<CaptureError> },
    #[error("a restore of {} is running in {}: wait until it is done", root.display(), session.display())]
    Restoring { root: PathBuf, session: PathBuf },
    #[error("snapshot {id} is lost: the machine stopped before it was on disk; restore an earlier one")]
    Lost { id: SnapshotId },
    #[error("cannot read the exclusion rules of snapshot {id}: {what}")]
    FrozenRules { id: SnapshotId, what: String },
}
