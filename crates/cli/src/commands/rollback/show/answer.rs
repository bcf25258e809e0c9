//! JSON output of `nono rollback show`. Field names are stable.

use nono::json::path;
use nono::rollback::json::{change, session as session_json, snapshot, snapshot_id as id};
use nono::rollback::{ChangeSet, RollbackError, RollbackSession};
use nono::snapshot::SnapshotError;
use serde_json::{Value, json};

use crate::args::LookArgs;
use crate::failure::Failure;

/// Fields of the session, with every change in `changes` and their numbers in `counts`.
pub(super) fn json(
    session: &mut RollbackSession,
    set: &ChangeSet,
    args: &LookArgs,
) -> Result<Value, Failure> {
    let mut value = session_json(session.entry())?;
    value["from"] = id(&set.from);
    value["to"] = id(&set.to);
    value["counts"] = json!(set.counts());
    let changes = set.items.iter().map(|item| change(session, set, item, args.diff));
    value["changes"] = Value::Array(changes.collect::<Result<_, RollbackError>>()?);
    value["coverage"] = json!(session.coverage(&set.from)?);
    value["snapshots"] = session.snapshots()?.iter().map(snapshot).collect();
    if args.coverage {
        let manifest = session.manager().load_whole(&set.from).map_err(RollbackError::from)?;
        let left_out = manifest.left_out().map_err(SnapshotError::from).map_err(RollbackError::from)?;
        let one = |(at, reason): &(std::path::PathBuf, nono::snapshot::node::Reason)| json!({"path": path(at), "reason": reason.to_string()});
        value["left_out"] = left_out.iter().map(one).collect();
    }
    Ok(value)
}
