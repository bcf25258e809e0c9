//! Changes between two snapshots, as shown to the user: renames detected, files that run later marked and listed first.

mod history;
mod json;
mod names;
mod renames;

use std::path::{Path, PathBuf};

use nono_snapshot::diff::{FileKind, Version};
use nono_snapshot::{Change, ChangeCounts, ChangeType, SnapshotId, SnapshotManager, repository_of};
use serde::Serialize;

use super::autorun::{self, Later};
use super::catalogue::RollbackSession;
use super::error::RollbackError;

pub use json::JsonText;
pub(in crate::rollback) use renames::similarity;

/// All differences between two snapshots.
#[derive(Clone, Debug, Serialize)]
pub struct ChangeSet {
    #[serde(serialize_with = "json::snapshot")]
    pub from: SnapshotId,
    #[serde(serialize_with = "json::snapshot")]
    pub to: SnapshotId,
    #[serde(skip)]
    pub roots: Vec<PathBuf>,
    /// Files that run later first, then by path.
    pub items: Vec<Item>,
}

/// Changes made by a run.
#[derive(Clone, Debug)]
pub struct Changed {
    pub counts: ChangeCounts,
    /// Present if requested.
    pub list: Option<ChangeSet>,
}

/// One changed path.
#[derive(Clone, Debug, Serialize)]
pub struct Item {
    /// Absolute path; the former one of a deleted file.
    #[serde(serialize_with = "json::path")]
    pub path: PathBuf,
    #[serde(flatten)]
    pub kind: ItemKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Version>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Version>,
    pub size_delta: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executes_later: Option<Later>,
    /// Branches changed in a git repository (which is one item), a short text for each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "change_type")]
pub enum ItemKind {
    Created,
    Modified,
    Deleted,
    PermissionsChanged,
    /// The same or similar content was at `from` before.
    Renamed {
        #[serde(rename = "renamed_from", serialize_with = "json::path")]
        from: PathBuf,
    },
}

impl ItemKind {
    /// Add one change of this kind.
    pub fn count_in(&self, counts: &mut ChangeCounts) {
        *match self {
            ItemKind::Created => &mut counts.created,
            ItemKind::Modified => &mut counts.modified,
            ItemKind::Deleted => &mut counts.deleted,
            ItemKind::PermissionsChanged => &mut counts.permissions_changed,
            ItemKind::Renamed { .. } => &mut counts.renamed,
        } += 1;
    }
}

impl ChangeSet {
    /// Changes from one snapshot to another. Renames are detected among created and deleted files: by content hash
    /// first, then by similarity where both are small.
    pub fn between(
        manager: &SnapshotManager,
        from: &SnapshotId,
        to: &SnapshotId,
    ) -> Result<ChangeSet, RollbackError> {
        Ok(ChangeSet::of(manager, from, to, manager.diff(from, to)?))
    }

    /// [`ChangeSet::between`] for a given list of changes: all or some of those between the two.
    pub fn of(
        manager: &SnapshotManager,
        from: &SnapshotId,
        to: &SnapshotId,
        changes: Vec<Change>,
    ) -> ChangeSet {
        let (items, repositories) = history::fold(manager, from, to, changes);
        let mut items = renames::find(manager, items);
        items.extend(repositories);
        for item in &mut items {
            item.executes_later = runs_later(manager, item);
        }
        // A stable sort keeps a deletion before a creation at the same path.
        items.sort_by(|a, b| {
            (a.executes_later.is_none(), &a.path).cmp(&(b.executes_later.is_none(), &b.path))
        });
        ChangeSet { from: from.clone(), to: to.clone(), roots: manager.roots().to_vec(), items }
    }

    /// The changes of these files and directories, or all if there are none. A renamed file is also found by its old
    /// path.
    #[must_use]
    pub fn within(mut self, paths: &[PathBuf]) -> ChangeSet {
        let is_within = |path: &Path| paths.iter().any(|chosen| path.starts_with(chosen));
        self.items.retain(|item| paths.is_empty() || is_within(&item.path) || is_within(item.old_path()));
        self
    }

    pub fn counts(&self) -> ChangeCounts {
        let mut counts = ChangeCounts::default();
        self.items.iter().for_each(|item| item.kind.count_in(&mut counts));
        counts
    }

    /// Path relative to its root, for display; with several roots it begins with the root's name.
    pub fn shown(&self, path: &Path) -> PathBuf {
        names::below_root(&self.roots, path)
    }
}

impl Changed {
    /// Count the changes from one snapshot to another, and list them if requested. Without a list a million changes
    /// need no memory, unless renames have to be detected or a repository's history is among them.
    pub(super) fn between(
        manager: &SnapshotManager,
        from: &SnapshotId,
        to: &SnapshotId,
        list: bool,
    ) -> Result<Changed, RollbackError> {
        if !list {
            let (mut counts, mut history) = (ChangeCounts::default(), false);
            manager.each_change(from, to, &mut |change| {
                counts.add(change.change_type);
                history |= repository_of(&change.path).is_some();
            })?;
            if !history && (counts.created == 0 || counts.deleted == 0) {
                return Ok(Changed { counts, list: None });
            }
        }
        let set = ChangeSet::between(manager, from, to)?;
        Ok(Changed { counts: set.counts(), list: list.then_some(set) })
    }
}

impl Item {
    /// Path of the old version.
    pub fn old_path(&self) -> &Path {
        match &self.kind {
            ItemKind::Renamed { from } => from,
            _ => &self.path,
        }
    }
}

impl From<Change> for Item {
    fn from(change: Change) -> Item {
        let kind = match change.change_type {
            ChangeType::Created => ItemKind::Created,
            ChangeType::Modified => ItemKind::Modified,
            ChangeType::Deleted => ItemKind::Deleted,
            ChangeType::PermissionsChanged => ItemKind::PermissionsChanged,
        };
        Item {
            path: change.path,
            kind,
            old: change.old,
            new: change.new,
            size_delta: change.size_delta,
            executes_later: None,
            history: None,
        }
    }
}

impl RollbackSession {
    /// Snapshots to compare, by their numbers; `to`: the last one if None.
    pub fn range(&self, from: u32, to: Option<u32>) -> Result<(SnapshotId, SnapshotId), RollbackError> {
        let record = self.record()?;
        let find = |number: u32| {
            let id = SnapshotId::Number(number);
            let missing = || RollbackError::NoSnapshot { id: self.entry().id.clone(), snapshot: id.clone() };
            if record.find(&id).is_some() { Ok(id.clone()) } else { Err(missing()) }
        };
        Ok((find(from)?, to.map_or_else(|| self.last(), find)?))
    }

    /// Changes from one snapshot to another; see [`ChangeSet::between`].
    pub fn changes(&self, from: &SnapshotId, to: &SnapshotId) -> Result<ChangeSet, RollbackError> {
        ChangeSet::between(&self.manager, from, to)
    }
}

/// Largest file that a rule reads; a larger one is marked without reading it.
const LOOK_INTO: u64 = 1 << 20;

fn runs_later(manager: &SnapshotManager, item: &Item) -> Option<Later> {
    let new = item.new.as_ref().filter(|new| matches!(new.kind, FileKind::File | FileKind::Symlink))?;
    if item.kind == ItemKind::PermissionsChanged && !became_executable(item) {
        return None;
    }
    // An unreadable file is marked: a damaged object must neither hide the list nor unmark an item.
    let content = || manager.content(new.hash?, LOOK_INTO).ok().flatten();
    autorun::executes_later(&item.path, new.mode, &content)
}

fn became_executable(item: &Item) -> bool {
    let executable = |side: &Option<Version>| side.as_ref().is_some_and(|version| version.mode & 0o111 != 0);
    executable(&item.new) && !executable(&item.old)
}

#[cfg(test)]
pub(in crate::rollback) mod testing;
#[cfg(test)]
mod tests;
