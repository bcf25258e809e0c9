//! `nono rollback cleanup`: removes old sessions and the objects that only they need.

use std::time::Duration;

use nono::diagnostic::{escape, quote_all, shown};
use nono::rollback::{self, Pruned, Retention, RollbackSettings};
use serde_json::{Value, json};

use super::SessionContext;
use super::text::some;
use crate::age::ago;
use crate::args::CleanupArgs;
use crate::commands::confirm;
use crate::failure::{Failure, NOT_DONE};
use crate::message;
use crate::units::bytes;

pub(super) fn cleanup(args: &CleanupArgs, place: &SessionContext) -> Result<u8, Failure> {
    let consent = args.consent;
    let asks = confirm::asks(consent, confirm::REMOVE)?;
    let retention = retention(args, place)?;
    if !place.catalogue.sessions_dir().exists() {
        return answer(&Pruned::default(), consent.dry_run, consent.json);
    }
    if consent.dry_run || asks {
        let plan = place.catalogue.prune(&retention, true)?;
        if consent.dry_run {
            return answer(&plan, true, consent.json);
        }
        message::line(&lines(&plan, true).join("\n"));
        if !plan.removed.is_empty() && !message::confirm("Remove them?") {
            message::line("nothing was removed");
            return Ok(NOT_DONE);
        }
    }
    // Not interruptible: killed at any moment, it leaves sessions that are whole or gone.
    let pruned = place.catalogue.prune(&retention, false)?;
    answer(&pruned, false, consent.json)
}

/// Limits from the flags; configured limits if no flag is given.
fn retention(args: &CleanupArgs, place: &SessionContext) -> Result<Retention, Failure> {
    let given = Retention {
        max_sessions: args.keep,
        max_per_project: None,
        max_bytes: args.max_size,
        older_than: args.older_than.map(|days| Duration::from_secs(u64::from(days) * 86_400)),
        all: args.all,
        lazy: None,
    };
    if given != Retention::default() {
        return Ok(given);
    }
    let settings = RollbackSettings::load(&place.state_dir.join("config.toml"))?;
    Ok(Retention {
        max_per_project: Some(settings.max_sessions),
        max_bytes: Some(settings.max_bytes()),
        ..given
    })
}

fn answer(pruned: &Pruned, dry_run: bool, as_json: bool) -> Result<u8, Failure> {
    if as_json {
        message::answer_json(&value(pruned, dry_run)?)?;
    } else if dry_run {
        message::answer(&lines(pruned, true).join("\n"))?;
    } else {
        message::line(&lines(pruned, false).join("\n"));
    }
    for problem in &pruned.problems {
        message::line(&format!("error: {}", escape(&problem.to_string())));
    }
    Ok(if pruned.problems.is_empty() { 0 } else { NOT_DONE })
}

fn lines(pruned: &Pruned, before: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if pruned.removed.is_empty() {
        lines.push("nothing to remove".to_owned());
    } else {
        let (would, does) = if before { ("would be removed", "about ") } else { ("removed", "") };
        let freed = pruned.bytes_before.saturating_sub(pruned.bytes_after);
        lines.push(format!(
            "{} {would}, {does}{} freed, {does}{} left",
            some(pruned.removed.len(), "session"),
            bytes(freed),
            bytes(pruned.bytes_after)
        ));
    }
    lines.extend(pruned.removed.iter().map(|entry| {
        let (age, command) = (ago(&entry.metadata.started), quote_all(&entry.metadata.command));
        format!("  {}  {age}  {command}  {}", escape(&entry.id), shown(&entry.project))
    }));
    if pruned.over_budget {
        lines.push("still over the size limit: what is left is running, pinned or foreign".to_owned());
    }
    lines
}

fn value(pruned: &Pruned, dry_run: bool) -> Result<Value, Failure> {
    let removed = pruned.removed.iter().map(rollback::json::session).collect::<Result<Vec<_>, _>>()?;
    Ok(json!({
        "dry_run": dry_run,
        "removed": removed,
        "bytes_before": pruned.bytes_before,
        "bytes_after": pruned.bytes_after,
        "over_budget": pruned.over_budget,
        "problems": pruned.problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
    }))
}
