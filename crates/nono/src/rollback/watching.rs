//! Snapshots while the command runs, in a thread of their own and at the lowest priority.
//!
//! The watcher says that something changed; a snapshot is taken when it is quiet for a while, or after the interval when
//! it never is. Each is a scan, which finds everything whatever the watcher missed, so the only thing that depends on
//! the watcher is the moment. Where not everything can be watched, it is looked at by the clock.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nono_snapshot::{CaptureError, Manifest, Next, Observer, SnapshotError, SnapshotManager};
use nono_supervisor::Watcher;
use nono_sys::{process, wait};

use super::thinning;

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

/// How many bytes the store may still grow.
pub(super) type Room = Box<dyn Fn() -> u64 + Send>;

/// The thread.
#[derive(Debug)]
pub(crate) struct Watching {
    thread: JoinHandle<Watched>,
    /// Closed to end it.
    stop: UnixStream,
    stopped: Arc<AtomicBool>,
}

/// What it gives back.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) manager: SnapshotManager,
    pub(crate) problems: Vec<String>,
}

impl Watching {
    pub(crate) fn start(
        manager: SnapshotManager,
        baseline: Manifest,
        room: Room,
        interval: Option<Duration>,
    ) -> io::Result<Watching> {
        let (stop, stops) = UnixStream::pair()?;
        let stopped = Arc::new(AtomicBool::new(false));
        let flag = stopped.clone();
        let thread = std::thread::Builder::new().name("nono-watch".to_owned()).spawn(move || {
            let mut manager = manager;
            manager.observe(Until(flag.clone()));
            let mut watch = Watch::new(manager, flag, room, interval.unwrap_or(INTERVAL));
            // Losing the watcher loses snapshots in between, nothing else: the last one is taken in any case.
            if let Err(error) = watch.turn(baseline, &stops) {
                watch.problems.push(format!("no snapshots while the command ran: {error}"));
            }
            watch.manager.observe(());
            Watched { manager: watch.manager, problems: watch.problems }
        })?;
        Ok(Watching { thread, stop, stopped })
    }

    /// End it; what it is in the middle of is given up.
    pub(crate) fn stop(self) -> Option<Watched> {
        self.stopped.store(true, Ordering::Relaxed);
        drop(self.stop);
        self.thread.join().ok()
    }
}

/// Work that is given up when the thread is to end.
struct Until(Arc<AtomicBool>);

impl Observer for Until {
    fn progress(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

struct Watch {
    manager: SnapshotManager,
    stopped: Arc<AtomicBool>,
    room: Room,
    interval: Duration,
    /// How long the last scan took.
    cost: Duration,
    taken: Vec<thinning::Point>,
    problems: Vec<String>,
}

impl Watch {
    fn new(manager: SnapshotManager, stopped: Arc<AtomicBool>, room: Room, interval: Duration) -> Watch {
        Watch {
            manager,
            stopped,
            room,
            interval,
            cost: Duration::ZERO,
            taken: Vec::new(),
            problems: Vec::new(),
        }
    }

    fn turn(&mut self, baseline: Manifest, stop: &UnixStream) -> Result<(), SnapshotError> {
        process::lowest_priority();
        let failed = |source| SnapshotError::from(CaptureError::Io { path: "inotify".into(), source });
        if wait::poll(&[Some((stop.as_fd(), false))], Some(HEAD_START.min(self.interval))).map_err(failed)?[0]
        {
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
            if !dirty && self.idle(&watcher, stop).map_err(failed)? {
                return Ok(());
            }
            if self.settle(&watcher, stop).map_err(failed)? {
                return Ok(());
            }
            dirty = self.snapshot(&mut watcher)?;
        }
    }

    /// Wait for the first change; true: it is over. What is not watched is looked at by the clock.
    fn idle(&self, watcher: &Watcher, stop: &UnixStream) -> io::Result<bool> {
        let timeout = (!watcher.is_complete()).then_some(self.interval);
        let ready = wait::poll(&[Some((stop.as_fd(), false)), Some((watcher.as_fd(), false))], timeout)?;
        Ok(ready[0])
    }

    /// Something changed: wait until it is quiet, or for as long as the interval allows; true: it is over.
    fn settle(&self, watcher: &Watcher, stop: &UnixStream) -> io::Result<bool> {
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
            if wait::poll(&[Some((stop.as_fd(), false))], Some(rest.min(TICK)))?[0] {
                return Ok(true);
            }
            if watcher.changed()? {
                last = Instant::now();
            }
        }
    }

    /// Take one, if something differs; true: look again, because something is watched only since now.
    fn snapshot(&mut self, watcher: &mut Watcher) -> Result<bool, SnapshotError> {
        let began = Instant::now();
        let left = (self.room)();
        self.manager.set_budget(Some(left));
        let taken =
            self.manager.create_next(Next { if_changed: true, first_rules: true, open_closed: false });
        self.cost = began.elapsed();
        match taken {
            Ok(None) | Err(SnapshotError::Capture(CaptureError::Cancelled)) => Ok(false),
            Ok(Some((manifest, _))) => {
                let number = manifest.number;
                let again = self.watch(watcher, &manifest)?;
                self.taken.push(thinning::Point { number, at: began });
                self.thin()?;
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
        Ok(watcher.watch(places, &|| self.stopped.load(Ordering::Relaxed)))
    }

    fn thin(&mut self) -> Result<(), SnapshotError> {
        let gone = thinning::superfluous(&self.taken, Instant::now());
        if gone.is_empty() {
            return Ok(());
        }
        self.manager.thin(&gone)?;
        self.taken.retain(|point| !gone.contains(&point.number));
        Ok(())
    }
}
