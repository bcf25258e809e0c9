//! Resolution of paths typed by the user to paths of a project.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nono_checkpoint::CheckpointError;
use nono_checkpoint::manager::Compared;
use thiserror::Error;

use crate::rollback::RollbackError;
use crate::rollback::select_paths::{Globs, Sides};

/// Reason why a path cannot be used.
#[derive(Debug, Error)]
pub enum PathError {
    #[error("no path {} in the project or in the checkpoint", path.display())]
    NoSuchPath { path: PathBuf },
    #[error("invalid pattern {pattern}: {what}")]
    Pattern { pattern: String, what: &'static str },
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Other(RollbackError),
}

/// Resolve files and directories as typed in `cwd` to paths of the project. With `globs`, names with glob characters
/// are patterns over the paths of the checkpoint and of the present state; else every name is literal.
pub fn chosen(
    compared: &Compared,
    typed: &[OsString],
    cwd: &Path,
    globs: bool,
) -> Result<Vec<PathBuf>, PathError> {
    let sides = Sides { manager: &compared.manager, a: &compared.from, b: &compared.to };
    let globs = if globs { Globs::Yes } else { Globs::No };
    sides.resolve(typed, cwd, globs).map_err(|error| match error {
        RollbackError::NoSuchPath { path, .. } => PathError::NoSuchPath { path },
        RollbackError::Pattern { pattern, what } => PathError::Pattern { pattern, what },
        RollbackError::Snapshot(error) => PathError::Checkpoint(error.into()),
        error => PathError::Other(error),
    })
}
