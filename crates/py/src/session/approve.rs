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
use nono::json::path as path_shape;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use serde_json::{Value, json};

use crate::blocking::TaskProgress;
use crate::plain::Record;

/// Interval at which the waiting thread checks whether the request is still open.
const LOOK: Duration = Duration::from_millis(50);

/// Request of a command for access beyond its grants.
fn request(question: &Question) -> Record {
    let about = match &question.subject {
        Subject::Access { path, written, access, object, folder, .. } => json!({
            "kind": "access",
            "path": path_shape(path),
            "written": written.as_deref().map(path_shape),
            "access": access.to_string(),
            "object": match object {
                Object::File => "file",
                Object::Directory => "directory",
                Object::New => "new",
            },
            "folder": folder.as_deref().map(path_shape),
        }),
        Subject::Restore { snapshot, paths, .. } => {
            json!({"kind": "restore", "snapshot": snapshot.to_string(), "paths": shapes(paths)})
        }
        Subject::RestoreCheckpoint { project, checkpoint, paths, .. } => json!({
            "kind": "restore_checkpoint",
            "path": path_shape(project),
            "snapshot": checkpoint,
            "paths": shapes(paths),
        }),
        Subject::OpenUrl { url } => json!({"kind": "open_url", "url": url}),
    };
    let mut data = json!({
        "id": question.id, "kind": null, "path": null, "written": null, "access": null, "object": null,
        "folder": null, "snapshot": null, "paths": [], "url": null,
        "program": path_shape(&question.asker.program),
        "pid": question.asker.pid,
        "reason": question.reason,
    });
    if let (Value::Object(data), Value::Object(about)) = (&mut data, about) {
        data.extend(about);
    }
    Record::new("ApprovalRequest", data)
}

fn shapes(paths: &[PathBuf]) -> Vec<Value> {
    paths.iter().map(|path| path_shape(path)).collect()
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
            let reply = ApprovalReply { to: Mutex::new(Some(to)) };
            let ask = py.import("nono_py._session")?.getattr("_ask")?;
            ask.call1((self.approve.bind(py), request(question), reply)).map(drop)
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
