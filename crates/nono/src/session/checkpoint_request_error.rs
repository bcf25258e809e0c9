//! Errors of checkpoint requests from inside the sandbox.

use std::io;
use std::path::PathBuf;

use nono_checkpoint::CheckpointError;
use nono_supervisor::request_service::RequestFailure;
use thiserror::Error;

use crate::rollback::RollbackError;

/// Reason a request is not carried out.
#[derive(Debug, Error)]
pub(super) enum CheckpointRequestError {
    #[error("{} is not writable in this sandbox", .0.display())]
    NotWritable(PathBuf),
    #[error("{} is not below {}", path.display(), project.display())]
    Outside { path: PathBuf, project: PathBuf },
    #[error("the project was moved")]
    Moved,
    #[error("a restore needs approval")]
    NeedsApproval,
    #[error("changes made by others can be overwritten or merged only outside the sandbox")]
    Overwrites,
    #[error("internal error; the request was not carried out")]
    Panicked,
    #[error(transparent)]
    Thread(#[from] io::Error),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Patch(#[from] RollbackError),
    #[error(transparent)]
    Refused(#[from] RequestFailure),
}
