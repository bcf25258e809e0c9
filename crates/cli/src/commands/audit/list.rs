//! `nono audit list`: lists recorded sessions, newest first.

use std::path::Path;

use nono::audit::{Answers, AuditEntry, Catalogue, EventCounts};
use nono::diagnostic::{escape, quote_all};
use serde_json::{Value, json};

use super::filter;
use crate::age::ago;
use crate::args::AuditListArgs;
use crate::failure::Failure;
use crate::message;
use crate::units::{shortened, some, table};

/// Maximum number of characters of a command.
const COMMAND: usize = 48;

pub(super) fn list(args: &AuditListArgs, catalogue: &Catalogue, cwd: &Path) -> Result<u8, Failure> {
    let filter = filter(&args.filter, cwd, args.command.clone());
    let (entries, mut problems) = catalogue.list()?;
    let mut wanted = Vec::new();
    let is_any = !entries.is_empty();
    for entry in entries {
        let counted = match filter.wants_session(&entry) {
            Ok(true) => entry.counts(),
            Ok(false) => continue,
            Err(error) => Err(error),
        };
        match counted {
            Ok(counts) => wanted.push((entry, counts)),
            Err(error) => problems.push(error),
        }
    }
    if args.json {
        let values = wanted.iter().map(|(entry, counts)| value(entry, counts)).collect::<Vec<_>>();
        message::answer_json(&values)?;
    } else if wanted.is_empty() {
        message::answer(if is_any { "no recorded session matches" } else { "no recorded sessions" })?;
    } else {
        let rows: Vec<_> = wanted.iter().map(|(entry, counts)| row(entry, counts)).collect();
        message::answer(&table(&rows).join("\n"))?;
    }
    message::problems("warning", &problems);
    Ok(0)
}

fn row(entry: &AuditEntry, counts: &EventCounts) -> [String; 4] {
    let command = shortened(quote_all(&entry.record.command), COMMAND);
    let mut end: Vec<String> = ending(entry).into_iter().chain(numbers(counts)).collect();
    end.push(format!("[{}]", entry.state.word()));
    end.extend(entry.record.name.iter().map(|name| format!("[name: {}]", escape(name))));
    [escape(&entry.id), ago(&entry.record.started), command, end.join("  ")]
}

/// Exit code, signal and limit of a session that ended.
pub(super) fn ending(entry: &AuditEntry) -> Option<String> {
    let record = &entry.record;
    if record.interrupted {
        return Some("interrupted".to_owned());
    }
    let code = record.exit_code?;
    let signal = record.signal.map(nono::signal_name).map(|name| format!(" ({name})")).unwrap_or_default();
    let limit = record.limit.as_deref().map(|limit| format!(" ({})", escape(limit))).unwrap_or_default();
    let stopped = if record.stopped { " (stopped)" } else { "" };
    Some(format!("exit {code}{signal}{limit}{stopped}"))
}

/// Counts of decisions, denials, network events and links that are not zero.
pub(super) fn numbers(counts: &EventCounts) -> Vec<String> {
    let answers = |answers: Answers, what: &str| {
        let all = answers.allowed.saturating_add(answers.denied);
        let denied = if answers.denied > 0 {
            format!(" ({} denied)", crate::units::grouped(answers.denied))
        } else {
            String::new()
        };
        (all > 0).then(|| format!("{}{denied}", some(all, what)))
    };
    let denials = (counts.denials > 0).then(|| some(counts.denials, "denial"));
    let parts = [
        answers(counts.decisions, "decision"),
        denials,
        answers(counts.network, "network event"),
        answers(counts.urls, "link"),
    ];
    parts.into_iter().flatten().collect()
}

pub(super) fn value(entry: &AuditEntry, counts: &EventCounts) -> Value {
    let record = &entry.record;
    json!({
        "session_id": entry.id,
        "name": record.name,
        "state": entry.state.word(),
        "started": record.started,
        "ended": record.ended,
        "command": record.command,
        "workdir": record.workdir.to_string_lossy(),
        "exit_code": record.exit_code,
        "signal": record.signal,
        "network": record.network,
        // Unknown while the session has no end: its log would have to be read.
        "audit_event_count": record.ended.as_ref().map(|_| record.audit_event_count),
        "counts": counts,
    })
}
