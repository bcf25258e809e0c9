//! The errors of `sandboxed_exec` as exceptions.

use nono::exec::ExecError;
use pyo3::PyErr;

use crate::error::{Cancelled, ExecError as PyExecError, PolicyError, ProxyError, Raise};

pub(super) fn exec_error(error: &ExecError) -> PyErr {
    match error {
        ExecError::Empty => Raise::new("empty_command", error).value_error(),
        ExecError::Timeout(_) => Raise::new("timeout", error).value_error(),
        ExecError::Env(_) => Raise::new("environment", error).value_error(),
        ExecError::NotOnPath(path) | ExecError::NotFound(path) => {
            Raise::new("program_not_found", error).about(path).as_a::<PyExecError>()
        }
        ExecError::Nul => Raise::new("nul_byte", error).as_a::<PyExecError>(),
        ExecError::Cwd { path, .. } => Raise::new("cwd", error).about(path).as_a::<PyExecError>(),
        ExecError::Folder { base, .. } => {
            Raise::new("session_folder", error).about(base).as_a::<PyExecError>()
        }
        ExecError::Policy(_) => Raise::new("policy", error).as_a::<PolicyError>(),
        ExecError::NoProxy => Raise::new("no_proxy", error).as_a::<ProxyError>(),
        ExecError::System { .. } => Raise::new("system", error).as_a::<PyExecError>(),
        ExecError::Supervise(_) => Raise::new("supervise", error).as_a::<PyExecError>(),
        ExecError::Cancelled => Raise::new("cancelled", error).as_a::<Cancelled>(),
    }
}
