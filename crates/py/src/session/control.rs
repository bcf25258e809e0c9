//! Running sessions.

use nono::control::{self, Running};
use pyo3::prelude::*;

use super::{error, host};
use crate::blocking::long;
use crate::error::Raised;
use crate::paths::PathText;
use crate::plain;

/// A running session, started by any process of this user.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct RunningSession {
    running: Running,
    /// Its id.
    #[pyo3(get)]
    session_id: String,
    /// Its name, if it was given one.
    #[pyo3(get)]
    name: Option<String>,
    /// The process that supervises it.
    #[pyo3(get)]
    pid: u32,
    /// The time it started, ISO 8601.
    #[pyo3(get)]
    started: String,
    /// The command, without what may be secret in it.
    #[pyo3(get)]
    command: Vec<String>,
    /// The folder it was started in.
    #[pyo3(get)]
    workdir: PathText,
}

impl From<Running> for RunningSession {
    fn from(running: Running) -> RunningSession {
        let info = running.info.clone();
        RunningSession {
            running,
            session_id: info.id,
            name: info.name,
            pid: info.pid,
            started: info.started,
            command: info.command,
            workdir: PathText(info.workdir),
        }
    }
}

#[pymethods]
impl RunningSession {
    /// Its present state, as in `nono inspect --json`.
    fn inspect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let status = long(py, (), |_| self.running.inspect().raised(error::control))?;
        plain::value(py, &status)
    }

    /// Stop it, with everything that it started. Returns when its supervisor has begun to stop it.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        long(py, (), |_| self.running.stop().raised(error::control))
    }

    /// The data of `nono ps --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::value(py, &self.running.info)
    }

    fn __repr__(&self) -> String {
        let RunningSession { session_id, pid, command, .. } = self;
        format!("RunningSession(session_id='{session_id}', pid={pid}, command={command:?})")
    }
}

/// The sessions that run now, newest first.
#[pyfunction]
pub(crate) fn running_sessions(py: Python<'_>) -> PyResult<Vec<RunningSession>> {
    let host = host::outside(py, None, "looked at")?;
    let (sessions, problems) =
        long(py, (), |_| control::list(&host.context.state_dir).raised(error::control))?;
    for problem in problems {
        let warn = py.import("warnings")?.getattr("warn")?;
        warn.call1((format!("cannot read a running session: {problem}"),))?;
    }
    Ok(sessions.into_iter().map(RunningSession::from).collect())
}

/// Stop a running session: its id, a unique beginning of one, its name, or "last".
#[pyfunction]
pub(crate) fn stop_session(py: Python<'_>, session: String) -> PyResult<RunningSession> {
    let host = host::outside(py, None, "ended")?;
    let running = long(py, (), |_| {
        let stop = || {
            let running = control::find(&host.context.state_dir, &session)?;
            running.stop()?;
            Ok(running)
        };
        stop().raised(error::control)
    })?;
    Ok(running.into())
}
