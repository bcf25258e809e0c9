//! Purging a path from the checkpoints of its project and from all sessions.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nono_checkpoint::forget::{Holding, Purged};
use nono_checkpoint::{CheckpointError, CheckpointManager, project};

use super::PathError;
use crate::rollback::{Catalogue, SessionEntry};

/// Checkpoints and sessions that have a path.
#[derive(Clone, Debug, Default)]
pub struct HoldingEverywhere {
    /// Path without symlinks.
    pub path: PathBuf,
    pub checkpoints: Holding,
    /// Sessions, newest first, each with the number of snapshots that have the path.
    pub sessions: Vec<(SessionEntry, u64)>,
}

/// Result of purging a path.
#[derive(Clone, Debug, Default)]
pub struct PurgedEverywhere {
    pub checkpoints: Purged,
    /// Sessions that had the path, and in how many snapshots.
    pub sessions: Vec<(String, u64)>,
    /// Sessions that still have the path, and why.
    pub held: Vec<(String, String)>,
}

impl HoldingEverywhere {
    pub fn is_nothing(&self) -> bool {
        self.checkpoints.checkpoints.is_empty() && self.checkpoints.others == 0 && self.sessions.is_empty()
    }
}

impl PurgedEverywhere {
    /// Whether nothing had the path.
    pub fn is_nothing(&self) -> bool {
        self.checkpoints.is_nothing() && self.sessions.is_empty() && self.held.is_empty()
    }

    /// Whether neither the path nor its content is left.
    pub fn is_whole(&self) -> bool {
        self.held.is_empty() && self.checkpoints.held_by.is_empty()
    }
}

/// What purging a path would change.
pub fn holding(
    manager: &CheckpointManager,
    catalogue: &Catalogue,
    path: &Path,
) -> Result<HoldingEverywhere, PathError> {
    let path = project::place(path)?;
    let sessions = catalogue.holding(&path).map_err(PathError::Other)?;
    let checkpoints = match manager.holding(&path) {
        Err(error) => Holding { project: without_project(&path, error)?, ..Holding::default() },
        Ok(holding) => holding,
    };
    Ok(HoldingEverywhere { path, checkpoints, sessions })
}

/// Purge the contents of a path from the checkpoints of its project and from all sessions that are not running. The
/// file itself is not touched.
pub fn forget(
    manager: &CheckpointManager,
    catalogue: &Catalogue,
    path: &Path,
) -> Result<PurgedEverywhere, PathError> {
    let path = project::place(path)?;
    // First what may be refused.
    let (mut purged, mut contents) = match manager.take_out(&path) {
        Err(error) => {
            let project = without_project(&path, error)?;
            (Purged { project, path: path.clone(), ..Purged::default() }, BTreeSet::new())
        }
        Ok(taken) => taken,
    };
    let sessions = catalogue.forget(&path).map_err(PathError::Other)?;
    contents.extend(sessions.contents);
    let mut still = BTreeSet::new();
    // An interrupted purge may have left objects that are not listed any more.
    if !contents.is_empty() || !sessions.sessions.is_empty() {
        let stores: BTreeSet<PathBuf> = sessions.stores.into_iter().chain([manager.store_dir()]).collect();
        for store in stores {
            let (held_by, there) = manager.purge(&store, &contents)?;
            purged.held_by.extend(held_by);
            still.extend(there);
        }
    }
    purged.contents = (contents.len() - still.len()) as u64;
    Ok(PurgedEverywhere { checkpoints: purged, sessions: sessions.sessions, held: sessions.held })
}

/// Folder to report if there are no checkpoints: sessions may still have the path.
fn without_project(path: &Path, error: CheckpointError) -> Result<PathBuf, CheckpointError> {
    match error {
        CheckpointError::NoProject { .. } | CheckpointError::TooBroad { .. } => {
            Ok(path.parent().unwrap_or(path).to_owned())
        }
        error => Err(error),
    }
}
