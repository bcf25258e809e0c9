//! Result of a restore, and whether it is complete.

use std::path::PathBuf;
use std::sync::Arc;

use nono::snapshot as engine;
use nono::snapshot::restore::Why;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::names::Names;
use super::values::change_list;
use crate::error::{Raise, SnapshotError};
use crate::paths;

/// Result of a restore. Every restore can be undone: the state before it is in a safety snapshot.
#[pyclass(frozen, module = "nono_py")]
#[derive(Clone, Debug)]
pub(crate) struct RestoreReport {
    done: Arc<Done>,
}

#[derive(Debug)]
struct Done {
    changes: Vec<engine::Change>,
    skipped: Vec<(PathBuf, String)>,
    failed: Vec<(PathBuf, String)>,
    kept: Vec<PathBuf>,
    lost: Vec<(PathBuf, String)>,
    safety: engine::SnapshotId,
    complete: bool,
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
        let complete =
            outcome.failed.is_empty() && outcome.skipped.iter().all(|skipped| is_expected(&skipped.why));
        let given = |path: PathBuf| names.given(path);
        let done = Done {
            complete,
            changes: outcome.changes.to_vec(),
            skipped: outcome.skipped.into_iter().map(|one| (given(one.path), one.why.to_string())).collect(),
            failed: outcome.failed.into_iter().map(|one| (given(one.path), one.error.to_string())).collect(),
            kept: outcome.kept.into_iter().map(|kept| given(kept.path)).collect(),
            lost: outcome.lost.into_iter().map(|lost| (given(lost.path.clone()), lost.to_string())).collect(),
            safety,
            names: Arc::clone(names),
        };
        RestoreReport { done: Arc::new(done) }
    }

    pub(crate) fn changes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        change_list(py, self.done.changes.iter().cloned(), &self.done.names)
    }

    /// Exception for an incomplete restore; `None` if everything is as in the snapshot.
    pub(crate) fn incomplete(&self, py: Python<'_>) -> Option<PyErr> {
        if self.done.complete {
            return None;
        }
        let all: Vec<&(PathBuf, String)> = self.done.failed.iter().chain(&self.done.skipped).collect();
        let (path, why) = all.first()?;
        let more = if all.len() > 1 { format!(" (and {} more)", all.len() - 1) } else { String::new() };
        let message = format!("not everything was restored: {}: {why}{more}", path.display());
        let error = Raise::new("incomplete", message).about(path.clone()).as_a::<SnapshotError>();
        // Exceptions accept any attribute; if not, the message has the essentials.
        let _ = error.value(py).setattr("report", self.clone());
        Some(error)
    }
}

type Pairs<'py> = Vec<(Bound<'py, PyString>, String)>;

fn pairs<'py>(py: Python<'py>, pairs: &[(PathBuf, String)]) -> Pairs<'py> {
    pairs.iter().map(|(path, why)| (paths::to_python(py, path), why.clone())).collect()
}

#[pymethods]
impl RestoreReport {
    /// The changes in the tree, sorted by path.
    #[getter]
    fn applied<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.changes(py)
    }

    /// The paths that were kept, as pairs of path and reason.
    #[getter]
    fn skipped<'py>(&self, py: Python<'py>) -> Pairs<'py> {
        pairs(py, &self.done.skipped)
    }

    /// The paths that could not be restored, or not completely, as pairs of path and reason.
    #[getter]
    fn failed<'py>(&self, py: Python<'py>) -> Pairs<'py> {
        pairs(py, &self.done.failed)
    }

    /// Paths that others wrote during the restore; their contents were stored before they were replaced.
    #[getter]
    fn kept<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyString>> {
        self.done.kept.iter().map(|path| paths::to_python(py, path)).collect()
    }

    /// Paths that the snapshot does not hold and that are gone or changed, as pairs of path and what became of it.
    #[getter]
    fn lost<'py>(&self, py: Python<'py>) -> Pairs<'py> {
        pairs(py, &self.done.lost)
    }

    /// The id of the snapshot that was taken before: `undo_restore` goes back to it.
    #[getter]
    fn safety(&self) -> String {
        self.done.safety.to_string()
    }

    /// Whether everything that the snapshot holds was restored.
    #[getter]
    fn is_complete(&self) -> bool {
        self.done.complete
    }

    /// The values as a plain dict.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("applied", self.changes(py)?.call_method0("to_dict")?)?;
        let Done { skipped, failed, lost, .. } = &*self.done;
        for (name, list) in [("skipped", skipped), ("failed", failed), ("lost", lost)] {
            let list: Vec<_> = pairs(py, list)
                .into_iter()
                .map(|(path, reason)| {
                    let dict = PyDict::new(py);
                    dict.set_item("path", path)?;
                    dict.set_item("reason", reason)?;
                    Ok(dict)
                })
                .collect::<PyResult<_>>()?;
            dict.set_item(name, list)?;
        }
        dict.set_item("kept", self.kept(py))?;
        dict.set_item("safety", self.safety())?;
        dict.set_item("is_complete", self.done.complete)?;
        Ok(dict)
    }

    pub(crate) fn __repr__(&self) -> String {
        let Done { changes, skipped, failed, .. } = &*self.done;
        format!(
            "RestoreReport(applied={}, skipped={}, failed={})",
            changes.len(),
            skipped.len(),
            failed.len()
        )
    }
}
