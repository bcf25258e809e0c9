//! Verification of sessions: their snapshots, as those of every owner, and the seal made when a session ended.

use std::path::PathBuf;

use nono_history::verify;
use nono_snapshot::hash::content_hash;
use nono_snapshot::session::{Recorded, SnapshotList};
use nono_snapshot::{CaptureError, Checks, SessionMetadata, SnapshotError, SnapshotId, SnapshotProblem};

use super::catalogue::{Catalogue, RollbackSession};
use super::entry::{SessionEntry, Status};
use super::error::RollbackError;
use super::folder::{self, METADATA};
use super::seals::{Ledger, snapshots_digest};
use super::tracking::SharedObserver;

/// Result of verifying one session.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "independent findings")]
pub struct SessionVerified {
    pub snapshots: usize,
    pub objects: u64,
    pub bytes: u64,
    /// The session was sealed when it ended, and matches its seal.
    pub sealed: bool,
    /// The session was sealed when it ended, and does not match its seal, or the ledger of seals is damaged.
    pub seal_broken: bool,
    /// Its record or description is damaged, which a repair rebuilds.
    pub repairable: bool,
    /// The session was killed and has no seal: only its own digests were checked.
    pub interrupted: bool,
    /// The session was removed during the check.
    pub removed: bool,
    /// What was altered or damaged. Messages contain file names: escape them before printing.
    pub problems: Vec<String>,
    /// Snapshots that cannot be restored as a whole, with the lost paths; a directory stands for everything in it.
    pub lost: Vec<(SnapshotId, Vec<PathBuf>)>,
    /// Paths purged from its snapshots (`nono checkpoints forget`): they are not missing.
    pub forgotten: Vec<PathBuf>,
}

impl SessionVerified {
    pub fn is_good(&self) -> bool {
        self.problems.is_empty() && self.lost.is_empty()
    }
}

/// Result of verifying several sessions.
#[derive(Debug, Default)]
pub struct AllVerified {
    /// Sessions by their ids, newest first.
    pub sessions: Vec<(String, SessionVerified)>,
    /// Running sessions, which are not checked: their snapshots are being taken, and nothing is sealed yet.
    pub running: Vec<String>,
    /// Folders that cannot be read.
    pub unreadable: Vec<RollbackError>,
}

impl AllVerified {
    pub fn is_good(&self) -> bool {
        self.unreadable.is_empty() && self.sessions.iter().all(|(_, found)| found.is_good())
    }
}

impl Catalogue {
    /// Verify all sessions. What they share is checked once.
    pub fn verify_all(&self, observer: &SharedObserver) -> Result<AllVerified, RollbackError> {
        let (entries, unreadable) = self.list()?;
        let mut all = AllVerified { unreadable, ..AllVerified::default() };
        let mut checks = Checks::default();
        for entry in entries {
            let id = entry.id.clone();
            if entry.status == Status::Live {
                all.running.push(id);
                continue;
            }
            all.sessions.push((id, self.verify(entry, observer, &mut checks)?));
        }
        Ok(all)
    }

    /// Verify one of several sessions. Except for a cancellation, an error is a problem of that session alone.
    pub fn verify(
        &self,
        entry: SessionEntry,
        observer: &SharedObserver,
        checks: &mut Checks,
    ) -> Result<SessionVerified, RollbackError> {
        let dir = entry.dir.clone();
        let verified = self.open(entry).and_then(|mut session| {
            session.manager().observe(observer.clone());
            session.verify_with(checks)
        });
        match verified {
            Err(RollbackError::Snapshot(SnapshotError::Capture(CaptureError::Cancelled))) => verified,
            Err(_) if dir.symlink_metadata().is_err() => {
                Ok(SessionVerified { removed: true, ..SessionVerified::default() })
            }
            Err(error) => {
                Ok(SessionVerified { problems: vec![error.to_string()], ..SessionVerified::default() })
            }
            verified => verified,
        }
    }
}

impl RollbackSession {
    /// Recompute every tree and object, and compare with the roots in `session.json` and in the ledger of seals.
    pub fn verify(&mut self) -> Result<SessionVerified, RollbackError> {
        self.verify_with(&mut Checks::default())
    }

    /// [`RollbackSession::verify`] for one of several sessions: shared objects are checked once.
    pub fn verify_with(&mut self, checks: &mut Checks) -> Result<SessionVerified, RollbackError> {
        let verified = self.check(checks);
        // A session removed by another process is neither good nor bad.
        if self.entry.dir.symlink_metadata().is_err() {
            return Ok(SessionVerified { removed: true, ..SessionVerified::default() });
        }
        verified
    }

    fn check(&mut self, checks: &mut Checks) -> Result<SessionVerified, RollbackError> {
        let store = verify::store_of(&mut self.manager, checks)?;
        let owner = verify::owner(&self.manager, &store, checks);
        let mut verified = SessionVerified {
            snapshots: owner.snapshots,
            objects: store.objects,
            bytes: store.bytes,
            problems: store.problems,
            lost: owner.lost,
            repairable: self.manager.session().is_damaged(),
            ..SessionVerified::default()
        };
        verified.problems.extend(owner.problems.iter().map(sentence));
        // An unreadable record is among the problems already.
        if let Ok(Some(record)) = self.manager.session().record() {
            let bytes = folder::read_if_there(&self.metadata_path())?;
            match bytes.as_deref().map(serde_json::from_slice::<SessionMetadata>).transpose() {
                Ok(metadata) => {
                    let compare = |metadata: &SessionMetadata| self.compare(metadata, &record);
                    verified.problems.extend(metadata.iter().flat_map(compare));
                }
                Err(error) => {
                    verified.repairable = true;
                    verified.problems.push(RollbackError::damaged(self.metadata_path(), error).to_string());
                }
            }
            self.check_seal(bytes.as_deref(), &record, &mut verified)?;
            verified.forgotten = self.forgotten()?.into_iter().collect();
        }
        Ok(verified)
    }

    fn metadata_path(&self) -> PathBuf {
        self.entry.dir.join(METADATA)
    }

    /// Compare the roots in `session.json` with those of the record.
    fn compare(&self, metadata: &SessionMetadata, record: &SnapshotList) -> Vec<String> {
        let path = self.metadata_path();
        let numbered = folder::numbered(record);
        let mut problems = Vec::new();
        for (number, root) in metadata.merkle_roots.iter().enumerate() {
            let is_it = |one: &&&Recorded| {
                one.snapshot() == SnapshotId::Number(u32::try_from(number).unwrap_or(u32::MAX))
            };
            match numbered.iter().find(is_it) {
                Some(recorded) if recorded.merkle_root == *root => {}
                Some(_) => problems.push(format!(
                    "snapshot {number}: its root in {} differs from the record",
                    path.display()
                )),
                None => problems
                    .push(format!("snapshot {number}: {} names it, the record does not", path.display())),
            }
        }
        problems
    }

    fn check_seal(
        &self,
        metadata: Option<&[u8]>,
        record: &SnapshotList,
        verified: &mut SessionVerified,
    ) -> Result<(), RollbackError> {
        if self.entry.foreign {
            return Ok(());
        }
        let ledger = Ledger::read(&self.catalogue)?;
        let before = verified.problems.len();
        verified.problems.extend(ledger.problems.iter().cloned());
        let id = &self.entry.id;
        let Some(seal) = ledger.of(id) else {
            verified.interrupted =
                self.entry.status == Status::Interrupted || folder::was_killed(&self.entry.dir);
            if self.entry.status == Status::Finished && !verified.interrupted {
                verified.problems.push(format!("session {id} has ended but is not sealed"));
            }
            return Ok(());
        };
        if metadata.map(content_hash) != Some(seal.metadata) {
            let path = self.metadata_path();
            let how = if metadata.is_some() { "changed" } else { "removed" };
            verified.problems.push(format!("{} was {how} after the session was sealed", path.display()));
        }
        if snapshots_digest(record) != seal.snapshots {
            verified
                .problems
                .push(format!("the snapshots of session {id} were changed after the session was sealed"));
        }
        verified.sealed = verified.problems.len() == before;
        verified.seal_broken = !verified.sealed;
        Ok(())
    }
}

fn sentence(problem: &SnapshotProblem) -> String {
    match &problem.id {
        Some(id) => format!("snapshot {id}: {}", problem.what),
        None => problem.what.clone(),
    }
}
