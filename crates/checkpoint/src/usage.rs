//! How much room checkpoints take, for those who cannot wait for an exact answer: `projects/usage.json`.
//!
//! The number is exact at the last sweep, and grows by what each checkpoint wrote since. It is never too small: whoever
//! is about to write reserves its budget first, and one that was killed leaves its reservation behind, which is seen by
//! the next one (nobody holds `projects/.writing` any more). Then, and when the file is missing or damaged, everything
//! that is there is counted as the checkpoints' own; where that would be too much, it is counted exactly.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nono_snapshot::file::{self, Sync};
use nono_snapshot::hash::content_hash;
use nono_snapshot::store::Store;
use nono_snapshot::{SnapshotError, shares};
use nono_sys::fs::disk_bytes;
use serde::{Deserialize, Serialize};

use crate::error::CheckpointError;
use crate::manager::Host;

const FILE: &str = "usage.json";
const LOCK: &str = ".usage";
const WRITING: &str = ".writing";
const FORMAT: u32 = 1;
/// What files and folders take beside what is in them.
const BESIDE: u64 = 64 << 10;
/// One part in so many is left to others that write at the same time.
const OTHERS: u64 = 16;

/// What is known of the room that is taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    format: u32,
    used: u64,
    /// All that was ever written: what came while somebody was counting is known by it.
    written: u64,
    exact: bool,
    /// Something did not fit.
    short: bool,
    /// Of those who are writing, or were killed.
    reserved: Vec<(u64, u64)>,
    checksum: String,
}

impl Known {
    fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut known = Known { format: FORMAT, checksum: String::new(), ..self.clone() };
        known.checksum = content_hash(&serde_json::to_vec(&known)?).hex();
        serde_json::to_vec(&known)
    }

    /// Nothing where it is damaged: it is counted again then.
    fn decode(bytes: &[u8]) -> Option<Known> {
        let known: Known = serde_json::from_slice(bytes).ok()?;
        (known.encode().ok()?.as_slice() == bytes).then_some(known)
    }
}

/// The room that checkpoints take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub bytes: u64,
    /// As it was counted, and nothing was written since.
    pub exact: bool,
}

/// The counter of one state folder.
#[derive(Clone, Debug)]
pub struct Usage {
    projects: PathBuf,
    store: PathBuf,
}

/// Room for what one manager writes. What that was is added to the counter when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Reservation {
    usage: Usage,
    id: u64,
    /// What the store may grow by; nothing for no limit.
    pub budget: Option<u64>,
    written: Option<Arc<AtomicU64>>,
    /// Folders that grow with it, and what they had.
    beside: Vec<(PathBuf, u64)>,
    /// Shared with all who write.
    writing: File,
}

impl Usage {
    pub fn new(host: &Host) -> Usage {
        Usage { projects: host.state_dir.join("projects"), store: host.state_dir.join("store") }
    }

    /// What is known without counting; nothing where nothing is.
    pub fn known(&self) -> Option<Taken> {
        let known = self.read().ok()??;
        let reserved: u64 = known.reserved.iter().map(|(_, bytes)| bytes).sum();
        Some(Taken { bytes: known.used, exact: known.exact && reserved == 0 })
    }

    /// Reserve room within `max` bytes for all checkpoints; 0 is no limit.
    pub fn reserve(&self, max: u64) -> Result<Reservation, CheckpointError> {
        file::make_dirs(&self.projects).map_err(CheckpointError::io(&self.projects))?;
        let _one = self.lock()?;
        let (writing, nobody) = self.begin_writing()?;
        let mut known = match self.read()? {
            Some(known) if !nobody || known.reserved.is_empty() => known,
            // Whoever made these was killed, or nothing is known at all.
            found => self.estimate(&found.unwrap_or_default(), max)?,
        };
        let reserved: u64 = known.reserved.iter().map(|(_, bytes)| bytes).sum();
        let left = max.saturating_sub(known.used).saturating_sub(reserved);
        let left = left.saturating_sub(left / OTHERS);
        let id = unique();
        known.reserved.push((id, left));
        self.write(&known)?;
        let budget = (max > 0).then(|| left.saturating_sub(BESIDE));
        Ok(Reservation { usage: self.clone(), id, budget, written: None, beside: Vec::new(), writing })
    }

    /// Something did not fit: more room is needed than is left.
    pub(crate) fn note_short(&self) -> Result<(), CheckpointError> {
        let _one = self.lock()?;
        let mut known = self.read()?.unwrap_or_default();
        known.short = true;
        self.write(&known)
    }

    pub(crate) fn is_short(&self) -> bool {
        self.read().ok().flatten().is_some_and(|known| known.short)
    }

    /// Count exactly: what only checkpoints reach in the store, and their own folders. Waits for nobody.
    pub fn count(&self) -> Result<u64, CheckpointError> {
        let before = self.read()?.map_or(0, |known| known.written);
        let used = self.exact()?;
        file::make_dirs(&self.projects).map_err(CheckpointError::io(&self.projects))?;
        let _one = self.lock()?;
        let (_writing, nobody) = self.begin_writing()?;
        let mut known = self.read()?.unwrap_or_default();
        let meanwhile = known.written.saturating_sub(before);
        known.used = used.saturating_add(meanwhile);
        known.exact = meanwhile == 0;
        known.short = false;
        if nobody {
            known.reserved.clear();
        }
        self.write(&known)?;
        Ok(known.used)
    }

    /// Everything that is there, as long as that fits; otherwise exactly.
    fn estimate(&self, known: &Known, max: u64) -> Result<Known, CheckpointError> {
        let all = bytes(&self.store)?.saturating_add(bytes(&self.projects)?);
        let fits = max == 0 || all < max / 2;
        let used = if fits { all } else { self.exact()? };
        Ok(Known { used, exact: !fits, written: known.written, short: known.short, ..Known::default() })
    }

    fn exact(&self) -> Result<u64, CheckpointError> {
        let beside = bytes(&self.projects)?;
        if !self.store.is_dir() {
            return Ok(beside);
        }
        let store = Store::open(&self.store).map_err(SnapshotError::from)?;
        let shares = shares(&store, &self.is_mine(), &|_, _| false)?;
        Ok(shares.mine.saturating_add(beside))
    }

    /// Whether a session of the store, by its folder, is one of checkpoints.
    pub(crate) fn is_mine(&self) -> impl Fn(&Path) -> bool + use<> {
        // Notes name folders by their real paths.
        let projects = self.projects.canonicalize().unwrap_or_else(|_| self.projects.clone());
        let state = projects.parent().unwrap_or(&projects).to_owned();
        move |dir| {
            let below = dir.strip_prefix(&state).ok().and_then(|below| below.components().next());
            let is_legacy = |name: std::path::Component<'_>| crate::legacy::is_name(name.as_os_str());
            dir.starts_with(&projects) || below.is_some_and(is_legacy)
        }
    }

    fn lock(&self) -> Result<Locked, CheckpointError> {
        let (path, file) = self.open(LOCK)?;
        file.lock().map_err(CheckpointError::io(path))?;
        Ok(Locked(file))
    }

    /// Be one of those who write; and whether there is nobody else.
    fn begin_writing(&self) -> Result<(File, bool), CheckpointError> {
        let (path, file) = self.open(WRITING)?;
        let nobody = match file.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Error(source)) => return Err(CheckpointError::Io { path, source }),
        };
        // Everybody here has the counter's lock, so that nobody comes in between.
        file.lock_shared().map_err(CheckpointError::io(path))?;
        Ok((file, nobody))
    }

    fn open(&self, name: &str) -> Result<(PathBuf, File), CheckpointError> {
        let path = self.projects.join(name);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).map_err(CheckpointError::io(&path))?;
        Ok((path, file))
    }

    /// Nothing where it is missing or damaged.
    fn read(&self) -> Result<Option<Known>, CheckpointError> {
        let path = self.projects.join(FILE);
        match file::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Ok(None),
            other => Ok(Known::decode(&other.map_err(CheckpointError::io(path))?)),
        }
    }

    fn write(&self, known: &Known) -> Result<(), CheckpointError> {
        let path = self.projects.join(FILE);
        let damaged = |error: serde_json::Error| CheckpointError::Damaged {
            path: path.clone(),
            what: error.to_string(),
        };
        let bytes = known.encode().map_err(damaged)?;
        file::replace(&path, &bytes, Sync::No).map_err(CheckpointError::io(&path))
    }
}

impl Reservation {
    /// Whoever counts what is written to the store, and the folder that grows with it.
    pub(crate) fn watch(&mut self, written: Arc<AtomicU64>, folder: &Path) -> Result<(), CheckpointError> {
        self.written = Some(written);
        for dir in [folder.to_owned(), self.usage.store.join("cache")] {
            let before = bytes(&dir)?;
            self.beside.push((dir, before));
        }
        Ok(())
    }

    /// How much the folders beside the store grew.
    fn grown_beside(&self) -> Result<u64, CheckpointError> {
        let mut grown = 0u64;
        for (dir, before) in &self.beside {
            grown = grown.saturating_add(bytes(dir)?.saturating_sub(*before));
        }
        Ok(grown)
    }

    /// What is left of the budget; nothing for no limit.
    pub fn left(&self) -> Option<u64> {
        let written = self.written.as_ref().map_or(0, |written| written.load(Ordering::Relaxed));
        self.budget.map(|budget| budget.saturating_sub(written))
    }

    fn commit(&self) -> Result<(), CheckpointError> {
        let written = self.written.as_ref().map_or(0, |written| written.load(Ordering::Relaxed));
        let _one = self.usage.lock()?;
        // What is damaged now is counted by the next one.
        let Some(mut known) = self.usage.read()? else { return Ok(()) };
        known.reserved.retain(|(id, _)| *id != self.id);
        let store = if written == 0 { 0 } else { written.saturating_add(BESIDE) };
        let grown = store.saturating_add(self.grown_beside()?);
        known.used = known.used.saturating_add(grown);
        known.written = known.written.saturating_add(grown);
        known.exact &= grown == 0;
        self.usage.write(&known)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        // Where it cannot be written down, the reservation stays, and the next one counts.
        let _ = self.commit();
        // Closing is not enough: a process that is just being forked has the descriptor until it executes.
        let _ = self.writing.unlock();
    }
}

#[derive(Debug)]
#[must_use]
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// A number that no other reservation has, dead or alive.
fn unique() -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    (u64::from(std::process::id()) << 32) ^ nono_sys::time::now_ms() ^ (count << 52)
}

/// As `du` counts.
pub(crate) fn bytes(path: &Path) -> Result<u64, CheckpointError> {
    disk_bytes(path).map_err(|(path, source)| CheckpointError::Io { path, source })
}
