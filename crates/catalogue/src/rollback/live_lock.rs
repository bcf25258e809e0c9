//! Detection of running sessions: each holds a file lock, which the kernel releases when its process ends.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Lock that a running session holds on its own folder.
#[derive(Debug)]
#[must_use]
pub struct LiveLock(File);

fn open(session: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.open(session.join("live"))
}

impl LiveLock {
    /// Mark the session as running until this value is dropped or the process ends.
    pub fn begin(session: &Path) -> io::Result<LiveLock> {
        let file = open(session)?;
        file.lock()?;
        Ok(LiveLock(file))
    }

    /// [`LiveLock::begin`], and store the roots that the session will track: known before the baseline is taken, so that
    /// restores elsewhere need not wait for it.
    pub fn begin_on(session: &Path, roots: &[PathBuf]) -> io::Result<LiveLock> {
        let mut file = open(session)?;
        // Written before the lock is taken, so that every live session has it.
        let names: Vec<&[u8]> = roots.iter().map(|root| root.as_os_str().as_bytes()).collect();
        file.write_all(&names.join(&0))?;
        file.lock()?;
        Ok(LiveLock(file))
    }

    /// Take over the lock of a killed process. None if another process holds it, or the session has ended meanwhile.
    pub(super) fn take_over(session: &Path) -> io::Result<Option<LiveLock>> {
        let path = session.join("live");
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = match OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        // The process that held the lock may have ended the session and removed the file.
        let is_there = path
            .symlink_metadata()
            .is_ok_and(|meta| file.metadata().is_ok_and(|own| own.ino() == meta.ino()));
        Ok(is_there.then_some(LiveLock(file)))
    }

    /// Mark the session as ended.
    pub fn end(self, session: &Path) -> io::Result<()> {
        std::fs::remove_file(session.join("live"))
    }
}

impl Drop for LiveLock {
    fn drop(&mut self) {
        // Closing is not enough: a child between fork and exec still has the descriptor.
        let _ = self.0.unlock();
    }
}

/// Roots that a running session without a record will track; None if it stored none.
pub(super) fn roots(session: &Path) -> Option<Vec<PathBuf>> {
    let bytes = nono_snapshot::file::read(&session.join("live")).ok().filter(|bytes| !bytes.is_empty())?;
    Some(bytes.split(|byte| *byte == 0).map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
}

/// Whether a process runs this session now.
pub fn is_live(session: &Path) -> bool {
    // A planted link or FIFO is neither followed nor waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(session.join("live"));
    opened.and_then(|file| nono_sys::fs::is_locked(&file)).unwrap_or(false)
}
