//! Changes of a session.

use nono::rollback::{ChangeSet, Item, ItemKind};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyString};

use super::plain;
use crate::{paths, render};

/// One difference between two snapshots of a session.
#[pyclass(frozen, module = "nono_py")]
#[derive(Clone, Debug)]
pub(crate) struct SessionChange {
    item: Item,
}

fn kind(item: &Item) -> &'static str {
    match item.kind {
        ItemKind::Created => "created",
        ItemKind::Modified => "modified",
        ItemKind::Deleted => "deleted",
        ItemKind::PermissionsChanged => "permissions_changed",
        ItemKind::Renamed { .. } => "renamed",
    }
}

#[pymethods]
impl SessionChange {
    /// The absolute path where it is, or was if it is gone.
    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        paths::to_python(py, &self.item.path)
    }

    /// "created", "modified", "deleted", "permissions_changed" or "renamed".
    #[getter]
    fn change_type(&self) -> &'static str {
        kind(&self.item)
    }

    /// The previous path, if it was renamed.
    #[getter]
    fn renamed_from<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        match &self.item.kind {
            ItemKind::Renamed { from } => Some(paths::to_python(py, from)),
            _ => None,
        }
    }

    /// The number of bytes it grew by.
    #[getter]
    fn size_delta(&self) -> i64 {
        self.item.size_delta
    }

    /// Reason why this will run outside the sandbox later (a git hook, a shell's start file), if it will.
    #[getter]
    fn executes_later<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::value(py, &self.item.executes_later)
    }

    /// All values as a plain dict, as in `--json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::value(py, &self.item)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("SessionChange({} {})", kind(&self.item), self.path(py).repr()?))
    }
}

/// The differences between two snapshots of a session: a sequence of `SessionChange`, what will run later first.
#[pyclass(frozen, sequence, module = "nono_py")]
#[derive(Clone, Debug)]
pub(crate) struct SessionChanges {
    pub(super) set: ChangeSet,
}

impl SessionChanges {
    fn all(&self) -> impl Iterator<Item = SessionChange> {
        self.set.items.iter().map(|item| SessionChange { item: item.clone() })
    }
}

#[pymethods]
impl SessionChanges {
    fn __len__(&self) -> usize {
        self.set.items.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<SessionChange> {
        let at = if index < 0 {
            self.set.items.len().checked_add_signed(index)
        } else {
            usize::try_from(index).ok()
        };
        let item = at.and_then(|at| self.set.items.get(at));
        let item = item.ok_or_else(|| PyIndexError::new_err("index out of range"))?;
        Ok(SessionChange { item: item.clone() })
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.all())?.try_iter()
    }

    /// The number of changes of each kind.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::value(py, &self.set.counts())
    }

    /// All values as a plain dict, as in `--json`.
    pub(super) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("from", plain::plain(py, &nono::rollback::json::snapshot_id(&self.set.from))?)?;
        dict.set_item("to", plain::plain(py, &nono::rollback::json::snapshot_id(&self.set.to))?)?;
        dict.set_item("counts", self.counts(py)?)?;
        dict.set_item("changes", plain::value(py, &self.set.items)?)?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        let counts = self.set.counts();
        format!("SessionChanges(+{} ~{} -{})", counts.created, counts.modified, counts.deleted)
    }

    fn _repr_html_(&self) -> String {
        self.html()
    }
}

impl SessionChanges {
    pub(super) fn html(&self) -> String {
        let row = |item: &Item| {
            let from = match &item.kind {
                ItemKind::Renamed { from } => format!(" (from {})", from.display()),
                _ => String::new(),
            };
            let later = if item.executes_later.is_some() { "yes" } else { "" };
            let path = format!("{}{from}", item.path.display());
            vec![path, kind(item).to_owned(), format!("{:+}", item.size_delta), later.to_owned()]
        };
        render::table(&["path", "change", "bytes", "runs later"], self.set.items.iter().map(row))
    }
}
