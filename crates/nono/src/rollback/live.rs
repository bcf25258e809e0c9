//! Whether a session's process is still there: it holds a lock that the kernel takes back with its last breath.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Held by a running session on its own folder.
#[derive(Debug)]
#[must_use]
pub struct Live(File);

fn open(session: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.open(session.join("live"))
}

impl Live {
    /// Mark the session as running until this value, or the process, is gone.
    pub fn begin(session: &Path) -> io::Result<Live> {
        let file = open(session)?;
        file.lock()?;
        Ok(Live(file))
    }

    /// The same, with what the session will track: known before its first snapshot is taken, so that restores elsewhere
    /// need not wait for that.
    pub fn begin_on(session: &Path, roots: &[PathBuf]) -> io::Result<Live> {
        let mut file = open(session)?;
        // Before the lock: one that is live has it.
        let names: Vec<&[u8]> = roots.iter().map(|root| root.as_os_str().as_bytes()).collect();
        file.write_all(&names.join(&0))?;
        file.lock()?;
        Ok(Live(file))
    }

    /// Take the place of a process that was killed; none where somebody else has it, or the session has ended meanwhile.
    pub(super) fn take_over(session: &Path) -> io::Result<Option<Live>> {
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
        // Whoever had it before may have removed it when it ended the session.
        let is_there = path
            .symlink_metadata()
            .is_ok_and(|meta| file.metadata().is_ok_and(|own| own.ino() == meta.ino()));
        Ok(is_there.then_some(Live(file)))
    }

    /// The session has ended.
    pub fn end(self, session: &Path) -> io::Result<()> {
        std::fs::remove_file(session.join("live"))
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Closing is not enough: a process that is just being forked has the descriptor until it executes.
        let _ = self.0.unlock();
    }
}

/// What a running session without a record yet will track; nothing where it did not say.
pub(super) fn roots(session: &Path) -> Option<Vec<PathBuf>> {
    let bytes = nono_snapshot::file::read(&session.join("live")).ok().filter(|bytes| !bytes.is_empty())?;
    Some(bytes.split(|byte| *byte == 0).map(|name| PathBuf::from(OsStr::from_bytes(name))).collect())
}

/// Whether somebody runs this session now.
pub fn is_live(session: &Path) -> bool {
    // What somebody else put there is neither followed nor waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(session.join("live"));
    let Ok(file) = opened else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}
