//! Repair of projects with damaged files.

use std::path::{Path, PathBuf};

use nono_history::removal::set_file_aside;

use crate::error::{CheckpointError, Result};
use crate::folder::Folder;
use crate::history::History;
use crate::json;
use crate::manager::CheckpointManager;
use crate::manager::open::Bounds;
use crate::project::{PROJECT, Project};
use crate::restores::ProjectRestores;

/// Result or preview of a repair.
#[derive(Debug, Default)]
pub struct Repaired {
    /// Damaged files that were moved aside and rebuilt from the engine's record.
    pub files: Vec<PathBuf>,
    /// Problems that could not be repaired. They contain file names: escape them before printing.
    pub problems: Vec<String>,
}

impl CheckpointManager {
    /// Moves damaged files of all projects aside and rebuilds them, after the engine's ([`nono_snapshot::repair`]).
    pub fn repair(&self, dry_run: bool) -> Result<Repaired> {
        let mut repaired = Repaired::default();
        for dir in self.project_dirs()? {
            let damaged = damaged_files(&dir);
            if damaged.is_empty() {
                continue;
            }
            if !dry_run && let Err(error) = self.put_one_in_order(&dir) {
                repaired.problems.push(format!("{}: {error}", dir.display()));
            }
            repaired.files.extend(damaged);
        }
        Ok(repaired)
    }

    fn put_one_in_order(&self, dir: &Path) -> Result<()> {
        // Opening a project repairs it.
        if let Some(folder) = Folder::at(dir)? {
            let open = self.open_folder(folder, Bounds::None)?;
            ProjectRestores::load_or_begin(&open.folder.dir)?;
            return Ok(());
        }
        // The project cannot be read at all.
        let path = dir.join(PROJECT);
        if path.exists() { Ok(set_file_aside(&path)?) } else { Ok(()) }
    }
}

/// Unreadable files of a project, without the engine's.
fn damaged_files(dir: &Path) -> Vec<PathBuf> {
    let damaged = |error: CheckpointError| match error {
        CheckpointError::Damaged { path, .. } => Some(path),
        _ => None,
    };
    let project = json::load::<Project>(&dir.join(PROJECT)).err().and_then(damaged);
    let history = History::load(dir).err().and_then(damaged);
    [project, history, ProjectRestores::damage(dir)].into_iter().flatten().collect()
}
