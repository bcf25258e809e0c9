//! Disk usage of checkpoints: their part of the store's ledger.
//!
//! The size is exact at the last count, and grows by what each checkpoint writes since, so it is never too small.
//! Counting reads everything that snapshots reference, so it is done by sweeps and before a checkpoint is refused.

use std::path::{Path, PathBuf};

use nono_history::quota::disk_bytes;
use nono_snapshot::store::{Owner, Quota, Store};
use nono_snapshot::{SnapshotError, shares};

use crate::error::Result;
use crate::host::Host;

/// Folders beside the store that hold sessions and projects.
const BESIDE: [&str; 2] = ["rollbacks", "projects"];

/// Disk usage of checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceUsed {
    pub bytes: u64,
    /// Whether the size is exact: nothing was written since it was counted.
    pub exact: bool,
}

/// Disk usage of one state folder.
#[derive(Clone, Debug)]
pub struct Usage {
    projects: PathBuf,
    store: PathBuf,
}

impl Usage {
    pub fn new(host: &Host) -> Usage {
        Usage { projects: host.state_dir.join("projects"), store: host.state_dir.join("store") }
    }

    /// Quota for what checkpoints write, with `max` bytes for all of them; 0 is no limit.
    pub fn quota(&self, max: u64) -> Quota {
        Quota {
            owner: Owner::Checkpoint,
            total: 0,
            checkpoints: max,
            beside: BESIDE.map(str::to_owned).into(),
        }
    }

    /// Opens the store with this quota.
    pub(crate) fn open(&self, max: u64) -> Result<Store> {
        Ok(Store::open(&self.store).map_err(SnapshotError::from)?.with_quota(self.quota(max)))
    }

    /// Last known size, without counting; `None` if there is none.
    pub fn known(&self) -> Option<SpaceUsed> {
        if !self.store.is_dir() {
            return None;
        }
        let balance = Store::open(&self.store).ok()?.balance().ok()??;
        Some(SpaceUsed { bytes: balance.checkpoints, exact: balance.checkpoints_exact })
    }

    /// Counts exactly what only checkpoints reference in the store, and their own folders. Waits for no writer.
    pub fn count(&self) -> Result<u64> {
        let beside = disk_bytes(&self.projects)?;
        if !self.store.is_dir() {
            return Ok(beside);
        }
        let store = self.open(0)?;
        let before = store.balance().map_err(SnapshotError::from)?.unwrap_or_default();
        let shares = shares(&store, &self.is_mine(), &|_, _| false)?;
        let exact = shares.mine.saturating_add(beside);
        let now = store.set_checkpoints(exact, before.checkpoints_written).map_err(SnapshotError::from)?;
        Ok(now.checkpoints)
    }

    /// Predicate for sessions of the store, by their folder: whether they belong to checkpoints.
    pub(crate) fn is_mine(&self) -> impl Fn(&Path) -> bool + use<> {
        // Sessions are named by their real paths.
        let projects = self.projects.canonicalize().unwrap_or_else(|_| self.projects.clone());
        let state = projects.parent().unwrap_or(&projects).to_owned();
        move |dir| {
            let below = dir.strip_prefix(&state).ok().and_then(|below| below.components().next());
            let is_legacy = |name: std::path::Component<'_>| crate::legacy::is_name(name.as_os_str());
            dir.starts_with(&projects) || below.is_some_and(is_legacy)
        }
    }
}
