//! Restores of one owner, so that each can be undone: `restores.json` in the owner's folder.
//!
//! A restore is one or more steps of the engine, and each step has a safety snapshot that undoes it. A step is recorded
//! before it begins: after a kill the engine completes the step, and the first safety snapshot recorded since belongs
//! to it. An undo is a restore like any other, and names the one it undid.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use nono_snapshot::file::{self, Sync};
use nono_snapshot::hash::content_hash;
use nono_snapshot::paths;
use nono_snapshot::session::SnapshotList;
use nono_snapshot::{ContentHash, RestoreOptions, SnapshotId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{HistoryError, Result};
use crate::removal::set_file_aside;

pub(crate) const FILE: &str = "restores.json";
const FORMAT: u32 = 1;

/// All restores of one owner, oldest first. `D`: details that the owner stores with each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreHistory<D> {
    format: u32,
    pub restores: Vec<Restore<D>>,
    checksum: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore<D> {
    /// Id that undoes it.
    pub id: String,
    /// Nanoseconds since 1970.
    pub at: u64,
    /// Position among all restores of a state folder, independent of clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// Requested snapshot.
    pub target: SnapshotId,
    pub steps: Vec<RestoreStep>,
    /// Step in progress; moved to `steps` when it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
    /// Restore that this one undid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<String>,
    /// All steps were done.
    pub complete: bool,
    /// A conflict was kept, or a path failed: there is more to restore.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub details: Option<D>,
}

fn none<D>() -> Option<D> {
    None
}

/// One restore or edit of the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreStep {
    pub target: SnapshotId,
    pub safety: SnapshotId,
    #[serde(flatten)]
    pub scope: Scope,
}

/// Paths of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// Paths of the step; empty means all.
    #[serde(with = "paths::list")]
    pub paths: Vec<PathBuf>,
    #[serde(with = "paths::list")]
    pub except: Vec<PathBuf>,
    /// Contents of files with reverted hunks, in the order of `paths`: no numbered snapshot has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<ContentHash>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// None for an edit, whose target is made on the way.
    pub target: Option<SnapshotId>,
    #[serde(flatten)]
    pub scope: Scope,
    /// Number of snapshots in the record when it began.
    pub recorded: usize,
}

/// The last restore of an owner, or of several, that was not undone.
#[derive(Clone, Debug)]
pub struct LastRestore<T> {
    /// Position among all restores of sessions and projects.
    order: (Option<u64>, u64),
    /// Whether paths were kept, so that more can be restored.
    pub kept: bool,
    /// What was restored.
    pub point: T,
}

impl<T> LastRestore<T> {
    pub fn new<D>(restore: &Restore<D>, point: T) -> LastRestore<T> {
        LastRestore { order: (restore.sequence, restore.at), kept: restore.kept, point }
    }

    pub fn map<U>(self, to: impl FnOnce(T) -> U) -> LastRestore<U> {
        LastRestore { order: self.order, kept: self.kept, point: to(self.point) }
    }

    /// The latest of several; the first one if they are equal.
    pub fn latest(all: impl IntoIterator<Item = LastRestore<T>>) -> Option<LastRestore<T>> {
        all.into_iter().reduce(|last, one| if one.order > last.order { one } else { last })
    }
}

impl<D> Default for RestoreHistory<D> {
    fn default() -> RestoreHistory<D> {
        RestoreHistory { format: FORMAT, restores: Vec::new(), checksum: String::new() }
    }
}

impl<D: Clone + Serialize + DeserializeOwned> RestoreHistory<D> {
    /// Read the log. A damaged one counts as empty: what differs from the owner's last state is kept as a conflict.
    pub fn load(dir: &Path) -> Result<RestoreHistory<D>> {
        match RestoreHistory::read(dir) {
            Err(HistoryError::Damaged { .. }) => Ok(RestoreHistory::default()),
            other => other,
        }
    }

    /// Read the log to add to it; a damaged file is set aside. The caller holds the owner's lock.
    pub fn load_or_begin(dir: &Path) -> Result<RestoreHistory<D>> {
        match RestoreHistory::read(dir) {
            Err(HistoryError::Damaged { path, .. }) => {
                set_file_aside(&path)?;
                Ok(RestoreHistory::default())
            }
            other => other,
        }
    }

    /// Path of the file, if it is damaged.
    pub fn damage(dir: &Path) -> Option<PathBuf> {
        match RestoreHistory::<D>::read(dir) {
            Err(HistoryError::Damaged { path, .. }) => Some(path),
            _ => None,
        }
    }

    /// Read the log; damage is an error.
    pub fn read(dir: &Path) -> Result<RestoreHistory<D>> {
        let path = dir.join(FILE);
        let read = file::read_existing(&path).map_err(HistoryError::io(&path))?;
        let Some(bytes) = read else { return Ok(RestoreHistory::default()) };
        let log: RestoreHistory<D> =
            serde_json::from_slice(&bytes).map_err(|error| HistoryError::damaged(&path, error))?;
        if log.format != FORMAT {
            return Err(HistoryError::Format { path, format: log.format });
        }
        if log.encode().ok().as_ref() != Some(&bytes) {
            return Err(HistoryError::damaged(path, "its checksum is wrong"));
        }
        Ok(log)
    }

    fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut log = RestoreHistory { checksum: String::new(), ..self.clone() };
        log.checksum = content_hash(&serde_json::to_vec(&log)?).hex();
        let mut bytes = serde_json::to_vec_pretty(&log)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Write the log, with a restore in progress, atomically and durably. The caller holds the owner's lock.
    pub fn save(&self, dir: &Path, under_way: Option<&Restore<D>>) -> Result<()> {
        let path = dir.join(FILE);
        let mut all = self.clone();
        all.restores.extend(under_way.cloned());
        let bytes = all.encode().map_err(|error| HistoryError::damaged(&path, error))?;
        file::replace(&path, &bytes, Sync::Yes).map_err(HistoryError::io(&path))
    }
}

impl<D> RestoreHistory<D> {
    /// New restore. `prefix` precedes its number and makes its id unique among all owners.
    pub(crate) fn begin(&self, prefix: &str, target: SnapshotId) -> Restore<D> {
        let next = self.restores.iter().filter_map(Restore::number).max().map_or(1, |last| last + 1);
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Restore {
            id: format!("{prefix}.{next}"),
            at: u64::try_from(at).unwrap_or(u64::MAX),
            sequence: None,
            target,
            steps: Vec::new(),
            pending: None,
            undoes: None,
            complete: false,
            kept: false,
            details: None,
        }
    }

    pub fn find(&self, id: &str) -> Option<&Restore<D>> {
        self.restores.iter().find(|restore| restore.id == id)
    }

    /// Whether a restore was undone as a whole, by an undo that stands. After a partial one the rest can be undone.
    pub fn is_undone(&self, id: &str) -> bool {
        let Some(at) = self.restores.iter().position(|restore| restore.id == id) else { return false };
        // Only later restores can undo it, whatever the file says: so the recursion ends.
        let mut later = self.restores.iter().skip(at + 1);
        later.any(|undo| {
            undo.undoes.as_deref() == Some(id) && undo.complete && !undo.kept && !self.is_undone(&undo.id)
        })
    }

    /// Last restore, not undone, that brought all of these paths (everything if empty) back to the first snapshot.
    pub fn brought_back(&self, paths: &[PathBuf]) -> Option<&Restore<D>> {
        let first = SnapshotId::Number(0);
        let restores = self.restores.iter().filter(|restore| restore.complete && restore.undoes.is_none());
        let mut brought = restores.filter(|restore| {
            let brought = |step: &RestoreStep| step.target == first && step.scope.covers(paths);
            restore.steps.iter().any(brought) && !self.is_undone(&restore.id)
        });
        brought.next_back()
    }

    /// Remove and return the interrupted restore, if there is one.
    pub fn take_cut_off(&mut self) -> Option<Restore<D>> {
        self.restores.pop_if(|last| !last.complete)
    }

    /// Last restore that was not undone. Undos do not count, or a second undo would be a redo.
    pub fn last_to_undo(&self) -> Option<&Restore<D>> {
        self.restores.get(self.last_place()?)
    }

    fn last_place(&self) -> Option<usize> {
        self.restores.iter().rposition(|restore| restore.undoes.is_none() && !self.is_undone(&restore.id))
    }

    /// Drop all but the last `number` restores.
    pub fn keep(&mut self, number: usize) {
        let beyond = self.restores.len().saturating_sub(number);
        self.restores.drain(..beyond);
    }

    /// Drop everything that is not needed to undo the last restore.
    pub fn keep_last(&mut self) {
        self.restores.drain(..self.first_needed());
    }

    fn first_needed(&self) -> usize {
        self.last_place().unwrap_or(self.restores.len())
    }

    /// Unnumbered snapshots that only restores before the last one need.
    pub fn superseded(&self) -> Vec<SnapshotId> {
        let (older, needed) = self.restores.split_at(self.first_needed());
        let needed: Vec<&SnapshotId> = needed.iter().flat_map(Restore::snapshots).collect();
        older.iter().flat_map(Restore::snapshots).filter(|id| !needed.contains(id)).cloned().collect()
    }

    /// Unnumbered snapshots that restores need.
    pub fn needed(&self) -> impl Iterator<Item = &SnapshotId> {
        self.restores.iter().flat_map(Restore::snapshots)
    }
}

impl<D> Restore<D> {
    /// Move the pending step to the completed ones. After a kill its safety snapshot is the first one recorded since it
    /// began; if there is none, nothing was changed.
    pub(crate) fn settle(&mut self, record: &SnapshotList) {
        self.steps.extend(self.pending.take().and_then(|pending| pending.finished(record)));
    }

    fn number(&self) -> Option<u64> {
        self.id.rsplit('.').next()?.parse().ok()
    }

    /// Unnumbered snapshots: the states before each step, and the targets of edits.
    fn snapshots(&self) -> impl Iterator<Item = &SnapshotId> {
        let all = self.steps.iter().flat_map(|step| [&step.safety, &step.target]);
        all.filter(|id| matches!(id, SnapshotId::Safety(_)))
    }

    /// State before its first change.
    pub fn safety(&self) -> Option<&SnapshotId> {
        self.steps.first().map(|step| &step.safety)
    }

    /// Files that were merged.
    pub fn merged(&self) -> impl Iterator<Item = &PathBuf> {
        let is_edit = |id: &SnapshotId| matches!(id, SnapshotId::Safety(name) if name.starts_with("edit-"));
        let is_merge = move |step: &&RestoreStep| is_edit(&step.target) && step.scope.contents.is_empty();
        self.steps.iter().filter(is_merge).flat_map(|step| &step.scope.paths)
    }

    /// Paths that it covered; everything if empty.
    pub fn paths(&self) -> Vec<PathBuf> {
        let pending = self.pending.iter().map(|pending| &pending.scope);
        let scopes = self.steps.iter().map(|step| &step.scope).chain(pending);
        let mut paths: Vec<PathBuf> = scopes.flat_map(|scope| scope.paths.clone()).collect();
        paths.sort();
        paths.dedup();
        paths
    }
}

impl Scope {
    /// Whether it covers all of these paths, or everything if there are none.
    pub fn covers(&self, paths: &[PathBuf]) -> bool {
        let holds = |path: &PathBuf| {
            (self.paths.is_empty() || self.paths.iter().any(|above| path.starts_with(above)))
                && !self.except.iter().any(|except| path.starts_with(except))
        };
        if paths.is_empty() { self.paths.is_empty() } else { paths.iter().all(holds) }
    }

    pub(crate) fn options(&self, keep_changed_since: Vec<SnapshotId>, force: bool) -> RestoreOptions {
        RestoreOptions { paths: self.paths.clone(), except: self.except.clone(), keep_changed_since, force }
    }
}

impl RestoreStep {
    /// Scope without that of later steps of the same restore: those are undone before it, and it had not changed them.
    pub(crate) fn scope_without(&self, later: &[PathBuf]) -> Scope {
        let mut except = self.scope.except.clone();
        except.extend(later.iter().filter(|path| !self.scope.except.contains(path)).cloned());
        Scope { paths: self.scope.paths.clone(), except, contents: Vec::new() }
    }
}

impl Pending {
    /// Completed step, with the snapshots recorded for it.
    fn finished(self, record: &SnapshotList) -> Option<RestoreStep> {
        let new = record.snapshots.iter().skip(self.recorded).filter_map(|recorded| match &recorded.id {
            SnapshotId::Safety(id) => Some(id),
            SnapshotId::Number(_) => None,
        });
        let (safety, others): (Vec<&String>, Vec<&String>) = new.partition(|id| id.starts_with("safety-"));
        let safety = SnapshotId::Safety((*safety.first()?).clone());
        let edit = || others.first().map(|id| SnapshotId::Safety((*id).clone()));
        Some(RestoreStep { target: self.target.or_else(edit)?, safety, scope: self.scope })
    }
}
