//! JSON values that several answers share. Field names are stable.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nono_history::{Done, Later, Merge, Plan};
use nono_snapshot::restore::Skipped;
use nono_snapshot::{ChangeCounts, Changes};
use serde_json::{Value, json};

use crate::rollback::changes::JsonText;

/// A path of any bytes: as text if it is UTF-8, otherwise its bytes in hexadecimal digits, as in `session.json`.
pub fn path(path: &Path) -> Value {
    json!(JsonText(path.as_os_str().as_bytes()))
}

/// Number of changed paths by kind of change.
pub fn counts(changes: &Changes) -> ChangeCounts {
    let mut counts = ChangeCounts::default();
    changes.iter().for_each(|change| counts.add(change.change_type));
    counts
}

/// Plan of a restore, of any owner.
pub fn plan(plan: &Plan) -> Value {
    json!({
        "dry_run": true,
        "counts": counts(&plan.changes),
        "changes": plan.changes,
        "kept": kept(&plan.kept),
        "merges": merges(&plan.merges),
        "still_executes": still_executes(&plan.still_executes),
        "lost": plan.lost,
        "cannot_tell_conflicts": plan.cannot_tell_conflicts,
        "may_be_others": plan.may_be_others,
        "left_alone": paths(&plan.repositories),
        "notes": plan.notes,
    })
}

/// Result of a restore, of any owner.
pub fn done(done: &Done) -> Value {
    json!({
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
        "cannot_tell_conflicts": done.cannot_tell_conflicts,
        "left_alone": paths(&done.repositories),
        "unrecorded": done.unrecorded,
        "notes": done.notes,
    })
}

/// Result of a removal, or of a dry run: of sessions, or of checkpoints by project. `bytes`: used before and after.
pub(crate) fn removal<P: ToString>(
    dry_run: bool,
    removed: &[Value],
    bytes: (u64, u64),
    over_budget: bool,
    problems: &[P],
) -> Value {
    json!({
        "dry_run": dry_run,
        "removed": removed,
        "bytes_before": bytes.0,
        "bytes_after": bytes.1,
        "over_budget": over_budget,
        "problems": problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// An owner's fields, and those that all owners share after them.
pub(crate) fn joined(mut own: Value, shared: Value) -> Value {
    if let (Some(own), Value::Object(shared)) = (own.as_object_mut(), shared) {
        own.extend(shared);
    }
    own
}

/// Shorten the lists of a result to `most` entries each, and note how many are missing: `more_changes`.
pub fn short(mut value: Value, most: usize) -> Value {
    let Some(fields) = value.as_object_mut() else { return value };
    let mut more = Vec::new();
    for (name, one) in fields.iter_mut() {
        if let Value::Array(all) = one
            && all.len() > most
        {
            more.push((format!("more_{name}"), json!(all.len() - most)));
            all.truncate(most);
        }
    }
    fields.extend(more);
    value
}

pub(crate) fn paths(all: &[PathBuf]) -> Vec<Value> {
    all.iter().map(|one| path(one)).collect()
}

/// Merged files, with those that do not merge cleanly.
fn merges(merges: &[Merge]) -> Vec<Value> {
    merges.iter().map(|merge| json!({"path": path(&merge.path), "clean": merge.clean})).collect()
}

/// Kept files that run later.
fn still_executes(still: &[(PathBuf, Later)]) -> Vec<Value> {
    let one = |(at, later): &(PathBuf, Later)| json!({"path": path(at), "executes_later": later});
    still.iter().map(one).collect()
}

/// Paths that were left as they are, with the reason.
fn kept(kept: &[Skipped]) -> Vec<Value> {
    kept.iter().map(|one| json!({"path": path(&one.path), "reason": one.why.to_string()})).collect()
}

fn failed(failed: &[(PathBuf, String)]) -> Vec<Value> {
    failed.iter().map(|(at, error)| json!({"path": path(at), "error": error})).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_shortened() {
        let long = short(json!({"files": vec![1; 150], "kept": [1], "n": 1}), 100);
        assert_eq!(long["files"].as_array().map(Vec::len), Some(100));
        assert_eq!((&long["more_files"], &long["kept"]), (&json!(50), &json!([1])));
    }
}
