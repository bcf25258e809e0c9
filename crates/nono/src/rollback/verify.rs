//! Verification of a session against the seal made when it ended.

use std::path::PathBuf;

use nono_snapshot::hash::content_hash;
use nono_snapshot::session::{Recorded, SnapshotList};
use nono_snapshot::{Checks, SessionMetadata, SnapshotId, VerifyReport};

use super::catalogue::RollbackSession;
use super::entry::Status;
use super::error::RollbackError;
use super::folder::{self, METADATA};
use super::seals::{Ledger, snapshots_digest};

/// Result of a verification. `problems` is empty if nothing was altered or damaged.
#[derive(Debug, Default)]
pub struct SessionVerified {
    pub snapshots: usize,
    pub objects: u64,
    pub bytes: u64,
    /// The session was sealed when it ended, and matches its seal.
    pub sealed: bool,
    /// The session was killed and has no seal: only its own digests were checked.
    pub interrupted: bool,
    /// The session was removed during the check.
    pub removed: bool,
    pub problems: Vec<String>,
    /// Paths purged from its snapshots (`nono checkpoints forget`): they are not missing.
    pub forgotten: Vec<PathBuf>,
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
        let report = self.manager.verify_with(checks)?;
        let mut verified = SessionVerified {
            objects: report.store.objects,
            bytes: report.store.bytes,
            problems: engine_problems(&report),
            ..SessionVerified::default()
        };
        // An unreadable record is among the engine's problems already.
        if let Ok(Some(record)) = self.manager.session().record() {
            verified.snapshots = record.snapshots.iter().filter(|recorded| !recorded.thinned).count();
            let bytes = folder::read_if_there(&self.metadata_path())?;
            match bytes.as_deref().map(serde_json::from_slice::<SessionMetadata>).transpose() {
                Ok(metadata) => {
                    let compare = |metadata: &SessionMetadata| self.compare(metadata, &record);
                    verified.problems.extend(metadata.iter().flat_map(compare));
                }
                Err(error) => {
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
            verified.problems.push(format!("{} is not what was sealed", path.display()));
        }
        if snapshots_digest(record) != seal.snapshots {
            verified.problems.push(format!("the snapshots of session {id} are not those that were sealed"));
        }
        verified.sealed = verified.problems.len() == before;
        Ok(())
    }
}

fn engine_problems(report: &VerifyReport) -> Vec<String> {
    let store = report.store.problems.iter().map(|problem| match &problem.object {
        Some(object) => format!("{}: {object}: {}", problem.file.display(), problem.what),
        None => format!("{}: {}", problem.file.display(), problem.what),
    });
    let snapshots = report.snapshots.iter().map(|problem| match &problem.id {
        Some(id) => format!("snapshot {id}: {}", problem.what),
        None => problem.what.clone(),
    });
    let caches = report.caches.iter().map(|cache| format!("{}: a damaged cache", cache.path.display()));
    store.chain(snapshots).chain(caches).collect()
}
