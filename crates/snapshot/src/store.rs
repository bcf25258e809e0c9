//! The content store: every object once, by its address, for all sessions of a machine.
//!
//! Small objects are appended to packs (`packs/`). A large file is an object in `large/`: a clone that shares its data
//! if the filesystem supports that, otherwise a list of chunks, which are in packs. All become visible by a rename,
//! when they are complete. Writing neither compresses nor waits for the disk: [`Store::settle`] does both later, beside
//! readers and writers of any process. Nothing read is trusted: every object is checked against its address before it
//! is returned.
//!
//! File modes are flags: a file with its owner's `w` is not known to be durable yet, a large object with `x` stays as
//! it is.

mod chunked;
mod chunks;
mod clones;
mod error;
mod files;
mod gc;
mod hashing;
mod id;
mod index;
mod large;
mod large_names;
mod ledger;
mod move_in;
mod pack;
mod record;
mod refused;
mod reserve;
mod rewrite;
mod settle;
mod spans;
mod staged;
mod temp;
#[cfg(test)]
mod tests;
mod usage;
mod verify;
mod view;
mod writer;

use std::fmt;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::hash::{ContentHash, TreeId};
use error::StoreError as Error;
use files::{Folder, Lock, pwrite_all, read_all};
use spans::SpanFile;
use temp::Temp;
use view::View;

pub use error::{Damage, StoreError, StoreProblem};
pub use gc::Collected;
pub use ledger::{Balance, Owner, Quota};
pub(crate) use reserve::RESERVE;
pub use settle::{Settled, Synced};
pub(crate) use staged::LargeSource;
pub use staged::LargeStaged;
pub use usage::{Shares, Usage};
pub use verify::StoreVerified;
pub use writer::{Appender, Published, Put, StoreWriter, WriteOptions};

/// Size from which on files are large objects; smaller ones are stored in packs in one piece.
pub const LARGE: u64 = 4 << 20;

/// Mode of a durable file; the next constant is that of one that is not durable yet.
const DURABLE: u32 = 0o400;
const NEW: u32 = 0o600;
/// Mode bit of a large object that stays as it is: shared with the user's file, or incompressible.
const KEEP: u32 = 0o100;

const LOCK: &str = "lock";
const MAINTENANCE: &str = "maintenance";
/// Shared lock of processes that wait for the maintenance lock: settling yields to them.
const WANTED: &str = "wanted";
/// Lock of a collection while it waits for writers: new writers let it go first.
const GATE: &str = "gate";
/// Maximum time that new writers wait at the gate. Bounded, because a process that already writes and begins a second
/// time would wait for a collection that waits for it.
const GATE_PATIENCE: Duration = Duration::from_secs(10);
const GATE_POLL: Duration = Duration::from_millis(5);
/// Lock of the process that settles after a run, and of the one that waits for it.
const SETTLER: &str = "settler";
const NEXT_SETTLER: &str = "settler.next";
const FORMAT: &str = "FORMAT";
/// Format line with the version; a checksum follows. Version 1 had no chunks, and would take their packs for empty
/// ones.
const VERSION: &str = "nono store 2";
const WITHOUT_CHUNKS: &str = "nono store 1";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// Content of a file, by its [`ContentHash`].
    Blob,
    /// Node of a directory, by its [`TreeId`].
    Tree,
    /// Frozen rules, by the [`ContentHash`] of their bytes.
    Rules,
    /// Chunk of a large file, by a hash of its own. Internal to the store.
    Chunk,
}

impl ObjectKind {
    fn byte(self) -> u8 {
        match self {
            ObjectKind::Blob => 1,
            ObjectKind::Tree => 2,
            ObjectKind::Rules => 3,
            ObjectKind::Chunk => 4,
        }
    }

    fn from_byte(byte: u8) -> Option<ObjectKind> {
        match byte {
            1 => Some(ObjectKind::Blob),
            2 => Some(ObjectKind::Tree),
            3 => Some(ObjectKind::Rules),
            4 => Some(ObjectKind::Chunk),
            _ => None,
        }
    }
}

/// Address of an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    pub kind: ObjectKind,
    pub hash: [u8; 32],
}

impl ObjectKey {
    fn chunk(hash: [u8; 32]) -> ObjectKey {
        ObjectKey { kind: ObjectKind::Chunk, hash }
    }

    pub fn rules(hash: ContentHash) -> ObjectKey {
        ObjectKey { kind: ObjectKind::Rules, hash: *hash.as_bytes() }
    }
}

impl From<ContentHash> for ObjectKey {
    fn from(hash: ContentHash) -> ObjectKey {
        ObjectKey { kind: ObjectKind::Blob, hash: *hash.as_bytes() }
    }
}

impl From<TreeId> for ObjectKey {
    fn from(tree: TreeId) -> ObjectKey {
        ObjectKey { kind: ObjectKind::Tree, hash: *tree.as_bytes() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ObjectKind::Blob => "content",
            ObjectKind::Tree => "directory",
            ObjectKind::Rules => "rules",
            ObjectKind::Chunk => "chunk",
        };
        write!(f, "{kind} {}", ContentHash::from_bytes(self.hash))
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// A store. Share it by reference or `Arc`; several processes may have the same folder open.
#[derive(Debug)]
pub struct Store {
    root: Folder,
    packs: Folder,
    large: Folder,
    tmp: Arc<Folder>,
    view: View,
    boot: [u8; 16],
    /// Limits for writers.
    quota: Option<Quota>,
    /// Whether the format file is that of version 1.
    old_format: std::sync::atomic::AtomicBool,
}

impl Store {
    /// Open the store in this folder, creating it if it is missing.
    pub fn open(dir: &Path) -> Result<Store, StoreError> {
        let root = Folder::make(dir)?;
        let old_format = check_format(&root)? == StoreFormat::Old;
        Ok(Store {
            old_format: old_format.into(),
            packs: root.make_folder("packs")?,
            large: root.make_folder("large")?,
            tmp: Arc::new(root.make_folder("tmp")?),
            view: View::default(),
            boot: view::boot_id(),
            quota: None,
            root,
        })
    }

    pub fn dir(&self) -> &Path {
        self.root.path()
    }

    /// Id of the current boot.
    pub(crate) fn boot(&self) -> [u8; 16] {
        self.boot
    }

    /// Whether no part of it may have been damaged by a power loss.
    pub(crate) fn is_sound(&self) -> Result<bool, StoreError> {
        let view = self.view.now(self)?;
        Ok(view.packs.iter().all(|pack| !pack.suspect) && !self.has_suspect_large()?)
    }

    /// Whether the object is stored, so that it need not be stored again. False for objects that a crash of the machine
    /// may have damaged.
    pub fn contains(&self, key: ObjectKey) -> Result<bool, StoreError> {
        if let Some(pack) = self.view.now(self)?.holder(&key)
            // A known pack may be gone: a collection of another process may have removed it.
            && self.packs.stat(&pack::index_name(&pack.id))?.is_some()
        {
            return Ok(true);
        }
        Ok(self.view.refresh_if_changed(self)?.holds(&key) || self.large_is_there(&key)?)
    }

    /// Read a whole object, checked against its address.
    pub fn read(&self, key: ObjectKey) -> Result<Vec<u8>, StoreError> {
        match self.read_packed(key)? {
            Some(bytes) => Ok(bytes),
            None if key.kind == ObjectKind::Blob => self.read_large(key),
            None => Err(self.missing(key)),
        }
    }

    /// The same; `None` if it is larger than `limit`.
    pub fn read_up_to(&self, key: ObjectKey, limit: u64) -> Result<Option<Vec<u8>>, StoreError> {
        if let Some(bytes) = self.read_packed(key)? {
            return Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= limit));
        }
        if key.kind != ObjectKind::Blob {
            return Err(self.missing(key));
        }
        match self.large_size(key)? {
            Some(size) if size > limit => Ok(None),
            _ => self.read_large(key).map(Some),
        }
    }

    /// Restore a file's content into an empty file: hashed while written, with holes if `sparse`. After an error the
    /// file must be discarded.
    pub fn write_to(
        &self,
        hash: ContentHash,
        size: u64,
        sparse: bool,
        out: BorrowedFd<'_>,
    ) -> Result<(), StoreError> {
        let key = ObjectKey::from(hash);
        // Large objects first: a lookup in a folder is cheaper than listing the packs again for a miss.
        if size >= LARGE && self.write_large_to(hash, size, sparse, out)? {
            return Ok(());
        }
        match self.read_packed(key)? {
            Some(bytes) if bytes.len() as u64 != size => Err(Error::Damaged {
                file: self.dir().to_owned(),
                object: Some(key),
                damage: Damage::Content,
            }),
            Some(bytes) => {
                let mut target = SpanFile::new(out, sparse);
                target.data(0, &bytes).map_err(Error::Target)?;
                target.finish(size).map_err(Error::Target)
            }
            None if self.write_large_to(hash, size, sparse, out)? => Ok(()),
            None => Err(self.missing(key)),
        }
    }

    /// Read from the first pack that has it undamaged; `None` if no pack has it.
    fn read_packed(&self, key: ObjectKey) -> Result<Option<Vec<u8>>, StoreError> {
        let mut view = self.view.now(self)?;
        // Packs are replaced while others settle: look again for one that vanished. Each round sees a newer listing.
        for _ in 0..8 {
            let mut bad = None;
            for (pack, entry) in view.find(&key) {
                let read = self.view.open(self, pack).and_then(|open| open.object(&entry));
                match read {
                    Ok(bytes) => return Ok(Some(bytes)),
                    Err(error) => bad = Some(error),
                }
            }
            let newer = self.view.refresh_if_changed(self)?;
            if Arc::ptr_eq(&newer, &view) {
                return bad.map_or(Ok(None), Err);
            }
            view = newer;
        }
        Ok(None)
    }

    fn missing(&self, key: ObjectKey) -> StoreError {
        Error::Missing { key, dir: self.dir().to_owned() }
    }

    /// Take the maintenance lock: one of settling, collecting and verifying at a time.
    fn maintain(&self, wait: bool) -> Result<Lock, StoreError> {
        if let Some(lock) = Lock::take(&self.root, MAINTENANCE, true, false)? {
            return Ok(lock);
        }
        let _wanted = if wait { Lock::take(&self.root, WANTED, false, true)? } else { None };
        Lock::take(&self.root, MAINTENANCE, true, wait)?
            .ok_or_else(|| Error::Busy { path: self.root.path_of(MAINTENANCE) })
    }

    /// Lock all writers out. Waits for current writers, and makes new ones wait: a stream of them, each sharing the
    /// lock with the one before, would never release it.
    fn exclude_writers(&self, wait: bool) -> Result<Lock, StoreError> {
        let _gate = if wait { Lock::take(&self.root, GATE, true, true)? } else { None };
        Lock::take(&self.root, LOCK, true, wait)?.ok_or_else(|| Error::Busy { path: self.root.path_of(LOCK) })
    }

    /// Take the lock that all writers share.
    fn share_with_writers(&self) -> Result<Lock, StoreError> {
        let start = Instant::now();
        while self.root.stat(GATE)?.is_some()
            && Lock::take(&self.root, GATE, false, false)?.is_none()
            && start.elapsed() < GATE_PATIENCE
        {
            std::thread::sleep(GATE_POLL);
        }
        Lock::take(&self.root, LOCK, false, true)?
            .ok_or_else(|| Error::Busy { path: self.root.path_of(LOCK) })
    }

    /// Whether another process waits for the maintenance lock.
    fn is_wanted(&self) -> Result<bool, StoreError> {
        if self.root.stat(WANTED)?.is_none() {
            return Ok(false);
        }
        Ok(Lock::take(&self.root, WANTED, true, false)?.is_none())
    }

    /// Take the turn to settle, among the processes started for it. One waits for the one that works, and then handles
    /// what is new; any other has nothing left to do.
    pub(crate) fn settlers_turn(&self) -> Result<Option<SettleTurn>, StoreError> {
        let Some(next) = Lock::take(&self.root, NEXT_SETTLER, true, false)? else { return Ok(None) };
        let turn = Lock::take(&self.root, SETTLER, true, true)?;
        drop(next);
        Ok(turn.map(SettleTurn))
    }

    /// Whether its folder was removed or moved while it is open.
    pub(crate) fn is_gone(&self) -> bool {
        let named = std::fs::symlink_metadata(self.dir().join(FORMAT));
        named.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    }
}

/// Exclusive right to settle, while it exists.
#[derive(Debug)]
#[must_use = "another process may settle as soon as this is dropped"]
pub(crate) struct SettleTurn(#[allow(dead_code, reason = "held, not read")] Lock);

/// State of the format file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StoreFormat {
    Ours,
    /// Version 1, which is read like this one.
    Old,
    Damaged,
    Missing,
}

fn read_format(root: &Folder) -> Result<StoreFormat, StoreError> {
    let bytes = match read_all(root, FORMAT) {
        Ok((bytes, _)) => bytes,
        Err(error) if error.is_not_found() => return Ok(StoreFormat::Missing),
        Err(error) => return Err(error),
    };
    if bytes == format_text(VERSION).as_bytes() {
        return Ok(StoreFormat::Ours);
    }
    if bytes == format_text(WITHOUT_CHUNKS).as_bytes() {
        return Ok(StoreFormat::Old);
    }
    let other = std::str::from_utf8(&bytes).ok().and_then(|text| {
        let (named, _) = text.strip_suffix('\n')?.rsplit_once(' ')?;
        (named.starts_with("nono store ") && format_text(named) == text).then_some(())
    });
    match other {
        Some(()) => Err(Error::Version { path: root.path_of(FORMAT) }),
        None => Ok(StoreFormat::Damaged),
    }
}

fn format_text(version: &str) -> String {
    format!("{version} {:016x}\n", xxhash_rust::xxh3::xxh3_64(version.as_bytes()))
}

/// Check the format file. A store of another version is refused. A damaged file is not: packs and indexes have their
/// own version, and one flipped bit must not make all snapshots unusable; `verify` reports it.
fn check_format(root: &Folder) -> Result<StoreFormat, StoreError> {
    let found = read_format(root)?;
    if found == StoreFormat::Missing {
        write_format(root)?;
    }
    Ok(found)
}

fn write_format(root: &Folder) -> Result<(), StoreError> {
    put_file(root, FORMAT, format_text(VERSION).as_bytes())
}

/// Put a small file in place atomically.
fn put_file(root: &Folder, file: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let name = format!("{file}.{}", files::unique());
    let temp = root.create(&name)?;
    let written = pwrite_all(temp.as_fd(), bytes, 0)
        .map_err(files::failed("write", &root.path_of(&name)))
        .and_then(|()| root.rename(&name, root, file));
    match written {
        // Another process removed it as debris while the store was made: either that process put the file in place, or
        // we retry.
        Err(error) if error.is_not_found() => match root.stat(file)? {
            Some(_) => Ok(()),
            None => put_file(root, file, bytes),
        },
        Err(error) => {
            root.unlink(&name)?;
            Err(error)
        }
        Ok(()) => Ok(()),
    }
}
