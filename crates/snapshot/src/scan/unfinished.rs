//! A directory whose changed files are being read, by one task or by several.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::database::{ATTEMPTS, PAUSE, has_company, is_database};
use super::{Listing, Result, Scan, ScanError, Worker};
use crate::bytes::Writer;
use crate::cache::{Cache, CachedBytes};
use crate::dirs::Dir;
use crate::node::{Name, Omitted, Reason};
use crate::pool::locked;
use crate::read::{Moment, ReadOptions, ReadOutcome, unreadable};
use crate::scan_record::{self, Payload, SPARSE, TRUSTED};
use crate::stat::{FoundStat, stat_at};
use crate::units::database_reason;
use crate::unlock::ScannedFile;

/// Number of files of one directory read by one task.
const FILES_PER_TASK: usize = 256;
/// Number of times that an entry replaced meanwhile is looked at again.
const LOOKS: u32 = 4;

/// A directory of a scan, open.
#[derive(Clone, Copy)]
pub(super) struct ScanDir<'a> {
    pub(super) scan: &'a Scan<'a>,
    pub(super) dir: &'a Dir,
    pub(super) fd: BorrowedFd<'a>,
}

/// A directory whose changed files are being read.
#[derive(Debug)]
pub(super) struct Unfinished {
    dir: Arc<Dir>,
    listing: Mutex<Option<Draft>>,
    dirty: Vec<Dirty>,
    results: Mutex<Vec<DirtyRead>>,
    pending: AtomicUsize,
}

/// A listing with gaps where changed files belong.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) listing: Listing,
    pub(super) omitted: Vec<Omitted>,
    pub(super) old_omitted: Option<Vec<u8>>,
}

/// A file to be read.
#[derive(Debug)]
pub(super) struct Dirty {
    pub(super) name: Box<[u8]>,
    pub(super) found: FoundStat,
    pub(super) flags: u8,
    pub(super) how: ReadOptions,
    /// Its index in the listing.
    pub(super) at: usize,
    /// Its bytes in the last scan's record.
    pub(super) old: Option<Box<[u8]>>,
    /// Whether it belongs to a database, which captures it with its other files.
    pub(super) of_database: bool,
    /// Whether the stat in `old` shows if it is still valid.
    pub(super) trusted: bool,
}

/// Result for a file, by its index in `dirty`.
pub(super) type DirtyRead = (usize, DirtyFile);

#[derive(Debug)]
pub(super) enum DirtyFile {
    Entry(Vec<u8>),
    LeftOut(Reason),
    Gone,
}

impl Unfinished {
    /// `results`: those for the files of databases.
    pub(super) fn new(dir: Arc<Dir>, draft: Draft, dirty: Vec<Dirty>, results: Vec<DirtyRead>) -> Unfinished {
        let tasks = dirty.len().div_ceil(FILES_PER_TASK).max(1);
        Unfinished {
            dir,
            listing: Mutex::new(Some(draft)),
            dirty,
            results: Mutex::new(results),
            pending: AtomicUsize::new(tasks),
        }
    }

    /// Parts of the work, each for one call of [`Unfinished::read`].
    pub(super) fn parts(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let files = self.dirty.len();
        let parts = files.div_ceil(FILES_PER_TASK).max(1);
        (0..parts).map(move |part| part * FILES_PER_TASK..files.min((part + 1) * FILES_PER_TASK))
    }

    /// Read some of the files; the last caller completes the listing.
    pub(super) fn read(&self, scan: &Scan<'_>, worker: &mut Worker<'_>, range: Range<usize>) -> Result<()> {
        let mut results = Vec::with_capacity(range.len());
        if !range.is_empty() {
            let fd = scan.dirs.fd(&self.dir).map_err(ScanError::Root)?;
            let dirty = self.dirty.iter().enumerate().take(range.end).skip(range.start);
            for (at, dirty) in dirty.filter(|(_, dirty)| !dirty.of_database) {
                let taken =
                    dirty.take_as(dirty.found, ScanDir { scan, dir: &self.dir, fd: fd.as_fd() }, worker)?;
                dirty.count(&taken, worker);
                results.push((at, taken));
            }
        }
        locked(&self.results).append(&mut results);
        if self.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            let draft = locked(&self.listing).take();
            let mut results = std::mem::take(&mut *locked(&self.results));
            results.sort_unstable_by_key(|(at, _)| *at);
            let listing = draft.map(|draft| draft.complete(&self.dirty, results));
            worker.found.listings.extend(listing.map(|listing| listing.sharing(scan.cache)));
        }
        Ok(())
    }
}

impl Draft {
    fn complete(mut self, dirty: &[Dirty], results: Vec<DirtyRead>) -> Listing {
        let mut listing = self.listing;
        if !results.is_empty() {
            let gaps = listing.entries;
            let taken =
                |(_, taken): &DirtyRead| if let DirtyFile::Entry(bytes) = taken { bytes.len() } else { 0 };
            let mut entries = Vec::with_capacity(gaps.len() + results.iter().map(taken).sum::<usize>());
            let mut done = 0;
            for ((_, taken), dirty) in results.into_iter().zip(dirty) {
                entries.extend_from_slice(&gaps[done..dirty.at]);
                done = dirty.at;
                match taken {
                    DirtyFile::Entry(bytes) => {
                        let same =
                            dirty.old.as_ref().is_some_and(|old| is_same_entry(old, &bytes, &dirty.name));
                        listing.same &= same;
                        entries.extend_from_slice(&bytes);
                    }
                    // The comparison of excluded entries shows whether that is new.
                    DirtyFile::LeftOut(reason) => {
                        let name = Name::new(&dirty.name);
                        let stamp = dirty.found.stat.stamp(&reason);
                        self.omitted.extend(name.map(|name| Omitted { name, is_dir: false, reason, stamp }));
                    }
                    DirtyFile::Gone => listing.same = false,
                }
            }
            entries.extend_from_slice(&gaps[done..]);
            listing.entries = CachedBytes::Own(entries);
            self.omitted.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        }
        listing.omitted = scan_record::put_omitted(&self.omitted);
        listing.same &= self.old_omitted.is_some_and(|old| old == listing.omitted);
        listing
    }
}

impl Listing {
    /// Share bytes that equal the last scan's with the cache.
    fn sharing(mut self, cache: Option<&Cache>) -> Listing {
        let old = self.old.and_then(|id| cache?.entries(id)).filter(|old| **old == *self.entries);
        match (old, &mut self.entries) {
            (Some(old), entries) => *entries = old,
            (None, CachedBytes::Own(bytes)) => bytes.shrink_to_fit(),
            (None, CachedBytes::Shared { .. }) => {}
        }
        self
    }
}

/// Whether two encodings give the same node entry: only the trust flag may differ.
pub(super) fn is_same_entry(old: &[u8], new: &[u8], name: &[u8]) -> bool {
    // The flags follow the name and its length.
    let at = new.len().min(old.len()).min(name.len() + if name.len() < 0x80 { 1 } else { 2 });
    let (Some((old_flags, old_rest)), Some((new_flags, new_rest))) =
        (old[at..].split_first(), new[at..].split_first())
    else {
        return false;
    };
    old[..at] == new[..at] && old_flags | TRUSTED == new_flags | TRUSTED && old_rest == new_rest
}

impl DirtyFile {
    /// Whether two results are the same: only the trust flag may differ.
    pub(super) fn is_same(&self, other: &DirtyFile, name: &[u8]) -> bool {
        match (self, other) {
            (DirtyFile::Entry(one), DirtyFile::Entry(other)) => is_same_entry(one, other, name),
            (DirtyFile::LeftOut(one), DirtyFile::LeftOut(other)) => one == other,
            (DirtyFile::Gone, DirtyFile::Gone) => true,
            _ => false,
        }
    }
}

impl Dirty {
    /// Correct the counts for a file that was counted as captured and is not.
    pub(super) fn count(&self, taken: &DirtyFile, worker: &mut Worker<'_>) {
        if !matches!(taken, DirtyFile::Entry(_)) {
            // Another thread may have counted it: only the sums over all threads are valid.
            worker.found.counts.files = worker.found.counts.files.wrapping_sub(1);
            worker.found.counts.bytes = worker.found.counts.bytes.wrapping_sub(self.found.stat.size);
        }
    }

    /// Capture an entry in its current state, which may have changed since the directory was listed.
    pub(super) fn take_now(&self, at: ScanDir<'_>, worker: &mut Worker<'_>) -> Result<DirtyFile> {
        let found = match stat_at(at.fd, &self.name) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(DirtyFile::Gone),
            Err(error) => return Ok(DirtyFile::LeftOut(unreadable(&error))),
        };
        if let Some(old) = self.old.as_ref().filter(|_| self.trusted && found == self.found) {
            return Ok(DirtyFile::Entry(old.to_vec()));
        }
        self.take_as(found, at, worker)
    }

    fn take_as(&self, mut found: FoundStat, at: ScanDir<'_>, worker: &mut Worker<'_>) -> Result<DirtyFile> {
        let ScanDir { scan, dir: place, fd: dir } = at;
        let unlock = ScannedFile { scan: scan.unlock, dir: place.id, parent: dir, name: &self.name };
        let mut database = false;
        for look in 0..ATTEMPTS {
            if look >= LOOKS && !database {
                break;
            }
            if database {
                std::thread::sleep(PAUSE * look);
            }
            database = false;
            match worker.read(dir, &self.name, &found, self.how, &unlock)? {
                // A database that was idle when the directory was listed, and is not now.
                ReadOutcome::Content(content)
                    if content.database && !self.of_database && has_company(dir, &self.name) =>
                {
                    database = true;
                    found.stat = content.stat;
                }
                ReadOutcome::LeftOut(Reason::Unstable)
                    if !self.of_database && is_database(dir, &self.name) =>
                {
                    database = true;
                }
                ReadOutcome::Content(content) => {
                    if content.moment == Moment::Growing {
                        worker.found.growing.push((place.id, self.name.clone(), content.stat.size));
                    }
                    let sparse = if content.sparse { SPARSE } else { 0 };
                    let trusted = if content.moment == Moment::Settled { TRUSTED } else { 0 };
                    let mut out = Writer::new();
                    let flags = self.flags | sparse | trusted;
                    let (packed, payload) = (content.stat.pack(), Payload::File(content.hash));
                    scan_record::put(&mut out, &self.name, flags, &packed, &payload, &content.xattrs);
                    return Ok(DirtyFile::Entry(out.finish()));
                }
                ReadOutcome::LeftOut(reason) => return Ok(DirtyFile::LeftOut(reason)),
                ReadOutcome::Replaced => match stat_at(dir, &self.name) {
                    Ok(now) if now.stat.is_file() => found = now,
                    // It became another kind of entry meanwhile.
                    Ok(_) => break,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(DirtyFile::Gone),
                    Err(error) => return Ok(DirtyFile::LeftOut(unreadable(&error))),
                },
            }
        }
        let reason = Reason::Unstable;
        Ok(DirtyFile::LeftOut(if database { database_reason(&self.name, &reason) } else { reason }))
    }
}
