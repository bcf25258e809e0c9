//! Threads for calls that may take long, in bounded number.
//!
//! A connection made on the command's behalf waits as long as the command's own would: minutes, if the peer does not
//! answer. It cannot be ended sooner, since whether a socket blocks is a flag of the open file that the command shares.
//! Such a thread may therefore outlive the process that asked; the bound on their number keeps that harmless.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of slow calls at once.
const AT_ONCE: usize = 512;
/// Stack size of such a thread: they do little, and there may be many.
const STACK: usize = 256 * 1024;

#[derive(Debug, Default)]
pub(crate) struct BoundedThreads {
    busy: Arc<AtomicUsize>,
}

/// One of the slots, until it is dropped.
struct WorkerPermit(Arc<AtomicUsize>);

impl Drop for WorkerPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl BoundedThreads {
    /// Runs `work` on a thread of its own. `false`: it will not run, there are too many already.
    pub(crate) fn take_on(&self, work: impl FnOnce() + Send + 'static) -> bool {
        let Some(place) = self.place() else { return false };
        let with_place = move || {
            work();
            drop(place);
        };
        let thread = std::thread::Builder::new().name("nono-behalf".to_owned()).stack_size(STACK);
        thread.spawn(with_place).is_ok()
    }

    fn place(&self) -> Option<WorkerPermit> {
        let one_more = |busy: usize| (busy < AT_ONCE).then_some(busy + 1);
        self.busy.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        Some(WorkerPermit(Arc::clone(&self.busy)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn no_more_than_at_once_threads_run() {
        let crew = BoundedThreads::default();
        let (done, wait) = channel::<()>();
        let wait = Arc::new(std::sync::Mutex::new(wait));
        let (told, tells) = channel();
        for _ in 0..AT_ONCE {
            let (wait, told) = (Arc::clone(&wait), told.clone());
            assert!(crew.take_on(move || {
                wait.lock().unwrap().recv().ok();
                told.send(()).ok();
            }));
        }
        assert!(!crew.take_on(|| {}));
        done.send(()).unwrap();
        tells.recv().unwrap();
        // The slot is free a moment after the work is done.
        while !crew.take_on(|| {}) {
            std::thread::yield_now();
        }
        drop(done);
    }
}
