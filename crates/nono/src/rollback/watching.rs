//! Snapshots while the command runs, in a thread of their own and at the lowest priority.
//!
//! The watcher says that something changed; a snapshot is taken when it is quiet for a while, or after the interval when
//! it never is. Each is a scan, which finds everything whatever the watcher missed, so the only thing that depends on
//! the watcher is the moment. Where not everything can be watched, it is looked at by the clock.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nono_snapshot::{CaptureError, Manifest, SessionMetadata, SnapshotError, SnapshotManager};
use nono_supervisor::Watcher;
use nono_sys::{process, wait};

use super::running::{Live, Shared, Work};

/// Quiet for this long after a change: a good moment.
const QUIET: Duration = Duration::from_secs(2);
/// Never quiet: after this long at the latest.
const INTERVAL: Duration = Duration::from_secs(30);
/// How often the queue is looked into once something changed. Events pile up meanwhile instead of waking this thread
/// for each; that the queue may overflow does not matter.
const TICK: Duration = Duration::from_millis(250);
/// Watching thousands of directories is not worth it for a command that is over by then.
const HEAD_START: Duration = Duration::from_millis(100);
/// A scan takes at most this part of the time.
const SHARE: u32 = 20;

/// The thread.
#[derive(Debug)]
pub(crate) struct Watching {
    thread: JoinHandle<Vec<String>>,
    /// Closed to end it.
    stop: UnixStream,
    ends: Ends,
}

/// However it is let go, the session is over for everybody else.
#[derive(Debug)]
struct Ends(Arc<Shared>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// What it gives back.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) manager: SnapshotManager,
    /// With what joined and was asked for meanwhile.
    pub(crate) metadata: SessionMetadata,
    pub(crate) problems: Vec<String>,
}

impl Watching {
    pub(super) fn start(work: Work, baseline: Manifest, interval: Option<Duration>) -> io::Result<Watching> {
        let (stop, stops) = UnixStream::pair()?;
        let (shared, wakes) = Shared::new(work)?;
        let ends = Ends(shared.clone());
        let thread = std::thread::Builder::new().name("nono-watch".to_owned()).spawn(move || {
            let (interval, cost) = (interval.unwrap_or(INTERVAL), Duration::ZERO);
            let mut watch = Watch { shared, stops, wakes, interval, cost, problems: Vec::new() };
            // Losing the watcher loses snapshots in between, nothing else: the last one is taken in any case.
            if let Err(error) = watch.turn(baseline) {
                watch.problems.push(format!("no snapshots while the command ran: {error}"));
            }
            watch.problems
        })?;
        Ok(Watching { thread, stop, ends })
    }

    /// For those who need something of the session while it runs.
    pub(crate) fn live(&self) -> Live {
        Live(self.ends.0.clone())
    }

    /// End it; what it is in the middle of is given up.
    pub(crate) fn stop(self) -> Option<Watched> {
        let Watching { thread, stop, ends } = self;
        ends.0.stop();
        drop(stop);
        let mut problems = thread.join().ok()?;
        let Work { manager, metadata, problems: more, .. } = ends.0.end()?;
        problems.extend(more);
        Some(Watched { manager, metadata, problems })
    }
}

struct Watch {
    shared: Arc<Shared>,
    stops: UnixStream,
    wakes: UnixStream,
    interval: Duration,
    /// How long the last scan took.
    cost: Duration,
    problems: Vec<String>,
}

impl Watch {
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
        // What changed before everything was watched is seen by a first look.
        let mut dirty = true;
        loop {
            // A capture needs some tens of megabytes for a moment; then nothing may happen for long.
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

    /// Wait for the first change; true: it is over. What is not watched is looked at by the clock. That something joined
    /// is a change: it did so to be written.
    fn idle(&self, watcher: &Watcher) -> io::Result<bool> {
        let timeout = (!watcher.is_complete()).then_some(self.interval);
        let fds = [self.stops.as_fd(), watcher.as_fd(), self.wakes.as_fd()];
        let ready = wait::poll(&fds.map(|fd| Some((fd, false))), timeout)?;
        Ok(ready[0])
    }

    /// Something changed: wait until it is quiet, or for as long as the interval allows; true: it is over.
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

    /// Take one, if something differs; true: look again, because something is watched only since now, or because it was
    /// given up for somebody else.
    fn snapshot(&mut self, watcher: &mut Watcher) -> Result<bool, SnapshotError> {
        let began = Instant::now();
        // It has ended, which the next look at it says.
        let Ok((taken, cost)) = self.shared.patiently(Work::next) else { return Ok(true) };
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
            // A tree that is being torn down may fail once and be fine the next time; the last one tells in any case.
            Err(error) => {
                self.problems.push(format!("a snapshot while the command ran: {error}"));
                self.problems.truncate(3);
                Ok(false)
            }
        }
    }

    /// Watch what a snapshot holds; true: some of it was not watched before.
    fn watch(&self, watcher: &mut Watcher, manifest: &Manifest) -> Result<bool, SnapshotError> {
        let directories = manifest.directories()?;
        let roots = manifest.state.roots.iter().map(|root| &*root.path);
        let places = roots.chain(directories.iter().map(|path| &**path));
        Ok(watcher.watch(places, &|| self.shared.signals.is_stopped()))
    }

    /// Watch what joined meanwhile, too. The last one has all that joined before.
    fn watch_joined(&mut self, watcher: &mut Watcher) -> Result<(), SnapshotError> {
        let mut bytes = [0u8; 64];
        // Nothing more to read, or nobody left to write: both are no news.
        while matches!(self.wakes.read(&mut bytes), Ok(1..)) {}
        match self.shared.joined().last() {
            Some(manifest) => self.watch(watcher, manifest).map(drop),
            None => Ok(()),
        }
    }
}
