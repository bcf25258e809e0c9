//! Differences from a checkpoint.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use nono::checkpoints::{Difference, Differences, json as shapes};
use nono::rollback::ItemKind;
use nono::snapshot::{Change, ChangeType};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyList, PyString};
use serde_json::{Value, json};

use super::json::to_python;
use super::text;
use super::values::{Checkpoint, PathText};
use crate::{paths, render};

/// One path that differs.
#[pyclass(frozen, module = "nono_py")]
#[derive(Clone, Debug)]
pub(super) struct CheckpointChange {
    pub(super) path: PathText,
    change_type: &'static str,
    size_delta: i64,
    renamed_from: Option<PathText>,
    binary: Option<bool>,
    lines: Option<(usize, usize)>,
    patch: Option<Vec<u8>>,
    pub(super) shape: Value,
}

impl CheckpointChange {
    /// Change of a plan or a result.
    pub(super) fn of(change: &Change) -> CheckpointChange {
        CheckpointChange {
            path: PathText(change.path.clone()),
            change_type: match change.change_type {
                ChangeType::Created => "created",
                ChangeType::Modified => "modified",
                ChangeType::Deleted => "deleted",
                ChangeType::PermissionsChanged => "permissions_changed",
            },
            size_delta: change.size_delta,
            renamed_from: None,
            binary: None,
            lines: None,
            patch: None,
            shape: json!(change),
        }
    }

    fn since(one: &Difference) -> CheckpointChange {
        let (change_type, from) = match &one.item.kind {
            ItemKind::Created => ("created", None),
            ItemKind::Modified => ("modified", None),
            ItemKind::Deleted => ("deleted", None),
            ItemKind::PermissionsChanged => ("permissions_changed", None),
            ItemKind::Renamed { from } => ("renamed", Some(from.clone())),
        };
        CheckpointChange {
            path: PathText(one.item.path.clone()),
            change_type,
            size_delta: one.item.size_delta,
            renamed_from: from.map(PathText),
            binary: Some(one.binary),
            lines: one.lines,
            patch: Some(one.patch.clone()),
            shape: shapes::difference(one),
        }
    }

    /// One row of a table.
    fn row(&self) -> Vec<String> {
        let lines = self.lines.map_or_else(String::new, |(came, went)| format!("+{came} -{went}"));
        let path = self.path.0.to_string_lossy().into_owned();
        let path = match &self.renamed_from {
            Some(PathText(from)) => format!("{} → {path}", from.to_string_lossy()),
            None => path,
        };
        vec![self.change_type.to_owned(), path, lines, format!("{:+}", self.size_delta)]
    }
}

#[pymethods]
impl CheckpointChange {
    /// The absolute path where it is, or was if it is gone.
    #[getter]
    fn path(&self) -> PathText {
        self.path.clone()
    }

    /// "created", "modified", "deleted", "permissions_changed" or, in a diff, "renamed".
    #[getter]
    fn change_type(&self) -> &'static str {
        self.change_type
    }

    /// Bytes of regular files: new less old.
    #[getter]
    fn size_delta(&self) -> i64 {
        self.size_delta
    }

    /// The path that had the same content before.
    #[getter]
    fn renamed_from(&self) -> Option<PathText> {
        self.renamed_from.clone()
    }

    /// Reason why it will be executed later without a request of the user, if so: a git hook, a build script.
    #[getter]
    fn executes_later<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.shape["executes_later"])
    }

    /// Whether its content is no text; None outside of a diff.
    #[getter]
    fn binary(&self) -> Option<bool> {
        self.binary
    }

    /// Number of lines added; None if lines are not counted.
    #[getter]
    fn insertions(&self) -> Option<usize> {
        self.lines.map(|(came, _)| came)
    }

    /// Number of lines removed; None if lines are not counted.
    #[getter]
    fn deletions(&self) -> Option<usize> {
        self.lines.map(|(_, went)| went)
    }

    /// The change as a patch; None outside of a diff. Bytes that are no UTF-8 are surrogates.
    #[getter]
    fn patch<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        self.patch.as_deref().map(|patch| as_text(py, patch))
    }

    /// The data of `nono checkpoints diff --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.shape)
    }

    fn __repr__(&self) -> String {
        let path = text(&self.path.0.to_string_lossy());
        format!("CheckpointChange(path={path}, change_type={})", text(self.change_type))
    }
}

/// Changes since a checkpoint: iterable, with the number of paths as its length.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(super) struct CheckpointDiff {
    checkpoint: Checkpoint,
    changes: Vec<CheckpointChange>,
    patch: Vec<u8>,
    shape: Value,
}

impl CheckpointDiff {
    pub(super) fn new(since: nono::checkpoints::Checkpoint, found: &Differences) -> CheckpointDiff {
        CheckpointDiff {
            shape: shapes::diff(&since, found),
            checkpoint: since.into(),
            changes: found.all.iter().map(CheckpointChange::since).collect(),
            patch: found.patch(),
        }
    }
}

#[pymethods]
impl CheckpointDiff {
    /// The checkpoint it was compared with.
    #[getter]
    fn checkpoint(&self) -> Checkpoint {
        self.checkpoint.clone()
    }

    /// One for each path; what will execute later comes first.
    #[getter]
    fn changes(&self) -> Vec<CheckpointChange> {
        self.changes.clone()
    }

    /// The number of paths of each `change_type`.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.shape["counts"])
    }

    /// The whole diff as one patch for `git apply` and `patch -p1`. Bytes that are not UTF-8 are surrogates.
    #[getter]
    fn patch<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        as_text(py, &self.patch)
    }

    /// The patch as bytes.
    #[getter]
    fn patch_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.patch)
    }

    /// The data of `nono checkpoints diff --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.shape)
    }

    fn __len__(&self) -> usize {
        self.changes.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.changes.clone())?.try_iter()
    }

    fn __repr__(&self) -> String {
        format!(
            "CheckpointDiff(checkpoint={}, changes={})",
            text(self.checkpoint.value.id.as_str()),
            self.changes.len()
        )
    }

    fn _repr_html_(&self) -> String {
        table(&self.changes)
    }
}

/// Column heads of tables of changes.
const HEAD: [&str; 4] = ["change", "path", "lines", "bytes"];

pub(super) fn table(changes: &[CheckpointChange]) -> String {
    render::table(&HEAD, changes.iter().map(CheckpointChange::row))
}

fn as_text<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyString> {
    paths::os_str(py, OsStr::from_bytes(bytes))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CheckpointChange>()?;
    module.add_class::<CheckpointDiff>()
}
