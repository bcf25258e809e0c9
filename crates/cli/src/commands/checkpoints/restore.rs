//! `nono checkpoints restore` and `undo`: the plan shown and agreed to, then done, then told.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use nono::checkpoints::{self, Choice, Conflicts, Plan, Recorded, Target, json};
use nono::diagnostic::shown;

use super::{Place, text};
use crate::args::{CheckpointRestoreArgs, CheckpointUndoArgs, ConflictArgs, ConsentArgs};
use crate::commands::rollback::text::{self as words, Below, Length};
use crate::commands::{consent, upkeep};
use crate::failure::{Failure, NOT_DONE};
use crate::message;
use crate::progress::watched;

const UNDO: &str = "nono checkpoints undo";

pub(super) fn restore(args: CheckpointRestoreArgs, place: &mut Place) -> Result<u8, Failure> {
    let asks = consent::asks(args.consent, consent::DO)?;
    let dir = place.dir(&args.project);
    let (target, typed) = what(args.turn, args.checkpoint, args.paths)?;
    // From here on it is this one, whatever is taken meanwhile.
    let checkpoint = place.manager.find(&dir, &target)?;
    let paths = chosen(place, &dir, &target, &typed, args.glob)?;
    let choice = Choice { paths, with_git: args.with_git, conflicts: conflicts(args.conflicts) };
    let plan =
        watched(&mut place.manager, "looking at the tree", |manager| manager.plan(&dir, &target, &choice))?;
    if let Some(signal) = plan.signal {
        return Err(Failure::interrupted(signal));
    }
    let plan = plan.value;
    let title = format!("back to checkpoint {}:", text::summary(&checkpoint));
    if let Some(code) = agreed(&title, &plan, args.consent, asks)? {
        return Ok(code);
    }
    let target = Target::Id(checkpoint.id);
    let author = place.author.clone();
    let done = watched(&mut place.manager, "restoring", |manager| {
        checkpoints::restore(manager, &author, &dir, &target, &choice)
    })?;
    report(&done.value, args.consent)
}

pub(super) fn take_back(args: &CheckpointUndoArgs, place: &mut Place) -> Result<u8, Failure> {
    let asks = consent::asks(args.consent, consent::DO)?;
    let dir = place.dir(&args.project);
    let plan = watched(&mut place.manager, "looking at the tree", |manager| manager.plan_undo(&dir))?;
    if let Some(signal) = plan.signal {
        return Err(Failure::interrupted(signal));
    }
    let title = format!("take back the last restore of {}:", shown(&plan.value.project));
    if let Some(code) = agreed(&title, &plan.value, args.consent, asks)? {
        return Ok(code);
    }
    let author = place.author.clone();
    let done = watched(&mut place.manager, "restoring", |manager| checkpoints::undo(manager, &author, &dir))?;
    let mut done = done.value;
    // The way back from an undo is the restore itself.
    done.outcome.undo.clear();
    report(&done, args.consent)
}

/// With a turn, what would be a checkpoint is the first of the paths.
fn what(
    turn: Option<String>,
    first: Option<OsString>,
    paths: Vec<OsString>,
) -> Result<(Target, Vec<OsString>), Failure> {
    match (turn, first) {
        (Some(turn), first) => Ok((Target::Turn(turn), first.into_iter().chain(paths).collect())),
        (None, Some(text)) => Ok((Target::Text(text.to_string_lossy().into_owned()), paths)),
        (None, None) => Err(Failure::usage("which checkpoint? Its number, its id, its name, or --turn ID")),
    }
}

fn chosen(
    place: &mut Place,
    dir: &std::path::Path,
    target: &Target,
    typed: &[OsString],
    glob: bool,
) -> Result<Vec<PathBuf>, Failure> {
    if typed.is_empty() {
        return Ok(Vec::new());
    }
    let compared = watched(&mut place.manager, "looking at the tree", |m| m.compare(dir, target))?.value;
    let chosen = checkpoints::chosen(&compared, typed, &place.cwd, glob);
    compared.close()?;
    Ok(chosen?)
}

pub(super) fn conflicts(args: ConflictArgs) -> Conflicts {
    match args {
        ConflictArgs { force: true, .. } => Conflicts::Force,
        ConflictArgs { merge: true, conflict_markers, .. } => Conflicts::Merge { markers: conflict_markers },
        _ => Conflicts::Keep,
    }
}

/// Show the plan where it is asked for, and ask. An exit code where that is the end of it.
fn agreed(title: &str, plan: &Plan, consent: ConsentArgs, asks: bool) -> Result<Option<u8>, Failure> {
    if consent.dry_run {
        if consent.json {
            message::answer_json(&json::plan(plan))?;
        } else {
            message::answer(&plan_lines(title, plan, Length::All).join("\n"))?;
        }
        return Ok(Some(0));
    }
    if asks && has_work(plan) {
        message::line(&plan_lines(title, plan, Length::Cut).join("\n"));
        if !message::confirm("Restore this?") {
            message::line("nothing was done");
            return Ok(Some(NOT_DONE));
        }
    }
    Ok(None)
}

fn has_work(plan: &Plan) -> bool {
    !plan.changes.is_empty() || !plan.merges.is_empty()
}

fn plan_lines(title: &str, plan: &Plan, length: Length) -> Vec<String> {
    let roots = [plan.project.clone()];
    let below = Below::new(&roots);
    let mut lines = vec![title.to_owned()];
    if plan.changes.is_empty() {
        lines.extend(plan.merges.is_empty().then(|| "there is nothing to restore".to_owned()));
    } else {
        lines.extend(words::would_change(&plan.changes, &below, length));
    }
    lines.extend(merges("merge with what somebody else changed", &plan.merges, &below, length));
    lines.extend(words::kept(&plan.kept, &[], &below, length));
    lines.extend(words::lost(&plan.lost, &below, length));
    if plan.unattributed && !plan.changes.is_empty() {
        lines
            .push("nothing tells what people changed from what an agent did: all of it goes back".to_owned());
    }
    lines.extend(turns("undo", &plan.turns_undone));
    lines.extend(left_alone(&plan.repositories, plan.not_covered, plan.lost.len(), &below));
    lines.extend(words::hint(&plan.kept, UNDO));
    lines
}

/// What a restore does not touch, and nobody asked about.
fn left_alone(repositories: &[PathBuf], not_covered: u64, lost: usize, below: &Below<'_>) -> Vec<String> {
    let mut lines: Vec<String> = repositories
        .iter()
        .map(|git| format!("{} differs and is left alone; --with-git restores it too", below.show(git)))
        .collect();
    let rest = usize::try_from(not_covered).unwrap_or(usize::MAX).saturating_sub(lost);
    if rest > 0 {
        let paths = words::some(rest, "path");
        lines.push(format!("not covered by this checkpoint, and left as they are: {paths}"));
    }
    lines
}

fn merges(what: &str, paths: &[PathBuf], below: &Below<'_>, length: Length) -> Vec<String> {
    if paths.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![format!("{what}: {}", words::some(paths.len(), "file"))];
    lines.extend(words::cut(paths, length, |path| below.show(path)));
    lines
}

/// `undoes turns a, b`.
fn turns(word: &str, turns: &[String]) -> Option<String> {
    let names: Vec<String> = turns.iter().map(|turn| text::cut(turn, 64)).collect();
    (!turns.is_empty()).then(|| format!("{word} {}: {}", words::some(turns.len(), "turn"), names.join(", ")))
}

fn report(done: &Recorded, consent: ConsentArgs) -> Result<u8, Failure> {
    upkeep::after_command();
    let outcome = &done.outcome;
    let roots = [outcome.project.clone()];
    let below = Below::new(&roots);
    let mut lines = Vec::new();
    if !outcome.changes.is_empty() {
        lines.push(words::did_change(&outcome.changes));
        lines.extend(words::change_lines(&outcome.changes, &below, Length::Done));
    }
    lines.extend(merges("merged with what somebody else changed", &outcome.merged, &below, Length::Done));
    if lines.is_empty() {
        lines.push("there is nothing to restore".to_owned());
    }
    lines.extend(words::kept(&outcome.kept, &[], &below, Length::Done));
    lines.extend(words::lost(&outcome.lost, &below, Length::Done));
    lines.extend(words::failed(&outcome.failed, &below, Length::Done));
    lines.extend(turns("undid", &outcome.turns_undone));
    // Where an agent took it, people expect their own changes to be told from its.
    if outcome.unattributed && outcome.checkpoint.origin.agent.is_some() && !outcome.changes.is_empty() {
        lines
            .push("nothing told what people changed from what the agent did: all of it went back".to_owned());
    }
    lines.extend(left_alone(&outcome.repositories, outcome.checkpoint.left_out, outcome.lost.len(), &below));
    if consent.json {
        message::answer_json(&json::outcome(outcome))?;
    } else {
        message::line(&lines.join("\n"));
        if !io::stdout().is_terminal() {
            message::answer(&json::outcome(outcome).to_string())?;
        }
        lines = words::hint(&outcome.kept, UNDO).into_iter().collect();
        if !outcome.undo.is_empty() {
            lines.push(format!("undo this with: {UNDO}"));
        }
        if !lines.is_empty() {
            message::line(&lines.join("\n"));
        }
    }
    if outcome.interrupted {
        message::line("interrupted; the next command for this project completes it");
    }
    if let Some(why) = &done.unrecorded {
        message::line(&message::unrecorded(why));
    }
    Ok(if outcome.is_whole() { 0 } else { NOT_DONE })
}
