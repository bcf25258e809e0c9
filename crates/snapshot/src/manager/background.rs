//! Syncs and then compresses in the background after a snapshot, at a low priority. It can be stopped between any two
//! files, and is when the manager is dropped; the next manager continues.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use super::upkeep::{SettleReport, settle};
use super::{Result, SnapshotManager};

#[derive(Debug, Default)]
pub(super) struct Background {
    cancel: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<SettleReport>>>,
}

impl Background {
    fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Stop it, and wait until it has stopped.
    pub(super) fn stop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
        self.wait();
        self.cancel.store(false, Ordering::Relaxed);
    }

    /// Wait for it, and return its result; `None` if it was not running.
    pub(super) fn wait(&mut self) -> Option<Result<SettleReport>> {
        // A panic was reported by its thread; the store is as sound as after a kill.
        self.thread.take().and_then(|thread| thread.join().ok())
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop();
    }
}

impl SnapshotManager {
    /// Wait for settling in the background and return its result; `None` if it was not running. A failure is retried
    /// after the next snapshot, or by [`SnapshotManager::settle`].
    pub fn wait_settled(&mut self) -> Option<Result<SettleReport>> {
        self.background.wait()
    }

    /// Start settling, unless it is running or left to the caller.
    pub(super) fn settle_in_background(&mut self) {
        if self.options.settle_by_hand || self.background.is_running() {
            return;
        }
        self.background.wait();
        let (store, session) = (self.store.clone(), self.session.clone());
        let cancel = self.background.cancel.clone();
        let work = move || {
            nono_sys::process::low_priority();
            settle(&store, &session, &|| cancel.load(Ordering::Relaxed), &())
        };
        // If no thread can be started, the next operation settles.
        self.background.thread = std::thread::Builder::new().name("nono-settle".to_owned()).spawn(work).ok();
    }
}
