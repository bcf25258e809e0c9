//! Selection of what to restore, and the owner's rule for it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use nono_snapshot::hash::content_hash;
use nono_snapshot::{ContentHash, SnapshotId, repository_of};
use serde::{Deserialize, Serialize};

use crate::error::{HistoryError, Result};
use crate::log::Scope;

/// Treatment of paths that were changed after the owner's last change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conflicts {
    #[default]
    Keep,
    /// Restore them too; the safety snapshot has them.
    Force,
    /// Merge text files three ways; those that do not merge cleanly are kept, or get conflict markers if requested.
    Merge { markers: bool },
}

/// Snapshot and paths to restore.
#[derive(Clone, Debug)]
pub struct SnapshotChoice {
    pub target: SnapshotId,
    /// Absolute paths, directories with their content. Empty means everything, or with `edits` only those.
    pub paths: Vec<PathBuf>,
    /// Paths to leave as they are.
    pub except: Vec<PathBuf>,
    /// Files of which only hunks are reverted.
    pub edits: Vec<Edit>,
    pub conflicts: Conflicts,
}

/// A file and its new content.
#[derive(Clone, Debug)]
pub struct Edit {
    pub path: PathBuf,
    /// Content that the owner left there, on which the new content is based.
    pub left: Option<ContentHash>,
    pub bytes: Vec<u8>,
}

impl Edit {
    pub(crate) fn hash(&self) -> ContentHash {
        content_hash(&self.bytes)
    }
}

/// Differences between owners: which changes are the owner's, and what is left alone.
#[derive(Clone, Debug, Default)]
pub struct OwnerRules {
    /// States that the owner or a restore left: what differs from all of them is by others. None if that is unknown.
    pub since: Option<Vec<SnapshotId>>,
    /// Last state that the owner left: base of merges.
    pub left: Option<SnapshotId>,
    /// Paths that others changed while the owner worked, with the content that the owner had left there.
    pub others: BTreeMap<PathBuf, Option<ContentHash>>,
    pub repositories: Repositories,
    /// The target has contents, symlinks and modes only, and does not know about other paths.
    pub contents_only: bool,
    pub labels: Labels,
}

/// Treatment of a `.git` that is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repositories {
    #[default]
    Restore,
    LeaveAlone,
}

/// Names of the sides in conflict markers.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    pub base: String,
    pub target: String,
}

impl OwnerRules {
    /// Whether a restore can begin without planning.
    pub(crate) fn is_plain(&self) -> bool {
        self.repositories == Repositories::Restore && !self.contents_only && self.others.is_empty()
    }
}

impl SnapshotChoice {
    /// Everything, to a snapshot.
    pub fn everything(target: SnapshotId) -> SnapshotChoice {
        SnapshotChoice {
            target,
            paths: Vec::new(),
            except: Vec::new(),
            edits: Vec::new(),
            conflicts: Conflicts::Keep,
        }
    }

    pub(crate) fn refuse_parts(&self) -> Result<()> {
        let edits = self.edits.iter().map(|edit| &edit.path);
        refuse_parts(self.paths.iter().chain(&self.except).chain(edits))
    }

    /// Whether whole paths are restored besides edits.
    pub(crate) fn has_whole(&self) -> bool {
        self.edits.is_empty() || !self.paths.is_empty()
    }

    /// Scope without the edited files, which are not restored as a whole.
    pub(crate) fn scope(&self) -> Scope {
        let edited = self.edits.iter().map(|edit| edit.path.clone());
        Scope {
            paths: self.paths.clone(),
            except: self.except.iter().cloned().chain(edited).collect(),
            contents: Vec::new(),
        }
    }
}

/// Refuse a part of a repository: its files mean nothing one by one.
pub fn refuse_parts<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
    let part = paths.into_iter().find_map(|path| Some((path.clone(), repository_of(path)?)));
    part.map_or(Ok(()), |(path, git)| Err(HistoryError::PartOfRepository { path, git }))
}
