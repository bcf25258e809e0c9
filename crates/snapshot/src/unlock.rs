//! Opening up what is closed to its own owner. Only a restore does this, to capture what it is about to put back:
//! a command may have taken away the permissions of its files, and their owner can give them back. The mode returns to
//! what it was when the guard goes.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno as Os;

use crate::dirs::{DirId, Dirs};
use crate::disk;
use crate::stat::stat_fd;

/// A file or directory with more permissions than it has.
#[derive(Debug)]
#[must_use = "the permissions go with it"]
pub(crate) struct Unlocked {
    fd: OwnedFd,
    mode: Mode,
    stays: bool,
}

/// The directories of a scan that are open to their owner until it ends. They are remembered by their place, not by a
/// descriptor: there may be more of them than files can be open.
#[derive(Debug)]
pub(crate) struct OpenedUp<'a> {
    dirs: &'a Dirs,
    modes: Mutex<Vec<(DirId, u64, Mode)>>,
}

impl<'a> OpenedUp<'a> {
    pub(crate) fn new(dirs: &'a Dirs) -> OpenedUp<'a> {
        OpenedUp { dirs, modes: Mutex::default() }
    }

    /// Open up the directory `name` in `parent`, which is the scan's directory `id`, if it has to be.
    pub(crate) fn add(&self, id: DirId, parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
        let Some(unlocked) = Unlocked::add(parent, name, 0o500)? else { return Ok(()) };
        let inode = crate::dirs::inode_of(unlocked.fd.as_fd())?.ino;
        let mode = unlocked.leave_open();
        self.modes.lock().unwrap_or_else(PoisonError::into_inner).push((id, inode, mode));
        Ok(())
    }
}

impl Drop for OpenedUp<'_> {
    fn drop(&mut self) {
        let modes = self.modes.get_mut().unwrap_or_else(PoisonError::into_inner);
        // Each after what is in it: behind a closed directory nothing can be reached.
        modes.sort_unstable_by_key(|(id, ..)| std::cmp::Reverse(*id));
        for (id, inode, mode) in modes {
            // Whoever unlocked it may lock it again; a directory that is gone meanwhile needs nothing.
            let fd = self.dirs.reopen(*id).ok();
            let same =
                |fd: &OwnedFd| crate::dirs::inode_of(fd.as_fd()).is_ok_and(|found| found.ino == *inode);
            if let Some(fd) = fd.filter(same) {
                let _ = rustix::fs::fchmod(&fd, *mode);
            }
        }
    }
}

impl Unlocked {
    /// It stays open; what its mode was.
    fn leave_open(mut self) -> Mode {
        self.stays = true;
        self.mode
    }

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
        Ok(Some(Unlocked { fd, mode: Mode::from_raw_mode(stat.mode & 0o7777), stays: false }))
    }
}

impl Drop for Unlocked {
    fn drop(&mut self) {
        // Whoever unlocked it may lock it again; a file that is gone meanwhile needs nothing.
        if !self.stays {
            let _ = set(&self.fd, self.mode);
        }
    }
}

/// The descriptor names a place without being open, so its mode is set by way of `/proc`.
fn set(fd: &OwnedFd, mode: Mode) -> Result<(), Os> {
    rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), mode)
}
