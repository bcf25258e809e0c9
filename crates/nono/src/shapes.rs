//! Shapes that several answers share. Field names are stable.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nono_snapshot::restore::Skipped;
use nono_snapshot::{ChangeCounts, ChangeType, Changes};
use serde_json::{Value, json};

use crate::rollback::changes::JsonText;

/// A path of any bytes: text where it is text, else its bytes in hexadecimal digits, as in `session.json`.
pub fn path(path: &Path) -> Value {
    json!(JsonText(path.as_os_str().as_bytes()))
}

/// How many paths differ, by how they do.
pub fn counts(changes: &Changes) -> ChangeCounts {
    changes.iter().fold(ChangeCounts::default(), |mut counts, change| {
        match change.change_type {
            ChangeType::Created => counts.created += 1,
            ChangeType::Modified => counts.modified += 1,
            ChangeType::Deleted => counts.deleted += 1,
            ChangeType::PermissionsChanged => counts.permissions_changed += 1,
        }
        counts
    })
}

/// Left as they are.
pub fn kept(kept: &[Skipped]) -> Vec<Value> {
    kept.iter().map(|one| json!({"path": path(&one.path), "reason": one.why.to_string()})).collect()
}

pub fn failed(failed: &[(PathBuf, String)]) -> Vec<Value> {
    failed.iter().map(|(at, error)| json!({"path": path(at), "error": error})).collect()
}
