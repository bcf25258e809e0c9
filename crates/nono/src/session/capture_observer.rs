//! Observer of a run's captures: shows progress, and cancels on a signal or on the caller's request.

use std::sync::Arc;

use nono_snapshot::Observer;
use nono_sys::process::Signals;

use super::observer::RunObserver;
use crate::interrupt::Interrupts;

pub(super) struct Capturing {
    interrupts: Interrupts,
    observer: Arc<dyn RunObserver>,
    /// Whether the observer can cancel, too.
    heeds_observer: bool,
}

impl Capturing {
    pub(super) fn new(signals: Arc<Signals>, observer: Arc<dyn RunObserver>) -> Capturing {
        Capturing { interrupts: Interrupts::over(signals), observer, heeds_observer: true }
    }

    /// For the capture after the command's end: cancelling the command does not cancel the record of what it did.
    pub(super) fn last(signals: Arc<Signals>, observer: Arc<dyn RunObserver>) -> Capturing {
        Capturing { heeds_observer: false, ..Capturing::new(signals, observer) }
    }

    pub(super) fn signal(&self) -> Option<i32> {
        self.interrupts.requested()
    }
}

impl Observer for Capturing {
    fn progress(&self, done: u64, _total: u64) {
        self.observer.capturing(done);
    }

    fn cancelled(&self) -> bool {
        self.signal().is_some() || self.heeds_observer && self.observer.cancelled()
    }
}
