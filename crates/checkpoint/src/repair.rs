//! Putting projects in order whose files are damaged.

use std::path::{Path, PathBuf};

use crate::error::CheckpointError;
use crate::folder::Folder;
use crate::history::History;
use crate::json;
use crate::manager::CheckpointManager;
use crate::manager::open::Bounds;
use crate::project::{PROJECT, Project};
use crate::restores::Log;

/// What was, or would be, put in order of projects.
#[derive(Debug, Default)]
pub struct Repaired {
    /// Damaged files that were set aside, and made anew from what the engine's record knows.
    pub files: Vec<PathBuf>,
    /// What could not be put in order. There are names of files in it: escape before a terminal sees it.
    pub problems: Vec<String>,
}

impl CheckpointManager {
    /// Set aside what is damaged of all projects, and make it anew. The engine's own files come first
    /// ([`nono_snapshot::repair`]).
    pub fn repair(&self, dry_run: bool) -> Result<Repaired, CheckpointError> {
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

    /// The same before a sweep; what cannot be put in order is told by the sweep itself.
    pub(crate) fn put_in_order(&self) {
        for dir in self.project_dirs().unwrap_or_default() {
            if !damaged_files(&dir).is_empty() {
                let _ = self.put_one_in_order(&dir);
            }
        }
    }

    fn put_one_in_order(&self, dir: &Path) -> Result<(), CheckpointError> {
        // Whoever opens a project mends it.
        if let Some(folder) = Folder::at(dir)? {
            let open = self.open_folder(folder, Bounds::None)?;
            Log::load_or_begin(&open.folder.dir)?;
            return Ok(());
        }
        // Nothing of it can be read.
        let path = dir.join(PROJECT);
        if path.exists() { json::set_aside(&path) } else { Ok(()) }
    }
}

/// The files of a project that cannot be read, without the engine's.
fn damaged_files(dir: &Path) -> Vec<PathBuf> {
    let damaged = |error: CheckpointError| match error {
        CheckpointError::Damaged { path, .. } => Some(path),
        _ => None,
    };
    let project = json::load::<Project>(&dir.join(PROJECT)).err().and_then(damaged);
    let history = History::load(dir).err().and_then(damaged);
    [project, history, Log::damage(dir)].into_iter().flatten().collect()
}
