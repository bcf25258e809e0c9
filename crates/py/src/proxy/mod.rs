//! The filtering proxy in a thread of the caller's process.

mod config;
mod error;
mod handle;

use nono::proxy::{RunningProxy, Surroundings};
use pyo3::prelude::*;

use crate::blocking::{TaskWatch, long};
use crate::exec::host::Environment;
use config::{ExternalProxyConfig, InjectMode, ProxyConfig, RouteConfig};
pub(crate) use handle::ProxyHandle;

/// Start a proxy in a thread of this process, and serve until `shutdown()`.
///
/// The secrets of its routes are fetched now; one that cannot be had closes its route only (503). Raises ProxyError
/// where nothing can listen or a route makes no sense, FileNotFoundError or PermissionError for a file that cannot be
/// read. This process holds the secrets and the connections: `run()` and `Session` put theirs into a confined process.
#[pyfunction]
fn start_proxy(py: Python<'_>, config: &Bound<'_, ProxyConfig>) -> PyResult<ProxyHandle> {
    let config = config.get().inner.clone();
    let around = Surroundings {
        env: Environment::read(py)?.variables,
        // Only the keyring's program runs there, so any folder will do.
        cwd: std::env::current_dir().unwrap_or_else(|_| "/".into()),
    };
    let running = long(py, &TaskWatch::default(), |_| {
        RunningProxy::start(&config, &around).map_err(|error| error::proxy_error(&error))
    })?;
    Ok(ProxyHandle::new(running))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<InjectMode>()?;
    module.add_class::<RouteConfig>()?;
    module.add_class::<ExternalProxyConfig>()?;
    module.add_class::<ProxyConfig>()?;
    module.add_class::<ProxyHandle>()?;
    module.add_function(wrap_pyfunction!(start_proxy, module)?)
}
