//! Restores on record: each has an audit log of its own, as those of sessions have.
//!
//! A log that cannot be written stops no restore, since what it puts back is the user's; it is said in the outcome.

use std::path::{Path, PathBuf};

use nono_audit::event::Restore as Event;
use nono_checkpoint::history::TurnLink;
use nono_checkpoint::{CheckpointError, CheckpointManager, Choice, Outcome, Target};
use nono_sys::time::now_ms;

use crate::audit::{Author, RestoreLog};

/// What stands in the log of a restore where the id of a session would.
pub const RECORDED_AS: &str = "checkpoints";

/// Restore, and have it on record as this one's.
pub fn restore(
    manager: &mut CheckpointManager,
    author: &Author,
    dir: &Path,
    target: &Target,
    choice: &Choice,
) -> Result<Outcome, CheckpointError> {
    let asked = match target {
        Target::Text(text) => text.clone(),
        Target::Id(id) => id.to_string(),
        Target::Turn(turn) => format!("before turn {turn}"),
    };
    recorded(manager, author, dir, &asked, &choice.paths, |manager| manager.restore(dir, target, choice))
}

/// Take one turn back, and have that on record as this one's.
pub fn undo_turn(
    manager: &mut CheckpointManager,
    author: &Author,
    dir: &Path,
    turn: &TurnLink,
    choice: &Choice,
) -> Result<Outcome, CheckpointError> {
    let asked = format!("turn {}", turn.turn);
    recorded(manager, author, dir, &asked, &choice.paths, |manager| manager.undo_turn(dir, turn, choice))
}

/// Take the last restore back, and have that on record as this one's.
pub fn undo(
    manager: &mut CheckpointManager,
    author: &Author,
    dir: &Path,
) -> Result<Outcome, CheckpointError> {
    recorded(manager, author, dir, "undo", &[], |manager| manager.undo(dir))
}

/// `asked`: what it goes to, until that is known better.
fn recorded(
    manager: &mut CheckpointManager,
    author: &Author,
    dir: &Path,
    asked: &str,
    paths: &[PathBuf],
    work: impl FnOnce(&mut CheckpointManager) -> Result<Outcome, CheckpointError>,
) -> Result<Outcome, CheckpointError> {
    let state_dir = manager.host().state_dir.clone();
    // It begins before anything is changed: one that is killed leaves a beginning without an end.
    let log = RestoreLog::begin(&state_dir, author, &[dir.to_owned()]);
    let outcome = work(manager);
    let written = log.and_then(|log| log.end(event(asked, paths, &outcome)));
    // Of one that failed, the failure is what has to be known.
    let mut outcome = outcome?;
    outcome.done.unrecorded = written.err().map(|error| error.to_string());
    Ok(outcome)
}

fn event(asked: &str, paths: &[PathBuf], outcome: &Result<Outcome, CheckpointError>) -> Event {
    let count = |count: fn(&Outcome) -> usize| outcome.as_ref().map_or(0, count) as u64;
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

/// In a sentence.
fn said(done: &Outcome) -> String {
    let restored = done.changes.len() + done.written_merges().len();
    let text = format!("restored {restored}, kept {}, failed {}", done.kept.len(), done.failed.len());
    match done.undo {
        None => text,
        Some(_) => format!("{text}; `nono checkpoints undo` takes it back"),
    }
}
