//! One restore or undo of a history at a time, from the first look at its log to the last entry in it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::HistoryError;

/// Name of the lock file in an owner's folder.
pub const FILE: &str = "restores.lock";

/// Held lock of a history.
#[derive(Debug)]
#[must_use]
pub struct Lock(File);

impl Lock {
    /// Wait for the lock of the history in this folder.
    pub fn take(dir: &Path) -> Result<Lock, HistoryError> {
        let path = dir.join(FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).map_err(HistoryError::io(&path))?;
        file.lock().map_err(HistoryError::io(&path))?;
        Ok(Lock(file))
    }
}

/// Whether a restore of the history in this folder is under way.
pub fn is_locked(dir: &Path) -> Result<bool, HistoryError> {
    let path = dir.join(FILE);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other.map_err(HistoryError::io(&path))?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(source)) => Err(HistoryError::Io { path, source }),
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a process that is just being forked has the descriptor until it executes.
        let _ = self.0.unlock();
    }
}
