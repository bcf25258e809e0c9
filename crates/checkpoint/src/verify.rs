//! Verification: every byte of the store once, then each checkpoint of each project. Damage is reported by checkpoint
//! and path; everything else can still be restored.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use nono_snapshot::store::{ObjectKey, Store};
use nono_snapshot::{CaptureError, Checks, Observer, SnapshotError, SnapshotId};

use crate::error::CheckpointError;
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
    pub fn is_clean(&self) -> bool {
        self.lost.is_empty() && self.problems.is_empty()
    }
}

impl CheckpointManager {
    /// Verifies the store, and the project of this path; without a path, all projects.
    pub fn verify(&self, dir: Option<&Path>) -> Result<ProjectVerified, CheckpointError> {
        let dirs = match dir {
            None => self.project_dirs()?,
            Some(dir) => {
                let root = self.root_of(dir)?.dir;
                let folder = crate::project::folder_of(self.host(), &root);
                if !folder.join("record.json").is_file() {
                    return Err(CheckpointError::NoProject { path: root });
                }
                vec![folder]
            }
        };
        let mut verified = ProjectVerified::default();
        let mut damaged = HashSet::new();
        let mut checks = Checks::default();
        if self.store_dir().is_dir() {
            let store = Store::open(&self.store_dir()).map_err(SnapshotError::from)?;
            let watcher = self.watcher();
            let found = store.verify(&|| watcher.cancelled(), &|done, total| watcher.progress(done, total));
            let found = found.map_err(SnapshotError::from)?;
            if found.cancelled {
                return Err(cancelled());
            }
            (verified.objects, verified.bytes) = (found.objects, found.bytes);
            for problem in found.problems {
                damaged.extend(problem.object);
                let object = problem.object.map(|object| format!("{object}: ")).unwrap_or_default();
                verified.problems.push(format!("{}: {object}{}", problem.file.display(), problem.what));
            }
        }
        for dir in dirs {
            if self.watcher().cancelled() {
                return Err(cancelled());
            }
            let checked = self.verify_project(&dir, &damaged, &mut checks, &mut verified);
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
        damaged: &HashSet<ObjectKey>,
        checks: &mut Checks,
        verified: &mut ProjectVerified,
    ) -> Result<(), CheckpointError> {
        let Some(folder) = Folder::at(dir)? else { return Ok(()) };
        let open = self.open_folder(folder, Bounds::None)?;
        verified.projects += 1;
        let project = open.workdir().to_owned();
        let problems = open.manager.verify_session_with(checks);
        for line in &open.history.checkpoints {
            verified.checkpoints += 1;
            match open.manager.lost(&line.snapshot_id(), damaged) {
                Ok(paths) if paths.is_empty() => {}
                Ok(paths) => {
                    let (project, checkpoint) = (project.clone(), line.clone());
                    verified.lost.push(Lost { project, checkpoint, paths });
                }
                Err(_) => {
                    let (project, checkpoint) = (project.clone(), line.clone());
                    let paths = vec![project.clone()];
                    verified.lost.push(Lost { project, checkpoint, paths });
                }
            }
        }
        for problem in problems {
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

/// Error for a cancelled verification, whose partial result is useless.
fn cancelled() -> CheckpointError {
    SnapshotError::from(CaptureError::Cancelled).into()
}
