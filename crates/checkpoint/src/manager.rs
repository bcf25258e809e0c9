//! The way in: checkpoints taken, listed, compared, restored, undone, kept within bounds.

mod after;
mod look;
pub(crate) mod open;
mod restore;
mod take;
mod turn;
mod undoable;
mod versions;
mod watch;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use nono_history::Conflicts;
use nono_snapshot::restore::Skipped;
use nono_snapshot::{Change, Coverage, Observer, SnapshotId, SnapshotManager};

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::CheckpointError;
use crate::history::{Checkpoint, CheckpointId, Stats};
use crate::legacy::Legacy;
use crate::origin::Origin;
use crate::unprotected::Unprotected;
pub use after::RunGone;
pub use turn::{TurnCall, WorkedTurn};
pub use undoable::{LastRestore, Undoable};
pub use versions::{ChangedBy, FileVersion};
use watch::Watcher;

/// What the edge knows of the machine.
#[derive(Clone, Debug)]
pub struct Host {
    /// nono's own folder.
    pub state_dir: PathBuf,
    pub home: PathBuf,
}

/// Checkpoints of all projects of one state folder.
#[derive(Debug)]
pub struct CheckpointManager {
    host: Host,
    config: Config,
    /// The present one of this manager.
    turn: Option<String>,
    /// Turns that have their checkpoint.
    taken: HashMap<take::TurnKey, CheckpointId>,
    who: Origin,
    /// No project is found outside of these, where there are any.
    within: Option<Vec<PathBuf>>,
    /// What stands in projects for a while and is nono's own.
    own: Vec<PathBuf>,
    watcher: Option<Watcher>,
    /// Restores of killed processes that were completed on the way, until somebody asks.
    completed: Mutex<Vec<Completed>>,
    /// The same of sessions and other projects in the same folders: what to say about each.
    others: Mutex<Vec<String>>,
    /// What went to make room, until it is asked for.
    pruned: Mutex<Vec<Pruned>>,
}

/// A restore whose process was killed, and that the next operation on its project completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    pub project: PathBuf,
    pub checkpoint: CheckpointId,
    /// Paths that it changed, before it was killed and now.
    pub changed: usize,
    /// What was changed by somebody after it was killed, and stays.
    pub kept: Vec<Skipped>,
}

/// What came of wanting a checkpoint. A failure is one of them: the agent's work goes on.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one of it at a time")]
pub enum Ensured {
    Taken {
        project: PathBuf,
        checkpoint: Checkpoint,
        coverage: Coverage,
    },
    Skipped {
        project: PathBuf,
        why: Skip,
    },
    /// There is no protection now. It is kept in the project's status until a checkpoint succeeds.
    Failed {
        dir: PathBuf,
        error: CheckpointError,
    },
}

/// Why there was no need for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    Disabled,
    /// There is one of this turn.
    ThisTurn(CheckpointId),
    /// Everything is as in this one.
    Unchanged(CheckpointId),
}

/// Which checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A number of the list (1 is the newest), an id or a beginning of one, or a name.
    Text(String),
    Id(CheckpointId),
    /// Before this turn.
    Turn(String),
}

/// What to restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Absolute; everything when empty.
    pub paths: Vec<PathBuf>,
    /// Write inside a `.git` that is there, too.
    pub with_git: bool,
    pub conflicts: Conflicts,
}

/// What a restore would do.
#[derive(Debug, Default)]
pub struct Plan {
    pub project: PathBuf,
    pub restore: nono_history::Plan,
    /// Turns that would be gone, oldest first.
    pub turns_undone: Vec<String>,
    /// Number of paths that the checkpoint does not hold, and a restore does not touch.
    pub not_covered: u64,
}

/// What a restore did.
#[derive(Debug)]
pub struct Outcome {
    pub project: PathBuf,
    pub checkpoint: Checkpoint,
    pub turns_undone: Vec<String>,
    /// Agents whose conversations go on beyond what they left.
    pub agents: Vec<String>,
    pub done: nono_history::Done,
}

/// One project in the status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectStatus {
    pub hash: String,
    #[serde(with = "nono_sys::path_serde")]
    pub workdir: PathBuf,
    pub checkpoints: u64,
    pub last_touch: String,
    /// The folder is gone, and not only its disk.
    pub orphan: bool,
    /// Why the last attempt failed, if it did: nothing protects the project since then.
    pub unprotected: Option<String>,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub enabled: bool,
    #[serde(with = "nono_sys::path_serde")]
    pub base: PathBuf,
    /// What only checkpoints reach, and what they have beside the store.
    pub store_bytes: u64,
    /// As it was counted, and nothing was written since.
    pub exact: bool,
    pub legacy_bytes: u64,
    pub projects: Vec<ProjectStatus>,
    /// Folders of superseded formats, with their sizes.
    pub legacy: Vec<(String, u64)>,
    /// Folders that have no project yet, because the first checkpoint failed.
    #[serde(default)]
    pub unprotected: Vec<Unprotected>,
    /// Projects that cannot be read.
    pub problems: Vec<String>,
}

/// What a sweep goes by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    pub max_snapshots: u32,
    pub max_bytes: u64,
    pub retention_days: u32,
    pub delete_orphans: bool,
}

/// What was, or would be, removed.
#[derive(Debug, Default)]
pub struct Pruned {
    /// Project, and the checkpoints that go.
    pub removed: Vec<(PathBuf, Vec<Checkpoint>)>,
    pub projects_removed: Vec<PathBuf>,
    /// Archives of superseded formats.
    pub legacy: Vec<Legacy>,
    pub bytes_before: u64,
    pub bytes_after: u64,
    pub over_budget: bool,
    pub problems: Vec<CheckpointError>,
}

/// A name for a call of an agent's that has none: no other call has it.
pub fn new_call() -> Result<String, CheckpointError> {
    restore::random_id()
}

impl CheckpointManager {
    pub fn new(host: Host, config: Config) -> CheckpointManager {
        let (turn, taken, who) = (None, HashMap::new(), Origin::default());
        CheckpointManager {
            host,
            config,
            turn,
            taken,
            who,
            within: None,
            own: Vec::new(),
            watcher: None,
            completed: Mutex::default(),
            pruned: Mutex::default(),
            others: Mutex::default(),
        }
    }

    /// Restores of sessions and other projects that were cut off in the same folders, and what became of them. Asked once,
    /// they are forgotten.
    pub fn take_completed_others(&self) -> Vec<String> {
        std::mem::take(&mut self.others.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Restores that were cut off and that this manager completed on the way. Asked once, they are forgotten.
    pub fn take_completed(&self) -> Vec<Completed> {
        std::mem::take(&mut self.completed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What went to make room for a checkpoint of this manager. Asked once, it is forgotten.
    pub fn take_pruned(&self) -> Vec<Pruned> {
        std::mem::take(&mut self.pruned.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn note_pruned(&self, pruned: Pruned) {
        self.pruned.lock().unwrap_or_else(PoisonError::into_inner).push(pruned);
    }

    /// Whether it works for a sandboxed command.
    pub(crate) fn is_confined(&self) -> bool {
        self.within.is_some()
    }

    /// Only for what lies in these folders (by their resolved paths): no project reaches further up than one of them.
    #[must_use]
    pub fn within(mut self, folders: Vec<PathBuf>) -> CheckpointManager {
        self.within = Some(folders);
        self
    }

    /// Leave these out of every checkpoint: they are nono's own, wherever they stand.
    #[must_use]
    pub fn without(mut self, own: Vec<PathBuf>) -> CheckpointManager {
        self.own = own;
        self
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Tell somebody how far long work is, from now on.
    pub fn observe(&mut self, observer: impl Observer + Send + 'static) {
        self.watcher = Some(Watcher::new(observer));
    }

    /// Whoever watches; nobody is one of them.
    pub(crate) fn watcher(&self) -> Watcher {
        self.watcher.clone().unwrap_or_else(|| Watcher::new(()))
    }

    /// Whom restores are attributed to from now on.
    pub fn set_who(&mut self, who: &Origin) {
        self.who = who.bounded();
    }
}

/// For an agent: what a person put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    #[serde(with = "nono_sys::path_serde")]
    pub project: PathBuf,
    pub checkpoint: CheckpointId,
    pub turns_undone: Vec<String>,
    pub files: Vec<String>,
    /// Which restore it was.
    #[serde(default)]
    pub restore: String,
    /// An undo brought these turns back, after the agent was told that they are gone.
    #[serde(default)]
    pub came_back: bool,
    /// Only that turn was taken back: what came later stays.
    #[serde(default)]
    pub alone: bool,
}

/// A checkpoint beside the present.
#[derive(Debug)]
pub struct Compared {
    pub manager: SnapshotManager,
    pub from: SnapshotId,
    /// A snapshot of now, which goes with [`Compared::close`] or with the next operation on the project.
    pub to: SnapshotId,
    pub changes: Vec<Change>,
    pub stats: Stats,
}
