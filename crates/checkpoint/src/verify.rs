//! Verification: every byte of the store once, then each checkpoint of each project. Damage is reported by path.

use std::path::{Path, PathBuf};

use nono_history::verify::{self, StoreVerified};
use nono_snapshot::store::Store;
use nono_snapshot::{CaptureError, Checks, Observer, SnapshotError, SnapshotId};

use crate::error::Result;
use crate::folder::Folder;
use crate::history::Checkpoint;
use crate::manager::CheckpointManager;
use crate::manager::open::Bounds;

/// Result of a verification.
#[derive(Debug, Default)]
pub struct ProjectVerified {
    pub projects: u64,
    pub checkpoints: u64,
    pub objects: u64,
    pub bytes: u64,
    /// Checkpoints that cannot be restored as a whole.
    pub lost: Vec<Lost>,
    /// Other problems of the store and of projects. They contain file names: escape them before printing.
    pub problems: Vec<String>,
}

/// Losses of one checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    pub project: PathBuf,
    pub checkpoint: Checkpoint,
    /// Lost paths; a directory stands for everything in it.
    pub paths: Vec<PathBuf>,
}

impl ProjectVerified {
    pub fn is_good(&self) -> bool {
        self.lost.is_empty() && self.problems.is_empty()
    }
}

impl CheckpointManager {
    /// Verifies the store, and the project of this path; without a path, all projects.
    pub fn verify(&self, dir: Option<&Path>) -> Result<ProjectVerified> {
        let dirs = self.dirs_of(dir, |folder| Ok(folder.join("record.json").is_file()))?;
        let mut verified = ProjectVerified::default();
        let mut checks = Checks::default();
        let mut found = StoreVerified::default();
        if self.store_dir().is_dir() {
            let store = Store::open(&self.store_dir()).map_err(SnapshotError::from)?;
            found = verify::store(&store, &mut checks, self.watcher())?;
            (verified.objects, verified.bytes) = (found.objects, found.bytes);
            verified.problems.append(&mut found.problems);
        }
        for dir in dirs {
            if self.watcher().cancelled() {
                return Err(SnapshotError::from(CaptureError::Cancelled).into());
            }
            let checked = self.verify_project(&dir, &found, &mut checks, &mut verified);
            // A project that was removed meanwhile is not a problem.
            if let Err(error) = checked.or_else(|error| if dir.exists() { Err(error) } else { Ok(()) }) {
                verified.problems.push(format!("{}: {error}", dir.display()));
            }
        }
        Ok(verified)
    }

    fn verify_project(
        &self,
        dir: &Path,
        store: &StoreVerified,
        checks: &mut Checks,
        verified: &mut ProjectVerified,
    ) -> Result<()> {
        let Some(folder) = Folder::at(dir)? else { return Ok(()) };
        let open = self.open_folder(folder, Bounds::None)?;
        verified.projects += 1;
        let project = open.workdir().to_owned();
        let found = verify::owner(&open.manager, store, checks);
        verified.checkpoints += open.history.checkpoints.len() as u64;
        // Others than checkpoints are safety snapshots and marks.
        for (id, paths) in found.lost {
            let SnapshotId::Number(number) = id else { continue };
            if let Some(checkpoint) = open.history.of_snapshot(number).cloned() {
                verified.lost.push(Lost { project: project.clone(), checkpoint, paths });
            }
        }
        for problem in found.problems {
            let whose = match &problem.id {
                Some(SnapshotId::Number(number)) => {
                    let line = open.history.of_snapshot(*number);
                    line.map_or_else(
                        || format!("snapshot {number}"),
                        |line| format!("checkpoint {}", line.id),
                    )
                }
                Some(other) => other.to_string(),
                None => "its record".to_owned(),
            };
            verified.problems.push(format!("{}: {whose}: {}", project.display(), problem.what));
        }
        Ok(())
    }
}
