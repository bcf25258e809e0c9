//! How much room checkpoints take: the part of the store's ledger that is theirs.
//!
//! The number is exact at the last count, and grows by what each checkpoint writes since, so it is never too small.
//! Counting looks at everything that snapshots name, so it is done by sweeps and before a checkpoint is refused.

use std::path::{Path, PathBuf};

use nono_snapshot::store::{Owner, Quota, Store};
use nono_snapshot::{SnapshotError, shares};
use nono_sys::fs::disk_bytes;

use crate::error::CheckpointError;
use crate::manager::Host;

/// Folders beside the store that count.
const BESIDE: [&str; 2] = ["rollbacks", "projects"];

/// The room that checkpoints take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub bytes: u64,
    /// As it was counted, and nothing was written since.
    pub exact: bool,
}

/// The room of one state folder.
#[derive(Clone, Debug)]
pub struct Usage {
    projects: PathBuf,
    store: PathBuf,
}

impl Usage {
    pub fn new(host: &Host) -> Usage {
        Usage { projects: host.state_dir.join("projects"), store: host.state_dir.join("store") }
    }

    /// Limits for what checkpoints write, with `max` bytes for all of them; 0 is no limit.
    pub fn quota(&self, max: u64) -> Quota {
        Quota {
            owner: Owner::Checkpoint,
            total: 0,
            checkpoints: max,
            beside: BESIDE.map(str::to_owned).into(),
        }
    }

    /// The store, with these limits.
    pub(crate) fn open(&self, max: u64) -> Result<Store, CheckpointError> {
        Ok(Store::open(&self.store).map_err(SnapshotError::from)?.with_quota(self.quota(max)))
    }

    /// What is known without counting; nothing where nothing is.
    pub fn known(&self) -> Option<Taken> {
        if !self.store.is_dir() {
            return None;
        }
        let balance = Store::open(&self.store).ok()?.balance().ok()??;
        Some(Taken { bytes: balance.checkpoints, exact: balance.checkpoints_exact })
    }

    /// Count exactly: what only checkpoints reach in the store, and their own folders. Waits for no writer.
    pub fn count(&self) -> Result<u64, CheckpointError> {
        let beside = bytes(&self.projects)?;
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

    /// Whether a session of the store, by its folder, is one of checkpoints.
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

/// As `du` counts.
pub(crate) fn bytes(path: &Path) -> Result<u64, CheckpointError> {
    disk_bytes(path).map_err(|(path, source)| CheckpointError::Io { path, source })
}
