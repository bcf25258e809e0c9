//! The filtering proxy in a thread of the caller's process.

pub(crate) mod config;
mod error;
pub(crate) mod handle;

use nono::proxy::{RunningProxy, Surroundings};
use pyo3::prelude::*;

use crate::blocking::long;
use crate::error::Raised;
use crate::exec::host::Environment;
pub(crate) use config::InjectMode;
use config::ProxyConfig;
pub(crate) use handle::ProxyHandle;

/// Start a proxy in a thread of this process, and serve until `shutdown()`.
///
/// The secrets of its routes are fetched now; one that cannot be had closes its route only (503). Raises ProxyError
/// where nothing can listen or a route makes no sense, FileNotFoundError or PermissionError for a file that cannot be
/// read. This process holds the secrets and the connections: `run()` and `Session` put theirs into a confined process.
#[pyfunction]
pub(crate) fn start_proxy(py: Python<'_>, config: &Bound<'_, ProxyConfig>) -> PyResult<ProxyHandle> {
    let config = config.get().inner.clone();
    let around = Surroundings {
        env: Environment::read(py)?.variables,
        // Only the keyring's program runs there, so any folder will do.
        cwd: std::env::current_dir().unwrap_or_else(|_| "/".into()),
    };
    let running = long(py, (), |_| RunningProxy::start(&config, &around).raised(error::proxy_error))?;
    Ok(ProxyHandle::new(running))
}
