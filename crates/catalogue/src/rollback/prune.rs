//! Retention: limits on the number of sessions and the size of the store. Never removes a session that is live, pinned,
//! foreign, kept elsewhere, or being restored.
//!
//! A session is removed by one rename, so that it is there as a whole or not at all; a removal interrupted by a kill is
//! finished by the next one. Its objects are freed by a collection of the store, unless another session needs them.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::hash::Hash;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nono_history::clock::Clock;
use nono_history::lock::{self, Lock, Tried};
use nono_history::quota::{Victims, disk_bytes, victims};
use nono_history::retention::{Keep, RetentionCandidate, excess};
use nono_history::{has_journal, removal};
use nono_snapshot::store::Store;
use nono_snapshot::time::seconds;
use nono_snapshot::{Candidate, GcReport, SnapshotError, gc, gc_compact};
use nono_sys::fs as sys;

use super::catalogue::Catalogue;
use super::entry::{SessionEntry, Status};
use super::error::RollbackError;
use super::folder;
use super::live_lock::{LiveLock, is_live};

/// File in `rollbacks/` with the time of the last automatic pruning by age.
pub(super) const MARKER: &str = ".last_prune";
/// Lock file in `rollbacks/`: exclusive while pruning, shared while a session begins.
pub(super) const LOCK: &str = ".lock";
/// Maximum number of rounds: each frees what the one before was short of.
const ROUNDS: usize = 4;

/// Limits on what is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Limit over all projects. Pinned sessions do not count.
    pub max_sessions: Option<usize>,
    /// Limit for each project. Sessions without changes are counted separately.
    pub max_per_project: Option<usize>,
    pub max_bytes: Option<u64>,
    pub older_than: Option<Duration>,
    /// Remove everything that may be removed.
    pub all: bool,
    /// Skip the collection of unneeded objects while the store is smaller than this many bytes: a collection reads
    /// everything, too much for the beginning and the end of each run.
    pub lazy: Option<u64>,
}

/// Result of pruning, or of a dry run.
#[derive(Debug, Default)]
pub struct Pruned {
    pub removed: Vec<SessionEntry>,
    /// Bytes on disk of the whole store and all sessions, before and after (an estimate in a dry run).
    pub bytes_before: u64,
    pub bytes_after: u64,
    /// Still over `max_bytes`: live and pinned sessions need more.
    pub over_budget: bool,
    /// Sessions that could not be removed and objects that could not be freed.
    pub problems: Vec<RollbackError>,
}

impl Catalogue {
    /// Remove sessions, oldest first, until all limits hold. Running sessions are not counted: whether they change
    /// anything is not known yet.
    pub fn prune(&self, retention: &Retention, dry_run: bool) -> Result<Pruned, RollbackError> {
        self.prune_beside(retention, &Clock::asked(), dry_run, None)
    }

    /// [`Catalogue::prune`] by another clock, and when the session `ending`, which is still live, counts as well.
    pub(super) fn prune_beside(
        &self,
        retention: &Retention,
        clock: &Clock,
        dry_run: bool,
        ending: Option<&str>,
    ) -> Result<Pruned, RollbackError> {
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
        let (now, later) = self.choose(&sessions, retention, clock, ending);
        if dry_run {
            return self.foresee(now, later, retention, pruned);
        }
        let left = self.finish_removals(&mut pruned)?;
        for entry in now {
            self.remove(entry, &mut pruned);
        }
        // With limits on number and age everything is decided now, and sessions may begin and end while the collection
        // waits for writers. With a size limit no other process may prune meanwhile: each would remove one session more
        // than needed.
        let _alone = alone.filter(|_| retention.max_bytes.is_some());
        let over = |pruned: &Pruned| retention.max_bytes.is_some_and(|max| pruned.bytes_after > max);
        // A collection reads the whole store, so it runs only if something was removed or space is needed.
        let mut freed = true;
        let roomy = retention.lazy.is_some_and(|few| pruned.bytes_after < few);
        if !roomy && (left || over(&pruned) || !pruned.removed.is_empty()) {
            freed = self.collect(gc, &mut pruned)?;
        }
        // If the collection failed, removing more sessions would free nothing.
        let mut later = later;
        for _ in 0..ROUNDS {
            if !freed || !over(&pruned) {
                break;
            }
            let going = self.by_size(&[], &later, retention, pruned.bytes_after)?.count;
            for entry in later.drain(..going) {
                self.remove(entry, &mut pruned);
            }
            freed = self.collect(gc_compact, &mut pruned)? && going > 0;
        }
        pruned.over_budget = over(&pruned);
        Ok(pruned)
    }

    /// Split sessions (oldest first) into those to remove by number or age and those that may be removed by size.
    fn choose(
        &self,
        sessions: &[SessionEntry],
        retention: &Retention,
        clock: &Clock,
        ending: Option<&str>,
    ) -> (Vec<SessionEntry>, Vec<SessionEntry>) {
        let too_many = self.excess(sessions, retention.max_sessions, ending, |_| "all");
        let project = |entry: &SessionEntry| (entry.project.clone(), entry.is_empty());
        let in_project = self.excess(sessions, retention.max_per_project, ending, project);
        let may_go = sessions.iter().filter(|entry| self.may_go(entry)).cloned();
        let is_older =
            |entry: &_| retention.older_than.is_some_and(|than| clock.age(moment(entry)) > than.as_secs());
        let (now, mut later): (Vec<_>, Vec<_>) = may_go.partition(|entry| {
            let excess = too_many.contains(&entry.id) || in_project.contains(&entry.id);
            retention.all || excess || is_older(entry)
        });
        if retention.max_bytes.is_none() {
            later.clear();
        }
        (now, later)
    }

    /// Ids of the sessions beyond `max` in each group.
    fn excess<T: Eq + Hash>(
        &self,
        sessions: &[SessionEntry],
        max: Option<usize>,
        ending: Option<&str>,
        together: impl Fn(&SessionEntry) -> T,
    ) -> HashSet<String> {
        let Some(max) = max else { return HashSet::new() };
        let mut groups: HashMap<T, (bool, Vec<&SessionEntry>)> = HashMap::new();
        for entry in sessions {
            let (counts, group) = groups.entry(together(entry)).or_default();
            *counts |= ending == Some(entry.id.as_str());
            group.push(entry);
        }
        let too_many = |(counts, group): (bool, Vec<&SessionEntry>)| {
            let entry = |entry: &&SessionEntry| RetentionCandidate {
                at: moment(entry).unwrap_or(0),
                run: None,
                protected: !self.may_go(entry),
            };
            let entries: Vec<RetentionCandidate<'_>> = group.iter().map(entry).collect();
            let gone = excess(&entries, max.saturating_sub(usize::from(counts)), Keep::Newest);
            gone.into_iter().filter_map(|place| Some(group.get(place)?.id.clone())).collect::<Vec<_>>()
        };
        groups.into_values().flat_map(too_many).collect()
    }

    pub(super) fn may_go(&self, entry: &SessionEntry) -> bool {
        entry.status != Status::Live && !entry.pinned && !entry.foreign && self.is_home(&entry.dir)
    }

    /// Choose as few of `later` as needed when everything takes `bytes` and `now` is removed in any case.
    fn by_size(
        &self,
        now: &[SessionEntry],
        later: &[SessionEntry],
        retention: &Retention,
        bytes: u64,
    ) -> Result<Victims, RollbackError> {
        let dir = self.store_dir();
        if !dir.is_dir() {
            return Ok(Victims { count: later.len(), enough: false, freed: 0 });
        }
        let store = Store::open(&dir).map_err(SnapshotError::from)?;
        let candidates = |entries: &[SessionEntry]| {
            let whole = |entry: &SessionEntry| Candidate { dir: resolved(&entry.dir), snapshots: None };
            entries.iter().map(whole).collect::<Vec<_>>()
        };
        let missing = bytes.saturating_sub(retention.max_bytes.unwrap_or(u64::MAX));
        Ok(victims(&store, candidates(now), candidates(later), missing)?)
    }

    fn foresee(
        &self,
        now: Vec<SessionEntry>,
        later: Vec<SessionEntry>,
        retention: &Retention,
        mut pruned: Pruned,
    ) -> Result<Pruned, RollbackError> {
        for entry in &now {
            pruned.bytes_after = pruned.bytes_after.saturating_sub(disk_bytes(&entry.dir)?);
        }
        // By number and age they are removed even if it is not known what that frees.
        let mut by_size = 0;
        match self.by_size(&now, &later, retention, pruned.bytes_after) {
            Ok(Victims { count, freed, .. }) => {
                by_size = count;
                pruned.bytes_after = pruned.bytes_after.saturating_sub(freed);
            }
            Err(error) => pruned.problems.push(error),
        }
        pruned.removed = now.into_iter().chain(later.into_iter().take(by_size)).collect();
        pruned.over_budget = retention.max_bytes.is_some_and(|max| pruned.bytes_after > max);
        Ok(pruned)
    }

    /// Remove one session, unless it is in use. After a failure the others are still removed.
    pub(super) fn remove(&self, entry: SessionEntry, pruned: &mut Pruned) {
        match self.set_aside(&entry) {
            Ok(None) => {}
            Ok(Some(aside)) => {
                pruned.problems.extend(removal::remove_tree(&aside).map_err(RollbackError::from).err());
                pruned.removed.push(entry);
            }
            Err(error) => pruned.problems.push(error),
        }
    }

    fn set_aside(&self, entry: &SessionEntry) -> Result<Option<PathBuf>, RollbackError> {
        let dir = &entry.dir;
        let locks = [Tried::existing(&dir.join("lock"))?, Tried::existing(&dir.join(lock::FILE))?];
        let busy = locks.iter().any(|lock| matches!(lock, Tried::Busy));
        if busy || has_journal(dir) || is_live(dir) || folder::is_pinned(dir) {
            return Ok(None);
        }
        Ok(removal::set_aside(dir, &self.sessions_dir(), &entry.id)?)
    }

    /// Finish what killed processes left: interrupted removals, and places that never became a session. True if there
    /// was any.
    fn finish_removals(&self, pruned: &mut Pruned) -> Result<bool, RollbackError> {
        let dir = self.sessions_dir();
        let mut found = false;
        for entry in std::fs::read_dir(&dir).map_err(RollbackError::io(&dir))? {
            let entry = entry.map_err(RollbackError::io(&dir))?;
            let path = entry.path();
            let aside = removal::is_aside(entry.file_name().as_encoded_bytes());
            if aside || is_unused(&path) {
                found = true;
                let elsewhere = folder::follow(&path).ok().filter(|there| !aside && *there != path);
                for path in elsewhere.iter().chain([&path]) {
                    pruned.problems.extend(removal::remove_tree(path).map_err(RollbackError::from).err());
                }
            }
        }
        Ok(found)
    }

    /// Free objects that no session needs. What cannot be freed now stays until the next time. False on failure.
    fn collect(
        &self,
        how: fn(&Store) -> Result<GcReport, SnapshotError>,
        pruned: &mut Pruned,
    ) -> Result<bool, RollbackError> {
        let problem = removal::collect(&self.store_dir(), how).err();
        let freed = problem.is_none();
        pruned.problems.extend(problem.map(RollbackError::from));
        pruned.bytes_after = self.usage()?;
        Ok(freed)
    }

    /// Bytes on disk of the store and all sessions.
    pub fn usage(&self) -> Result<u64, RollbackError> {
        Ok(disk_bytes(&self.store_dir())?.saturating_add(disk_bytes(&self.sessions_dir())?))
    }

    /// Create the place of a new session that will track `roots`, and mark it as live under the same lock: pruning never
    /// sees it without the mark.
    pub fn begin_session(&self, id: &str, roots: &[PathBuf]) -> Result<(PathBuf, LiveLock), RollbackError> {
        let dir = self.sessions_dir();
        match sys::make_dir(&dir, 0o700) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => other.map_err(RollbackError::io(&dir))?,
        }
        let _begin = self.lock(true)?;
        let place = dir.join(id);
        sys::make_dir(&place, 0o700).map_err(RollbackError::io(&place))?;
        let live = LiveLock::begin_on(&place, roots).map_err(RollbackError::io(&place))?;
        Ok((place, live))
    }

    pub(super) fn lock(&self, shared: bool) -> Result<Lock, RollbackError> {
        let path = self.sessions_dir().join(LOCK);
        Ok(if shared { Lock::share(&path)? } else { Lock::wait(&path)? })
    }
}

/// Whether the place never became a session: its process was killed before a baseline was recorded, so no command ran
/// and there is nothing to restore. Any file that such a process cannot have left keeps it.
pub(super) fn is_unused(place: &Path) -> bool {
    let is_dir = place.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    // The live mark first: it is removed only when the session, or the note of its location, is complete.
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

/// Whether the directory has only these names and temporary files.
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

/// End (or start) of a session, in seconds since 1970.
fn moment(entry: &SessionEntry) -> Option<u64> {
    seconds(entry.metadata.ended.as_deref().unwrap_or(&entry.metadata.started))
}

/// Path of a session's folder as the store's records have it.
pub(super) fn resolved(dir: &Path) -> PathBuf {
    dir.canonicalize().unwrap_or_else(|_| dir.to_owned())
}
