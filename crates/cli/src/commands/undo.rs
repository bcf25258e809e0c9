//! `nono undo` and `nono redo`: undo what sessions and agents did in this directory, and take that back.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nono::audit::moment;
use nono::checkpoints::CheckpointChoice;
use nono::diagnostic::{escape, shown};
use nono::rollback::{Conflicts, RestoreChoice, RollbackError, RollbackSession};
use nono::undo::{Point, Points, UndoError, Undoing, refuse_parts};

use super::checkpoints::{CheckpointContext as Projects, CheckpointTask, OfProject};
use super::perform::{Pass, Performed, attempt, perform};
use super::rollback::{OfSession, SessionContext, SessionTask, conflicts, place, resolved};
use crate::age::{ZONE, ago};
use crate::args::{ConsentArgs, UndoArgs};
use crate::failure::{Failure, NOT_DONE};
use crate::message;

/// Sessions and checkpoints of the current directory.
struct Both {
    sessions: SessionContext,
    projects: Projects,
    dir: PathBuf,
}

/// Paths to undo, and how.
struct Wanted<'a> {
    /// Arguments as typed.
    typed: &'a [OsString],
    /// Absolute.
    paths: Vec<PathBuf>,
    conflicts: Conflicts,
    consent: ConsentArgs,
}

pub(crate) fn undo(args: &UndoArgs) -> Result<u8, Failure> {
    let mut both = both()?;
    let paths: Vec<PathBuf> = args.paths.iter().map(|path| resolved(&both.sessions.cwd.join(path))).collect();
    refuse_parts(&paths).map_err(RollbackError::from)?;
    let mut wanted =
        Wanted { typed: &args.paths, paths, conflicts: conflicts(args.conflicts), consent: args.consent };
    if let Some(turn) = &args.turn {
        return both.undo_turn(turn, &wanted);
    }
    let code = match both.named(args, &mut wanted)? {
        Some(points) => both.go_through(points, &wanted)?,
        None => both.go_to_the_next(&wanted)?,
    };
    super::checkpoints::say_completed(&both.projects.manager);
    Ok(code)
}

pub(crate) fn redo(consent: ConsentArgs) -> Result<u8, Failure> {
    let mut both = both()?;
    let nothing = || RollbackError::NoRestoresHere { dir: both.dir.clone() };
    let last = both.undoing().last_restore()?.ok_or_else(nothing)?;
    match last.point {
        Point::Session { entry, .. } => {
            let session = both.sessions.catalogue.open(*entry)?;
            perform(OfSession { session, task: SessionTask::TakeBack(None) }, consent)
        }
        Point::Checkpoint { project, .. } => {
            perform(OfProject::new(&mut both.projects, project, CheckpointTask::TakeBack), consent)
        }
    }
}

fn both() -> Result<Both, Failure> {
    let sessions = place()?;
    let projects = super::checkpoints::here()?;
    let dir = sessions.cwd.canonicalize().map_err(|error| Failure::nowhere(&error))?;
    Ok(Both { sessions, projects, dir })
}

impl Both {
    fn undoing(&self) -> Undoing<'_> {
        let Both { sessions, projects, dir } = self;
        Undoing { catalogue: &sessions.catalogue, checkpoints: &projects.manager, dir }
    }

    /// Undoes one turn, but not what came later.
    fn undo_turn(&mut self, turn: &str, wanted: &Wanted<'_>) -> Result<u8, Failure> {
        let link = self.projects.manager.find_turn(&self.dir, turn)?;
        let (paths, conflicts) = (wanted.paths.clone(), wanted.conflicts);
        let choice = CheckpointChoice { paths, conflicts, ..CheckpointChoice::default() };
        let task = CheckpointTask::Turn(Box::new(link), choice);
        let task = OfProject::new(&mut self.projects, self.dir.clone(), task);
        perform(task.within_undo(), wanted.consent)
    }

    /// Points to undo, if the arguments name where to go back to.
    fn named(&self, args: &UndoArgs, wanted: &mut Wanted<'_>) -> Result<Option<Points>, Failure> {
        let undoing = self.undoing();
        if let Some(turn) = &args.to_turn {
            let link = self.projects.manager.find_turn(&self.dir, turn)?;
            return Ok(undoing.until(link.checkpoint.as_str(), &wanted.paths)?);
        }
        if let Some(to) = &args.to {
            if let Some(points) = undoing.until(to, &wanted.paths)? {
                return Ok(Some(points));
            }
            let now = nono::snapshot::time::now_ms();
            let Some(at) = moment(to, now, ZONE) else { return Err(no_such(to)) };
            let points = undoing.since(at / 1000, &wanted.paths)?;
            if points.list.is_empty() {
                let what = format!("nothing in {} began at {} or later", self.dir.display(), escape(to));
                return Err(Failure::refused(what).hint("`nono status` shows what can be undone here"));
            }
            return Ok(Some(points));
        }
        // A single argument may be a session, unless a file has that name.
        if let [only] = args.paths.as_slice()
            && let Some(text) = only.to_str()
            && self.sessions.cwd.join(only).symlink_metadata().is_err()
            && self.sessions.catalogue.find(text).is_ok()
        {
            (wanted.typed, wanted.paths) = (&[], Vec::new());
            return Ok(undoing.until(text, &[])?);
        }
        // With --force or --merge, paths that the last undo kept are still to be undone.
        if wanted.conflicts == Conflicts::Keep {
            return Ok(None);
        }
        let kept = undoing.last_restore()?.filter(|last| last.kept);
        Ok(kept.map(|last| Points { list: vec![last.point], problem: None }))
    }

    /// Goes back to the newest point that makes a difference; skips what the user has reverted by hand.
    fn go_to_the_next(&mut self, wanted: &Wanted<'_>) -> Result<u8, Failure> {
        let Points { list, problem } =
            self.undoing().points(&wanted.paths).map_err(|error| self.nothing_left(error))?;
        warn(problem.map(Failure::from).as_ref());
        for point in list {
            match self.go_to(point, wanted, true)? {
                Performed::Nothing => {}
                Performed::Declined => return Ok(NOT_DONE),
                Performed::Done(code) => return Ok(code),
            }
        }
        // A path that does not exist is a mistake, not something that was undone.
        if let Some(path) = wanted.paths.iter().find(|path| path.symlink_metadata().is_err()) {
            return Err(Failure::new(format!("no path {} to undo", shown(path)))
                .hint("`nono status` shows what can be undone here"));
        }
        Err(self.nothing_left(RollbackError::AllUndone { dir: self.dir.clone() }.into()))
    }

    /// Failure when nothing is left to undo, with a hint: the undo that can be taken back, or the newest checkpoint,
    /// since one that the user took is restored by name only.
    fn nothing_left(&self, error: UndoError) -> Failure {
        let by_name = match error {
            UndoError::Rollback(RollbackError::NoneHere { .. }) => true,
            UndoError::Rollback(RollbackError::AllUndone { .. }) => {
                matches!(self.undoing().last_restore(), Ok(None))
            }
            _ => false,
        };
        if !by_name {
            return error.into();
        }
        match super::checkpoints::newest_here() {
            Ok(Some(newest)) => {
                let (id, reason, time) = (newest.id.short(), escape(&newest.reason), ago(&newest.time));
                Failure::refused(format!("there is nothing left to undo in {}", shown(&self.dir)))
                    .hint(format!("checkpoint {id} ({reason}, {time}) was taken here: nono undo --to {id}"))
            }
            // Problems with checkpoints were reported before.
            _ => error.into(),
        }
    }

    /// Goes back to one point after the other. Paths kept on the way stay kept.
    fn go_through(&mut self, points: Points, wanted: &Wanted<'_>) -> Result<u8, Failure> {
        let Points { list, problem } = points;
        warn(problem.map(Failure::from).as_ref());
        let (mut code, several) = (0, list.len() > 1);
        if several && wanted.consent.dry_run {
            message::line("each plan starts from the current files; the last one shows the final state");
        }
        for point in list {
            match self.go_to(point, wanted, several)? {
                Performed::Nothing => {}
                Performed::Declined => return Ok(NOT_DONE),
                Performed::Done(one) => code = code.max(one),
            }
        }
        Ok(code)
    }

    /// Goes back to a point. `passes`: silent where there is nothing to do.
    fn go_to(&mut self, point: Point, wanted: &Wanted<'_>, passes: bool) -> Result<Performed, Failure> {
        let pass = match (passes, point.is_again()) {
            (false, _) => Pass::Never,
            (true, true) => Pass::NothingToDo,
            (true, false) => Pass::Done,
        };
        match point {
            Point::Session { entry, snapshot, .. } => {
                let session = self.sessions.catalogue.open(*entry)?;
                let everything =
                    RestoreChoice { snapshot, conflicts: wanted.conflicts, ..RestoreChoice::everything() };
                let Some(choice) = in_session(&session, everything, wanted, &self.sessions.cwd, passes)?
                else {
                    return Ok(Performed::Nothing);
                };
                let task = OfSession { session, task: SessionTask::Restore(choice) };
                attempt(task, wanted.consent, pass)
            }
            Point::Checkpoint { project, checkpoint, .. } => {
                let paths = wanted.paths.clone();
                let choice =
                    CheckpointChoice { paths, conflicts: wanted.conflicts, ..CheckpointChoice::default() };
                let task = CheckpointTask::Restore(checkpoint, choice);
                let task = OfProject::new(&mut self.projects, project, task).within_undo();
                attempt(task, wanted.consent, pass)
            }
        }
    }
}

/// Restore of the typed paths in a session. None: the session does not have them and is skipped.
fn in_session(
    session: &RollbackSession,
    everything: RestoreChoice,
    wanted: &Wanted<'_>,
    cwd: &Path,
    passes: bool,
) -> Result<Option<RestoreChoice>, Failure> {
    if wanted.typed.is_empty() {
        return Ok(Some(everything));
    }
    match session.resolve_paths(&everything.snapshot, wanted.typed, cwd) {
        Ok(paths) => Ok(Some(RestoreChoice { paths, ..everything })),
        Err(RollbackError::NoSuchPath { .. }) if passes => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Warns about checkpoints that cannot be read; sessions are undone all the same.
fn warn(problem: Option<&Failure>) {
    if let Some(problem) = problem {
        message::line(&format!("warning: ignoring checkpoints: {}", problem.sentence()));
    }
}

fn no_such(to: &str) -> Failure {
    let what = format!("{} is not a session, a checkpoint here or a time", escape(to));
    Failure::new(what)
        .hint("`nono status` shows what can be undone here; a time is 10:15, 2h or 2026-08-01 10:15")
}
