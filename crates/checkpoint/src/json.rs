//! Small files of our own state, as JSON: old or new, never half.

use std::io;
use std::path::Path;

use nono_snapshot::file::{self, Sync};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::CheckpointError;

/// Nothing where there is no such file.
pub(crate) fn load<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, CheckpointError> {
    let bytes = match file::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(CheckpointError::io(path))?,
    };
    let damaged = |error: serde_json::Error| damaged(path, &error);
    serde_json::from_slice(&bytes).map(Some).map_err(damaged)
}

/// The same for one who may write: what is damaged is set aside, and said by the error.
pub(crate) fn load_or_set_aside<T: DeserializeOwned>(
    path: &Path,
) -> Result<(Option<T>, Option<CheckpointError>), CheckpointError> {
    match load(path) {
        Ok(value) => Ok((value, None)),
        Err(error @ CheckpointError::Damaged { .. }) => {
            set_aside(path)?;
            Ok((None, Some(error)))
        }
        Err(error) => Err(error),
    }
}

/// Put a damaged file beside its place; nothing where another one did that already.
pub(crate) fn set_aside(path: &Path) -> Result<(), CheckpointError> {
    match std::fs::rename(path, nono_snapshot::session::aside(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(CheckpointError::io(path)),
    }
}

/// One that is damaged tells nothing, as if it had never been written: for what can be missing.
pub(crate) fn load_or_default<T: DeserializeOwned + Default>(path: &Path) -> Result<T, CheckpointError> {
    match load(path) {
        Err(CheckpointError::Damaged { .. }) => Ok(T::default()),
        other => Ok(other?.unwrap_or_default()),
    }
}

pub(crate) fn save<T: Serialize>(path: &Path, value: &T, sync: Sync) -> Result<(), CheckpointError> {
    let bytes = serde_json::to_vec(value).map_err(|error| damaged(path, &error))?;
    file::replace(path, &bytes, sync).map_err(CheckpointError::io(path))
}

fn damaged(path: &Path, error: &serde_json::Error) -> CheckpointError {
    CheckpointError::Damaged { path: path.to_owned(), what: error.to_string() }
}
