//! `nono checkpoints prune`, `clear` and `clear-legacy`: show what would be removed, ask, and remove it.

use nono::checkpoints::{CheckpointError, Legacy, Pruned, Retention, json};
use nono::diagnostic::escape;

use super::{CheckpointContext, text};
use crate::args::{ClearArgs, ClearLegacyArgs, ConsentArgs, PruneArgs};
use crate::commands::confirm;
use crate::commands::rollback::some;
use crate::failure::{Failure, NOT_DONE};
use crate::message;
use crate::units::bytes;

pub(super) fn prune(args: &PruneArgs, place: &CheckpointContext) -> Result<u8, Failure> {
    let retention = retention(args, place);
    remove(args.consent, |dry_run| place.manager.prune(&retention, dry_run))
}

pub(super) fn clear(args: &ClearArgs, place: &CheckpointContext) -> Result<u8, Failure> {
    let dir = args.path.as_ref().map(|path| place.cwd.join(path));
    remove(args.consent, |dry_run| place.manager.clear(dir.as_deref(), dry_run))
}

/// Shows the plan, asks, and removes.
fn remove(
    consent: ConsentArgs,
    sweep: impl Fn(bool) -> Result<Pruned, CheckpointError>,
) -> Result<u8, Failure> {
    let asks = confirm::asks(consent, confirm::REMOVE)?;
    if consent.dry_run || asks {
        let plan = sweep(true)?;
        if consent.dry_run {
            return answer(&plan, true, consent.json);
        }
        // "nothing to remove" is printed once, at the end.
        if !is_empty(&plan) {
            message::line(&lines(&plan, true).join("\n"));
            if !message::confirm("Remove them?") {
                message::line("nothing was removed");
                return Ok(NOT_DONE);
            }
        }
    }
    answer(&sweep(false)?, false, consent.json)
}

pub(super) fn clear_legacy(args: &ClearLegacyArgs, place: &CheckpointContext) -> Result<u8, Failure> {
    let consent = args.consent;
    let asks = confirm::asks(consent, confirm::REMOVE)?;
    if consent.dry_run || asks {
        let all = place.manager.clear_legacy(true)?;
        if consent.dry_run || all.is_empty() {
            return legacy_answer(&all, consent.dry_run, consent.json);
        }
        message::line(&legacy_lines(&all, true).join("\n"));
        if !message::confirm("Remove them?") {
            message::line("nothing was removed");
            return Ok(NOT_DONE);
        }
    }
    legacy_answer(&place.manager.clear_legacy(false)?, false, consent.json)
}

fn legacy_answer(all: &[Legacy], dry_run: bool, as_json: bool) -> Result<u8, Failure> {
    if as_json {
        message::answer_json(&json::legacy(all, dry_run))?;
    } else if dry_run {
        message::answer(&legacy_lines(all, true).join("\n"))?;
    } else {
        message::line(&legacy_lines(all, false).join("\n"));
    }
    Ok(0)
}

fn legacy_lines(all: &[Legacy], before: bool) -> Vec<String> {
    if all.is_empty() {
        return vec!["nothing to remove".to_owned()];
    }
    let would = if before { "would be removed" } else { "removed" };
    let mut lines = vec![format!("{} {would}", some(all.len(), "archive"))];
    lines.extend(all.iter().map(|one| format!("  {}  {}", escape(&one.name()), bytes(one.bytes))));
    lines
}

/// Limits from the flags; configured limits for flags that are not given.
fn retention(args: &PruneArgs, place: &CheckpointContext) -> Retention {
    let configured = place.manager.retention();
    Retention {
        max_bytes: args.max_size_mb.map_or(configured.max_bytes, |megabytes| megabytes << 20),
        retention_days: args.retention_days.unwrap_or(configured.retention_days),
        delete_orphans: configured.delete_orphans && !args.keep_orphans,
        ..configured
    }
}

fn is_empty(pruned: &Pruned) -> bool {
    pruned.removed.is_empty() && pruned.projects_removed.is_empty() && pruned.legacy.is_empty()
}

fn answer(pruned: &Pruned, dry_run: bool, as_json: bool) -> Result<u8, Failure> {
    if as_json {
        message::answer_json(&json::pruned(pruned, dry_run))?;
    } else if dry_run {
        message::answer(&lines(pruned, true).join("\n"))?;
    } else {
        message::line(&lines(pruned, false).join("\n"));
    }
    super::say_problems(pruned.problems.iter().map(ToString::to_string));
    Ok(if pruned.problems.is_empty() { 0 } else { NOT_DONE })
}

fn lines(pruned: &Pruned, before: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if is_empty(pruned) {
        lines.push("nothing to remove".to_owned());
    } else if !(pruned.removed.is_empty() && pruned.projects_removed.is_empty()) {
        let (would, does) = if before { ("would be removed", "about ") } else { ("removed", "") };
        let count = pruned.removed.iter().map(|(_, gone)| gone.len()).sum();
        lines.push(format!(
            "{} {would}, {does}{} freed, {does}{} left",
            some(count, "checkpoint"),
            bytes(pruned.bytes_before.saturating_sub(pruned.bytes_after)),
            bytes(pruned.bytes_after)
        ));
    }
    lines.extend(text::removed(pruned.removed.iter().map(|(project, gone)| (&**project, &**gone))));
    lines.extend(
        pruned
            .projects_removed
            .iter()
            .map(|project| format!("  {}: its whole history", nono::diagnostic::shown(project))),
    );
    if !pruned.legacy.is_empty() {
        lines.extend(legacy_lines(&pruned.legacy, before));
    }
    if pruned.over_budget {
        lines.push(
            "still over the size limit: what is left is pinned, named, or the newest of its project"
                .to_owned(),
        );
    }
    lines
}
