//! Reserved disk space, so that a command that fills the disk cannot stop its audit log.
//!
//! The log itself has allocated blocks behind its end. A separate file is removed just before the log is closed: its
//! blocks are then free for the record of the session and the entry in the ledger.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::files;

/// Space allocated behind the log's end while the disk has room.
pub(crate) const AHEAD: u64 = 256 << 10;
/// Size of the reserve file: the largest record of a session, and more.
const CLOSING: u64 = 512 << 10;
const NAME: &str = "reserve";

/// Allocated blocks behind the end of a file.
#[derive(Debug)]
pub(crate) struct AllocatedAhead {
    /// End of the allocated blocks; `None` if the file system cannot allocate any.
    until: Option<u64>,
}

impl AllocatedAhead {
    pub(crate) fn new() -> AllocatedAhead {
        AllocatedAhead { until: Some(0) }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.until.is_some()
    }

    /// Notes that the file was truncated at `end`, which freed the blocks behind it.
    pub(crate) fn lost(&mut self, end: u64) {
        self.until = self.until.map(|_| end);
    }

    /// Allocates at least `need` bytes behind `end`, and more if the disk has room. After a failure each call tries
    /// again.
    pub(crate) fn ensure(&mut self, file: &File, end: u64, need: u64) -> io::Result<()> {
        let Some(until) = self.until else { return Ok(()) };
        if until >= end + need + AHEAD {
            return Ok(());
        }
        for target in [end + need + 2 * AHEAD, end + need + AHEAD, end + need] {
            if target <= until {
                return Ok(());
            }
            match allocate(file, FallocateFlags::KEEP_SIZE, until, target - until) {
                Ok(true) => {
                    self.until = Some(target);
                    return Ok(());
                }
                Ok(false) => {
                    self.until = None;
                    return Ok(());
                }
                // A smaller piece may still fit.
                Err(Errno::NOSPC | Errno::DQUOT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::NOSPC.into())
    }
}

/// Allocates blocks; `false` if the file system does not support it.
fn allocate(file: &File, flags: FallocateFlags, from: u64, length: u64) -> Result<bool, Errno> {
    loop {
        match rustix::fs::fallocate(file, flags, from, length) {
            Ok(()) => return Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reserve file beside the log.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    pub(crate) fn create(dir: &Path) -> io::Result<Reserve> {
        use std::io::Write;
        let path = dir.join(NAME);
        let mut file = files::create(&path)?;
        if !allocate(&file, FallocateFlags::empty(), 0, CLOSING)? {
            // Written blocks are allocated too, unless the file system compresses them.
            for _ in 0..CLOSING / 4096 {
                file.write_all(&[0xa5; 4096])?;
            }
            file.sync_all()?;
        }
        Ok(Reserve { path })
    }

    /// Reserve file of a log in `dir`, existing or not.
    pub(crate) fn of(dir: &Path) -> Reserve {
        Reserve { path: dir.join(NAME) }
    }

    /// Frees the blocks.
    pub(crate) fn release(&self) -> io::Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }
}
