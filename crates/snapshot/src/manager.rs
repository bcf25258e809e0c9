//! The manager: snapshots of some roots, in one session folder.
//!
//! Each operation is a line of stages: hold the session, capture, publish (manifest, then record), compare. What a
//! killed process left half done is completed or cleared away by the next operation.

mod background;
mod restore;
mod roots;
mod upkeep;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::capture::{self, CaptureError, CaptureOptions, Captured, Request, RulesFrom};
use crate::coverage::{Coverage, Note, Protection};
use crate::diff::{Change, diff};
use crate::exclusion::{ExclusionConfig, FrozenRules, Rules, RulesError};
use crate::file::Sync;
use crate::files::Files;
use crate::hash::{ContentHash, MerkleRoot, StateRoot};
use crate::manifest::{Sheet, SnapshotId};
use crate::metadata::SessionMetadata;
use crate::node::Time;
use crate::objects::StoreObjects;
use crate::read;
use crate::restore::{JournalError, PreflightError, RestoreError};
use crate::scan::Counts;
use crate::session::{Held, Record, Session, SessionError};
use crate::state::{ObjectError, Observer, SnapshotState};
use crate::store::{Key, Store, StoreError};
use crate::time;

pub use restore::{RestoreOptions, Restored};
pub use upkeep::{CacheProblem, GcReport, SettleReport, SnapshotProblem, VerifyReport, gc};

/// How much may be captured; 0 is no limit. Beyond it nothing is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Files of all kinds, without directories.
    pub max_entries: u64,
    /// Bytes in files.
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

/// What else a manager can be told.
#[derive(Clone, Debug, Default)]
pub struct ManagerOptions {
    /// A store shared with other sessions; without it the session folder has its own.
    pub store: Option<PathBuf>,
    pub capture: CaptureOptions,
    /// Folders of nono's own, never captured: state, other stores.
    pub own: Vec<PathBuf>,
    /// Leave compressing and syncing to [`SnapshotManager::settle`], instead of doing it in the background.
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
}

impl std::fmt::Debug for SnapshotManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotManager")
            .field("session", &self.session)
            .field("roots", &self.roots)
            .finish_non_exhaustive()
    }
}

/// Why an operation failed. Nothing that was there before is lost by any of these.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("{} cannot be tracked: {source}", path.display())]
    Root { path: PathBuf, source: std::io::Error },
    #[error("{} cannot be tracked: it has no name of its own", path.display())]
    NoName { path: PathBuf },
    #[error("there is no snapshot yet in {}: take a baseline first", dir.display())]
    NoBaseline { dir: PathBuf },
    #[error("{} has snapshots of other paths: {}", dir.display(), roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>().join(", "))]
    OtherRoots { dir: PathBuf, roots: Vec<PathBuf> },
    #[error("{} is not below a tracked path", path.display())]
    NotTracked { path: PathBuf },
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Object(#[from] ObjectError),
    #[error(transparent)]
    Rules(#[from] RulesError),
    #[error(transparent)]
    Restore(#[from] RestoreError),
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the rules of snapshot {id} cannot be read: {what}")]
    FrozenRules { id: SnapshotId, what: String },
}

/// One snapshot.
#[derive(Clone, Debug)]
pub struct Manifest {
    pub id: SnapshotId,
    /// Its number in the session; safety snapshots have none, and count as 0 here.
    pub number: u32,
    /// ISO 8601, UTC.
    pub timestamp: String,
    pub parent: Option<u32>,
    pub merkle_root: MerkleRoot,
    pub state_root: StateRoot,
    pub coverage: Coverage,
    /// Survives a loss of power.
    pub durable: bool,
    pub state: SnapshotState,
    /// What taking it took; nothing for one that was loaded.
    pub work: Counts,
    store: Arc<Store>,
}

impl Manifest {
    /// The regular files, by absolute path.
    pub fn files(&self) -> Result<Files, ObjectError> {
        crate::files::files(&self.state, &StoreObjects::new(&self.store))
    }

    /// Is this path protected, and if not, why.
    pub fn protection(&self, path: &Path) -> Result<Protection, ObjectError> {
        crate::files::protection(&self.state, &StoreObjects::new(&self.store), path)
    }

    /// Everything that was left out, with the reasons.
    pub fn left_out(&self) -> Result<Vec<(PathBuf, crate::node::Reason)>, ObjectError> {
        crate::files::left_out(&self.state, &StoreObjects::new(&self.store))
    }
}

impl SnapshotManager {
    /// A manager on this session folder, with a store of its own. A folder that has snapshots is taken up where it was
    /// left.
    pub fn new(
        session_dir: impl Into<PathBuf>,
        tracked_paths: impl IntoIterator<Item = impl Into<PathBuf>>,
        exclusion: ExclusionConfig,
        limits: Limits,
    ) -> Result<SnapshotManager, SnapshotError> {
        SnapshotManager::with_options(
            session_dir,
            tracked_paths,
            exclusion,
            limits,
            ManagerOptions::default(),
        )
    }

    pub fn with_options(
        session_dir: impl Into<PathBuf>,
        tracked_paths: impl IntoIterator<Item = impl Into<PathBuf>>,
        exclusion: ExclusionConfig,
        limits: Limits,
        options: ManagerOptions,
    ) -> Result<SnapshotManager, SnapshotError> {
        Rules::check(&exclusion)?;
        let session = Session::new(session_dir);
        session.create()?;
        // Its real place: it must be known when it lies in a tracked tree, and after a change of the working directory.
        let session = session.resolved()?;
        let (roots, forced) = roots::merge_nested(roots::resolve(tracked_paths.into_iter().map(Into::into))?);
        let mut exclusion = exclusion;
        exclusion.force_include.extend(forced);
        let held = session.hold()?;
        let record = session.record()?;
        if let Some(record) = &record
            && !roots.is_empty()
            && record.roots != roots
            && !record.snapshots.is_empty()
        {
            return Err(SnapshotError::OtherRoots {
                dir: session.dir().to_owned(),
                roots: record.roots.clone(),
            });
        }
        let started = record.as_ref().map_or_else(read::now, Record::started);
        let roots =
            if roots.is_empty() { record.map(|record| record.roots).unwrap_or_default() } else { roots };
        let store =
            Arc::new(Store::open(&options.store.clone().unwrap_or_else(|| session.dir().join("store")))?);
        upkeep::register(&store, &session)?;
        drop(held);
        Ok(SnapshotManager {
            session,
            store,
            roots,
            exclusion,
            limits,
            options,
            observer: Box::new(()),
            started,
            background: background::Background::default(),
            recovered: None,
        })
    }

    /// Tell somebody how far long work is.
    pub fn observe(&mut self, observer: impl Observer + Send + 'static) {
        self.observer = Box::new(observer);
    }

    pub fn session(&self) -> &Session {
        &self.session
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The tracked paths, resolved.
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// How many numbered snapshots were taken in this session.
    pub fn snapshot_count(&self) -> Result<u32, SnapshotError> {
        let record = self.session.record()?;
        Ok(record.and_then(|record| record.last_number()).map_or(0, |last| last + 1))
    }

    /// Snapshot number 0. Taken again, it starts the session's numbers anew.
    pub fn create_baseline(&mut self) -> Result<Manifest, SnapshotError> {
        let held = self.enter()?;
        let record = Record::new(self.roots.clone(), self.started);
        let captured = self.capture_live(None, &[])?;
        ensure_something(&captured)?;
        let manifest = self.publish(&held, record, captured, SnapshotId::Number(0), None)?;
        // What the record does not name any more goes.
        self.session.tidy(&held)?;
        self.settle_in_background();
        Ok(manifest)
    }

    /// The next snapshot, and what changed since the last one.
    pub fn create_incremental(&mut self) -> Result<(Manifest, Vec<Change>), SnapshotError> {
        let held = self.enter()?;
        let record = self.recorded()?;
        let last = record.last_number().ok_or_else(|| self.no_baseline())?;
        let before = self.session.sheet(&record, &SnapshotId::Number(last))?;
        let known: Vec<ContentHash> = before.rules.iter().flatten().copied().collect();
        let captured = self.capture_live(Some(&before), &known)?;
        self.ensure_not_hidden(&before, &captured)?;
        let changes = diff(&before.state, &captured.state, &StoreObjects::new(&self.store))?;
        let id = SnapshotId::Number(last + 1);
        let manifest = self.publish(&held, record, captured, id, Some(last))?;
        self.settle_in_background();
        Ok((manifest, changes))
    }

    pub fn load_manifest(&self, number: u32) -> Result<Manifest, SnapshotError> {
        self.load(&SnapshotId::Number(number))
    }

    /// Any snapshot: numbered or safety.
    pub fn load(&self, id: &SnapshotId) -> Result<Manifest, SnapshotError> {
        let record = self.recorded()?;
        let sheet = self.session.sheet(&record, id)?;
        let durable = record.find(id).is_some_and(|recorded| recorded.durable);
        Ok(self.manifest(sheet, durable))
    }

    /// All snapshots, in the order they were taken.
    pub fn snapshots(&self) -> Result<Vec<SnapshotId>, SnapshotError> {
        let record = self.session.record()?.unwrap_or_default();
        Ok(record.snapshots.iter().map(crate::session::Recorded::snapshot).collect())
    }

    /// What changed from one snapshot to another.
    pub fn diff(&self, from: &SnapshotId, to: &SnapshotId) -> Result<Vec<Change>, SnapshotError> {
        let record = self.recorded()?;
        let from = self.session.sheet(&record, from)?;
        let to = self.session.sheet(&record, to)?;
        Ok(diff(&from.state, &to.state, &StoreObjects::new(&self.store))?)
    }

    pub fn save_session_metadata(&self, metadata: &SessionMetadata) -> Result<(), SnapshotError> {
        let _held = self.session.hold()?;
        Ok(self.session.save_metadata(metadata)?)
    }

    pub fn load_session_metadata(session_dir: impl Into<PathBuf>) -> Result<SessionMetadata, SnapshotError> {
        Ok(Session::new(session_dir).load_metadata()?)
    }

    /// Hold the session, and finish what a killed process left.
    fn enter(&mut self) -> Result<Held, SnapshotError> {
        let held = self.session.hold()?;
        self.session.tidy(&held)?;
        if let Some(restored) = self.recover_held(&held)? {
            self.recovered = Some(restored);
        }
        Ok(held)
    }

    fn recorded(&self) -> Result<Record, SnapshotError> {
        self.session.record()?.ok_or_else(|| self.no_baseline())
    }

    fn no_baseline(&self) -> SnapshotError {
        SnapshotError::NoBaseline { dir: self.session.dir().to_owned() }
    }

    fn capture_live(
        &mut self,
        before: Option<&Sheet>,
        known: &[ContentHash],
    ) -> Result<Captured, SnapshotError> {
        let set_aside: Vec<PathBuf> = before.map(set_aside_roots).unwrap_or_default();
        let rules = RulesFrom::Live { config: &self.exclusion.clone(), set_aside: &set_aside, known };
        self.capture(rules, before.map(|sheet| &sheet.state), self.limits)
    }

    fn capture(
        &mut self,
        rules: RulesFrom<'_>,
        previous: Option<&SnapshotState>,
        limits: Limits,
    ) -> Result<Captured, SnapshotError> {
        let mut own = vec![self.session.dir().to_owned(), self.store.dir().to_owned()];
        own.extend(self.options.own.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone())));
        let request = Request {
            store: &self.store,
            roots: &self.roots,
            options: self.options.capture,
            max_entries: limits.max_entries,
            max_bytes: limits.max_bytes,
            session_start: self.started,
            own: &own,
            previous,
            unlock: matches!(rules, RulesFrom::Frozen(_)),
            rules,
            observer: &*self.observer,
        };
        Ok(capture::capture(&request)?)
    }

    /// A tree may be emptied; but a snapshot that is empty because rules now leave out what it held before is none.
    fn ensure_not_hidden(&self, before: &Sheet, captured: &Captured) -> Result<(), SnapshotError> {
        if captured.coverage.files + captured.coverage.others > 0 {
            return Ok(());
        }
        let objects = StoreObjects::new(&self.store);
        let mut reasons = Vec::new();
        for (path, reason) in crate::files::left_out(&captured.state, &objects)? {
            if crate::files::protection(&before.state, &objects, &path)? == Protection::Captured {
                reasons.push(format!("{}: {reason}", path.display()));
            }
        }
        if reasons.is_empty() {
            return Ok(());
        }
        reasons.truncate(5);
        Err(CaptureError::Nothing { reasons }.into())
    }

    /// Manifest first, record last: only what the record names was taken.
    fn publish(
        &self,
        _held: &Held,
        mut record: Record,
        captured: Captured,
        id: SnapshotId,
        parent: Option<u32>,
    ) -> Result<Manifest, SnapshotError> {
        let sheet = Sheet {
            id,
            timestamp: time::now_iso(),
            parent,
            state: captured.state,
            rules: captured.rules,
            coverage: captured.coverage,
        };
        let recorded = self.session.save_manifest(&sheet)?;
        let path = self.session.manifest_path(&recorded);
        record.snapshots.push(recorded);
        let saved = self.session.save_record(&record, Sync::No);
        if saved.is_err() {
            // Not recorded, it was never taken. What cannot be removed now is tidied by the next operation.
            let _ = std::fs::remove_file(path);
        }
        saved?;
        drop(captured.published);
        Ok(Manifest { work: captured.counts, ..self.manifest(sheet, false) })
    }

    fn manifest(&self, sheet: Sheet, durable: bool) -> Manifest {
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
            work: Counts::default(),
            store: self.store.clone(),
        }
    }

    /// The frozen rules of a snapshot, in the order of its roots.
    fn frozen_rules(&self, sheet: &Sheet) -> Result<Vec<Option<FrozenRules>>, SnapshotError> {
        let read = |hash: &Option<ContentHash>| {
            let Some(hash) = hash else { return Ok(None) };
            let bytes = self.store.read(Key::rules(*hash))?;
            let frozen = FrozenRules::decode(&bytes).map_err(|error| SnapshotError::FrozenRules {
                id: sheet.id.clone(),
                what: error.to_string(),
            })?;
            Ok(Some(frozen))
        };
        sheet.rules.iter().map(read).collect()
    }
}

/// A snapshot that holds nothing of a tree that has something is no snapshot.
fn ensure_something(captured: &Captured) -> Result<(), SnapshotError> {
    let coverage = &captured.coverage;
    let holds = coverage.files + coverage.others > 0;
    let nothing_there =
        coverage.left_out.iter().all(|left_out| left_out.cause == crate::coverage::Cause::OwnState);
    let failed = |note: &&Note| matches!(note, Note::RootFailed { .. });
    let failed_roots = coverage.notes.iter().filter(failed).count();
    let all_failed = failed_roots > 0 && failed_roots == captured.state.roots.len();
    if holds || (nothing_there && !all_failed) {
        return Ok(());
    }
    let examples = coverage.left_out.iter().flat_map(|left_out| &left_out.examples);
    let examples = examples.map(|example| format!("{}: {}", example.path.display(), example.reason));
    let notes = coverage.notes.iter().filter(failed).map(ToString::to_string);
    Err(CaptureError::Nothing { reasons: notes.chain(examples).take(5).collect() }.into())
}

/// The roots whose ignore rules were set aside.
fn set_aside_roots(sheet: &Sheet) -> Vec<PathBuf> {
    let aside = |note: &Note| match note {
        Note::IgnoreRulesSetAside { root, .. } => Some(root.clone()),
        _ => None,
    };
    sheet.coverage.notes.iter().filter_map(aside).collect()
}
