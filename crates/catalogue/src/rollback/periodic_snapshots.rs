//! Snapshots while the command runs, in a thread of their own and at the lowest priority.
//!
//! The watcher reports that something changed; a snapshot is taken after a quiet period, or after the interval when
//! there is none. Each snapshot is a full scan and finds what the watcher missed: only its timing depends on the
//! watcher. Where not everything can be watched, scans run at the interval.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nono_snapshot::{CaptureError, Manifest, SnapshotError};
use nono_supervisor::Watcher;
use nono_sys::{process, wait};

use super::running::{SharedSession, SnapshotWork, TrackedSession};

/// Quiet period after a change before a snapshot is taken.
const QUIET: Duration = Duration::from_secs(2);
/// Longest time from a change to its snapshot, by default.
const INTERVAL: Duration = Duration::from_secs(30);
/// Interval at which the event queue is read once something changed. Events pile up meanwhile instead of waking this
/// thread for each; a queue overflow does no harm.
const TICK: Duration = Duration::from_millis(250);
/// Delay before watching starts: watching thousands of directories is not worth it for a command that ends sooner.
const HEAD_START: Duration = Duration::from_millis(100);
/// A scan uses at most one part in this many of the time.
const SHARE: u32 = 20;

/// Handle to the watching thread.
#[derive(Debug)]
pub struct Watching {
    thread: JoinHandle<Vec<String>>,
    /// Closed to end the thread.
    stop: UnixStream,
    ends: Ends,
}

/// Ends the session for all other threads when dropped.
#[derive(Debug)]
struct Ends(Arc<SharedSession>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Watching {
    pub(super) fn start(
        work: SnapshotWork,
        baseline: Manifest,
        interval: Option<Duration>,
    ) -> io::Result<Watching> {
        let (stop, stops) = UnixStream::pair()?;
        let (shared, wakes) = SharedSession::new(work)?;
        let ends = Ends(shared.clone());
        let thread = std::thread::Builder::new().name("nono-watch".to_owned()).spawn(move || {
            let (interval, cost) = (interval.unwrap_or(INTERVAL), Duration::ZERO);
            let mut watch = FolderWatch { shared, stops, wakes, interval, cost, problems: Vec::new() };
            // Without the watcher only the snapshots in between are lost: the final one is taken in any case.
            if let Err(error) = watch.turn(baseline) {
                watch.problems.push(format!("no snapshots while the command ran: {error}"));
            }
            watch.problems
        })?;
        Ok(Watching { thread, stop, ends })
    }

    /// Handle for callers that need the session while it runs.
    pub fn live(&self) -> TrackedSession {
        TrackedSession(self.ends.0.clone())
    }

    /// Stop the thread; a snapshot in progress is cancelled. None if a thread panicked.
    pub(super) fn stop(self) -> Option<SnapshotWork> {
        let Watching { thread, stop, ends } = self;
        ends.0.stop();
        drop(stop);
        let problems = thread.join().ok()?;
        let mut work = ends.0.end()?;
        work.problems.splice(0..0, problems);
        Some(work)
    }
}

struct FolderWatch {
    shared: Arc<SharedSession>,
    stops: UnixStream,
    wakes: UnixStream,
    interval: Duration,
    /// Cost of the last scan.
    cost: Duration,
    problems: Vec<String>,
}

impl FolderWatch {
    fn turn(&mut self, baseline: Manifest) -> Result<(), SnapshotError> {
        process::low_priority();
        let failed = |source| SnapshotError::from(CaptureError::Io { path: "inotify".into(), source });
        let head_start = HEAD_START.min(self.interval);
        if wait::poll(&[Some((self.stops.as_fd(), false))], Some(head_start)).map_err(failed)?[0] {
            return Ok(());
        }
        let mut watcher = Watcher::new().map_err(failed)?;
        self.watch(&mut watcher, &baseline)?;
        drop(baseline);
        // Finds changes made before everything was watched.
        let mut dirty = true;
        loop {
            // A capture needs tens of megabytes for a moment, and the next one may be far off.
            process::give_back_memory();
            if !dirty && self.idle(&watcher).map_err(failed)? {
                return Ok(());
            }
            self.watch_joined(&mut watcher)?;
            if self.settle(&watcher).map_err(failed)? {
                return Ok(());
            }
            dirty = self.snapshot(&mut watcher)?;
        }
    }

    /// Wait for the first change; true at the end of the session. Where not everything is watched, wait no longer than
    /// the interval. An added root counts as a change: it was added to be written.
    fn idle(&self, watcher: &Watcher) -> io::Result<bool> {
        let timeout = (!watcher.is_complete()).then_some(self.interval);
        let fds = [self.stops.as_fd(), watcher.as_fd(), self.wakes.as_fd()];
        let ready = wait::poll(&fds.map(|fd| Some((fd, false))), timeout)?;
        Ok(ready[0])
    }

    /// Wait until it is quiet, but no longer than the interval; true at the end of the session.
    fn settle(&self, watcher: &Watcher) -> io::Result<bool> {
        let quiet = QUIET.min(self.interval);
        let first = Instant::now();
        let mut last = first;
        loop {
            let rest =
                quiet.saturating_sub(last.elapsed()).min(self.interval.saturating_sub(first.elapsed()));
            let least = (self.cost * SHARE).saturating_sub(first.elapsed());
            let rest = rest.max(least);
            if rest.is_zero() {
                return Ok(false);
            }
            if wait::poll(&[Some((self.stops.as_fd(), false))], Some(rest.min(TICK)))?[0] {
                return Ok(true);
            }
            if watcher.changed()? {
                last = Instant::now();
            }
        }
    }

    /// Take a snapshot if something differs. True to scan again: directories were newly watched, or the snapshot was
    /// cancelled for an urgent caller.
    fn snapshot(&mut self, watcher: &mut Watcher) -> Result<bool, SnapshotError> {
        let began = Instant::now();
        // The session has ended; the next poll reports it.
        let Ok((taken, cost)) = self.shared.patiently(SnapshotWork::next) else { return Ok(true) };
        self.cost = cost;
        match taken {
            Ok(None) => Ok(false),
            Err(SnapshotError::Capture(CaptureError::Cancelled)) => Ok(true),
            Ok(Some(manifest)) => {
                let again = self.watch(watcher, &manifest)?;
                let thinned = self.shared.patiently(|work| work.thin(manifest.number, began));
                thinned.unwrap_or(Ok(()))?;
                Ok(again)
            }
            // A tree that is being removed may fail once and succeed the next time; the final snapshot reports lasting
            // errors.
            Err(error) => {
                self.problems.push(format!("a snapshot while the command ran failed: {error}"));
                self.problems.truncate(3);
                Ok(false)
            }
        }
    }

    /// Watch all directories of a snapshot; true if some of them were not watched before.
    fn watch(&self, watcher: &mut Watcher, manifest: &Manifest) -> Result<bool, SnapshotError> {
        let directories = manifest.directories()?;
        let roots = manifest.state.roots.iter().map(|root| &*root.path);
        let places = roots.chain(directories.iter().map(|path| &**path));
        Ok(watcher.watch(places, &|| self.shared.signals.is_stopped()))
    }

    /// Watch added roots. The last manifest includes all roots added before it.
    fn watch_joined(&mut self, watcher: &mut Watcher) -> Result<(), SnapshotError> {
        let mut bytes = [0u8; 64];
        // Drained or closed: nothing to do in either case.
        while matches!(self.wakes.read(&mut bytes), Ok(1..)) {}
        match self.shared.joined().last() {
            Some(manifest) => self.watch(watcher, manifest).map(drop),
            None => Ok(()),
        }
    }
}
