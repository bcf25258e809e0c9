//! Changes, of sessions and of checkpoints.

use nono::checkpoints::{Checkpoint, Difference, Differences, json as shapes};
use nono::rollback::{ChangeSet, json::snapshot_id};
use serde_json::{Value, json};

use crate::plain::{Extra, Record};

/// Changes of a session.
pub(crate) fn of_session(set: &ChangeSet) -> Record {
    let data = json!({
        "from": snapshot_id(&set.from),
        "to": snapshot_id(&set.to),
        "counts": set.counts(),
        "changes": set.items,
    });
    Record::new("HistoryChanges", data)
}

/// Changes since a checkpoint.
pub(crate) fn since(since: &Checkpoint, found: &Differences) -> Record {
    let lines: Value = found.all.iter().map(|Difference { lines, .. }| json!(lines)).collect();
    Record::new("HistoryChanges", shapes::diff(since, found))
        .with("checkpoint", Extra::Json(shapes::checkpoint(since)))
        .with("lines", Extra::Json(lines))
        .with("patch", Extra::Bytes(found.patch()))
}
