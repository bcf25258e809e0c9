//! The scan: every directory of a root, every entry's stat, and the content of what changed since the last time.
//!
//! Parallel over directories. An unchanged file costs one `statx` and is not opened; its bytes in the last scan's
//! record are copied. An entry that cannot be captured is excluded by name; only errors of the store end a scan.

mod database;
mod directory;
mod measure;
mod names;
mod previous;
mod unfinished;

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use self::directory::Directory;
use self::unfinished::Unfinished;
use crate::cache::{Cache, CachedBytes};
use crate::dirs::{Dir, DirId, Dirs};
use crate::exclusion::{DirRules, Rules};
use crate::mapped::Mapped;
use crate::node::{Reason, Time, Xattr};
use crate::pool;
use crate::read::{self, ReadOptions, ReadOutcome};
use crate::scan_record::Links;
use crate::stat::FoundStat;
use crate::state::Observer;
use crate::store::{Appender, StoreError};
use crate::unlock::{OpenedUp, Unlock};

/// Input of a scan.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    pub(crate) dirs: &'a Dirs,
    pub(crate) rules: &'a Rules,
    pub(crate) cache: Option<&'a Cache>,
    /// Files changed at or after this time are read each time.
    pub(crate) session_start: Time,
    pub(crate) mapped: &'a Mapped,
    /// Directories of nono's own state: device and inode.
    pub(crate) own: &'a [((u32, u32), u64)],
    /// Tracked paths below this root, which are roots of their own.
    pub(crate) inner: &'a [Vec<u8>],
    /// Git repositories that changed each time they were read: excluded.
    pub(crate) unstable: &'a [Vec<u8>],
    pub(crate) mount: u64,
    pub(crate) cross_mounts: bool,
    /// Larger files are captured only by reflink.
    pub(crate) max_file: Option<u64>,
    /// Makes entries that are closed to their own owner readable; directories stay so for the time of the scan.
    pub(crate) unlock: Option<&'a OpenedUp<'a>>,
    pub(crate) limits: &'a Limiter,
    /// Read only files below one of these paths, relative to the root; `None` for all. Cached content is used anyway.
    pub(crate) only: Option<&'a [Vec<u8>]>,
}

/// Counts captured entries over all roots, and stops the scan beyond the limits.
#[derive(Debug)]
pub(crate) struct Limiter {
    pub(crate) max_entries: u64,
    pub(crate) max_bytes: u64,
    entries: AtomicU64,
    bytes: AtomicU64,
}

impl Limiter {
    /// `entries` and `bytes` are those counted before.
    pub(crate) fn new(max_entries: u64, max_bytes: u64, entries: u64, bytes: u64) -> Limiter {
        Limiter { max_entries, max_bytes, entries: AtomicU64::new(entries), bytes: AtomicU64::new(bytes) }
    }

    pub(crate) fn add(&self, entries: u64, bytes: u64) -> Result<()> {
        let entries = self.entries.fetch_add(entries, Ordering::Relaxed) + entries;
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if self.max_entries != 0 && entries > self.max_entries {
            return Err(ScanError::TooManyFiles { limit: self.max_entries });
        }
        if self.max_bytes != 0 && bytes > self.max_bytes {
            return Err(ScanError::TooManyBytes { limit: self.max_bytes });
        }
        Ok(())
    }

    pub(crate) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }
}

/// Result with [`ScanError`], unless another error is named.
pub(crate) type Result<T, E = ScanError> = std::result::Result<T, E>;

/// Reason why a scan ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScanError {
    #[error("more than {limit} files")]
    TooManyFiles { limit: u64 },
    #[error("more than {limit} bytes")]
    TooManyBytes { limit: u64 },
    #[error("cancelled")]
    Cancelled,
    #[error("cannot read the root: {0}")]
    Root(#[source] io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Scan result of one directory.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) id: DirId,
    pub(crate) rules: [u8; 32],
    pub(crate) entries: CachedBytes,
    pub(crate) omitted: Vec<u8>,
    pub(crate) xattrs: Vec<Xattr>,
    /// The directory in the last scan.
    pub(crate) old: Option<DirId>,
    /// Whether nothing in it differs from the last scan, as far as this listing shows.
    pub(crate) same: bool,
    /// Whether a file in it has several names.
    pub(crate) has_links: bool,
    /// Reason, if it belongs to what its parent excluded after all.
    pub(crate) left_out: Option<Reason>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanCounts {
    /// Number of regular files in the snapshot; `bytes` is their total size.
    pub files: u64,
    pub bytes: u64,
    pub directories: u64,
    /// Number of links, FIFOs, sockets and devices.
    pub others: u64,
    /// Number of files that had to be read, and their bytes; all others were cached.
    pub read: u64,
    pub read_bytes: u64,
}

impl std::ops::AddAssign for ScanCounts {
    fn add_assign(&mut self, other: ScanCounts) {
        self.files = self.files.wrapping_add(other.files);
        self.bytes = self.bytes.wrapping_add(other.bytes);
        self.directories += other.directories;
        self.others += other.others;
        self.read += other.read;
        self.read_bytes += other.read_bytes;
    }
}

/// An entry that an ignore rule excluded, for counting what the rules leave.
#[derive(Debug)]
pub(crate) struct Ignored {
    pub(crate) dir: DirId,
    pub(crate) name: Box<[u8]>,
    pub(crate) is_dir: bool,
}

/// Result of a scan, or of one thread's part of it.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    pub(crate) listings: Vec<Listing>,
    pub(crate) links: Links,
    pub(crate) counts: ScanCounts,
    pub(crate) ignored: Vec<Ignored>,
    /// Files that grew while they were read: directory, name and captured size.
    pub(crate) growing: Vec<(DirId, Box<[u8]>, u64)>,
}

impl Scanned {
    pub(crate) fn join(&mut self, mut part: Scanned) {
        self.listings.append(&mut part.listings);
        self.links.merge(part.links);
        self.counts += part.counts;
        self.ignored.append(&mut part.ignored);
        self.growing.append(&mut part.growing);
    }
}

/// State of one scanning thread.
#[derive(Debug)]
pub(crate) struct Worker<'s> {
    pub(crate) store: Appender<'s>,
    buffer: Vec<u8>,
    names: Vec<u8>,
    pub(crate) found: Scanned,
}

impl<'s> Worker<'s> {
    pub(crate) fn new(store: Appender<'s>) -> Worker<'s> {
        Worker { store, buffer: Vec::new(), names: Vec::new(), found: Scanned::default() }
    }

    /// Read one file into the store.
    pub(crate) fn read(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        found: &FoundStat,
        how: ReadOptions,
        unlock: &dyn Unlock,
    ) -> Result<ReadOutcome, StoreError> {
        let outcome = read::file(dir, name, found, how, unlock, &mut self.buffer, &mut self.store)?;
        // A file that is never captured must not make the stat cache look outdated each time.
        if !matches!(outcome, ReadOutcome::LeftOut(Reason::TooLarge { .. })) {
            self.found.counts.read += 1;
            self.found.counts.read_bytes += match &outcome {
                ReadOutcome::Content(content) => content.read,
                _ => found.stat.size,
            };
        }
        Ok(outcome)
    }
}

/// A unit of work.
#[derive(Debug)]
enum ScanTask {
    Dir(DirTask),
    Files(Arc<Unfinished>, std::ops::Range<usize>),
}

#[derive(Debug)]
struct DirTask {
    id: DirId,
    /// Parent and name; `None` for the root.
    place: Option<(Arc<Dir>, Box<[u8]>)>,
    /// Path of the parent, if it was needed: in each directory of a deep tree it would cost more than the scan.
    above: Option<Arc<Vec<u8>>>,
    inode: u64,
    old: Option<DirId>,
    rules: Option<Arc<DirRules>>,
    /// Reason for which the directory is excluded; only forced and tracked entries are captured from it.
    searching: Option<Reason>,
}

/// Scan a whole root. There is one thread per worker; the workers are returned with their results.
pub(crate) fn scan<'s>(
    scan: &Scan<'_>,
    workers: Vec<Worker<'s>>,
    root_inode: u64,
    observer: &dyn Observer,
) -> Result<Vec<Worker<'s>>> {
    let old = scan.cache.is_some().then_some(0);
    let root =
        DirTask { id: 0, place: None, above: None, inode: root_inode, old, rules: None, searching: None };
    let workers = pool::run(workers, vec![ScanTask::Dir(root)], |worker, task, queue| {
        if observer.cancelled() {
            return Err(ScanError::Cancelled);
        }
        match task {
            ScanTask::Dir(task) => Directory::scan(scan, worker, task, queue, observer),
            ScanTask::Files(unfinished, range) => unfinished.read(scan, worker, range),
        }
    })?;
    // The last task may have been a large file.
    if observer.cancelled() { Err(ScanError::Cancelled) } else { Ok(workers) }
}
