//! Settling: compresses new objects and makes them durable, beside readers and writers of any process.
//!
//! New packs and large objects are durable before the old ones are removed, so an interruption at any point leaves each
//! object at least once. Duplicate objects are harmless, and the next settling removes the spare.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::error::{Result, StoreError, StoreProblem};
use super::files::{Folder, Fsyncs, allocated, chmod, file_stat, sync_file, unique};
use super::format::FORMAT;
use super::handle::Store;
use super::large::{LargeName, LargePacker, OpenLarge, PACKED, feed, is_suspect, parse_name};
use super::names::{DURABLE, KEEP, NEW, REWRITE_TEMP};
use super::pack::{Pack, is_durable};
use super::rewrite::{RewriteOptions, RewriteWatch, remove_packs, rewrite};
use super::temp::Temp;
use super::view::Packs;
use crate::hash::ContentHasher;

/// Number of bytes rewritten at once: this much space is needed beside the store, and this much work is lost by
/// stopping.
const BATCH: u64 = 256 << 20;
/// Size below which settled packs are merged when there are many.
const SMALL: u64 = 8 << 20;
const MANY: usize = 8;

/// Number of objects settled between two checks for waiting processes.
const ASK: usize = 16;

/// Result of settling.
#[derive(Debug, Default)]
pub struct Settled {
    /// Number of replaced packs.
    pub packs: u64,
    /// Number of compressed large objects.
    pub large: u64,
    /// Number of sync calls.
    pub fsyncs: u64,
    /// Whether everything published before is durable now.
    pub durable: bool,
    pub cancelled: bool,
    /// Objects that could not be settled because they are damaged. They stay where they are.
    pub problems: Vec<StoreProblem>,
}

/// Result of syncing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    pub files: u64,
    pub fsyncs: u64,
    /// Whether everything published before is durable now. False if it was cancelled, or if an earlier power loss may
    /// have damaged something.
    pub durable: bool,
}

impl Store {
    /// Make everything published so far durable: first data, then the names, then the folders.
    pub fn sync(&self) -> Result<Synced> {
        self.sync_until(&|| false)
    }

    /// The same; `cancel` is asked between files.
    pub fn sync_until(&self, cancel: &dyn Fn() -> bool) -> Result<Synced> {
        let fsyncs = Fsyncs::default();
        let (files, durable) = self.sync_all(&fsyncs, cancel)?;
        Ok(Synced { files, fsyncs: fsyncs.get(), durable })
    }

    /// Sync all files; returns their number, and whether all of them are durable now.
    fn sync_all(&self, fsyncs: &Fsyncs, cancel: &dyn Fn() -> bool) -> Result<(u64, bool)> {
        // Listed first: the packs that a chunk list needs existed before it, and are synced before it.
        let large = self.unsynced_large()?;
        let view = self.view.refresh(self)?;
        // A sync now does not make trustworthy what may have been lost before.
        let new: Vec<_> =
            view.packs.iter().filter(|pack| !pack.is_durable() && !pack.suspect && !pack.remade).collect();
        let mut synced = Vec::new();
        for pack in new {
            if cancel() {
                return Ok((0, false));
            }
            match pack.sync(&self.packs, fsyncs) {
                // Another process settled it: its replacement is durable.
                Err(error) if error.is_not_found() => {}
                other => {
                    other?;
                    synced.push(pack);
                }
            }
        }
        if !synced.is_empty() {
            self.packs.sync(fsyncs)?;
        }
        for pack in &synced {
            match pack.mark_durable(&self.packs) {
                Err(error) if error.is_not_found() => {}
                other => other?,
            }
        }
        let (large, all_large) = self.sync_large(&large, fsyncs, cancel)?;
        self.sync_format(fsyncs)?;
        let all = view.packs.iter().all(|pack| pack.is_durable() || !(pack.suspect || pack.remade));
        Ok((2 * synced.len() as u64 + large, all && all_large))
    }

    /// Files in `large/` that are not durable, by folder.
    fn unsynced_large(&self) -> Result<Vec<(Folder, Vec<String>)>> {
        let mut found = Vec::new();
        for name in self.large.names()? {
            let folder = self.large.open_folder(&name)?;
            let mut names = folder.names()?;
            names.retain(|name| parse_name(name).is_some());
            let mut new = Vec::new();
            for name in names {
                if folder.stat(&name)?.is_some_and(|stat| !is_durable(&stat)) {
                    new.push(name);
                }
            }
            if !new.is_empty() {
                found.push((folder, new));
            }
        }
        Ok(found)
    }

    fn sync_large(
        &self,
        listed: &[(Folder, Vec<String>)],
        fsyncs: &Fsyncs,
        cancel: &dyn Fn() -> bool,
    ) -> Result<(u64, bool)> {
        let (mut files, mut all) = (0, true);
        for (folder, names) in listed {
            if cancel() {
                return Ok((files, false));
            }
            let mut synced = Vec::new();
            for name in names {
                match folder.open(name) {
                    Err(error) if error.is_not_found() => {}
                    file => {
                        let (file, path) = (file?, folder.path_of(name));
                        if is_suspect(&file_stat(&file, &path)?) {
                            if name.ends_with(LargeName::Hashes.suffix()) {
                                // Without them the file is read in full when it changes; nothing else is lost.
                                folder.unlink(name)?;
                            } else {
                                all = false;
                            }
                            continue;
                        }
                        sync_file(&file, &path, true, fsyncs)?;
                        synced.push((file, path));
                    }
                }
            }
            if !synced.is_empty() {
                folder.sync(fsyncs)?;
            }
            for (file, path) in &synced {
                let keep = file_stat(file, path)?.st_mode & KEEP;
                chmod(file, path, DURABLE | keep)?;
            }
            files += synced.len() as u64;
        }
        if files > 0 {
            self.large.sync(fsyncs)?;
        }
        Ok((files, all))
    }

    /// Sync the folders themselves, once.
    fn sync_format(&self, fsyncs: &Fsyncs) -> Result<()> {
        let file = match self.root.open(FORMAT) {
            Err(error) if error.is_not_found() => return Ok(()),
            file => file?,
        };
        let path = self.root.path_of(FORMAT);
        if is_durable(&file_stat(&file, &path)?) {
            return Ok(());
        }
        sync_file(&file, &path, true, fsyncs)?;
        self.root.sync(fsyncs)?;
        chmod(&file, &path, DURABLE)
    }

    /// Compress what is not compressed yet, merge small packs, and make everything durable. `cancel` is asked between
    /// objects; `progress` gets the bytes done and the total. Busy if another process settles or collects; cancelled if
    /// one begins to wait for that, if a restore begins, or if the disk is full.
    pub fn settle(&self, cancel: &dyn Fn() -> bool, progress: &dyn Fn(u64, u64)) -> Result<Settled> {
        let _one = self.maintain(false)?;
        let asked = AtomicUsize::new(0);
        // A failed query is no reason to stop.
        let makes_way = || {
            asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(ASK)
                && (self.is_wanted().unwrap_or(false) || self.is_disk_full())
        };
        let cancel: &dyn Fn() -> bool = &|| cancel() || makes_way();
        let fsyncs = Fsyncs::default();
        let view = self.view.refresh(self)?;
        let (batches, large) = (batches(&view), self.unsettled_large()?);
        let raw: u64 = batches.iter().flatten().map(|pack| raw_bytes(pack)).sum();
        let total = raw + large.iter().map(|large| large.bytes).sum::<u64>();
        let mut settled = Settled::default();
        let mut done = 0;
        let mut waiting: Vec<Vec<Arc<Pack>>> = batches.into_iter().rev().collect();
        while let Some(batch) = waiting.pop() {
            let watch = RewriteWatch { cancel, progress: &|bytes| progress(done + bytes, total) };
            let view = self.view.refresh(self)?;
            let how = RewriteOptions { share_lock: true, whatever_room: false };
            let new = rewrite(self, &view, &batch, &|_| true, how, &fsyncs, &watch)?;
            if new.no_room && batch.len() > 1 {
                // One pack after the other needs less. A pack that does not fit stays as it is.
                waiting.extend(batch.into_iter().rev().map(|pack| vec![pack]));
                continue;
            }
            if new.cancelled {
                settled.cancelled = true;
                break;
            }
            remove_packs(self, &new.replaced, &fsyncs)?;
            settled.packs += new.replaced.len() as u64;
            settled.problems.extend(new.problems);
            done += batch.iter().map(|pack| raw_bytes(pack)).sum::<u64>();
        }
        if !settled.cancelled {
            let watch = RewriteWatch { cancel, progress: &|bytes| progress(done + bytes, total) };
            self.settle_large(&large, &fsyncs, &watch, &mut settled)?;
        }
        (_, settled.durable) = self.sync_all(&fsyncs, &|| false)?;
        settled.fsyncs = fsyncs.get();
        if settled.packs + settled.large > 0 {
            self.recount()?;
        }
        Ok(settled)
    }

    pub(super) fn has_suspect_large(&self) -> Result<bool> {
        Ok(self.unsettled_large()?.iter().any(|large| large.suspect))
    }

    fn unsettled_large(&self) -> Result<Vec<Unsettled>> {
        let mut found = Vec::new();
        for folder in self.large.names()? {
            let opened = self.large.open_folder(&folder)?;
            for name in opened.names()? {
                let Some((hash, shape)) = parse_name(&name) else { continue };
                let Some(stat) = opened.stat(&name)? else { continue };
                let keep = shape != LargeName::Plain || stat.st_mode & KEEP != 0;
                // An object that a crash may have damaged is checked, whatever its form.
                let suspect = is_suspect(&stat);
                if shape != LargeName::Hashes && (!keep || suspect) {
                    let bytes = allocated(&stat);
                    found.push(Unsettled { folder: folder.clone(), name, hash, keep, suspect, bytes });
                }
            }
        }
        Ok(found)
    }

    /// Run on two threads, one of them the caller's.
    fn settle_large(
        &self,
        large: &[Unsettled],
        fsyncs: &Fsyncs,
        watch: &RewriteWatch<'_>,
        settled: &mut Settled,
    ) -> Result<()> {
        if large.is_empty() {
            return Ok(());
        }
        let work = LargeWork {
            store: self,
            large,
            temp: Temp::make(&self.tmp, REWRITE_TEMP)?,
            fsyncs,
            next: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            done: AtomicU64::new(0),
            packed: AtomicU64::new(0),
            problems: Mutex::default(),
        };
        std::thread::scope(|scope| {
            let other = crate::pool::spawn(scope, || work.run(None));
            let mine = work.run(Some(watch));
            let theirs = other.map_or(Ok(()), crate::pool::join);
            mine.and(theirs)
        })?;
        settled.large = work.packed.into_inner();
        settled.cancelled = work.stop.into_inner();
        settled.problems.extend(work.problems.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}

fn raw_bytes(pack: &Pack) -> u64 {
    pack.index.entries().map(|entry| u64::from(entry.raw)).sum()
}

/// Packs to rewrite, in batches.
fn batches(view: &Packs) -> Vec<Vec<Arc<Pack>>> {
    let small = |pack: &Arc<Pack>| pack.index.about.settled && pack.index.about.pack_len < SMALL;
    let merge = view.packs.iter().filter(|pack| small(pack)).count() >= MANY;
    let mut batches: Vec<Vec<Arc<Pack>>> = Vec::new();
    let mut bytes = u64::MAX / 2;
    for pack in &view.packs {
        let settled = pack.index.about.settled && !pack.suspect;
        if settled && !(merge && small(pack)) {
            continue;
        }
        let more = raw_bytes(pack);
        if bytes + more > BATCH + BATCH / 4 {
            batches.push(Vec::new());
            bytes = 0;
        }
        if let Some(batch) = batches.last_mut() {
            batch.push(Arc::clone(pack));
        }
        bytes += more;
    }
    batches
}

struct Unsettled {
    folder: String,
    name: String,
    hash: [u8; 32],
    /// Whether to verify the object without rewriting it.
    keep: bool,
    suspect: bool,
    bytes: u64,
}

struct LargeWork<'a> {
    store: &'a Store,
    large: &'a [Unsettled],
    temp: Temp,
    fsyncs: &'a Fsyncs,
    next: AtomicUsize,
    stop: AtomicBool,
    done: AtomicU64,
    packed: AtomicU64,
    problems: Mutex<Vec<StoreProblem>>,
}

impl LargeWork<'_> {
    fn run(&self, watch: Option<&RewriteWatch<'_>>) -> Result<()> {
        while let Some(large) = self.large.get(self.next.fetch_add(1, Ordering::SeqCst)) {
            let folder = self.store.large.open_folder(&large.folder)?;
            let settled = match self.one(&folder, large, watch) {
                Err(StoreError::Damaged { file, object, damage }) => {
                    let problem = StoreProblem { file, object, what: damage };
                    self.problems.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
                    continue;
                }
                Err(error) => {
                    self.stop.store(true, Ordering::SeqCst);
                    return Err(error);
                }
                Ok(settled) => settled,
            };
            if self.stop.load(Ordering::SeqCst) {
                return Ok(());
            }
            self.packed.fetch_add(u64::from(settled), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Settle one object; returns whether it was compressed.
    fn one(&self, folder: &Folder, large: &Unsettled, watch: Option<&RewriteWatch<'_>>) -> Result<bool> {
        let open = OpenLarge::open(folder, &large.name, &large.hash)?;
        let temp = unique();
        let file = self.temp.folder.create(&temp)?;
        let path = self.temp.folder.path_of(&temp);
        let mut packer = LargePacker::new(&file, path.clone())?;
        let mut hasher = ContentHasher::new(open.size);
        let mut ended = false;
        let read = open.each_piece(self.store, &mut Vec::new(), false, &mut |at, piece| {
            if watch.is_some_and(|watch| (watch.cancel)()) {
                self.stop.store(true, Ordering::SeqCst);
            }
            // A possibly damaged object is checked to the end, whether or not it compresses.
            let checked = large.keep || large.suspect;
            ended = self.stop.load(Ordering::SeqCst) || !(checked || packer.promises());
            if ended {
                // Only to stop: the error is discarded.
                return Err(StoreError::SourceChanged);
            }
            feed(&mut hasher, piece);
            self.done.fetch_add(piece.data_len(), Ordering::Relaxed);
            if let Some(watch) = watch {
                (watch.progress)(self.done.load(Ordering::Relaxed));
            }
            if large.keep { Ok(()) } else { packer.piece(at, piece).map(drop) }
        });
        if self.stop.load(Ordering::SeqCst) {
            return Ok(false);
        }
        if !ended {
            read?;
            open.check(hasher)?;
        }
        if ended || large.keep || !packer.saves() {
            drop(packer);
            self.temp.folder.unlink(&temp)?;
            // Made durable with the rest.
            return chmod(&open.file, &open.path, NEW | KEEP).map(|()| false);
        }
        packer.finish(open.size)?;
        chmod(&file, &path, DURABLE)?;
        sync_file(&file, &path, true, self.fsyncs)?;
        self.temp.folder.rename(&temp, folder, &format!("{}{PACKED}", large.name))?;
        folder.sync(self.fsyncs)?;
        folder.unlink(&large.name)?;
        Ok(true)
    }
}
