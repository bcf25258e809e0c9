//! File status from the kernel, packed so that two of them can be compared as bytes.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, FileType, StatxFlags};

use crate::node::{Reason, Stamp, Time};

/// Size of a packed [`Stat`].
pub(crate) const PACKED: usize = 56;

/// All attributes that change when a file's content or attributes do. `ctime` is the one that no process can set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) ino: u64,
    pub(crate) size: u64,
    pub(crate) mtime: Time,
    pub(crate) ctime: Time,
    /// Kind and permission bits.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) nlink: u32,
    pub(crate) blocks: u64,
}

/// A [`Stat`], and where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundStat {
    pub(crate) stat: Stat,
    pub(crate) dev: (u32, u32),
    pub(crate) rdev: u64,
    pub(crate) mount: u64,
}

impl Stat {
    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    pub(crate) fn is_file(&self) -> bool {
        self.kind() == FileType::RegularFile
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.kind() == FileType::Directory
    }

    /// Stamp of an entry excluded for this reason. `None` for build output, which changes all the time, and for nono's
    /// own state, other roots and other filesystems, whose changes are no loss.
    pub(crate) fn stamp(&self, reason: &Reason) -> Option<Stamp> {
        let untold = matches!(
            reason,
            Reason::Artifact(_)
                | Reason::OwnState
                | Reason::OtherRoot
                | Reason::OtherFilesystem
                | Reason::RestoreTemp
        );
        let size = if self.is_dir() { 0 } else { self.size };
        (!untold).then_some(Stamp { size, mtime: self.mtime, ctime: self.ctime })
    }

    /// The 12 permission bits.
    pub(crate) fn permissions(&self) -> u16 {
        u16::try_from(self.mode & 0o7777).unwrap_or(0)
    }

    /// Pack it for comparison. The link count, size and blocks of a directory are left out: they say nothing about it.
    pub(crate) fn pack(&self) -> [u8; PACKED] {
        let dir = self.is_dir();
        let mut out = [0; PACKED];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&self.ino.to_le_bytes());
        put(&if dir { 0 } else { self.size }.to_le_bytes());
        put(&self.mtime.seconds.to_le_bytes());
        put(&self.mtime.nanos.to_le_bytes());
        put(&self.ctime.seconds.to_le_bytes());
        put(&self.ctime.nanos.to_le_bytes());
        put(&self.mode.to_le_bytes());
        put(&self.uid.to_le_bytes());
        put(&self.gid.to_le_bytes());
        put(&if dir { 0 } else { self.nlink }.to_le_bytes());
        out
    }

    pub(crate) fn unpack(bytes: &[u8; PACKED]) -> Stat {
        let long = |at: usize| u64::from_le_bytes(part(bytes, at));
        let word = |at: usize| u32::from_le_bytes(part(bytes, at));
        let time = |at: usize| Time { seconds: long(at).cast_signed(), nanos: word(at + 8) };
        Stat {
            ino: long(0),
            size: long(8),
            mtime: time(16),
            ctime: time(28),
            mode: word(40),
            uid: word(44),
            gid: word(48),
            nlink: word(52),
            blocks: 0,
        }
    }
}

fn part<const N: usize>(bytes: &[u8; PACKED], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}

/// Stat `name` in `dir`, never through a link.
pub(crate) fn stat_at(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<FoundStat> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    Ok(found(&rustix::fs::statx(dir, name, flags, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)?))
}

/// Stat an open file.
pub(crate) fn stat_fd(file: BorrowedFd<'_>) -> io::Result<FoundStat> {
    let asked = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    Ok(found(&rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, asked)?))
}

fn found(statx: &rustix::fs::Statx) -> FoundStat {
    let time = |time: &rustix::fs::StatxTimestamp| Time { seconds: time.tv_sec, nanos: time.tv_nsec };
    FoundStat {
        stat: Stat {
            ino: statx.stx_ino,
            size: statx.stx_size,
            mtime: time(&statx.stx_mtime),
            ctime: time(&statx.stx_ctime),
            mode: u32::from(statx.stx_mode),
            uid: statx.stx_uid,
            gid: statx.stx_gid,
            nlink: statx.stx_nlink,
            blocks: statx.stx_blocks,
        },
        dev: (statx.stx_dev_major, statx.stx_dev_minor),
        rdev: rustix::fs::makedev(statx.stx_rdev_major, statx.stx_rdev_minor),
        mount: statx.stx_mnt_id,
    }
}
