//! The restores of a project, so that each can be taken back: `restores.json`, and `restoring.json` for the one that is
//! under way. The engine completes one that was cut off; what is written here says what it was.

use std::path::{Path, PathBuf};

use nono_snapshot::SnapshotId;
use nono_snapshot::file::{self, Sync};
use serde::{Deserialize, Serialize};

use crate::error::CheckpointError;
use crate::folder::Folder;
use crate::history::{Checkpoint, TurnLink};
use crate::json;
use crate::marks::Their;
use crate::origin::Origin;

const FILE: &str = "restores.json";
const UNDER_WAY: &str = "restoring.json";
/// So many can be taken back; with older ones go the snapshots that they were made safe by.
const RESTORES: usize = 10;

/// One restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Restore {
    pub(crate) id: String,
    /// ISO 8601, UTC.
    pub(crate) time: String,
    pub(crate) checkpoint: Checkpoint,
    /// Whoever asked for it.
    pub(crate) who: Origin,
    /// What was there before.
    pub(crate) safety: Option<SnapshotId>,
    /// The states that it brought about: what differs from all of them was changed later.
    pub(crate) made: Vec<SnapshotId>,
    pub(crate) scope: Scope,
    /// What somebody else had changed, and was restored all the same, or merged.
    pub(crate) forced: Vec<Their>,
    pub(crate) merged: Vec<OnePath>,
    /// The turns that it took back.
    pub(crate) turns: Vec<TurnLink>,
    /// Whether the mark was moved with it.
    pub(crate) marked: bool,
    /// How many snapshots there were when it began.
    pub(crate) recorded: usize,
    /// It was taken back.
    pub(crate) undone: bool,
    /// It took back that one.
    pub(crate) undoes: Option<String>,
}

/// What a restore is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Scope {
    pub(crate) paths: Vec<OnePath>,
    pub(crate) except: Vec<OnePath>,
}

/// A path, lossless.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct OnePath(#[serde(with = "nono_sys::path_serde")] pub(crate) PathBuf);

pub(crate) fn one_by_one(paths: &[PathBuf]) -> Vec<OnePath> {
    paths.iter().cloned().map(OnePath).collect()
}

pub(crate) fn plain(paths: &[OnePath]) -> Vec<PathBuf> {
    paths.iter().map(|path| path.0.clone()).collect()
}

/// Oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restores(pub(crate) Vec<Restore>);

impl Restores {
    /// Those that can be taken back. A damaged list is set aside: what restores did stays, and new ones can be taken back.
    pub(crate) fn load(folder: &Folder) -> Result<Restores, CheckpointError> {
        let (restores, _damaged) = json::load_or_set_aside(&folder.file(FILE))?;
        Ok(Restores(restores.unwrap_or_default()))
    }

    pub(crate) fn load_from(dir: &Path) -> Result<Restores, CheckpointError> {
        Ok(Restores(json::load(&dir.join(FILE))?.unwrap_or_default()))
    }

    /// The place of the first one that is needed to take back the last.
    fn first_needed(&self) -> usize {
        let last = self.0.iter().rposition(|restore| !restore.undone && restore.undoes.is_none());
        last.unwrap_or(self.0.len())
    }

    /// Forget all that is not needed to take back the last one.
    pub(crate) fn keep_last(&mut self) {
        self.0.drain(..self.first_needed());
    }

    /// The snapshots that go with that.
    pub(crate) fn superseded(&self) -> Vec<SnapshotId> {
        let (older, needed) = self.0.split_at(self.first_needed());
        let of = |restore: &Restore| -> Vec<SnapshotId> {
            restore.safety.iter().chain(&restore.made).cloned().collect()
        };
        let needed: Vec<SnapshotId> = needed.iter().flat_map(of).collect();
        let is_aside = |id: &SnapshotId| matches!(id, SnapshotId::Safety(_));
        older.iter().flat_map(of).filter(|id| is_aside(id) && !needed.contains(id)).collect()
    }

    pub(crate) fn save(&mut self, folder: &Folder) -> Result<(), CheckpointError> {
        let beyond = self.0.len().saturating_sub(RESTORES);
        self.0.drain(..beyond);
        json::save(&folder.file(FILE), &self.0, Sync::Yes)
    }

    /// The last one that was not taken back.
    pub(crate) fn last(&self) -> Option<&Restore> {
        self.0.iter().rev().find(|restore| !restore.undone && restore.undoes.is_none())
    }

    /// The snapshots that they need.
    pub(crate) fn needed(&self) -> impl Iterator<Item = &SnapshotId> {
        self.0.iter().flat_map(|restore| restore.safety.iter().chain(&restore.made))
    }
}

impl Restore {
    /// From now on it is under way.
    pub(crate) fn begin(&self, folder: &Folder) -> Result<(), CheckpointError> {
        json::save(&folder.file(UNDER_WAY), self, Sync::Yes)
    }

    /// The one that is under way, or was when its process was killed.
    pub(crate) fn under_way(folder: &Folder) -> Result<Option<Restore>, CheckpointError> {
        let path = folder.file(UNDER_WAY);
        if !path.exists() {
            return Ok(None);
        }
        // Without it the engine completes the restore all the same; only what it was for is not known.
        Ok(json::load_or_set_aside(&path)?.0)
    }

    /// It is written down, or came to nothing.
    pub(crate) fn over(folder: &Folder) -> Result<(), CheckpointError> {
        let path = folder.file(UNDER_WAY);
        file::remove(&path).map_err(CheckpointError::io(&path))
    }
}
