//! Running sessions.

use nono::control::{self, Running};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::{error, host};
use crate::blocking::{TaskWatch, long};
use crate::error::Raised;
use crate::{paths, plain};

/// A running session, started by any process of this user.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct RunningSession {
    running: Running,
}

#[pymethods]
impl RunningSession {
    /// Its id.
    #[getter]
    fn session_id(&self) -> &str {
        &self.running.info.id
    }

    /// Its name, if it was given one.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.running.info.name.as_deref()
    }

    /// The process that supervises it.
    #[getter]
    fn pid(&self) -> u32 {
        self.running.info.pid
    }

    /// The time it started, ISO 8601.
    #[getter]
    fn started(&self) -> &str {
        &self.running.info.started
    }

    /// The command, without what may be secret in it.
    #[getter]
    fn command(&self) -> Vec<String> {
        self.running.info.command.clone()
    }

    /// The folder it was started in.
    #[getter]
    fn workdir<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        paths::to_python(py, &self.running.info.workdir)
    }

    /// Its present state, as in `nono inspect --json`.
    fn inspect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let status = long(py, &TaskWatch::default(), |_| self.running.inspect().raised(error::control))?;
        plain::value(py, &status)
    }

    /// Stop it, with everything that it started. Returns when its supervisor has begun to stop it.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        long(py, &TaskWatch::default(), |_| self.running.stop().raised(error::control))
    }

    /// The data of `nono ps --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::value(py, &self.running.info)
    }

    fn __repr__(&self) -> String {
        let info = &self.running.info;
        format!("RunningSession(session_id='{}', pid={}, command={:?})", info.id, info.pid, info.command)
    }
}

/// The sessions that run now, newest first.
#[pyfunction]
pub(crate) fn running_sessions(py: Python<'_>) -> PyResult<Vec<RunningSession>> {
    let host = host::outside(py, None, "looked at")?;
    let (sessions, problems) =
        long(py, &TaskWatch::default(), |_| control::list(&host.context.state_dir).raised(error::control))?;
    for problem in problems {
        let warn = py.import("warnings")?.getattr("warn")?;
        warn.call1((format!("cannot read a running session: {problem}"),))?;
    }
    Ok(sessions.into_iter().map(|running| RunningSession { running }).collect())
}

/// Stop a running session: its id, a unique beginning of one, its name, or "last".
#[pyfunction]
pub(crate) fn stop_session(py: Python<'_>, session: String) -> PyResult<RunningSession> {
    let host = host::outside(py, None, "ended")?;
    let running = long(py, &TaskWatch::default(), |_| {
        let stop = || {
            let running = control::find(&host.context.state_dir, &session)?;
            running.stop()?;
            Ok(running)
        };
        stop().raised(error::control)
    })?;
    Ok(RunningSession { running })
}
