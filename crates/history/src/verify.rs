//! Verification of an owner's snapshots: the store that owners share, once, then each snapshot down to the last file.
//!
//! What an owner adds, such as the seal of a session, is its own. Messages contain file names: escape them before printing.

use std::collections::HashSet;
use std::path::PathBuf;

use nono_snapshot::store::{ObjectKey, Store};
use nono_snapshot::{
    CaptureError, Checks, Observer, SnapshotError, SnapshotId, SnapshotManager, SnapshotProblem, VerifyReport,
};

/// Result of checking a store, with the caches and notes in it.
#[derive(Clone, Debug, Default)]
pub struct StoreVerified {
    pub objects: u64,
    /// Number of bytes read.
    pub bytes: u64,
    pub problems: Vec<String>,
    damaged: HashSet<ObjectKey>,
}

/// Result of checking the snapshots of one owner.
#[derive(Debug, Default)]
pub struct OwnerVerified {
    /// Snapshots that have contents: all but the thinned ones.
    pub snapshots: usize,
    pub problems: Vec<SnapshotProblem>,
    /// Snapshots that cannot be restored as a whole, with the lost paths; a directory stands for everything in it.
    pub lost: Vec<(SnapshotId, Vec<PathBuf>)>,
}

/// Check a store, unless the same `checks` did. A cancelled check is an error: its partial result is useless.
pub fn store(
    store: &Store,
    checks: &mut Checks,
    observer: &dyn Observer,
) -> Result<StoreVerified, SnapshotError> {
    StoreVerified::of(checks.verify_store(store, observer)?)
}

/// Check the store of an owner, as [`store`] does.
pub fn store_of(manager: &mut SnapshotManager, checks: &mut Checks) -> Result<StoreVerified, SnapshotError> {
    StoreVerified::of(manager.verify_store_with(checks)?)
}

impl StoreVerified {
    fn of(report: VerifyReport) -> Result<StoreVerified, SnapshotError> {
        let VerifyReport { store, snapshots: notes, caches } = report;
        if store.cancelled {
            return Err(CaptureError::Cancelled.into());
        }
        let mut verified =
            StoreVerified { objects: store.objects, bytes: store.bytes, ..StoreVerified::default() };
        for problem in store.problems {
            let object = problem.object.map(|object| format!("{object}: ")).unwrap_or_default();
            verified.damaged.extend(problem.object);
            verified.problems.push(format!("{}: {object}{}", problem.file.display(), problem.what));
        }
        verified.problems.extend(notes.into_iter().map(|note| note.what));
        let caches = caches.iter().map(|cache| format!("{}: a damaged cache", cache.path.display()));
        verified.problems.extend(caches);
        Ok(verified)
    }
}

/// Check an owner's snapshots, after the store.
pub fn owner(manager: &SnapshotManager, store: &StoreVerified, checks: &mut Checks) -> OwnerVerified {
    let mut verified =
        OwnerVerified { problems: manager.verify_session_with(checks), ..OwnerVerified::default() };
    // An unreadable record is among the problems.
    let Ok(Some(record)) = manager.session().record() else { return verified };
    let is_whole = verified.problems.is_empty() && store.damaged.is_empty();
    for recorded in record.snapshots.iter().filter(|recorded| !recorded.thinned) {
        verified.snapshots += 1;
        if is_whole {
            continue;
        }
        let id = recorded.snapshot();
        // Of a snapshot that cannot be read, everything is lost.
        let lost = manager.lost(&id, &store.damaged).unwrap_or_else(|_| record.roots.clone());
        if !lost.is_empty() {
            verified.lost.push((id, lost));
        }
    }
    verified
}
