//! Small state files as JSON, replaced atomically.

use std::path::Path;

use nono_history::removal::set_file_aside;
use nono_snapshot::file::{self, Sync};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{CheckpointError, Result};

/// Loads a file; `None` if it does not exist.
pub(crate) fn load<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let read = file::read_existing(path).map_err(CheckpointError::io(path))?;
    let parsed = read.map(|bytes| serde_json::from_slice(&bytes)).transpose();
    parsed.map_err(|error| CheckpointError::damaged(path, error))
}

/// Loads a file for a caller that may write: a damaged one is moved aside, and the error is returned too.
pub(crate) fn load_or_set_aside<T: DeserializeOwned>(
    path: &Path,
) -> Result<(Option<T>, Option<CheckpointError>)> {
    match load(path) {
        Ok(value) => Ok((value, None)),
        Err(error @ CheckpointError::Damaged { .. }) => {
            set_file_aside(path)?;
            Ok((None, Some(error)))
        }
        Err(error) => Err(error),
    }
}

/// Loads an optional file; a missing or damaged one is the default.
pub(crate) fn load_or_default<T: DeserializeOwned + Default>(path: &Path) -> Result<T> {
    match load(path) {
        Err(CheckpointError::Damaged { .. }) => Ok(T::default()),
        other => Ok(other?.unwrap_or_default()),
    }
}

pub(crate) fn save<T: Serialize>(path: &Path, value: &T, sync: Sync) -> Result<()> {
    let bytes = serde_json::to_vec(value).map_err(|error| CheckpointError::damaged(path, error))?;
    file::replace(path, &bytes, sync).map_err(CheckpointError::io(path))
}
