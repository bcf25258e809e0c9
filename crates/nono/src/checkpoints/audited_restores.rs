//! Audit of restores: each has an audit log of its own, like those of sessions.
//!
//! A log that cannot be written stops no restore, since what it restores is the user's; the result reports it.

use std::path::{Path, PathBuf};

use nono_audit::event::Restore as Event;
use nono_checkpoint::history::TurnLink;
use nono_checkpoint::{
    CheckpointChoice, CheckpointError, CheckpointManager, CheckpointTarget, ProjectOutcome,
};
use nono_sys::time::now_ms;

use crate::audit::{Author, RestoreLog};

/// Value in the log of a restore in place of a session id.
pub const RECORDED_AS: &str = "checkpoints";

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
    // The log begins before anything is changed: a killed restore leaves a beginning without an end.
    let log = RestoreLog::begin(&state_dir, author, &[dir.to_owned()]);
    let outcome = work(manager);
    let written = log.and_then(|log| log.end(event(asked, paths, &outcome)));
    // After a failure only the failure matters.
    let mut outcome = outcome?;
    outcome.done.unrecorded = written.err().map(|error| error.to_string());
    Ok(outcome)
}

fn event(asked: &str, paths: &[PathBuf], outcome: &Result<ProjectOutcome, CheckpointError>) -> Event {
    let count = |count: fn(&ProjectOutcome) -> usize| outcome.as_ref().map_or(0, count) as u64;
    Event {
        time_ms: now_ms(),
        session_id: RECORDED_AS.to_owned(),
        snapshot: outcome.as_ref().map_or_else(|_| asked.to_owned(), |done| done.checkpoint.id.to_string()),
        paths: paths.to_vec(),
        restored: count(|done| done.changes.len() + done.written_merges().len()),
        kept: count(|done| done.kept.len()),
        failed: outcome.as_ref().map_or(1, |done| done.failed.len() as u64),
        outcome: match outcome {
            Ok(done) => said(done),
            Err(error) => format!("not restored: {error}"),
        },
    }
}

/// One-line summary of a result.
fn said(done: &ProjectOutcome) -> String {
    let restored = done.changes.len() + done.written_merges().len();
    let text = format!("restored {restored}, kept {}, failed {}", done.kept.len(), done.failed.len());
    match done.undo {
        None => text,
        Some(_) => format!("{text}; undo with `nono checkpoints undo`"),
    }
}
