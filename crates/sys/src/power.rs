//! Simulated power failure: cuts a file system off from its disk at once. For tests: built only with the feature
//! `failpoints`. Needs root and a file system that supports it (ext4, xfs); never use it on one that anything else
//! needs.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Request `FS_IOC_SHUTDOWN`, `_IOR('X', 125, __u32)`.
const SHUTDOWN: u64 = 0x8004_587d;

/// Part of the unsynced changes that reaches the disk. A real disk may do either, at any moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostWrites {
    /// Names and sizes, without the data that was not written yet: new files are empty.
    Names,
    /// No change at all.
    Nothing,
}

/// Shuts down the file system that `path` is on. From here on every access to it fails, until it is mounted again.
pub fn cut(path: &Path, what: LostWrites) -> io::Result<()> {
    let file = File::open(path)?;
    let flag: u32 = match what {
        LostWrites::Names => 1,
        LostWrites::Nothing => 2,
    };
    // SAFETY: the kernel reads the four bytes of `flag` during the call and nothing else.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), SHUTDOWN as _, &raw const flag) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
