//! Keeping the number of sessions and the size of the store within bounds. Never what is live, pinned, foreign, put
//! elsewhere, or just being restored.
//!
//! A session goes in one rename, so that it is there as a whole or not at all; what a killed process left of that is
//! finished by the next one. Its objects go with a collection of the store, as far as no other session needs them.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::Hash;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nono_history::{JOURNAL, lock};
use nono_snapshot::store::Store;
use nono_snapshot::time::seconds;
use nono_snapshot::{SnapshotError, gc};
use nono_sys::fs as sys;

use super::catalogue::{Catalogue, SessionEntry, Status};
use super::error::RollbackError;
use super::estimate::Estimate;
use super::folder;
use super::live::{Live, is_live};

/// In `rollbacks/`: held by the one who prunes, and shared by those who begin a session.
pub(super) const LOCK: &str = ".lock";
/// How the name of a session begins that is being removed.
pub(super) const ASIDE: &str = ".removing-";

/// What may stay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Of all projects. Pinned sessions are not counted.
    pub max_sessions: Option<usize>,
    /// Of each project. Those that changed nothing are counted by themselves.
    pub max_per_project: Option<usize>,
    pub max_bytes: Option<u64>,
    pub older_than: Option<Duration>,
    /// Everything that may be removed goes.
    pub all: bool,
    /// Leave what no session needs any more in the store, as long as all of it takes less than so many bytes: a
    /// collection looks at everything, which is much for the beginning and the end of each run.
    pub lazy: Option<u64>,
}

/// What was, or would be, removed.
#[derive(Debug, Default)]
pub struct Pruned {
    pub removed: Vec<SessionEntry>,
    /// Bytes on disk of the whole store and all sessions, before and after (an estimate in a dry run).
    pub bytes_before: u64,
    pub bytes_after: u64,
    /// The budget does not hold even so: what is live or pinned needs more.
    pub over_budget: bool,
    /// What could not be removed, or not be freed.
    pub problems: Vec<RollbackError>,
}

impl Catalogue {
    /// Oldest first, until everything holds.
    pub fn prune(&self, retention: &Retention, dry_run: bool) -> Result<Pruned, RollbackError> {
        if !self.sessions_dir().is_dir() {
            let bytes = self.usage()?;
            let over_budget = retention.max_bytes.is_some_and(|max| bytes > max);
            return Ok(Pruned { bytes_before: bytes, bytes_after: bytes, over_budget, ..Pruned::default() });
        }
        let alone = if dry_run { None } else { Some(self.lock(false)?) };
        let bytes = self.usage()?;
        let mut pruned = Pruned { bytes_before: bytes, bytes_after: bytes, ..Pruned::default() };
        let (mut sessions, _) = self.list()?;
        sessions.reverse();
        let (now, later) = self.choose(sessions.clone(), retention);
        if dry_run {
            return self.foresee(&sessions, now, later, retention, pruned);
        }
        let left = self.finish_removals(&mut pruned)?;
        for entry in now {
            self.remove(entry, &mut pruned);
        }
        // By number all is decided now, and sessions may begin and end while a collection waits for those who write. By
        // size nobody else may prune meanwhile: each would take one session more than is needed.
        let _alone = alone.filter(|_| retention.max_bytes.is_some());
        let over = |pruned: &Pruned| retention.max_bytes.is_some_and(|max| pruned.bytes_after > max);
        // A collection looks at all there is, so it is worth it only where something went, or room is needed.
        let mut freed = true;
        let roomy = retention.lazy.is_some_and(|few| pruned.bytes_after < few);
        if !roomy && (left || over(&pruned) || !pruned.removed.is_empty()) {
            freed = self.collect(&mut pruned)?;
        }
        // By size: one at a time, because only a collection tells what is shared; without one nothing would be won.
        for entry in later {
            if !freed || !over(&pruned) {
                break;
            }
            self.remove(entry, &mut pruned);
            freed = self.collect(&mut pruned)?;
        }
        pruned.over_budget = over(&pruned);
        Ok(pruned)
    }

    /// Of sessions from the oldest on: those that go by number or age, and those that may go by size.
    fn choose(
        &self,
        sessions: Vec<SessionEntry>,
        retention: &Retention,
    ) -> (Vec<SessionEntry>, Vec<SessionEntry>) {
        let all = |_: &SessionEntry| "all";
        let project = |entry: &SessionEntry| (entry.project.clone(), entry.is_empty());
        let mut too_many = self.excess(&sessions, retention.max_sessions, all);
        let mut in_project = self.excess(&sessions, retention.max_per_project, project);
        let may_go = sessions.into_iter().filter(|entry| self.may_go(entry));
        may_go.partition(|entry| {
            let too_many = too_many.entry(all(entry)).or_default();
            let in_project = in_project.entry(project(entry)).or_default();
            let excess = *too_many > 0 || *in_project > 0;
            let goes = retention.all || excess || is_older(entry, retention.older_than);
            for excess in [too_many, in_project] {
                *excess = excess.saturating_sub(usize::from(goes));
            }
            goes
        })
    }

    /// How many are too many of those that belong together.
    fn excess<T: Eq + Hash + Clone>(
        &self,
        sessions: &[SessionEntry],
        max: Option<usize>,
        together: impl Fn(&SessionEntry) -> T,
    ) -> HashMap<T, usize> {
        let mut counted: HashMap<T, usize> = HashMap::new();
        let mut running: HashSet<T> = HashSet::new();
        let counts = |entry: &&SessionEntry| !entry.pinned && !entry.foreign && self.is_home(&entry.dir);
        for entry in sessions.iter().filter(counts) {
            let key = together(entry);
            // Of those that run one is counted, the one that asks: they cannot go, and for their sake one that has just
            // ended would.
            if entry.status != Status::Live || running.insert(key.clone()) {
                *counted.entry(key).or_default() += 1;
            }
        }
        for count in counted.values_mut() {
            *count = count.saturating_sub(max.unwrap_or(usize::MAX));
        }
        counted
    }

    pub(super) fn may_go(&self, entry: &SessionEntry) -> bool {
        entry.status != Status::Live && !entry.pinned && !entry.foreign && self.is_home(&entry.dir)
    }

    fn foresee(
        &self,
        sessions: &[SessionEntry],
        now: Vec<SessionEntry>,
        later: Vec<SessionEntry>,
        retention: &Retention,
        mut pruned: Pruned,
    ) -> Result<Pruned, RollbackError> {
        let mut estimate = Estimate::new(self, sessions, disk_bytes(&self.store_dir())?);
        let mut take = |entry: SessionEntry, pruned: &mut Pruned| -> Result<(), RollbackError> {
            let freed = estimate.remove(&entry.id).saturating_add(disk_bytes(&entry.dir)?);
            pruned.bytes_after = pruned.bytes_after.saturating_sub(freed);
            pruned.removed.push(entry);
            Ok(())
        };
        for entry in now {
            take(entry, &mut pruned)?;
        }
        for entry in later {
            if retention.max_bytes.is_none_or(|max| pruned.bytes_after <= max) {
                break;
            }
            take(entry, &mut pruned)?;
        }
        pruned.over_budget = retention.max_bytes.is_some_and(|max| pruned.bytes_after > max);
        Ok(pruned)
    }

    /// Remove one session, unless somebody is just doing something with it. A failure is no reason to keep the others.
    pub(super) fn remove(&self, entry: SessionEntry, pruned: &mut Pruned) {
        match self.set_aside(&entry) {
            Ok(None) => {}
            Ok(Some(aside)) => {
                pruned.problems.extend(remove_tree(&aside).err());
                pruned.removed.push(entry);
            }
            Err(error) => pruned.problems.push(error),
        }
    }

    fn set_aside(&self, entry: &SessionEntry) -> Result<Option<PathBuf>, RollbackError> {
        let dir = &entry.dir;
        let locks = [try_lock(&dir.join("lock"))?, try_lock(&dir.join(lock::FILE))?];
        let cut_off = dir.join(JOURNAL).symlink_metadata().is_ok();
        if locks.contains(&Tried::Busy) || cut_off || is_live(dir) || folder::is_pinned(dir) {
            return Ok(None);
        }
        let aside = self.sessions_dir().join(format!("{ASIDE}{}", entry.id));
        match std::fs::rename(dir, &aside) {
            // Another one removed it, which is what was wanted.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            other => other.map(|()| Some(aside)).map_err(RollbackError::io(dir)),
        }
    }

    /// What killed processes left: removals that were cut off, and places that never became a session.
    /// Says whether there was something.
    fn finish_removals(&self, pruned: &mut Pruned) -> Result<bool, RollbackError> {
        let dir = self.sessions_dir();
        let mut found = false;
        for entry in std::fs::read_dir(&dir).map_err(RollbackError::io(&dir))? {
            let entry = entry.map_err(RollbackError::io(&dir))?;
            let path = entry.path();
            let aside = entry.file_name().as_encoded_bytes().starts_with(ASIDE.as_bytes());
            if aside || is_unused(&path) {
                found = true;
                if let Some(there) = folder::follow(&path).ok().filter(|there| !aside && *there != path) {
                    pruned.problems.extend(remove_tree(&there).err());
                }
                pruned.problems.extend(remove_tree(&path).err());
            }
        }
        Ok(found)
    }

    /// Free what no session needs any more. What cannot be freed now stays until the next time. Says whether it could.
    fn collect(&self, pruned: &mut Pruned) -> Result<bool, RollbackError> {
        let dir = self.store_dir();
        let mut problem = None;
        if dir.is_dir() {
            problem = Store::open(&dir).map_err(SnapshotError::from).and_then(|store| gc(&store)).err();
        }
        let freed = problem.is_none();
        pruned.problems.extend(problem.map(RollbackError::from));
        pruned.bytes_after = self.usage()?;
        Ok(freed)
    }

    /// Bytes on disk of the store and all sessions.
    pub fn usage(&self) -> Result<u64, RollbackError> {
        Ok(disk_bytes(&self.store_dir())?.saturating_add(disk_bytes(&self.sessions_dir())?))
    }

    /// Make the place of a new session, and mark it as live in the same moment: nobody who prunes sees it before that.
    pub fn begin_session(&self, id: &str) -> Result<(PathBuf, Live), RollbackError> {
        self.begin_session_on(id, &[])
    }

    /// The same, for a session that will track these paths.
    pub fn begin_session_on(&self, id: &str, roots: &[PathBuf]) -> Result<(PathBuf, Live), RollbackError> {
        let dir = self.sessions_dir();
        match sys::make_dir(&dir, 0o700) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => other.map_err(RollbackError::io(&dir))?,
        }
        let _begin = self.lock(true)?;
        let place = dir.join(id);
        sys::make_dir(&place, 0o700).map_err(RollbackError::io(&place))?;
        let live = Live::begin_on(&place, roots).map_err(RollbackError::io(&place))?;
        Ok((place, live))
    }

    pub(super) fn lock(&self, shared: bool) -> Result<Locked, RollbackError> {
        let path = self.sessions_dir().join(LOCK);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).map_err(RollbackError::io(&path))?;
        let locked = if shared { file.lock_shared() } else { file.lock() };
        locked.map_err(RollbackError::io(&path))?;
        Ok(Locked(file))
    }
}

#[derive(Debug)]
#[must_use]
pub(super) struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing is not enough: a process that is just being forked has the descriptor until it executes.
        let _ = self.0.unlock();
    }
}

#[derive(Debug)]
enum Tried {
    Busy,
    /// Held, or nobody ever held it.
    Free(#[allow(dead_code, reason = "held until it is dropped")] Option<Locked>),
}

impl PartialEq for Tried {
    fn eq(&self, other: &Tried) -> bool {
        matches!((self, other), (Tried::Busy, Tried::Busy) | (Tried::Free(_), Tried::Free(_)))
    }
}

fn try_lock(path: &Path) -> Result<Tried, RollbackError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Tried::Free(None)),
        other => other.map_err(RollbackError::io(path))?,
    };
    match file.try_lock() {
        Ok(()) => Ok(Tried::Free(Some(Locked(file)))),
        Err(TryLockError::WouldBlock) => Ok(Tried::Busy),
        Err(TryLockError::Error(source)) => Err(RollbackError::Io { path: path.to_owned(), source }),
    }
}

/// A place that never became a session: its process was killed before a baseline was recorded, so no command ran and
/// there is nothing to restore. Anything in it that such a process cannot have left keeps it.
pub(super) fn is_unused(place: &Path) -> bool {
    let is_dir = place.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    // The mark first: it goes only when the session, or the note where it is, is complete.
    if !is_dir || is_live(place) {
        return false;
    }
    let Ok(dir) = folder::follow(place) else { return false };
    let own = ["live", "lock", "snapshots", "safety", folder::ELSEWHERE];
    !is_live(&dir)
        && holds_only(place, &own)
        && holds_only(&dir, &own)
        && holds_only(&dir.join("snapshots"), &["000.json"])
        && holds_only(&dir.join("safety"), &[])
}

/// Whether nothing is there but these names, and files that were not put in place yet.
fn holds_only(dir: &Path, known: &[&str]) -> bool {
    let expected = |name: &OsStr| {
        let name = name.to_string_lossy();
        known.contains(&&*name) || name.contains(".tmp-")
    };
    match std::fs::read_dir(dir) {
        Ok(mut names) => names.all(|name| name.is_ok_and(|name| expected(&name.file_name()))),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Remove what is there, if another one did not do so already.
fn remove_tree(path: &Path) -> Result<(), RollbackError> {
    match sys::remove_tree(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(RollbackError::io(path)),
    }
}

fn disk_bytes(path: &Path) -> Result<u64, RollbackError> {
    sys::disk_bytes(path).map_err(|(path, source)| RollbackError::Io { path, source })
}

fn is_older(entry: &SessionEntry, than: Option<Duration>) -> bool {
    let ended = entry.metadata.ended.as_deref().unwrap_or(&entry.metadata.started);
    // A time that cannot be read is no reason to remove anything.
    let (Some(than), Some(ended)) = (than, seconds(ended)) else { return false };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    now.saturating_sub(ended) > than.as_secs()
}
