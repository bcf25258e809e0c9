//! nono's state folder: created private, and refused if another user could change it.

use std::io;
use std::path::{Path, PathBuf};

use nono_sys::fs::{self, Untrusted};
use nono_sys::{errno, process};
use serde::Serialize;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum StateDirError {
    #[error("{path} {why}: nono does not keep its state there", path = .path.display(), why = describe(*.why))]
    Untrusted { path: PathBuf, why: Untrusted },
    #[error("{path} cannot be used for nono's state: {}", errno::describe(.source), path = .path.display())]
    Unusable { path: PathBuf, source: io::Error },
}

impl StateDirError {
    pub fn hint(&self) -> Option<String> {
        match self {
            StateDirError::Untrusted { path, why: Untrusted::WritableByOthers(_) } => {
                Some(format!("chmod 700 {}", path.display()))
            }
            StateDirError::Untrusted { .. } => {
                Some("move it away, or set NONO_HOME to a folder of your own".to_owned())
            }
            StateDirError::Unusable { .. } => Some("set NONO_HOME to a folder you can write".to_owned()),
        }
    }
}

/// Reasons why a file of the state folder was not saved.
#[derive(Debug, Error)]
pub enum StateFileError {
    #[error(transparent)]
    State(#[from] StateDirError),
    #[error("{path}: {}", errno::describe(.source), path = .path.display())]
    Io { path: PathBuf, source: io::Error },
}

fn describe(why: Untrusted) -> String {
    match why {
        Untrusted::Symlink => "is a symbolic link".to_owned(),
        Untrusted::NotADirectory => "is not a directory".to_owned(),
        Untrusted::ForeignOwner(uid) => format!("belongs to user {uid}"),
        Untrusted::WritableByOthers(mode) => format!("can be written by others (mode {mode:04o})"),
    }
}

/// Create the folder if it is missing, and check that it can be trusted. Whether it is writable shows when it is
/// written: a run with nothing to record does not fail for a read-only folder.
pub fn ensure(path: &Path) -> Result<(), StateDirError> {
    let unusable = |source| StateDirError::Unusable { path: path.to_owned(), source };
    match fs::check_private_dir(path, process::uid()) {
        Ok(checked) => checked.map_err(|why| StateDirError::Untrusted { path: path.to_owned(), why }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(unusable)?;
            }
            match fs::make_dir(path, 0o700) {
                // Another run created it meanwhile.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => ensure(path),
                result => result.map_err(unusable),
            }
        }
        Err(error) => Err(unusable(error)),
    }
}

/// Save a value as JSON in the state folder, or in a folder of it, which is created if it is missing.
pub fn save_json(
    state_dir: &Path,
    file: impl AsRef<Path>,
    value: &impl Serialize,
) -> Result<(), StateFileError> {
    ensure(state_dir)?;
    let path = state_dir.join(file);
    let made = match fs::make_dir(path.parent().unwrap_or(state_dir), 0o700) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    };
    let saved = made.and_then(|()| fs::write_whole(&path, &serde_json::to_vec_pretty(value)?));
    saved.map_err(|source| StateFileError::Io { path, source })
}
