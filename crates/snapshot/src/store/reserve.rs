//! A file that only takes room, and is given up when a restore finds the disk full: the journal and the nodes of a safety
//! snapshot need some blocks before anything can be freed. It holds nothing, but takes room like any other file: a store
//! with a small limit has none.

use std::os::fd::AsFd as _;

use rustix::fs::FallocateFlags;

use super::{Store, StoreError};
use crate::disk;

pub(super) const NAME: &str = "reserve";
/// Enough for the nodes of some thousand directories.
pub(crate) const RESERVE: u64 = 1 << 20;
/// Smallest limit of a store that has one.
const SMALLEST_LIMIT: u64 = 64 << 20;

impl Store {
    /// Take the room, unless it is taken. A filesystem that is full or cannot reserve has none.
    pub(crate) fn keep_reserve(&self) -> Result<(), StoreError> {
        let limits = self.quota.iter().flat_map(|quota| [quota.total, quota.checkpoints]);
        let small = limits.filter(|limit| *limit > 0).any(|limit| limit < SMALLEST_LIMIT);
        if small || self.root.stat(NAME)?.is_some() {
            return Ok(());
        }
        let file = match self.root.create(NAME) {
            Ok(file) => file,
            Err(error) if error.io_kind() == Some(std::io::ErrorKind::AlreadyExists) => return Ok(()),
            Err(error) => return Err(error),
        };
        let taken = disk::step().is_ok()
            && rustix::fs::fallocate(file.as_fd(), FallocateFlags::KEEP_SIZE, 0, RESERVE).is_ok();
        if taken { self.charge(RESERVE) } else { self.root.unlink(NAME) }
    }

    /// Give the room back to the filesystem.
    pub(crate) fn release_reserve(&self) -> Result<(), StoreError> {
        self.root.unlink(NAME)
    }

    /// How many bytes its filesystem has left for this user.
    pub(crate) fn free_space(&self) -> Result<u64, StoreError> {
        let stat = rustix::fs::fstatvfs(self.root.as_fd());
        let stat = stat.map_err(|errno| super::files::failed("look at", self.dir())(errno.into()))?;
        // Some blocks are root's alone.
        let blocks = if rustix::process::geteuid().is_root() { stat.f_bfree } else { stat.f_bavail };
        Ok(blocks.saturating_mul(stat.f_frsize))
    }

    /// The device that it is on.
    pub(crate) fn device(&self) -> Result<(u32, u32), StoreError> {
        let device = self.root.own_stat()?.st_dev;
        Ok((rustix::fs::major(device), rustix::fs::minor(device)))
    }
}
