//! Host properties of this process, and the command line of its helpers.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use nono::session::{Host, Surroundings};
use pyo3::prelude::*;

use super::error;
use crate::error::{Raise, Raised, SessionError};
use crate::exec::host::Environment;

/// The native module itself: to a session it is what the program is to `nono run`, and never writable.
fn native(py: Python<'_>) -> PyResult<PathBuf> {
    py.import("nono_py._nono_py")?.getattr("__file__")?.extract()
}

pub(super) fn here() -> PyResult<PathBuf> {
    std::env::current_dir()
        .map_err(|source| Raise::new("nowhere", "cannot find the current directory").os_error(&source))
}

/// Host; also from inside a sandbox.
pub(super) fn host(py: Python<'_>, workdir: Option<PathBuf>) -> PyResult<Host> {
    let around = Surroundings {
        env: Environment::read(py)?.variables,
        here: here()?,
        workdir,
        binary: Some(native(py)?),
    };
    around.host().raised(error::host)
}

/// Host, for operations that are not possible inside a sandbox.
pub(super) fn outside(py: Python<'_>, workdir: Option<PathBuf>, what: &str) -> PyResult<Host> {
    let host = host(py, workdir)?;
    if host.nested {
        let message = format!("inside a nono sandbox sessions cannot be {what}; sandboxed_exec works there");
        return Err(Raise::new("nested", message).as_a::<SessionError>());
    }
    Ok(host)
}

/// Command that starts this interpreter as a helper: without site packages, environment or user settings.
pub(super) fn helper(py: Python<'_>, what: &str) -> PyResult<Vec<OsString>> {
    let interpreter: Option<OsString> = py.import("sys")?.getattr("executable")?.extract()?;
    let Some(interpreter) = interpreter.filter(|path| !path.is_empty()) else {
        let message = "the network filter needs a helper process, and sys.executable is empty";
        return Err(Raise::new("no_helper", message).as_a::<SessionError>());
    };
    let native = native(py)?;
    let script = native.with_file_name("_helper.py");
    let flags = ["-I", "-S", "-B"].map(OsString::from);
    let words = [script.into_os_string(), native.into_os_string(), OsStr::new(what).to_owned()];
    Ok([interpreter].into_iter().chain(flags).chain(words).collect())
}

/// Run the network filter for the supervisor. Internal; does not return while it is needed.
#[pyfunction]
pub(crate) fn _serve_network(py: Python<'_>) -> PyResult<()> {
    let served = py.detach(|| nono::network::serve(std::io::stdin()));
    served.map_err(|error| Raise::new("helper", error).as_a::<SessionError>())
}

/// Run the webhook client for the supervisor. Internal.
#[pyfunction]
pub(crate) fn _serve_webhook(py: Python<'_>) -> PyResult<()> {
    let served = py.detach(|| nono::approval::webhook::serve(std::io::stdin(), std::io::stdout()));
    served.map_err(|error| Raise::new("helper", error).as_a::<SessionError>())
}
