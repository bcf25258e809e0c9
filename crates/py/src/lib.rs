//! `nono_py._nono_py`: the native half of the Python package, over crate `nono`.
//!
//! Nothing is decided here. Arguments become values of the library, its results become Python objects, its errors
//! exceptions (`error`); long work runs in another thread, while the caller's waits without the interpreter (`long`).
//! What is more comfortable in Python (context managers, async variants, the audit module) is in `python/nono_py`.

#![allow(clippy::needless_pass_by_value, reason = "arguments arrive as Python hands them over")]
#![allow(
    clippy::wrong_self_convention,
    reason = "Python's objects are borrowed by their methods, small ones too"
)]

mod blocking;
mod capability;
mod checkpoint;
mod error;
mod exec;
mod fork;
mod list_args;
mod panic_guard;
mod paths;
mod policy;
mod proxy;
mod render;
mod session;
mod snapshot;

use pyo3::prelude::*;

/// The native half of `nono_py`.
// Not tested on an interpreter without the GIL, so Python enables it again, with a warning.
#[pymodule(gil_used = true)]
fn _nono_py(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    error::register(module)?;
    blocking::register(module)?;
    #[cfg(debug_assertions)]
    panic_guard::register(module)?;

    // --- capabilities
    capability::register(module)?;

    // --- policy
    policy::register(module)?;

    // --- exec
    exec::register(module)?;

    // --- proxy
    proxy::register(module)?;

    // --- snapshots
    snapshot::register(module)?;

    // --- checkpoints
    checkpoint::register(module)?;

    // --- sessions
    session::register(module)?;

    fork::fill_caches(module)
}
