//! Long work on a separate thread, while the caller's thread waits without the interpreter.
//!
//! The waiting thread checks for Ctrl-C, reports progress, and handles a [`Cancel`]. So the engine never takes the
//! interpreter, a callback runs in the thread of the call, and other Python threads go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use nono::snapshot::Observer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error::{Cancelled, NonoError, Raise, cancelled};
use crate::panic_guard::bug;

/// Interval at which the waiting thread checks for Ctrl-C and reports progress.
const LOOK: Duration = Duration::from_millis(50);

/// Cancels long work that was started with it, from any thread.
#[pyclass(frozen, from_py_object, module = "nono_py")]
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel {
    wanted: Arc<AtomicBool>,
}

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Cancel {
        Cancel::default()
    }

    /// Cancel the work at the next safe point. It raises `Cancelled`.
    fn cancel(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Whether `cancel()` was called.
    #[getter]
    fn is_cancelled(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    fn __repr__(&self) -> String {
        format!("Cancel(is_cancelled={})", if self.is_cancelled() { "True" } else { "False" })
    }
}

/// Callback as an argument. It is called as `progress(done, total)`; a total of 0 is not known yet.
#[derive(Debug)]
pub(crate) struct Progress(Py<PyAny>);

impl<'a, 'py> FromPyObject<'a, 'py> for Progress {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Progress> {
        if !object.is_callable() {
            return Err(PyTypeError::new_err("progress must be callable, as progress(done, total)"));
        }
        Ok(Progress(object.to_owned().unbind()))
    }
}

/// Progress callback and cancellation of one piece of long work.
#[derive(Debug, Default)]
pub(crate) struct TaskWatch {
    progress: Option<Progress>,
    cancel: Option<Cancel>,
}

impl From<(Option<Progress>, Option<Cancel>)> for TaskWatch {
    fn from((progress, cancel): (Option<Progress>, Option<Cancel>)) -> TaskWatch {
        TaskWatch { progress, cancel }
    }
}

/// Work that is neither watched nor cancelled.
impl From<()> for TaskWatch {
    fn from((): ()) -> TaskWatch {
        TaskWatch::default()
    }
}

/// Shared state of long work and its caller: cancellation and progress. Clones share one state.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskProgress {
    done: Arc<AtomicU64>,
    total: Arc<AtomicU64>,
    cancelled: Arc<AtomicBool>,
    /// Whether cancelling now would leave something half done.
    changing: Arc<AtomicBool>,
}

impl TaskProgress {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed) && !self.changing.load(Ordering::Relaxed)
    }
}

impl Observer for TaskProgress {
    fn progress(&self, done: u64, total: u64) {
        // Several threads report, not always in order. Another total is another stage, which starts anew: a restore
        // scans everything before it knows what to do.
        if self.total.swap(total, Ordering::Relaxed) == total {
            self.done.fetch_max(done, Ordering::Relaxed);
        } else {
            self.done.store(done, Ordering::Relaxed);
        }
    }

    fn cancelled(&self) -> bool {
        self.is_cancelled()
    }

    fn changing(&self) {
        self.changing.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` to its end. It should check [`TaskProgress::is_cancelled`] and return soon after that: then its result is
/// dropped, and the cause is raised (`KeyboardInterrupt`, a callback's exception, `Cancelled`). Work that completed
/// before it saw the cancellation is not undone. `Cancelled` is not raised then, since it would be wrong; an exception
/// of a signal or a callback is, since it would be lost otherwise.
pub(crate) fn long<T: Send>(
    py: Python<'_>,
    watch: impl Into<TaskWatch>,
    work: impl FnOnce(&TaskProgress) -> PyResult<T> + Send,
) -> PyResult<T> {
    long_with(py, watch, TaskProgress::default(), work)
}

/// Like [`long`], with a `live` that the caller shares with others.
pub(crate) fn long_with<T: Send>(
    py: Python<'_>,
    watch: impl Into<TaskWatch>,
    live: TaskProgress,
    work: impl FnOnce(&TaskProgress) -> PyResult<T> + Send,
) -> PyResult<T> {
    let watch = &watch.into();
    if watch.cancel.as_ref().is_some_and(Cancel::is_cancelled) {
        return Err(cancelled());
    }
    let (outcome, stopped) = py.detach(|| {
        std::thread::scope(|scope| {
            let (over, is_over) = channel::<()>();
            let theirs = live.clone();
            let worker = std::thread::Builder::new().spawn_scoped(scope, move || {
                // Dropped when the work ends, however it ends.
                let _over = over;
                work(&theirs)
            });
            let worker = match worker {
                Ok(worker) => worker,
                Err(error) => return (Err(no_thread(&error)), None),
            };
            let stopped = attend(watch, &live, &is_over);
            (worker.join().unwrap_or_else(|panic| Err(bug(&*panic))), stopped)
        })
    });
    match (outcome, stopped) {
        (Ok(value), None) => {
            tell(py, watch, &live)?;
            Ok(value)
        }
        (Ok(value), Some(stopped)) if stopped.is_instance_of::<Cancelled>(py) => Ok(value),
        (_, Some(stopped)) => Err(stopped),
        (Err(error), None) => Err(error),
    }
}

fn no_thread(error: &std::io::Error) -> PyErr {
    Raise::new("no_thread", format!("cannot start a thread: {error}")).as_a::<NonoError>()
}

/// Waits for the end; returns the exception that cancelled it, if any.
fn attend(watch: &TaskWatch, live: &TaskProgress, is_over: &std::sync::mpsc::Receiver<()>) -> Option<PyErr> {
    let mut stopped = None;
    let mut told = (0, 0);
    loop {
        match is_over.recv_timeout(LOOK) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return stopped,
        }
        if stopped.is_some() {
            continue;
        }
        let done = (live.done.load(Ordering::Relaxed), live.total.load(Ordering::Relaxed));
        // While the interpreter shuts down, progress cannot be reported.
        let looked = Python::try_attach(|py| {
            // Has an effect only in the main thread, where Python handles signals.
            py.check_signals()?;
            if done == told { Ok(()) } else { tell(py, watch, live) }
        })
        .unwrap_or(Ok(()));
        told = done;
        let wanted = watch.cancel.as_ref().is_some_and(Cancel::is_cancelled);
        stopped = looked.err().or_else(|| wanted.then(cancelled));
        if stopped.is_some() {
            live.cancelled.store(true, Ordering::Relaxed);
        }
    }
}

fn tell(py: Python<'_>, watch: &TaskWatch, live: &TaskProgress) -> PyResult<()> {
    let Some(Progress(progress)) = &watch.progress else { return Ok(()) };
    let (done, total) = (live.done.load(Ordering::Relaxed), live.total.load(Ordering::Relaxed));
    progress.call1(py, (done, total)).map(drop)
}
