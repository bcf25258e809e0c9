//! Removal of an owner: its folder goes in one rename, so that it is there as a whole or not at all. What a killed process
//! left of that is finished by the next one.

use std::io;
use std::path::{Path, PathBuf};

use nono_sys::fs;

use crate::error::HistoryError;

/// How the name of an owner's folder begins that is being removed.
const ASIDE: &str = ".removing-";

/// Whether this is the name of a folder that is being removed.
pub fn is_aside(name: &[u8]) -> bool {
    name.starts_with(ASIDE.as_bytes())
}

/// Take an owner's folder away: from here on there is no such owner, and what is returned has to be removed. Nothing where
/// another process took it.
pub fn set_aside(dir: &Path, owners: &Path, name: &str) -> Result<Option<PathBuf>, HistoryError> {
    let aside = owners.join(format!("{ASIDE}{name}"));
    match std::fs::rename(dir, &aside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(|()| Some(aside)).map_err(HistoryError::io(dir)),
    }
}

/// Remove what is there, if another process did not do so already.
pub fn remove_tree(path: &Path) -> Result<(), HistoryError> {
    match fs::remove_tree(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(HistoryError::io(path)),
    }
}
