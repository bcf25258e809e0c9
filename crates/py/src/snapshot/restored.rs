//! Result of a restore, and whether it is complete.

use std::path::PathBuf;
use std::sync::Arc;

use nono::json::path as path_shape;
use nono::snapshot as engine;
use nono::snapshot::restore::Why;
use pyo3::prelude::*;
use serde_json::{Value, json};

use super::names::Names;
use super::values::change_list;
use crate::error::{Raise, SnapshotError};
use crate::plain::{Extra, Record};

/// Result of a restore. Every restore can be undone: the state before it is in a safety snapshot.
#[derive(Clone, Debug)]
pub(crate) struct RestoreReport {
    changes: Vec<engine::Change>,
    data: Value,
    is_complete: bool,
    /// What could not be restored, then what was kept, with the reason.
    left: Vec<(PathBuf, String)>,
    names: Arc<Names>,
}

/// Whether a skipped path follows from the rules of the snapshot and is not a failure: a tracked path that was not
/// captured, or a folder that has to stay because of an excluded path in it.
fn is_expected(why: &Why) -> bool {
    matches!(why, Why::RootFailed(_) | Why::RootUnknown | Why::HoldsOthers)
}

impl RestoreReport {
    pub(crate) fn new(restored: engine::Restored, names: &Arc<Names>) -> RestoreReport {
        let engine::Restored { outcome, safety } = restored;
        let is_complete =
            outcome.failed.is_empty() && outcome.skipped.iter().all(|skipped| is_expected(&skipped.why));
        let reasons = |all: &[(PathBuf, String)]| -> Value {
            all.iter().map(|(path, reason)| json!({"path": path_shape(path), "reason": reason})).collect()
        };
        let given = |path: PathBuf, reason: &dyn ToString| (names.given(path), reason.to_string());
        let skipped: Vec<_> = outcome.skipped.into_iter().map(|one| given(one.path, &one.why)).collect();
        let failed: Vec<_> = outcome.failed.into_iter().map(|one| given(one.path, &one.error)).collect();
        let lost: Vec<_> = outcome.lost.into_iter().map(|one| given(one.path.clone(), &one)).collect();
        let kept = outcome.kept.into_iter().map(|kept| path_shape(&names.given(kept.path)));
        RestoreReport {
            data: json!({
                "kept": kept.collect::<Vec<_>>(),
                "safety": safety.to_string(),
                "is_complete": is_complete,
                "skipped": reasons(&skipped),
                "failed": reasons(&failed),
                "lost": reasons(&lost),
            }),
            changes: outcome.changes.to_vec(),
            is_complete,
            left: failed.into_iter().chain(skipped).collect(),
            names: Arc::clone(names),
        }
    }

    pub(crate) fn record(&self, py: Python<'_>) -> PyResult<Record> {
        let applied = Extra::Object(self.changes(py)?.unbind());
        Ok(Record::new("RestoreReport", self.data.clone()).with("applied", applied))
    }

    pub(crate) fn changes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        change_list(py, self.changes.iter().cloned(), &self.names)
    }

    /// Exception for an incomplete restore; `None` if everything is as in the snapshot.
    pub(crate) fn incomplete(&self, py: Python<'_>) -> PyResult<Option<PyErr>> {
        let Some((path, why)) = self.left.first().filter(|_| !self.is_complete) else { return Ok(None) };
        let more =
            if self.left.len() > 1 { format!(" (and {} more)", self.left.len() - 1) } else { String::new() };
        let message = format!("not everything was restored: {}: {why}{more}", path.display());
        let error = Raise::new("incomplete", message).about(path).as_a::<SnapshotError>();
        // Exceptions accept any attribute; if not, the message has the essentials.
        let _ = error.value(py).setattr("report", self.record(py)?);
        Ok(Some(error))
    }
}
