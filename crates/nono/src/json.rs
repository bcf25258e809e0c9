//! JSON values that several answers share. Field names are stable.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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

/// Paths that were left as they are, with the reason.
pub fn kept(kept: &[Skipped]) -> Vec<Value> {
    kept.iter().map(|one| json!({"path": path(&one.path), "reason": one.why.to_string()})).collect()
}

pub fn failed(failed: &[(PathBuf, String)]) -> Vec<Value> {
    failed.iter().map(|(at, error)| json!({"path": path(at), "error": error})).collect()
}
