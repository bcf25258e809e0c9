//! What checkpoints, runs and restores leave to be done that nobody should wait for: data synced and compressed, room
//! made before it runs out.

use std::path::{Path, PathBuf};

use nono_checkpoint::{CheckpointError, CheckpointManager};
use nono_snapshot::store::Store;
use nono_snapshot::{SnapshotError, settle_store};

/// In a process of its own, at the lowest priority. Every project is tried; the first error is the answer.
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

/// First of all in the process of its own: nothing of the process that started it is held, neither its terminal nor a
/// pipe, and others come first.
pub fn detach() -> std::io::Result<()> {
    nono_sys::process::close_from(3)?;
    nono_sys::process::step_aside();
    Ok(())
}
