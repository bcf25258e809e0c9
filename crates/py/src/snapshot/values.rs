//! The small values: hashes, files, changes.

use nono::snapshot as engine;
use nono::snapshot::ChangeType;
use nono::snapshot::diff::{FileKind, Version};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::names::Names;
use crate::paths::{PathText, to_python};
use crate::plain;

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
#[pyclass(frozen, get_all, module = "nono_py")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileState {
    /// The SHA-256 of its bytes (of files over 1 GiB, over the hashes of their pieces).
    hash: ContentHash,
    /// The size in bytes.
    size: u64,
    /// The time of the last change, in whole seconds since 1970.
    mtime: i64,
    /// The time of the last change, in nanoseconds since 1970.
    mtime_ns: i128,
    /// The permission bits: `mode & 0o7777`.
    permissions: u16,
}

impl From<engine::FileState> for FileState {
    fn from(state: engine::FileState) -> FileState {
        let mtime = state.mtime;
        FileState {
            hash: ContentHash(*state.hash.as_bytes()),
            size: state.size,
            mtime: mtime.seconds,
            mtime_ns: i128::from(mtime.seconds) * 1_000_000_000 + i128::from(mtime.nanos),
            permissions: state.permissions,
        }
    }
}

#[pymethods]
impl FileState {
    /// The values as a plain dict.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        plain::attributes(slf, "hash size mtime mtime_ns permissions")
    }

    fn __repr__(&self) -> String {
        format!("FileState(size={}, permissions={:o})", self.size, self.permissions)
    }
}

/// One path that differs.
#[pyclass(frozen, get_all, module = "nono_py")]
#[derive(Debug)]
#[allow(clippy::struct_field_names, reason = "attributes in Python")]
pub(crate) struct Change {
    /// Below the tracked path, as that was given.
    path: PathText,
    /// "created", "modified", "deleted" or "permissions_changed".
    change_type: &'static str,
    /// The number of bytes a regular file grew by.
    size_delta: i64,
    /// Its kind now, or before it was removed: "file", "symlink", "directory" or "special".
    kind: &'static str,
    /// The hash of a regular file before.
    old_hash: Option<ContentHash>,
    /// The hash of a regular file after.
    new_hash: Option<ContentHash>,
}

impl Change {
    fn new(change: engine::Change, names: &Names) -> Change {
        let hash = |version: &Version| Some(ContentHash(*version.hash?.as_bytes()));
        Change {
            change_type: match change.change_type {
                ChangeType::Created => "created",
                ChangeType::Modified => "modified",
                ChangeType::Deleted => "deleted",
                ChangeType::PermissionsChanged => "permissions_changed",
            },
            size_delta: change.size_delta,
            kind: match change.new.as_ref().or(change.old.as_ref()).map(|version| version.kind) {
                Some(FileKind::File) | None => "file",
                Some(FileKind::Symlink) => "symlink",
                Some(FileKind::Directory) => "directory",
                Some(FileKind::Fifo | FileKind::Socket | FileKind::CharDevice | FileKind::BlockDevice) => {
                    "special"
                }
            },
            old_hash: change.old.as_ref().and_then(hash),
            new_hash: change.new.as_ref().and_then(hash),
            path: PathText(names.given(change.path)),
        }
    }
}

#[pymethods]
impl Change {
    /// The values as a plain dict.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        plain::attributes(slf, "path change_type size_delta kind old_hash new_hash")
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let path = to_python(py, &self.path.0).repr()?;
        Ok(format!("Change(path={}, type={})", path.to_str()?, self.change_type))
    }
}

/// Changes as Python sees them: `nono_py.ChangeList`, which is a list.
pub(crate) fn change_list<'py>(
    py: Python<'py>,
    changes: impl IntoIterator<Item = engine::Change>,
    names: &Names,
) -> PyResult<Bound<'py, PyAny>> {
    let class = py.import("nono_py._snapshots")?.getattr("ChangeList")?;
    let changes: Vec<Change> = changes.into_iter().map(|change| Change::new(change, names)).collect();
    class.call1((PyList::new(py, changes)?,))
}
