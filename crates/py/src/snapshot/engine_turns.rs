//! Exclusive use of one engine by several threads, which wait for it without the interpreter.
//!
//! A forked process has the engine's memory, but none of its threads: it opens an engine of its own, and the copy is
//! leaked, because ending it would wait for a thread that does not exist.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nono::snapshot::{ExclusionConfig, Limits, ManagerOptions, SnapshotManager};
use pyo3::prelude::*;

use super::error::raise;
use crate::blocking::TaskProgress;
use crate::error::{Raise, SnapshotError, cancelled};

/// Interval at which a waiting thread checks for cancellation.
const LOOK: Duration = Duration::from_millis(20);

/// Arguments for opening a manager.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) session: PathBuf,
    /// Tracked paths, resolved.
    pub(crate) tracked: Vec<PathBuf>,
    pub(crate) exclusion: ExclusionConfig,
    pub(crate) limits: Limits,
    pub(crate) options: ManagerOptions,
}

impl Opening {
    fn open(&self, live: &TaskProgress) -> PyResult<SnapshotManager> {
        let Opening { session, tracked, exclusion, limits, options } = self.clone();
        SnapshotManager::observed(session, tracked, exclusion, limits, options, live.clone()).map_err(raise)
    }
}

#[derive(Debug)]
pub(crate) struct EngineTurn {
    opening: Opening,
    slot: Mutex<EngineSlot>,
    free: Condvar,
}

#[derive(Debug)]
struct EngineSlot {
    /// Id of the process that has the engine's threads.
    process: u32,
    /// `None` while another thread uses it.
    manager: Option<SnapshotManager>,
    closed: bool,
}

impl EngineTurn {
    /// Opens the engine, and returns its roots too.
    pub(crate) fn open(mut opening: Opening, live: &TaskProgress) -> PyResult<(EngineTurn, Vec<PathBuf>)> {
        let mut manager = opening.open(live)?;
        manager.observe(());
        let roots = manager.roots().to_vec();
        // Absolute, for reopening from another working directory.
        manager.session().dir().clone_into(&mut opening.session);
        let slot =
            Mutex::new(EngineSlot { process: std::process::id(), manager: Some(manager), closed: false });
        Ok((EngineTurn { opening, slot, free: Condvar::new() }, roots))
    }

    pub(crate) fn session(&self) -> &PathBuf {
        &self.opening.session
    }

    /// Runs work with exclusive use of the engine.
    pub(crate) fn with<T>(
        &self,
        live: &TaskProgress,
        work: impl FnOnce(&mut SnapshotManager) -> PyResult<T>,
    ) -> PyResult<T> {
        let mut taken = TakenEngine { turn: self, manager: Some(self.take(live)?) };
        let Some(manager) = taken.manager.as_mut() else { return Err(cancelled()) };
        manager.observe(live.clone());
        work(manager)
    }

    /// Closes the engine, after settling what it captured if `settle` is set.
    pub(crate) fn close(&self, live: &TaskProgress, settle: bool) -> PyResult<()> {
        if !self.lock().closed {
            if settle {
                self.with(live, |manager| manager.settle().map(drop).map_err(raise))?;
            }
            let manager = self.take(live)?;
            self.lock().closed = true;
            self.free.notify_all();
            drop(manager);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, EngineSlot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, live: &TaskProgress) -> PyResult<SnapshotManager> {
        let mut slot = self.lock();
        loop {
            if slot.closed {
                let error = Raise::new("closed", "this manager is closed").about(self.session());
                return Err(error.as_a::<SnapshotError>());
            }
            if slot.process != std::process::id() {
                std::mem::forget(slot.manager.take());
                slot.manager = Some(self.opening.open(live)?);
                slot.process = std::process::id();
            }
            if let Some(manager) = slot.manager.take() {
                return Ok(manager);
            }
            if live.is_cancelled() {
                return Err(cancelled());
            }
            slot = self.free.wait_timeout(slot, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Guard that returns the engine, also on a panic.
struct TakenEngine<'a> {
    turn: &'a EngineTurn,
    manager: Option<SnapshotManager>,
}

impl Drop for TakenEngine<'_> {
    fn drop(&mut self) {
        if let Some(manager) = &mut self.manager {
            manager.observe(());
        }
        self.turn.lock().manager = self.manager.take();
        self.turn.free.notify_one();
    }
}

impl Drop for EngineTurn {
    fn drop(&mut self) {
        let slot = self.slot.get_mut().unwrap_or_else(PoisonError::into_inner);
        let manager = slot.manager.take();
        if slot.process != std::process::id() {
            std::mem::forget(manager);
            return;
        }
        // Ending waits for the engine's thread, so the interpreter is released, unless Python is shutting down.
        let mut manager = Some(manager);
        let _ = Python::try_attach(|py| {
            let manager = manager.take();
            py.detach(|| drop(manager));
        });
    }
}
