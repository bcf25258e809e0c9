//! A Python callable as the approver of a command's requests.
//!
//! Each request is passed to it in a separate Python thread, while the mediator's thread waits for the decision without
//! the interpreter: a callable that takes too long, or whose requesting program has ended, is not waited for.
//! Everything but a clear yes denies: an exception, an invalid answer, no answer in time.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nono::approval::{
    ApprovalAnswer, ApprovalBackend, ApprovalError, Object, Question, Scope, Subject, Verdict, Waiting,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};

use crate::blocking::TaskProgress;
use crate::paths;

/// Interval at which the waiting thread checks whether the request is still open.
const LOOK: Duration = Duration::from_millis(50);

/// Request of a command for access beyond its grants.
///
/// `path` is without links, and is what a yes opens; `reason` and `program` are untrusted text of the command.
#[pyclass(frozen, module = "nono_py")]
#[derive(Clone, Debug)]
pub(crate) struct ApprovalRequest {
    question: Question,
}

#[pymethods]
impl ApprovalRequest {
    /// Counts up within one run.
    #[getter]
    fn id(&self) -> u64 {
        self.question.id
    }

    /// "access", "restore", "restore_checkpoint" or "open_url".
    #[getter]
    fn kind(&self) -> &'static str {
        match self.question.subject {
            Subject::Access { .. } => "access",
            Subject::Restore { .. } => "restore",
            Subject::RestoreCheckpoint { .. } => "restore_checkpoint",
            Subject::OpenUrl { .. } => "open_url",
        }
    }

    /// The requested path, resolved; of a checkpoint: its project. None if the request is about no path.
    #[getter]
    fn path<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        match &self.question.subject {
            Subject::Access { path, .. } | Subject::RestoreCheckpoint { project: path, .. } => {
                Some(paths::to_python(py, path))
            }
            Subject::Restore { .. } | Subject::OpenUrl { .. } => None,
        }
    }

    /// The path as the command wrote it, if that differs from `path`.
    #[getter]
    fn written<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        match &self.question.subject {
            Subject::Access { written: Some(written), .. } => Some(paths::to_python(py, written)),
            _ => None,
        }
    }

    /// "read", "write" or "read+write".
    #[getter]
    fn access(&self) -> Option<String> {
        match &self.question.subject {
            Subject::Access { access, .. } => Some(access.to_string()),
            _ => None,
        }
    }

    /// Kind of `path`: "file", "directory", or "new" if it does not exist yet.
    #[getter]
    fn object(&self) -> Option<&'static str> {
        match &self.question.subject {
            Subject::Access { object, .. } => Some(match object {
                Object::File => "file",
                Object::Directory => "directory",
                Object::New => "new",
            }),
            _ => None,
        }
    }

    /// The folder that the answer "directory" opens; None if that would be too much.
    #[getter]
    fn folder<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyString>> {
        match &self.question.subject {
            Subject::Access { folder: Some(folder), .. } => Some(paths::to_python(py, folder)),
            _ => None,
        }
    }

    /// The snapshot, or the id of the checkpoint, to be restored.
    #[getter]
    fn snapshot(&self) -> Option<String> {
        match &self.question.subject {
            Subject::Restore { snapshot, .. } => Some(snapshot.to_string()),
            Subject::RestoreCheckpoint { checkpoint, .. } => Some(checkpoint.clone()),
            _ => None,
        }
    }

    /// The paths to be restored; empty means all of them.
    #[getter]
    fn paths<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyString>> {
        let all: &[PathBuf] = match &self.question.subject {
            Subject::Restore { paths, .. } | Subject::RestoreCheckpoint { paths, .. } => paths,
            _ => &[],
        };
        all.iter().map(|path| paths::to_python(py, path)).collect()
    }

    /// The web address to be opened.
    #[getter]
    fn url(&self) -> Option<&str> {
        match &self.question.subject {
            Subject::OpenUrl { url } => Some(url),
            _ => None,
        }
    }

    /// The program that asks.
    #[getter]
    fn program<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        paths::to_python(py, &self.question.asker.program)
    }

    /// The process that asks.
    #[getter]
    fn pid(&self) -> u32 {
        self.question.asker.pid
    }

    /// The reason given by the command, if any. Untrusted text.
    #[getter]
    fn reason(&self) -> Option<&str> {
        self.question.reason.as_deref()
    }

    /// All values as a plain dict.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("id", self.id())?;
        dict.set_item("kind", self.kind())?;
        dict.set_item("path", self.path(py))?;
        dict.set_item("written", self.written(py))?;
        dict.set_item("access", self.access())?;
        dict.set_item("object", self.object())?;
        dict.set_item("folder", self.folder(py))?;
        dict.set_item("snapshot", self.snapshot())?;
        dict.set_item("paths", self.paths(py))?;
        dict.set_item("url", self.url())?;
        dict.set_item("program", self.program(py))?;
        dict.set_item("pid", self.pid())?;
        dict.set_item("reason", self.reason())?;
        Ok(dict)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let about = match &self.question.subject {
            Subject::OpenUrl { url } => PyString::new(py, url).repr()?,
            Subject::Restore { snapshot, .. } => PyString::new(py, &snapshot.to_string()).repr()?,
            Subject::Access { path, .. } | Subject::RestoreCheckpoint { project: path, .. } => {
                paths::to_python(py, path).repr()?
            }
        };
        let access = self.access().map(|access| format!(", access='{access}'")).unwrap_or_default();
        Ok(format!("ApprovalRequest({} {about}{access})", self.kind()))
    }
}

/// Receiver of the answer; the first one counts.
#[pyclass(frozen, name = "_ApprovalReply", module = "nono_py._nono_py")]
#[derive(Debug)]
pub(crate) struct ApprovalReply {
    to: Mutex<Option<Sender<PyResult<Verdict>>>>,
}

impl ApprovalReply {
    fn say(&self, verdict: PyResult<Verdict>) {
        let to = self.to.lock().unwrap_or_else(PoisonError::into_inner).take();
        // If the receiver is gone, the answer came too late and the request was denied.
        let _ = to.map(|to| to.send(verdict));
    }
}

#[pymethods]
impl ApprovalReply {
    fn answer(&self, said: Bound<'_, PyAny>) {
        self.say(verdict(&said));
    }

    fn fail(&self, error: Bound<'_, PyAny>) {
        self.say(Err(PyErr::from_value(error)));
    }
}

/// Decision that an answer stands for.
fn verdict(said: &Bound<'_, PyAny>) -> PyResult<Verdict> {
    if let Ok(yes) = said.cast::<PyBool>() {
        return Ok(if yes.is_true() { Verdict::Allow(Scope::Once) } else { Verdict::Deny });
    }
    let meaning = "True, False, \"once\", \"session\", \"directory\", \"deny\" or \"never\"";
    let Ok(word) = said.extract::<String>() else {
        let what = said.get_type().name()?;
        return Err(PyTypeError::new_err(format!("approve() must return {meaning}, not {what}")));
    };
    match word.as_str() {
        "once" => Ok(Verdict::Allow(Scope::Once)),
        "session" | "always" => Ok(Verdict::Allow(Scope::Session)),
        "directory" => Ok(Verdict::Allow(Scope::Directory)),
        "deny" => Ok(Verdict::Deny),
        "never" => Ok(Verdict::Never),
        _ => Err(PyValueError::new_err(format!("approve() must return {meaning}, not {word:?}"))),
    }
}

/// Exceptions of a callable: its requests were denied, and the report of the run has them.
pub(super) type Failures = Arc<Mutex<Vec<PyErr>>>;

/// Approver that calls a Python callable.
pub(super) struct Callable {
    pub(super) approve: Py<PyAny>,
    pub(super) patience: Option<Duration>,
    pub(super) live: TaskProgress,
    pub(super) failures: Failures,
}

impl Callable {
    /// Calls the callable in a daemon thread, for which the interpreter does not wait at its end.
    fn put(&self, question: &Question) -> PyResult<Receiver<PyResult<Verdict>>> {
        let (to, from) = channel();
        Python::attach(|py| {
            let request = ApprovalRequest { question: question.clone() };
            let reply = ApprovalReply { to: Mutex::new(Some(to)) };
            let ask = py.import("nono_py._session")?.getattr("_ask")?;
            ask.call1((self.approve.bind(py), request, reply)).map(drop)
        })?;
        Ok(from)
    }

    fn failed(&self, why: impl Into<String>) -> ApprovalError {
        ApprovalError::Failed { backend: self.name(), why: why.into() }
    }

    fn raised(&self, error: PyErr) -> ApprovalError {
        let why = error.to_string();
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).push(error);
        self.failed(why)
    }
}

impl ApprovalBackend for Callable {
    fn name(&self) -> String {
        "python".to_owned()
    }

    fn decide(&self, question: &Question, waiting: &dyn Waiting) -> Result<ApprovalAnswer, ApprovalError> {
        let answer = self.put(question).map_err(|error| self.raised(error))?;
        let deadline = self.patience.and_then(|patience| Instant::now().checked_add(patience));
        loop {
            match answer.recv_timeout(LOOK) {
                Ok(Ok(verdict)) => return Ok(ApprovalAnswer::new(verdict, self.name())),
                Ok(Err(error)) => return Err(self.raised(error)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.failed("it ended without an answer")),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.live.is_cancelled() || !waiting.still_wanted() {
                return Err(ApprovalError::Withdrawn);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(self.failed("there was no answer in time"));
            }
        }
    }
}
