//! Undo points of a directory, of sessions and checkpoints alike, newest first.
//!
//! A session is a point (the state before it). So is a checkpoint taken before an agent or a command worked, unless it
//! was taken inside a stored session: then the session is the point. A checkpoint that the user took is a point only by
//! name. Nothing here changes anything: the result is a list of [`Point`]s.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use nono_checkpoint::{Checkpoint, CheckpointError, CheckpointManager, CheckpointTarget, Undoable};
pub use nono_history::{LastRestore, refuse_parts};
use nono_snapshot::SnapshotId;
use nono_sys::time::seconds;
use thiserror::Error;

use crate::rollback::{Catalogue, RollbackError, SessionEntry, ToUndo};
use crate::session_ref;

#[derive(Debug, Error)]
pub enum UndoError {
    #[error(transparent)]
    Rollback(#[from] RollbackError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

/// A state to go back to.
#[derive(Clone, Debug)]
pub enum Point {
    /// The baseline of a session, or one of its later snapshots.
    Session {
        entry: Box<SessionEntry>,
        snapshot: SnapshotId,
        /// Restored before with something kept: only what can be restored by now is left.
        again: bool,
    },
    Checkpoint {
        project: PathBuf,
        checkpoint: Box<Checkpoint>,
        /// Restored before: only changes made since are undone.
        again: bool,
    },
}

/// Undo points of a directory.
#[derive(Debug, Default)]
pub struct Points {
    /// Newest first.
    pub list: Vec<Point>,
    /// Reason why checkpoints are missing from the list, where there should be some.
    pub problem: Option<CheckpointError>,
}

/// Sources of undo points for a directory.
#[derive(Clone, Copy, Debug)]
pub struct Undoing<'a> {
    pub catalogue: &'a Catalogue,
    pub checkpoints: &'a CheckpointManager,
    /// Resolved path.
    pub dir: &'a Path,
}

impl Point {
    fn before(entry: SessionEntry) -> Point {
        Point::Session { entry: Box::new(entry), snapshot: SnapshotId::Number(0), again: false }
    }

    /// Whether it was restored before: there may be nothing left to do.
    pub fn is_again(&self) -> bool {
        match self {
            Point::Session { again, .. } | Point::Checkpoint { again, .. } => *again,
        }
    }

    /// Start of the work that this point precedes: ISO 8601, UTC.
    pub fn time(&self) -> &str {
        match self {
            Point::Session { entry, .. } => &entry.metadata.started,
            Point::Checkpoint { checkpoint, .. } => checkpoint.work_began(),
        }
    }

    pub fn id(&self) -> &str {
        match self {
            Point::Session { entry, .. } => &entry.id,
            Point::Checkpoint { checkpoint, .. } => checkpoint.id.as_str(),
        }
    }

    fn is_same(&self, other: &Point) -> bool {
        match (self, other) {
            (Point::Session { entry: a, .. }, Point::Session { entry: b, .. }) => a.id == b.id,
            (Point::Checkpoint { checkpoint: a, .. }, Point::Checkpoint { checkpoint: b, .. }) => {
                a.id == b.id
            }
            _ => false,
        }
    }

    fn order(&self) -> impl Ord + use<> {
        let id = match self {
            Point::Session { entry, .. } => entry.id.as_str(),
            Point::Checkpoint { checkpoint, .. } => checkpoint.run().unwrap_or_default(),
        };
        session_ref::age(self.time(), id)
    }
}

impl Undoing<'_> {
    /// Everything that can be undone here, or at these paths.
    pub fn points(&self, paths: &[PathBuf]) -> Result<Points, UndoError> {
        let sessions = self.catalogue.to_undo_in(self.dir, paths);
        let (undoable, problem) = match self.checkpoints.undoable(self.dir, paths) {
            Ok(undoable) => (undoable, None),
            Err(error) => (None, Some(error)),
        };
        let is_known = problem.is_some()
            || undoable.as_ref().is_some_and(|known| !known.checkpoints.is_empty() || known.last.is_some());
        let sessions = match sessions {
            Err(RollbackError::NoneHere { .. }) if is_known => Vec::new(),
            other => other?,
        };
        let point = |ToUndo { entry, again }: ToUndo| Point::Session {
            entry: Box::new(entry),
            snapshot: SnapshotId::Number(0),
            again,
        };
        let mut sessions: Vec<Point> = sessions.into_iter().map(point).collect();
        let mut checkpoints = Vec::new();
        if let Some(undoable) = undoable {
            sessions.retain(|session| {
                !undoable.gone_to.iter().any(|(target, at)| went_beyond(session, target, *at))
            });
            checkpoints = self.checkpoint_points(undoable, paths)?;
        }
        Ok(Points { list: merged(sessions, checkpoints), problem })
    }

    /// Checkpoints that are points: not those of a run that is a session, which are parts of it, and not those newer
    /// than a session that was undone since.
    fn checkpoint_points(&self, undoable: Undoable, paths: &[PathBuf]) -> Result<Vec<Point>, UndoError> {
        let sessions: HashSet<String> =
            self.catalogue.here(self.dir)?.into_iter().map(|entry| entry.id).collect();
        let undone: Vec<(Point, u64)> = self
            .catalogue
            .undone_in(self.dir, paths)?
            .into_iter()
            .map(|(entry, at)| (Point::before(entry), at))
            .collect();
        let Undoable { project, checkpoints, gone_to, .. } = undoable;
        let mut points = Vec::new();
        for checkpoint in checkpoints {
            let inside = checkpoint.run().is_some_and(|run| sessions.contains(run));
            let gone_at = gone_to.last().filter(|(last, _)| last.id == checkpoint.id).map(|(_, at)| *at);
            // The last time it was the state here, if known more precisely than by the second.
            let last = checkpoint.begun.as_ref().map(|begun| begun.at).max(gone_at);
            let taken = seconds(&checkpoint.time);
            let (project, checkpoint) = (project.clone(), Box::new(checkpoint));
            let point = Point::Checkpoint { project, checkpoint, again: gone_at.is_some() };
            let beyond = undone.iter().any(|(session, at)| {
                let before = last.map_or(taken < Some(at / NANOSECONDS), |last| last < *at);
                before && session.order() < point.order()
            });
            if !inside && !beyond {
                points.push(point);
            }
        }
        Ok(points)
    }

    /// Points to restore, newest first, up to the session or checkpoint that `text` names; `None` if it names none.
    pub fn until(&self, text: &str, paths: &[PathBuf]) -> Result<Option<Points>, UndoError> {
        let Some(target) = self.named(text)? else { return Ok(None) };
        let mut points = match self.points(paths) {
            Err(UndoError::Rollback(RollbackError::NoneHere { .. })) => Points::default(),
            other => other?,
        };
        let newer = match (points.list.iter().position(|point| point.is_same(&target)), &target) {
            (Some(at), _) => at,
            // A session of another directory, or one already undone, is restored by itself.
            (None, Point::Session { .. }) => 0,
            (None, Point::Checkpoint { .. }) => {
                points.list.iter().take_while(|point| point.order() > target.order()).count()
            }
        };
        points.list.truncate(newer);
        points.list.push(target);
        points.list = collapsed(points.list);
        Ok(Some(points))
    }

    fn named(&self, text: &str) -> Result<Option<Point>, UndoError> {
        match self.catalogue.find(text) {
            Err(RollbackError::NotFound { .. } | RollbackError::NoSessions) => {}
            other => return Ok(Some(Point::before(other?))),
        }
        let found = match self.checkpoints.find(self.dir, &CheckpointTarget::Text(text.to_owned())) {
            Err(
                CheckpointError::NotFound { .. }
                | CheckpointError::NoProject { .. }
                | CheckpointError::TooBroad { .. },
            ) => return Ok(None),
            other => other?,
        };
        let project = self.checkpoints.root_of(self.dir)?.dir;
        Ok(Some(Point::Checkpoint { project, checkpoint: Box::new(found), again: false }))
    }

    /// Points to restore for everything that began at `moment` (seconds since 1970) or later; for a session that was
    /// running then, its last snapshot before.
    pub fn since(&self, moment: u64, paths: &[PathBuf]) -> Result<Points, UndoError> {
        let Points { list, problem } = self.points(paths)?;
        let mut chosen = Vec::new();
        for point in list {
            if seconds(point.time()).is_some_and(|time| time >= moment) {
                chosen.push(point);
            } else if let Point::Session { entry, again, .. } = point
                && entry.metadata.ended.as_deref().and_then(seconds).is_some_and(|ended| ended > moment)
            {
                let snapshot = self.last_before(&entry, moment)?;
                chosen.push(Point::Session { entry, snapshot, again });
            }
        }
        Ok(Points { list: collapsed(chosen), problem })
    }

    /// The newest snapshot of a session that is not newer than `moment`.
    fn last_before(&self, entry: &SessionEntry, moment: u64) -> Result<SnapshotId, UndoError> {
        let session = self.catalogue.open(entry.clone())?;
        let snapshots = session.snapshots()?;
        let numbered =
            snapshots.into_iter().filter(|one| matches!(one.id, SnapshotId::Number(_)) && !one.thinned);
        let before = numbered.filter(|one| seconds(&one.timestamp).is_some_and(|time| time <= moment));
        Ok(before.map(|one| one.id).max().unwrap_or(SnapshotId::Number(0)))
    }

    /// The last restore here that was not undone.
    pub fn last_restore(&self) -> Result<Option<LastRestore<Point>>, UndoError> {
        let session = self.catalogue.last_restore_in(self.dir)?.map(|last| last.map(Point::before));
        let project = self.checkpoints.undoable(self.dir, &[])?.and_then(|undoable| {
            let Undoable { project, last, .. } = undoable;
            let point =
                |checkpoint| Point::Checkpoint { project, checkpoint: Box::new(checkpoint), again: false };
            Some(last?.map(point))
        });
        Ok(LastRestore::latest(session.into_iter().chain(project)))
    }
}

/// Whether a restore of a checkpoint older than a session, made after the session ended, undid the session's work as
/// well.
fn went_beyond(session: &Point, target: &Checkpoint, at: u64) -> bool {
    let Point::Session { entry, .. } = session else { return false };
    let ended = entry.metadata.ended.as_deref().and_then(seconds);
    let older = seconds(&target.time) < seconds(&entry.metadata.started);
    older && ended.is_some_and(|ended| ended < at / NANOSECONDS)
}

const NANOSECONDS: u64 = 1_000_000_000;

/// Both lists in one, newest first. Each keeps its own order, which does not depend on the clock.
fn merged(sessions: Vec<Point>, checkpoints: Vec<Point>) -> Vec<Point> {
    let mut checkpoints = checkpoints.into_iter().peekable();
    let mut list = Vec::new();
    for session in sessions {
        while let Some(newer) = checkpoints.next_if(|checkpoint| checkpoint.order() > session.order()) {
            list.push(newer);
        }
        list.push(session);
    }
    list.extend(checkpoints);
    list
}

/// The points without checkpoints that are directly followed by an older one of the same project: restoring the oldest
/// suffices.
fn collapsed(points: Vec<Point>) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::new();
    for point in points {
        let same = matches!(
            (kept.last(), &point),
            (Some(Point::Checkpoint { project: last, .. }), Point::Checkpoint { project, .. }) if last == project
        );
        if same {
            kept.pop();
        }
        kept.push(point);
    }
    kept
}
