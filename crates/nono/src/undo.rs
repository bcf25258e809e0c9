//! Points of a directory that an undo goes back to, of sessions and checkpoints alike, newest first.
//!
//! A session is a point (before it), and so is a checkpoint that was taken before an agent or a command worked, unless it
//! was taken inside of a session that is kept: then the session is the point. A checkpoint that a person took is gone back
//! to only by name. Nothing here changes anything: what is to be done is a list of [`Point`]s.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use nono_checkpoint::{Checkpoint, CheckpointError, CheckpointManager, Target, Undoable};
use nono_snapshot::SnapshotId;
use nono_sys::time::seconds;
use thiserror::Error;

use crate::pick;
use crate::rollback::{Catalogue, RollbackError, SessionEntry};

#[derive(Debug, Error)]
pub enum UndoError {
    #[error(transparent)]
    Rollback(#[from] RollbackError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

/// State to go back to.
#[derive(Clone, Debug)]
pub enum Point {
    /// Before a session, or one of its later snapshots.
    Session {
        entry: Box<SessionEntry>,
        snapshot: SnapshotId,
    },
    Checkpoint {
        project: PathBuf,
        checkpoint: Box<Checkpoint>,
    },
}

/// Points of a directory.
#[derive(Debug, Default)]
pub struct Points {
    /// Newest first.
    pub list: Vec<Point>,
    /// Why checkpoints are not among them, where there should be some.
    pub problem: Option<CheckpointError>,
}

/// The last restore in a directory that was not undone.
#[derive(Clone, Debug)]
pub struct LastRestore {
    /// What it went back to.
    pub point: Point,
    /// Something was kept: there is more to restore.
    pub kept: bool,
}

/// Where points are looked for.
#[derive(Clone, Copy, Debug)]
pub struct Undoing<'a> {
    pub catalogue: &'a Catalogue,
    pub checkpoints: &'a CheckpointManager,
    /// Resolved.
    pub dir: &'a Path,
}

impl Point {
    fn before(entry: SessionEntry) -> Point {
        Point::Session { entry: Box::new(entry), snapshot: SnapshotId::Number(0) }
    }

    /// When it was: ISO 8601, UTC.
    pub fn time(&self) -> &str {
        match self {
            Point::Session { entry, .. } => &entry.metadata.started,
            Point::Checkpoint { checkpoint, .. } => &checkpoint.time,
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
            Point::Checkpoint { checkpoint, .. } => checkpoint.origin.run.as_deref().unwrap_or_default(),
        };
        pick::age(self.time(), id)
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
        let checkpoints = match undoable {
            Some(undoable) => self.outside_sessions(undoable)?,
            None => Vec::new(),
        };
        let sessions = match sessions {
            Err(RollbackError::NoneHere { .. }) if !checkpoints.is_empty() || problem.is_some() => Vec::new(),
            other => other?,
        };
        let sessions = sessions.into_iter().map(Point::before).collect();
        Ok(Points { list: merged(sessions, checkpoints), problem })
    }

    /// Checkpoints of a run that is a session are parts of it.
    fn outside_sessions(&self, undoable: Undoable) -> Result<Vec<Point>, UndoError> {
        let sessions: HashSet<String> =
            self.catalogue.here(self.dir)?.into_iter().map(|entry| entry.id).collect();
        let inside = |checkpoint: &Checkpoint| {
            checkpoint.origin.run.as_ref().is_some_and(|run| sessions.contains(run))
        };
        let project = undoable.project;
        let points = undoable.checkpoints.into_iter().filter(|checkpoint| !inside(checkpoint));
        let point =
            |checkpoint| Point::Checkpoint { project: project.clone(), checkpoint: Box::new(checkpoint) };
        Ok(points.map(point).collect())
    }

    /// Points to go back through, newest first, to the session or checkpoint that `text` names; none where it names none.
    pub fn until(&self, text: &str, paths: &[PathBuf]) -> Result<Option<Points>, UndoError> {
        let Some(target) = self.named(text)? else { return Ok(None) };
        let mut points = match self.points(paths) {
            Err(UndoError::Rollback(RollbackError::NoneHere { .. })) => Points::default(),
            other => other?,
        };
        let newer = match (points.list.iter().position(|point| point.is_same(&target)), &target) {
            (Some(at), _) => at,
            // A session that is elsewhere, or was undone, is gone back to by itself.
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
        let found = match self.checkpoints.find(self.dir, &Target::Text(text.to_owned())) {
            Err(
                CheckpointError::NotFound { .. }
                | CheckpointError::NoProject { .. }
                | CheckpointError::TooBroad { .. },
            ) => return Ok(None),
            other => other?,
        };
        let project = self.checkpoints.root_of(self.dir)?.dir;
        Ok(Some(Point::Checkpoint { project, checkpoint: Box::new(found) }))
    }

    /// Points to go back through for everything that began at `moment` (seconds since 1970) or later; of a session that
    /// ran then, what it did since its last snapshot before.
    pub fn since(&self, moment: u64, paths: &[PathBuf]) -> Result<Points, UndoError> {
        let Points { list, problem } = self.points(paths)?;
        let mut chosen = Vec::new();
        for point in list {
            if seconds(point.time()).is_some_and(|time| time >= moment) {
                chosen.push(point);
            } else if let Point::Session { entry, .. } = point
                && entry.metadata.ended.as_deref().and_then(seconds).is_some_and(|ended| ended > moment)
            {
                let snapshot = self.last_before(&entry, moment)?;
                chosen.push(Point::Session { entry, snapshot });
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
    pub fn last_restore(&self) -> Result<Option<LastRestore>, UndoError> {
        let session = self.catalogue.last_restore_in(self.dir)?;
        let project = self.checkpoints.undoable(self.dir, &[])?;
        let project = project.and_then(|undoable| Some((undoable.project, undoable.last?)));
        let is_newer = match (&session, &project) {
            (Some(session), Some((_, last))) => last.order > session.order,
            (None, _) => true,
            (_, None) => false,
        };
        if is_newer {
            return Ok(project.map(|(project, last)| LastRestore {
                point: Point::Checkpoint { project, checkpoint: Box::new(last.checkpoint) },
                kept: last.kept,
            }));
        }
        Ok(session.map(|last| LastRestore { point: Point::before(last.entry), kept: last.kept }))
    }
}

/// One list of two, newest first. Each keeps its own order, which no clock decides.
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

/// Of checkpoints one after the other only the oldest has to be gone to.
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
