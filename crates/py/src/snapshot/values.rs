//! The small values: hashes, files, changes.

use std::path::PathBuf;

use nono::snapshot as engine;
use nono::snapshot::ChangeType;
use nono::snapshot::diff::FileKind;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::names::Names;
use crate::{paths, plain};

/// A SHA-256: of a file's content, or of a whole snapshot.
#[pyclass(frozen, eq, module = "nono_py")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContentHash(pub(crate) [u8; 32]);

impl ContentHash {
    fn text(self) -> String {
        engine::ContentHash::from_bytes(self.0).hex()
    }
}

#[pymethods]
impl ContentHash {
    /// 64 hexadecimal digits, in lower case.
    fn hex(&self) -> String {
        self.text()
    }

    /// The values as a plain dict.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("hex", self.text())?;
        Ok(dict)
    }

    fn __str__(&self) -> String {
        self.text()
    }

    fn __repr__(&self) -> String {
        format!("ContentHash({}...)", self.text().get(..16).unwrap_or_default())
    }

    fn __hash__(&self) -> i64 {
        self.0.first_chunk().map_or(0, |first| i64::from_le_bytes(*first))
    }
}

/// A regular file in a snapshot.
#[pyclass(frozen, module = "nono_py")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileState {
    /// The SHA-256 of its bytes (of files over 1 GiB, over the hashes of their pieces).
    #[pyo3(get)]
    hash: ContentHash,
    /// The size in bytes.
    #[pyo3(get)]
    size: u64,
    /// The time of the last change, in whole seconds since 1970.
    #[pyo3(get)]
    mtime: i64,
    nanos: u32,
    /// The permission bits: `mode & 0o7777`.
    #[pyo3(get)]
    permissions: u16,
}

impl From<engine::FileState> for FileState {
    fn from(state: engine::FileState) -> FileState {
        FileState {
            hash: ContentHash(*state.hash.as_bytes()),
            size: state.size,
            mtime: state.mtime.seconds,
            nanos: state.mtime.nanos,
            permissions: state.permissions,
        }
    }
}

#[pymethods]
impl FileState {
    /// The time of the last change, in nanoseconds since 1970.
    #[getter]
    fn mtime_ns(&self) -> i128 {
        i128::from(self.mtime) * 1_000_000_000 + i128::from(self.nanos)
    }

    /// The values as a plain dict.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        plain::attributes(slf, "hash size mtime mtime_ns permissions")
    }

    fn __repr__(&self) -> String {
        format!("FileState(size={}, permissions={:o})", self.size, self.permissions)
    }
}

/// One path that differs.
#[pyclass(frozen, module = "nono_py")]
#[derive(Clone, Debug)]
pub(crate) struct Change {
    path: PathBuf,
    change: engine::Change,
}

impl Change {
    pub(crate) fn new(change: engine::Change, names: &Names) -> Change {
        Change { path: names.given(change.path.clone()), change }
    }

    fn type_word(&self) -> &'static str {
        match self.change.change_type {
            ChangeType::Created => "created",
            ChangeType::Modified => "modified",
            ChangeType::Deleted => "deleted",
            ChangeType::PermissionsChanged => "permissions_changed",
        }
    }
}

fn hash_of(version: Option<&engine::diff::Version>) -> Option<ContentHash> {
    Some(ContentHash(*version?.hash?.as_bytes()))
}

#[pymethods]
impl Change {
    /// Below the tracked path, as that was given.
    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        paths::to_python(py, &self.path)
    }

    /// "created", "modified", "deleted" or "permissions_changed".
    #[getter]
    fn change_type(&self) -> &'static str {
        self.type_word()
    }

    /// The number of bytes a regular file grew by.
    #[getter]
    fn size_delta(&self) -> i64 {
        self.change.size_delta
    }

    /// Its kind now, or before it was removed: "file", "symlink", "directory" or "special".
    #[getter]
    fn kind(&self) -> &'static str {
        match self.change.new.as_ref().or(self.change.old.as_ref()).map(|version| version.kind) {
            Some(FileKind::File) | None => "file",
            Some(FileKind::Symlink) => "symlink",
            Some(FileKind::Directory) => "directory",
            Some(FileKind::Fifo | FileKind::Socket | FileKind::CharDevice | FileKind::BlockDevice) => {
                "special"
            }
        }
    }

    /// The hash of a regular file before.
    #[getter]
    fn old_hash(&self) -> Option<ContentHash> {
        hash_of(self.change.old.as_ref())
    }

    /// The hash of a regular file after.
    #[getter]
    fn new_hash(&self) -> Option<ContentHash> {
        hash_of(self.change.new.as_ref())
    }

    /// The values as a plain dict.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        plain::attributes(slf, "path change_type size_delta kind old_hash new_hash")
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Change(path={}, type={})", self.path(py).repr()?.to_str()?, self.type_word()))
    }
}

/// Changes as Python sees them: `nono_py.ChangeList`, which is a list.
pub(crate) fn change_list<'py>(
    py: Python<'py>,
    changes: impl IntoIterator<Item = engine::Change>,
    names: &Names,
) -> PyResult<Bound<'py, PyAny>> {
    let class = py.import("nono_py._changes")?.getattr("ChangeList")?;
    let changes: Vec<Change> = changes.into_iter().map(|change| Change::new(change, names)).collect();
    class.call1((PyList::new(py, changes)?,))
}
