//! Progress of long operations on a terminal, and Ctrl-C as a request to cancel that is checked between steps.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nono::checkpoints::{CheckpointError, CheckpointManager};
use nono::interrupt::Interrupts;
use nono::rollback::{RollbackError, RollbackSession};
use nono::snapshot::{CaptureError, Observer, SnapshotError};

use crate::failure::Failure;
use crate::pager::is_dumb;
use crate::units::grouped;

/// Delay before the bar appears.
const PATIENCE: Duration = Duration::from_millis(300);
const BETWEEN: Duration = Duration::from_millis(100);

/// Progress line on stderr that is overwritten.
#[derive(Debug)]
pub(crate) struct Bar {
    doing: &'static str,
    shown: Mutex<Shown>,
}

#[derive(Debug)]
struct Shown {
    next: Instant,
    width: usize,
}

impl Bar {
    /// None without a capable terminal.
    pub(crate) fn new(doing: &'static str) -> Option<Bar> {
        let shown = Shown { next: Instant::now() + PATIENCE, width: 0 };
        (!is_dumb() && io::stderr().is_terminal()).then(|| Bar { doing, shown: Mutex::new(shown) })
    }

    pub(crate) fn draw(&self, done: u64, total: u64) {
        // If another thread draws now, this update can be skipped.
        let Ok(mut shown) = self.shown.try_lock() else { return };
        let now = Instant::now();
        if now < shown.next {
            return;
        }
        shown.next = now + BETWEEN;
        shown.put(&line(self.doing, done, total));
    }
}

impl Shown {
    fn put(&mut self, text: &str) {
        // The terminal may be gone: nothing can be reported.
        let _ = write!(io::stderr(), "\r{text:<width$}", width = self.width);
        self.width = text.len();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        let shown = self.shown.get_mut().unwrap_or_else(PoisonError::into_inner);
        if shown.width > 0 {
            shown.put("");
            // As in `put`.
            let _ = write!(io::stderr(), "\r");
        }
    }
}

/// Text of the line. A total of 0 means unknown.
fn line(doing: &str, done: u64, total: u64) -> String {
    const WIDTH: u64 = 24;
    if total == 0 {
        return format!("[nono] {doing}: {}", grouped(done));
    }
    let done = done.min(total);
    let part = |of: u64| u64::try_from(u128::from(done) * u128::from(of) / u128::from(total)).unwrap_or(of);
    let bar: String = (0..WIDTH).map(|at| if at < part(WIDTH) { '#' } else { '.' }).collect();
    format!("[nono] {doing} [{bar}] {:>3}% of {}", part(100), grouped(total))
}

/// Observer of the snapshot engine: draws the bar and cancels on a signal.
#[derive(Debug)]
pub(crate) struct ProgressObserver {
    bar: Option<Bar>,
    interrupts: Arc<Interrupts>,
}

impl Observer for ProgressObserver {
    fn progress(&self, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.draw(done, total);
        }
    }

    fn cancelled(&self) -> bool {
        self.interrupts.requested().is_some()
    }
}

/// Result of an operation, and the signal that asked to cancel it.
#[derive(Debug)]
pub(crate) struct Worked<T> {
    pub(crate) value: T,
    pub(crate) signal: Option<i32>,
}

/// Worker that reports its progress to an observer.
pub(crate) trait ReportsProgress {
    fn watch(&mut self, observer: impl Observer + Send + 'static);
}

impl ReportsProgress for RollbackSession {
    fn watch(&mut self, observer: impl Observer + Send + 'static) {
        self.manager().observe(observer);
    }
}

impl ReportsProgress for CheckpointManager {
    fn watch(&mut self, observer: impl Observer + Send + 'static) {
        self.observe(observer);
    }
}

/// Runs an operation with progress, and returns its result whether or not it was cancelled.
pub(crate) fn attempt<W: ReportsProgress, T>(
    worker: &mut W,
    doing: &'static str,
    work: impl FnOnce(&mut W) -> T,
) -> io::Result<Worked<T>> {
    let interrupts = Arc::new(Interrupts::block()?);
    worker.watch(ProgressObserver { bar: Bar::new(doing), interrupts: Arc::clone(&interrupts) });
    let value = work(worker);
    // Clears the line, and releases the other reference to the signals.
    worker.watch(());
    Ok(Worked { value, signal: interrupts.requested() })
}

/// Runs an operation that takes its observer as an argument; a cancelled one is a failure.
pub(crate) fn observed<T, E: MayBeCancelled>(
    doing: &'static str,
    work: impl FnOnce(Arc<dyn Observer + Send>) -> Result<T, E>,
) -> Result<Result<T, E>, Failure> {
    let interrupts = Arc::new(Interrupts::block()?);
    let watcher = Arc::new(ProgressObserver { bar: Bar::new(doing), interrupts: Arc::clone(&interrupts) });
    match (work(watcher), interrupts.requested()) {
        (Err(error), Some(signal)) if error.is_cancelled() => Err(Failure::interrupted(signal)),
        (worked, _) => Ok(worked),
    }
}

/// Runs an operation with progress; one that was cancelled before anything was changed is a failure.
pub(crate) fn watched<W: ReportsProgress, T, E: Into<Failure> + MayBeCancelled>(
    worker: &mut W,
    doing: &'static str,
    work: impl FnOnce(&mut W) -> Result<T, E>,
) -> Result<Worked<T>, Failure> {
    let Worked { value, signal } = attempt(worker, doing, work)?;
    match (value, signal) {
        (Err(error), Some(signal)) if error.is_cancelled() => Err(Failure::interrupted(signal)),
        (Err(error), _) => Err(error.into()),
        (Ok(value), signal) => Ok(Worked { value, signal }),
    }
}

/// Error that may be a cancellation.
pub(crate) trait MayBeCancelled {
    fn is_cancelled(&self) -> bool;
}

impl MayBeCancelled for SnapshotError {
    fn is_cancelled(&self) -> bool {
        matches!(self, SnapshotError::Capture(CaptureError::Cancelled))
    }
}

impl MayBeCancelled for RollbackError {
    fn is_cancelled(&self) -> bool {
        matches!(self, RollbackError::Snapshot(error) if error.is_cancelled())
    }
}

impl MayBeCancelled for CheckpointError {
    fn is_cancelled(&self) -> bool {
        matches!(self, CheckpointError::Snapshot(error) if error.is_cancelled())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_lines_show_count_or_percentage() {
        assert_eq!(line("looking", 1234, 0), "[nono] looking: 1,234");
        assert_eq!(line("restoring", 0, 10), "[nono] restoring [........................]   0% of 10");
        assert_eq!(line("restoring", 5, 10), "[nono] restoring [############............]  50% of 10");
        assert_eq!(
            line("restoring", u64::MAX, u64::MAX - 1),
            "[nono] restoring [########################] 100% of 18,446,744,073,709,551,614"
        );
    }
}
