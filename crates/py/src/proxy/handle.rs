//! `ProxyHandle`.

use std::ffi::OsString;
use std::sync::Arc;

use nono::proxy::{Handle, RunningProxy};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::error::Raise;
use crate::list_args::some_many;
use crate::{paths, plain};

/// A running proxy, from `start_proxy`.
///
/// It ends with `shutdown()`, with the `with` block it was entered in, or with the last reference to it. It is a thread
/// of this process: a process forked from this one has no proxy.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct ProxyHandle {
    running: RunningProxy,
}

#[pymethods]
impl ProxyHandle {
    /// The port it listens on.
    #[getter]
    pub(crate) fn port(&self) -> u16 {
        self.running.handle().port()
    }

    /// How programs find the proxy: HTTP_PROXY and its kin, the token, and where tunnels are looked into the
    /// certificates to believe.
    fn env_vars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        dict(py, self.running.env_vars())
    }

    /// Variables for the routes (`<PREFIX>_BASE_URL`), and the token in place of each available key.
    fn credential_env_vars<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        dict(py, self.running.credential_env_vars())
    }

    /// Both of the above after `extra_env`, for `sandboxed_exec`: sorted by name, the proxy's own win. Raises
    /// ValueError for a variable that no command gets.
    #[pyo3(signature = (extra_env=None))]
    fn sandbox_env<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = some_many)] extra_env: Option<Vec<(OsString, OsString)>>,
    ) -> PyResult<Vec<(Bound<'py, PyString>, Bound<'py, PyString>)>> {
        let env = self.running.sandbox_env(&extra_env.unwrap_or_default());
        let env = env.map_err(|error| Raise::new("environment", error).value_error())?;
        Ok(env.iter().map(|(name, value)| (paths::os_str(py, name), paths::os_str(py, value))).collect())
    }

    /// The events since the last call, as dicts: at most the last 4096.
    fn drain_audit_events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::value(py, &py.detach(|| self.running.drain()))
    }

    /// End all connections. A second call does nothing; events can be drained afterwards.
    fn shutdown(&self, py: Python<'_>) {
        let handle = self.running.handle();
        py.detach(|| handle.shutdown());
    }

    fn __enter__(this: Py<ProxyHandle>) -> Py<ProxyHandle> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        self.shutdown(py);
    }

    fn __repr__(&self) -> String {
        format!("ProxyHandle(port={})", self.port())
    }
}

impl ProxyHandle {
    pub(super) fn new(running: RunningProxy) -> ProxyHandle {
        ProxyHandle { running }
    }

    /// The proxy itself, to serve another socket by its rules ([`Handle::serve_also`]).
    pub(crate) fn shared(&self) -> Arc<Handle> {
        self.running.handle().clone()
    }
}

fn dict(py: Python<'_>, variables: Vec<(String, OsString)>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in variables {
        dict.set_item(name, paths::os_str(py, &value))?;
    }
    Ok(dict)
}
