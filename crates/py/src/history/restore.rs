//! Plan and result of a restore, of a session or of a project.

use nono::checkpoints::{Completed, ProjectOutcome, ProjectPlan, json as shapes};
use nono::rollback::{Done, Plan, json};
use nono::snapshot::Lost;
use serde_json::{Value, json};

use crate::plain::{Extra, Record};

/// Plan for a session.
pub(crate) fn planned(session: &str, plan: &Plan) -> Record {
    record(json::plan(session, plan), &plan.lost)
}

/// Result for a session.
pub(crate) fn done(session: &str, done: &Done) -> Record {
    record(json::done(session, done), &done.lost)
}

pub(crate) fn project_plan(plan: &ProjectPlan) -> Record {
    let data = shapes::plan(&plan.project, &plan.turns_undone, plan.not_covered, &plan.restore);
    record(data, &plan.restore.lost)
}

pub(crate) fn outcome(outcome: &ProjectOutcome) -> Record {
    let ProjectOutcome { project, checkpoint, turns_undone, done, .. } = outcome;
    record(shapes::outcome(project, Some(checkpoint), turns_undone, done), &done.lost)
}

/// Interrupted restore that a later call completed, or tried to complete.
pub(crate) fn completed(completed: &Completed) -> Record {
    let record = record(shapes::completed(completed), &completed.done.lost);
    record.with("not_covered", Extra::Json(Value::Null))
}

fn record(data: Value, lost: &[Lost]) -> Record {
    let one = |one: &Lost| json!({"path": nono::json::path(&one.path), "text": one.to_string()});
    Record::new("RestoreResult", data).with("lost", Extra::Json(lost.iter().map(one).collect()))
}
