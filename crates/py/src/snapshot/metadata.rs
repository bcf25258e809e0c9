//! `SessionMetadata`: `session.json` as a value.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nono::snapshot as engine;
use nono::snapshot::MerkleRoot;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::network;
use super::values::ContentHash;
use crate::error::Raise;
use crate::list_args::many;
use crate::paths::{self, PathArg};
use crate::plain;

/// Data about a session beside its snapshots.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct SessionMetadata {
    metadata: Mutex<engine::SessionMetadata>,
}

impl SessionMetadata {
    pub(crate) fn new(metadata: engine::SessionMetadata) -> SessionMetadata {
        SessionMetadata { metadata: Mutex::new(metadata) }
    }

    /// Locks the metadata; the lock is never held while Python runs.
    fn lock(&self) -> MutexGuard<'_, engine::SessionMetadata> {
        self.metadata.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn value(&self) -> engine::SessionMetadata {
        self.lock().clone()
    }
}

fn invalid(why: impl std::fmt::Display) -> PyErr {
    Raise::new("invalid_json", format!("Invalid JSON: {why}")).value_error()
}

#[pymethods]
impl SessionMetadata {
    #[new]
    fn py_new(
        session_id: String,
        #[pyo3(from_py_with = many)] command: Vec<String>,
        #[pyo3(from_py_with = many)] tracked_paths: Vec<PathArg>,
    ) -> SessionMetadata {
        let tracked_paths = tracked_paths.into_iter().map(PathBuf::from).collect();
        SessionMetadata::new(engine::SessionMetadata::new(session_id, command, tracked_paths))
    }

    /// The id of the session.
    #[getter]
    fn session_id(&self) -> String {
        self.lock().session_id.clone()
    }

    /// The time it began: ISO 8601, UTC.
    #[getter]
    fn started(&self) -> String {
        self.lock().started.clone()
    }

    /// The time it ended, if it did.
    #[getter]
    fn ended(&self) -> Option<String> {
        self.lock().ended.clone()
    }

    #[setter]
    fn set_ended(&self, ended: Option<String>) {
        self.lock().ended = ended;
    }

    /// The command line.
    #[getter]
    fn command(&self) -> Vec<String> {
        self.lock().command.clone()
    }

    /// The tracked paths.
    #[getter]
    fn tracked_paths<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyString>> {
        let all = self.lock().tracked_paths.clone();
        all.iter().map(|path| paths::to_python(py, path)).collect()
    }

    /// The number of its snapshots.
    #[getter]
    fn snapshot_count(&self) -> u32 {
        self.lock().snapshot_count
    }

    #[setter]
    fn set_snapshot_count(&self, snapshot_count: u32) {
        self.lock().snapshot_count = snapshot_count;
    }

    /// The exit code of the command, if it ended.
    #[getter]
    fn exit_code(&self) -> Option<i32> {
        self.lock().exit_code
    }

    #[setter]
    fn set_exit_code(&self, exit_code: Option<i32>) {
        self.lock().exit_code = exit_code;
    }

    /// The Merkle roots of its snapshots.
    #[getter]
    fn merkle_roots(&self) -> Vec<ContentHash> {
        self.lock().merkle_roots.iter().map(|root| ContentHash(*root.as_bytes())).collect()
    }

    /// One more snapshot's.
    fn add_merkle_root(&self, root: Py<ContentHash>) {
        self.lock().merkle_roots.push(MerkleRoot::from_bytes(root.get().0));
    }

    /// The network events: dicts, always with the same 15 keys.
    #[getter]
    fn network_events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let events = self.lock().network_events.clone();
        let events: Vec<_> =
            events.iter().map(|event| network::to_dict(py, event)).collect::<PyResult<_>>()?;
        PyList::new(py, events)
    }

    /// Replace them. If one of them is wrong, nothing is replaced.
    fn set_network_events(&self, #[pyo3(from_py_with = many)] events: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        let events = events.iter().map(network::from_dict).collect::<PyResult<_>>()?;
        self.lock().network_events = events;
        Ok(())
    }

    /// The program that was run: a dict of resolved_path and sha256, or None.
    #[getter]
    fn executable_identity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::value(py, &self.value().executable_identity)
    }

    /// The number of events in its audit log.
    #[getter]
    fn audit_event_count(&self) -> u64 {
        self.lock().audit_event_count
    }

    /// The digests of that log: a dict of hash_algorithm, event_count, chain_head and merkle_root, or None.
    #[getter]
    fn audit_integrity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::value(py, &self.value().audit_integrity)
    }

    /// The signature of that log: a dict of predicate_type, key_id, public_key and bundle_filename, or None.
    #[getter]
    fn audit_attestation<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::value(py, &self.value().audit_attestation)
    }

    /// The text of `session.json`.
    fn to_json(&self) -> PyResult<String> {
        self.value().to_json().map_err(invalid)
    }

    /// Parse the text of a `session.json`.
    #[staticmethod]
    fn from_json(json: &str) -> PyResult<SessionMetadata> {
        let metadata = engine::SessionMetadata::from_json(json).map_err(invalid)?;
        metadata.network_events.iter().try_for_each(|event| network::check(event).map_err(invalid))?;
        Ok(SessionMetadata::new(metadata))
    }

    /// The values as a plain dict, with the keys of `to_json`.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let names = "session_id started ended command executable_identity tracked_paths snapshot_count \
                     exit_code merkle_roots network_events audit_event_count audit_integrity \
                     audit_attestation";
        plain::attributes(slf, names)
    }

    fn __repr__(&self) -> String {
        let metadata = self.lock();
        format!("SessionMetadata(id='{}', snapshots={})", metadata.session_id, metadata.snapshot_count)
    }
}
