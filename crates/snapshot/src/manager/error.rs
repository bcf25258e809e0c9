//! What can go wrong with a manager's operations.

use std::path::PathBuf;

use crate::capture::CaptureError;
use crate::exclusion::RulesError;
use crate::manifest::SnapshotId;
use crate::restore::{JournalError, PreflightError, RestoreError};
use crate::session::SessionError;
use crate::state::ObjectError;
use crate::store::StoreError;

/// Why an operation failed. Nothing that was there before is lost by any of these.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("{} cannot be tracked: {source}", path.display())]
    Root { path: PathBuf, source: std::io::Error },
    #[error("{} cannot be tracked: it has no name of its own", path.display())]
    NoName { path: PathBuf },
    #[error("{} cannot be tracked: {reason}", path.display())]
    NotCaptured { path: PathBuf, reason: String },
    #[error("{} cannot be tracked: it is nono's own state", path.display())]
    OwnState { path: PathBuf },
    #[error("there is no snapshot yet in {}: take a baseline first", dir.display())]
    NoBaseline { dir: PathBuf },
    #[error("{} has snapshots already: take the next one, or begin in another folder", dir.display())]
    HasSnapshots { dir: PathBuf },
    #[error("{} has snapshots of other paths: {}", dir.display(), roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>().join(", "))]
    OtherRoots { dir: PathBuf, roots: Vec<PathBuf> },
    #[error("{} is no session: it has no record of snapshots", dir.display())]
    NoSession { dir: PathBuf },
    #[error("the store of the session {} is not known: it has none of its own", dir.display())]
    NoStore { dir: PathBuf },
    #[error("snapshot {number} cannot be given up: it is {why}")]
    Needed { number: u32, why: &'static str },
    #[error("{} is no regular file that can be captured", path.display())]
    NoFile { path: PathBuf },
    #[error("{} was named twice", path.display())]
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
    #[error("there is no room for the restore's own records in {}: {source}; free some space, one megabyte is enough, then restore again", store.display())]
    NoRoom { store: PathBuf, source: Box<CaptureError> },
    #[error("a restore of {} is under way in {}: wait until it is done", root.display(), session.display())]
    Restoring { root: PathBuf, session: PathBuf },
    #[error(
        "snapshot {id} is lost: it was not on the disk yet when the machine stopped; earlier ones restore"
    )]
    Lost { id: SnapshotId },
    #[error("the rules of snapshot {id} cannot be read: {what}")]
    FrozenRules { id: SnapshotId, what: String },
}
