//! Writing: one writer, with one appender per thread, each with its own pack in the writer's temporary folder.
//!
//! Nothing is visible before [`StoreWriter::publish`], and everything temporary is removed with the writer. From the
//! first lookup on, the writer holds the shared lock, so no collection can remove an object that it found;
//! [`Published`] keeps holding it until the caller has recorded the references. A thread that holds either and waits
//! for a collection of the same store deadlocks.

use std::collections::{BTreeMap, HashSet};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::accounts::{Account, Class, spare};
use super::error::{Result, StoreError};
use super::files::{Lock, unique};
use super::format::write_format;
use super::handle::Store;
use super::key::{ObjectKey, ObjectKind};
use super::large::{LargeName, folder_name, name_of};
use super::large_source::LargeSource;
use super::names::{LARGE, LOCK, WRITER_TEMP};
use super::pack::{BuiltPack, PackBuilder};
use super::pack_record::{Codec, HEAD, Packer};
use super::staged::LargeStaged;
use super::temp::Temp;
use super::view::Packs;
use crate::hash::ContentHash;
use crate::pool::locked;

const SHARDS: usize = 64;
/// Bytes of an object besides its payload: the record's head, and the entry of the index.
pub(super) const OVERHEAD: u64 = HEAD as u64 + 52;
/// Maximum size of a pack: settling needs space for one more pack, not for one more store.
pub(super) const PACK: u64 = 256 << 20;
const SMALLEST_PACK: u64 = 64 << 10;
/// Disk space of a new pack and its index besides their bytes.
const PACK_OVERHEAD: u64 = 8 << 10;
/// Number of objects after which an appender looks for packs of others.
const LOOK: u32 = 4096;

/// Options for writing. The store's quota limits it in any case.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// Compress while writing: slower, for a tight budget.
    pub compress: bool,
    /// Maximum number of bytes added on disk, temporary ones included, without data shared with the user's files.
    pub budget: Option<u64>,
    /// Part of the budget kept from contents, so that there is room for the nodes that name them.
    pub spare: u64,
    /// Part of the budget kept from large files.
    pub spare_large: u64,
    /// Device of large files that, if they do not fit, are only hashed, and moved in later (`Store::take_in`).
    pub defer_on: Option<(u32, u32)>,
}

/// Result of storing an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    Stored,
    AlreadyThere,
}

/// Result of publishing. The shared lock is held until this is dropped: record the references first.
#[derive(Debug)]
#[must_use = "collections are kept away until this is dropped"]
pub struct Published {
    pub objects: u64,
    pub packs: u64,
    pub large: u64,
    /// Bytes of packs, indexes and large objects.
    pub bytes: u64,
    _lock: Lock,
}

#[derive(Debug)]
pub struct StoreWriter<'s> {
    store: &'s Store,
    options: WriteOptions,
    spent: AtomicU64,
    shards: Vec<Mutex<HashSet<ObjectKey>>>,
    pub(super) built: Mutex<Vec<BuiltPack>>,
    large: Mutex<BTreeMap<[u8; 32], Large>>,
    pub(super) failed: AtomicBool,
    /// Large files that were only hashed.
    deferred: Mutex<HashSet<ContentHash>>,
    /// Created with the first object: a writer that finds everything stored does not touch the disk.
    temp: Mutex<Option<Arc<Temp>>>,
    /// Declared after the temporary files, so that they are removed before their space is released.
    account: Option<Account>,
    lock: Lock,
}

/// A large object that waits for publication.
#[derive(Debug)]
pub(super) struct Large {
    /// Files to be named after its address, with their kind and temporary name. The object is the last one.
    pub(super) files: Vec<(LargeName, String)>,
    pub(super) bytes: u64,
}

impl Store {
    /// Begin to write. Takes the shared lock, and removes what dead writers left if there is no other writer.
    pub fn writer(&self, options: WriteOptions) -> Result<StoreWriter<'_>> {
        let lock = match Lock::take(&self.root, LOCK, true, false)? {
            Some(lock) => {
                self.remove_debris(false)?;
                lock.share(&self.root, LOCK)?;
                lock
            }
            None => self.share_with_writers()?,
        };
        if self.old_format.swap(false, Ordering::SeqCst) {
            write_format(&self.root)?;
        }
        self.view.refresh_if_changed(self)?;
        let account = self.quota.as_ref().map(|quota| Account::open(self, quota)).transpose()?;
        Ok(StoreWriter {
            store: self,
            account,
            options,
            spent: AtomicU64::new(0),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            built: Mutex::default(),
            large: Mutex::default(),
            failed: AtomicBool::new(false),
            deferred: Mutex::default(),
            temp: Mutex::default(),
            lock,
        })
    }
}

impl<'s> StoreWriter<'s> {
    pub fn store(&self) -> &'s Store {
        self.store
    }

    /// An appender for one thread.
    pub fn appender(&self) -> Result<Appender<'_>> {
        let view = self.store.view.refresh_if_changed(self.store)?;
        let packer = || Packer::new().map_err(super::files::failed("compress", self.store.dir()));
        let packer = self.options.compress.then(packer).transpose()?;
        Ok(Appender { writer: self, view, puts: 0, pack: None, chunks: None, packer, buffer: Vec::new() })
    }

    /// Whether an object is in the store, or was put by this writer. It cannot be collected meanwhile.
    pub fn contains(&self, key: ObjectKey) -> Result<bool> {
        Ok(self.took(&key) || locked(&self.large).contains_key(&key.hash) || self.store.contains(key)?)
    }

    /// Contents that were only hashed because they do not fit.
    pub fn take_deferred(&self) -> HashSet<ContentHash> {
        std::mem::take(&mut *locked(&self.deferred))
    }

    /// Number of bytes added by this writer so far.
    pub fn spent(&self) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }

    /// Make visible what the appenders, all finished, wrote. From here on it survives the end of this process;
    /// [`Store::sync`] or [`Store::settle`] make it survive a power loss.
    pub fn publish(mut self) -> Result<Published> {
        if self.failed.load(Ordering::SeqCst) {
            return Err(StoreError::Incomplete { dir: self.store.dir().to_owned() });
        }
        let published = match self.account.take() {
            Some(mut account) => account.commit(self.store, || self.make_visible())?,
            None => self.make_visible()?,
        };
        let WriterCounts { objects, packs, large, bytes } = published;
        Ok(Published { objects, packs, large, bytes, _lock: self.lock })
    }

    fn make_visible(&self) -> Result<WriterCounts> {
        let mut published = WriterCounts::default();
        let temp = locked(&self.temp).take();
        if let Some(temp) = &temp {
            for built in std::mem::take(&mut *locked(&self.built)) {
                published.objects += built.entries.len() as u64;
                published.packs += 1;
                published.bytes += built.publish(&temp.folder, &self.store.packs, self.store.boot, None)?;
            }
            // After the packs: a list that exists must find its chunks.
            self.publish_large(temp, &mut published)?;
        }
        Ok(published)
    }

    fn publish_large(&self, temp: &Temp, published: &mut WriterCounts) -> Result<()> {
        for (hash, large) in std::mem::take(&mut *locked(&self.large)) {
            let folder = self.store.large.make_folder(&folder_name(&hash))?;
            for (shape, name) in &large.files {
                temp.folder.rename(name, &folder, &name_of(&hash, *shape))?;
            }
            published.objects += 1;
            published.large += 1;
            published.bytes += large.bytes;
        }
        Ok(())
    }

    pub(super) fn temp(&self) -> Result<Arc<Temp>> {
        let mut temp = locked(&self.temp);
        if let Some(temp) = &*temp {
            return Ok(Arc::clone(temp));
        }
        let id = self.account.as_ref().map_or_else(unique, |account| account.id.clone());
        let made = Arc::new(Temp::named(&self.store.tmp, format!("{WRITER_TEMP}{id}"))?);
        *temp = Some(Arc::clone(&made));
        Ok(made)
    }

    fn shard(&self, key: &ObjectKey) -> &Mutex<HashSet<ObjectKey>> {
        &self.shards[usize::from(key.hash[1]) % SHARDS]
    }

    pub(super) fn took(&self, key: &ObjectKey) -> bool {
        locked(self.shard(key)).contains(key)
    }

    /// Register an object that is certain to be published with this writer, so that others may rely on it.
    pub(super) fn promise(&self, key: ObjectKey) {
        locked(self.shard(&key)).insert(key);
    }

    /// Claim an object, unless another appender did; atomic with the budget, since others then rely on it.
    fn take_on(&self, key: ObjectKey, cost: u64, new_pack: bool) -> Result<bool> {
        let mut shard = locked(self.shard(&key));
        if shard.contains(&key) {
            return Ok(false);
        }
        let content = (Class::Content, self.options.spare);
        let (class, spare) = if key.kind == ObjectKind::Blob { content } else { (Class::Other, 0) };
        self.reserve_within(cost, class, spare)?;
        if let Some(account) = self.account.as_ref().filter(|_| new_pack) {
            account.reserve(self.store, PACK_OVERHEAD, Class::Other)?;
        }
        shard.insert(key);
        Ok(true)
    }

    /// Leave a large file where it is; its address is known.
    pub(crate) fn defer(&self, hash: ContentHash) {
        locked(&self.deferred).insert(hash);
    }

    /// Reserve room for contents.
    pub(super) fn reserve(&self, cost: u64) -> Result<()> {
        self.reserve_within(cost, Class::Content, self.options.spare.max(self.options.spare_large))
    }

    /// Reserve room for a file beside the objects that is about to be written, such as a stat cache.
    pub fn reserve_beside(&self, cost: u64) -> Result<()> {
        self.reserve_within(cost, Class::Other, 0)
    }

    fn reserve_within(&self, cost: u64, class: Class, spare: u64) -> Result<()> {
        let most = self.options.budget.unwrap_or(u64::MAX).saturating_sub(spare);
        let add = |spent: u64| spent.checked_add(cost).filter(|sum| *sum <= most);
        let spent = self.spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        spent.map_err(|spent| StoreError::OverBudget {
            needed: cost,
            left: most.saturating_sub(spent),
            dir: self.store.dir().to_owned(),
        })?;
        let Some(account) = &self.account else { return Ok(()) };
        let reserved = account.reserve(self.store, cost, class);
        if reserved.is_err() {
            self.spent.fetch_sub(cost, Ordering::Relaxed);
        }
        reserved
    }

    /// Number of bytes of contents that may still be added; `None` without a limit.
    pub(super) fn room(&self) -> Result<Option<u64>> {
        let most = self.options.budget.map(|budget| budget.saturating_sub(self.options.spare));
        let budget = most.map(|most| most.saturating_sub(self.spent()));
        let Some(account) = &self.account else { return Ok(budget) };
        let room = account.room(self.store)?;
        Ok(Some(budget.map_or(room, |budget| budget.min(room))))
    }

    /// Release room reserved for contents.
    pub(super) fn give_back(&self, cost: u64) {
        self.spent.fetch_sub(cost, Ordering::Relaxed);
        if let Some(account) = &self.account {
            account.give_back(cost, Class::Content);
        }
    }

    /// Maximum size of a pack: rewriting one needs room for one more, which is kept from contents.
    fn largest_pack(&self) -> u64 {
        let limit = self.store.quota.as_ref().map_or(0, |quota| quota.total);
        if limit == 0 { PACK } else { PACK.min(spare(limit)).max(SMALLEST_PACK) }
    }
}

#[cfg(test)]
impl StoreWriter<'_> {
    /// End as a killed process does: files stay on disk, locks are released.
    pub(super) fn die(mut self) {
        if let Some(account) = self.account.take() {
            account.die();
        }
        std::mem::forget(locked(&self.temp).take());
    }
}

impl StoreWriter<'_> {
    /// Keep a large object for publication; false if it is stored already.
    pub(super) fn keep_large(&self, hash: &ContentHash, large: impl FnOnce() -> Large) -> Result<bool> {
        let key = ObjectKey::from(*hash);
        if self.took(&key) || self.store.contains(key)? {
            return Ok(false);
        }
        let mut kept = locked(&self.large);
        let fresh = !kept.contains_key(&key.hash);
        if fresh {
            kept.insert(key.hash, large());
        }
        Ok(fresh)
    }
}

#[derive(Default)]
struct WriterCounts {
    objects: u64,
    packs: u64,
    large: u64,
    bytes: u64,
}

/// One thread's access to the store.
#[derive(Debug)]
pub struct Appender<'w> {
    pub(super) writer: &'w StoreWriter<'w>,
    view: Arc<Packs>,
    puts: u32,
    pack: Option<PackBuilder>,
    /// Pack of the chunks, kept apart so that a large file that is not kept can be taken back.
    pub(super) chunks: Option<PackBuilder>,
    packer: Option<Packer>,
    pub(super) buffer: Vec<u8>,
}

impl<'w> Appender<'w> {
    /// Whether objects are compressed while writing.
    pub(crate) fn compresses(&self) -> bool {
        self.packer.is_some()
    }

    /// Store an object whose address the caller has computed from these very bytes.
    pub fn put(&mut self, key: ObjectKey, bytes: &[u8]) -> Result<Put> {
        if self.writer.took(&key) || self.stored(&key, bytes.len() as u64)? {
            return Ok(Put::AlreadyThere);
        }
        let size = bytes.len() as u64;
        let too_large = || StoreError::TooLarge { size, dir: self.writer.store.dir().to_owned() };
        let raw = u32::try_from(size).map_err(|_| too_large())?;
        let packed = self.compressed(bytes)?;
        let (codec, payload) = packed.as_deref().map_or((Codec::Raw, bytes), |packed| (Codec::Zstd, packed));
        let cost = payload.len() as u64 + OVERHEAD;
        if !self.writer.take_on(key, cost, self.needs_pack())? {
            return Ok(Put::AlreadyThere);
        }
        // From here on others rely on it.
        let appended = self.append(key, codec, raw, payload);
        if appended.is_err() {
            self.writer.failed.store(true, Ordering::SeqCst);
        }
        appended.map(|()| Put::Stored)
    }

    /// The compressed bytes, if the writer compresses and that saves space.
    pub(super) fn compressed(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(packer) = &mut self.packer else { return Ok(None) };
        packer.pack(bytes).map_err(super::files::failed("compress", self.writer.store.dir()))
    }

    fn append(&mut self, key: ObjectKey, codec: Codec, raw: u32, payload: &[u8]) -> Result<()> {
        if self.needs_pack() {
            self.close()?;
        }
        let pack = match &mut self.pack {
            Some(pack) => pack,
            none => none.insert(PackBuilder::create(&self.writer.temp()?.folder, &unique())?),
        };
        pack.append(key, codec, raw, payload)
    }

    fn needs_pack(&self) -> bool {
        self.pack.as_ref().is_none_or(|pack| pack.len() >= self.writer.largest_pack())
    }

    fn close(&mut self) -> Result<()> {
        let pack = self.pack.take();
        self.close_pack(pack)
    }

    pub(super) fn close_pack(&mut self, pack: Option<PackBuilder>) -> Result<()> {
        if let Some(pack) = pack {
            let built = pack.finish().inspect_err(|_| self.writer.failed.store(true, Ordering::SeqCst))?;
            locked(&self.writer.built).push(built);
        }
        Ok(())
    }

    pub(super) fn stored(&mut self, key: &ObjectKey, size: u64) -> Result<bool> {
        let store = self.writer.store;
        self.puts += 1;
        if self.puts.is_multiple_of(LOOK) {
            self.view = store.view.refresh_if_changed(store)?;
        }
        Ok(self.view.holds(key) || (size >= LARGE && store.large_is_there(key)?))
    }

    /// Stage a large file: by sharing its data if the filesystem can, otherwise by reading it once. `sparse`: look for
    /// holes. It is stored when the caller commits it, sure that it did not change meanwhile.
    pub fn put_large(
        &mut self,
        source: BorrowedFd<'_>,
        size: u64,
        sparse: bool,
    ) -> Result<LargeStaged<'_, 'w>> {
        self.put_known(source, &LargeSource { size, sparse, ..LargeSource::default() })
    }

    /// The writer, if a large file of this device may stay where it is until it is moved into the store.
    pub(crate) fn deferring(&self, device: (u32, u32)) -> Option<&'w StoreWriter<'w>> {
        (self.writer.options.defer_on == Some(device)).then_some(self.writer)
    }

    /// Finish. The objects become visible when the writer publishes.
    pub fn finish(mut self) -> Result<()> {
        let chunks = self.chunks.take();
        self.close_pack(chunks)?;
        self.close()
    }
}

impl Drop for Appender<'_> {
    fn drop(&mut self) {
        // Its objects are lost, and others may rely on them.
        if self.pack.is_some() || self.chunks.is_some() {
            self.writer.failed.store(true, Ordering::SeqCst);
        }
    }
}
