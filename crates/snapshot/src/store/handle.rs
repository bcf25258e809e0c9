//! The open store: its folders, its locks, and reading.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::error::{Damage, Result, StoreError};
use super::files::{Folder, Lock};
use super::format::{FORMAT, StoreFormat, check_format};
use super::key::{ObjectKey, ObjectKind};
use super::names::{LARGE, LOCK};
use super::pack::index_name;
use super::quota::Quota;
use super::spans::SpanFile;
use super::view::{View, boot_id};
use crate::hash::ContentHash;

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
/// A store. Share it by reference or `Arc`; several processes may have the same folder open.
#[derive(Debug)]
pub struct Store {
    pub(super) root: Folder,
    pub(super) packs: Folder,
    pub(super) large: Folder,
    pub(super) tmp: Arc<Folder>,
    pub(super) view: View,
    pub(super) boot: [u8; 16],
    /// Limits for writers.
    pub(super) quota: Option<Quota>,
    /// Whether the format file is that of version 1.
    pub(super) old_format: AtomicBool,
}

impl Store {
    /// Open the store in this folder, creating it if it is missing.
    pub fn open(dir: &Path) -> Result<Store> {
        let root = Folder::make(dir)?;
        let old_format = check_format(&root)? == StoreFormat::Old;
        Ok(Store {
            old_format: old_format.into(),
            packs: root.make_folder("packs")?,
            large: root.make_folder("large")?,
            tmp: Arc::new(root.make_folder("tmp")?),
            view: View::default(),
            boot: boot_id(),
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
    pub(crate) fn is_sound(&self) -> Result<bool> {
        let view = self.view.now(self)?;
        Ok(view.packs.iter().all(|pack| !pack.suspect) && !self.has_suspect_large()?)
    }

    /// Whether the object is stored, so that it need not be stored again. False for objects that a crash of the machine
    /// may have damaged.
    pub fn contains(&self, key: ObjectKey) -> Result<bool> {
        if let Some(pack) = self.view.now(self)?.holder(&key)
            // A known pack may be gone: a collection of another process may have removed it.
            && self.packs.stat(&index_name(&pack.id))?.is_some()
        {
            return Ok(true);
        }
        Ok(self.view.refresh_if_changed(self)?.holds(&key) || self.large_is_there(&key)?)
    }

    /// Read a whole object, checked against its address.
    pub fn read(&self, key: ObjectKey) -> Result<Vec<u8>> {
        match self.read_packed(key)? {
            Some(bytes) => Ok(bytes),
            None if key.kind == ObjectKind::Blob => self.read_large(key),
            None => Err(self.missing(key)),
        }
    }

    /// The same; `None` if it is larger than `limit`.
    pub fn read_up_to(&self, key: ObjectKey, limit: u64) -> Result<Option<Vec<u8>>> {
        if let Some(bytes) = self.read_packed(key)? {
            return Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= limit));
        }
        if key.kind != ObjectKind::Blob {
            return Err(self.missing(key));
        }
        match self.open_large(&key.hash)? {
            Some(large) if large.size > limit => Ok(None),
            _ => self.read_large(key).map(Some),
        }
    }

    /// Restore a file's content into an empty file: hashed while written, with holes if `sparse`. After an error the
    /// file must be discarded.
    pub fn write_to(&self, hash: ContentHash, size: u64, sparse: bool, out: BorrowedFd<'_>) -> Result<()> {
        let key = ObjectKey::from(hash);
        // Large objects first: a lookup in a folder is cheaper than listing the packs again for a miss.
        if size >= LARGE && self.write_large_to(hash, size, sparse, out)? {
            return Ok(());
        }
        match self.read_packed(key)? {
            Some(bytes) if bytes.len() as u64 != size => Err(StoreError::Damaged {
                file: self.dir().to_owned(),
                object: Some(key),
                damage: Damage::Content,
            }),
            Some(bytes) => {
                let mut target = SpanFile::new(out, sparse);
                target.data(0, &bytes).map_err(StoreError::Target)?;
                target.finish(size).map_err(StoreError::Target)
            }
            None if self.write_large_to(hash, size, sparse, out)? => Ok(()),
            None => Err(self.missing(key)),
        }
    }

    /// Read from the first pack that has it undamaged; `None` if no pack has it.
    pub(super) fn read_packed(&self, key: ObjectKey) -> Result<Option<Vec<u8>>> {
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

    pub(super) fn missing(&self, key: ObjectKey) -> StoreError {
        StoreError::Missing { key, dir: self.dir().to_owned() }
    }

    /// Take the maintenance lock: one of settling, collecting and verifying at a time.
    pub(super) fn maintain(&self, wait: bool) -> Result<Lock> {
        if let Some(lock) = Lock::take(&self.root, MAINTENANCE, true, false)? {
            return Ok(lock);
        }
        let _wanted = if wait { Lock::take(&self.root, WANTED, false, true)? } else { None };
        Lock::take(&self.root, MAINTENANCE, true, wait)?
            .ok_or_else(|| StoreError::Busy { path: self.root.path_of(MAINTENANCE) })
    }

    /// Lock all writers out. Waits for current writers, and makes new ones wait: a stream of them, each sharing the
    /// lock with the one before, would never release it.
    pub(super) fn exclude_writers(&self, wait: bool) -> Result<Lock> {
        let _gate = if wait { Lock::take(&self.root, GATE, true, true)? } else { None };
        Lock::take(&self.root, LOCK, true, wait)?
            .ok_or_else(|| StoreError::Busy { path: self.root.path_of(LOCK) })
    }

    /// Take the lock that all writers share.
    pub(super) fn share_with_writers(&self) -> Result<Lock> {
        let start = Instant::now();
        while self.root.stat(GATE)?.is_some()
            && Lock::take(&self.root, GATE, false, false)?.is_none()
            && start.elapsed() < GATE_PATIENCE
        {
            std::thread::sleep(GATE_POLL);
        }
        Lock::take(&self.root, LOCK, false, true)?
            .ok_or_else(|| StoreError::Busy { path: self.root.path_of(LOCK) })
    }

    /// Keep upkeep away while a restore runs: settling stops soon, and does not start.
    pub(crate) fn pause_upkeep(&self) -> Result<UpkeepPause> {
        Ok(UpkeepPause { _wanted: Lock::take(&self.root, WANTED, false, true)? })
    }

    /// Wait until maintenance that runs now has ended and removed its temporary files.
    pub(crate) fn wait_for_maintenance(&self) -> Result<()> {
        self.maintain(true).map(drop)
    }

    /// Whether another process waits for the maintenance lock, or keeps upkeep away.
    pub(super) fn is_wanted(&self) -> Result<bool> {
        if self.root.stat(WANTED)?.is_none() {
            return Ok(false);
        }
        Ok(Lock::take(&self.root, WANTED, true, false)?.is_none())
    }

    /// Take the turn to settle, among the processes started for it. One waits for the one that works, and then handles
    /// what is new; any other has nothing left to do.
    pub(crate) fn settlers_turn(&self) -> Result<Option<SettleTurn>> {
        let Some(next) = Lock::take(&self.root, NEXT_SETTLER, true, false)? else { return Ok(None) };
        let turn = Lock::take(&self.root, SETTLER, true, true)?;
        drop(next);
        Ok(turn.map(SettleTurn))
    }

    /// Whether its folder was removed or moved while it is open.
    pub(crate) fn is_gone(&self) -> bool {
        let named = std::fs::symlink_metadata(self.dir().join(FORMAT));
        named.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }
}

/// No settling while this exists: it writes temporary files, and a restore counts on the free space.
#[derive(Debug)]
#[must_use = "settling goes on as soon as this is dropped"]
pub struct UpkeepPause {
    _wanted: Option<Lock>,
}

/// Exclusive right to settle, while it exists.
#[derive(Debug)]
#[must_use = "another process may settle as soon as this is dropped"]
pub(crate) struct SettleTurn(#[allow(dead_code, reason = "held, not read")] Lock);
