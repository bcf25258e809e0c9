//! The same for programs. Field names are stable.

use nono::rollback::changes::JsonText;
use nono::rollback::{ChangeSet, Item, RollbackError, RollbackSession};
use nono::shapes::path;
use nono::snapshot::{SnapshotError, SnapshotId};
use serde_json::{Value, json};

use super::super::json::session as session_json;
use crate::args::ShowArgs;
use crate::failure::Failure;

/// The session's fields, and in `changes` every change instead of their numbers, which are in `counts`.
pub(super) fn json(
    session: &mut RollbackSession,
    set: &ChangeSet,
    args: &ShowArgs,
) -> Result<Value, Failure> {
    let mut value = session_json(session.entry())?;
    let id = |id: &SnapshotId| match id {
        SnapshotId::Number(number) => json!(number),
        SnapshotId::Safety(name) => json!(name),
    };
    value["from"] = id(&set.from);
    value["to"] = id(&set.to);
    value["counts"] = json!(set.counts());
    let changes = set.items.iter().map(|item| change(session, set, item, args.diff));
    value["changes"] = Value::Array(changes.collect::<Result<_, Failure>>()?);
    value["coverage"] = json!(session.coverage(&set.from)?);
    let snapshot = |info: &nono::rollback::SnapshotInfo| {
        json!({
            "id": id(&info.id),
            "timestamp": info.timestamp,
            "thinned": info.thinned,
            "durable": info.durable,
        })
    };
    value["snapshots"] = session.snapshots()?.iter().map(snapshot).collect();
    if args.coverage {
        let manifest = session.manager().load_whole(&set.from).map_err(RollbackError::from)?;
        let left_out = manifest.left_out().map_err(SnapshotError::from).map_err(RollbackError::from)?;
        let one = |(at, reason): &(std::path::PathBuf, nono::snapshot::node::Reason)| json!({"path": path(at), "reason": reason.to_string()});
        value["left_out"] = left_out.iter().map(one).collect();
    }
    Ok(value)
}

fn change(session: &RollbackSession, set: &ChangeSet, item: &Item, diff: bool) -> Result<Value, Failure> {
    let mut value = json!(item);
    value["binary"] = json!(session.is_binary(item)?);
    if diff {
        let mut patch = Vec::new();
        session.write_patch(set, &[item], &mut patch)?;
        value["patch"] = json!(JsonText(&patch));
    }
    Ok(value)
}
