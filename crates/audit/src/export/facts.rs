//! Common columns of all events, for tables and searches.

use std::path::Path;

use crate::event::{AuditEvent, Decision, Network, Phase};
use crate::redact::text_of;

/// One event as a table row. Text may hold anything: the caller escapes it before showing it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub time_ms: u64,
    /// Kind of the event, as in the record.
    pub kind: &'static str,
    pub decision: Option<Decision>,
    /// Subject of the event: a path, a host with its port, an address, a session.
    pub subject: String,
    pub access: String,
    pub program: String,
    pub pid: Option<u32>,
    pub by: String,
    pub scope: String,
    pub reason: String,
    pub count: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
}

/// `allowed` or `denied`.
pub fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Allowed => "allowed",
        Decision::Denied => "denied",
    }
}

pub fn facts(event: &AuditEvent) -> Facts {
    let one = Facts { count: 1, ..Facts::default() };
    match event {
        AuditEvent::SessionStarted(it) => Facts {
            time_ms: it.time_ms,
            kind: "session_started",
            subject: it.command.join(" "),
            pid: Some(it.pid),
            ..one
        },
        AuditEvent::SessionEnded(it) => Facts {
            time_ms: it.time_ms,
            kind: "session_ended",
            subject: format!("exit {}", it.exit_code),
            reason: it.limit.clone().unwrap_or_default(),
            ..one
        },
        AuditEvent::CapabilityDecision(it) => Facts {
            time_ms: it.time_ms,
            kind: "capability_decision",
            decision: Some(it.decision),
            subject: text(&it.path),
            access: it.access.clone(),
            program: text(&it.program),
            pid: Some(it.pid),
            by: it.by.clone(),
            scope: it.scope.clone().unwrap_or_default(),
            reason: it.reason.clone().unwrap_or_default(),
            ..one
        },
        AuditEvent::Denial(it) => Facts {
            time_ms: it.time_ms,
            kind: "denial",
            decision: Some(Decision::Denied),
            subject: it.what.path.as_deref().map_or_else(|| it.what.kind.clone(), text),
            access: it.what.access.clone(),
            program: text(&it.what.program),
            pid: Some(it.pid),
            reason: it.what.reason.clone(),
            count: it.count,
            ..one
        },
        AuditEvent::UrlOpen(it) => Facts {
            time_ms: it.time_ms,
            kind: "url_open",
            decision: Some(it.decision),
            subject: it.url.clone(),
            program: text(&it.program),
            pid: Some(it.pid),
            by: it.by.clone(),
            reason: it.error.clone().unwrap_or_default(),
            ..one
        },
        AuditEvent::Network(it) => network(it),
        _ => other(event, one),
    }
}

fn network(it: &Network) -> Facts {
    Facts {
        time_ms: it.time_ms,
        kind: "network",
        decision: Some(it.decision),
        subject: format!("{}:{}", it.host, it.port),
        access: access(it),
        by: it.credential.clone().unwrap_or_default(),
        reason: it.reason.clone().unwrap_or_default(),
        count: it.count,
        bytes_sent: it.bytes_sent,
        bytes_received: it.bytes_received,
        ..Facts::default()
    }
}

fn access(it: &Network) -> String {
    let access = it.method.as_deref().unwrap_or(&it.mode);
    match it.phase {
        Some(Phase::Opened) => format!("{access} opened"),
        Some(Phase::Ended) => format!("{access} ended"),
        None => access.to_owned(),
    }
}

/// Row of an event that has no decision.
fn other(event: &AuditEvent, one: Facts) -> Facts {
    let of = |time_ms, kind, subject: String, reason: &str| Facts {
        time_ms,
        kind,
        subject,
        reason: reason.to_owned(),
        ..one.clone()
    };
    match event {
        AuditEvent::Snapshot(it) => of(it.time_ms, "snapshot", it.number.to_string(), &it.merkle_root),
        AuditEvent::Restore(it) => of(it.time_ms, "restore", it.session_id.clone(), &it.outcome),
        AuditEvent::Checkpoint(it) => {
            let why = it.error.as_deref().unwrap_or(&it.reason);
            of(it.time_ms, "checkpoint", text(&it.project), why)
        }
        AuditEvent::AgentPrompt(it) => {
            of(it.time_ms, "agent_prompt", it.agent.clone().unwrap_or_default(), &it.sha256.hex())
        }
        AuditEvent::AgentCall(it) => {
            let what = it.command.as_ref().or(it.tool.as_ref()).cloned().unwrap_or_default();
            of(it.time_ms, "agent_call", it.agent.clone().unwrap_or_default(), &what)
        }
        AuditEvent::BackendError(it) => of(it.time_ms, "backend_error", it.backend.clone(), &it.why),
        AuditEvent::Warning(it) => of(it.time_ms, "warning", String::new(), &it.message),
        AuditEvent::Seal(it) => of(it.time_ms, "seal", it.merkle_root.hex(), ""),
        _ => one,
    }
}

/// Path for a table. The record has it exactly.
fn text(path: &Path) -> String {
    text_of(path.as_os_str())
}
