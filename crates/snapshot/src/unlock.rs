//! Opening up what is closed to its own owner. Only a restore does this, to capture what it is about to put back:
//! a command may have taken away the permissions of its files, and their owner can give them back. The mode returns to
//! what it was when the guard goes.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno as Os;

use crate::disk;
use crate::stat::stat_fd;

/// A file or directory with more permissions than it has.
#[derive(Debug)]
#[must_use = "the permissions go with it"]
pub(crate) struct Unlocked {
    fd: OwnedFd,
    mode: Mode,
}

impl Unlocked {
    /// Add `bits` to the permissions of `name` in `dir`, if it is ours and lacks them; never through a link.
    pub(crate) fn add(dir: BorrowedFd<'_>, name: &[u8], bits: u32) -> io::Result<Option<Unlocked>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(dir, name, flags, Mode::empty())?;
        let stat = stat_fd(std::os::fd::AsFd::as_fd(&fd))?.stat;
        let ours = stat.uid == rustix::process::geteuid().as_raw();
        if !ours || stat.mode & bits == bits || !(stat.is_dir() || stat.is_file()) {
            return Ok(None);
        }
        disk::step()?;
        set(&fd, Mode::from_raw_mode(stat.mode & 0o7777 | bits))?;
        Ok(Some(Unlocked { fd, mode: Mode::from_raw_mode(stat.mode & 0o7777) }))
    }
}

impl Drop for Unlocked {
    fn drop(&mut self) {
        // Whoever unlocked it may lock it again; a file that is gone meanwhile needs nothing.
        let _ = set(&self.fd, self.mode);
    }
}

/// The descriptor names a place without being open, so its mode is set by way of `/proc`.
fn set(fd: &OwnedFd, mode: Mode) -> Result<(), Os> {
    rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), mode)
}
