//! How much a directory holds, and whether anything in it changed, without taking any of it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};

use super::names::list;
use crate::node::Stamp;
use crate::stat::{Stat, stat_at};

/// Whether the files in the directory `name` have more bytes than `limit`.
pub(super) fn is_larger(dir: BorrowedFd<'_>, name: &[u8], limit: u64) -> bool {
    let mut bytes = 0u64;
    each(dir, name, |stat| {
        // As far as it takes room: holes do not.
        bytes = bytes.saturating_add(if stat.is_file() { stat.size.min(stat.blocks * 512) } else { 0 });
        bytes <= limit
    });
    bytes > limit
}

/// Make the stamp of a directory one of everything in it: the bytes of all files, the latest times.
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

/// Everything below the directory `name`, until `visit` has seen enough. What cannot be looked into is passed over. Only
/// one directory is open at a time; none is reached through a link, or on another filesystem.
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
pub(super) fn begins_with(dir: BorrowedFd<'_>, path: &[u8], bytes: &[u8]) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // Most directories have none: one call says so.
    if !stat_at(dir, path).is_ok_and(|found| found.stat.is_file()) {
        return false;
    }
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let Ok(file) = rustix::fs::openat2(dir, path, flags, Mode::empty(), resolve) else { return false };
    let mut start = vec![0; bytes.len()];
    let read = rustix::io::pread(&file, &mut start, 0);
    read.is_ok_and(|read| read == bytes.len()) && start == bytes
}
