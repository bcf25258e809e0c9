//! Threads for what may take long, a bounded number of them.
//!
//! A connection that is made on behalf waits as long as the command's own would: minutes, where nobody answers. Nothing
//! can be done to end it sooner, since whether a socket waits is written on the open file that the command shares. So
//! such a thread may outlive whoever asked; their number is what keeps that harmless.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many calls may take their time at once.
const AT_ONCE: usize = 512;
/// They do little, and there may be many.
const STACK: usize = 256 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Crew {
    busy: Arc<AtomicUsize>,
}

/// One of the places, until it is dropped.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Crew {
    /// Do `work` on a thread of its own. `false`: it will not be done, there are too many already.
    pub(crate) fn take_on(&self, work: impl FnOnce() + Send + 'static) -> bool {
        let Some(place) = self.place() else { return false };
        let with_place = move || {
            work();
            drop(place);
        };
        let thread = std::thread::Builder::new().name("nono-behalf".to_owned()).stack_size(STACK);
        thread.spawn(with_place).is_ok()
    }

    fn place(&self) -> Option<Place> {
        let one_more = |busy: usize| (busy < AT_ONCE).then_some(busy + 1);
        self.busy.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok()?;
        Some(Place(Arc::clone(&self.busy)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn so_many_and_no_more_until_one_is_done() {
        let crew = Crew::default();
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
        // The place is free a moment after the work is done.
        while !crew.take_on(|| {}) {
            std::thread::yield_now();
        }
        drop(done);
    }
}
