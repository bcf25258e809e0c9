//! The filesystem of a root, and whether its file times can be trusted.

use std::os::fd::OwnedFd;

const TMPFS: u32 = 0x0102_1994;

/// A filesystem, and whether its `ctime` is known to change with every change of a file.
pub(super) struct Filesystem {
    pub(super) id: [u8; 8],
    pub(super) trusted: bool,
    /// Whether dirty pages of a mapping are written back after a while.
    pub(super) writes_back: bool,
}

impl Filesystem {
    /// ext2/3/4, xfs, btrfs, tmpfs, overlay.
    const TRUSTED: [u32; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, TMPFS, 0x794c_7630];

    pub(super) fn of(fd: &OwnedFd) -> Filesystem {
        let id = rustix::fs::fstatvfs(fd).map_or(0, |stat| stat.f_fsid);
        let kind = rustix::fs::fstatfs(fd).ok().and_then(|stat| u32::try_from(stat.f_type).ok());
        Filesystem {
            id: id.to_le_bytes(),
            writes_back: kind.is_some_and(|kind| kind != TMPFS),
            trusted: kind.is_some_and(|kind| Filesystem::TRUSTED.contains(&kind)),
        }
    }
}
