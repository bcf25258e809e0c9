//! JSON of sessions, plans and results. Field names are stable.

use std::path::PathBuf;

use nono_snapshot::SnapshotId;
use serde_json::{Value, json};

use super::changes::JsonText;
use super::repair::Repaired;
use super::{
    ChangeSet, Done, Item, Later, Merge, Plan, RollbackError, RollbackSession, SessionEntry, SessionVerified,
    SnapshotInfo, Status,
};
use crate::checkpoints;
use crate::json::{counts, failed, kept, path};

pub fn status(status: Status) -> &'static str {
    match status {
        Status::Live => "live",
        Status::Finished => "finished",
        Status::Interrupted => "interrupted",
    }
}

/// Fields of `session.json`, and what is known about the session besides.
pub fn session(entry: &SessionEntry) -> Result<Value, RollbackError> {
    let mut value =
        serde_json::to_value(&entry.metadata).map_err(|error| RollbackError::damaged(&entry.dir, error))?;
    // Commands take the folder's name as the id.
    value["session_id"] = json!(entry.id);
    value["status"] = json!(status(entry.status));
    value["pinned"] = json!(entry.pinned);
    value["foreign"] = json!(entry.foreign);
    value["project"] = path(&entry.project);
    value["dir"] = path(&entry.dir);
    value["not_covered"] =
        json!(entry.metadata.coverage.as_ref().map(nono_snapshot::Coverage::entries_left_out));
    Ok(value)
}

pub fn problem(error: &RollbackError) -> Value {
    json!({"error": error.to_string()})
}

/// Result of verifying a session.
pub fn verified(id: &str, found: &SessionVerified) -> Value {
    json!({
        "session_id": id,
        "good": found.problems.is_empty(),
        "sealed": found.sealed,
        "interrupted": found.interrupted,
        "removed": found.removed,
        "snapshots": found.snapshots,
        "objects": found.objects,
        "bytes": found.bytes,
        "problems": found.problems,
        "forgotten": found.forgotten.iter().map(|one| path(one)).collect::<Vec<_>>(),
    })
}

/// A number, or the name of a safety snapshot.
pub fn snapshot_id(id: &SnapshotId) -> Value {
    match id {
        SnapshotId::Number(number) => json!(number),
        SnapshotId::Safety(name) => json!(name),
    }
}

pub fn snapshot(info: &SnapshotInfo) -> Value {
    json!({
        "id": snapshot_id(&info.id),
        "timestamp": info.timestamp,
        "thinned": info.thinned,
        "durable": info.durable,
    })
}

/// One change, with its patch if requested.
pub fn change(
    session: &RollbackSession,
    set: &ChangeSet,
    item: &Item,
    diff: bool,
) -> Result<Value, RollbackError> {
    let mut value = json!(item);
    value["binary"] = json!(session.is_binary(item)?);
    if diff {
        let mut patch = Vec::new();
        session.write_patch(set, &[item], &mut patch)?;
        value["patch"] = json!(JsonText(&patch));
    }
    Ok(value)
}

fn merges(merges: &[Merge]) -> Vec<Value> {
    merges.iter().map(|merge| json!({"path": path(&merge.path), "clean": merge.clean})).collect()
}

/// Kept files that run later.
fn still_executes(still: &[(PathBuf, Later)]) -> Vec<Value> {
    let one = |(at, later): &(PathBuf, Later)| json!({"path": path(at), "executes_later": later});
    still.iter().map(one).collect()
}

/// Plan of a restore.
pub fn plan(id: &str, plan: &Plan) -> Value {
    json!({
        "session_id": id,
        "dry_run": true,
        "counts": counts(&plan.changes),
        "changes": plan.changes,
        "kept": kept(&plan.kept),
        "merges": merges(&plan.merges),
        "still_executes": still_executes(&plan.still_executes),
        "lost": plan.lost,
        "cannot_tell_conflicts": plan.cannot_tell_conflicts,
        "may_be_others": plan.may_be_others,
        "notes": plan.notes,
    })
}

/// Result of a restore.
pub fn done(id: &str, done: &Done) -> Value {
    json!({
        "session_id": id,
        "dry_run": false,
        "undo": done.undo,
        "counts": counts(&done.changes),
        "changes": done.changes,
        "kept": kept(&done.kept),
        "merges": merges(&done.merged),
        "still_executes": still_executes(&done.still_executes),
        "lost": done.lost,
        "failed": failed(&done.failed),
        "interrupted": done.interrupted,
    })
}

/// Result of a repair, or of a dry run.
pub fn repaired(sessions: &Repaired, projects: &checkpoints::Repaired, dry_run: bool) -> Value {
    let stores = sessions.stores.iter().map(|(dir, store)| {
        let records = store.records.iter().map(|record| {
            json!({"session": path(&record.session), "what": record.what, "snapshots": record.snapshots})
        });
        let lost = store.lost.iter().map(|lost| {
            let snapshot = lost.snapshot.as_ref().map(snapshot_id);
            json!({"session": path(&lost.session), "snapshot": snapshot, "manifest": path(&lost.manifest)})
        });
        json!({
            "store": path(dir),
            "new_id": store.id,
            "records_rebuilt": records.collect::<Vec<_>>(),
            "lost": lost.collect::<Vec<_>>(),
            "notes_replaced": store.notes_replaced.len(),
            "notes_removed": store.notes_removed.len(),
            "notes_set_aside": store.notes_aside.iter().map(|note| path(note)).collect::<Vec<_>>(),
            "debris_removed": store.debris,
        })
    });
    let files = sessions.files.iter().chain(&projects.files);
    json!({
        "dry_run": dry_run,
        "stores": stores.collect::<Vec<_>>(),
        "files_set_aside": files.map(|file| path(file)).collect::<Vec<_>>(),
        "problems": sessions.problems.iter().chain(&projects.problems).collect::<Vec<_>>(),
    })
}
