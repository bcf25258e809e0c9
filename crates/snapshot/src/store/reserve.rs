//! A file that only takes up space, and is released when a restore finds the disk full: the journal and the nodes of a
//! safety snapshot need some blocks before anything can be freed. A store with a small limit has none, since it counts
//! like any other file.

use std::os::fd::AsFd as _;

use rustix::fs::FallocateFlags;

use super::error::Result;
use super::handle::Store;
use crate::disk;

pub(super) const NAME: &str = "reserve";
/// Size of the reserve: enough for the nodes of some thousand directories.
pub(crate) const RESERVE: u64 = 1 << 20;
/// Minimum limit of a store that keeps a reserve.
const SMALLEST_LIMIT: u64 = 64 << 20;
/// Free space that settling leaves to others.
const LEFT_FREE: u64 = 2 * RESERVE;

impl Store {
    /// Allocate the reserve, unless it exists. Does nothing on a filesystem that is full or cannot preallocate.
    pub(crate) fn keep_reserve(&self) -> Result<()> {
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

    /// Release the reserve to the filesystem.
    pub(crate) fn release_reserve(&self) -> Result<()> {
        self.root.unlink(NAME)
    }

    /// Free bytes on its filesystem for this user.
    pub(crate) fn free_space(&self) -> Result<u64> {
        let stat = rustix::fs::fstatvfs(self.root.as_fd());
        let stat = stat.map_err(|errno| super::files::failed("look at", self.dir())(errno.into()))?;
        // Some blocks are reserved for root.
        let blocks = if rustix::process::geteuid().is_root() { stat.f_bfree } else { stat.f_bavail };
        Ok(blocks.saturating_mul(stat.f_frsize))
    }

    /// Whether settling would take the last free space.
    pub(crate) fn is_disk_full(&self) -> bool {
        self.free_space().is_ok_and(|free| free < LEFT_FREE)
    }

    /// Device of the store.
    pub(crate) fn device(&self) -> Result<(u32, u32)> {
        let device = self.root.own_stat()?.st_dev;
        Ok((rustix::fs::major(device), rustix::fs::minor(device)))
    }
}
