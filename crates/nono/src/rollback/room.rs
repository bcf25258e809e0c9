//! Room for the snapshots of a run: what is pruned for them, and how much the store may grow.

use std::path::{Path, PathBuf};

use nono_snapshot::SnapshotError;
use nono_snapshot::store::Store;

use super::catalogue::Catalogue;
use super::error::RollbackError;
use super::prune::Retention;
use super::settings::Settings;

/// How much the store may still grow.
#[derive(Clone, Debug)]
pub(super) struct Room {
    pub(super) catalogue: Catalogue,
    pub(super) max: u64,
    pub(super) dest: Option<PathBuf>,
}

impl Room {
    /// The store that grows.
    pub(super) fn store(&self) -> PathBuf {
        self.dest.as_ref().map_or_else(|| self.catalogue.store_dir(), |dest| dest.join("store"))
    }

    pub(super) fn left(&self) -> u64 {
        let used = match &self.dest {
            None => self.catalogue.usage(),
            Some(dest) => usage_of(dest),
        };
        // What cannot be looked at cannot be written to either, which the snapshot says.
        self.max.saturating_sub(used.unwrap_or(0))
    }

    pub(super) fn ask(self) -> super::running::Room {
        Box::new(move || self.left())
    }
}

/// Prune what is over the bounds; what is used after that.
pub(super) fn make_room(
    catalogue: &Catalogue,
    settings: &Settings,
    warnings: &mut Vec<String>,
) -> Result<u64, RollbackError> {
    let retention = Retention {
        max_sessions: Some(settings.max_sessions),
        max_bytes: Some(settings.max_bytes()),
        lazy: true,
        ..Retention::default()
    };
    let pruned = catalogue.prune(&retention, false)?;
    if pruned.over_budget {
        warnings.push(format!(
            "sessions that are live or pinned use {} MB, more than max_storage_gb = {} allows",
            pruned.bytes_after >> 20,
            settings.max_storage_gb
        ));
    }
    Ok(pruned.bytes_after)
}

pub(super) fn usage_of(dest: &Path) -> Result<u64, RollbackError> {
    let dir = dest.join("store");
    if !dir.exists() {
        return Ok(0);
    }
    let store = Store::open(&dir).map_err(SnapshotError::from)?;
    Ok(store.usage().map_err(SnapshotError::from)?.total())
}
