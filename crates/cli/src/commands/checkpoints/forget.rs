//! `nono checkpoints forget`: removes a path and its stored contents from every checkpoint of its project and every
//! session.

use std::path::Path;

use nono::checkpoints::{self, HoldingEverywhere, PurgedEverywhere, json};
use nono::diagnostic::{escape, shown};
use nono::rollback::{Catalogue, Status};

use super::{CheckpointContext, text};
use crate::args::ForgetPathArgs;
use crate::commands::confirm;
use crate::commands::rollback::{brief, some};
use crate::failure::{Failure, NOT_DONE};
use crate::message;

pub(super) fn forget(args: &ForgetPathArgs, place: &CheckpointContext) -> Result<u8, Failure> {
    let consent = args.consent;
    let asks = confirm::asks(consent, confirm::REMOVE)?;
    let path = place.cwd.join(&args.path);
    let catalogue = Catalogue::new(&place.manager.host().state_dir);
    if consent.dry_run || asks {
        let holding = checkpoints::holding(&place.manager, &catalogue, &path)?;
        if consent.dry_run && consent.json {
            message::answer_json(&json::holding_everywhere(&holding))?;
        }
        if holding.is_nothing() {
            return Ok(report_not_held(&path, &holding.checkpoints.project));
        }
        if consent.dry_run && consent.json {
            return Ok(0);
        }
        let mut lines = plan(&path, &holding);
        if consent.dry_run {
            message::answer(&lines.join("\n"))?;
            return Ok(0);
        }
        lines.push("this cannot be undone; the file itself stays".to_owned());
        message::line(&lines.join("\n"));
        if !message::confirm("Remove it?") {
            message::line("nothing was removed");
            return Ok(NOT_DONE);
        }
    }
    let purged = checkpoints::forget(&place.manager, &catalogue, &path)?;
    if consent.json {
        message::answer_json(&json::purged_everywhere(&purged))?;
    }
    if purged.is_nothing() {
        return Ok(report_not_held(&path, &purged.checkpoints.project));
    }
    if !consent.json {
        report(&purged);
    }
    Ok(if purged.is_whole() { 0 } else { NOT_DONE })
}

/// Reports that nothing holds the path, and fails: most likely the path was mistyped.
fn report_not_held(path: &Path, project: &Path) -> u8 {
    let (path, project) = (shown(path), shown(project));
    message::line(&format!("no checkpoint of {project} and no session holds {path}; nothing was removed"));
    NOT_DONE
}

fn plan(path: &Path, holding: &HoldingEverywhere) -> Vec<String> {
    let here = &holding.checkpoints;
    let others = usize::try_from(here.others).unwrap_or(usize::MAX);
    let counts = [
        (here.checkpoints.len(), "checkpoint"),
        (others, "other snapshot"),
        (holding.sessions.len(), "session"),
    ];
    let from = counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| some(count, what));
    let from = from.collect::<Vec<_>>().join(" and ");
    let mut lines = vec![format!("{} of {} would be removed from {from}", shown(path), shown(&here.project))];
    lines.extend(here.checkpoints.iter().map(|one| format!("  {}", text::summary(one))));
    lines.extend(holding.sessions.iter().map(|(entry, _)| {
        let running = if entry.status == Status::Live { ": running, it keeps the path" } else { "" };
        format!("  session {}{running}", brief(entry))
    }));
    lines
}

fn report(purged: &PurgedEverywhere) {
    let here = &purged.checkpoints;
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let mut from = Vec::new();
    if here.snapshots > 0 {
        from.push(format!("{} of {}", some(count(here.snapshots), "snapshot"), shown(&here.project)));
    }
    if !purged.sessions.is_empty() {
        from.push(some(purged.sessions.len(), "session"));
    }
    if !from.is_empty() {
        let contents = some(count(here.contents), "stored content");
        message::line(&format!("{} was removed from {} ({contents})", shown(&here.path), from.join(" and ")));
    }
    for (id, why) in &purged.held {
        message::line(&format!("warning: session {} still has it: {}", escape(id), escape(why)));
    }
    for (holder, paths) in &here.held_by {
        let first = paths.first().map(|path| format!(" ({})", shown(path))).unwrap_or_default();
        message::line(&format!(
            "warning: the same bytes are still kept by {}: {}{first}",
            shown(holder),
            some(paths.len(), "path")
        ));
    }
}
