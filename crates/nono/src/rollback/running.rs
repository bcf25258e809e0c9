//! A session that runs, for those who need something of it meanwhile: a path that is tracked from now on, a snapshot right
//! now, a restore.
//!
//! Whoever asks does the work in its own thread, at its own priority; the thread that watches has the lowest. One works
//! at a time. A snapshot is given up for a path that is to be tracked, because a command waits for that, and taken again
//! afterwards. When the session has ended, whoever asks gets an error and never waits.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nono_snapshot::{
    CaptureError, Checkpoint, Gaps, Manifest, Next, Observer, SessionMetadata, SnapshotError, SnapshotId,
    SnapshotManager,
};

use super::catalogue::{Catalogue, RollbackSession, SessionEntry};
use super::error::RollbackError;
use super::recorder::Recorder;
use super::restore::{Done, RestoreChoice};
use super::{scope, thinning};

/// So many snapshots that were asked for are never given up while the session runs; more are like all others.
const CHECKPOINTS: usize = 64;
/// So much of a reason is kept.
const WHY: usize = 200;

/// A session that runs.
#[derive(Clone, Debug)]
pub struct Live(pub(super) Arc<Shared>);

impl Live {
    /// Track this path, too: when this returns, what stands there, or that nothing does, is captured and comes back when
    /// the session is undone. `path` is absolute and resolved. An error means that it is not, and must not be written.
    /// Devices and what the kernel shows as files have no state to come back to.
    pub fn add_root(&self, path: &Path) -> Result<(), RollbackError> {
        if !scope::has_state(path) {
            return Ok(());
        }
        let joined = self.0.hurried(|work| work.join(path))?;
        if let Some(manifest) = joined {
            self.0.wake(manifest);
        }
        Ok(())
    }

    /// The session's id: the name of its folder.
    pub fn id(&self) -> String {
        self.0.dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// A snapshot of this moment; the last one, if everything is as it was then. Gives its number.
    pub fn checkpoint(&self, why: &str) -> Result<u64, RollbackError> {
        loop {
            match self.0.patiently(|work| work.checkpoint(why))? {
                // Somebody was in a hurry.
                Err(SnapshotError::Capture(CaptureError::Cancelled)) if !self.0.signals.is_stopped() => {}
                other => return Ok(u64::from(other?)),
            }
        }
    }

    /// Put these paths back to a snapshot, all of them if none is named. Written down like every restore, so that it can
    /// be undone. Nothing tells the command's changes from somebody else's while it runs.
    pub fn restore(&self, snapshot: u64, paths: &[PathBuf]) -> Result<Done, RollbackError> {
        self.0.restore(snapshot, paths)
    }
}

/// What everybody can see.
#[derive(Debug, Default)]
pub(super) struct Signals {
    stopped: AtomicBool,
    /// So many are in a hurry.
    hurried: AtomicUsize,
    /// What is done now can wait for them.
    gives_way: AtomicBool,
}

impl Signals {
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn is_in_the_way(&self) -> bool {
        self.gives_way.load(Ordering::SeqCst) && self.hurried.load(Ordering::SeqCst) > 0
    }
}

/// Work that is given up when the session ends, or for somebody in a hurry.
struct Until(Arc<Signals>);

impl Observer for Until {
    fn progress(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        self.0.is_stopped() || self.0.is_in_the_way()
    }
}

/// The session, held by all who work on it.
pub(super) struct Shared {
    dir: PathBuf,
    /// None: it has ended.
    work: Mutex<Option<Work>>,
    /// Nobody is in a hurry any more.
    turn: Condvar,
    pub(super) signals: Arc<Signals>,
    /// What joined and is not watched yet, and how the one who watches learns of it.
    joined: Mutex<Vec<Manifest>>,
    waker: UnixStream,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// Counts for as long as somebody is in a hurry.
struct Hurry<'a>(&'a Shared);

impl Drop for Hurry<'_> {
    fn drop(&mut self) {
        // Held, so that nobody goes to sleep between looking and waiting.
        let _alone = self.0.work.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.signals.hurried.fetch_sub(1, Ordering::SeqCst);
        self.0.turn.notify_all();
    }
}

impl Shared {
    /// The session, and what becomes readable when something joined.
    pub(super) fn new(mut work: Work) -> io::Result<(Arc<Shared>, UnixStream)> {
        let (waker, wakes) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        wakes.set_nonblocking(true)?;
        let signals = Arc::new(Signals::default());
        work.manager.observe(Until(signals.clone()));
        let shared = Shared {
            dir: work.session_dir.clone(),
            work: Mutex::new(Some(work)),
            turn: Condvar::new(),
            signals,
            joined: Mutex::default(),
            waker,
        };
        Ok((Arc::new(shared), wakes))
    }

    /// From now on everybody gives up what can be given up.
    pub(super) fn stop(&self) {
        self.signals.stopped.store(true, Ordering::Relaxed);
        self.turn.notify_all();
    }

    /// The end: nobody works on it any more. None if somebody died in the middle of it.
    pub(super) fn end(&self) -> Option<Work> {
        let mut work = self.work.lock().ok()?.take()?;
        work.manager.observe(());
        Some(work)
    }

    fn ended(&self) -> RollbackError {
        RollbackError::io(&self.dir)(io::Error::other("the session has ended"))
    }

    /// Whoever died in the middle of something left it in a state that nobody knows.
    fn lock(&self) -> Result<MutexGuard<'_, Option<Work>>, RollbackError> {
        self.work.lock().map_err(|_| self.ended())
    }

    fn hurried<T>(
        &self,
        work: impl FnOnce(&mut Work) -> Result<T, RollbackError>,
    ) -> Result<T, RollbackError> {
        self.signals.hurried.fetch_add(1, Ordering::SeqCst);
        let _hurry = Hurry(self);
        let mut held = self.lock()?;
        let there = held.as_mut().filter(|_| !self.signals.is_stopped()).ok_or_else(|| self.ended())?;
        work(there)
    }

    /// After all who are in a hurry; and given up for those who come.
    pub(super) fn patiently<T>(&self, work: impl FnOnce(&mut Work) -> T) -> Result<T, RollbackError> {
        let mut held = self.in_turn()?;
        let there = held.as_mut().ok_or_else(|| self.ended())?;
        self.signals.gives_way.store(true, Ordering::SeqCst);
        let done = work(there);
        self.signals.gives_way.store(false, Ordering::SeqCst);
        Ok(done)
    }

    fn in_turn(&self) -> Result<MutexGuard<'_, Option<Work>>, RollbackError> {
        let mut held = self.lock()?;
        while self.signals.hurried.load(Ordering::SeqCst) > 0 && !self.signals.is_stopped() {
            held = self.turn.wait(held).map_err(|_| self.ended())?;
        }
        if self.signals.is_stopped() { Err(self.ended()) } else { Ok(held) }
    }

    fn restore(&self, snapshot: u64, paths: &[PathBuf]) -> Result<Done, RollbackError> {
        let mut held = self.in_turn()?;
        let mut work = held.take().ok_or_else(|| self.ended())?;
        // A restore is carried out as a whole, also when the command ends meanwhile.
        work.manager.observe(());
        let (mut work, done) = work.restore(snapshot, paths);
        work.manager.observe(Until(self.signals.clone()));
        *held = Some(work);
        done
    }

    fn wake(&self, manifest: Manifest) {
        self.joined.lock().unwrap_or_else(PoisonError::into_inner).push(manifest);
        // Full: it will wake in any case. Closed: it ended, and there is nothing left to watch.
        let _ = (&self.waker).write(&[1]);
    }

    /// What joined since this was asked.
    pub(super) fn joined(&self) -> Vec<Manifest> {
        std::mem::take(&mut *self.joined.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What is worked with.
pub(super) struct Work {
    pub(super) manager: SnapshotManager,
    pub(super) metadata: SessionMetadata,
    pub(super) catalogue: Catalogue,
    pub(super) session_dir: PathBuf,
    pub(super) recorder: Arc<dyn Recorder>,
    /// Snapshots that may be given up one day.
    pub(super) taken: Vec<thinning::Point>,
    pub(super) problems: Vec<String>,
}

impl Work {
    /// A path that is not covered becomes a root, in `session.json` too.
    fn join(&mut self, path: &Path) -> Result<Option<Manifest>, RollbackError> {
        if self.manager.is_tracked(path)? {
            return Ok(None);
        }
        let before = self.metadata.tracked_paths.clone();
        self.metadata.tracked_paths.push(path.to_owned());
        self.metadata.tracked_paths.sort();
        // It stands there first: a restore that begins now sees it, and one that began before is seen.
        let saved = self.manager.save_session_metadata(&self.metadata).map_err(RollbackError::from);
        let joined = saved.and_then(|()| self.capture(path));
        if !matches!(joined, Ok(Some(_))) {
            self.metadata.tracked_paths = before;
            if let Err(error) = self.manager.save_session_metadata(&self.metadata) {
                self.problems.push(error.to_string());
            }
        }
        joined
    }

    fn capture(&mut self, path: &Path) -> Result<Option<Manifest>, RollbackError> {
        let roots = [path.to_owned()];
        self.catalogue.refuse_restoring(&roots, &self.session_dir)?;
        self.catalogue.refuse_cut_off(&roots, &self.session_dir)?;
        self.manager.set_gaps(Gaps::Allow);
        let joined = self.manager.add_root(path)?;
        if let Some(manifest) = &joined {
            self.recorder.taken(manifest);
        }
        Ok(joined)
    }

    /// The next snapshot, if something changed, and what it cost.
    pub(super) fn next(&mut self) -> (Result<Option<Manifest>, SnapshotError>, Duration) {
        let (began, busy) = (Instant::now(), cpu_time());
        self.manager.set_gaps(Gaps::Refuse);
        let how = Next { if_changed: true, first_rules: true, open_closed: false };
        let taken = self.manager.create_next(how);
        if let Ok(Some(manifest)) = &taken {
            self.recorder.taken(manifest);
        }
        // Most of the time of a small snapshot is waiting for the disk to sync its record, which costs others little.
        let cost = cpu_time().saturating_sub(busy).max(began.elapsed() / 4);
        (taken, cost)
    }

    /// This snapshot may be given up one day; and the time of some may have come.
    pub(super) fn thin(&mut self, number: u32, at: Instant) -> Result<(), SnapshotError> {
        self.taken.push(thinning::Point { number, at });
        let gone = thinning::superfluous(&self.taken, Instant::now());
        if gone.is_empty() {
            return Ok(());
        }
        self.manager.thin(&gone)?;
        self.taken.retain(|point| !gone.contains(&point.number));
        Ok(())
    }

    fn checkpoint(&mut self, why: &str) -> Result<u32, SnapshotError> {
        let at = Instant::now();
        let taken = self.next().0?;
        let number = match &taken {
            Some(manifest) => manifest.number,
            None => self.manager.snapshot_count()?.saturating_sub(1),
        };
        if self.metadata.checkpoints.len() < CHECKPOINTS {
            // One that is asked for is kept, also if it was taken before for no reason.
            self.taken.retain(|point| point.number != number);
            let why = why.chars().take(WHY).collect();
            self.metadata.checkpoints.push(Checkpoint { snapshot: number, why });
            self.manager.save_session_metadata(&self.metadata)?;
        } else if taken.is_some() {
            self.thin(number, at)?;
        }
        Ok(number)
    }

    fn restore(self, snapshot: u64, paths: &[PathBuf]) -> (Work, Result<Done, RollbackError>) {
        let Work { manager, metadata, catalogue, session_dir, recorder, taken, problems } = self;
        let entry = SessionEntry::running(&metadata, &session_dir);
        let mut session =
            RollbackSession { entry, manager, catalogue: catalogue.clone(), recovered: None, running: true };
        let done = match u32::try_from(snapshot) {
            Ok(number) => session.restore(&RestoreChoice {
                snapshot: SnapshotId::Number(number),
                paths: paths.to_vec(),
                ..RestoreChoice::everything()
            }),
            // There are not so many.
            Err(_) => Err(RollbackError::NoSnapshot {
                id: metadata.session_id.clone(),
                snapshot: SnapshotId::Number(u32::MAX),
            }),
        };
        let manager = session.manager;
        (Work { manager, metadata, catalogue, session_dir, recorder, taken, problems }, done)
    }
}

/// Time that all threads of this process have worked.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests;
