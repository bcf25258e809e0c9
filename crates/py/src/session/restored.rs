//! Result of a restore of a session.

use nono::rollback::{Done, Plan, json};
use pyo3::prelude::*;
use serde_json::Value;

use super::plain;
use crate::render;

#[derive(Debug)]
pub(super) enum RestoreResult {
    Plan(Plan),
    Done(Done),
}

/// Result or plan of a restore.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct RollbackReport {
    pub(super) session: String,
    pub(super) outcome: RestoreResult,
}

impl RollbackReport {
    fn value(&self) -> Value {
        match &self.outcome {
            RestoreResult::Plan(plan) => json::plan(&self.session, plan),
            RestoreResult::Done(done) => json::done(&self.session, done),
        }
    }

    fn field<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        plain::plain(py, self.value().get(name).unwrap_or(&Value::Array(Vec::new())))
    }
}

#[pymethods]
impl RollbackReport {
    /// Whether this is only a plan, and nothing was done.
    #[getter]
    fn dry_run(&self) -> bool {
        matches!(self.outcome, RestoreResult::Plan(_))
    }

    /// Whether everything requested was restored: nothing kept, nothing lost, nothing failed, not interrupted.
    #[getter]
    fn ok(&self) -> bool {
        match &self.outcome {
            RestoreResult::Plan(plan) => plan.kept.is_empty() && plan.lost.is_empty(),
            RestoreResult::Done(done) => done.is_whole(),
        }
    }

    /// The id by which this restore can be undone; None where nothing was changed.
    #[getter]
    fn undo_id(&self) -> Option<&str> {
        match &self.outcome {
            RestoreResult::Plan(_) => None,
            RestoreResult::Done(done) => done.undo.as_deref(),
        }
    }

    /// The changes, each with `path`, `change_type` and `size_delta`.
    #[getter]
    fn changes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "changes")
    }

    /// The paths that were kept, each with the reason.
    #[getter]
    fn kept<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "kept")
    }

    /// Paths that the snapshot does not hold and that are gone or changed, each with `how` and the reason.
    #[getter]
    fn lost<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "lost")
    }

    /// The paths that could not be restored, each with the error.
    #[getter]
    fn failed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "failed")
    }

    /// Whether it was cut off; `recover` completes it.
    #[getter]
    fn interrupted(&self) -> bool {
        matches!(&self.outcome, RestoreResult::Done(done) if done.interrupted)
    }

    /// The data of `nono rollback restore --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::plain(py, &self.value())
    }

    fn __repr__(&self) -> String {
        let (changes, kept) = match &self.outcome {
            RestoreResult::Plan(plan) => (plan.changes.len(), plan.kept.len()),
            RestoreResult::Done(done) => (done.changes.len(), done.kept.len()),
        };
        let dry = if self.dry_run() { ", dry_run=True" } else { "" };
        format!("RollbackReport(changes={changes}, kept={kept}{dry})")
    }

    fn _repr_html_(&self) -> String {
        let value = self.value();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let list = |name: &str| value[name].as_array().cloned().unwrap_or_default();
        let row =
            |one: &Value, what: &str, why: &str| vec![text(&one["path"]), what.to_owned(), why.to_owned()];
        let mut rows: Vec<_> =
            list("changes").iter().map(|one| row(one, &text(&one["change_type"]), "")).collect();
        rows.extend(list("kept").iter().map(|one| row(one, "kept", &text(&one["reason"]))));
        rows.extend(list("lost").iter().map(|one| row(one, &text(&one["how"]), &text(&one["reason"]))));
        rows.extend(list("failed").iter().map(|one| row(one, "failed", &text(&one["error"]))));
        render::table(&["path", "outcome", "why"], rows)
    }
}
