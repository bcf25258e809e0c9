//! `nono status`: shows what is protected, what runs and what can be undone in this directory, and the next steps.

use nono::diagnostic::{escape, quote_all, shown};
use nono::directory::{CheckpointsHere, DirectoryStatus, LISTED, changes};
use nono::undo::Point;

use super::rollback::place;
use super::{checkpoints, hooks, project_profile};
use crate::age::{ago, local};
use crate::args::JsonArg;
use crate::commands::rollback_notices::counts;
use crate::failure::Failure;
use crate::host::host;
use crate::message;
use crate::units::{grouped, shortened, some, table};

/// Maximum number of characters of a command or reason.
const WHAT: usize = 48;

pub(crate) fn status(args: &JsonArg) -> Result<u8, Failure> {
    let place = place()?;
    let host = host(None)?;
    let (hooks, mut problems) = hooks::everywhere(&host);
    let manager = checkpoints::manager(host.context.clone())?;
    let mut status = DirectoryStatus::of(&place.cwd, &place.catalogue, &manager, hooks);
    if !host.nested {
        status = status.with_project_profile(&host.context);
    }
    status.problems.append(&mut problems);
    if args.json {
        return message::answer_json(&status.json());
    }
    message::answer(&page(&status).join("\n"))?;
    message::problems("warning", &status.problems);
    Ok(0)
}

fn page(status: &DirectoryStatus) -> Vec<String> {
    let mut lines = vec![shown(&status.dir), String::new()];
    section(&mut lines, "Protected", protected(status));
    let running = status.running.iter().map(|one| {
        let command = shortened(quote_all(&one.info.command), WHAT);
        format!("{}  {}  {command}", escape(&one.info.id), ago(&one.info.started))
    });
    section(&mut lines, "Running", running.collect());
    section(&mut lines, "Can be undone", undoable(status));
    section(&mut lines, "Not covered by the last session", not_covered(status));
    let width = status.next.iter().map(|command| command.chars().count()).max().unwrap_or(0);
    section(&mut lines, "Next", status.next.iter().map(|command| next(command, width)).collect());
    // Removes the empty line at the end.
    lines.pop();
    lines
}

fn section(lines: &mut Vec<String>, title: &str, mut inside: Vec<String>) {
    if inside.is_empty() {
        inside.push("nothing".to_owned());
    }
    lines.push(format!("{title}:"));
    lines.extend(inside.into_iter().map(|line| format!("  {line}")));
    lines.push(String::new());
}

fn protected(status: &DirectoryStatus) -> Vec<String> {
    let mut lines = vec![format!("checkpoints  {}", checkpoints_line(&status.checkpoints))];
    if let Some(why) = &status.checkpoints.unprotected {
        lines.push(format!("NOT PROTECTED: the last checkpoint failed: {}", escape(why)));
    }
    let hooks = status.hooks.iter().map(|one| format!("{} ({})", one.agent.name(), one.state.name()));
    let hooks = hooks.collect::<Vec<_>>().join(", ");
    lines.push(format!("hooks        {}", if hooks.is_empty() { "none" } else { &hooks }));
    lines.push(format!("sessions     {} kept", status.sessions));
    if let Some((file, standing)) = &status.project_profile {
        lines.push(format!("profile      {}: {}", shown(file), project_profile::standing(*standing)));
    }
    lines
}

fn checkpoints_line(here: &CheckpointsHere) -> String {
    let switch = if here.enabled { "on" } else { "off" };
    match (&here.project, &here.last) {
        (Some(project), Some(last)) => {
            let count = some(here.count, "checkpoint");
            format!("{switch}; {count} of {}, the last one {}", shown(project), ago(last))
        }
        _ => format!("{switch}; none for this directory"),
    }
}

fn undoable(status: &DirectoryStatus) -> Vec<String> {
    let rows: Vec<[String; 5]> = status.undoable.iter().map(row).collect();
    let mut lines = table(&rows);
    if status.undoable_total > LISTED {
        let more = grouped((status.undoable_total - status.undoable.len()) as u64);
        lines.push(format!("... and {more} more: nono rollback list, nono checkpoints list"));
    }
    lines
}

fn row(point: &Point) -> [String; 5] {
    let when = format!("{} ({})", local(point.time()), ago(point.time()));
    match point {
        Point::Session { entry, .. } => {
            let changes = changes(point).map(counts).unwrap_or_default();
            let command = shortened(quote_all(&entry.metadata.command), WHAT);
            ["session".to_owned(), escape(point.id()), when, command, changes]
        }
        Point::Checkpoint { checkpoint, .. } => {
            let changes = checkpoint.stats.as_ref().and_then(checkpoints::stats).unwrap_or_default();
            let id = escape(checkpoint.id.short());
            ["checkpoint".to_owned(), id, when, shortened(escape(&checkpoint.reason), WHAT), changes]
        }
    }
}

fn not_covered(status: &DirectoryStatus) -> Vec<String> {
    let not = &status.not_covered;
    let mut lines: Vec<String> =
        not.examples.iter().map(|one| format!("{}: {}", shown(&one.path), escape(&one.reason))).collect();
    let more = not.entries.saturating_sub(lines.len() as u64);
    if more > 0 {
        let id = escape(not.session.as_deref().unwrap_or("last"));
        lines.push(format!("... and {} more: nono rollback show {id} --coverage", grouped(more)));
    }
    lines
}

/// Command in a column of this width, with its purpose.
fn next(command: &str, width: usize) -> String {
    let what = match command {
        "nono undo" => "undo the newest above; shows the plan, and asks",
        "nono diff" => "see what changed",
        "nono hooks install AGENT" => "a checkpoint before each risky step of an agent",
        _ if command.starts_with("nono inspect") => "see what it does; it can be undone when it has ended",
        _ => "run something that can be undone",
    };
    format!("{command:<width$}  {what}")
}
