//! Sessions, plans and outcomes as JSON. Field names are stable.

use std::path::PathBuf;

use nono::rollback::{Done, Later, Merge, Plan, RollbackError, SessionEntry, Status};
use nono::shapes::{counts, failed, kept, path};
use serde_json::{Value, json};

use crate::failure::Failure;

pub(super) fn status(status: Status) -> &'static str {
    match status {
        Status::Live => "live",
        Status::Finished => "finished",
        Status::Interrupted => "interrupted",
    }
}

/// The fields of `session.json`, and what is known from outside of it.
pub(super) fn session(entry: &SessionEntry) -> Result<Value, Failure> {
    let mut value = serde_json::to_value(&entry.metadata)
        .map_err(|error| Failure::new(format!("session {}: {error}", entry.id)))?;
    // The folder's own name is the one that commands take.
    value["session_id"] = json!(entry.id);
    value["status"] = json!(status(entry.status));
    value["pinned"] = json!(entry.pinned);
    value["foreign"] = json!(entry.foreign);
    value["project"] = path(&entry.project);
    value["dir"] = path(&entry.dir);
    value["not_covered"] =
        json!(entry.metadata.coverage.as_ref().map(nono::snapshot::Coverage::entries_left_out));
    Ok(value)
}

pub(super) fn problem(error: &RollbackError) -> Value {
    json!({"error": error.to_string()})
}

fn merges(merges: &[Merge]) -> Vec<Value> {
    merges.iter().map(|merge| json!({"path": path(&merge.path), "clean": merge.clean})).collect()
}

/// Kept, and it will run.
fn still_executes(still: &[(PathBuf, Later)]) -> Vec<Value> {
    let one = |(at, later): &(PathBuf, Later)| json!({"path": path(at), "executes_later": later});
    still.iter().map(one).collect()
}

/// What would be done.
pub(super) fn plan(id: &str, plan: &Plan) -> Value {
    json!({
        "session_id": id,
        "dry_run": true,
        "counts": counts(&plan.changes),
        "changes": plan.changes,
        "kept": kept(&plan.kept),
        "merges": merges(&plan.merges),
        "still_executes": still_executes(&plan.still_executes),
        "cannot_tell_conflicts": plan.cannot_tell_conflicts,
        "notes": plan.notes,
    })
}

/// What was done.
pub(super) fn done(id: &str, done: &Done) -> Value {
    json!({
        "session_id": id,
        "dry_run": false,
        "undo": done.undo,
        "counts": counts(&done.changes),
        "changes": done.changes,
        "kept": kept(&done.kept),
        "merges": merges(&done.merged),
        "still_executes": still_executes(&done.still_executes),
        "failed": failed(&done.failed),
        "interrupted": done.interrupted,
    })
}
