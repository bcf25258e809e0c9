//! What a checkpoint leaves to be done that no agent should wait for: data settled, room made before it runs out.

use std::path::PathBuf;

use nono_checkpoint::{CheckpointError, CheckpointManager};

/// In a process of its own, at the lowest priority. Every project is tried; the first error is the answer.
pub fn run(manager: &mut CheckpointManager, projects: &[PathBuf]) -> Result<(), CheckpointError> {
    nono_sys::process::step_aside();
    let mut result = Ok(());
    for project in projects {
        result = result.and(manager.settle(project));
    }
    let room = manager.free_room().map(|_| ());
    result.and(room)
}
