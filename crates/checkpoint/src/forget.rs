//! Purging: one path's contents everywhere in its project, or all checkpoints of one project or of all.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nono_snapshot::store::{Key, Store};
use nono_snapshot::{SnapshotError, SnapshotId, holders};

use crate::error::CheckpointError;
use crate::folder::Folder;
use crate::history::{Checkpoint, History};
use crate::manager::open::Bounds;
use crate::manager::{CheckpointManager, Pruned};
use crate::project::{self, Project};
use crate::prune::remove;

/// What purging a path did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    pub project: PathBuf,
    /// Absolute.
    pub path: PathBuf,
    /// Checkpoints, and other snapshots of the project, that had it.
    pub snapshots: u64,
    pub contents: u64,
    /// Others that have the same bytes: the folder of a session or a project, and the paths there. Those stay.
    pub held_by: Vec<(PathBuf, Vec<PathBuf>)>,
}

impl Purged {
    /// Nothing that the project keeps had the path.
    pub fn is_nothing(&self) -> bool {
        self.snapshots == 0 && self.contents == 0
    }
}

/// What has a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    pub project: PathBuf,
    /// Newest first.
    pub checkpoints: Vec<Checkpoint>,
    /// Snapshots that are no checkpoints: those that take restores back, and what an agent left.
    pub others: u64,
}

impl CheckpointManager {
    /// Purge the contents of a path from everything that its project keeps. The file itself is not touched, and is left
    /// out of these checkpoints from now on; one that is taken later has it again.
    pub fn forget(&self, path: &Path) -> Result<Purged, CheckpointError> {
        let path = project::place(path)?;
        let mut open = self.open(&path, Bounds::None)?;
        let project = open.workdir().to_owned();
        if path == project || !path.starts_with(&project) {
            return Err(CheckpointError::Outside { path, project });
        }
        let forgotten = open.manager.forget(&path)?;
        if forgotten.snapshots == 0 && forgotten.contents.is_empty() {
            return Ok(Purged { project, path, ..Purged::default() });
        }
        open.recount()?;
        drop(open);
        self.collect()?;
        let store = Store::open(&self.store_dir()).map_err(SnapshotError::from)?;
        let mut there = Vec::new();
        for hash in &forgotten.contents {
            if store.contains(Key::from(*hash)).map_err(SnapshotError::from)? {
                there.push(*hash);
            }
        }
        let held_by = if there.is_empty() { Vec::new() } else { holders(&store, &there)? };
        let list = |(dir, paths): (PathBuf, BTreeSet<PathBuf>)| (dir, paths.into_iter().collect());
        self.usage().count()?;
        Ok(Purged {
            project,
            path,
            snapshots: forgotten.snapshots,
            contents: forgotten.contents.len() as u64,
            held_by: held_by.into_iter().map(list).collect(),
        })
    }

    /// What forgetting a path would change.
    pub fn holding(&self, path: &Path) -> Result<Holding, CheckpointError> {
        let path = project::place(path)?;
        let open = self.open(&path, Bounds::None)?;
        let mut holding = Holding { project: open.workdir().to_owned(), ..Holding::default() };
        for line in open.history.checkpoints.iter().rev() {
            if open.manager.entry(&line.snapshot_id(), &path)?.is_some() {
                holding.checkpoints.push(line.clone());
            }
        }
        for id in open.manager.snapshots()? {
            if !matches!(id, SnapshotId::Number(_)) && open.manager.entry(&id, &path)?.is_some() {
                holding.others += 1;
            }
        }
        Ok(holding)
    }

    /// Remove all checkpoints of the project of this path, or of all projects, whether they have a name or are pinned.
    pub fn clear(&self, dir: Option<&Path>, dry_run: bool) -> Result<Pruned, CheckpointError> {
        let dirs = match dir {
            None => self.project_dirs()?,
            Some(dir) => {
                let root = self.root_of(dir)?.dir;
                let folder = project::folder_of(self.host(), &root);
                if Project::load(&folder)?.is_none() {
                    return Err(CheckpointError::NoProject { path: root });
                }
                vec![folder]
            }
        };
        let bytes = self.usage().count()?;
        let mut pruned = Pruned { bytes_before: bytes, bytes_after: bytes, ..Pruned::default() };
        for dir in dirs {
            let cleared = clear_one(&dir, dry_run, &mut pruned);
            pruned.problems.extend(cleared.err());
        }
        if !dry_run {
            pruned.problems.extend(self.collect().err());
            pruned.bytes_after = self.usage().count()?;
        }
        Ok(pruned)
    }
}

fn clear_one(dir: &Path, dry_run: bool, pruned: &mut Pruned) -> Result<(), CheckpointError> {
    // What cannot be read any more goes as well: somebody asked for all of it.
    let checkpoints = History::load(dir).map(|history| history.checkpoints).unwrap_or_default();
    if dry_run {
        let Some(project) = Project::load(dir)? else { return Ok(()) };
        pruned.projects_removed.push(project.workdir.clone());
        pruned.removed.push((project.workdir, checkpoints));
        return Ok(());
    }
    let Some(folder) = Folder::at(dir)? else { return Ok(()) };
    remove(&folder)?;
    pruned.projects_removed.push(folder.project.workdir.clone());
    pruned.removed.push((folder.project.workdir.clone(), checkpoints));
    Ok(())
}
