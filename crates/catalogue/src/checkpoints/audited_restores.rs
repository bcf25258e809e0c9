//! Audit of restores: each has an audit log of its own, like those of sessions.

use std::convert::Infallible;
use std::path::{Path, PathBuf};

use nono_audit::event::Restore;
use nono_checkpoint::history::TurnLink;
use nono_checkpoint::{
    CheckpointChoice, CheckpointError, CheckpointManager, CheckpointTarget, Completed, ProjectOutcome,
};

use crate::audit::{self, Author, RestoreOwner, RestoreSubject};

/// Record interrupted restores that this manager completes under `author`.
#[must_use]
pub fn recording(manager: CheckpointManager, author: Author) -> CheckpointManager {
    let state_dir = manager.host().state_dir.clone();
    manager.recording(move |completed: &Completed| {
        let event = |_: &Result<(), Infallible>| completion(completed);
        let roots = std::slice::from_ref(&completed.project);
        match audit::recorded(&state_dir, &author, roots, || Ok(()), event) {
            Ok(((), unrecorded)) => unrecorded,
            Err(never) => match never {},
        }
    })
}

/// Audit event of a completed restore.
pub fn completion(completed: &Completed) -> Restore {
    let id = completed.checkpoint.as_ref().map(ToString::to_string);
    subject(id.unwrap_or_else(|| "unknown".to_owned()), &[]).event::<Infallible>(Ok(&completed.done))
}

/// Subject of a restore of a project.
pub fn subject(snapshot: String, paths: &[PathBuf]) -> RestoreSubject {
    RestoreSubject { owner: RestoreOwner::Project, snapshot, paths: paths.to_vec(), except: 0 }
}

/// Restore, and record it under `author`.
pub fn restore(
    manager: &mut CheckpointManager,
    author: &Author,
    dir: &Path,
    target: &CheckpointTarget,
    choice: &CheckpointChoice,
) -> Result<ProjectOutcome, CheckpointError> {
    let asked = match target {
        CheckpointTarget::Text(text) => text.clone(),
        CheckpointTarget::Id(id) => id.to_string(),
        CheckpointTarget::Turn(turn) => format!("before turn {turn}"),
    };
    recorded(manager, author, dir, &asked, &choice.paths, |manager| manager.restore(dir, target, choice))
}

/// Undo one turn, and record it under `author`.
pub fn undo_turn(
    manager: &mut CheckpointManager,
    author: &Author,
    dir: &Path,
    turn: &TurnLink,
    choice: &CheckpointChoice,
) -> Result<ProjectOutcome, CheckpointError> {
    let asked = format!("turn {}", turn.turn);
    recorded(manager, author, dir, &asked, &choice.paths, |manager| manager.undo_turn(dir, turn, choice))
}

/// Undo the last restore, and record it under `author`.
pub fn undo(
    manager: &mut CheckpointManager,
    author: &Author,
    dir: &Path,
) -> Result<ProjectOutcome, CheckpointError> {
    recorded(manager, author, dir, "undo", &[], |manager| manager.undo(dir))
}

/// Run `work` and record it. `asked`: the target, until it is known precisely.
fn recorded(
    manager: &mut CheckpointManager,
    author: &Author,
    dir: &Path,
    asked: &str,
    paths: &[PathBuf],
    work: impl FnOnce(&mut CheckpointManager) -> Result<ProjectOutcome, CheckpointError>,
) -> Result<ProjectOutcome, CheckpointError> {
    let state_dir = manager.host().state_dir.clone();
    let event = |outcome: &Result<ProjectOutcome, CheckpointError>| {
        let id = outcome.as_ref().ok().map(|done| done.checkpoint.id.to_string());
        let snapshot = id.unwrap_or_else(|| asked.to_owned());
        subject(snapshot, paths).event(outcome.as_deref())
    };
    let (mut outcome, unrecorded) =
        audit::recorded(&state_dir, author, &[dir.to_owned()], || work(manager), event)?;
    outcome.done.unrecorded = unrecorded;
    Ok(outcome)
}
