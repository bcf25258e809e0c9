//! JSON of hooks. Field names are stable.

use std::path::Path;

use serde_json::{Value, json};

use super::install::{AgentStatus, Applied, FileEdit, InstallPlan, Scope};

/// Plan of an install or removal; with `applied`, its result.
pub fn plan(plan: &InstallPlan, applied: Option<&Applied>) -> Value {
    let change = |change: &FileEdit| {
        let mut value = json!({
            "path": path(&change.path), "action": change.action(), "purpose": change.purpose.name(),
        });
        if let Some(place) = &change.leads_to {
            value["leads_to"] = path(place).into();
        }
        value
    };
    let backups =
        applied.map(|applied| applied.backups.iter().map(|backup| path(backup)).collect::<Vec<_>>());
    json!({
        "agent": plan.agent.name(),
        "changes": plan.changes.iter().map(change).collect::<Vec<_>>(),
        "notes": plan.notes,
        "applied": applied.is_some(),
        "backups": backups.unwrap_or_default(),
    })
}

pub fn status(status: &AgentStatus) -> Value {
    json!({
        "agent": status.agent.name(),
        "scope": if status.scope == Scope::User { "user" } else { "project" },
        "state": status.state.name(),
        "why": status.state.why(),
        "file": path(&status.file),
        "binary": status.binary.as_ref().map(|(binary, _)| path(binary)),
        "binary_exists": status.binary.as_ref().map(|(_, runs)| *runs),
    })
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
