//! Support of this machine for the sandbox, and confining this process.

use nono::Sandbox;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::error::apply_error;
use super::set::CapabilitySet;
use crate::error::Raised;
use crate::panic_guard::guard;
use crate::plain;

/// Support of this machine for the sandbox.
#[pyclass(frozen, get_all, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct SupportInfo {
    /// Whether any set can be enforced here.
    is_supported: bool,
    /// The operating system, as `linux` or `macos`.
    platform: &'static str,
    /// The kernel's features in one line; or the reason why nothing can be enforced.
    details: String,
}

#[pymethods]
impl SupportInfo {
    /// The values as a plain dict.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        plain::attributes(slf, "is_supported platform details")
    }

    fn __repr__(&self) -> String {
        format!("SupportInfo(supported={}, platform='{}')", self.is_supported, self.platform)
    }
}

/// Whether this machine can enforce anything.
#[pyfunction]
pub(crate) fn is_supported() -> bool {
    Sandbox::is_supported()
}

/// The support of this machine, found by trying it.
#[pyfunction]
pub(crate) fn support_info(py: Python<'_>) -> SupportInfo {
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
pub(crate) fn apply(caps: &CapabilitySet) -> PyResult<()> {
    let (set, _proxy) = caps.to_exec();
    // In this very thread: a helper thread would be one too many.
    guard(|| Sandbox::apply(&set).raised(apply_error))
}
