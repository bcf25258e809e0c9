//! `nono audit cleanup`: removes old logs and records that in the ledger.

use std::time::Duration;

use nono::audit::{Catalogue, Cleaned, Retention};
use nono::diagnostic::{escape, quote_all};
use serde_json::json;

use super::list::{many, value};
use crate::age::ago;
use crate::args::{ForgetArgs, now_ms};
use crate::failure::{Failure, NOT_DONE};
use crate::message;
use crate::units::bytes;

pub(super) fn cleanup(args: &ForgetArgs, catalogue: &Catalogue) -> Result<u8, Failure> {
    let consent = args.consent;
    let asks = !consent.dry_run && !consent.yes;
    if asks && !message::can_ask() {
        return Err(Failure::refused("nothing was removed: there is no terminal to ask on")
            .hint("--dry-run shows what would be removed, --yes removes it without asking"));
    }
    let retention = Retention {
        keep: args.keep,
        older_than: args.older_than.map(|days| Duration::from_secs(u64::from(days) * 86_400)),
        all: args.all,
    };
    if consent.dry_run || asks {
        let plan = catalogue.cleanup(&retention, now_ms(), true)?;
        if consent.dry_run {
            return answer(&plan, true, consent.json);
        }
        message::line(&lines(&plan, true).join("\n"));
        if !plan.removed.is_empty() && !message::confirm("Remove them?") {
            message::line("nothing was removed");
            return Ok(NOT_DONE);
        }
    }
    answer(&catalogue.cleanup(&retention, now_ms(), false)?, false, consent.json)
}

fn answer(cleaned: &Cleaned, dry_run: bool, as_json: bool) -> Result<u8, Failure> {
    if as_json {
        message::answer_json(&json!({
            "dry_run": dry_run,
            // The logs may be gone: use the counts of the record.
            "removed": cleaned.removed.iter().map(|entry| value(entry, &entry.record.counts)).collect::<Vec<_>>(),
            "bytes": cleaned.bytes,
            "problems": cleaned.problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
        }))?;
    } else if dry_run {
        message::answer(&lines(cleaned, true).join("\n"))?;
    } else {
        message::line(&lines(cleaned, false).join("\n"));
    }
    for problem in &cleaned.problems {
        message::line(&format!("error: {}", escape(&problem.to_string())));
    }
    Ok(if cleaned.problems.is_empty() { 0 } else { NOT_DONE })
}

fn lines(cleaned: &Cleaned, before: bool) -> Vec<String> {
    if cleaned.removed.is_empty() {
        return vec!["nothing to remove".to_owned()];
    }
    let (would, freed) = (if before { "would be removed" } else { "removed" }, bytes(cleaned.bytes));
    let mut lines = vec![format!("{} {would}, {freed}", many(cleaned.removed.len() as u64, "session"))];
    lines.extend(cleaned.removed.iter().map(|entry| {
        format!(
            "  {}  {}  {}",
            escape(&entry.id),
            ago(&entry.record.started),
            quote_all(&entry.record.command)
        )
    }));
    lines
}
