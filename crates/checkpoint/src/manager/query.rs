//! Queries: lists, names, comparisons.

use std::path::{Path, PathBuf};

use nono_history::git_of;
use nono_snapshot::{Protection, SnapshotId};

use super::open::{Bounds, Open};
use super::{CheckpointManager, CheckpointTarget, Compared};
use crate::error::{CheckpointError, Result};
use crate::history::{Checkpoint, CheckpointId, History, Stats};
use crate::pending_calls::{PendingCalls, asides};
use crate::project::{self, Project};
use crate::stats;

/// Name prefix of snapshots that only a comparison needs.
const NOW: &str = "now";

/// Maximum length of a checkpoint's name, in bytes.
const NAME: usize = 100;

impl CheckpointManager {
    /// Existing paths among these that a checkpoint does not hold, each with the reason.
    pub fn uncovered(
        &self,
        dir: &Path,
        id: &CheckpointId,
        paths: &[PathBuf],
    ) -> Result<Vec<(PathBuf, String)>> {
        let open = self.open(dir, Bounds::None)?;
        let Some(line) = open.history.find(id).filter(|line| line.left_out > 0) else {
            return Ok(Vec::new());
        };
        let manifest = open.manager.load_manifest(line.snapshot)?;
        let mut uncovered = Vec::new();
        for path in paths {
            let place = project::place(path)?;
            if !place.starts_with(open.workdir()) || place.symlink_metadata().is_err() {
                continue;
            }
            let protection = manifest.protection(&place).map_err(nono_snapshot::SnapshotError::from)?;
            if let Protection::LeftOut { reason, .. } = protection {
                uncovered.push((place, reason.to_string()));
            }
        }
        Ok(uncovered)
    }

    /// Checkpoints, newest first, with the stats of each step.
    pub fn list(&self, dir: &Path) -> Result<Vec<Checkpoint>> {
        let mut open = self.open(dir, Bounds::Settings)?;
        open.fill_stats()?;
        // As in `fill_stats`: damage must not prevent a list.
        let newest = open.newest_stats().unwrap_or_default();
        let mut list: Vec<Checkpoint> = open.history.checkpoints.iter().rev().cloned().collect();
        if let Some(first) = list.first_mut() {
            first.stats = first.stats.or(newest);
        }
        Ok(list)
    }

    pub fn find(&self, dir: &Path, target: &CheckpointTarget) -> Result<Checkpoint> {
        let open = self.open(dir, Bounds::Settings)?;
        self.find_in(&open, target)
    }

    pub(super) fn find_in(&self, open: &Open, target: &CheckpointTarget) -> Result<Checkpoint> {
        let project = || open.workdir().to_owned();
        match target {
            CheckpointTarget::Id(id) => match open.history.find(id) {
                Some(line) => Ok(line.clone()),
                None => Err(self.not_found(open, id.as_str())),
            },
            CheckpointTarget::Text(text) => match by_text(&open.history, text)? {
                Some(line) => Ok(line.clone()),
                None => Err(self.not_found(open, text)),
            },
            CheckpointTarget::Turn(turn) => {
                let no_turn = || CheckpointError::NoTurn { turn: turn.clone(), project: project() };
                let of_turn = open.history.turns.iter().filter(|link| link.turn == *turn);
                let mut ids: Vec<CheckpointId> = of_turn.map(|link| link.checkpoint.clone()).collect();
                ids.dedup();
                match ids.as_slice() {
                    [] => Err(no_turn()),
                    [id] => open.history.find(id).cloned().ok_or_else(no_turn),
                    // Turns of several conversations have the same name.
                    _ => Err(CheckpointError::Ambiguous {
                        text: turn.clone(),
                        ids: ids.iter().map(ToString::to_string).collect(),
                    }),
                }
            }
        }
    }

    /// Error for an unknown checkpoint, which may be an id of another project.
    fn not_found(&self, open: &Open, text: &str) -> CheckpointError {
        let (text, project) = (text.to_owned(), open.workdir().to_owned());
        match self.elsewhere(&text).filter(|other| *other != project) {
            Some(other) => CheckpointError::OtherProject { text, other, project },
            None => CheckpointError::NotFound { text, project },
        }
    }

    /// Project that has a checkpoint with this id. Unreadable projects are skipped.
    fn elsewhere(&self, text: &str) -> Option<PathBuf> {
        if text.len() < 6 || !is_id(text) {
            return None;
        }
        let folders = std::fs::read_dir(project::projects_dir(&self.host)).ok()?;
        folders.flatten().find_map(|entry| {
            let history = History::load(&entry.path()).ok()?;
            let has = history.checkpoints.iter().any(|line| line.id.as_str().starts_with(text));
            if has { Project::load(&entry.path()).ok()?.map(|project| project.workdir) } else { None }
        })
    }

    /// Compares a checkpoint with the present state. The result has the engine's manager of the project with both
    /// sides, for access to contents. Paths inside an existing `.git` are left out, as a restore leaves them alone.
    pub fn compare(&mut self, dir: &Path, target: &CheckpointTarget) -> Result<Compared> {
        let mut open = self.open(dir, Bounds::None)?;
        let line = self.find_in(&open, target)?;
        let from = line.snapshot_id();
        let old = asides(&open.manager, NOW)?;
        if !old.is_empty() {
            open.manager.drop_asides(&old)?;
        }
        let now = open.manager.look_now_as(&from)?;
        let mut changes = open.manager.changes_until(&from, &now)?;
        let to = open.manager.publish_aside(now, NOW)?.id;
        changes.retain(|change| {
            git_of(&change.path).is_none_or(|git| git.symlink_metadata().is_err())
                && !(line.imported_from.is_some() && change.old.is_none())
        });
        let stats = stats::count(&open.manager, &changes);
        Ok(Compared { manager: open.manager, from, to, changes, stats })
    }

    /// Names a checkpoint, which protects it from pruning; an empty name removes the name.
    pub fn set_name(&self, dir: &Path, target: &CheckpointTarget, name: &str) -> Result<Checkpoint> {
        let mut open = self.open(dir, Bounds::Settings)?;
        let line = self.find_in(&open, target)?;
        if name.is_empty() {
            return open.change(&line.id, |line| line.name = None);
        }
        let refuse = |why| CheckpointError::BadName { name: name.to_owned(), why };
        let others = open.history.checkpoints.iter().filter(|other| other.id != line.id);
        if name.len() > NAME {
            Err(refuse("it is longer than 100 bytes"))
        } else if name.trim() != name || name.chars().any(char::is_control) {
            Err(refuse("it has surrounding white space or a control character"))
        } else if name.bytes().all(|byte| byte.is_ascii_digit()) {
            Err(refuse("it could be confused with a number of the list"))
        } else if others.clone().any(|other| other.name.as_deref() == Some(name)) {
            Err(refuse("another checkpoint has that name"))
        } else if is_id(name) && others.clone().any(|other| other.id.as_str().starts_with(name)) {
            Err(refuse("it is the beginning of another checkpoint's id"))
        } else {
            open.change(&line.id, |line| line.name = Some(name.to_owned()))
        }
    }

    /// Pins a checkpoint, which protects it from pruning, or unpins it.
    pub fn set_pinned(&self, dir: &Path, target: &CheckpointTarget, pinned: bool) -> Result<Checkpoint> {
        let mut open = self.open(dir, Bounds::Settings)?;
        let line = self.find_in(&open, target)?;
        open.change(&line.id, |line| line.pinned = pinned)
    }

    /// Compresses new contents and makes them durable. Slow: not for an agent's call.
    pub fn settle(&mut self, dir: &Path) -> Result<()> {
        let Open { folder, mut manager, .. } = self.open(dir, Bounds::Settings)?;
        // The engine has its own lock; the agent's next call must not wait for all of this.
        drop(folder);
        manager.settle()?;
        Ok(())
    }
}

/// Finds a checkpoint by a number of the list, a name, an id or its beginning.
fn by_text<'a>(history: &'a History, text: &str) -> Result<Option<&'a Checkpoint>> {
    let lines = &history.checkpoints;
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number: usize = text.parse().unwrap_or(0);
        return Ok(number.checked_sub(1).and_then(|at| lines.iter().rev().nth(at)));
    }
    if let Some(line) = lines.iter().find(|line| line.name.as_deref() == Some(text)) {
        return Ok(Some(line));
    }
    if !is_id(text) {
        return Ok(None);
    }
    let found: Vec<&Checkpoint> = lines.iter().filter(|line| line.id.as_str().starts_with(text)).collect();
    match found.as_slice() {
        [] => Ok(None),
        [line] => Ok(Some(line)),
        _ => Err(CheckpointError::Ambiguous {
            text: text.to_owned(),
            ids: found.iter().map(|line| line.id.to_string()).collect(),
        }),
    }
}

/// Whether this could be an id or its beginning.
fn is_id(text: &str) -> bool {
    let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.bytes().next().is_some_and(|first| first.is_ascii_lowercase()) && text.bytes().all(hex)
}

impl Open {
    fn change(&mut self, id: &CheckpointId, change: impl FnOnce(&mut Checkpoint)) -> Result<Checkpoint> {
        let missing = || CheckpointError::NotFound {
            text: id.to_string(),
            project: self.folder.project.workdir.clone(),
        };
        let line = self.history.checkpoints.iter_mut().find(|line| line.id == *id).ok_or_else(missing)?;
        change(line);
        let line = line.clone();
        self.save_history()?;
        Ok(line)
    }

    /// Counts the steps between checkpoints, once and for all: so it is called before checkpoints are removed.
    pub(crate) fn fill_stats(&mut self) -> Result<()> {
        let mut counted = false;
        for at in 1..self.history.checkpoints.len() {
            let [from, to] = &self.history.checkpoints[at - 1..=at] else { continue };
            if from.stats.is_some() {
                continue;
            }
            // Unreadable checkpoints have no stats; the others are counted all the same.
            let Ok(stats) = self.step(&from.snapshot_id(), &to.snapshot_id()) else { continue };
            self.history.checkpoints[at - 1].stats = Some(stats);
            counted = true;
        }
        if counted { self.save_history() } else { Ok(()) }
    }

    fn step(&self, from: &SnapshotId, to: &SnapshotId) -> Result<Stats> {
        Ok(stats::count(&self.manager, &self.manager.diff(from, to)?))
    }

    /// Changes since the newest checkpoint: until the agent's last call ended, or until now.
    fn newest_stats(&mut self) -> Result<Option<Stats>> {
        let Some(newest) = self.history.checkpoints.last().map(Checkpoint::snapshot_id) else {
            return Ok(None);
        };
        let SnapshotId::Number(number) = newest else { return Ok(None) };
        let marks = PendingCalls::load(&self.folder)?;
        if let Some(mark) = marks.since(number).filter(|_| !marks.has_open_calls()) {
            let record = self.record()?;
            if record.find(mark).is_some_and(|recorded| !recorded.thinned) {
                return self.step(&newest, mark).map(Some);
            }
        }
        let now = self.manager.look_now_as(&newest)?;
        let changes = self.manager.changes_until(&newest, &now)?;
        drop(now);
        Ok(Some(stats::count(&self.manager, &changes)))
    }
}

impl Compared {
    /// Removes the snapshot of the present state.
    pub fn close(mut self) -> Result<()> {
        Ok(self.manager.drop_asides(std::slice::from_ref(&self.to))?)
    }
}
