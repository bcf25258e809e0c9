//! The scan: every directory of a root, every entry's stat, and the content of what changed since the last time.
//!
//! Parallel over directories. An unchanged file costs one `statx` and is not opened; its bytes in the last scan's record
//! are copied. Whatever cannot be taken is left out by name and with the reason; only errors of the store end a scan.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FileType, RawDir};

use crate::cache::{Cache, CachedDir};
use crate::dirs::{Dir, DirId, Dirs, open_dir};
use crate::exclusion::{DirRules, Has, LargePacks, Rules, Verdict, is_git_pack};
use crate::mapped::Mapped;
use crate::node::{Name, Omitted, Reason, Time, Xattr};
use crate::pool::{self, Queue};
use crate::read::{self, How, Outcome, is_settled, unreadable};
use crate::record::{self, ANYWAY, Entries, Known, Links, Payload, SPARSE, TRUSTED};
use crate::stat::{Found, stat_at};
use crate::state::Observer;
use crate::store::{Appender, StoreError};
use crate::unlock::Unlocked;

/// So many files of one directory are read by one task.
const FILES_PER_TASK: usize = 256;
/// A pack of git's beyond this size is not copied unless asked for.
const LARGE_PACK: u64 = 64 << 20;
/// How often an entry that is replaced while we look is looked at again.
const LOOKS: usize = 4;

/// What is scanned, and how.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    pub(crate) dirs: &'a Dirs,
    pub(crate) rules: &'a Rules,
    pub(crate) cache: Option<&'a Cache>,
    /// Files changed at or after this are read each time.
    pub(crate) session_start: Time,
    pub(crate) mapped: &'a Mapped,
    /// Directories of nono's own: device and inode.
    pub(crate) own: &'a [((u32, u32), u64)],
    /// Tracked paths, which are captured by themselves.
    pub(crate) roots: &'a [((u32, u32), u64)],
    pub(crate) mount: u64,
    pub(crate) cross_mounts: bool,
    /// Open up what is closed to its own owner.
    pub(crate) unlock: bool,
    pub(crate) limits: &'a Limiter,
}

/// Counts what is taken, over all roots, and stops what goes beyond the limits.
#[derive(Debug)]
pub(crate) struct Limiter {
    pub(crate) max_entries: u64,
    pub(crate) max_bytes: u64,
    entries: AtomicU64,
    bytes: AtomicU64,
}

impl Limiter {
    /// `entries` and `bytes` were counted before.
    pub(crate) fn new(max_entries: u64, max_bytes: u64, entries: u64, bytes: u64) -> Limiter {
        Limiter { max_entries, max_bytes, entries: AtomicU64::new(entries), bytes: AtomicU64::new(bytes) }
    }

    pub(crate) fn add(&self, entries: u64, bytes: u64) -> Result<(), ScanError> {
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

/// Why a scan ended early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScanError {
    #[error("more than {limit} files")]
    TooManyFiles { limit: u64 },
    #[error("more than {limit} bytes")]
    TooManyBytes { limit: u64 },
    #[error("cancelled")]
    Cancelled,
    #[error("the root cannot be read: {0}")]
    Root(#[source] io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What was found in one directory.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) id: DirId,
    pub(crate) rules: [u8; 32],
    pub(crate) entries: Vec<u8>,
    pub(crate) omitted: Vec<u8>,
    pub(crate) xattrs: Vec<Xattr>,
    /// The directory of the last scan that stood here.
    pub(crate) old: Option<DirId>,
    /// Nothing in it differs from the last scan, as far as this listing tells.
    pub(crate) same: bool,
    /// Some file in it has several names.
    pub(crate) has_links: bool,
    /// It belongs to what its parent left out, after all.
    pub(crate) left_out: Option<Reason>,
}

/// Counts of one scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Regular files in the snapshot, and their bytes.
    pub files: u64,
    pub bytes: u64,
    pub directories: u64,
    /// Links, FIFOs, sockets and devices.
    pub others: u64,
    /// Files that had to be read, and their bytes; all others were known.
    pub read: u64,
    pub read_bytes: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.directories += other.directories;
        self.others += other.others;
        self.read += other.read;
        self.read_bytes += other.read_bytes;
    }
}

/// An entry that an ignore rule left out: for the count of what the rules would leave.
#[derive(Debug)]
pub(crate) struct Ignored {
    pub(crate) dir: DirId,
    pub(crate) name: Box<[u8]>,
    pub(crate) is_dir: bool,
}

/// One thread's part.
#[derive(Debug)]
pub(crate) struct Worker<'s> {
    store: Appender<'s>,
    buffer: Vec<u8>,
    names: Vec<u8>,
    pub(crate) listings: Vec<Listing>,
    pub(crate) links: Links,
    pub(crate) counts: Counts,
    pub(crate) ignored: Vec<Ignored>,
    /// Directories that are open to their owner for the time of the scan.
    unlocked: Vec<Unlocked>,
}

impl<'s> Worker<'s> {
    pub(crate) fn new(store: Appender<'s>) -> Worker<'s> {
        Worker {
            store,
            buffer: Vec::new(),
            names: Vec::new(),
            listings: Vec::new(),
            links: Links::default(),
            counts: Counts::default(),
            ignored: Vec::new(),
            unlocked: Vec::new(),
        }
    }

    /// Read one file into the store.
    pub(crate) fn read(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        found: &Found,
        how: How,
    ) -> Result<Outcome, StoreError> {
        self.counts.read += 1;
        self.counts.read_bytes += found.stat.size;
        read::file(dir, name, found, how, &mut self.buffer, &mut self.store)
    }

    pub(crate) fn into_store(self) -> Appender<'s> {
        self.store
    }

    pub(crate) fn store(&mut self) -> &mut Appender<'s> {
        &mut self.store
    }
}

/// A piece of the work.
#[derive(Debug)]
enum Task {
    Dir(DirTask),
    Files(Arc<Unfinished>, std::ops::Range<usize>),
}

#[derive(Debug)]
struct DirTask {
    id: DirId,
    /// Where it stands; none for the root.
    place: Option<(Arc<Dir>, Box<[u8]>)>,
    inode: u64,
    old: Option<DirId>,
    rules: Option<Arc<DirRules>>,
    /// Only what is forced is taken from it; else it was left out for this reason.
    searching: Option<Reason>,
}

/// A directory whose changed files are being read.
#[derive(Debug)]
struct Unfinished {
    dir: Arc<Dir>,
    listing: Mutex<Option<Draft>>,
    dirty: Vec<Dirty>,
    results: Mutex<Vec<Read>>,
    pending: AtomicUsize,
}

/// A listing with gaps where changed files belong.
#[derive(Debug)]
struct Draft {
    listing: Listing,
    omitted: Vec<Omitted>,
    old_omitted: Option<Vec<u8>>,
}

/// A file to be read.
#[derive(Debug)]
struct Dirty {
    name: Box<[u8]>,
    found: Found,
    flags: u8,
    how: How,
    /// Where in the listing it belongs.
    at: usize,
    /// Its bytes in the last scan's record.
    old: Option<Box<[u8]>>,
}

/// What came of a file, by its number in `dirty`.
type Read = (usize, Taken);

#[derive(Debug)]
enum Taken {
    Entry(Vec<u8>),
    LeftOut(Reason),
    Gone,
}

/// Scan all of a root. `workers` decide the number of threads; they come back with what they found.
pub(crate) fn scan<'s>(
    scan: &Scan<'_>,
    workers: Vec<Worker<'s>>,
    root_inode: u64,
    observer: &dyn Observer,
) -> Result<Vec<Worker<'s>>, ScanError> {
    let old = scan.cache.is_some().then_some(0);
    let root = DirTask { id: 0, place: None, inode: root_inode, old, rules: None, searching: None };
    pool::run(workers, vec![Task::Dir(root)], |worker, task, queue| {
        if observer.cancelled() {
            return Err(ScanError::Cancelled);
        }
        match task {
            Task::Dir(task) => Directory::scan(scan, worker, task, queue, observer),
            Task::Files(unfinished, range) => {
                unfinished.read(scan, worker, range)?;
                Ok(())
            }
        }
    })
}

/// One directory being scanned.
struct Directory<'a, 'b> {
    scan: &'a Scan<'b>,
    id: DirId,
    path: Option<Vec<u8>>,
    rules: Arc<DirRules>,
    old: Option<CachedDir<'a>>,
    same_rules: bool,
    out: Vec<u8>,
    omitted: Vec<Omitted>,
    same: bool,
    has_links: bool,
    dirty: Vec<Dirty>,
    subdirs: Vec<Subdir>,
    entries: u64,
    bytes: u64,
}

struct Subdir {
    id: DirId,
    name: Box<[u8]>,
    inode: u64,
    old: Option<DirId>,
    searching: Option<Reason>,
}

impl<'a, 'b> Directory<'a, 'b> {
    fn scan(
        scan: &'a Scan<'b>,
        worker: &mut Worker<'_>,
        task: DirTask,
        queue: &Queue<Task>,
        observer: &dyn Observer,
    ) -> Result<(), ScanError> {
        let opened = open(scan, &task, &mut worker.unlocked).and_then(|dir| {
            let fd = scan.dirs.fd(&dir)?;
            let names = list(fd.as_fd(), &mut worker.names)?;
            let xattrs = read::xattrs(fd.as_fd())?;
            drop(fd);
            Ok((dir, names, xattrs))
        });
        let (dir, names, xattrs) = match opened {
            Err(error) if task.id == 0 => return Err(ScanError::Root(error)),
            Err(error) => {
                worker.listings.push(failed(&task, unreadable(&error)));
                return Ok(());
            }
            Ok(opened) => opened,
        };
        let fd = scan.dirs.fd(&dir).map_err(ScanError::Root)?;
        let mut this = Directory::new(scan, &task, fd.as_fd(), &names);
        let mut old = OldEntries::new(this.old.as_ref());
        for name in names.iter() {
            let known = old.at(name, &mut this.same);
            this.entry(worker, fd.as_fd(), &names, name, known.as_ref());
        }
        old.finish(&mut this.same);
        drop(fd);
        worker.counts.directories += 1;
        scan.limits.add(this.entries + 1, this.bytes)?;
        observer.progress(scan.limits.entries(), 0);
        this.finish(worker, task, dir, xattrs, queue)
    }

    fn new(scan: &'a Scan<'b>, task: &DirTask, fd: BorrowedFd<'_>, names: &Names) -> Directory<'a, 'b> {
        let has = Has { gitignore: names.contains(b".gitignore"), git: names.contains(b".git") };
        let mut path = None;
        let rules = match &task.rules {
            None => scan.rules.root(fd),
            Some(above) => {
                if has.gitignore || has.git || !above.is_trivial() || scan.rules.is_frozen() {
                    let here = path.insert(scan.dirs.path(task.id));
                    above.enter(scan.rules, here, fd, has, task.searching.is_some())
                } else {
                    above.clone()
                }
            }
        };
        if !rules.is_trivial() && path.is_none() {
            path = Some(scan.dirs.path(task.id));
        }
        let old = task.old.and_then(|id| scan.cache?.dir(id));
        let same_rules = old.is_some_and(|old| *old.rules == rules.digest());
        Directory {
            scan,
            id: task.id,
            path: path.filter(|_| !rules.is_trivial()),
            rules,
            old,
            same_rules,
            out: Vec::with_capacity(old.map_or(0, |old| old.entries.len() + 64)),
            omitted: Vec::new(),
            same: old.is_some(),
            has_links: false,
            dirty: Vec::new(),
            subdirs: Vec::new(),
            entries: 0,
            bytes: 0,
        }
    }

    fn entry(
        &mut self,
        worker: &mut Worker<'_>,
        fd: BorrowedFd<'_>,
        names: &Names,
        name: &[u8],
        known: Option<&Known<'_>>,
    ) {
        let found = match stat_at(fd, name) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.same = false;
                return;
            }
            Err(error) => return self.leave(name, false, unreadable(&error)),
        };
        let is_dir = found.stat.is_dir();
        if self.scan.own.contains(&(found.dev, found.stat.ino)) {
            return self.leave(name, is_dir, Reason::OwnState);
        }
        if self.scan.roots.contains(&(found.dev, found.stat.ino)) {
            return self.leave(name, is_dir, Reason::OtherRoot);
        }
        if found.mount != self.scan.mount && !self.scan.cross_mounts {
            return self.leave(name, is_dir, Reason::OtherFilesystem);
        }
        let packed = found.stat.pack();
        let known = known.filter(|known| known.stat().kind() == found.stat.kind());
        let (flags, searching) = match self.judge(names, name, is_dir, known) {
            Verdict::Take => (0, None),
            Verdict::TakeAnyway => (ANYWAY, None),
            Verdict::Search(reason) => (ANYWAY, Some(reason)),
            Verdict::Leave(reason) => {
                if matches!(reason, Reason::Ignored { .. }) {
                    worker.ignored.push(Ignored { dir: self.id, name: name.into(), is_dir });
                }
                return self.leave(name, is_dir, reason);
            }
        };
        if is_dir {
            return self.subdir(name, &found, known, flags, searching);
        }
        self.entries += 1;
        self.has_links |= found.stat.nlink > 1;
        worker.links.count(&found.stat);
        let known = known.filter(|known| *known.packed == packed);
        let trusted = known.filter(|known| self.is_trusted(known, &found));
        if found.stat.is_file() {
            self.bytes += found.stat.size;
            worker.counts.files += 1;
            worker.counts.bytes += found.stat.size;
            match trusted {
                Some(known) => self.carry_over(known, flags),
                None => self.read_later(name, &found, flags, known),
            }
        } else {
            worker.counts.others += 1;
            match trusted {
                Some(known) => self.carry_over(known, flags),
                None => self.other(fd, name, &found, flags, known),
            }
        }
    }

    /// Whether the last scan's content is still the content.
    fn is_trusted(&self, known: &Known<'_>, found: &Found) -> bool {
        known.flags & TRUSTED != 0
            && (!found.stat.is_file()
                || found.stat.ctime < self.scan.session_start && !self.scan.mapped.contains(found))
    }

    /// A name that was taken under the same rules is taken again; everything else is judged.
    fn judge(&mut self, names: &Names, name: &[u8], is_dir: bool, known: Option<&Known<'_>>) -> Verdict {
        let Some(dir) = &self.path else { return Verdict::Take };
        if !is_dir && self.same_rules && known.is_some_and(|known| known.flags & ANYWAY == 0) {
            return Verdict::Take;
        }
        let path = if dir.is_empty() { name.to_vec() } else { [dir, name].join(&b'/') };
        self.rules.judge(&path, name, is_dir, &|beside| names.contains(beside))
    }

    fn leave(&mut self, name: &[u8], is_dir: bool, reason: Reason) {
        // A name that is not one cannot come from the kernel.
        if let Some(name) = Name::new(name) {
            self.omitted.push(Omitted { name, is_dir, reason });
        }
    }

    fn carry_over(&mut self, known: &Known<'_>, flags: u8) {
        self.same &= known.flags & ANYWAY == flags & ANYWAY;
        if known.flags & ANYWAY == flags & ANYWAY {
            self.out.extend_from_slice(known.raw);
        } else {
            let flags = known.flags & !ANYWAY | flags & ANYWAY;
            self.put(known.name, flags, known.packed, &known.payload, &known.xattrs);
        }
    }

    fn put(
        &mut self,
        name: &[u8],
        flags: u8,
        packed: &[u8; crate::stat::PACKED],
        payload: &Payload,
        xattrs: &[Xattr],
    ) {
        let mut out = crate::bytes::Writer::onto(std::mem::take(&mut self.out));
        record::put(&mut out, name, flags, packed, payload, xattrs);
        self.out = out.finish();
    }

    fn subdir(
        &mut self,
        name: &[u8],
        found: &Found,
        known: Option<&Known<'_>>,
        flags: u8,
        searching: Option<Reason>,
    ) {
        let id = self.scan.dirs.add(self.id, name);
        let packed = found.stat.pack();
        self.same &= known.is_some_and(|known| *known.packed == packed && known.flags == flags);
        self.put(name, flags, &packed, &Payload::Dir(id), &[]);
        let old = match known.map(|known| &known.payload) {
            Some(Payload::Dir(old)) => Some(*old),
            _ => None,
        };
        self.subdirs.push(Subdir { id, name: name.into(), inode: found.stat.ino, old, searching });
    }

    fn read_later(&mut self, name: &[u8], found: &Found, flags: u8, known: Option<&Known<'_>>) {
        let mapped = self.scan.mapped.contains(found);
        let leave_packs = self.scan.rules.config().large_git_packs == LargePacks::LeaveOut;
        let only_clone = leave_packs && found.stat.size > LARGE_PACK && {
            let dir = self.path.clone().unwrap_or_else(|| self.scan.dirs.path(self.id));
            is_git_pack(&[&dir[..], name].join(&b'/'))
        };
        self.dirty.push(Dirty {
            name: name.into(),
            found: *found,
            flags,
            how: How { mapped, only_clone, unlock: self.scan.unlock },
            at: self.out.len(),
            old: known.map(|known| known.raw.into()),
        });
    }

    /// A link, FIFO, socket or device: recorded, never opened.
    fn other(
        &mut self,
        fd: BorrowedFd<'_>,
        name: &[u8],
        found: &Found,
        flags: u8,
        known: Option<&Known<'_>>,
    ) {
        let coarse = read::now();
        let payload = match found.stat.kind() {
            FileType::Symlink => read::link(fd, name).map(Payload::Link),
            FileType::CharacterDevice | FileType::BlockDevice => Ok(Payload::Device(found.rdev)),
            _ => Ok(Payload::Nothing),
        };
        let all = payload.and_then(|payload| Ok((payload, read::xattrs_at(fd, name)?)));
        let (payload, xattrs) = match all {
            Ok(all) => all,
            Err(errno) => return self.leave(name, false, unreadable(&errno.into())),
        };
        let trusted = if is_settled(found.stat.ctime, coarse) { TRUSTED } else { 0 };
        let start = self.out.len();
        self.put(name, flags | trusted, &found.stat.pack(), &payload, &xattrs);
        self.same &= known.is_some_and(|known| is_same_entry(known.raw, &self.out[start..], name));
    }

    /// Read what changed, here or in tasks of its own, and queue the subdirectories.
    fn finish(
        self,
        worker: &mut Worker<'_>,
        task: DirTask,
        dir: Dir,
        xattrs: Vec<Xattr>,
        queue: &Queue<Task>,
    ) -> Result<(), ScanError> {
        let old_omitted = self.old.map(|old| old.omitted.to_vec());
        let listing = Listing {
            id: self.id,
            rules: self.rules.digest(),
            entries: self.out,
            omitted: Vec::new(),
            xattrs,
            old: task.old,
            same: self.same,
            has_links: self.has_links,
            left_out: task.searching,
        };
        let draft = Draft { listing, omitted: self.omitted, old_omitted };
        let tasks = self.dirty.len().div_ceil(FILES_PER_TASK).max(1);
        let dir = Arc::new(dir);
        let unfinished = Unfinished {
            dir: dir.clone(),
            listing: Mutex::new(Some(draft)),
            results: Mutex::default(),
            pending: AtomicUsize::new(tasks),
            dirty: self.dirty,
        };
        if tasks == 1 && self.subdirs.is_empty() {
            let all = 0..unfinished.dirty.len();
            return unfinished.read(self.scan, worker, all);
        }
        let unfinished = Arc::new(unfinished);
        let rules = self.rules;
        queue.push_all(self.subdirs.into_iter().map(|subdir| {
            Task::Dir(DirTask {
                id: subdir.id,
                place: Some((dir.clone(), subdir.name)),
                inode: subdir.inode,
                old: subdir.old,
                rules: Some(rules.clone()),
                searching: subdir.searching,
            })
        }));
        drop(dir);
        let chunk = |n: usize| n * FILES_PER_TASK..unfinished.dirty.len().min((n + 1) * FILES_PER_TASK);
        queue.push_all((1..tasks).map(|n| Task::Files(unfinished.clone(), chunk(n))));
        unfinished.read(self.scan, worker, chunk(0))
    }
}

impl Unfinished {
    /// Read some of the files; whoever is last puts the listing together.
    fn read(
        &self,
        scan: &Scan<'_>,
        worker: &mut Worker<'_>,
        range: std::ops::Range<usize>,
    ) -> Result<(), ScanError> {
        let mut results = Vec::with_capacity(range.len());
        if !range.is_empty() {
            let fd = scan.dirs.fd(&self.dir).map_err(ScanError::Root)?;
            for (at, dirty) in self.dirty.iter().enumerate().take(range.end).skip(range.start) {
                let taken = dirty.take(fd.as_fd(), worker)?;
                if !matches!(taken, Taken::Entry(_)) {
                    worker.counts.files -= 1;
                    worker.counts.bytes -= dirty.found.stat.size;
                }
                results.push((at, taken));
            }
        }
        self.results.lock().unwrap_or_else(PoisonError::into_inner).append(&mut results);
        if self.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            let draft = self.listing.lock().unwrap_or_else(PoisonError::into_inner).take();
            let mut results =
                std::mem::take(&mut *self.results.lock().unwrap_or_else(PoisonError::into_inner));
            results.sort_unstable_by_key(|(at, _)| *at);
            worker.listings.extend(draft.map(|draft| draft.complete(&self.dirty, results)));
        }
        Ok(())
    }
}

impl Draft {
    fn complete(mut self, dirty: &[Dirty], results: Vec<Read>) -> Listing {
        let mut listing = self.listing;
        if !results.is_empty() {
            let gaps = std::mem::take(&mut listing.entries);
            let mut done = 0;
            for ((_, taken), dirty) in results.into_iter().zip(dirty) {
                listing.entries.extend_from_slice(&gaps[done..dirty.at]);
                done = dirty.at;
                match taken {
                    Taken::Entry(bytes) => {
                        let same =
                            dirty.old.as_ref().is_some_and(|old| is_same_entry(old, &bytes, &dirty.name));
                        listing.same &= same;
                        listing.entries.extend_from_slice(&bytes);
                    }
                    Taken::LeftOut(reason) => {
                        listing.same = false;
                        let name = Name::new(&dirty.name);
                        self.omitted.extend(name.map(|name| Omitted { name, is_dir: false, reason }));
                    }
                    Taken::Gone => listing.same = false,
                }
            }
            listing.entries.extend_from_slice(&gaps[done..]);
            self.omitted.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        }
        listing.omitted = record::put_omitted(&self.omitted);
        listing.same &= self.old_omitted.is_some_and(|old| old == listing.omitted);
        listing
    }
}

/// Two forms of one entry that make the same entry of a node: only the trust may differ.
fn is_same_entry(old: &[u8], new: &[u8], name: &[u8]) -> bool {
    // Behind the name and its length stand the flags.
    let at = new.len().min(old.len()).min(name.len() + if name.len() < 0x80 { 1 } else { 2 });
    let (Some((old_flags, old_rest)), Some((new_flags, new_rest))) =
        (old[at..].split_first(), new[at..].split_first())
    else {
        return false;
    };
    old[..at] == new[..at] && old_flags | TRUSTED == new_flags | TRUSTED && old_rest == new_rest
}

impl Dirty {
    fn take(&self, dir: BorrowedFd<'_>, worker: &mut Worker<'_>) -> Result<Taken, ScanError> {
        let mut found = self.found;
        for _ in 0..LOOKS {
            match worker.read(dir, &self.name, &found, self.how)? {
                Outcome::Content(content) => {
                    let sparse = if content.sparse { SPARSE } else { 0 };
                    let trusted = if content.trusted { TRUSTED } else { 0 };
                    let mut out = crate::bytes::Writer::new();
                    let flags = self.flags | sparse | trusted;
                    let payload = Payload::File(content.hash);
                    record::put(&mut out, &self.name, flags, &content.stat.pack(), &payload, &content.xattrs);
                    return Ok(Taken::Entry(out.finish()));
                }
                Outcome::LeftOut(reason) => return Ok(Taken::LeftOut(reason)),
                Outcome::Replaced => match stat_at(dir, &self.name) {
                    Ok(now) if now.stat.is_file() => found = now,
                    // It became something else under our eyes.
                    Ok(_) => break,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Taken::Gone),
                    Err(error) => return Ok(Taken::LeftOut(unreadable(&error))),
                },
            }
        }
        Ok(Taken::LeftOut(Reason::Unstable))
    }
}

/// Open the directory of a task; another one in its place is an error.
fn open(scan: &Scan<'_>, task: &DirTask, unlocked: &mut Vec<Unlocked>) -> io::Result<Dir> {
    let dirs = scan.dirs;
    let Some((parent, name)) = &task.place else { return dirs.root() };
    let parent = dirs.fd(parent)?;
    if scan.unlock {
        unlocked.extend(Unlocked::add(parent.as_fd(), name, 0o500)?);
    }
    let fd: OwnedFd = open_dir(parent.as_fd(), name)?;
    let dir = dirs.keep(task.id, fd)?;
    if dir.inode().ino == task.inode { Ok(dir) } else { Err(rustix::io::Errno::STALE.into()) }
}

fn failed(task: &DirTask, reason: Reason) -> Listing {
    Listing {
        id: task.id,
        rules: [0; 32],
        entries: Vec::new(),
        omitted: Vec::new(),
        xattrs: Vec::new(),
        old: task.old,
        same: false,
        has_links: false,
        left_out: Some(reason),
    }
}

/// The entries of a directory's last scan, met in the order of names.
struct OldEntries<'a> {
    entries: Entries<'a>,
    next: Option<Known<'a>>,
}

impl<'a> OldEntries<'a> {
    fn new(old: Option<&CachedDir<'a>>) -> OldEntries<'a> {
        let mut entries = Entries::new(old.map_or(&[], |old| old.entries));
        // What cannot be read of our own record is as if it had never been known.
        let next = entries.next().and_then(Result::ok);
        OldEntries { entries, next }
    }

    /// The entry `name`; `same` is cleared when others before it are gone.
    fn at(&mut self, name: &[u8], same: &mut bool) -> Option<Known<'a>> {
        while let Some(next) = &self.next {
            if next.name > name {
                return None;
            }
            let found = next.name == name;
            let next = self.next.take();
            self.next = self.entries.next().and_then(Result::ok);
            if found {
                return next;
            }
            *same = false;
        }
        None
    }

    fn finish(self, same: &mut bool) {
        *same &= self.next.is_none();
    }
}

/// The names in a directory, sorted.
struct Names {
    bytes: Vec<u8>,
    ends: Vec<(u32, u32)>,
}

impl Names {
    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ends.iter().map(|place| self.name(*place))
    }

    fn name(&self, (start, end): (u32, u32)) -> &[u8] {
        &self.bytes[start as usize..end as usize]
    }

    fn contains(&self, name: &[u8]) -> bool {
        self.ends.binary_search_by(|place| self.name(*place).cmp(name)).is_ok()
    }
}

/// List a directory. The descriptor's position is set back, so that it can be listed again.
fn list(dir: BorrowedFd<'_>, spare: &mut Vec<u8>) -> io::Result<Names> {
    let mut names = Names { bytes: std::mem::take(spare), ends: Vec::new() };
    names.bytes.clear();
    let mut buffer = [MaybeUninit::uninit(); 32 << 10];
    let mut entries = RawDir::new(dir, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let start = names.bytes.len();
        names.bytes.extend_from_slice(name);
        let place = |at: usize| u32::try_from(at).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge));
        names.ends.push((place(start)?, place(names.bytes.len())?));
    }
    let Names { bytes, ends } = &mut names;
    ends.sort_unstable_by(|a, b| bytes[a.0 as usize..a.1 as usize].cmp(&bytes[b.0 as usize..b.1 as usize]));
    Ok(names)
}
