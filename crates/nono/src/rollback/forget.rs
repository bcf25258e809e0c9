//! Purging a path from sessions: out of every snapshot, and the session described and sealed anew.
//!
//! The engine takes the path out of the record. That changes the roots of the snapshots, so `session.json` gets the new
//! ones and the ledger another seal of the session, the one that counts from then on; the old line stays, as all lines
//! do. Only a session that fitted its seal is sealed again: damage does not become good by this. The file `forgetting` tells a
//! purge that was killed between the two from damage. The bytes go when the store is purged, which is the caller's part.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nono_history::lock::Lock;
use nono_snapshot::file::{self, Sync};
use nono_snapshot::hash::content_hash;
use nono_snapshot::{Cause, ContentHash, SnapshotError, SnapshotId};

use super::catalogue::{Catalogue, RollbackSession, SessionEntry, Status};
use super::changes::Changed;
use super::error::RollbackError;
use super::folder::{self, METADATA};
use super::seals::{self, Ledger, snapshots_digest};

/// In a session's folder, from before its record changes until it is sealed again.
const UNDER_WAY: &str = "forgetting";

/// What purging a path from the sessions did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionsForgot {
    /// Sessions that had it, and in how many snapshots.
    pub sessions: Vec<(String, u64)>,
    /// What it had contained in them.
    pub contents: BTreeSet<ContentHash>,
    /// Their stores, which have to be purged.
    pub stores: BTreeSet<PathBuf>,
    /// Sessions that still have it, and why.
    pub held: Vec<(String, String)>,
}

impl Catalogue {
    /// The sessions that have a path (absolute, without links on the way), newest first, each with the number of its
    /// snapshots that have it.
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

    /// Take a path out of all snapshots of all sessions that do not run. The file itself is not touched.
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

/// One of another format has no snapshots.
fn may_hold(entry: &SessionEntry, path: &Path) -> bool {
    let tracked = entry.metadata.tracked_paths.iter();
    tracked.clone().any(|root| super::catalogue::overlap(root, path))
        && entry.dir.join(folder::RECORD).is_file()
}

/// Why this session cannot forget the path now.
fn in_the_way(entry: &SessionEntry, path: &Path) -> Option<&'static str> {
    if entry.status == Status::Live {
        return Some("it is running; forget the path again when it has ended");
    }
    if entry.dir.join(nono_history::JOURNAL).symlink_metadata().is_ok() {
        return Some("a restore of it was cut off; `nono rollback recover` completes it");
    }
    let whole = entry.metadata.tracked_paths.iter().any(|root| root.starts_with(path));
    whole.then_some("it tracks the path as a whole; only removing the session removes it")
}

impl RollbackSession {
    /// In how many snapshots something stands at this path, or in a folder that is tracked below it.
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

    /// Out of every snapshot. Whoever calls has looked that it does not run.
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

    /// Whether it is what was sealed when it ended. One of others, or one that was killed, has no seal.
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

    /// `session.json` with the roots, the coverage and the counts of the snapshots as they are now.
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

    /// The paths that were purged from its snapshots. Trees are walked only where there are any.
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
