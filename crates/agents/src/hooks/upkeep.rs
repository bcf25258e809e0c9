//! Background work after checkpoints, runs and restores: sync and compress data, free space before it runs out.

use std::path::{Path, PathBuf};

use nono_checkpoint::{CheckpointError, CheckpointManager};
use nono_snapshot::store::Store;
use nono_snapshot::{SnapshotError, settle_store};

/// Runs in a process of its own, at the lowest priority. Every project is tried; returns the first error.
pub fn run(manager: &mut CheckpointManager, projects: &[PathBuf]) -> Result<(), CheckpointError> {
    let mut result = Ok(());
    for project in projects {
        result = result.and(manager.settle(project));
    }
    let room = manager.free_room().map(|_| ());
    result.and(room)
}

/// Sync and compress the shared store of this state folder, if there is one.
pub fn settle(state_dir: &Path) -> Result<(), SnapshotError> {
    let dir = state_dir.join("store");
    if !dir.is_dir() {
        return Ok(());
    }
    settle_store(&Store::open(&dir)?).map(drop)
}

/// Detach the background process: close inherited descriptors (terminal, pipes) and lower its priority.
pub fn detach() -> std::io::Result<()> {
    nono_sys::process::close_from(3)?;
    nono_sys::process::step_aside();
    Ok(())
}
