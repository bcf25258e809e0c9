//! Whether a session's process is still there: it holds a lock that the kernel takes back with its last breath.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

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

/// Whether somebody runs this session now.
pub fn is_live(session: &Path) -> bool {
    // What somebody else put there is neither followed nor waited for.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(session.join("live"));
    let Ok(file) = opened else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}
