//! `sandboxed_exec` and its result.

pub(crate) mod error;
pub(crate) mod host;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use nono::exec::{self, ExecRequest, Input, Proxy};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use crate::blocking::{Cancel, long};
use crate::capability::CapabilitySet;
use crate::error::Raised;
use crate::list_args::{many, some_many};
use crate::paths::PathArg;
use crate::plain;
use error::exec_error;

/// Output of a command, and how it ended.
#[pyclass(frozen, get_all, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct ExecResult {
    /// Its standard output.
    stdout: Py<PyBytes>,
    /// Its standard error; or, after ``nono:``, the reason why it was not run.
    stderr: Py<PyBytes>,
    /// Its own code; ``-n`` after signal n; 124 when its time ran out; 126 when the sandbox or the working folder could
    /// not be had; 127 when it could not be executed.
    exit_code: i32,
    /// Whether its time ran out.
    timed_out: bool,
    /// Whether there was more output than ``max_output``.
    truncated: bool,
}

#[pymethods]
impl ExecResult {
    /// The result as a plain dict, with the outputs as bytes.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        plain::attributes(slf, "stdout stderr exit_code timed_out truncated")
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let length = |bytes: &Py<PyBytes>| bytes.as_bytes(py).len();
        format!(
            "ExecResult(exit_code={}, stdout_len={}, stderr_len={})",
            self.exit_code,
            length(&self.stdout),
            length(&self.stderr)
        )
    }
}

/// Run a command that can reach nothing but what `caps` grants, and return what it said.
///
/// The environment is empty but for `env`, a list of (name, value), unless `inherit_env` is set; variables that tell
/// the loader what to run are refused. A program without a slash is looked for on this process's PATH, one with a
/// slash from `cwd`. Standard input is inherited, unless `stdin` has the bytes for it.
///
/// When the command ends, or after `timeout_secs`, or when the call is cancelled or interrupted, everything the command
/// started is ended. `max_output` is how many bytes of each output are kept: the command goes on, the rest is dropped,
/// and the result's `truncated` says so.
///
/// A sandbox that cannot be had is a result with exit code 126, and nothing was run. Raises ValueError for a wrong
/// argument, ExecError (a RuntimeError) for a program that is not found and where nothing can be started.
#[pyfunction]
#[pyo3(signature = (
    caps, command, cwd=None, timeout_secs=None, env=None, inherit_env=false,
    *, stdin=None, max_output=None, cancel=None
))]
#[allow(clippy::too_many_arguments, reason = "they are Python's keywords")]
pub(crate) fn sandboxed_exec(
    py: Python<'_>,
    caps: &Bound<'_, CapabilitySet>,
    #[pyo3(from_py_with = many)] command: Vec<PathBuf>,
    cwd: Option<PathArg>,
    timeout_secs: Option<f64>,
    #[pyo3(from_py_with = some_many)] env: Option<Vec<(OsString, OsString)>>,
    inherit_env: bool,
    stdin: Option<PyBackedBytes>,
    max_output: Option<u64>,
    cancel: Option<Cancel>,
) -> PyResult<ExecResult> {
    let here = host::Environment::read(py)?;
    // An empty command is reported before a wrong timeout.
    let timeout = timeout_secs.filter(|_| !command.is_empty()).map(exec::seconds).transpose();
    let timeout = timeout.raised(exec_error)?.flatten();
    let (set, proxy) = caps.get().to_exec();
    let request = ExecRequest {
        command: command.into_iter().map(OsString::from).collect(),
        cwd: cwd.map(PathBuf::from),
        timeout,
        env: here
            .variables
            .iter()
            .filter(|_| inherit_env)
            .cloned()
            .chain(env.into_iter().flatten())
            .collect(),
        input: stdin.as_deref().map_or(Input::Inherited, Input::Given),
        max_output,
        proxy: proxy.map(|proxy| proxy as Arc<dyn Proxy>),
    };
    let host = here.host();
    let outcome = long(py, (None, cancel), |live| {
        exec::run(&set, &request, &host, &|| live.is_cancelled()).raised(exec_error)
    })?;
    Ok(ExecResult {
        stdout: PyBytes::new(py, &outcome.stdout).unbind(),
        stderr: PyBytes::new(py, &outcome.stderr).unbind(),
        exit_code: outcome.exit_code,
        timed_out: outcome.timed_out,
        truncated: outcome.truncated,
    })
}
