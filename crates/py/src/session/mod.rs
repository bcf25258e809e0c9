//! Supervised runs from Python: `run(...)`, and the sessions that it leaves behind.
//!
//! The keywords are checked and the policy resolved with the interpreter at hand ([`request`]); the run itself goes on
//! beside it, in a process that stays Python's: no signal is taken, no terminal where output is captured. Ctrl-C and
//! `cancel` ask the command to end (TERM, a moment, KILL); the last snapshot is taken all the same.

pub(crate) mod approve;
pub(crate) mod control;
mod error;
pub(crate) mod host;
mod report;
mod request;
pub(crate) mod sessions;
pub(crate) mod undo_points;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nono::approval::{ApprovalBackend, Chain, DenyAll, PolicyFile};
use nono::rollback::Baseline;
use nono::session::{
    self, Asking, Host, ResolvedRequest, RunObserver, SessionReport as Report, SessionRequest,
};
use nono::snapshot::Observer;
use nono::{ResolvedPolicy, project_profile};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::blocking::{Cancel, Progress, TaskProgress, long, long_with};
use crate::error::{PolicyError, Raise, Raised};
use crate::list_args::many;
use crate::plain::{self, Record};
use approve::{Callable, Failures};
use request::Keywords;

/// Checked request of a run; nothing is started yet.
struct Wish {
    host: Host,
    request: SessionRequest,
    keywords: Keywords,
}

fn wish(py: Python<'_>, command: Vec<PathBuf>, keywords: Keywords) -> PyResult<Wish> {
    let here = host::here()?;
    let workdir = keywords.workdir.as_ref().map(|dir| dir.0.clone());
    let host = host::outside(py, workdir, "started")?;
    let command: Vec<OsString> = command.into_iter().map(PathBuf::into_os_string).collect();
    let mut policy = keywords.policy(&here)?;
    let network = keywords.networking(py, &host, &here)?;
    network.open(&mut policy);
    if !keywords.no_project_profile {
        // There is no prompt here: a profile that the user has not agreed to applies only as far as it closes
        // something.
        let project = project_profile::look(&host.context).raised(error::project_profile)?;
        let overlays = project.map(|project| project.overlays(&host.context)).transpose();
        policy.projects = overlays.raised(error::project_profile)?.unwrap_or_default();
    }
    let profile = session::profile(&policy, &host).map_err(|error| error::session(&error.into()))?;
    // There is no prompt here: links that the user has not agreed to are refused when the policy is resolved.
    nono::links::recall(&mut policy, &profile, &host);
    let request = SessionRequest {
        diagnostics: keywords.diagnostics.unwrap_or(true),
        rollback: keywords.tracking(&here)?,
        auditing: keywords.auditing(&here)?,
        network,
        checkpoints: keywords.checkpointing(),
        guest: Some(keywords.guest()),
        profile: Some(profile),
        ..SessionRequest::new(policy, command)
    };
    Ok(Wish { host, request, keywords })
}

/// Approver of the command's requests: the callable, if there is one.
fn asking(py: Python<'_>, wish: &Wish, live: &TaskProgress, failures: &Failures) -> PyResult<Asking> {
    let Keywords { approve, approve_rules, accept_weaker, .. } = &wish.keywords;
    if approve.as_ref().is_some_and(|approve| !approve.bind(py).is_callable()) {
        return Err(PyTypeError::new_err("approve must be callable, as approve(request)"));
    }
    let backend: Arc<dyn ApprovalBackend> = match approve {
        None => Arc::new(DenyAll),
        Some(approve) => Arc::new(Callable {
            approve: approve.clone_ref(py),
            patience: wish.keywords.patience()?,
            live: live.clone(),
            failures: failures.clone(),
        }),
    };
    let wanted = (approve.is_some() || !approve_rules.is_empty()).then_some(true);
    let own = approve_rules.iter().map(|file| file.0.canonicalize().unwrap_or(file.0.clone())).collect();
    Ok(Asking { wanted, backend, accept_weaker: *accept_weaker, own, off_terminal: true, urls: None })
}

/// Approvers with the files of rules consulted first.
fn with_rules(mut asking: Asking, policy: &ResolvedPolicy, home: Option<&Path>) -> PyResult<Asking> {
    // The first file is consulted first, so it is wrapped around the others last.
    for file in asking.own.iter().rev() {
        let rules = PolicyFile::load(file, home, policy)
            .map_err(|error| Raise::new("approve_rules", error).about(file).as_a::<PolicyError>())?;
        asking.backend = Arc::new(Chain::new(rules, asking.backend));
    }
    Ok(asking)
}

/// Observer that reports the progress of a capture and cancels it.
struct CaptureObserver(TaskProgress);

impl RunObserver for CaptureObserver {
    fn capturing(&self, files: u64) {
        self.0.progress(files, 0);
    }

    fn baseline(&self, _baseline: &Baseline<'_>) {}

    fn cancelled(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// `nono_py.run`, with its keywords in a dict.
#[pyfunction]
pub(crate) fn _run(
    py: Python<'_>,
    #[pyo3(from_py_with = many)] command: Vec<PathBuf>,
    keywords: Keywords,
    progress: Option<Progress>,
    cancel: Option<Cancel>,
) -> PyResult<Record> {
    let live = TaskProgress::default();
    let failures = Failures::default();
    let wish = wish(py, command, keywords)?;
    let asking = asking(py, &wish, &live, &failures)?;
    let Wish { host, request, .. } = wish;
    // Separate from the result: the report is available even if an exception ends the call.
    let happened: Mutex<Option<Report>> = Mutex::new(None);
    let ran = long_with(py, (progress, cancel), live, |live| {
        let told: Arc<dyn RunObserver> = Arc::new(CaptureObserver(live.clone()));
        let failed = |error| error::session(&error);
        let mut resolved = ResolvedRequest::new(request, &host).map_err(failed)?;
        let asking = with_rules(asking, resolved.policy(), host.context.home.as_deref())?;
        resolved.answered_by(asking);
        let report = resolved.plan().and_then(|session| session::run(session, &told)).map_err(failed)?;
        *happened.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
        Ok(())
    });
    let report = happened.into_inner().unwrap_or_else(PoisonError::into_inner);
    let report = report.map(|report| report::record(py, report, &failures)).transpose()?;
    match (ran, report) {
        (Ok(()), Some(report)) => Ok(report),
        (Err(error), Some(report)) => {
            // `KeyboardInterrupt` and exceptions of callbacks accept any attribute.
            let _ = error.value(py).setattr("report", report);
            Err(error)
        }
        (Err(error), None) => Err(error),
        (Ok(()), None) => Err(Raise::new("bug", "a run without a report").as_a::<crate::error::NonoError>()),
    }
}

/// `nono_py.resolve`, with its keywords in a dict.
#[pyfunction]
pub(crate) fn _resolve(
    py: Python<'_>,
    #[pyo3(from_py_with = many)] command: Vec<PathBuf>,
    keywords: Keywords,
) -> PyResult<Bound<'_, PyDict>> {
    let Wish { host, mut request, .. } = wish(py, command, keywords)?;
    let (policy, profile) = long(py, (), |_| {
        let mut resolve = || {
            request.policy.program = Some(session::find_program(&request.command, &host)?);
            let profile = session::profile(&request.policy, &host)?;
            Ok((session::resolve(&request.policy, &profile, &host)?, profile))
        };
        resolve().raised(error::session)
    })?;
    let dict = PyDict::new(py);
    dict.set_item("profiles", profile.chain)?;
    dict.update(plain::value(py, &policy)?.cast::<PyDict>()?.as_mapping())?;
    Ok(dict)
}
