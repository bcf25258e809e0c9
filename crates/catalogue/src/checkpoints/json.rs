//! JSON of checkpoints, plans and results. Field names are stable.

use std::path::{Path, PathBuf};

use nono_checkpoint::forget::{Holding, Purged};
use nono_checkpoint::legacy::Legacy;
use nono_checkpoint::unprotected::Unprotected;
use nono_checkpoint::verify::{Lost, ProjectVerified};
use nono_checkpoint::{
    Checkpoint, CheckpointId, Completed, Ensured, Origin, ProjectStatus, Pruned, StatusReport, TurnCall,
    WorkedTurn,
};
use nono_history::{Done, Plan as RestorePlan};
use nono_snapshot::ChangeType;
use serde::Deserialize;
use serde_json::{Value, json};

use super::differences::{Difference, Differences};
use super::forget::{HoldingEverywhere, PurgedEverywhere};
use super::import::{Imported, Skipped};
use crate::json::{self, path};
use crate::rollback::SessionEntry;
use crate::rollback::changes::JsonText;

/// Checkpoints of a project, newest first. `here`: the one that the project was restored to.
pub fn list(project: &Path, checkpoints: &[Checkpoint], here: Option<&CheckpointId>) -> Value {
    let one = |(at, one): (usize, &Checkpoint)| {
        let mut value = checkpoint(one);
        value["number"] = json!(at + 1);
        value["here"] = json!(here == Some(&one.id));
        value
    };
    json!({
        "project": path(project),
        "checkpoints": checkpoints.iter().enumerate().map(one).collect::<Vec<_>>(),
    })
}

/// A [`list`], read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub project: PathBuf,
    pub checkpoints: Vec<Checkpoint>,
    pub here: Option<CheckpointId>,
}

/// Parse a [`list`], as received over a channel.
pub fn listed(value: &Value) -> Option<Listed> {
    let project = nono_snapshot::paths::deserialize(&value["project"]).ok()?;
    let all = value["checkpoints"].as_array()?;
    let checkpoints = all.iter().map(read).collect::<Option<Vec<_>>>()?;
    let here = all.iter().position(|one| one["here"] == json!(true));
    let here = here.and_then(|at| checkpoints.get(at)).map(|one| one.id.clone());
    Some(Listed { project, checkpoints, here })
}

fn read(one: &Value) -> Option<Checkpoint> {
    let text = |key: &str| one[key].as_str().map(str::to_owned);
    Some(Checkpoint {
        id: serde_json::from_value(one["id"].clone()).ok()?,
        // Number in the engine's record, which is not part of the JSON.
        snapshot: 0,
        time: text("time")?,
        reason: text("reason")?,
        origin: Origin::deserialize(one).ok()?,
        begun: None,
        name: text("name"),
        pinned: one["pinned"].as_bool()?,
        imported_from: text("imported_from"),
        files: one["files"].as_u64()?,
        left_out: one["not_covered"].as_u64()?,
        stats: serde_json::from_value(one["stats"].clone()).ok()?,
    })
}

/// Checkpoint with every field, known or not.
pub fn checkpoint(one: &Checkpoint) -> Value {
    json!({
        "id": one.id,
        "time": one.time,
        "reason": one.reason,
        "agent": one.origin.agent,
        "session": one.origin.session,
        "turn": one.origin.turn,
        "prompt": one.origin.prompt,
        "tool": one.origin.tool,
        "call": one.origin.call,
        "run": one.origin.run,
        "name": one.name,
        "pinned": one.pinned,
        "imported_from": one.imported_from,
        "files": one.files,
        "not_covered": one.left_out,
        "stats": one.stats,
    })
}

/// Turns of a project, newest first.
pub fn turns(project: &Path, turns: &[WorkedTurn]) -> Value {
    let one = |(at, one): (usize, &WorkedTurn)| {
        let mut value = turn(one);
        value["number"] = json!(at + 1);
        value
    };
    json!({ "project": path(project), "turns": turns.iter().enumerate().map(one).collect::<Vec<_>>() })
}

/// One turn, with its calls and files.
pub fn turn(one: &WorkedTurn) -> Value {
    let call = |call: &TurnCall| json!({ "time": call.time, "tool": call.tool, "reason": call.reason, "paths": call.paths });
    let file = |(file, change): &(PathBuf, ChangeType)| json!({ "path": path(file), "change_type": change });
    let WorkedTurn { link, checkpoint, calls, files, stats } = one;
    json!({
        "turn": link.turn,
        "agent": link.agent,
        "session": link.session,
        "run": link.run,
        "prompt": link.prompt,
        "time": link.time.as_ref().unwrap_or(&checkpoint.time),
        "undone": link.undone,
        "checkpoint": checkpoint.id,
        "calls": calls.iter().map(call).collect::<Vec<_>>(),
        "files": files.iter().map(file).collect::<Vec<_>>(),
        "stats": stats,
    })
}

/// Result of taking a checkpoint if needed.
pub fn ensured(ensured: &Ensured) -> Value {
    match ensured {
        Ensured::Taken { project, checkpoint: taken, coverage } => json!({
            "result": "taken",
            "project": path(project),
            "checkpoint": checkpoint(taken),
            "coverage": coverage,
        }),
        Ensured::Skipped { project, why } => {
            json!({"result": "skipped", "project": path(project), "why": why})
        }
        Ensured::Failed { dir, error } => {
            json!({"result": "failed", "project": path(dir), "why": error.to_string()})
        }
    }
}

/// A checkpoint, and the changes since.
pub fn diff(since: &Checkpoint, differences: &Differences) -> Value {
    let mut value = checkpoint(since);
    value["counts"] = json!(differences.counts);
    value["changes"] = differences.all.iter().map(difference).collect();
    value
}

pub fn difference(one: &Difference) -> Value {
    let mut value = json!(one.item);
    value["binary"] = json!(one.binary);
    value["patch"] = json!(JsonText(&one.patch));
    value
}

pub fn status(status: &StatusReport) -> Value {
    let project = |one: &ProjectStatus| {
        json!({
            "hash": one.hash,
            "workdir": path(&one.workdir),
            "checkpoints": one.checkpoints,
            "last_touch": one.last_touch,
            "state": if one.orphan { "orphan" } else { "live" },
            "unprotected": one.unprotected,
        })
    };
    let unprotected = |one: &Unprotected| json!({"path": path(&one.dir), "why": one.why, "time": one.time});
    let legacy = |(name, bytes): &(String, u64)| json!({"name": name, "bytes": bytes});
    json!({
        "enabled": status.enabled,
        "base": path(&status.base),
        "total_bytes": status.store_bytes + status.legacy_bytes,
        "store_bytes": status.store_bytes,
        "legacy_bytes": status.legacy_bytes,
        "exact": status.exact,
        "projects": status.projects.iter().map(project).collect::<Vec<_>>(),
        "legacy": status.legacy.iter().map(legacy).collect::<Vec<_>>(),
        "unprotected": status.unprotected.iter().map(unprotected).collect::<Vec<_>>(),
        "problems": status.problems,
    })
}

/// Plan of a restore of a project.
pub fn plan(project: &Path, turns_undone: &[String], not_covered: u64, plan: &RestorePlan) -> Value {
    let own = json!({"project": path(project), "turns_undone": turns_undone, "not_covered": not_covered});
    json::joined(own, json::plan(plan))
}

/// Result of a restore: tells a program or a model what is gone.
pub fn outcome(
    project: &Path,
    checkpoint: Option<&Checkpoint>,
    turns_undone: &[String],
    done: &Done,
) -> Value {
    let own = json!({
        "checkpoint": checkpoint.map(|checkpoint| &checkpoint.id),
        "project": path(project),
        "turns_undone": turns_undone,
        "not_covered": checkpoint.map_or(0, |checkpoint| checkpoint.left_out),
    });
    json::joined(own, json::done(done))
}

/// An interrupted restore that a later command completed, or tried to complete.
pub fn completed(completed: &Completed) -> Value {
    let Completed { project, checkpoint, done } = completed;
    let mut value = outcome(project, None, &[], done);
    value["checkpoint"] = json!(checkpoint);
    value["changed"] = json!(done.changes.len());
    value
}

pub fn pruned(pruned: &Pruned, dry_run: bool) -> Value {
    let removed = |(project, checkpoints): &(PathBuf, Vec<Checkpoint>)| {
        json!({
            "project": path(project),
            "checkpoints": checkpoints.iter().map(checkpoint).collect::<Vec<_>>(),
        })
    };
    let removed: Vec<Value> = pruned.removed.iter().map(removed).collect();
    let bytes = (pruned.bytes_before, pruned.bytes_after);
    let mut value = json::removal(dry_run, &removed, bytes, pruned.over_budget, &pruned.problems);
    value["projects_removed"] = json!(json::paths(&pruned.projects_removed));
    value["legacy"] = pruned.legacy.iter().map(archive).collect();
    value
}

/// Archives of superseded formats.
pub fn legacy(all: &[Legacy], dry_run: bool) -> Value {
    json!({"dry_run": dry_run, "removed": all.iter().map(archive).collect::<Vec<_>>()})
}

fn archive(one: &Legacy) -> Value {
    json!({"name": one.name(), "bytes": one.bytes})
}

/// Checkpoints and sessions that have a path that is to be purged.
pub fn holding_everywhere(found: &HoldingEverywhere) -> Value {
    let Holding { project, checkpoints, .. } = &found.checkpoints;
    let session =
        |(entry, snapshots): &(SessionEntry, u64)| json!({"session_id": entry.id, "snapshots": snapshots});
    json!({
        "dry_run": true,
        "project": path(project),
        "path": path(&found.path),
        "checkpoints": checkpoints.iter().map(checkpoint).collect::<Vec<_>>(),
        "sessions": found.sessions.iter().map(session).collect::<Vec<_>>(),
    })
}

/// Result of purging a path from checkpoints and sessions.
pub fn purged_everywhere(done: &PurgedEverywhere) -> Value {
    let Purged { project, path: at, snapshots, contents, held_by, .. } = &done.checkpoints;
    let holder =
        |(holder, paths): &(PathBuf, Vec<PathBuf>)| json!({"by": path(holder), "paths": json::paths(paths)});
    let session = |(id, snapshots): &(String, u64)| json!({"session_id": id, "snapshots": snapshots});
    let held = |(id, why): &(String, String)| json!({"session_id": id, "why": why});
    json!({
        "dry_run": false,
        "project": path(project),
        "path": path(at),
        "snapshots": snapshots,
        "contents": contents,
        "held_by": held_by.iter().map(holder).collect::<Vec<_>>(),
        "sessions": done.sessions.iter().map(session).collect::<Vec<_>>(),
        "held": done.held.iter().map(held).collect::<Vec<_>>(),
    })
}

pub fn verified(found: &ProjectVerified) -> Value {
    let lost = |lost: &Lost| {
        json!({
            "project": path(&lost.project),
            "checkpoint": checkpoint(&lost.checkpoint),
            "paths": json::paths(&lost.paths),
        })
    };
    json!({
        "good": found.is_good(),
        "projects": found.projects,
        "checkpoints": found.checkpoints,
        "objects": found.objects,
        "bytes": found.bytes,
        "lost": found.lost.iter().map(lost).collect::<Vec<_>>(),
        "problems": found.problems,
    })
}

pub fn imported(imported: &Imported) -> Value {
    let project = |(project, new): &(PathBuf, u64)| json!({"project": path(project), "checkpoints": new});
    let skipped = |one: &Skipped| json!({"what": one.what, "why": one.why});
    json!({
        "projects": imported.projects.iter().map(project).collect::<Vec<_>>(),
        "checkpoints": imported.checkpoints,
        "known": imported.known,
        "skipped": imported.skipped.iter().map(skipped).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_list_comes_back_from_its_shape() {
        let one = json!({
            "id": "a1b2c3d4e5f6", "snapshot": 0, "time": "2026-11-15T18:22:03Z", "reason": "before patch",
            "origin": {"agent": "a", "session": "s", "turn": "1", "tool": "t", "call": "c", "run": "r"},
            "name": "works", "pinned": true, "imported_from": "x", "files": 3, "left_out": 4,
            "stats": {"files": 1, "insertions": 2, "deletions": 3},
        });
        let full: Checkpoint = serde_json::from_value(one).unwrap();
        let bare = Checkpoint {
            origin: Origin::default(),
            name: None,
            pinned: false,
            imported_from: None,
            stats: None,
            id: serde_json::from_value(json!("b1b2c3d4e5f6")).unwrap(),
            ..full.clone()
        };
        let all = vec![full, bare];
        for project in [Path::new("/a/b"), Path::new(OsStr::from_bytes(b"/a/\xff"))] {
            for here in [None, Some(all[0].id.clone())] {
                let back = listed(&list(project, &all, here.as_ref()));
                let (project, checkpoints) = (project.to_owned(), all.clone());
                assert_eq!(back, Some(Listed { project, checkpoints, here }));
            }
        }
        for strange in [json!(null), json!({"project": 1}), json!({"project": "/a", "checkpoints": [{}]})] {
            assert_eq!(listed(&strange), None);
        }
    }
}
