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
    fn executable_identity<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(identity) = self.lock().executable_identity.clone() else { return Ok(None) };
        let dict = PyDict::new(py);
        dict.set_item("resolved_path", paths::to_python(py, &identity.resolved_path))?;
        dict.set_item("sha256", identity.sha256.hex())?;
        Ok(Some(dict))
    }

    /// The number of events in its audit log.
    #[getter]
    fn audit_event_count(&self) -> u64 {
        self.lock().audit_event_count
    }

    /// The digests of that log: a dict of hash_algorithm, event_count, chain_head and merkle_root, or None.
    #[getter]
    fn audit_integrity<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(integrity) = self.lock().audit_integrity.clone() else { return Ok(None) };
        let dict = PyDict::new(py);
        dict.set_item("hash_algorithm", integrity.hash_algorithm)?;
        dict.set_item("event_count", integrity.event_count)?;
        dict.set_item("chain_head", integrity.chain_head)?;
        dict.set_item("merkle_root", integrity.merkle_root)?;
        Ok(Some(dict))
    }

    /// The signature of that log: a dict of predicate_type, key_id, public_key and bundle_filename, or None.
    #[getter]
    fn audit_attestation<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(attestation) = self.lock().audit_attestation.clone() else { return Ok(None) };
        let dict = PyDict::new(py);
        dict.set_item("predicate_type", attestation.predicate_type)?;
        dict.set_item("key_id", attestation.key_id)?;
        dict.set_item("public_key", attestation.public_key)?;
        dict.set_item("bundle_filename", attestation.bundle_filename)?;
        Ok(Some(dict))
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
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("session_id", self.session_id())?;
        dict.set_item("started", self.started())?;
        dict.set_item("ended", self.ended())?;
        dict.set_item("command", self.command())?;
        dict.set_item("executable_identity", self.executable_identity(py)?)?;
        dict.set_item("tracked_paths", self.tracked_paths(py))?;
        dict.set_item("snapshot_count", self.snapshot_count())?;
        dict.set_item("exit_code", self.exit_code())?;
        let roots: Vec<String> = self.lock().merkle_roots.iter().map(MerkleRoot::hex).collect();
        dict.set_item("merkle_roots", roots)?;
        dict.set_item("network_events", self.network_events(py)?)?;
        dict.set_item("audit_event_count", self.audit_event_count())?;
        dict.set_item("audit_integrity", self.audit_integrity(py)?)?;
        dict.set_item("audit_attestation", self.audit_attestation(py)?)?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        let metadata = self.lock();
        format!("SessionMetadata(id='{}', snapshots={})", metadata.session_id, metadata.snapshot_count)
    }
}
