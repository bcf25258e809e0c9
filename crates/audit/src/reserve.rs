//! Space put aside, so that a command that fills the disk does not silence the log of what it does.
//!
//! The log itself has blocks ahead of its end. Beside it lies a file that is removed just before the log is closed: its
//! blocks become the record of the session and the line in the ledger.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::files;

/// Ahead of the log's end, as long as the disk has room.
pub(crate) const AHEAD: u64 = 256 << 10;
/// The largest record of a session, with room to spare.
const CLOSING: u64 = 512 << 10;
const NAME: &str = "reserve";

/// Blocks ahead of the end of a file.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// Where they end; none where the file system cannot promise any.
    until: Option<u64>,
}

impl Ahead {
    pub(crate) fn new() -> Ahead {
        Ahead { until: Some(0) }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.until.is_some()
    }

    /// The file was cut at its end, and the blocks behind it went with that.
    pub(crate) fn lost(&mut self, end: u64) {
        self.until = self.until.map(|_| end);
    }

    /// Make sure of `need` bytes behind `end`. More is put aside when there is room, and the disk is asked again each time
    /// when there was none.
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

/// False where the file system cannot do it.
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

/// The file beside the log.
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
            // Blocks that were written are there too, where nothing compresses them away.
            for _ in 0..CLOSING / 4096 {
                file.write_all(&[0xa5; 4096])?;
            }
            file.sync_all()?;
        }
        Ok(Reserve { path })
    }

    /// The one that a log's writer made, there or not.
    pub(crate) fn of(dir: &Path) -> Reserve {
        Reserve { path: dir.join(NAME) }
    }

    /// Give the blocks back.
    pub(crate) fn release(&self) -> io::Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }
}
