//! Purging a path from sessions: it is removed from every snapshot, and the session is described and sealed anew.
//!
//! The engine removes the path from the record. That changes the roots of the snapshots, so `session.json` gets the new
//! ones and the ledger another seal of the session, which replaces the old one (the old line stays, as all lines do).
//! Only a session that matched its seal is sealed again: damage is not made good by this. The file `forgetting` tells
//! an interrupted purge from damage. The bytes are freed when the caller purges the store.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nono_history::lock::Lock;
use nono_snapshot::file::{self, Sync};
use nono_snapshot::hash::content_hash;
use nono_snapshot::{Cause, ContentHash, SnapshotError, SnapshotId};

use super::catalogue::{Catalogue, RollbackSession};
use super::changes::Changed;
use super::entry::{SessionEntry, Status};
use super::error::RollbackError;
use super::folder::{self, METADATA};
use super::seals::{self, Ledger, snapshots_digest};

/// Marker in a session's folder, from before its record changes until it is sealed again.
const UNDER_WAY: &str = "forgetting";

/// Result of purging a path from the sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionsForgot {
    /// Sessions that had the path, and in how many snapshots.
    pub sessions: Vec<(String, u64)>,
    /// Contents that the path had in them.
    pub contents: BTreeSet<ContentHash>,
    /// Stores of these sessions, which have to be purged.
    pub stores: BTreeSet<PathBuf>,
    /// Sessions that still have the path, and why.
    pub held: Vec<(String, String)>,
}

impl Catalogue {
    /// Sessions that have a path (absolute, without symlinks), newest first, each with the number of snapshots that
    /// have it.
    pub fn holding(&self, path: &Path) -> Result<Vec<(SessionEntry, u64)>, RollbackError> {
        let mut holding = Vec::new();
        for entry in self.list()?.0.into_iter().filter(|entry| may_hold(entry, path)) {
            let snapshots = self.open(entry.clone())?.snapshots_with(path)?;
            if snapshots > 0 || entry.dir.join(UNDER_WAY).exists() {
                holding.push((entry, snapshots));
            }
        }
        Ok(holding)
    }

    /// Remove a path from all snapshots of all sessions that are not running. The file itself is not touched.
    pub fn forget(&self, path: &Path) -> Result<SessionsForgot, RollbackError> {
        let mut forgot = SessionsForgot::default();
        for (entry, _) in self.holding(path)? {
            let id = entry.id.clone();
            if let Some(why) = in_the_way(&entry, path) {
                forgot.held.push((id, why.to_owned()));
                continue;
            }
            let mut session = self.open(entry)?;
            let engine = session.forget(path)?;
            forgot.stores.insert(session.manager.store().dir().to_owned());
            forgot.contents.extend(engine.contents);
            forgot.sessions.push((id, engine.snapshots));
        }
        Ok(forgot)
    }
}

/// Whether the session may have the path. Sessions of another format have no snapshots.
fn may_hold(entry: &SessionEntry, path: &Path) -> bool {
    let tracked = entry.metadata.tracked_paths.iter();
    tracked.clone().any(|root| super::catalogue::overlap(root, path))
        && entry.dir.join(folder::RECORD).is_file()
}

/// Reason why the path cannot be purged from this session now.
fn in_the_way(entry: &SessionEntry, path: &Path) -> Option<&'static str> {
    if entry.status == Status::Live {
        return Some("it is running; forget the path again when it has ended");
    }
    if nono_history::has_journal(&entry.dir) {
        return Some("a restore of it was interrupted; `nono rollback recover` completes it");
    }
    let roots = &entry.metadata.tracked_paths;
    if roots.iter().any(|root| root == path) {
        return Some("it is a tracked root of that session; `nono rollback cleanup` removes sessions");
    }
    let above = roots.iter().any(|root| root.starts_with(path));
    above.then_some("a tracked root of that session is inside it; `nono rollback cleanup` removes sessions")
}

impl RollbackSession {
    /// Number of snapshots with an entry at this path, or at a root below it.
    fn snapshots_with(&self, path: &Path) -> Result<u64, RollbackError> {
        let mut count = 0;
        for info in self.snapshots()?.into_iter().filter(|info| !info.thinned) {
            let below = self.manager.roots().iter().filter(|root| root.starts_with(path));
            let asked = below.map(PathBuf::as_path).chain([path]);
            let mut has = false;
            for path in asked {
                // A damaged snapshot has nothing that could be restored; `verify` names it.
                has |= self.manager.entry(&info.id, path).is_ok_and(|entry| entry.is_some());
            }
            count += u64::from(has);
        }
        Ok(count)
    }

    /// Remove the path from every snapshot. The caller has checked that the session is not running.
    fn forget(&mut self, path: &Path) -> Result<nono_snapshot::Forgotten, RollbackError> {
        let dir = self.entry.dir.clone();
        let _lock = Lock::take(&dir)?;
        let note = dir.join(UNDER_WAY);
        let sealed = note.exists() || self.fits_seal()?;
        if sealed {
            file::replace(&note, b"", Sync::Yes).map_err(RollbackError::io(&note))?;
        }
        let forgotten = self.manager.forget(path)?;
        self.describe_anew()?;
        if sealed {
            seals::seal(&self.catalogue, &self.entry.id, &dir)?;
            file::remove(&note).map_err(RollbackError::io(&note))?;
        }
        Ok(forgotten)
    }

    /// Whether the session matches its seal. Foreign and killed sessions have none.
    fn fits_seal(&self) -> Result<bool, RollbackError> {
        if self.entry.foreign {
            return Ok(false);
        }
        let ledger = Ledger::read(&self.catalogue)?;
        let metadata = folder::read_if_there(&self.entry.dir.join(METADATA))?;
        let record = self.record()?;
        Ok(ledger.of(&self.entry.id).is_some_and(|seal| {
            metadata.as_deref().map(content_hash) == Some(seal.metadata)
                && snapshots_digest(&record) == seal.snapshots
        }))
    }

    /// Rewrite `session.json` with the present roots, coverage and counts of the snapshots.
    fn describe_anew(&mut self) -> Result<(), RollbackError> {
        if !self.entry.dir.join(METADATA).is_file() {
            return Ok(());
        }
        let record = self.record()?;
        let mut metadata = self.entry.metadata.clone();
        metadata.merkle_roots = folder::numbered(&record).iter().map(|one| one.merkle_root).collect();
        let first = SnapshotId::Number(0);
        if metadata.coverage.is_some() {
            metadata.coverage = Some(self.manager.load_whole(&first)?.coverage);
        }
        if let (Some(_), Some(last)) = (metadata.changes, metadata.final_snapshot) {
            let last = SnapshotId::Number(last);
            metadata.changes = Some(Changed::between(&self.manager, &first, &last, false)?.counts);
        }
        self.manager.save_session_metadata(&metadata)?;
        self.entry.metadata = metadata;
        Ok(())
    }

    /// Paths purged from the session's snapshots. Trees are walked only where there are any.
    pub(super) fn forgotten(&self) -> Result<BTreeSet<PathBuf>, RollbackError> {
        let mut paths = BTreeSet::new();
        for info in self.snapshots()?.into_iter().filter(|info| !info.thinned) {
            let Ok(manifest) = self.manager.load_whole(&info.id) else { continue };
            if manifest.coverage.left_out.iter().any(|one| one.cause == Cause::Forgotten) {
                let left_out = manifest.left_out().map_err(SnapshotError::from)?;
                let gone = left_out
                    .into_iter()
                    .filter(|(_, reason)| *reason == nono_snapshot::node::Reason::Forgotten);
                paths.extend(gone.map(|(path, _)| path));
            }
        }
        Ok(paths)
    }
}
