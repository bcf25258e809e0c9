//! Looks around a name in a directory without capturing: evidence of artifacts, sizes of directories, stamps.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};

use super::names::{Names, list};
use crate::exclusion::Evidence;
use crate::node::Stamp;
use crate::stat::{Stat, stat_at};

/// Surroundings of a name in a directory.
pub(super) struct InDirectory<'a> {
    pub(super) fd: BorrowedFd<'a>,
    pub(super) names: &'a Names,
}

impl Evidence for InDirectory<'_> {
    fn is_filled(&self, path: &[u8]) -> bool {
        let may_be = path.contains(&b'/') || self.names.contains(path);
        may_be && stat_at(self.fd, path).is_ok_and(|found| !found.stat.is_file() || found.stat.size > 0)
    }

    fn any_ends_with(&self, end: &[u8]) -> bool {
        self.names.iter().any(|name| name.ends_with(end))
    }

    fn is_empty(&self, name: &[u8]) -> bool {
        is_empty(self.fd, name)
    }

    fn begins_with(&self, path: &[u8], bytes: &[u8]) -> bool {
        begins_with(self.fd, path, bytes)
    }

    fn is_larger(&self, name: &[u8], limit: u64) -> bool {
        is_larger(self.fd, name, limit)
    }
}

/// Whether the files in the directory `name` have more bytes than `limit`.
fn is_larger(dir: BorrowedFd<'_>, name: &[u8], limit: u64) -> bool {
    let mut bytes = 0u64;
    each(dir, name, |stat| {
        // Allocated size: holes do not count.
        bytes = bytes.saturating_add(if stat.is_file() { stat.size.min(stat.blocks * 512) } else { 0 });
        bytes <= limit
    });
    bytes > limit
}

/// Whether the directory `name` is empty; false if it cannot be read.
pub(super) fn is_empty(dir: BorrowedFd<'_>, name: &[u8]) -> bool {
    let Ok(fd) = open(dir, name) else { return false };
    list(fd.as_fd(), &mut Vec::new()).is_ok_and(|names| names.iter().next().is_none())
}

/// Extend the stamp of a directory to its content: the bytes of all files, the latest times.
pub(super) fn stamp(dir: BorrowedFd<'_>, name: &[u8], stamp: &mut Stamp) {
    each(dir, name, |stat| {
        if stat.is_file() {
            stamp.size = stamp.size.saturating_add(stat.size);
        }
        stamp.mtime = stamp.mtime.max(stat.mtime);
        stamp.ctime = stamp.ctime.max(stat.ctime);
        true
    });
}

/// Visit everything below the directory `name`, until `visit` returns false. Unreadable directories are skipped. Only
/// one directory is open at a time; links are not followed, and other filesystems not entered.
fn each(dir: BorrowedFd<'_>, name: &[u8], mut visit: impl FnMut(&Stat) -> bool) {
    let mut buffer = Vec::new();
    let mut waiting = vec![name.to_vec()];
    while let Some(path) = waiting.pop() {
        let Ok(fd) = open(dir, &path) else { continue };
        let Ok(names) = list(fd.as_fd(), &mut buffer) else { continue };
        for name in names.iter() {
            let Ok(found) = stat_at(fd.as_fd(), name) else { continue };
            if !visit(&found.stat) {
                return;
            }
            if found.stat.is_dir() {
                waiting.push([&path[..], name].join(&b'/'));
            }
        }
    }
}

fn open(dir: BorrowedFd<'_>, path: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    Ok(rustix::fs::openat2(dir, path, flags, Mode::empty(), resolve)?)
}

/// Whether the regular file at `path` begins with these bytes.
fn begins_with(dir: BorrowedFd<'_>, path: &[u8], bytes: &[u8]) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // Most directories have no such file: one call shows that.
    if !stat_at(dir, path).is_ok_and(|found| found.stat.is_file()) {
        return false;
    }
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let Ok(file) = rustix::fs::openat2(dir, path, flags, Mode::empty(), resolve) else { return false };
    let mut start = vec![0; bytes.len()];
    let read = rustix::io::pread(&file, &mut start, 0);
    read.is_ok_and(|read| read == bytes.len()) && start == bytes
}
