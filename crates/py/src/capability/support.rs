//! Support of this machine for the sandbox, and confining this process.

use nono::Sandbox;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::error::apply_error;
use super::set::CapabilitySet;
use crate::panic_guard::guard;

/// Support of this machine for the sandbox.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct SupportInfo {
    /// Whether any set can be enforced here.
    #[pyo3(get)]
    is_supported: bool,
    /// The operating system, as `linux` or `macos`.
    #[pyo3(get)]
    platform: &'static str,
    /// The kernel's features in one line; or the reason why nothing can be enforced.
    #[pyo3(get)]
    details: String,
}

#[pymethods]
impl SupportInfo {
    /// The values as a plain dict.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("is_supported", self.is_supported)?;
        dict.set_item("platform", self.platform)?;
        dict.set_item("details", &self.details)?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        format!("SupportInfo(supported={}, platform='{}')", self.is_supported, self.platform)
    }
}

/// Whether this machine can enforce anything.
#[pyfunction]
fn is_supported() -> bool {
    Sandbox::is_supported()
}

/// The support of this machine, found by trying it.
#[pyfunction]
fn support_info(py: Python<'_>) -> SupportInfo {
    let support = py.detach(Sandbox::support);
    SupportInfo {
        is_supported: support.is_supported(),
        platform: std::env::consts::OS,
        details: support.to_string(),
    }
}

/// Confine this process, and everything it starts, to `caps`: at once and for ever. Called again, it restricts further.
///
/// Refused (SandboxError) when the process has other threads, unless the kernel can confine all of them at once
/// (Landlock V8): call it before threads start, or use sandboxed_exec(), which does not mind threads. Refused also
/// where the kernel cannot hold what the set says; then nothing was applied.
///
/// What it cannot do, for want of namespaces: close a path inside a grant (deny_path), open single unix sockets, and
/// with proxy_only() tell the proxy from others on the same port: connecting to that port is allowed at any address,
/// and the proxy has to live in another process, or it is confined, too. Files that are open stay open.
#[pyfunction]
fn apply(caps: &CapabilitySet) -> PyResult<()> {
    let (set, _proxy) = caps.to_exec();
    // In this very thread: a helper thread would be one too many.
    guard(|| Sandbox::apply(&set).map_err(|error| apply_error(&error)))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(is_supported, module)?)?;
    module.add_function(wrap_pyfunction!(support_info, module)?)?;
    module.add_function(wrap_pyfunction!(apply, module)?)
}
