//! Signals that ask for an end while the screen is taken. The main thread may be anywhere, even in a read of a terminal
//! that is gone, so another one looks at them: it gives the terminal back and ends the process.

use std::io;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nono::interrupt::Interrupts;

use super::screen;

/// How often it looks.
const LOOK: Duration = Duration::from_millis(50);

/// Held while something is done that should not be left half.
static UNDISTURBED: Mutex<()> = Mutex::new(());

/// Do this to its end, whatever signal comes.
pub(super) fn undisturbed<T>(work: impl FnOnce() -> T) -> T {
    let _held = UNDISTURBED.lock().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Ends with the value: then signals do what they did before.
#[must_use]
pub(super) struct Watch {
    /// Dropped by the thread that made it, after the other one is gone.
    _interrupts: Arc<Interrupts>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(super) fn start() -> io::Result<Watch> {
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
        Ok(Watch { _interrupts: interrupts, is_over, thread: Some(thread) })
    }
}

/// As a shell would see it.
fn end(signal: i32) {
    undisturbed(|| {
        screen::give_back();
        process::exit(128 + signal);
    });
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It has panicked at most, and that was said.
            let _ = thread.join();
        }
    }
}
