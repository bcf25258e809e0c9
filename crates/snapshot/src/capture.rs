//! One capture: scan each root, store what changed, build the nodes.
//!
//! Publishes nothing: the result is a state whose objects are complete in the store, and the writer, whose lock keeps
//! garbage collection away until the manifest that names the objects is in place.

mod error;
mod filesystem;
mod non_directory;
mod options;
mod repositories;
mod shortage;
mod totals;
mod until_stable;

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

pub use self::error::CaptureError;
pub(crate) use self::error::is_full;
use self::filesystem::Filesystem;
use self::non_directory::{Top, meta, single_entry};
pub use self::options::{CaptureOptions, Gaps};
pub(crate) use self::shortage::Shortage;
use self::totals::Totals;
use self::until_stable::StableScan;
use crate::build::Built;
use crate::cache::{self, Cache, CachedRoot, NewCache};
use crate::capture::error::Result;
use crate::coverage::{Coverage, CoverageNote, Example};
use crate::dirs::{Dirs, open_dir, place_of};
use crate::exclusion::{ExclusionConfig, FrozenRules, Rules};
use crate::hash::{ContentHash, content_hash};
use crate::ignored_count;
use crate::mapped::Mapped;
use crate::node::{Entry, Kind, Reason, Time};
use crate::paths;
use crate::pool;
use crate::read::{self, unreadable};
use crate::scan::{self, Limiter, Scan, ScanCounts, ScanError, Scanned, Worker};
use crate::stat::{FoundStat, stat_at};
use crate::state::{Observer, RootContent, RootState, SnapshotState};
use crate::store::{ObjectKey, Published, Store, StoreError};
use crate::unlock::{OpenedUp, RootFile, UnlockLog, Unlocked};

/// Source of the exclusion rules.
pub(crate) enum RulesFrom<'a> {
    /// Read from disk now; `set_aside` are the roots whose ignore rules were set aside before.
    Live { config: &'a ExclusionConfig, set_aside: &'a [PathBuf], known: &'a [ContentHash] },
    /// Rules of an earlier snapshot, in the order of the roots.
    Frozen(&'a [Option<FrozenRules>]),
}

pub(crate) struct CaptureRequest<'a> {
    pub(crate) store: &'a Store,
    pub(crate) roots: &'a [PathBuf],
    /// All roots of the session: a root inside another one is captured as its own root.
    pub(crate) all_roots: &'a [PathBuf],
    pub(crate) rules: RulesFrom<'a>,
    pub(crate) options: CaptureOptions,
    pub(crate) max_entries: u64,
    pub(crate) max_bytes: u64,
    /// Files changed at or after this time are read at each capture.
    pub(crate) session_start: Time,
    /// Folders with nono's own state.
    pub(crate) own: &'a [PathBuf],
    /// The snapshot before this one: a root that it has and that is missing now was deleted, not mistyped.
    pub(crate) previous: Option<&'a SnapshotState>,
    /// Log for changed modes: with it, files closed to their own owner are made readable for the capture.
    pub(crate) unlock: Option<&'a UnlockLog>,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) shortage: Option<Shortage<'a>>,
}

pub(crate) struct Captured {
    pub(crate) state: SnapshotState,
    pub(crate) rules: Vec<Option<ContentHash>>,
    pub(crate) coverage: Coverage,
    pub(crate) counts: ScanCounts,
    /// Contents that the state names but the store does not hold yet: see [`Shortage`].
    pub(crate) deferred: HashSet<ContentHash>,
    /// Keeps the objects from collection until a manifest names them.
    pub(crate) published: Published,
}

/// Capture, compressing in a second attempt if the contents do not fit uncompressed.
pub(crate) fn capture(request: &CaptureRequest<'_>) -> Result<Captured> {
    if request.shortage.is_some() {
        return attempt(request, true)?.ok_or(CaptureError::Cancelled);
    }
    match attempt(request, false)? {
        Some(captured) => Ok(captured),
        None => attempt(request, true)?.ok_or(CaptureError::Cancelled),
    }
}

/// One attempt. `None`: not everything fits the budget, and compression was not tried.
fn attempt(request: &CaptureRequest<'_>, compress: bool) -> Result<Option<Captured>> {
    let options = shortage::write_options(request, compress)?;
    let writer = request.store.writer(options)?;
    let mapped = Mapped::now();
    let own: Vec<_> = request.own.iter().filter_map(|path| inode(path)).collect();
    let mut workers = Vec::new();
    for _ in 0..pool::threads() {
        workers.push(Worker::new(writer.appender()?));
    }
    let mut all = Totals::default();
    for (at, path) in request.roots.iter().enumerate() {
        let inner = below(path, request.all_roots);
        let root = OneRoot { request, at, path, mapped: &mapped, own: &own, inner: &inner };
        workers = match root.capture(workers, &mut all) {
            Err(CaptureError::Store(StoreError::OverBudget { .. })) if !compress => return Ok(None),
            // Not even the nodes fit.
            Err(CaptureError::Store(StoreError::OverBudget { needed, .. })) if refuses(request) => {
                return Err(all.no_room(writer.spent(), needed));
            }
            other => other?,
        };
    }
    if all.over_budget > 0 && refuses(request) {
        return Err(all.no_room(writer.spent(), 0));
    }
    for worker in workers {
        worker.store.finish()?;
    }
    if all.linked_outside > 0 {
        all.coverage.notes.push(CoverageNote::LinkedOutside { files: all.linked_outside });
    }
    // Without room for the cache the next capture reads every file: slow, but correct.
    all.caches.retain(|(_, cache)| writer.reserve_beside(cache.size()).is_ok());
    let deferred = writer.take_deferred();
    let published = writer.publish()?;
    for (path, cache) in all.caches.iter().filter(|_| request.shortage.is_none()) {
        // The snapshot is complete without the cache: a failed write only makes the next capture slower.
        if let Err(error) = cache.save(&cache::path(request.store.dir(), path)) {
            all.coverage
                .notes
                .push(CoverageNote::CacheNotSaved { root: path.clone(), reason: shortage::text_of(&error) });
        }
    }
    let Totals { state, rules, coverage, counts, .. } = all;
    Ok(Some(Captured { state, rules, coverage, counts, deferred, published }))
}

fn refuses(request: &CaptureRequest<'_>) -> bool {
    request.options.gaps == Gaps::Refuse
}

struct OneRoot<'a> {
    request: &'a CaptureRequest<'a>,
    at: usize,
    path: &'a Path,
    mapped: &'a Mapped,
    own: &'a [((u32, u32), u64)],
    inner: &'a [Vec<u8>],
}

type Workers<'s> = Vec<Worker<'s>>;

impl OneRoot<'_> {
    fn capture<'s>(&self, workers: Workers<'s>, all: &mut Totals) -> Result<Workers<'s>> {
        match self.open() {
            Ok(top) if top.found.stat.is_dir() => self.directory(workers, all, &top),
            Ok(top) => self.single(workers, all, &top),
            Err(error) => {
                self.missing(&error, all);
                Ok(workers)
            }
        }
    }

    /// Open the root's parent directory without following links, and stat the root.
    fn open(&self) -> io::Result<Top> {
        let (parent, name) = place_of(self.path)?;
        let found = stat_at(parent.as_fd(), name.as_bytes())?;
        Ok(Top { parent, name, found })
    }

    /// Handle a root that does not exist: deleted if the previous snapshot has it, otherwise not covered.
    fn missing(&self, error: &io::Error, all: &mut Totals) {
        let known = self.request.previous.and_then(|previous| previous.root(self.path));
        let was_there = known
            .is_some_and(|known| matches!(known.content, RootContent::Captured(_) | RootContent::Absent));
        // A link on the way to it that belongs to another root: nothing exists at this path itself.
        let around = |root: &RootState| root.path != self.path && self.path.starts_with(&root.path);
        let inside = self.request.previous.is_some_and(|previous| previous.roots.iter().any(around));
        let link = rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP);
        let gone = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
            || (inside && link);
        if gone && was_there {
            return self.add(RootContent::Absent, None, all);
        }
        self.fail(unreadable(error), all);
    }

    fn fail(&self, reason: Reason, all: &mut Totals) {
        if let Some(size) = reason.over_budget() {
            all.over_budget += size;
            all.short_roots.push(Example { path: self.path.to_owned(), reason: reason.to_string() });
        }
        let note = CoverageNote::RootFailed { root: self.path.to_owned(), reason: reason.to_string() };
        all.coverage.notes.push(note);
        self.add(RootContent::Failed(reason), None, all);
    }

    fn add(&self, content: RootContent, rules: Option<ContentHash>, all: &mut Totals) {
        all.state.roots.push(RootState { path: self.path.to_owned(), content });
        all.rules.push(rules);
    }

    /// Capture a root that is a single file, a link or a special file.
    fn single<'s>(&self, mut workers: Workers<'s>, all: &mut Totals, top: &Top) -> Result<Workers<'s>> {
        let Some(worker) = workers.first_mut() else { return Ok(workers) };
        let unlock = RootFile {
            log: self.request.unlock,
            root: self.path,
            parent: top.parent.as_fd(),
            name: top.name.as_bytes(),
        };
        let entry = match single_entry(top, &unlock, worker)? {
            Ok(entry) => entry,
            Err(reason) => {
                self.fail(reason, all);
                return Ok(workers);
            }
        };
        let growing = worker.found.growing.drain(..);
        let notes = growing.map(|(_, _, size)| CoverageNote::Growing { path: self.path.to_owned(), size });
        all.coverage.notes.extend(notes);
        let mut counts = ScanCounts::default();
        if let Kind::File { size, .. } = entry.kind {
            counts = ScanCounts { files: 1, bytes: size, read: 1, read_bytes: size, ..counts };
        } else {
            counts.others = 1;
        }
        let limits = self.limiter(all);
        limits.add(1, counts.bytes).map_err(|error| self.scan_error(error))?;
        all.entries += 1;
        all.bytes += counts.bytes;
        all.coverage.add(&counts);
        all.counts += counts;
        all.linked_outside += u64::from(entry.meta.linked_outside);
        self.add(RootContent::Captured(entry), None, all);
        Ok(workers)
    }

    fn limiter(&self, all: &Totals) -> Limiter {
        Limiter::new(self.request.max_entries, self.request.max_bytes, all.entries, all.bytes)
    }

    fn scan_error(&self, error: ScanError) -> CaptureError {
        match error {
            ScanError::TooManyFiles { limit } => CaptureError::TooManyFiles { limit },
            ScanError::TooManyBytes { limit } => CaptureError::TooManyBytes { limit },
            ScanError::Cancelled => CaptureError::Cancelled,
            ScanError::Store(error) => CaptureError::Store(error),
            ScanError::Root(source) => CaptureError::Io { path: self.path.to_owned(), source },
        }
    }

    fn directory<'s>(
        &self,
        workers: Workers<'s>,
        all: &mut Totals,
        Top { parent, name, found }: &Top,
    ) -> Result<Workers<'s>> {
        // A failure here shows when the directory is opened.
        let log = self.request.unlock;
        let _guard = log.map(|log| Unlocked::root(log, self.path, parent.as_fd(), name.as_bytes(), 0o500));
        let fd = match open_dir(parent.as_fd(), name.as_bytes()) {
            Ok(opened) => opened,
            Err(error) => {
                self.fail(unreadable(&error), all);
                return Ok(workers);
            }
        };
        let filesystem = Filesystem::of(&fd);
        if !filesystem.trusted {
            all.coverage.notes.push(CoverageNote::UnknownFilesystem { root: self.path.to_owned() });
        }
        let about = CachedRoot {
            root: paths::bytes(self.path).to_vec(),
            filesystem: filesystem.id,
            stat: found.stat.pack(),
            boot: self.request.store.boot(),
        };
        let cache = self.cache(&about, &filesystem)?;
        let start = self.read_since(&filesystem);
        let StableScan { mut workers, dirs, rules, frozen, scanned, built, again } =
            self.scan_until_stable(&fd, cache.as_ref(), &about, (found, start), workers, all)?;
        let Some(worker) = workers.first_mut() else { return Ok(workers) };
        let frozen_hash = content_hash(&frozen);
        worker.store.put(ObjectKey::rules(frozen_hash), &frozen)?;
        let meta = meta(found, &built.xattrs);
        let kind = Kind::Dir { tree: built.tree, merkle: built.merkle };
        self.count(&dirs, &scanned, &built, all);
        let notes = rules.notes().into_iter();
        all.coverage.notes.extend(
            notes.map(|note| CoverageNote::Rules { root: self.path.to_owned(), text: note.to_string() }),
        );
        if !built.unchanged || cache.is_none() || scanned.read > 0 || again {
            all.caches.push((self.path.to_owned(), NewCache { about, dirs: built.dirs }));
        }
        let entry = Entry { name: name.clone(), meta, kind };
        self.add(RootContent::Captured(entry), Some(frozen_hash), all);
        Ok(workers)
    }

    fn io(&self, source: io::Error) -> CaptureError {
        CaptureError::Io { path: self.path.to_owned(), source }
    }

    /// The cache of the last scan, if it is still valid. Loaded anew each time: garbage collection removes the caches
    /// of dropped trees, and objects of a dropped tree may be gone.
    fn cache(&self, about: &CachedRoot, filesystem: &Filesystem) -> Result<Option<Cache>> {
        if self.request.options.paranoid || !filesystem.trusted {
            return Ok(None);
        }
        let store = self.request.store;
        // An unreadable cache counts as missing.
        let known = Cache::load(&cache::path(store.dir(), self.path)).ok().flatten();
        let Some(cache) = known.filter(|cache| cache.about.is_of(about)) else { return Ok(None) };
        let stored = match cache.tree() {
            Some(tree) => store.contains(ObjectKey::from(tree))?,
            None => false,
        };
        // After a power loss some of its objects may be damaged.
        let sound = cache.about.boot == about.boot || store.is_sound()?;
        Ok(Some(cache).filter(|_| stored && sound))
    }

    /// Time from which on changed files are read, whatever the cache says.
    fn read_since(&self, filesystem: &Filesystem) -> Time {
        let start = self.request.session_start;
        let Some(young) = self.request.options.young.filter(|_| filesystem.writes_back) else { return start };
        let now = read::now();
        let seconds = now.seconds.saturating_sub_unsigned(young.as_secs());
        start.max(Time { seconds, ..now })
    }

    fn rules(&self) -> Result<Rules> {
        match &self.request.rules {
            RulesFrom::Live { config, set_aside, .. } => {
                let rules = Rules::live(config, self.path)?;
                let aside = set_aside.iter().any(|root| root == self.path);
                Ok(if aside { rules.set_aside() } else { rules })
            }
            RulesFrom::Frozen(frozen) => match frozen.get(self.at).and_then(Option::as_ref) {
                Some(frozen) => Ok(Rules::frozen(frozen)?),
                // The root was not a directory then, so nothing in it was excluded.
                None => Ok(Rules::live(
                    &ExclusionConfig { use_gitignore: false, ..Default::default() },
                    self.path,
                )?),
            },
        }
    }

    fn scan<'s>(
        &self,
        dirs: &Dirs,
        (rules, unstable): (&Rules, &[Vec<u8>]),
        cache: Option<&Cache>,
        (found, session_start): (&FoundStat, Time),
        workers: Workers<'s>,
        all: &Totals,
    ) -> Result<(Workers<'s>, Scanned), ScanError> {
        let limits = self.limiter(all);
        let only = self
            .request
            .shortage
            .and_then(|shortage| shortage.only)
            .map(|only| shortage::chosen(self.path, only));
        let opened_up = self.request.unlock.map(|log| OpenedUp::new(log, self.path, dirs));
        let scan = Scan {
            dirs,
            rules,
            cache,
            session_start,
            mapped: self.mapped,
            own: self.own,
            inner: self.inner,
            unstable,
            mount: found.mount,
            cross_mounts: self.request.options.cross_mounts,
            max_file: self.request.options.max_file,
            unlock: opened_up.as_ref(),
            limits: &limits,
            only: only.as_deref(),
        };
        let mut workers = scan::scan(&scan, workers, found.stat.ino, self.request.observer)?;
        let mut scanned = Scanned::default();
        for worker in &mut workers {
            scanned.join(std::mem::take(&mut worker.found));
        }
        scanned.listings.sort_unstable_by_key(|listing| listing.id);
        Ok((workers, scanned))
    }

    /// Whether the ignore rules leave almost nothing. Counted when these rules are met for the first time.
    fn must_set_aside(&self, dirs: &Dirs, rules: &Rules, frozen: &[u8], scanned: &Scanned) -> bool {
        let RulesFrom::Live { known, .. } = &self.request.rules else { return false };
        if scanned.ignored.is_empty() || rules.is_set_aside() {
            return false;
        }
        let Scanned { ignored, listings, counts, .. } = scanned;
        !known.contains(&content_hash(frozen))
            && ignored_count::leaves_too_little(dirs, ignored, listings, counts.files)
    }

    fn count(&self, dirs: &Dirs, counts: &ScanCounts, built: &Built, all: &mut Totals) {
        for (dir, omitted) in &built.omitted {
            let path = self.path.join(paths::from_bytes(&dirs.path(*dir)));
            all.over_budget += omitted.iter().filter_map(|one| one.reason.over_budget()).sum::<u64>();
            all.coverage.leave_out(&path, omitted);
        }
        all.entries += counts.files + counts.others;
        all.bytes += counts.bytes;
        all.coverage.add(counts);
        all.counts += *counts;
        all.linked_outside += built.linked_outside;
    }
}

/// Roots inside this one, as relative paths. Matched by path and not by inode: whatever replaces a root at its path
/// still belongs to that root, and another hard link to the same file does not.
fn below(root: &Path, all: &[PathBuf]) -> Vec<Vec<u8>> {
    let inside = all.iter().filter_map(|other| other.strip_prefix(root).ok());
    inside.map(|path| paths::bytes(path).to_vec()).filter(|path| !path.is_empty()).collect()
}

fn inode(path: &Path) -> Option<((u32, u32), u64)> {
    let found = stat_at(rustix::fs::CWD, paths::bytes(path)).ok()?;
    Some((found.dev, found.stat.ino))
}
