//! The restores of a session, so that each can be undone: `restores.json` in its folder.
//!
//! A restore is one or more steps of the engine, and each step has a safety snapshot that leads back. What is about to
//! happen is written down before it does: after a kill the engine completes the step, and the safety snapshot that was
//! recorded since then is the one that belongs to it. An undo is a restore like any other, and says which one it undid.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use nono_snapshot::hash::content_hash;
use nono_snapshot::paths;
use nono_snapshot::session::{Record, RecordedId};
use nono_snapshot::{ContentHash, SnapshotId};
use serde::{Deserialize, Serialize};

use super::error::RollbackError;
use super::folder;

const FILE: &str = "restores.json";
const NEW: &str = "restores.json.new";
pub(super) const LOCK: &str = "restores.lock";
const FORMAT: u32 = 1;

/// All restores of one session, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct History {
    format: u32,
    pub(super) restores: Vec<Restore>,
    checksum: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Restore {
    /// What undoes it.
    pub(super) id: String,
    /// Nanoseconds since 1970.
    pub(super) at: u64,
    /// Its place among all restores of a state folder, which no clock decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sequence: Option<u64>,
    /// The snapshot that was asked for.
    pub(super) target: SnapshotId,
    pub(super) steps: Vec<Step>,
    /// A step that began; gone when it is among the steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pending: Option<Pending>,
    /// The restore that this one undid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) undoes: Option<String>,
    /// All steps were taken.
    pub(super) complete: bool,
    /// Something that somebody else had changed was kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) kept: bool,
}

/// One restore, or edit, of the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) target: SnapshotId,
    pub(super) safety: SnapshotId,
    #[serde(flatten)]
    pub(super) scope: Scope,
}

/// What a step was about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Scope {
    /// Everything when empty.
    #[serde(with = "paths::list")]
    pub(super) paths: Vec<PathBuf>,
    #[serde(with = "paths::list")]
    pub(super) except: Vec<PathBuf>,
    /// What files were given that hunks were taken from, in the order of `paths`: a content that no snapshot of the
    /// session's own has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) contents: Vec<ContentHash>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pending {
    /// None: an edit, whose target is made on the way.
    pub(super) target: Option<SnapshotId>,
    #[serde(flatten)]
    pub(super) scope: Scope,
    /// How many snapshots the record had.
    pub(super) recorded: usize,
}

impl Default for History {
    fn default() -> History {
        History { format: FORMAT, restores: Vec::new(), checksum: String::new() }
    }
}

impl History {
    /// What was restored. A damaged file tells nothing: what differs from the end of the session is then taken as somebody
    /// else's and kept.
    pub(super) fn load(session: &Path) -> Result<History, RollbackError> {
        match History::read(session) {
            Err(RollbackError::Damaged { .. }) => Ok(History::default()),
            other => other,
        }
    }

    /// The same for the one who holds the session's [`Lock`]: a damaged file is set aside.
    pub(super) fn load_or_begin(session: &Path) -> Result<History, RollbackError> {
        match History::read(session) {
            Err(RollbackError::Damaged { path, .. }) => {
                folder::set_aside(&path)?;
                Ok(History::default())
            }
            other => other,
        }
    }

    /// What is wrong with the file.
    pub(super) fn damage(session: &Path) -> Option<PathBuf> {
        match History::read(session) {
            Err(RollbackError::Damaged { path, .. }) => Some(path),
            _ => None,
        }
    }

    /// The same for one who needs what it says: damage is an error.
    pub(super) fn read(session: &Path) -> Result<History, RollbackError> {
        let path = session.join(FILE);
        let Some(bytes) = folder::read_if_there(&path)? else { return Ok(History::default()) };
        let history: History =
            serde_json::from_slice(&bytes).map_err(|error| RollbackError::damaged(&path, error))?;
        if history.format != FORMAT {
            let what = format!("its format {} is not known", history.format);
            return Err(RollbackError::Settings { path, what });
        }
        if history.encode().ok().as_ref() != Some(&bytes) {
            return Err(RollbackError::damaged(path, "its checksum is wrong"));
        }
        Ok(history)
    }

    fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut history = History { checksum: String::new(), ..self.clone() };
        history.checksum = content_hash(&serde_json::to_vec(&history)?).hex();
        let mut bytes = serde_json::to_vec_pretty(&history)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Write it down, with a restore that is under way. Old or new, never half, and there after a loss of power. For the
    /// one who holds the session's [`Lock`].
    pub(super) fn save(&self, session: &Path, under_way: Option<&Restore>) -> Result<(), RollbackError> {
        let (path, temp) = (session.join(FILE), session.join(NEW));
        let mut all = self.clone();
        all.restores.extend(under_way.cloned());
        let bytes = all.encode().map_err(|error| RollbackError::damaged(&path, error))?;
        let replace = || {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&temp)?;
            file.write_all(&bytes)?;
            file.sync_data()?;
            std::fs::rename(&temp, &path)?;
            File::open(session)?.sync_all()
        };
        replace().map_err(RollbackError::io(&path))
    }

    /// A new restore; its id has the session's in it, so that it is one of its kind among all sessions.
    pub(super) fn begin(
        &self,
        session_id: &str,
        sequence: Option<u64>,
        target: SnapshotId,
        undoes: Option<String>,
    ) -> Restore {
        let next = self.restores.iter().filter_map(Restore::number).max().map_or(1, |last| last + 1);
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Restore {
            id: format!("{session_id}.{next}"),
            at: u64::try_from(at).unwrap_or(u64::MAX),
            sequence,
            target,
            steps: Vec::new(),
            pending: None,
            undoes,
            complete: false,
            kept: false,
        }
    }

    pub(super) fn find(&self, id: &str) -> Option<&Restore> {
        self.restores.iter().find(|restore| restore.id == id)
    }

    /// Undone, and not by an undo that was itself undone.
    pub(super) fn is_undone(&self, id: &str) -> bool {
        let Some(at) = self.restores.iter().position(|restore| restore.id == id) else { return false };
        // Only later ones can undo it, whatever the file says: so this ends.
        let mut later = self.restores.iter().skip(at + 1);
        later.any(|undo| undo.undoes.as_deref() == Some(id) && undo.complete && !self.is_undone(&undo.id))
    }

    /// Whether a restore brought all of these paths back to the first snapshot, and was not undone; everything if none.
    pub(super) fn has_brought_back(&self, paths: &[PathBuf]) -> bool {
        let first = SnapshotId::Number(0);
        let covers = |scope: &Scope| {
            let holds = |path: &PathBuf| {
                (scope.paths.is_empty() || scope.paths.iter().any(|above| path.starts_with(above)))
                    && !scope.except.iter().any(|except| path.starts_with(except))
            };
            if paths.is_empty() { scope.paths.is_empty() } else { paths.iter().all(holds) }
        };
        let mut restores =
            self.restores.iter().filter(|restore| restore.complete && restore.undoes.is_none());
        restores.any(|restore| {
            let brought = |step: &Step| step.target == first && covers(&step.scope);
            restore.steps.iter().any(brought) && !self.is_undone(&restore.id)
        })
    }

    /// Take out the restore that was cut off, if there is one.
    pub(super) fn take_cut_off(&mut self) -> Option<Restore> {
        self.restores.pop_if(|last| !last.complete)
    }

    /// The last restore that was not undone; undos are not restores here, or a second undo would be a redo.
    pub(super) fn last_to_undo(&self) -> Option<&Restore> {
        let mut restores = self.restores.iter().rev();
        restores.find(|restore| restore.undoes.is_none() && !self.is_undone(&restore.id))
    }
}

impl Restore {
    /// The step that began is done. After a kill nobody says so: then its safety snapshot is the one that was recorded
    /// first since it began; with none, nothing happened.
    pub(super) fn settle(&mut self, record: &Record) {
        self.steps.extend(self.pending.take().and_then(|pending| pending.finished(record)));
    }

    fn number(&self) -> Option<u64> {
        self.id.rsplit('.').next()?.parse().ok()
    }
}

impl Pending {
    /// The step, with the snapshots that were recorded for it.
    pub(super) fn finished(self, record: &Record) -> Option<Step> {
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

/// One restore or undo of a session at a time, from the first look at its history to the last word in it.
#[derive(Debug)]
#[must_use]
pub(super) struct Lock(File);

impl Lock {
    pub(super) fn take(session: &Path) -> Result<Lock, RollbackError> {
        let path = session.join(LOCK);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).map_err(RollbackError::io(&path))?;
        file.lock().map_err(RollbackError::io(&path))?;
        Ok(Lock(file))
    }
}

/// Whether a restore of this session is under way.
pub(super) fn is_locked(session: &Path) -> Result<bool, RollbackError> {
    let path = session.join(LOCK);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other.map_err(RollbackError::io(&path))?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(source)) => Err(RollbackError::Io { path, source }),
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a process that is just being forked has the descriptor until it executes.
        let _ = self.0.unlock();
    }
}
