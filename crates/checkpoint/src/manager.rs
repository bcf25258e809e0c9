//! Manager of checkpoints: taking, listing, comparing, restoring, undoing, pruning.

mod finish_restore;
pub(crate) mod open;
mod query;
mod restore;
mod take;
mod turn;
mod undoable;
mod versions;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use nono_history::{Conflicts, Done};
use nono_snapshot::{Change, Coverage, Observer, SnapshotId, SnapshotManager};

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::error::{CheckpointError, Result};
use crate::history::{Checkpoint, CheckpointId, Stats};
pub use crate::host::Host;
use crate::legacy::Legacy;
use crate::origin::Origin;
use crate::unprotected::Unprotected;
pub use finish_restore::RunGone;
pub use turn::{TurnCall, WorkedTurn};
pub use undoable::Undoable;
pub use versions::{ChangedBy, FileVersion};

/// Records a completed restore; returns the reason if it cannot.
type Recorder = Box<dyn Fn(&Completed) -> Option<String> + Send + Sync>;

/// Checkpoints of all projects of one state folder.
pub struct CheckpointManager {
    host: Host,
    config: Config,
    /// Current turn of this manager.
    turn: Option<String>,
    /// Turns that have a checkpoint.
    taken: HashMap<take::TurnKey, CheckpointId>,
    who: Origin,
    /// Folders that projects are limited to, if any.
    within: Option<Vec<PathBuf>>,
    /// nono's own temporary paths in projects.
    own: Vec<PathBuf>,
    watcher: Arc<dyn Observer + Send>,
    recorder: Option<Recorder>,
    /// Interrupted restores that were completed, until the caller takes them.
    completed: Mutex<Vec<Completed>>,
    /// Messages about interrupted restores of sessions and other projects in the same folders.
    others: Mutex<Vec<String>>,
    /// Checkpoints removed to free space, until the caller takes them.
    pruned: Mutex<Vec<Pruned>>,
}

impl fmt::Debug for CheckpointManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckpointManager").field("host", &self.host).finish_non_exhaustive()
    }
}

/// Interrupted restore, or undo of one, that the next operation on its project completed or tried to complete.
#[derive(Debug)]
pub struct Completed {
    pub project: PathBuf,
    /// `None` if the log of restores lost it.
    pub checkpoint: Option<CheckpointId>,
    /// Result, with the changes from before the interruption; `interrupted` if it was interrupted again.
    pub done: Done,
}

/// Result of requesting a checkpoint. A failure is one of them: the agent's work goes on.
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
    /// The checkpoint failed, so there is no protection. The project's status shows it until a checkpoint succeeds.
    Failed {
        dir: PathBuf,
        error: CheckpointError,
    },
}

/// Reason why no checkpoint was needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Skip {
    Disabled,
    /// The turn already has this checkpoint.
    ThisTurn(CheckpointId),
    /// Nothing changed since this one.
    Unchanged(CheckpointId),
}

/// Reference to a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointTarget {
    /// A number of the list (1 is the newest), an id or its beginning, or a name.
    Text(String),
    Id(CheckpointId),
    /// The checkpoint before this turn.
    Turn(String),
}

/// Options of a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointChoice {
    /// Absolute paths to restore; everything, if empty.
    pub paths: Vec<PathBuf>,
    /// Whether to write inside an existing `.git` too.
    pub with_git: bool,
    pub conflicts: Conflicts,
}

/// Restore plan.
#[derive(Debug, Default)]
pub struct ProjectPlan {
    pub project: PathBuf,
    pub restore: nono_history::Plan,
    /// Turns that would be undone, oldest first.
    pub turns_undone: Vec<String>,
    /// Number of paths that the checkpoint does not hold, and a restore does not touch.
    pub not_covered: u64,
}

/// Result of a restore.
#[derive(Debug)]
pub struct ProjectOutcome {
    pub project: PathBuf,
    pub checkpoint: Checkpoint,
    pub turns_undone: Vec<String>,
    /// Agents whose conversations include work that was undone.
    pub agents: Vec<String>,
    pub done: nono_history::Done,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectStatus {
    pub hash: String,
    #[serde(with = "nono_sys::path_serde")]
    pub workdir: PathBuf,
    pub checkpoints: u64,
    pub last_touch: String,
    /// Whether the folder is gone, and not only its disk.
    pub orphan: bool,
    /// Reason why the last checkpoint failed, if it did: nothing protects the project since then.
    pub unprotected: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReport {
    pub enabled: bool,
    #[serde(with = "nono_sys::path_serde")]
    pub base: PathBuf,
    /// Size of what only checkpoints reference in the store, and of their own folders.
    pub store_bytes: u64,
    /// Whether the size is exact: nothing was written since it was counted.
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

/// Limits for a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    pub max_snapshots: u32,
    pub max_bytes: u64,
    pub retention_days: u32,
    pub delete_orphans: bool,
}

/// Result or preview of a removal.
#[derive(Debug, Default)]
pub struct Pruned {
    /// Projects, each with the checkpoints that are removed.
    pub removed: Vec<(PathBuf, Vec<Checkpoint>)>,
    pub projects_removed: Vec<PathBuf>,
    /// Folders of superseded formats.
    pub legacy: Vec<Legacy>,
    pub bytes_before: u64,
    pub bytes_after: u64,
    pub over_budget: bool,
    pub problems: Vec<CheckpointError>,
}

/// Unique name for an agent's call that has none.
pub fn new_call() -> Result<String> {
    restore::random_id()
}

impl CheckpointManager {
    pub fn new(host: Host, config: Config) -> CheckpointManager {
        CheckpointManager {
            host,
            config,
            turn: None,
            taken: HashMap::new(),
            who: Origin::default(),
            within: None,
            own: Vec::new(),
            watcher: Arc::new(()),
            recorder: None,
            completed: Mutex::default(),
            pruned: Mutex::default(),
            others: Mutex::default(),
        }
    }

    /// Takes the messages about interrupted restores of others in the same folders. Each is returned once.
    pub fn take_completed_others(&self) -> Vec<String> {
        std::mem::take(&mut self.others.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the interrupted restores that this manager completed. Each is returned once.
    pub fn take_completed(&self) -> Vec<Completed> {
        std::mem::take(&mut self.completed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the list of what was removed to free space for a checkpoint. Each is returned once.
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

    /// Limits projects to these folders (by their resolved paths): no project reaches further up than one of them.
    #[must_use]
    pub fn within(mut self, folders: Vec<PathBuf>) -> CheckpointManager {
        self.within = Some(folders);
        self
    }

    /// Excludes these paths of nono's own from every checkpoint.
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

    /// Sets the observer of the progress of long operations.
    pub fn observe(&mut self, observer: impl Observer + Send + 'static) {
        self.watcher = Arc::new(observer);
    }

    /// Observer for an operation; does nothing if none was set.
    pub(crate) fn watcher(&self) -> &Arc<dyn Observer + Send> {
        &self.watcher
    }

    /// Sets the function that records completed restores in the audit log. It returns the reason if it cannot.
    #[must_use]
    pub fn recording(
        mut self,
        record: impl Fn(&Completed) -> Option<String> + Send + Sync + 'static,
    ) -> CheckpointManager {
        self.recorder = Some(Box::new(record));
        self
    }

    /// Sets the origin that restores are attributed to.
    pub fn set_who(&mut self, who: &Origin) {
        self.who = who.bounded();
    }
}

/// Note to an agent about a restore by the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreNote {
    #[serde(with = "nono_sys::path_serde")]
    pub project: PathBuf,
    pub checkpoint: CheckpointId,
    pub turns_undone: Vec<String>,
    pub files: Vec<String>,
    /// Id of the restore.
    #[serde(default)]
    pub restore: String,
    /// Whether an undo brought these turns back, after the agent had the note that they are gone.
    #[serde(default)]
    pub came_back: bool,
    /// Whether only that turn was undone, and later work stays.
    #[serde(default)]
    pub alone: bool,
}

/// Comparison of a checkpoint with the present state.
#[derive(Debug)]
pub struct Compared {
    pub manager: SnapshotManager,
    pub from: SnapshotId,
    /// Snapshot of the present state, removed by [`Compared::close`] or by the next operation on the project.
    pub to: SnapshotId,
    pub changes: Vec<Change>,
    pub stats: Stats,
}
