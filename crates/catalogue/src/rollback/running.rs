//! Access to a running session: track one more path, take a snapshot now, restore.
//!
//! The caller does the work in its own thread and at its own priority; the watching thread has the lowest. One thread
//! works at a time. A snapshot is cancelled in favour of a path that has to be tracked, because a command waits for
//! that, and is taken again afterwards. Once the session has ended, every call returns an error and never blocks.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nono_snapshot::{
    CaptureError, Gaps, Manifest, Next, Observer, RequestedSnapshot, SessionMetadata, SnapshotError,
    SnapshotId, SnapshotManager,
};

use super::catalogue::{Catalogue, RollbackSession};
use super::entry::SessionEntry;
use super::error::RollbackError;
use super::recorder::Recorder;
use super::restore::{Done, RestoreChoice};
use super::{scope, thinning};

/// Maximum number of requested snapshots that are exempt from thinning while the session runs; further ones are thinned
/// like all others.
const CHECKPOINTS: usize = 64;
/// Maximum length of the stored reason of a checkpoint, in characters.
const WHY: usize = 200;

/// Handle to a running session.
#[derive(Clone, Debug)]
pub struct TrackedSession(pub(super) Arc<SharedSession>);

impl TrackedSession {
    /// Track this path as well. On return its present state (or its absence) is captured, and undoing the session
    /// restores it. `path` is absolute and resolved. After an error the path is not tracked and must not be written.
    /// Devices and kernel file systems have no state to restore and are accepted without a capture.
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

    /// Id of the session: the name of its folder.
    pub fn id(&self) -> String {
        self.0.dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Take a snapshot now, or reuse the last one if nothing changed since. Returns its number.
    pub fn checkpoint(&self, why: &str) -> Result<u64, RollbackError> {
        loop {
            match self.0.patiently(|work| work.checkpoint(why))? {
                // Cancelled in favour of an urgent caller: try again.
                Err(SnapshotError::Capture(CaptureError::Cancelled)) if !self.0.signals.is_stopped() => {}
                other => return Ok(u64::from(other?)),
            }
        }
    }

    /// Restore these paths from a snapshot, or all paths if none is named. Recorded like every restore, so that it can
    /// be undone. While the command runs, its changes cannot be told from those of other processes.
    pub fn restore(&self, snapshot: u64, paths: &[PathBuf]) -> Result<Done, RollbackError> {
        self.0.restore(snapshot, paths)
    }
}

/// Flags shared by all threads of the session.
#[derive(Debug, Default)]
pub(super) struct Signals {
    stopped: AtomicBool,
    /// Number of urgent callers that wait or work.
    hurried: AtomicUsize,
    /// Whether the work in progress can be cancelled for them.
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

/// Observer that cancels work when the session ends or an urgent caller waits.
struct Until(Arc<Signals>);

impl Observer for Until {
    fn progress(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        self.0.is_stopped() || self.0.is_in_the_way()
    }
}

/// State of the session, shared by all threads that work on it.
#[derive(Debug)]
pub(super) struct SharedSession {
    dir: PathBuf,
    /// None after the session has ended.
    work: Mutex<Option<SnapshotWork>>,
    /// Signalled when an urgent caller is done, and at the end.
    turn: Condvar,
    pub(super) signals: Arc<Signals>,
    /// Paths added but not watched yet; `waker` wakes the watching thread for them.
    joined: Mutex<Vec<Manifest>>,
    waker: UnixStream,
}

/// Counts one urgent caller until dropped.
struct Hurry<'a>(&'a SharedSession);

impl Drop for Hurry<'_> {
    fn drop(&mut self) {
        // Taken so that no thread can start to wait between its check and the notification.
        let _alone = self.0.work.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.signals.hurried.fetch_sub(1, Ordering::SeqCst);
        self.0.turn.notify_all();
    }
}

impl SharedSession {
    /// Share `work`. The returned stream becomes readable when a path was added.
    pub(super) fn new(mut work: SnapshotWork) -> io::Result<(Arc<SharedSession>, UnixStream)> {
        let (waker, wakes) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        wakes.set_nonblocking(true)?;
        let signals = Arc::new(Signals::default());
        work.manager.observe(Until(signals.clone()));
        let shared = SharedSession {
            dir: work.session_dir.clone(),
            work: Mutex::new(Some(work)),
            turn: Condvar::new(),
            signals,
            joined: Mutex::default(),
            waker,
        };
        Ok((Arc::new(shared), wakes))
    }

    /// Cancel everything that can be cancelled, and refuse new work.
    pub(super) fn stop(&self) {
        self.signals.stopped.store(true, Ordering::Relaxed);
        self.turn.notify_all();
    }

    /// Take the work back at the end of the session. None if a thread panicked while it held the work.
    pub(super) fn end(&self) -> Option<SnapshotWork> {
        let mut work = self.work.lock().ok()?.take()?;
        work.manager.observe(());
        Some(work)
    }

    fn ended(&self) -> RollbackError {
        RollbackError::io(&self.dir)(io::Error::other("the session has ended"))
    }

    /// Lock the work. After a panic its state is unknown, which counts as ended.
    fn lock(&self) -> Result<MutexGuard<'_, Option<SnapshotWork>>, RollbackError> {
        self.work.lock().map_err(|_| self.ended())
    }

    fn hurried<T>(
        &self,
        work: impl FnOnce(&mut SnapshotWork) -> Result<T, RollbackError>,
    ) -> Result<T, RollbackError> {
        self.signals.hurried.fetch_add(1, Ordering::SeqCst);
        let _hurry = Hurry(self);
        let mut held = self.lock()?;
        let there = held.as_mut().filter(|_| !self.signals.is_stopped()).ok_or_else(|| self.ended())?;
        work(there)
    }

    /// Run `work` after all urgent callers; it is cancelled when another one arrives.
    pub(super) fn patiently<T>(&self, work: impl FnOnce(&mut SnapshotWork) -> T) -> Result<T, RollbackError> {
        let mut held = self.in_turn()?;
        let there = held.as_mut().ok_or_else(|| self.ended())?;
        self.signals.gives_way.store(true, Ordering::SeqCst);
        let done = work(there);
        self.signals.gives_way.store(false, Ordering::SeqCst);
        Ok(done)
    }

    fn in_turn(&self) -> Result<MutexGuard<'_, Option<SnapshotWork>>, RollbackError> {
        let mut held = self.lock()?;
        while self.signals.hurried.load(Ordering::SeqCst) > 0 && !self.signals.is_stopped() {
            held = self.turn.wait(held).map_err(|_| self.ended())?;
        }
        if self.signals.is_stopped() { Err(self.ended()) } else { Ok(held) }
    }

    fn restore(&self, snapshot: u64, paths: &[PathBuf]) -> Result<Done, RollbackError> {
        let mut held = self.in_turn()?;
        let mut work = held.take().ok_or_else(|| self.ended())?;
        // A restore is not cancelled when the command ends meanwhile.
        work.manager.observe(());
        let (mut work, done) = work.restore(snapshot, paths);
        work.manager.observe(Until(self.signals.clone()));
        *held = Some(work);
        done
    }

    fn wake(&self, manifest: Manifest) {
        self.joined.lock().unwrap_or_else(PoisonError::into_inner).push(manifest);
        // If the pipe is full, the thread wakes in any case; if it is closed, there is nothing left to watch.
        let _ = (&self.waker).write(&[1]);
    }

    /// Take the paths added since the last call.
    pub(super) fn joined(&self) -> Vec<Manifest> {
        std::mem::take(&mut *self.joined.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Everything needed to take snapshots of the session and restore them.
#[derive(Debug)]
pub(super) struct SnapshotWork {
    pub(super) manager: SnapshotManager,
    pub(super) metadata: SessionMetadata,
    pub(super) catalogue: Catalogue,
    pub(super) session_dir: PathBuf,
    pub(super) recorder: Arc<dyn Recorder>,
    /// Snapshots that thinning may remove.
    pub(super) taken: Vec<thinning::Point>,
    pub(super) problems: Vec<String>,
}

impl SnapshotWork {
    /// Add `path` as a tracked root, in `session.json` too. None if it is tracked already.
    fn join(&mut self, path: &Path) -> Result<Option<Manifest>, RollbackError> {
        if self.manager.is_tracked(path)? {
            return Ok(None);
        }
        let before = self.metadata.tracked_paths.clone();
        self.metadata.tracked_paths.push(path.to_owned());
        self.metadata.tracked_paths.sort();
        // Saved first: a restore that begins now sees the new root, and one that began before is detected here.
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

    /// Take the next snapshot if something changed; also returns what it cost.
    pub(super) fn next(&mut self) -> (Result<Option<Manifest>, SnapshotError>, Duration) {
        let (began, busy) = (Instant::now(), cpu_time());
        self.manager.set_gaps(Gaps::Refuse);
        let how = Next { if_changed: true, first_rules: true, open_closed: false };
        let taken = self.manager.create_next(how);
        if let Ok(Some(manifest)) = &taken {
            self.recorder.taken(manifest);
        }
        // Most of the time of a small snapshot is spent waiting for the disk to sync its record, which costs others
        // little.
        let cost = cpu_time().saturating_sub(busy).max(began.elapsed() / 4);
        (taken, cost)
    }

    /// Register a snapshot for thinning, and remove those that are superfluous by now.
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
            // A requested snapshot is kept even if it was taken earlier for another reason.
            self.taken.retain(|point| point.number != number);
            let why = why.chars().take(WHY).collect();
            self.metadata.checkpoints.push(RequestedSnapshot { snapshot: number, why });
            self.manager.save_session_metadata(&self.metadata)?;
        } else if taken.is_some() {
            self.thin(number, at)?;
        }
        Ok(number)
    }

    fn restore(self, snapshot: u64, paths: &[PathBuf]) -> (SnapshotWork, Result<Done, RollbackError>) {
        let entry = SessionEntry::running(&self.metadata, &self.session_dir);
        let (manager, catalogue) = (self.manager, self.catalogue.clone());
        let mut session = RollbackSession { entry, manager, catalogue, recovered: None, running: true };
        let done = match u32::try_from(snapshot) {
            Ok(number) => session.restore(&RestoreChoice {
                snapshot: SnapshotId::Number(number),
                paths: paths.to_vec(),
                ..RestoreChoice::everything()
            }),
            // No session has that many snapshots.
            Err(_) => Err(RollbackError::NoSnapshot {
                id: self.metadata.session_id.clone(),
                snapshot: SnapshotId::Number(u32::MAX),
            }),
        };
        (SnapshotWork { manager: session.manager, ..self }, done)
    }
}

/// CPU time used by all threads of this process.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests;
