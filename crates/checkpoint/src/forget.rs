//! Purging: the contents of one path everywhere in its project, or all checkpoints of one project or of all.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nono_snapshot::store::{ObjectKey, Store};
use nono_snapshot::{ContentHash, Forgotten, SnapshotError, SnapshotId, holders};

use crate::error::{CheckpointError, Result};
use crate::folder::Folder;
use crate::history::{Checkpoint, History};
use crate::manager::open::Bounds;
use crate::manager::{CheckpointManager, Pruned};
use crate::project::{self, Project};
use crate::prune::remove;

/// Folders of sessions or projects, each with the paths that have a content there.
pub type Holders = Vec<(PathBuf, Vec<PathBuf>)>;

/// Result of purging a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    pub project: PathBuf,
    /// Absolute path.
    pub path: PathBuf,
    /// Number of checkpoints, and other snapshots of the project, that had it.
    pub snapshots: u64,
    /// Number of checkpoints among them.
    pub checkpoints: u64,
    /// Number of contents that are no longer in any store.
    pub contents: u64,
    /// Others that hold the same bytes, which therefore stay.
    pub held_by: Holders,
}

impl Purged {
    /// Whether nothing that the project keeps had the path.
    pub fn is_nothing(&self) -> bool {
        self.snapshots == 0 && self.contents == 0
    }
}

/// Snapshots that have a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    pub project: PathBuf,
    /// Checkpoints, newest first.
    pub checkpoints: Vec<Checkpoint>,
    /// Number of other snapshots: safety snapshots of restores, and marks.
    pub others: u64,
}

impl CheckpointManager {
    /// Purges the contents of a path from everything that its project keeps. The file itself is not touched, and a
    /// restore of these checkpoints leaves it alone; later checkpoints have it again. Contents of sessions stay.
    pub fn forget(&self, path: &Path) -> Result<Purged> {
        let (mut purged, contents) = self.take_out(path)?;
        if !purged.is_nothing() {
            let there;
            (purged.held_by, there) = self.purge(&self.store_dir(), &contents)?;
            purged.contents -= there.len() as u64;
        }
        Ok(purged)
    }

    /// Removes a path from everything that its project keeps, and returns the contents it had there. Their bytes stay
    /// in the store until [`purge`](Self::purge).
    pub fn take_out(&self, path: &Path) -> Result<(Purged, BTreeSet<ContentHash>)> {
        let path = project::place(path)?;
        let mut open = self.open(&path, Bounds::None)?;
        let project = open.workdir().to_owned();
        if path == project {
            return Err(CheckpointError::IsProject { project });
        }
        if !path.starts_with(&project) {
            return Err(CheckpointError::Outside { path, project });
        }
        let manager = &open.manager;
        let had =
            |line: &&Checkpoint| manager.entry(&line.snapshot_id(), &path).is_ok_and(|entry| entry.is_some());
        let checkpoints = open.history.checkpoints.iter().filter(had).count() as u64;
        let Forgotten { snapshots, contents } = open.manager.forget(&path)?;
        crate::call_log::forget(&open.folder, &path)?;
        if snapshots > 0 || !contents.is_empty() {
            open.recount()?;
        }
        let purged = Purged {
            project,
            path,
            snapshots,
            checkpoints: checkpoints.min(snapshots),
            contents: contents.len() as u64,
            held_by: Vec::new(),
        };
        Ok((purged, contents.into_iter().collect()))
    }

    /// Frees everything unreferenced in the stores. Returns the holders of these contents (the folder of a session or a
    /// project, and the paths there), and which contents are still in a store.
    pub fn purge(
        &self,
        store: &Path,
        contents: &BTreeSet<ContentHash>,
    ) -> Result<(Holders, BTreeSet<ContentHash>)> {
        if !store.is_dir() {
            return Ok(Default::default());
        }
        let store = Store::open(store).map_err(SnapshotError::from)?;
        nono_snapshot::gc_compact(&store)?;
        let mut there = Vec::new();
        for hash in contents {
            if store.contains(ObjectKey::from(*hash)).map_err(SnapshotError::from)? {
                there.push(*hash);
            }
        }
        let held_by = if there.is_empty() { Vec::new() } else { holders(&store, &there)? };
        self.usage().count()?;
        let held_by = held_by.into_iter().map(|(dir, paths)| (dir, paths.into_iter().collect()));
        Ok((held_by.collect(), there.into_iter().collect()))
    }

    /// Preview of forgetting a path.
    pub fn holding(&self, path: &Path) -> Result<Holding> {
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

    /// Removes all checkpoints of the project of this path, or of all projects, named and pinned ones included.
    pub fn clear(&self, dir: Option<&Path>, dry_run: bool) -> Result<Pruned> {
        let dirs = self.dirs_of(dir, |folder| Ok(Project::load(folder)?.is_some()))?;
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

fn clear_one(dir: &Path, dry_run: bool, pruned: &mut Pruned) -> Result<()> {
    // Unreadable ones are removed as well: the user asked for everything.
    let checkpoints = History::load(dir).map(|history| history.checkpoints).unwrap_or_default();
    let project = if dry_run {
        Project::load(dir)?
    } else {
        let folder = Folder::at(dir)?;
        folder.as_ref().map_or(Ok(()), remove)?;
        folder.map(|folder| folder.project.clone())
    };
    let Some(Project { workdir, .. }) = project else { return Ok(()) };
    pruned.projects_removed.push(workdir.clone());
    pruned.removed.push((workdir, checkpoints));
    Ok(())
}
