//! `QueryContext`.

use std::env;
use std::path::Path;

use nono::{HostFacts, SetAnswer, SetQuery};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::access::AccessMode;
use super::error::policy_error;
use super::set::CapabilitySet;
use crate::error::{Raise, Raised};
use crate::paths::{self, PathArg};

/// Queries of a set of capabilities, answered as the kernel would. Later changes of the set are not seen.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct QueryContext {
    query: SetQuery,
}

#[pymethods]
impl QueryContext {
    #[new]
    fn new(caps: &CapabilitySet) -> PyResult<QueryContext> {
        let query = SetQuery::new(&caps.to_exec().0).raised(policy_error)?;
        Ok(QueryContext { query })
    }

    /// Whether this access on a path is allowed: a dict with `status` ("allowed" or "denied") and `reason`.
    ///
    /// Allowed ("granted_path"): `granted_path` and `access` of the grant that decides, the most permissive one.
    /// Denied: "insufficient_access" with `granted` and `requested`, "path_not_granted", or "path_denied" for what
    /// deny_path() closed. Links and `..` are followed as the kernel does; a relative path is relative to the working
    /// directory.
    fn query_path<'py>(
        &self,
        py: Python<'py>,
        path: PathArg,
        mode: AccessMode,
    ) -> PyResult<Bound<'py, PyDict>> {
        let answer = py.detach(|| {
            // Only a relative path needs it, and the folder may be gone.
            let cwd = if path.0.is_absolute() { Ok("/".into()) } else { env::current_dir() };
            cwd.map(|cwd| self.query.path(&HostFacts, &cwd, &path.0, mode.into()))
        });
        let answer = answer.map_err(|source| {
            let message = format!("cannot find the working directory: {source}");
            Raise::new("no_cwd", message).about(Path::new(".")).os_error(&source)
        })?;
        let dict = PyDict::new(py);
        let (status, reason) = match &answer {
            SetAnswer::Allowed { .. } => ("allowed", "granted_path"),
            SetAnswer::Insufficient { .. } => ("denied", "insufficient_access"),
            SetAnswer::NotGranted => ("denied", "path_not_granted"),
            SetAnswer::Denied => ("denied", "path_denied"),
        };
        dict.set_item("status", status)?;
        dict.set_item("reason", reason)?;
        match answer {
            SetAnswer::Allowed { granted_path, access } => {
                dict.set_item("granted_path", paths::to_python(py, &granted_path))?;
                dict.set_item("access", access.to_string())?;
            }
            SetAnswer::Insufficient { granted, requested } => {
                dict.set_item("granted", granted.to_string())?;
                dict.set_item("requested", requested.to_string())?;
            }
            SetAnswer::NotGranted | SetAnswer::Denied => {}
        }
        Ok(dict)
    }

    /// Whether the network is open: a dict with `status` and `reason` ("network_allowed" or "network_blocked").
    ///
    /// A proxy as the only way out counts as blocked.
    fn query_network<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (status, reason) = if self.query.network_allowed() {
            ("allowed", "network_allowed")
        } else {
            ("denied", "network_blocked")
        };
        let dict = PyDict::new(py);
        dict.set_item("status", status)?;
        dict.set_item("reason", reason)?;
        Ok(dict)
    }
}
