//! `CheckpointManager`: the library's manager, for one call at a time.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use nono::checkpoints::{CheckpointManager as Library, Config, Host};
use pyo3::prelude::*;

use super::args::Who;
use super::work::{self, Taking};
use crate::blocking::{TaskProgress, TaskWatch, long};
use crate::error::cancelled;
use crate::plain::Record;

/// Interval at which a waiting thread checks for cancellation.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct SharedManager {
    /// `None` while another thread uses it.
    manager: Mutex<Option<Library>>,
    free: Condvar,
}

impl SharedManager {
    pub(super) fn new(manager: Library) -> SharedManager {
        SharedManager { manager: Mutex::new(Some(manager)), free: Condvar::new() }
    }

    /// Waits for the manager and runs `work` with it, observed like the call.
    pub(super) fn with<T>(
        &self,
        live: &TaskProgress,
        work: impl FnOnce(&mut Library) -> PyResult<T>,
    ) -> PyResult<T> {
        let mut manager = self.take(live)?;
        manager.observe(live.clone());
        // A panic continues to the caller after the manager is put back: it holds no state of an operation.
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut manager)));
        manager.observe(());
        *self.manager.lock().unwrap_or_else(PoisonError::into_inner) = Some(manager);
        self.free.notify_one();
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn take(&self, live: &TaskProgress) -> PyResult<Library> {
        let mut place = self.manager.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(manager) = place.take() {
                return Ok(manager);
            }
            if live.is_cancelled() {
                // The lock is released before waiting for the interpreter.
                drop(place);
                return Err(cancelled());
            }
            let waited = self.free.wait_timeout(place, LOOK);
            place = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Checkpoints of all projects of one state folder: taken before risky steps, listed, compared, restored, undone.
///
/// `state_dir` is nono's own folder (NONO_HOME, or `~/.nono`), which is shared with the command `nono checkpoints`;
/// `home` the home folder, which is never a project. `agent` and `session` (a conversation of it) say on whose behalf.
/// The other settings are those of `[checkpoints]` in `config.toml`, which applies where they are None; `enabled` is
/// True by default. One manager may be used by several threads: they wait for each other.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct CheckpointManager {
    pub(super) kept: SharedManager,
    pub(super) who: Who,
    pub(super) host: Host,
    pub(super) config: Config,
}

impl CheckpointManager {
    /// Runs work of any length, with progress and cancellation.
    pub(super) fn run<T: Send>(
        &self,
        py: Python<'_>,
        watch: impl Into<TaskWatch>,
        work: impl FnOnce(&mut Library, &TaskProgress) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        long(py, watch, |live| self.kept.with(live, |library| work(library, live)))
    }

    /// Runs short work without progress or cancellation.
    pub(super) fn quick<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Library) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        self.run(py, (), |library, _| work(library))
    }

    pub(super) fn ensure(
        &self,
        py: Python<'_>,
        watch: impl Into<TaskWatch>,
        taking: &Taking,
    ) -> PyResult<Record> {
        self.run(py, watch, |library, live| work::ensure(library, taking, &|| live.is_cancelled()))
    }
}
