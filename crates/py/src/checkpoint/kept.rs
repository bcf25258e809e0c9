//! `CheckpointManager`: the library's manager, for one call at a time.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use nono::checkpoints::{CheckpointManager as Library, Config, Host};
use pyo3::prelude::*;

use super::args::Who;
use super::values::CheckpointResult;
use super::work::{self, Taking};
use crate::error::{Cancelled, Raise};
use crate::long::{Live, Watch, long};

/// How often one who waits looks whether it still should.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Kept {
    /// Nothing while somebody has it.
    manager: Mutex<Option<Library>>,
    free: Condvar,
}

impl Kept {
    pub(super) fn new(manager: Library) -> Kept {
        Kept { manager: Mutex::new(Some(manager)), free: Condvar::new() }
    }

    /// Wait for it, and have it for `work`. It is watched as the call is.
    pub(super) fn with<T>(&self, live: &Live, work: impl FnOnce(&mut Library) -> PyResult<T>) -> PyResult<T> {
        let mut manager = self.take(live)?;
        manager.observe(live.clone());
        // A panic goes on to whoever asked, after the manager is back: it has nothing of an operation's state.
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut manager)));
        manager.observe(());
        *self.manager.lock().unwrap_or_else(PoisonError::into_inner) = Some(manager);
        self.free.notify_one();
        outcome.unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn take(&self, live: &Live) -> PyResult<Library> {
        let mut place = self.manager.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(manager) = place.take() {
                return Ok(manager);
            }
            if live.is_cancelled() {
                // The interpreter is not waited for with the lock in hand.
                drop(place);
                return Err(Raise::new("cancelled", "cancelled").as_a::<Cancelled>());
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
/// The other settings are those of `[checkpoints]` in `config.toml`, and what it says where they are None; `enabled`
/// is True for whoever makes a manager. One manager may be used by several threads: they wait for each other.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(super) struct CheckpointManager {
    pub(super) kept: Kept,
    pub(super) who: Who,
    pub(super) host: Host,
    pub(super) config: Config,
}

impl CheckpointManager {
    /// Work of any length.
    pub(super) fn run<T: Send>(
        &self,
        py: Python<'_>,
        watch: &Watch,
        work: impl FnOnce(&mut Library, &Live) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        long(py, watch, |live| self.kept.with(live, |library| work(library, live)))
    }

    /// Work that nobody watches.
    pub(super) fn quick<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Library) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        self.run(py, &Watch::default(), |library, _| work(library))
    }

    pub(super) fn ensure(
        &self,
        py: Python<'_>,
        watch: &Watch,
        taking: &Taking,
    ) -> PyResult<CheckpointResult> {
        self.run(py, watch, |library, live| work::ensure(library, taking, &|| live.is_cancelled()))
    }
}
