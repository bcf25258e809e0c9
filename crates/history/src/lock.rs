//! File locks: one restore or undo of a history at a time, from reading its log to the last entry in it; one removal of
//! owners at a time.

use std::fs::{File, TryLockError};
use std::path::Path;

use nono_snapshot::file::existing;

use crate::error::{HistoryError, Result};

/// Name of a history's lock file in its owner's folder.
pub const FILE: &str = "restores.lock";

/// A held lock.
#[derive(Debug)]
#[must_use]
pub struct Lock(File);

impl Lock {
    /// Wait for the lock of the history in this folder.
    pub fn take(dir: &Path) -> Result<Lock> {
        Lock::wait(&dir.join(FILE))
    }

    /// Wait for the lock on this file, which is created if missing.
    pub fn wait(path: &Path) -> Result<Lock> {
        let file = open(path)?;
        file.lock().map_err(HistoryError::io(path))?;
        Ok(Lock(file))
    }

    /// Wait for a shared lock on this file, which is created if missing.
    pub fn share(path: &Path) -> Result<Lock> {
        let file = open(path)?;
        file.lock_shared().map_err(HistoryError::io(path))?;
        Ok(Lock(file))
    }

    /// Take the lock on this file, which is created if missing; None while another process holds it.
    pub fn attempt(path: &Path) -> Result<Option<Lock>> {
        Lock::at_once(open(path)?, path)
    }

    fn at_once(file: File, path: &Path) -> Result<Option<Lock>> {
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(HistoryError::Io { path: path.to_owned(), source }),
        }
    }
}

fn open(path: &Path) -> Result<File> {
    nono_sys::fs::open_lock(path).map_err(HistoryError::io(path))
}

/// Result of trying to lock a file that may be missing.
#[derive(Debug)]
pub enum Tried {
    Busy,
    /// Held from now on; None if there is no such file.
    Free(Option<Lock>),
}

impl Tried {
    /// Try to lock this file, which is not created.
    pub fn existing(path: &Path) -> Result<Tried> {
        let Some(file) = existing(File::open(path)).map_err(HistoryError::io(path))? else {
            return Ok(Tried::Free(None));
        };
        Ok(Lock::at_once(file, path)?.map_or(Tried::Busy, |lock| Tried::Free(Some(lock))))
    }
}

/// Whether a restore of the history in this folder is in progress.
pub fn is_locked(dir: &Path) -> Result<bool> {
    let path = dir.join(FILE);
    let file = existing(File::open(&path)).map_err(HistoryError::io(&path))?;
    file.map_or(Ok(false), |file| nono_sys::fs::is_locked(&file)).map_err(HistoryError::io(&path))
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a child between fork and exec still has the descriptor.
        let _ = self.0.unlock();
    }
}
