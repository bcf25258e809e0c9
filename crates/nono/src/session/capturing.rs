//! What a capture of a run is watched by: somebody who shows how far it is, and the signals that end it.

use std::sync::Arc;

use nono_snapshot::Observer;
use nono_sys::process::Signals;

use super::RunObserver;
use crate::interrupt::Interrupts;

pub(super) struct Capturing {
    interrupts: Interrupts,
    observer: Arc<dyn RunObserver>,
}

impl Capturing {
    pub(super) fn new(signals: Arc<Signals>, observer: Arc<dyn RunObserver>) -> Capturing {
        Capturing { interrupts: Interrupts::over(signals), observer }
    }

    /// The signal that ended the capture, if one did.
    pub(super) fn signal(&self) -> Option<i32> {
        self.interrupts.requested()
    }
}

impl Observer for Capturing {
    fn progress(&self, done: u64, _total: u64) {
        self.observer.capturing(done);
    }

    fn cancelled(&self) -> bool {
        self.signal().is_some()
    }
}
