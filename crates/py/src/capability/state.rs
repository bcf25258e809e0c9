//! `SandboxState`.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::error::state_error;
use super::set::CapabilitySet;
use crate::error::Raised;
use crate::paths;

/// A set of capabilities as JSON, to be stored or passed to another process.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct SandboxState(nono::SandboxState);

#[pymethods]
impl SandboxState {
    /// The present state of a set.
    #[staticmethod]
    fn from_caps(caps: &CapabilitySet) -> SandboxState {
        SandboxState(nono::SandboxState::from_caps(&caps.to_exec().0))
    }

    /// Read what to_json() wrote. Unknown keys are ignored.
    ///
    /// Raises ValueError for anything else. Access words are checked by to_caps().
    #[staticmethod]
    fn from_json(json: &str) -> PyResult<SandboxState> {
        nono::SandboxState::from_json(json).map(SandboxState).raised(state_error)
    }

    /// The state as JSON, two spaces deep. `source` of a grant is left out where it is the user.
    fn to_json(&self) -> PyResult<String> {
        self.0.to_json().raised(state_error)
    }

    /// Rebuild the set, sources included.
    ///
    /// Each grant is the very path it was resolved to, whatever the working directory is now. Raises FileNotFoundError
    /// where that is gone, ValueError where it has become a file, a directory or a link to elsewhere. What deny_path()
    /// closed stays closed. A proxy as the only way out comes back as a blocked network.
    fn to_caps(&self, py: Python<'_>) -> PyResult<CapabilitySet> {
        let caps = py.detach(|| self.0.to_caps()).raised(state_error)?;
        Ok(caps.into())
    }

    /// Whether the network is closed.
    #[getter]
    fn net_blocked(&self) -> bool {
        self.0.net_blocked
    }

    /// The state as a plain dict: `fs`, `net_blocked`, `denied`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fs = PyList::empty(py);
        for grant in &self.0.fs {
            let entry = PyDict::new(py);
            entry.set_item("original", paths::to_python(py, &grant.original))?;
            entry.set_item("resolved", paths::to_python(py, &grant.resolved))?;
            entry.set_item("access", &grant.access)?;
            entry.set_item("is_file", grant.is_file)?;
            let source = grant.source.as_ref().map_or_else(|| "user".to_owned(), ToString::to_string);
            entry.set_item("source", source)?;
            fs.append(entry)?;
        }
        let dict = PyDict::new(py);
        dict.set_item("fs", fs)?;
        dict.set_item("net_blocked", self.0.net_blocked)?;
        let denied: Vec<_> =
            self.0.denied.iter().map(|denied| paths::to_python(py, &denied.resolved)).collect();
        dict.set_item("denied", denied)?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        format!("SandboxState(fs={}, net_blocked={})", self.0.fs.len(), self.0.net_blocked)
    }
}
