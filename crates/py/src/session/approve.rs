//! A Python callable as the approver of a command's requests.
//!
//! Each request is passed to it in a separate Python thread, while the mediator's thread waits for the decision without
//! the interpreter: a callable that takes too long, or whose requesting program has ended, is not waited for.
//! Everything but a clear yes denies: an exception, an invalid answer, no answer in time.

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
use crate::paths::{self, PathText, texts};
use crate::plain;

/// Interval at which the waiting thread checks whether the request is still open.
const LOOK: Duration = Duration::from_millis(50);

/// Request of a command for access beyond its grants.
///
/// `path` is without links, and is what a yes opens; `reason` and `program` are untrusted text of the command.
#[pyclass(frozen, get_all, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct ApprovalRequest {
    /// Counts up within one run.
    id: u64,
    /// "access", "restore", "restore_checkpoint" or "open_url".
    kind: &'static str,
    /// The requested path, resolved; of a checkpoint: its project. None if the request is about no path.
    path: Option<PathText>,
    /// The path as the command wrote it, if that differs from `path`.
    written: Option<PathText>,
    /// "read", "write" or "read+write".
    access: Option<String>,
    /// Kind of `path`: "file", "directory", or "new" if it does not exist yet.
    object: Option<&'static str>,
    /// The folder that the answer "directory" opens; None if that would be too much.
    folder: Option<PathText>,
    /// The snapshot, or the id of the checkpoint, to be restored.
    snapshot: Option<String>,
    /// The paths to be restored; empty means all of them.
    paths: Vec<PathText>,
    /// The web address to be opened.
    url: Option<String>,
    /// The program that asks.
    program: PathText,
    /// The process that asks.
    pid: u32,
    /// The reason given by the command, if any. Untrusted text.
    reason: Option<String>,
}

impl From<Question> for ApprovalRequest {
    fn from(question: Question) -> ApprovalRequest {
        let mut request = ApprovalRequest {
            id: question.id,
            kind: "access",
            path: None,
            written: None,
            access: None,
            object: None,
            folder: None,
            snapshot: None,
            paths: Vec::new(),
            url: None,
            program: PathText(question.asker.program),
            pid: question.asker.pid,
            reason: question.reason,
        };
        match question.subject {
            Subject::Access { path, written, access, object, folder, .. } => {
                request.path = Some(PathText(path));
                request.written = written.map(PathText);
                request.access = Some(access.to_string());
                request.object = Some(match object {
                    Object::File => "file",
                    Object::Directory => "directory",
                    Object::New => "new",
                });
                request.folder = folder.map(PathText);
            }
            Subject::Restore { snapshot, paths, .. } => {
                request.kind = "restore";
                request.snapshot = Some(snapshot.to_string());
                request.paths = texts(&paths);
            }
            Subject::RestoreCheckpoint { project, checkpoint, paths, .. } => {
                request.kind = "restore_checkpoint";
                request.path = Some(PathText(project));
                request.snapshot = Some(checkpoint);
                request.paths = texts(&paths);
            }
            Subject::OpenUrl { url } => {
                request.kind = "open_url";
                request.url = Some(url);
            }
        }
        request
    }
}

#[pymethods]
impl ApprovalRequest {
    /// All values as a plain dict.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let names = "id kind path written access object folder snapshot paths url program pid reason";
        plain::attributes(slf, names)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let about = match &self.path {
            Some(PathText(path)) => paths::to_python(py, path),
            None => {
                PyString::new(py, self.url.as_ref().or(self.snapshot.as_ref()).map_or("", String::as_str))
            }
        };
        let access = self.access.as_ref().map(|access| format!(", access='{access}'")).unwrap_or_default();
        Ok(format!("ApprovalRequest({} {}{access})", self.kind, about.repr()?))
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
            let request = ApprovalRequest::from(question.clone());
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
