//! Termination signals during the review. The main thread may block, even in a read of a terminal that is gone, so
//! another thread handles them: it restores the terminal and exits.

use std::io;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nono::interrupt::Interrupts;

use super::screen;

/// Interval of checks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// Lock held during an operation that must not be interrupted.
static UNDISTURBED: Mutex<()> = Mutex::new(());

/// Runs an operation that signals do not interrupt.
pub(super) fn undisturbed<T>(work: impl FnOnce() -> T) -> T {
    let _held = UNDISTURBED.lock().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Guard of the signal thread; dropping it restores the previous handling of signals.
#[must_use]
pub(super) struct SignalWatch {
    /// Dropped on the thread that created it, after the other one has ended.
    _interrupts: Arc<Interrupts>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl SignalWatch {
    pub(super) fn start() -> io::Result<SignalWatch> {
        let interrupts = Arc::new(Interrupts::block()?);
        let is_over = Arc::<AtomicBool>::default();
        let (seen, over) = (interrupts.clone(), is_over.clone());
        let thread = thread::Builder::new().name("nono-signals".to_owned()).spawn(move || {
            while !over.load(Ordering::SeqCst) {
                if let Some(signal) = seen.requested() {
                    end(signal);
                }
                thread::park_timeout(LOOK);
            }
        })?;
        Ok(SignalWatch { _interrupts: interrupts, is_over, thread: Some(thread) })
    }
}

/// Exits with the code that a shell reports for the signal.
fn end(signal: i32) {
    undisturbed(|| {
        screen::give_back();
        process::exit(128 + signal);
    });
}

impl Drop for SignalWatch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic of the thread was reported already.
            let _ = thread.join();
        }
    }
}
