//! Result of a restore, and whether it is complete.

use std::path::PathBuf;
use std::sync::Arc;

use nono::snapshot as engine;
use nono::snapshot::restore::Why;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyString};

use super::names::Names;
use super::values::change_list;
use crate::error::{Raise, SnapshotError};
use crate::paths::PathText;
use crate::plain;

/// Result of a restore. Every restore can be undone: the state before it is in a safety snapshot.
#[pyclass(frozen, module = "nono_py")]
#[derive(Clone, Debug)]
pub(crate) struct RestoreReport {
    changes: Vec<engine::Change>,
    /// The paths that were kept, as pairs of path and reason.
    #[pyo3(get)]
    skipped: Vec<(PathText, String)>,
    /// The paths that could not be restored, or not completely, as pairs of path and reason.
    #[pyo3(get)]
    failed: Vec<(PathText, String)>,
    /// Paths that others wrote during the restore; their contents were stored before they were replaced.
    #[pyo3(get)]
    kept: Vec<PathText>,
    /// Paths that the snapshot does not hold and that are gone or changed, as pairs of path and what became of it.
    #[pyo3(get)]
    lost: Vec<(PathText, String)>,
    /// The id of the snapshot that was taken before: `undo_restore` goes back to it.
    #[pyo3(get)]
    safety: String,
    /// Whether everything that the snapshot holds was restored.
    #[pyo3(get)]
    is_complete: bool,
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
        let given = |path: PathBuf| PathText(names.given(path));
        RestoreReport {
            changes: outcome.changes.to_vec(),
            skipped: outcome.skipped.into_iter().map(|one| (given(one.path), one.why.to_string())).collect(),
            failed: outcome.failed.into_iter().map(|one| (given(one.path), one.error.to_string())).collect(),
            kept: outcome.kept.into_iter().map(|kept| given(kept.path)).collect(),
            lost: outcome.lost.into_iter().map(|lost| (given(lost.path.clone()), lost.to_string())).collect(),
            safety: safety.to_string(),
            is_complete,
            names: Arc::clone(names),
        }
    }

    pub(crate) fn changes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        change_list(py, self.changes.iter().cloned(), &self.names)
    }

    /// Exception for an incomplete restore; `None` if everything is as in the snapshot.
    pub(crate) fn incomplete(&self, py: Python<'_>) -> Option<PyErr> {
        if self.is_complete {
            return None;
        }
        let all: Vec<_> = self.failed.iter().chain(&self.skipped).collect();
        let (PathText(path), why) = all.first()?;
        let more = if all.len() > 1 { format!(" (and {} more)", all.len() - 1) } else { String::new() };
        let message = format!("not everything was restored: {}: {why}{more}", path.display());
        let error = Raise::new("incomplete", message).about(path.clone()).as_a::<SnapshotError>();
        // Exceptions accept any attribute; if not, the message has the essentials.
        let _ = error.value(py).setattr("report", self.clone());
        Some(error)
    }
}

#[pymethods]
impl RestoreReport {
    /// The changes in the tree, sorted by path.
    #[getter]
    fn applied<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.changes(py)
    }

    /// The values as a plain dict.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, this) = (slf.py(), slf.get());
        let dict = plain::attributes(slf, "applied kept safety is_complete")?;
        for (name, list) in [("skipped", &this.skipped), ("failed", &this.failed), ("lost", &this.lost)] {
            let one = |(path, reason): &(PathText, String)| {
                [("path", path.into_pyobject(py)?), ("reason", PyString::new(py, reason))].into_py_dict(py)
            };
            dict.set_item(name, list.iter().map(one).collect::<PyResult<Vec<_>>>()?)?;
        }
        Ok(dict)
    }

    pub(crate) fn __repr__(&self) -> String {
        let (applied, skipped, failed) = (self.changes.len(), self.skipped.len(), self.failed.len());
        format!("RestoreReport(applied={applied}, skipped={skipped}, failed={failed})")
    }
}
