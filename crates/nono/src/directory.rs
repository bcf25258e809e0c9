//! Status of one directory: what is protected, running, undoable and not covered there.
//!
//! Nothing is changed, no tree is walked and no lock is waited for. What cannot be read goes to `problems` instead of
//! failing the whole status.

use std::path::{Path, PathBuf};

use nono_checkpoint::history::History;
use nono_checkpoint::{CheckpointError, CheckpointManager, Stats, project, unprotected};
use nono_policy::HostContext;
use nono_snapshot::{ChangeCounts, Example};
use serde_json::{Value, json};

use crate::control;
use crate::hooks::install::{AgentStatus as HookStatus, HookState};
use crate::json::path;
use crate::project_profile::{self, Standing};
use crate::rollback::catalogue::overlap;
use crate::rollback::{Catalogue, RollbackError, SessionEntry, Status};
use crate::undo::{Point, Points, UndoError, Undoing};

/// Maximum number of undoable steps and of left-out names.
pub const LISTED: usize = 5;

#[derive(Clone, Debug, Default)]
pub struct DirectoryStatus {
    pub dir: PathBuf,
    pub checkpoints: CheckpointsHere,
    pub project_profile: Option<(PathBuf, Standing)>,
    /// Agents with hooks, working or not.
    pub hooks: Vec<HookStatus>,
    /// Number of stored sessions that worked here.
    pub sessions: usize,
    pub running: Vec<control::Running>,
    /// Newest first, at most [`LISTED`].
    pub undoable: Vec<Point>,
    /// Total number of undoable steps.
    pub undoable_total: usize,
    pub not_covered: NotCovered,
    /// Suggested commands.
    pub next: Vec<String>,
    pub problems: Vec<String>,
}

/// Checkpoints of the project around a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointsHere {
    /// Automatic checkpoints: `[checkpoints] enabled` in `config.toml`.
    pub enabled: bool,
    /// `None` if the directory is in no project with checkpoints.
    pub project: Option<PathBuf>,
    pub count: usize,
    /// Time of the newest.
    pub last: Option<String>,
    /// Reason why the last attempt failed, if it did.
    pub unprotected: Option<String>,
}

/// Files that the snapshots of the last session here do not cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotCovered {
    pub session: Option<String>,
    pub entries: u64,
    /// At most [`LISTED`].
    pub examples: Vec<Example>,
}

impl DirectoryStatus {
    /// Collect the status. `hooks`: of all agents, as from [`crate::hooks::install::status`]; those without hooks are
    /// left out.
    pub fn of(
        dir: &Path,
        catalogue: &Catalogue,
        checkpoints: &CheckpointManager,
        hooks: Vec<HookStatus>,
    ) -> DirectoryStatus {
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let mut status = DirectoryStatus {
            hooks: hooks.into_iter().filter(|one| one.state != HookState::NotInstalled).collect(),
            ..DirectoryStatus::default()
        };
        let here = status.read(catalogue.here(&dir)).unwrap_or_default();
        status.checkpoints(&dir, checkpoints);
        status.sessions = here.len();
        status.running(&dir, &checkpoints.host().state_dir, &here);
        status.not_covered = here.first().map(not_covered).unwrap_or_default();
        let undoing = Undoing { catalogue, checkpoints, dir: &dir };
        let points = match undoing.points(&[]) {
            Err(UndoError::Rollback(RollbackError::NoneHere { .. })) => Points::default(),
            other => status.read(other).unwrap_or_default(),
        };
        status.problems.extend(points.problem.map(|error| error.to_string()));
        // A running session cannot be undone before it ends.
        let is_live =
            |point: &Point| matches!(point, Point::Session { entry, .. } if entry.status == Status::Live);
        let is_left = |point: &Point| !is_live(point) && !matches!(point, Point::Session { again: true, .. });
        let mut undoable: Vec<Point> = points.list.into_iter().filter(is_left).collect();
        status.undoable_total = undoable.len();
        status.next = next(&undoable, &status);
        undoable.truncate(LISTED);
        DirectoryStatus { dir, undoable, ..status }
    }

    #[must_use]
    pub fn with_project_profile(mut self, context: &HostContext) -> DirectoryStatus {
        let looked = project_profile::look(context);
        self.project_profile =
            self.read(looked).flatten().map(|project| (project.file().to_owned(), project.standing));
        self
    }

    /// The value of a result; an error is added to the problems.
    fn read<T>(&mut self, result: Result<T, impl std::fmt::Display>) -> Option<T> {
        result.map_err(|error| self.problems.push(error.to_string())).ok()
    }

    /// Add the checkpoints of the project around `dir`.
    fn checkpoints(&mut self, dir: &Path, manager: &CheckpointManager) {
        self.checkpoints.enabled = manager.config().enabled;
        let root = match manager.root_of(dir) {
            // No project can be here.
            Err(CheckpointError::TooBroad { .. } | CheckpointError::NoProject { .. }) => return,
            other => match self.read(other) {
                Some(root) => root.dir,
                None => return,
            },
        };
        let folder = project::folder_of(manager.host(), &root);
        let without = unprotected::without_project(manager.host());
        let failed = unprotected::of_project(&folder).or(without.into_iter().find(|note| note.dir == root));
        self.checkpoints.unprotected = failed.map(|note| note.why);
        let history = self.read(History::load(&folder)).unwrap_or_default();
        let all = history.checkpoints;
        self.checkpoints.project = (!all.is_empty()).then_some(root);
        self.checkpoints.count = all.len();
        self.checkpoints.last = all.last().map(|one| one.time.clone());
    }

    /// Add the running sessions that were started here or track something here.
    fn running(&mut self, dir: &Path, state_dir: &Path, here: &[SessionEntry]) {
        let Some((running, problems)) = self.read(control::list(state_dir)) else { return };
        self.problems.extend(problems.iter().map(ToString::to_string));
        let tracks = |id: &Option<String>| here.iter().any(|entry| Some(&entry.id) == id.as_ref());
        let is_here = |one: &control::Running| overlap(&one.info.workdir, dir) || tracks(&one.info.rollback);
        self.running = running.into_iter().filter(is_here).collect();
    }

    /// The status as JSON. Field names are stable.
    pub fn json(&self) -> Value {
        let running = |one: &control::Running| {
            json!({
                "session_id": one.info.id,
                "name": one.info.name,
                "command": one.info.command,
                "started": one.info.started,
                "workdir": path(&one.info.workdir),
            })
        };
        let example = |one: &Example| json!({"path": path(&one.path), "reason": one.reason});
        json!({
            "directory": path(&self.dir),
            "checkpoints": {
                "enabled": self.checkpoints.enabled,
                "project": self.checkpoints.project.as_deref().map(path),
                "count": self.checkpoints.count,
                "last": self.checkpoints.last,
                "unprotected": self.checkpoints.unprotected,
            },
            "project_profile": self.project_profile.as_ref().map(|(file, standing)| {
                json!({"file": path(file), "standing": standing.name()})
            }),
            "hooks": self.hooks.iter().map(crate::hooks::json::status).collect::<Vec<_>>(),
            "sessions": self.sessions,
            "running": self.running.iter().map(running).collect::<Vec<_>>(),
            "undoable": self.undoable.iter().map(point_json).collect::<Vec<_>>(),
            "undoable_total": self.undoable_total,
            "not_covered": {
                "session_id": self.not_covered.session,
                "entries": self.not_covered.entries,
                "examples": self.not_covered.examples.iter().map(example).collect::<Vec<_>>(),
            },
            "next": self.next,
            "problems": self.problems,
        })
    }
}

/// An undo point as JSON. Field names are stable.
pub fn point_json(point: &Point) -> Value {
    let (kind, command, reason) = match point {
        Point::Session { entry, .. } => ("session", Some(&entry.metadata.command), None),
        Point::Checkpoint { checkpoint, .. } => ("checkpoint", None, Some(&checkpoint.reason)),
    };
    json!({
        "kind": kind,
        "id": point.id(),
        "time": point.time(),
        "command": command,
        "reason": reason,
        "changes": changes(point),
        "stats": stats(point),
    })
}

/// Paths that a session changed.
pub fn changes(point: &Point) -> Option<&ChangeCounts> {
    match point {
        Point::Session { entry, .. } => entry.metadata.changes.as_ref(),
        Point::Checkpoint { .. } => None,
    }
}

/// Lines changed by the step after a checkpoint, once counted.
pub fn stats(point: &Point) -> Option<&Stats> {
    match point {
        Point::Session { .. } => None,
        Point::Checkpoint { checkpoint, .. } => checkpoint.stats.as_ref(),
    }
}

fn not_covered(entry: &SessionEntry) -> NotCovered {
    let coverage = entry.metadata.coverage.clone().unwrap_or_default();
    NotCovered {
        session: Some(entry.id.clone()),
        entries: coverage.entries_left_out(),
        examples: coverage.left_out.into_iter().flat_map(|one| one.examples).take(LISTED).collect(),
    }
}

fn next(undoable: &[Point], status: &DirectoryStatus) -> Vec<String> {
    let mut commands = Vec::new();
    let tracked = status.running.iter().find(|one| one.info.rollback.is_some());
    match tracked {
        // No restore while a session is running here.
        Some(running) => commands.push(format!("nono inspect {}", running.info.id)),
        None if !undoable.is_empty() => commands.push("nono undo".to_owned()),
        None => {}
    }
    if !commands.is_empty() {
        commands.push("nono diff".to_owned());
        return commands;
    }
    commands.push("nono run --rollback -- COMMAND".to_owned());
    if !status.checkpoints.enabled {
        commands.push("nono hooks install AGENT".to_owned());
    }
    commands
}
