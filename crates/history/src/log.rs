//! Restores of one owner, so that each can be undone: `restores.json` in the owner's folder.
//!
//! A restore is one or more steps of the engine, and each step has a safety snapshot that leads back. What is about to
//! happen is written down before it does: after a kill the engine completes the step, and the safety snapshot that was
//! recorded since then is the one that belongs to it. An undo is a restore like any other, and says which one it undid.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use nono_snapshot::file::{self, Sync};
use nono_snapshot::hash::content_hash;
use nono_snapshot::paths;
use nono_snapshot::session::{Record, RecordedId, aside};
use nono_snapshot::{ContentHash, RestoreOptions, SnapshotId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::HistoryError;

const FILE: &str = "restores.json";
const FORMAT: u32 = 1;

/// All restores of one owner, oldest first. `D`: what the owner remembers of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log<D> {
    format: u32,
    pub restores: Vec<Restore<D>>,
    checksum: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore<D> {
    /// What undoes it.
    pub id: String,
    /// Nanoseconds since 1970.
    pub at: u64,
    /// Place among all restores of a state folder, which no clock decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// Snapshot that was asked for.
    pub target: SnapshotId,
    pub steps: Vec<Step>,
    /// Step that began; gone when it is among the steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Pending>,
    /// Restore that this one undid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<String>,
    /// All steps were taken.
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

/// One restore, or edit, of the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub target: SnapshotId,
    pub safety: SnapshotId,
    #[serde(flatten)]
    pub scope: Scope,
}

/// Paths of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    /// Everything when empty.
    #[serde(with = "paths::list")]
    pub paths: Vec<PathBuf>,
    #[serde(with = "paths::list")]
    pub except: Vec<PathBuf>,
    /// Contents of files that hunks were taken from, in the order of `paths`: no numbered snapshot has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<ContentHash>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// None: an edit, whose target is made on the way.
    pub target: Option<SnapshotId>,
    #[serde(flatten)]
    pub scope: Scope,
    /// Number of snapshots in the record when it began.
    pub recorded: usize,
}

impl<D> Default for Log<D> {
    fn default() -> Log<D> {
        Log { format: FORMAT, restores: Vec::new(), checksum: String::new() }
    }
}

impl<D: Clone + Serialize + DeserializeOwned> Log<D> {
    /// Read the log. A damaged file tells nothing: what differs from the owner's last state is then a conflict, and kept.
    pub fn load(dir: &Path) -> Result<Log<D>, HistoryError> {
        match Log::read(dir) {
            Err(HistoryError::Damaged { .. }) => Ok(Log::default()),
            other => other,
        }
    }

    /// Read the log to add to it, for the holder of the owner's lock: a damaged file is set aside.
    pub fn load_or_begin(dir: &Path) -> Result<Log<D>, HistoryError> {
        match Log::read(dir) {
            Err(HistoryError::Damaged { path, .. }) => {
                match std::fs::rename(&path, aside(&path)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(HistoryError::Io { path, source: error });
                    }
                    _ => {}
                }
                Ok(Log::default())
            }
            other => other,
        }
    }

    /// Path of the file, if it is damaged.
    pub fn damage(dir: &Path) -> Option<PathBuf> {
        match Log::<D>::read(dir) {
            Err(HistoryError::Damaged { path, .. }) => Some(path),
            _ => None,
        }
    }

    /// Read the log; damage is an error.
    pub fn read(dir: &Path) -> Result<Log<D>, HistoryError> {
        let path = dir.join(FILE);
        let bytes = match file::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Log::default()),
            other => other.map_err(HistoryError::io(&path))?,
        };
        let log: Log<D> =
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
        let mut log = Log { checksum: String::new(), ..self.clone() };
        log.checksum = content_hash(&serde_json::to_vec(&log)?).hex();
        let mut bytes = serde_json::to_vec_pretty(&log)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Write the log, with a restore that is under way: old or new, never half, and there after a loss of power. For the
    /// holder of the owner's lock.
    pub fn save(&self, dir: &Path, under_way: Option<&Restore<D>>) -> Result<(), HistoryError> {
        let path = dir.join(FILE);
        let mut all = self.clone();
        all.restores.extend(under_way.cloned());
        let bytes = all.encode().map_err(|error| HistoryError::damaged(&path, error))?;
        file::replace(&path, &bytes, Sync::Yes).map_err(HistoryError::io(&path))
    }
}

impl<D> Log<D> {
    /// A new restore. `prefix` goes before its number, so that its id is one of its kind among all owners.
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

    /// Whether a restore was undone as a whole, and not by an undo that was itself undone. A part that was taken back
    /// leaves the rest to be taken back.
    pub fn is_undone(&self, id: &str) -> bool {
        let Some(at) = self.restores.iter().position(|restore| restore.id == id) else { return false };
        // Only later ones can undo it, whatever the file says: so this ends.
        let mut later = self.restores.iter().skip(at + 1);
        later.any(|undo| {
            undo.undoes.as_deref() == Some(id) && undo.complete && !undo.kept && !self.is_undone(&undo.id)
        })
    }

    /// The last restore that brought all of these paths back to the first snapshot, and was not undone; everything if
    /// none.
    pub fn brought_back(&self, paths: &[PathBuf]) -> Option<&Restore<D>> {
        let first = SnapshotId::Number(0);
        let covers = |scope: &Scope| {
            let holds = |path: &PathBuf| {
                (scope.paths.is_empty() || scope.paths.iter().any(|above| path.starts_with(above)))
                    && !scope.except.iter().any(|except| path.starts_with(except))
            };
            if paths.is_empty() { scope.paths.is_empty() } else { paths.iter().all(holds) }
        };
        let restores = self.restores.iter().filter(|restore| restore.complete && restore.undoes.is_none());
        let mut brought = restores.filter(|restore| {
            let brought = |step: &Step| step.target == first && covers(&step.scope);
            restore.steps.iter().any(brought) && !self.is_undone(&restore.id)
        });
        brought.next_back()
    }

    /// Take out the restore that was cut off, if there is one.
    pub fn take_cut_off(&mut self) -> Option<Restore<D>> {
        self.restores.pop_if(|last| !last.complete)
    }

    /// The last restore that was not undone; undos are not restores here, or a second undo would be a redo.
    pub fn last_to_undo(&self) -> Option<&Restore<D>> {
        self.restores.get(self.last_place()?)
    }

    fn last_place(&self) -> Option<usize> {
        self.restores.iter().rposition(|restore| restore.undoes.is_none() && !self.is_undone(&restore.id))
    }

    /// Forget all but the last `number` restores.
    pub fn keep(&mut self, number: usize) {
        let beyond = self.restores.len().saturating_sub(number);
        self.restores.drain(..beyond);
    }

    /// Forget all that is not needed to take back the last one.
    pub fn keep_last(&mut self) {
        self.restores.drain(..self.first_needed());
    }

    fn first_needed(&self) -> usize {
        self.last_place().unwrap_or(self.restores.len())
    }

    /// Snapshots without a number that only restores before the last one need.
    pub fn superseded(&self) -> Vec<SnapshotId> {
        let (older, needed) = self.restores.split_at(self.first_needed());
        let needed: Vec<&SnapshotId> = needed.iter().flat_map(Restore::snapshots).collect();
        older.iter().flat_map(Restore::snapshots).filter(|id| !needed.contains(id)).cloned().collect()
    }

    /// Snapshots without a number that restores need.
    pub fn needed(&self) -> impl Iterator<Item = &SnapshotId> {
        self.restores.iter().flat_map(Restore::snapshots)
    }
}

impl<D> Restore<D> {
    /// Move the step that began among those that are done. After a kill its safety snapshot is the one that was recorded
    /// first since it began; with none, nothing happened.
    pub(crate) fn settle(&mut self, record: &Record) {
        self.steps.extend(self.pending.take().and_then(|pending| pending.finished(record)));
    }

    fn number(&self) -> Option<u64> {
        self.id.rsplit('.').next()?.parse().ok()
    }

    /// Snapshots without a number: what was there before each step, and what edits made.
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
        let is_merge = |step: &&Step| is_edit(&step.target) && step.scope.contents.is_empty();
        self.steps.iter().filter(is_merge).flat_map(|step| &step.scope.paths)
    }

    /// Paths that it was about; everything if empty.
    pub fn paths(&self) -> Vec<PathBuf> {
        let pending = self.pending.iter().map(|pending| &pending.scope);
        let scopes = self.steps.iter().map(|step| &step.scope).chain(pending);
        let mut paths: Vec<PathBuf> = scopes.flat_map(|scope| scope.paths.clone()).collect();
        paths.sort();
        paths.dedup();
        paths
    }
}

fn is_edit(id: &SnapshotId) -> bool {
    matches!(id, SnapshotId::Safety(name) if name.starts_with("edit-"))
}

impl Scope {
    pub(crate) fn options(&self, keep_changed_since: Vec<SnapshotId>, force: bool) -> RestoreOptions {
        RestoreOptions { paths: self.paths.clone(), except: self.except.clone(), keep_changed_since, force }
    }
}

impl Step {
    /// Its scope without that of later steps of the same restore: those are back before it is undone, and it had left them
    /// as they were.
    pub(crate) fn scope_without(&self, later: &[PathBuf]) -> Scope {
        let mut except = self.scope.except.clone();
        except.extend(later.iter().filter(|path| !self.scope.except.contains(path)).cloned());
        Scope { paths: self.scope.paths.clone(), except, contents: Vec::new() }
    }
}

impl Pending {
    /// The step, with the snapshots that were recorded for it.
    fn finished(self, record: &Record) -> Option<Step> {
        let new = record.snapshots.iter().skip(self.recorded).filter_map(|recorded| match &recorded.id {
            RecordedId::Safety(id) => Some(id),
            RecordedId::Number(_) => None,
        });
        let (safety, others): (Vec<&String>, Vec<&String>) = new.partition(|id| id.starts_with("safety-"));
        let safety = SnapshotId::Safety((*safety.first()?).clone());
        let edit = || others.first().map(|id| SnapshotId::Safety((*id).clone()));
        Some(Step { target: self.target.or_else(edit)?, safety, scope: self.scope })
    }
}
