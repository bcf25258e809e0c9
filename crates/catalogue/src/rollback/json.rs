//! JSON of sessions, plans and results. Field names are stable.

use std::path::PathBuf;

use nono_snapshot::SnapshotId;
use serde_json::{Value, json};

use super::changes::JsonText;
use super::patch;
use super::repair::Repaired;
use super::{
    AllVerified, ChangeSet, Done, Item, Plan, Pruned, RollbackError, RollbackSession, SessionEntry,
    SessionVerified, SnapshotInfo, Status,
};
use crate::checkpoints;
use crate::json::{self, path, paths};

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

/// Result of verifying several sessions.
pub fn all_verified(all: &AllVerified) -> Value {
    let unreadable =
        |error: &RollbackError| json!({"session_id": null, "good": false, "problems": [error.to_string()]});
    let unreadable = all.unreadable.iter().map(unreadable);
    let sessions = unreadable.chain(all.sessions.iter().map(|(id, found)| verified(id, found)));
    json!({"good": all.is_good(), "sessions": sessions.collect::<Vec<_>>(), "running": all.running})
}

/// Result of verifying a session.
pub fn verified(id: &str, found: &SessionVerified) -> Value {
    let lost = |(snapshot, paths): &(SnapshotId, Vec<PathBuf>)| json!({ "snapshot": snapshot_id(snapshot), "paths": json::paths(paths) });
    json!({
        "session_id": id,
        "good": found.is_good(),
        "sealed": found.sealed,
        "interrupted": found.interrupted,
        "removed": found.removed,
        "snapshots": found.snapshots,
        "objects": found.objects,
        "bytes": found.bytes,
        "problems": found.problems,
        "lost": found.lost.iter().map(lost).collect::<Vec<_>>(),
        "forgotten": paths(&found.forgotten),
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
    value["binary"] = json!(patch::is_binary(session.engine(), item)?);
    if diff {
        let mut patch = Vec::new();
        patch::write_patch(session.engine(), set, &[item], &mut patch)?;
        value["patch"] = json!(JsonText(&patch));
    }
    Ok(value)
}

/// Plan of a restore.
pub fn plan(id: &str, plan: &Plan) -> Value {
    json::joined(json!({"session_id": id}), json::plan(plan))
}

/// Result of a restore.
pub fn done(id: &str, done: &Done) -> Value {
    json::joined(json!({"session_id": id}), json::done(done))
}

/// Result of pruning, or of a dry run.
pub fn pruned(pruned: &Pruned, dry_run: bool) -> Result<Value, RollbackError> {
    let Pruned { removed, bytes_before, bytes_after, over_budget, problems } = pruned;
    let removed = removed.iter().map(session).collect::<Result<Vec<_>, _>>()?;
    Ok(json::removal(dry_run, &removed, (*bytes_before, *bytes_after), *over_budget, problems))
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
