//! `nono turns`: lists what agents did in a project, turn by turn.

use std::path::{Path, PathBuf};

use nono::checkpoints::{TurnCall, WorkedTurn, json};
use nono::diagnostic::shown;
use nono::snapshot::ChangeType;

use super::checkpoints::{cut, here, stats};
use crate::age::local;
use crate::args::TurnsArgs;
use crate::failure::Failure;
use crate::host::host;
use crate::message;
use crate::units::some;

/// Maximum number of characters of a prompt or reason.
const WORDS: usize = 72;
/// Maximum number of files named in the list.
const FILES: usize = 4;
/// Maximum number of files where one turn is shown.
const ALL_FILES: usize = 200;

const HINTS: &str = "see one:                      nono turns N\n\
undo one, later ones stay:    nono undo --turn N\n\
undo one and all since then:  nono undo --to-turn N";

pub(crate) fn turns(args: &TurnsArgs) -> Result<u8, Failure> {
    if host(None)?.nested {
        return Err(Failure::new("turns cannot be listed inside a sandbox")
            .hint("run this command outside; inside there is `nono checkpoints list`"));
    }
    let place = here()?;
    let dir = place.dir(&args.project);
    let all = place.manager.turns(&dir)?;
    let project = place.manager.root_of(&dir)?.dir;
    if let Some(text) = &args.turn {
        let link = place.manager.find_turn(&dir, text)?;
        let at = all.iter().position(|turn| turn.link == link);
        let Some((at, turn)) = at.and_then(|at| Some((at, all.get(at)?))) else {
            return Err(Failure::new("the checkpoint before that turn is gone"));
        };
        return message::answer_either(args.json, || json::turn(turn), || whole(at + 1, turn, &project));
    }
    if args.json {
        message::answer_json(&json::turns(&project, &all))
    } else if all.is_empty() {
        let none = format!("no agent has worked in {} with hooks yet", shown(&project));
        message::answer(&format!("{none}; `nono hooks install AGENT` turns them on"))
    } else {
        message::answer(&format!("{}\n\n{HINTS}", list(&project, &all)))
    }
}

fn list(project: &Path, all: &[WorkedTurn]) -> String {
    let mut lines = vec![format!("Turns in {}:", shown(project))];
    // The mark goes below the turns that were undone.
    let undone = all.iter().take_while(|turn| turn.link.undone).count();
    for (at, turn) in all.iter().enumerate() {
        if at == undone && undone > 0 {
            lines.push("     <- you are here".to_owned());
        }
        lines.push(format!("{:>3}. {}", at + 1, summary(turn)));
        lines.extend(prompt(turn).map(|prompt| format!("       {prompt}")));
        lines.extend(few(turn, project).map(|files| format!("       {files}")));
    }
    if undone == all.len() {
        lines.push("     <- you are here".to_owned());
    }
    lines.join("\n")
}

/// Summary of a turn: `2026-11-15 18:22:03 +01:00  claude-code  (1 file, +1/-0)  in 2 calls  [undone]`.
fn summary(turn: &WorkedTurn) -> String {
    let link = &turn.link;
    let agent = cut(link.agent.as_deref().unwrap_or("an agent"), 32);
    let mut parts = vec![local(link.time.as_ref().unwrap_or(&turn.checkpoint.time)), agent];
    match &turn.stats {
        Some(counted) => parts.push(stats(counted).unwrap_or_else(|| "changed nothing".to_owned())),
        None => parts.push("(its changes are no longer stored)".to_owned()),
    }
    if turn.calls.len() > 1 {
        parts.push(format!("in {}", some(turn.calls.len(), "call")));
    }
    if link.undone {
        parts.push("[undone]".to_owned());
    }
    parts.join("  ")
}

fn prompt(turn: &WorkedTurn) -> Option<String> {
    turn.link.prompt.as_deref().map(|prompt| format!("\u{201c}{}\u{201d}", cut(prompt, WORDS)))
}

/// First files, on one line.
fn few(turn: &WorkedTurn, project: &Path) -> Option<String> {
    let named: Vec<String> = turn.files.iter().take(FILES).map(|(path, _)| below(path, project)).collect();
    let more = turn.files.len() - named.len();
    let more = if more > 0 { format!(", ... and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| named.join(", ") + &more)
}

fn below(path: &Path, project: &Path) -> String {
    shown(path.strip_prefix(project).unwrap_or(path))
}

fn whole(number: usize, turn: &WorkedTurn, project: &Path) -> String {
    let mut lines = vec![format!("Turn {number} in {}: {}", shown(project), summary(turn))];
    lines.extend(prompt(turn));
    lines.push(format!(
        "id {}, before it: checkpoint {}",
        cut(&turn.link.turn, 100),
        turn.checkpoint.id.short()
    ));
    let section = |lines: &mut Vec<String>, title: &str, more: Vec<String>| {
        if !more.is_empty() {
            lines.extend([String::new(), title.to_owned()]);
            lines.extend(more);
        }
    };
    section(&mut lines, "Calls that changed something:", turn.calls.iter().map(call).collect());
    let mut files: Vec<String> =
        turn.files.iter().take(ALL_FILES).map(|file| changed(file, project)).collect();
    if turn.files.len() > ALL_FILES {
        files.push(format!("  ... and {} more: nono turns {number} --json", turn.files.len() - ALL_FILES));
    }
    section(&mut lines, "Files:", files);
    lines.extend([
        String::new(),
        format!("undo it, later ones stay:    nono undo --turn {number}"),
        format!("undo it and all since then:  nono undo --to-turn {number}"),
    ]);
    lines.join("\n")
}

fn call(call: &TurnCall) -> String {
    let reason = call.reason.as_deref().map(|reason| reason.strip_prefix("before ").unwrap_or(reason));
    let what = reason.or(call.tool.as_deref()).unwrap_or("a call");
    format!("  {}  {}  ({})", local(&call.time), cut(what, WORDS), some(call.paths, "path"))
}

fn changed((path, change): &(PathBuf, ChangeType), project: &Path) -> String {
    let mark = match change {
        ChangeType::Created => '+',
        ChangeType::Deleted => '-',
        ChangeType::Modified | ChangeType::PermissionsChanged => '~',
    };
    format!("  {mark} {}", below(path, project))
}
