//! Space for the snapshots of a run: the store's quota, and removal of older sessions when a snapshot does not fit.
//!
//! What to remove is decided before anything is removed: sessions without changes first, then the oldest, the newest of
//! each project last; never a session that is live, pinned, foreign or ended in the last minutes (the user may be
//! reading how to undo it). If all of them together would not be enough, none is removed.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use nono_history::clock::{Clock, mark_sweep};
use nono_history::quota::{self, Victims, victims};
use nono_snapshot::store::{Owner, Quota, Store};
use nono_snapshot::{Candidate, CaptureError, Gaps, SnapshotError, SnapshotManager, gc_compact};

use super::catalogue::Catalogue;
use super::entry::SessionEntry;
use super::error::RollbackError;
use super::prune::{MARKER, Pruned, Retention, resolved};
use super::settings::RollbackSettings;

/// Seconds between two automatic prunings by age.
const DAY: u64 = 86_400;

/// Store of a session's snapshots, and its size limit.
#[derive(Clone, Debug)]
pub(super) struct StoreQuota {
    catalogue: Catalogue,
    limit: u64,
    /// Folder and id of a session kept elsewhere. Other sessions there are not nono's to remove.
    elsewhere: Option<(PathBuf, String)>,
}

impl StoreQuota {
    pub(super) fn new(
        catalogue: &Catalogue,
        settings: &RollbackSettings,
        dest: Option<(PathBuf, String)>,
    ) -> StoreQuota {
        StoreQuota { catalogue: catalogue.clone(), limit: settings.max_bytes(), elsewhere: dest }
    }

    pub(super) fn is_elsewhere(&self) -> bool {
        self.elsewhere.is_some()
    }

    /// Store that the session writes to.
    pub(super) fn store(&self) -> PathBuf {
        self.elsewhere.as_ref().map_or_else(|| self.catalogue.store_dir(), |(dest, _)| dest.join("store"))
    }

    pub(super) fn quota(&self) -> Quota {
        let beside = match &self.elsewhere {
            None => vec!["rollbacks".to_owned(), "projects".to_owned()],
            Some((_, id)) => vec![id.clone()],
        };
        Quota { owner: Owner::Session, total: self.limit, checkpoints: 0, beside }
    }

    /// Run a capture, and make room for it if it does not fit. What still does not fit is then left out and reported,
    /// or an error, depending on `last`.
    pub(super) fn with_room<T>(
        &self,
        manager: &mut SnapshotManager,
        last: Gaps,
        warnings: &mut Vec<String>,
        mut work: impl FnMut(&mut SnapshotManager) -> Result<T, SnapshotError>,
    ) -> Result<T, RollbackError> {
        manager.set_gaps(Gaps::Refuse);
        let needed = |error: &SnapshotError| match error {
            SnapshotError::Capture(CaptureError::NoRoom { needed, .. }) => Some(*needed),
            _ => None,
        };
        let outcome = quota::retry(|| work(manager), needed, |needed| self.make(needed, warnings))?;
        manager.set_gaps(Gaps::Allow);
        match (outcome, last) {
            (Err(SnapshotError::Capture(CaptureError::NoRoom { .. })), Gaps::Allow) => Ok(work(manager)?),
            (Err(SnapshotError::Capture(ref error @ CaptureError::NoRoom { needed, .. })), Gaps::Refuse) => {
                let left = self.open().and_then(|store| Ok(store.room()?)).ok();
                Err(RollbackError::NoRoom { what: error.to_string(), needed, left, limit: self.limit })
            }
            (outcome, _) => Ok(outcome?),
        }
    }

    fn open(&self) -> Result<Store, SnapshotError> {
        Ok(Store::open(&self.store())?.with_quota(self.quota()))
    }

    /// Free enough space for `needed` bytes. False if that is impossible; then nothing was removed.
    fn make(&self, needed: u64, warnings: &mut Vec<String>) -> Result<bool, RollbackError> {
        if self.elsewhere.is_some() {
            return Ok(false);
        }
        let _alone = self.catalogue.lock(false)?;
        let store = self.open()?;
        let Some(missing) =
            needed.checked_sub(store.room().map_err(SnapshotError::from)?).filter(|more| *more > 0)
        else {
            // Another process made room meanwhile.
            return Ok(true);
        };
        let sessions = self.may_go()?;
        let candidates: Vec<Candidate> =
            sessions.iter().map(|entry| Candidate { dir: resolved(&entry.dir), snapshots: None }).collect();
        let Victims { count, enough, .. } = victims(&store, Vec::new(), candidates, missing)?;
        if !enough {
            return Ok(false);
        }
        let mut pruned = Pruned::default();
        for entry in sessions.into_iter().take(count) {
            self.catalogue.remove(entry, &mut pruned);
        }
        gc_compact(&store)?;
        store.recount().map_err(SnapshotError::from)?;
        warnings.extend(pruned.problems.iter().map(ToString::to_string));
        warnings.extend(removed(&pruned.removed, "to make room"));
        Ok(true)
    }

    /// Removable sessions in order of removal.
    fn may_go(&self) -> Result<Vec<SessionEntry>, RollbackError> {
        let (sessions, _) = self.catalogue.list()?;
        let mut projects = HashSet::new();
        // Newest first: the first of each project is its newest.
        let [mut empty, mut older, mut newest] = [Vec::new(), Vec::new(), Vec::new()];
        for entry in sessions {
            let is_empty = entry.is_empty();
            let first = !is_empty && projects.insert(entry.project.clone());
            if self.catalogue.may_go(&entry) && !is_recent(&entry) {
                match (is_empty, first) {
                    (true, _) => empty.push(entry),
                    (false, true) => newest.push(entry),
                    (false, false) => older.push(entry),
                }
            }
        }
        let in_order = [empty, older, newest].into_iter().flat_map(|group| group.into_iter().rev());
        Ok(in_order.collect())
    }
}

fn is_recent(entry: &SessionEntry) -> bool {
    quota::is_recent(entry.metadata.ended.as_deref().unwrap_or(&entry.metadata.started))
}

/// Message that names the removed sessions and the reason.
fn removed(sessions: &[SessionEntry], why: &str) -> Option<String> {
    let first = sessions.first()?;
    let last = sessions.last()?;
    Some(match sessions.len() {
        1 => format!("removed the oldest session, {}, {why}", first.id),
        many => format!("removed the {many} oldest sessions, {} to {}, {why}", first.id, last.id),
    })
}

/// Remove sessions beyond the number and, once a day, beyond the age in the settings, besides the one that is `ending`.
/// What was not old at the last pruning by age stays: the clock may have jumped ahead. Returns a message, unless the
/// removed ones had changed nothing.
pub(super) fn prune_by_rule(
    catalogue: &Catalogue,
    settings: &RollbackSettings,
    ending: Option<&str>,
) -> Result<Option<String>, RollbackError> {
    let marker = catalogue.sessions_dir().join(MARKER);
    let due = Clock::automatic(&marker, DAY, 0);
    let days = settings.max_age_days.filter(|_| due.is_some());
    let days = days.map(|days| Duration::from_secs(DAY * u64::from(days)));
    let retention = Retention {
        max_per_project: Some(settings.max_sessions),
        older_than: days,
        max_bytes: None,
        lazy: Some(settings.max_bytes() / 2),
        ..Retention::default()
    };
    let clock = due.unwrap_or_else(Clock::asked);
    let mut pruned = catalogue.prune_beside(&retention, &clock, false, ending)?;
    if due.is_some() {
        // Without a marker nothing is old.
        let _ = mark_sweep(&marker);
    }
    pruned.removed.retain(|entry| !entry.is_empty());
    let number = format!("beyond the {} kept for a project", settings.max_sessions);
    let why = match settings.max_age_days {
        Some(days) => format!("{number}, or older than {days} days"),
        None => number,
    };
    Ok(removed(&pruned.removed, &why))
}
