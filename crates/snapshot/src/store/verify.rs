//! Verification: every byte of every file of the store is read, and all damage is reported.
//!
//! A pack is walked record by record, whatever its index says, and then compared with it; after a damaged record, the
//! index leads to the next one. Only the caller, or an unreadable folder, ends the check early.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::error::{Damage, Result, StoreError, StoreProblem};
use super::files::{Folder, Lock, allocated, is_unique_name, read_all, size_of};
use super::format::{FORMAT, StoreFormat, read_format};
use super::handle::Store;
use super::index::{ObjectIndex, ObjectLocation};
use super::key::{ObjectKey, ObjectKind};
use super::large::{LargeName, OpenLarge, feed, folder_name, parse_name};
use super::names::{LOCK, REWRITE_TEMP, WRITER_TEMP};
use super::pack::{OpenPack, index_name, pack_name};
use super::pack_record::PACK_START;
use super::rewrite::RewriteWatch;
use super::view;
use crate::hash::{ContentHash, ContentHasher, Trail};
use crate::pool::{locked, on_two_threads};

/// Number of bytes below which one thread checks alone.
const ALONE: u64 = 1 << 20;

/// Result of verification.
#[derive(Clone, Debug, Default)]
pub struct StoreVerified {
    pub problems: Vec<StoreProblem>,
    pub objects: u64,
    /// Number of bytes read.
    pub bytes: u64,
    /// Files and folders left by dead processes: not damage; the next writer or collection removes them.
    pub debris: u64,
    pub cancelled: bool,
}

impl StoreVerified {
    fn report(&mut self, file: &Path, object: Option<ObjectKey>, what: Damage) {
        self.problems.push(StoreProblem { file: file.to_owned(), object, what });
    }
}

impl Store {
    /// Check everything. Waits while another process settles or collects; readers and writers continue.
    pub fn verify(&self, cancel: &dyn Fn() -> bool, progress: &dyn Fn(u64, u64)) -> Result<StoreVerified> {
        let _one = self.maintain(true)?;
        let mut found = StoreVerified { debris: self.count_debris()?, ..StoreVerified::default() };
        self.verify_format(&mut found)?;
        let large = self.list_large(&mut found)?;
        let ids = self.list_packs(&mut found)?;
        let mut total = large.iter().map(|large| large.bytes).sum::<u64>();
        for id in &ids {
            total += self.packs.stat(&pack_name(id))?.map_or(0, |stat| size_of(&stat));
        }
        for id in &ids {
            let done = found.bytes;
            let watch = RewriteWatch { cancel, progress: &|bytes| progress(done + bytes, total) };
            self.verify_pack(id, &watch, &mut found)?;
        }
        let done = found.bytes;
        let watch = RewriteWatch { cancel, progress: &|bytes| progress(done + bytes, total) };
        let about =
            |large: &ListedLarge| (ObjectKey { kind: ObjectKind::Blob, hash: large.hash }, large.bytes);
        check_all(&large, about, |large| self.verify_large(large), &watch, &mut found)?;
        Ok(found)
    }

    fn verify_format(&self, found: &mut StoreVerified) -> Result<()> {
        match read_format(&self.root) {
            Ok(StoreFormat::Ours | StoreFormat::Old) => {}
            Ok(StoreFormat::Damaged | StoreFormat::Missing) | Err(StoreError::Version { .. }) => {
                found.report(&self.root.path_of(FORMAT), None, Damage::Format);
            }
            Err(error) => found.problems.push(StoreProblem::from_error(error, None)?),
        }
        found.problems.extend(self.check_id()?);
        Ok(())
    }

    /// Remove what dead processes left, unless another process writes now; returns the number of files and folders.
    pub(crate) fn clear_debris(&self, dry_run: bool) -> Result<u64> {
        // A process that settles now is alive, and so are its files.
        let _one = self.maintain(true)?;
        let count = self.count_debris()?;
        if !dry_run && let Some(_alone) = Lock::take(&self.root, LOCK, true, false)? {
            self.remove_debris(true)?;
        }
        Ok(count)
    }

    /// Count debris. While another process writes, files that writers may be writing are not counted.
    fn count_debris(&self) -> Result<u64> {
        let alone = Lock::take(&self.root, LOCK, true, false)?.is_some();
        let left = |name: &String| name.starts_with(REWRITE_TEMP) || (alone && name.starts_with(WRITER_TEMP));
        let temporary = self.tmp.names()?.iter().filter(|name| left(name)).count();
        let orphans = if alone { view::orphans(&self.packs)?.len() } else { 0 };
        Ok((temporary + orphans) as u64)
    }

    /// Packs that have an index.
    fn list_packs(&self, found: &mut StoreVerified) -> Result<Vec<String>> {
        for name in self.packs.names()? {
            let id = name.strip_suffix(".idx").or_else(|| name.strip_suffix(".pack"));
            if !id.is_some_and(is_unique_name) {
                found.report(&self.packs.path_of(&name), None, Damage::Unexpected);
            }
        }
        view::ids(&self.packs, ".idx")
    }

    fn list_large(&self, found: &mut StoreVerified) -> Result<Vec<ListedLarge>> {
        let mut listed = Vec::new();
        for folder in self.large.names()? {
            let Ok(opened) = self.large.open_folder(&folder) else {
                found.report(&self.large.path_of(&folder), None, Damage::Unexpected);
                continue;
            };
            for name in opened.names()? {
                let parsed = parse_name(&name).filter(|(hash, _)| folder_name(hash) == folder);
                let Some((hash, shape)) = parsed else {
                    found.report(&opened.path_of(&name), None, Damage::Unexpected);
                    continue;
                };
                let bytes = opened.stat(&name)?.map_or(0, |stat| allocated(&stat));
                listed.push(ListedLarge { folder: folder.clone(), name, hash, shape, bytes });
            }
        }
        Ok(listed)
    }

    fn verify_large(&self, large: &ListedLarge) -> Result<()> {
        let folder = self.large.open_folder(&large.folder)?;
        if large.shape == LargeName::Hashes {
            return Store::verify_hashes(&folder, large);
        }
        let open = OpenLarge::open(&folder, &large.name, &large.hash)?;
        let mut hasher = ContentHasher::new(open.size);
        open.each_piece(self, &mut Vec::new(), true, &mut |_, piece| {
            feed(&mut hasher, piece);
            Ok(())
        })?;
        open.check(hasher)
    }

    /// Check that the address was made from these hashes.
    fn verify_hashes(folder: &Folder, large: &ListedLarge) -> Result<()> {
        let (bytes, _) = read_all(folder, &large.name)?;
        match Trail::check(bytes, &ContentHash::from_bytes(large.hash)) {
            Some(_) => Ok(()),
            None => Err(StoreError::Damaged {
                file: folder.path_of(&large.name),
                object: None,
                damage: Damage::Content,
            }),
        }
    }

    fn verify_pack(&self, id: &str, watch: &RewriteWatch<'_>, found: &mut StoreVerified) -> Result<()> {
        let index_file = self.packs.path_of(&index_name(id));
        let index = match read_all(&self.packs, &index_name(id)) {
            Ok((bytes, _)) => ObjectIndex::decode(bytes),
            Err(error) => {
                found.problems.push(StoreProblem::from_error(error, None)?);
                None
            }
        };
        if index.is_none() {
            found.report(&index_file, None, Damage::Index);
        }
        let pack = match OpenPack::open(&self.packs, id) {
            Ok(pack) => pack,
            Err(error) if error.is_not_found() => {
                found.report(&index_file, None, Damage::NoPack);
                return Ok(());
            }
            Err(error) => {
                found.problems.push(StoreProblem::from_error(error, None)?);
                return Ok(());
            }
        };
        let records = walk(&pack, index.as_ref(), found)?;
        if let Some(index) = &index {
            compare(&pack, index, &records, &index_file, found);
        }
        let about = |entry: &ObjectLocation| (entry.key, u64::from(entry.stored));
        check_all(&records, about, |entry| pack.object(entry).map(drop), watch, found)
    }
}

struct ListedLarge {
    folder: String,
    name: String,
    hash: [u8; 32],
    shape: LargeName,
    bytes: u64,
}

/// All records that can be found in a pack.
fn walk(
    pack: &OpenPack,
    index: Option<&ObjectIndex>,
    found: &mut StoreVerified,
) -> Result<Vec<ObjectLocation>> {
    let mut records = Vec::new();
    if !pack.starts_well()? {
        found.report(&pack.path, None, Damage::PackStart);
    }
    let mut known: Vec<(u64, ObjectKey)> =
        index.iter().flat_map(|index| index.entries().map(|entry| (entry.offset, entry.key))).collect();
    known.sort_unstable();
    let mut offset = PACK_START.len() as u64;
    loop {
        offset = pack.walk(offset, &mut |head, offset| records.push(ObjectLocation::of(&head, offset)))?;
        if offset == pack.len {
            return Ok(records);
        }
        let object =
            known.binary_search_by_key(&offset, |(offset, _)| *offset).ok().map(|place| known[place].1);
        found.report(&pack.path, object, Damage::Record { offset });
        let next = known.partition_point(|(known, _)| *known <= offset);
        match known.get(next) {
            Some((next, _)) if *next < pack.len => offset = *next,
            _ => return Ok(records),
        }
    }
}

/// Compare the index with the pack's records: no more and no less.
fn compare(
    pack: &OpenPack,
    index: &ObjectIndex,
    records: &[ObjectLocation],
    index_file: &Path,
    found: &mut StoreVerified,
) {
    if index.about.pack_len != pack.len {
        found.report(index_file, None, Damage::Disagrees);
    }
    let mut missing: HashMap<ObjectKey, ObjectLocation> = HashMap::new();
    if index.len() != records.len() {
        missing.extend(index.entries().map(|entry| (entry.key, entry)));
    }
    for record in records {
        missing.remove(&record.key);
        if index.find(&record.key) != Some(*record) {
            found.report(index_file, Some(record.key), Damage::Disagrees);
        }
    }
    for entry in missing.into_values() {
        let problem = StoreProblem {
            file: pack.path.clone(),
            object: Some(entry.key),
            what: Damage::Record { offset: entry.offset },
        };
        if !found.problems.contains(&problem) {
            found.problems.push(problem);
        }
    }
}

/// Check many items on two threads, one of them the caller's. `about`: address and size on disk of an item.
fn check_all<T: Sync>(
    all: &[T],
    about: impl Fn(&T) -> (ObjectKey, u64) + Sync,
    check: impl Fn(&T) -> Result<()> + Sync,
    watch: &RewriteWatch<'_>,
    found: &mut StoreVerified,
) -> Result<()> {
    let (next, bytes, objects) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let stop = AtomicBool::new(found.cancelled);
    let problems = Mutex::new(Vec::new());
    let work = |watch: Option<&RewriteWatch<'_>>| -> Result<()> {
        while let Some(item) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            if watch.is_some_and(|watch| (watch.cancel)()) {
                stop.store(true, Ordering::SeqCst);
            }
            if stop.load(Ordering::SeqCst) {
                return Ok(());
            }
            let (key, size) = about(item);
            if let Err(error) = check(item) {
                let problem = StoreProblem::from_error(error, Some(key))?;
                locked(&problems).push(problem);
            }
            objects.fetch_add(1, Ordering::Relaxed);
            let done = bytes.fetch_add(size, Ordering::Relaxed) + size;
            if let Some(watch) = watch {
                (watch.progress)(done);
            }
        }
        Ok(())
    };
    // For a few small items a second thread costs more than it saves.
    let worth = all.len() > 1 && all.iter().map(|item| about(item).1).sum::<u64>() > ALONE;
    if worth { on_two_threads(watch, work) } else { work(Some(watch)) }?;
    found.cancelled |= stop.into_inner();
    found.bytes += bytes.into_inner();
    found.objects += objects.into_inner();
    found.problems.extend(problems.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(())
}
