//! `SnapshotManifest`: one snapshot. Its lists are read from the store when they are asked for.

use std::ops::Range;
use std::sync::Arc;

use nono::snapshot as engine;
use nono::snapshot::Protection;
use nono::snapshot::diff::FileKind;
use nono::snapshot::node::{Entry, Kind};
use nono::snapshot::paths::{bytes, from_bytes};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::coverage;
use super::error::raise_object;
use super::names::Names;
use super::values::{ContentHash, FileState};
use crate::blocking::{TaskProgress, long};
use crate::error::cancelled;
use crate::paths::{self, PathArg};
use crate::plain::{self, Record};

/// One snapshot.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct SnapshotManifest {
    manifest: Arc<engine::Manifest>,
    names: Arc<Names>,
    /// The number in the session; 0 is the baseline. (Safety snapshots have an `id` only.)
    #[pyo3(get)]
    number: u32,
    /// Names it within its session.
    #[pyo3(get)]
    id: String,
    /// The time it was taken: ISO 8601, UTC.
    #[pyo3(get)]
    timestamp: String,
    /// The number of the snapshot before it.
    #[pyo3(get)]
    parent: Option<u32>,
    /// Commits to names, kinds, permission bits, contents and link targets.
    #[pyo3(get)]
    merkle_root: ContentHash,
    /// Commits to everything that a restore puts back, to the rules and to the coverage.
    #[pyo3(get)]
    state_root: ContentHash,
    /// Whether it was known to survive a loss of power when this manifest was made or loaded.
    #[pyo3(get)]
    durable: bool,
}

impl SnapshotManifest {
    pub(crate) fn new(manifest: engine::Manifest, names: &Arc<Names>) -> SnapshotManifest {
        SnapshotManifest {
            number: manifest.number,
            id: manifest.id.to_string(),
            timestamp: manifest.timestamp.clone(),
            parent: manifest.parent,
            merkle_root: ContentHash(*manifest.merkle_root.as_bytes()),
            state_root: ContentHash(*manifest.state_root.as_bytes()),
            durable: manifest.durable,
            manifest: Arc::new(manifest),
            names: Arc::clone(names),
        }
    }

    /// Paths of selected entries with a value for each, read without the interpreter.
    fn list<T: Send>(
        &self,
        py: Python<'_>,
        mut pick: impl FnMut(&Entry) -> Option<T> + Send,
    ) -> PyResult<Listed<T>> {
        long(py, (), |live: &TaskProgress| {
            let mut listed = Listed { text: Vec::new(), entries: Vec::new() };
            let state = self.names.state(&self.manifest.state);
            let read = self.manifest.each_entry_of(&state, |path, entry| {
                if let Some(picked) = pick(entry) {
                    listed.push(bytes(path), picked);
                }
            });
            read.map_err(raise_object)?;
            if live.is_cancelled() { Err(cancelled()) } else { Ok(listed) }
        })
    }
}

/// Paths in one contiguous buffer.
struct Listed<T> {
    text: Vec<u8>,
    entries: Vec<(Range<usize>, T)>,
}

impl<T> Listed<T> {
    fn push(&mut self, path: &[u8], value: T) {
        let start = self.text.len();
        self.text.extend_from_slice(path);
        self.entries.push((start..self.text.len(), value));
    }

    fn path<'py>(&self, py: Python<'py>, range: &Range<usize>) -> Bound<'py, PyString> {
        let path = self.text.get(range.clone()).unwrap_or_default();
        match std::str::from_utf8(path) {
            Ok(text) => PyString::new(py, text),
            Err(_) => paths::to_python(py, from_bytes(path)),
        }
    }
}

/// Kind of a special file; `None` for a regular file, a directory or a link.
fn special(entry: &Entry) -> Option<&'static str> {
    match FileKind::of(&entry.kind) {
        FileKind::File | FileKind::Directory | FileKind::Symlink => None,
        FileKind::Fifo => Some("fifo"),
        FileKind::Socket => Some("socket"),
        FileKind::CharDevice => Some("char_device"),
        FileKind::BlockDevice => Some("block_device"),
    }
}

#[pymethods]
impl SnapshotManifest {
    /// The coverage of the snapshot.
    #[getter]
    fn coverage(&self) -> Record {
        coverage::record(self.manifest.coverage.clone(), &self.names)
    }

    /// The regular files by path, in the order of paths; a new dict each time.
    #[getter]
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let listed = self.list(py, |entry| engine::FileState::of(entry).map(FileState::from))?;
        let dict = PyDict::new(py);
        for (range, state) in &listed.entries {
            dict.set_item(listed.path(py, range), Bound::new(py, *state)?)?;
        }
        Ok(dict)
    }

    /// The symbolic links, and where each leads.
    #[getter]
    fn symlinks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let target = |entry: &Entry| match &entry.kind {
            Kind::Symlink { target } => Some(target.clone()),
            _ => None,
        };
        let listed = self.list(py, target)?;
        let dict = PyDict::new(py);
        for (range, target) in &listed.entries {
            dict.set_item(listed.path(py, range), paths::to_python(py, from_bytes(target)))?;
        }
        Ok(dict)
    }

    /// The directories, each before what is in it.
    #[getter]
    fn directories<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let listed = self.list(py, |entry| matches!(entry.kind, Kind::Dir { .. }).then_some(()))?;
        PyList::new(py, listed.entries.iter().map(|(range, ())| listed.path(py, range)))
    }

    /// FIFOs, sockets and devices: "fifo", "socket", "char_device" or "block_device" by path.
    #[getter]
    fn special<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let listed = self.list(py, special)?;
        let dict = PyDict::new(py);
        for (range, kind) in &listed.entries {
            dict.set_item(listed.path(py, range), kind)?;
        }
        Ok(dict)
    }

    /// All excluded paths, as pairs of path and reason.
    fn left_out<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyString>, String)>> {
        let left_out = long(py, (), |_| self.manifest.left_out().map_err(raise_object))?;
        let shown = left_out
            .into_iter()
            .map(|(path, reason)| (paths::to_python(py, &self.names.given(path)), reason.to_string()));
        Ok(shown.collect())
    }

    /// Whether this path is protected: a dict of status ("captured", "left_out", "not_there" or "outside"),
    /// and for what was left out because_of (the path that was) and reason.
    fn protection<'py>(&self, py: Python<'py>, path: PathArg) -> PyResult<Bound<'py, PyDict>> {
        let path = self.names.root(path.0);
        let found = long(py, (), |_| self.manifest.protection(&path).map_err(raise_object))?;
        let dict = PyDict::new(py);
        let status = match &found {
            Protection::Captured => "captured",
            Protection::LeftOut { .. } => "left_out",
            Protection::NotThere => "not_there",
            Protection::Outside => "outside",
        };
        dict.set_item("status", status)?;
        if let Protection::LeftOut { because_of, reason } = found {
            dict.set_item("because_of", paths::to_python(py, &self.names.given(because_of)))?;
            dict.set_item("reason", reason.to_string())?;
        }
        Ok(dict)
    }

    /// All values as a plain dict.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let names = "number id timestamp parent merkle_root state_root durable files symlinks directories \
                     special coverage";
        plain::attributes(slf, names)
    }

    fn __repr__(&self) -> String {
        format!("SnapshotManifest(number={}, files={})", self.number, self.manifest.coverage.files)
    }
}
