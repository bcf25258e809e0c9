//! Report of a run.

use std::path::PathBuf;
use std::sync::PoisonError;

use nono::diagnostic::{Findings, HostDenied, attempt_words, because_words};
use nono::json::path as path_shape;
use nono::session::{CheckpointsReport, SessionReport as Report};
use nono::{Denial as Refusal, DeniedAttempt, DiagnosticFormatter, Ended, LimitHit};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyList};
use serde_json::{Map, Value, json};

use super::approve::Failures;
use super::error;
use crate::history::changes;
use crate::plain::{Extra, Record};

/// A denial by the sandbox, and what would open it.
fn denial(kind: &str, operation: &str, reason: &str, flags: &[String]) -> Value {
    json!({
        "kind": kind, "path": null, "operation": operation, "reason": reason, "hint": hint(flags), "program": null,
        "count": 0, "probe": false, "flags": flags,
    })
}

fn attempt(refusal: &Refusal) -> Value {
    let (kind, path) = match &refusal.attempt {
        DeniedAttempt::Open { path, .. } => ("open", Some(path)),
        DeniedAttempt::Metadata { path, .. } => ("metadata", Some(path)),
        DeniedAttempt::Socket { path } => ("socket", Some(path)),
        DeniedAttempt::Network { .. } => ("network", None),
        DeniedAttempt::Other { .. } => ("other", None),
    };
    let (operation, reason) = (attempt_words(&refusal.attempt), because_words(&refusal.because));
    let mut value = denial(kind, &operation, &reason, &refusal.flags);
    value["path"] = path.map(|path| path_shape(path)).into();
    value["probe"] = refusal.probe.into();
    if let Some(seen) = &refusal.seen {
        value["program"] = path_shape(&seen.program);
        value["count"] = seen.count.into();
    }
    value
}

fn host(denied: &HostDenied) -> Value {
    let operation = format!("reach {}:{}", denied.host, denied.port);
    let reason = denied.reason.as_deref().unwrap_or_default();
    let mut value = denial("host", &operation, reason, &denied.flags());
    value["count"] = denied.count.into();
    value
}

/// Flags of `nono run` as keywords: `--read /x` is `read=["/x"]`.
fn hint(flags: &[String]) -> Option<String> {
    let mut keywords: Vec<(String, Vec<&str>)> = Vec::new();
    for word in flags {
        match keywords.last_mut() {
            _ if word.starts_with("--") => keywords.push((error::keyword(word), Vec::new())),
            Some((_, values)) => values.push(word),
            // Not a flag: there is no keyword for it.
            None => return None,
        }
    }
    let shown = keywords.iter().map(|(keyword, values)| match &values[..] {
        [] => format!("{keyword}=True"),
        [port] if port.parse::<u16>().is_ok() => format!("{keyword}=[{port}]"),
        values => format!("{keyword}={values:?}"),
    });
    (!keywords.is_empty()).then(|| shown.collect::<Vec<_>>().join(", "))
}

/// Report of a run, with the exceptions of `approve`.
pub(super) fn record(py: Python<'_>, mut report: Report, failures: &Failures) -> PyResult<Record> {
    let formatter = DiagnosticFormatter {
        exit_code: report.exit_code(),
        policy: &report.policy,
        findings: &report.findings,
        verbose: false,
    };
    let mut data = match formatter.json() {
        Value::Object(data) => data,
        _ => Map::new(),
    };
    data.retain(|name, _| !matches!(name.as_str(), "flags" | "may_be_due_to_sandbox"));
    let tracked = report.rollback.as_ref();
    let own = json!({
        "session_id": report.session_id,
        "signal": if let Ended::Signal(signal) = report.ended { Some(signal) } else { None },
        "limit": report.limit.map(|limit| match limit {
            LimitHit::Time(_) => "time",
            LimitHit::Memory { .. } => "memory",
            LimitHit::FileSize(_) => "file_size",
        }),
        "stopped": report.stopped,
        "cancelled": report.cancelled,
        "truncated": report.captured.as_ref().is_some_and(|captured| captured.truncated),
        "coverage": tracked.map(|tracked| &tracked.coverage),
        "made_uncovered": tracked.map(|tracked| tracked.made_uncovered.as_slice()).unwrap_or_default(),
        "lost": tracked.map(|tracked| tracked.lost.as_slice()).unwrap_or_default(),
        "snapshot_count": tracked.map_or(0, |tracked| tracked.snapshots),
        "denials": denials(&report.findings),
        "network": report.network.as_ref().map(|network| json!({
            "allowed": network.allowed,
            "refused": network.refused,
            "hosts_denied": network.hosts,
            "lost": network.lost,
        })),
        "audit_dir": report.audit.as_ref().map(|audit| path_shape(&audit.dir)),
        "audit": report.audit.as_ref().and_then(|audit| audit.record.as_ref()),
        "checkpoints": report.checkpoints.as_ref().map(checkpoints),
        "policy": report.policy,
        "warnings": warnings(&report),
    });
    if let Value::Object(own) = own {
        data.extend(own);
    }
    let explained = formatter.lines().join("\n");
    let failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
    let failures = PyList::new(py, failures.iter().map(|error| error.value(py)))?;
    let mut record = Record::new("SessionReport", data.into())
        .with("explained", Extra::Json(explained.into()))
        .with("expansions", Extra::Json(json!(report.mediation.expansions)))
        .with("asked", Extra::Json(report.mediation.asked.into()))
        .with("approval_errors", Extra::Object(failures.into_any().unbind()));
    if let Some(captured) = report.captured.take() {
        record = record.with("stdout", Extra::Bytes(captured.stdout));
        record = record.with("stderr", Extra::Bytes(captured.stderr));
    }
    if let Some(set) = report.rollback.and_then(|tracked| tracked.changes.ok()?.list) {
        record = record.with("changed", Extra::Json(set.items.len().into()));
        // There may be very many, and nobody may look at them.
        let list = PyCFunction::new_closure(py, None, None, move |_, _| changes::of_session(&set))?;
        record = record.with("list_changes", Extra::Object(list.into_any().unbind()));
    }
    Ok(record)
}

fn denials(findings: &Findings) -> Vec<Value> {
    let all = findings.denials.iter().map(attempt).chain(findings.hosts.iter().map(host));
    // Of the network as a whole; known only from the command's output.
    let network =
        || denial("network", "use the network", "the network is closed", &["--allow-net".to_owned()]);
    all.chain(findings.network.then(network)).collect()
}

fn checkpoints(report: &CheckpointsReport) -> Value {
    let pair = |(dir, text): &(PathBuf, String), name: &str| json!({"project": path_shape(dir), name: text});
    json!({
        "taken": report.taken.iter().map(|one| pair(one, "id")).collect::<Vec<_>>(),
        "unprotected": report.unprotected.iter().map(|one| pair(one, "reason")).collect::<Vec<_>>(),
    })
}

/// Problems that did not end the run.
fn warnings(report: &Report) -> Vec<String> {
    let tracked = report.rollback.as_ref();
    let mut warnings = tracked.map(|tracked| tracked.warnings.clone()).unwrap_or_default();
    if let Some(Err(error)) = tracked.map(|tracked| &tracked.changes) {
        warnings.push(format!("cannot take the final snapshot: {error}"));
    }
    if let Some(network) = &report.network {
        let lost = network.lost.as_ref().map(|why| format!("the network was closed before the end: {why}"));
        warnings.extend(lost.into_iter().chain(network.missing()));
    }
    if let Some(checkpoints) = &report.checkpoints {
        let line = |(dir, why): &(PathBuf, String)| {
            format!("{} is not protected by a checkpoint: {why}", dir.display())
        };
        warnings.extend(checkpoints.unprotected.iter().map(line).chain(checkpoints.problems.iter().cloned()));
    }
    let problems = report.audit.iter().flat_map(|audit| &audit.problems);
    warnings.extend(problems.map(|problem| format!("the audit log is not complete: {problem}")));
    warnings
}
