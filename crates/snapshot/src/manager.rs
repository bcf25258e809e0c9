//! The manager: snapshots of some roots, in one session folder.
//!
//! Each operation is a sequence of stages: lock the session, capture, publish (manifest, then record), compare. The
//! next operation completes or removes whatever a killed process left unfinished.

mod added_roots;
mod background;
mod check;
mod edit;
mod error;
mod forget;
mod freeing;
mod import;
mod incremental;
mod open;
mod pending_restores;
mod query;
mod repair;
mod restore;
mod roots;
mod sessions;
mod settling;
mod shortage;
mod unnumbered;
mod upkeep;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::capture::{
    self, CaptureError, CaptureOptions, CaptureRequest, Captured, Gaps, RulesFrom, Shortage,
};
use crate::coverage::{Coverage, CoverageNote, Protection};
use crate::exclusion::{ExclusionConfig, FrozenRules};
use crate::file::Sync;
use crate::files::Files;
use crate::hash::{ContentHash, MerkleRoot, StateRoot};
use crate::manager::error::Result;
use crate::manifest::{ManifestBody, SnapshotId};
use crate::metadata::SessionMetadata;
use crate::node::{Entry, Reason, Time};
use crate::objects::StoreObjects;
use crate::scan::ScanCounts;
use crate::session::{Session, SessionHold, SnapshotList};
use crate::state::{ObjectError, Observer, RootContent, RootState, SnapshotState};
use crate::store::{ObjectKey, Quota, Store};
use crate::time;
use crate::unlock::UnlockLog;

pub use check::{CacheProblem, Checks, SnapshotProblem, VerifyReport};
pub use error::SnapshotError;
pub use forget::{Forgotten, holders};
pub use freeing::{Candidate, Freed, freed};
pub use import::{Adopted, AdoptedPiece, Contents, ContentsError, ImportedPath};
pub use incremental::{Next, Now};
pub use pending_restores::CompletedOther;
pub use repair::{LostSnapshot, Repaired, RepairedRecord, repair};
pub use restore::{RestoreOptions, Restored};
pub use roots::resolved;
pub use sessions::session_dirs;
pub use settling::settle_store;
pub use upkeep::{GcReport, SettleReport, gc, gc_compact, shares};

/// Limits on a capture; 0 is no limit. Beyond a limit nothing is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Number of files of all kinds, without directories.
    pub max_entries: u64,
    /// Total size of files in bytes.
    pub max_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_entries: 300_000, max_bytes: 2 << 30 }
    }
}

impl Limits {
    pub const NONE: Limits = Limits { max_entries: 0, max_bytes: 0 };
}

#[derive(Clone, Debug, Default)]
pub struct ManagerOptions {
    /// Store shared with other sessions; without it the session folder has its own.
    pub store: Option<PathBuf>,
    /// Limits on everything written to the store.
    pub quota: Option<Quota>,
    pub capture: CaptureOptions,
    /// Folders of nono's own state and other stores, never captured.
    pub own: Vec<PathBuf>,
    /// Whether a snapshot may be empty because no root exists, which the coverage names; otherwise that is an error.
    pub roots_may_be_missing: bool,
    /// Whether any snapshot may be thinned out, including the first and the last: a history without a session.
    pub give_up_any: bool,
    /// Whether compressing and syncing is left to [`SnapshotManager::settle`] instead of being done in the background.
    pub settle_by_hand: bool,
}

/// Takes snapshots of its roots, and restores them.
pub struct SnapshotManager {
    session: Session,
    store: Arc<Store>,
    roots: Vec<PathBuf>,
    exclusion: ExclusionConfig,
    limits: Limits,
    options: ManagerOptions,
    observer: Box<dyn Observer + Send>,
    started: Time,
    background: background::Background,
    recovered: Option<Restored>,
    completed: Vec<CompletedOther>,
    written: Arc<AtomicU64>,
}

impl std::fmt::Debug for SnapshotManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotManager")
            .field("session", &self.session)
            .field("roots", &self.roots)
            .finish_non_exhaustive()
    }
}

/// One snapshot.
#[derive(Clone, Debug)]
pub struct Manifest {
    pub id: SnapshotId,
    /// Number in the session; safety snapshots have none, and are 0 here.
    pub number: u32,
    /// Time in ISO 8601, UTC.
    pub timestamp: String,
    pub parent: Option<u32>,
    pub merkle_root: MerkleRoot,
    pub state_root: StateRoot,
    pub coverage: Coverage,
    /// Whether it survives a power loss.
    pub durable: bool,
    pub state: SnapshotState,
    /// Work done to take it; zero for one that was loaded.
    pub work: ScanCounts,
    store: Arc<Store>,
}

impl Manifest {
    /// Regular files, by absolute path.
    pub fn files(&self) -> Result<Files, ObjectError> {
        crate::files::files(&self.state, &StoreObjects::new(&self.store))
    }

    /// Directories that it holds, by absolute path.
    pub fn directories(&self) -> Result<Vec<PathBuf>, ObjectError> {
        crate::files::directories(&self.state, &StoreObjects::new(&self.store))
    }

    /// Visit every entry in the order of paths; [`crate::RootState::path`] is where each root begins.
    pub fn each_entry(&self, visit: impl FnMut(&Path, &Entry)) -> Result<(), ObjectError> {
        self.each_entry_of(&self.state, visit)
    }

    /// The same, with other names for the roots.
    pub fn each_entry_of(
        &self,
        state: &SnapshotState,
        visit: impl FnMut(&Path, &Entry),
    ) -> Result<(), ObjectError> {
        crate::files::each_entry(state, &StoreObjects::new(&self.store), visit)
    }

    /// Whether this path is protected, and if not, why.
    pub fn protection(&self, path: &Path) -> Result<Protection, ObjectError> {
        crate::files::protection(&self.state, &StoreObjects::new(&self.store), path)
    }

    /// All excluded entries, with their reasons.
    pub fn left_out(&self) -> Result<Vec<(PathBuf, crate::node::Reason)>, ObjectError> {
        crate::files::left_out(&self.state, &StoreObjects::new(&self.store))
    }
}

impl SnapshotManager {
    /// Set the observer that is told the progress of long operations.
    pub fn observe(&mut self, observer: impl Observer + Send + 'static) {
        self.observer = Box::new(observer);
    }

    /// Set the number of bytes that the store may grow with the next snapshot.
    pub fn set_budget(&mut self, budget: Option<u64>) {
        self.options.capture.budget = budget;
    }

    /// Set the handling of contents that do not fit.
    pub fn set_gaps(&mut self, gaps: Gaps) {
        self.options.capture.gaps = gaps;
    }

    /// Number of bytes this manager added to the store so far, published or not.
    pub fn written(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.written)
    }

    pub fn session(&self) -> &Session {
        &self.session
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Tracked paths, resolved.
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Number of numbered snapshots taken in this session.
    pub fn snapshot_count(&self) -> Result<u32> {
        let record = self.session.record()?;
        Ok(record.and_then(|record| record.last_number()).map_or(0, |last| last + 1))
    }

    /// Take snapshot number 0. A session has only one: the state that everything later can be undone to.
    pub fn create_baseline(&mut self) -> Result<Manifest> {
        let held = self.enter()?;
        if self.session.record()?.is_some_and(|record| !record.snapshots.is_empty()) {
            return Err(SnapshotError::HasSnapshots { dir: self.session.dir().to_owned() });
        }
        let record = SnapshotList::new(self.roots.clone(), self.started);
        let captured = self.capture_live(None, &[], false)?;
        self.ensure_something(&captured)?;
        let manifest = self.publish(&held, record, captured, SnapshotId::Number(0), None)?;
        // Space for a restore on a full disk; if it cannot be reserved, such a restore reports that.
        let _ = self.store.keep_reserve();
        self.settle_in_background();
        Ok(manifest)
    }

    pub fn save_session_metadata(&self, metadata: &SessionMetadata) -> Result<()> {
        let _held = self.session.hold()?;
        Ok(self.session.save_metadata(metadata)?)
    }

    pub fn load_session_metadata(session_dir: impl Into<PathBuf>) -> Result<SessionMetadata> {
        Ok(Session::new(session_dir).load_metadata()?)
    }

    /// Lock the session, and finish what a killed process left.
    fn enter(&mut self) -> Result<SessionHold> {
        let held = hold(&self.session, &*self.observer)?;
        self.session.tidy(&held)?;
        if let Some(restored) = self.recover_held(&held)? {
            self.recovered = Some(restored);
        }
        self.complete_others()?;
        Ok(held)
    }

    fn recorded(&self) -> Result<SnapshotList> {
        self.session.record()?.ok_or_else(|| self.no_baseline())
    }

    fn no_baseline(&self) -> SnapshotError {
        SnapshotError::NoBaseline { dir: self.session.dir().to_owned() }
    }

    fn capture_live(
        &mut self,
        before: Option<&ManifestBody>,
        known: &[ContentHash],
        unlock: bool,
    ) -> Result<Captured> {
        let set_aside: Vec<PathBuf> = before.map(set_aside_roots).unwrap_or_default();
        let rules = RulesFrom::Live { config: &self.exclusion.clone(), set_aside: &set_aside, known };
        let roots = self.roots.clone();
        self.capture(&roots, rules, before.map(|sheet| &sheet.state), self.limits, unlock)
    }

    /// Capture these roots.
    fn capture(
        &mut self,
        roots: &[PathBuf],
        rules: RulesFrom<'_>,
        previous: Option<&SnapshotState>,
        limits: Limits,
        unlock: bool,
    ) -> Result<Captured> {
        self.capture_of(roots, roots, rules, previous, limits, unlock, None)
    }

    /// Folders that are never captured.
    fn own(&self) -> Vec<PathBuf> {
        let mut own = vec![self.session.dir().to_owned(), self.store.dir().to_owned()];
        own.extend(self.options.own.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone())));
        own
    }

    /// Capture some of the roots.
    #[allow(clippy::too_many_arguments, reason = "each is one line of the request")]
    fn capture_of(
        &mut self,
        roots: &[PathBuf],
        all_roots: &[PathBuf],
        rules: RulesFrom<'_>,
        previous: Option<&SnapshotState>,
        limits: Limits,
        unlock: bool,
        shortage: Option<Shortage<'_>>,
    ) -> Result<Captured> {
        let own = self.own();
        let unlock = unlock.then(|| UnlockLog::new(self.session.unlocked_path()));
        let request = CaptureRequest {
            store: &self.store,
            roots,
            all_roots,
            options: self.options.capture,
            max_entries: limits.max_entries,
            max_bytes: limits.max_bytes,
            session_start: self.started,
            own: &own,
            previous,
            unlock: unlock.as_ref(),
            rules,
            observer: &*self.observer,
            shortage,
        };
        let captured = capture::capture(&request);
        let closed = unlock.map_or(Ok(()), UnlockLog::finish);
        let captured = captured?;
        self.written.fetch_add(captured.published.bytes, Ordering::Relaxed);
        closed.map_err(|error| CaptureError::StaysOpen { path: error.path, source: error.source })?;
        Ok(captured)
    }

    /// Publish: the manifest first, the record last. Only snapshots in the record exist.
    fn publish(
        &self,
        held: &SessionHold,
        record: SnapshotList,
        captured: Captured,
        id: SnapshotId,
        parent: Option<u32>,
    ) -> Result<Manifest> {
        self.publish_at(held, record, captured, id, parent, time::now_iso())
    }

    fn publish_at(
        &self,
        _held: &SessionHold,
        mut record: SnapshotList,
        captured: Captured,
        id: SnapshotId,
        parent: Option<u32>,
        timestamp: String,
    ) -> Result<Manifest> {
        let sheet = ManifestBody {
            id,
            timestamp,
            parent,
            state: captured.state,
            rules: captured.rules,
            coverage: captured.coverage,
        };
        let recorded = self.session.save_manifest(&sheet)?;
        let path = self.session.manifest_path(&recorded);
        record.snapshots.push(recorded);
        // For a session outside the store's home: the note lists the needed objects before the snapshot is recorded.
        let noted = sessions::note(&self.store, &self.session, Some(&sheet), Sync::No);
        let saved = noted.and_then(|()| Ok(self.session.save_record(&record, Sync::Whole)?));
        if saved.is_err() {
            // Not recorded, so it does not exist. If it cannot be removed now, the next operation removes it.
            let _ = std::fs::remove_file(path);
        }
        saved?;
        drop(captured.published);
        Ok(Manifest { work: captured.counts, ..self.manifest(sheet, false) })
    }

    fn manifest(&self, sheet: ManifestBody, durable: bool) -> Manifest {
        Manifest {
            number: sheet.number().unwrap_or(0),
            merkle_root: sheet.merkle_root(),
            state_root: sheet.state_root(),
            id: sheet.id,
            timestamp: sheet.timestamp,
            parent: sheet.parent,
            coverage: sheet.coverage,
            durable,
            state: sheet.state,
            work: ScanCounts::default(),
            store: self.store.clone(),
        }
    }

    /// Refuse a snapshot that holds nothing of a tree that is not empty.
    fn ensure_something(&self, captured: &Captured) -> Result<()> {
        let coverage = &captured.coverage;
        let holds = coverage.files + coverage.others > 0;
        let nothing_there =
            coverage.left_out.iter().all(|left_out| left_out.cause == crate::coverage::Cause::OwnState);
        let failed = |note: &&CoverageNote| matches!(note, CoverageNote::RootFailed { .. });
        let failed_roots = coverage.notes.iter().filter(failed).count();
        let all_failed = failed_roots > 0 && failed_roots == captured.state.roots.len();
        let missing = self.options.roots_may_be_missing && are_missing(&captured.state);
        if holds || missing || (nothing_there && !all_failed) {
            return Ok(());
        }
        let examples = coverage.left_out.iter().flat_map(|left_out| &left_out.examples);
        let examples = examples.map(|example| format!("{}: {}", example.path.display(), example.reason));
        let notes = coverage.notes.iter().filter(failed).map(ToString::to_string);
        Err(CaptureError::Nothing { reasons: notes.chain(examples).take(5).collect() }.into())
    }

    /// Frozen rules of a snapshot, in the order of its roots.
    fn frozen_rules(&self, sheet: &ManifestBody) -> Result<Vec<Option<FrozenRules>>> {
        let read = |hash: &Option<ContentHash>| hash.map(|hash| self.frozen(&sheet.id, hash)).transpose();
        sheet.rules.iter().map(read).collect()
    }

    fn frozen(&self, id: &SnapshotId, hash: ContentHash) -> Result<FrozenRules> {
        let bytes = self.store.read(ObjectKey::rules(hash))?;
        let wrong = |error: crate::bytes::Malformed| SnapshotError::FrozenRules {
            id: id.clone(),
            what: error.to_string(),
        };
        FrozenRules::decode(&bytes).map_err(wrong)
    }
}

/// Wait for other operations on this session, also in other processes, until the observer cancels.
fn hold(session: &Session, observer: &dyn Observer) -> Result<SessionHold> {
    loop {
        if let Some(held) = session.try_hold()? {
            return Ok(held);
        }
        if observer.cancelled() {
            return Err(CaptureError::Cancelled.into());
        }
        // A blocking lock could not be cancelled.
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Whether every root is known not to exist.
fn are_missing(state: &SnapshotState) -> bool {
    let none = rustix::io::Errno::NOENT.raw_os_error();
    let missing = |root: &RootState| matches!(&root.content, RootContent::Failed(Reason::Unreadable(errno)) if errno.0 == none);
    state.roots.iter().all(missing)
}

/// Roots whose ignore rules were set aside.
fn set_aside_roots(sheet: &ManifestBody) -> Vec<PathBuf> {
    let aside = |note: &CoverageNote| match note {
        CoverageNote::IgnoreRulesSetAside { root, .. } => Some(root.clone()),
        _ => None,
    };
    sheet.coverage.notes.iter().filter_map(aside).collect()
}
