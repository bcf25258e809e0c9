//! One line per audit event. Everything that came from the command or from a file name is escaped here.

use nono::audit::event::{CheckpointEvent, Decision, Denial, Network, Restore, Seal, SessionEnded};
use nono::audit::export::facts;
use nono::audit::{AuditEvent, Facts, VerifiedRecord};
use nono::diagnostic::{escape, quote_all, shown};

use crate::paint::{Span, Style};
use crate::units::{bytes, grouped, some};

/// Number of digits shown of a digest.
const DIGITS: usize = 16;

pub(super) fn time_ms(record: &VerifiedRecord) -> u64 {
    facts(&record.event).time_ms
}

/// Line for a record. `total`: number of denials of this kind in all.
pub(super) fn line(record: &VerifiedRecord, clock: &str, total: Option<u64>) -> Vec<Span> {
    let facts = facts(&record.event);
    let (word, style) = head(&record.event, &facts);
    let mut spans = vec![
        Span::new(format!("  {clock} {:>4}  ", record.link.sequence), Style::Faint),
        Span::new(format!("{word:<9}"), style),
        Span::plain(format!(" {}", body(&record.event, &facts, total))),
    ];
    let who = who(&facts);
    if !who.is_empty() {
        spans.push(Span::new(format!("  {who}"), Style::Faint));
    }
    spans
}

fn head(event: &AuditEvent, facts: &Facts) -> (&'static str, Style) {
    match (event, facts.decision) {
        (_, Some(Decision::Allowed)) => ("allowed", Style::Added),
        (_, Some(Decision::Denied)) => ("denied", Style::Removed),
        (AuditEvent::SessionStarted(_), _) => ("started", Style::Title),
        (AuditEvent::SessionEnded(_), _) => ("ended", Style::Title),
        (AuditEvent::Snapshot(_), _) => ("snapshot", Style::Plain),
        (AuditEvent::Restore(_), _) => ("restore", Style::Plain),
        (AuditEvent::Checkpoint(it), _) if it.checkpoint.is_none() => ("unsaved", Style::Warning),
        (AuditEvent::Checkpoint(_), _) => ("checkpt", Style::Plain),
        (AuditEvent::AgentPrompt(_), _) => ("prompt", Style::Plain),
        (AuditEvent::AgentCall(_), _) => ("call", Style::Plain),
        (AuditEvent::BackendError(_), _) => ("error", Style::Warning),
        (AuditEvent::Seal(_), _) => ("seal", Style::Title),
        _ => ("warning", Style::Warning),
    }
}

fn body(event: &AuditEvent, facts: &Facts, total: Option<u64>) -> String {
    match event {
        AuditEvent::SessionStarted(it) => quote_all(&it.command),
        AuditEvent::SessionEnded(it) => ended(it),
        AuditEvent::CapabilityDecision(_) => words([&facts.access, &facts.subject]),
        AuditEvent::Denial(it) => denial(it, facts, total),
        AuditEvent::UrlOpen(_) => words(["open", &facts.subject]),
        AuditEvent::Network(it) => network(it, facts),
        AuditEvent::Snapshot(it) => format!("{}, root {}", it.number, short(&escape(&it.merkle_root))),
        AuditEvent::Restore(it) => restore(it),
        AuditEvent::Checkpoint(it) => checkpoint(it),
        AuditEvent::AgentPrompt(it) => {
            format!("{} got a prompt, sha256 {}", escape(&facts.subject), short(&it.sha256.hex()))
        }
        AuditEvent::AgentCall(it) => {
            let tool = escape(it.tool.as_deref().unwrap_or("a tool"));
            let command = it.command.as_deref().map(|command| format!(": {}", escape(command)));
            format!("{}: {tool}{}", escape(&facts.subject), command.unwrap_or_default())
        }
        AuditEvent::BackendError(_) => format!("{}: {}", escape(&facts.subject), escape(&facts.reason)),
        AuditEvent::Warning(it) => escape(&it.message),
        AuditEvent::Seal(it) => seal(it),
    }
}

fn ended(it: &SessionEnded) -> String {
    if it.interrupted {
        return "interrupted: nono was killed; a later command wrote this".to_owned();
    }
    let mut text = format!("exit {}", it.exit_code);
    text += &it.signal.map(|signal| format!(", {}", nono::signal_name(signal))).unwrap_or_default();
    text += &it.limit.as_deref().map(|limit| format!(", limit {}", escape(limit))).unwrap_or_default();
    text + if it.stopped { ", stopped" } else { "" }
}

fn denial(it: &Denial, facts: &Facts, total: Option<u64>) -> String {
    let what = words([&facts.access, &facts.subject]);
    joined([Some(what), times(total.unwrap_or(it.count))])
}

fn network(it: &Network, facts: &Facts) -> String {
    let path = it.path.as_deref().map(escape).unwrap_or_default();
    let moved = it.bytes_sent > 0 || it.bytes_received > 0;
    joined([
        Some(words([&facts.access, &facts.subject]) + &path),
        it.status.map(|status| status.to_string()),
        moved.then(|| format!("{} sent, {} received", bytes(it.bytes_sent), bytes(it.bytes_received))),
        times(it.count),
        it.credential.as_deref().map(|name| format!("with credential {}", escape(name))),
    ])
}

/// Count as `x1,000`; none for one.
fn times(count: u64) -> Option<String> {
    (count > 1).then(|| format!("x{}", grouped(count)))
}

fn joined<const N: usize>(parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join("  ")
}

fn restore(it: &Restore) -> String {
    let paths = match it.paths.as_slice() {
        [] => "everything".to_owned(),
        [one] => shown(one),
        several => some(several.len(), "path"),
    };
    let (snapshot, outcome) = (escape(&it.snapshot), escape(&it.outcome));
    if it.session_id == nono::audit::RECORDED_AS {
        return format!("{paths} to checkpoint {snapshot}: {outcome}");
    }
    format!("{paths} of {} to snapshot {snapshot}: {outcome}", escape(&it.session_id))
}

fn checkpoint(it: &CheckpointEvent) -> String {
    let (project, reason) = (shown(&it.project), escape(&it.reason));
    match (&it.checkpoint, &it.error) {
        (Some(id), _) => format!("{} of {project}: {reason}", escape(id)),
        (None, error) => format!("{project}: {}", escape(error.as_deref().unwrap_or("no checkpoint"))),
    }
}

fn seal(it: &Seal) -> String {
    let signed = if it.signature.is_some() { ", signed" } else { "" };
    format!("{}, root {}{signed}", some(it.event_count, "record"), short(&it.merkle_root.hex()))
}

/// Program, approver and reason.
fn who(facts: &Facts) -> String {
    let mut parts = Vec::new();
    if !facts.program.is_empty() {
        let pid = facts.pid.map(|pid| format!("[{pid}]")).unwrap_or_default();
        parts.push(format!("{}{pid}", escape(&facts.program)));
    }
    if facts.kind != "network" && !facts.by.is_empty() {
        let scope =
            if facts.scope.is_empty() { String::new() } else { format!(" ({})", escape(&facts.scope)) };
        parts.push(format!("by {}{scope}", escape(&facts.by)));
    }
    if facts.decision.is_some() && !facts.reason.is_empty() {
        parts.push(escape(&facts.reason));
    }
    parts.join(", ")
}

fn words<const N: usize>(words: [&str; N]) -> String {
    words.iter().filter(|word| !word.is_empty()).map(|word| escape(word)).collect::<Vec<_>>().join(" ")
}

fn short(digest: &str) -> String {
    digest.chars().take(DIGITS).collect()
}

#[cfg(test)]
mod tests {
    use nono::audit::event::{CapabilityDecision, Warning};
    use nono::audit::record_format::Chain;

    use super::*;
    use crate::paint::Canvas;

    fn shown(event: AuditEvent) -> String {
        let event_json = serde_json::to_string(&event).unwrap();
        let link = Chain::default().link(event_json.as_bytes());
        let record = VerifiedRecord { link, event_json, event };
        Canvas { colours: true, width: 80 }.line(&line(&record, "10:15:00.000", None))
    }

    #[test]
    fn answers_have_colours_and_what_was_asked_has_none() {
        let decision = |decision| {
            AuditEvent::CapabilityDecision(CapabilityDecision {
                time_ms: 0,
                path: "/a\u{1b}[32mb".into(),
                access: "read".to_owned(),
                program: "/bin/\u{7}cat".into(),
                pid: 1,
                decision,
                by: "rule\n2".to_owned(),
                scope: None,
                reason: Some("\u{9b}31m".to_owned()),
            })
        };
        let (allowed, denied) = (shown(decision(Decision::Allowed)), shown(decision(Decision::Denied)));
        assert!(allowed.contains("\u{1b}[32mallowed"), "{allowed:?}");
        assert!(denied.contains("\u{1b}[31mdenied"), "{denied:?}");
        let hostile =
            shown(AuditEvent::Warning(Warning { time_ms: 0, message: "\u{1b}]0;x\u{7}".to_owned() }));
        for line in [allowed, denied, hostile] {
            let ours = ["\u{1b}[0m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m"];
            let rest =
                ours.iter().fold(line.trim_end_matches('\n').to_owned(), |line, code| line.replace(code, ""));
            assert!(!rest.contains(char::is_control), "{rest:?}");
        }
    }
}
