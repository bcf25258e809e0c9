//! Changes, of sessions and of checkpoints.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use nono::checkpoints::{Difference, Differences, json as shapes};
use nono::rollback::{ChangeSet, Item, ItemKind, json::snapshot_id};
use nono::snapshot::Change;
use pyo3::exceptions::{PyAttributeError, PyIndexError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyList, PyString};
use serde_json::{Value, json};

use crate::checkpoint::text;
use crate::checkpoint::values::Checkpoint;
use crate::paths::{self, PathText};
use crate::{plain, render};

/// One path that differs.
#[pyclass(frozen, module = "nono_py")]
#[derive(Clone, Debug)]
pub(crate) struct HistoryChange {
    /// The absolute path where it is, or was if it is gone.
    #[pyo3(get)]
    path: PathText,
    /// "created", "modified", "deleted", "permissions_changed" or, in a list of differences, "renamed".
    #[pyo3(get)]
    change_type: &'static str,
    /// Bytes of regular files: new less old.
    #[pyo3(get)]
    size_delta: i64,
    /// The previous path, if it was renamed.
    #[pyo3(get)]
    renamed_from: Option<PathText>,
    /// Whether its content is no text; None outside of a checkpoint's diff.
    #[pyo3(get)]
    binary: Option<bool>,
    /// Number of lines added; None if lines are not counted.
    #[pyo3(get)]
    insertions: Option<usize>,
    /// Number of lines removed; None if lines are not counted.
    #[pyo3(get)]
    deletions: Option<usize>,
    patch: Option<Vec<u8>>,
    shape: Value,
}

impl HistoryChange {
    fn new(item: &Item, shape: Value) -> HistoryChange {
        let (change_type, from) = match &item.kind {
            ItemKind::Created => ("created", None),
            ItemKind::Modified => ("modified", None),
            ItemKind::Deleted => ("deleted", None),
            ItemKind::PermissionsChanged => ("permissions_changed", None),
            ItemKind::Renamed { from } => ("renamed", Some(PathText(from.clone()))),
        };
        HistoryChange {
            path: PathText(item.path.clone()),
            change_type,
            size_delta: item.size_delta,
            renamed_from: from,
            binary: None,
            insertions: None,
            deletions: None,
            patch: None,
            shape,
        }
    }

    /// Cells `change` and `path` of a table.
    pub(super) fn cells(&self) -> [String; 2] {
        let path = self.path.0.to_string_lossy();
        let path = match &self.renamed_from {
            Some(PathText(from)) => format!("{} → {path}", from.to_string_lossy()),
            None => path.into_owned(),
        };
        [self.change_type.to_owned(), path]
    }

    fn row(&self) -> Vec<String> {
        let lines = self.insertions.zip(self.deletions);
        let lines = lines.map_or_else(String::new, |(came, went)| format!("+{came} -{went}"));
        let later = if self.shape["executes_later"].is_null() { "" } else { "yes" };
        let rest = [lines, format!("{:+}", self.size_delta), later.to_owned()];
        self.cells().into_iter().chain(rest).collect()
    }
}

/// Change of a plan or a result.
impl From<Change> for HistoryChange {
    fn from(change: Change) -> HistoryChange {
        let shape = json!(change);
        HistoryChange::new(&Item::from(change), shape)
    }
}

impl From<&Item> for HistoryChange {
    fn from(item: &Item) -> HistoryChange {
        HistoryChange::new(item, json!(item))
    }
}

impl From<&Difference> for HistoryChange {
    fn from(one: &Difference) -> HistoryChange {
        HistoryChange {
            binary: Some(one.binary),
            insertions: one.lines.map(|(came, _)| came),
            deletions: one.lines.map(|(_, went)| went),
            patch: Some(one.patch.clone()),
            ..HistoryChange::new(&one.item, shapes::difference(one))
        }
    }
}

#[pymethods]
impl HistoryChange {
    /// Reason why this will run outside the sandbox later, without a request of the user: a git hook, a shell's start
    /// file, a build script. None if it will not, and outside of a list of differences.
    #[getter]
    fn executes_later<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::plain(py, &self.shape["executes_later"])
    }

    /// The change as a patch; None outside of a checkpoint's diff. Bytes that are not UTF-8 are surrogates.
    #[getter]
    fn patch<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        self.patch.as_deref().map(|patch| as_text(py, patch))
    }

    /// All values as a plain dict, as in `--json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::plain(py, &self.shape)
    }

    fn __repr__(&self) -> String {
        let path = text(&self.path.0.to_string_lossy());
        format!("HistoryChange(path={path}, change_type={})", text(self.change_type))
    }
}

/// Differences between two states: a sequence of `HistoryChange`, what will run later first.
#[pyclass(frozen, sequence, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct HistoryChanges {
    /// The checkpoint it was compared with; None for a session.
    #[pyo3(get)]
    checkpoint: Option<Checkpoint>,
    /// One for each path, as a list.
    #[pyo3(get)]
    changes: Vec<HistoryChange>,
    patch: Option<Vec<u8>>,
    shape: Value,
}

impl From<&ChangeSet> for HistoryChanges {
    fn from(set: &ChangeSet) -> HistoryChanges {
        HistoryChanges {
            checkpoint: None,
            changes: set.items.iter().map(HistoryChange::from).collect(),
            patch: None,
            shape: json!({
                "from": snapshot_id(&set.from),
                "to": snapshot_id(&set.to),
                "counts": set.counts(),
                "changes": set.items,
            }),
        }
    }
}

impl HistoryChanges {
    /// Changes since a checkpoint.
    pub(crate) fn since(since: nono::checkpoints::Checkpoint, found: &Differences) -> HistoryChanges {
        HistoryChanges {
            shape: shapes::diff(&since, found),
            checkpoint: Some(since.into()),
            changes: found.all.iter().map(HistoryChange::from).collect(),
            patch: Some(found.patch()),
        }
    }

    pub(crate) fn html(&self) -> String {
        let head = ["change", "path", "lines", "bytes", "runs later"];
        render::table(&head, self.changes.iter().map(HistoryChange::row))
    }

    fn whole_patch(&self) -> PyResult<&[u8]> {
        self.patch.as_deref().ok_or_else(|| {
            PyAttributeError::new_err("changes of a session have no patch: diff() of the session returns it")
        })
    }
}

#[pymethods]
impl HistoryChanges {
    pub(crate) fn __len__(&self) -> usize {
        self.changes.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<HistoryChange> {
        let at = if index < 0 {
            self.changes.len().checked_add_signed(index)
        } else {
            usize::try_from(index).ok()
        };
        let change = at.and_then(|at| self.changes.get(at));
        change.cloned().ok_or_else(|| PyIndexError::new_err("index out of range"))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.changes.clone())?.try_iter()
    }

    /// The number of changes of each kind.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::plain(py, &self.shape["counts"])
    }

    /// The changes since a checkpoint as one patch for `git apply` and `patch -p1`. Bytes that are not UTF-8 are
    /// surrogates. Changes of a session have none: its `diff()` returns it.
    #[getter]
    fn patch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        Ok(as_text(py, self.whole_patch()?))
    }

    /// The patch as bytes.
    #[getter]
    fn patch_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.whole_patch()?))
    }

    /// All values as a plain dict, as in `--json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::plain(py, &self.shape)
    }

    fn __repr__(&self) -> String {
        let counts = &self.shape["counts"];
        format!("HistoryChanges(+{} ~{} -{})", counts["created"], counts["modified"], counts["deleted"])
    }

    fn _repr_html_(&self) -> String {
        self.html()
    }
}

fn as_text<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyString> {
    paths::os_str(py, OsStr::from_bytes(bytes))
}
