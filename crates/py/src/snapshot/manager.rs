//! `SnapshotManager`.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use nono::snapshot as engine;
use nono::snapshot::session::Session;
use nono::snapshot::{Limits, ManagerOptions, RestoreOptions, SnapshotId};
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use super::engine_turns::{EngineTurn, Opening};
use super::error::raise;
use super::exclusion::ExclusionConfig;
use super::manifest::SnapshotManifest;
use super::metadata::SessionMetadata;
use super::names::Names;
use super::restored::RestoreReport;
use super::values::change_list;
use crate::blocking::{Cancel, Progress, TaskProgress, TaskWatch, long};
use crate::error::{Raise, SnapshotError, cancelled};
use crate::list_args::{many, some_many};
use crate::paths::{self, PathArg};
use crate::plain::Record;

/// Takes and restores snapshots of folders and files.
///
/// Everything is kept in ``session_dir``; a folder that has snapshots is taken up where it was left. Several threads
/// may use one manager, and several processes one folder: each waits for its turn. A tracked path that does not exist
/// is named in the coverage of each snapshot, and never touched.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct SnapshotManager {
    turn: EngineTurn,
    names: Arc<Names>,
    roots: Vec<PathBuf>,
    last_restore: Mutex<Option<RestoreReport>>,
}

impl SnapshotManager {
    /// Runs long work with exclusive use of the engine.
    fn work<T: Send>(
        &self,
        py: Python<'_>,
        watch: impl Into<TaskWatch>,
        work: impl FnOnce(&mut engine::SnapshotManager) -> Result<T, engine::SnapshotError> + Send,
    ) -> PyResult<T> {
        let worked = long(py, watch, |live: &TaskProgress| {
            self.turn.with(live, |manager| {
                let done = work(manager).map_err(raise);
                let recovered = manager.take_recovered();
                Ok((done, recovered.map(|restored| RestoreReport::new(restored, &self.names))))
            })
        });
        let (done, recovered) = worked?;
        if let Some(recovered) = recovered {
            self.remember(&recovered);
            let report = recovered.record(py)?.into_pyobject(py)?;
            let text = format!("completed an interrupted restore: {}", report.repr()?);
            PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &c_text(text)?, 1)?;
        }
        done
    }

    fn remember(&self, report: &RestoreReport) {
        *self.last_restore.lock().unwrap_or_else(PoisonError::into_inner) = Some(report.clone());
    }

    fn go_back<'py>(
        &self,
        py: Python<'py>,
        watch: impl Into<TaskWatch>,
        choose: impl FnOnce(&engine::SnapshotManager) -> Result<Option<SnapshotId>, engine::SnapshotError> + Send,
        options: RestoreOptions,
    ) -> PyResult<Bound<'py, PyAny>> {
        let restored = self.work(py, watch, |manager| {
            let Some(id) = choose(manager)? else { return Ok(None) };
            manager.restore(&id, &options).map(Some)
        })?;
        let Some(restored) = restored else {
            let error = Raise::new("no_restore", "there is no restore to undo").about(self.turn.session());
            return Err(error.as_a::<SnapshotError>());
        };
        let was_cut_off = restored.outcome.cancelled;
        let report = RestoreReport::new(restored, &self.names);
        self.remember(&report);
        if was_cut_off {
            return Err(cancelled());
        }
        match report.incomplete(py)? {
            Some(error) => Err(error),
            None => report.changes(py),
        }
    }

    fn chosen(&self, paths: Option<Vec<PathArg>>) -> RestoreOptions {
        let paths = paths.into_iter().flatten().map(|path| self.names.root(path.0)).collect();
        RestoreOptions { paths, ..RestoreOptions::default() }
    }

    fn count(&self) -> PyResult<u32> {
        let record = Session::new(self.turn.session()).record().map_err(|error| raise(error.into()))?;
        Ok(record.and_then(|record| record.last_number()).map_or(0, |last| last + 1))
    }
}

/// Converts text for C; a path in it may hold any character.
fn c_text(text: String) -> PyResult<std::ffi::CString> {
    Ok(std::ffi::CString::new(text.replace('\0', " "))?)
}

#[pymethods]
impl SnapshotManager {
    #[new]
    #[pyo3(signature = (session_dir, tracked_paths, exclusion=None, max_entries=300_000, max_bytes=2_147_483_648, *,
        store=None))]
    fn new(
        py: Python<'_>,
        session_dir: PathArg,
        #[pyo3(from_py_with = many)] tracked_paths: Vec<PathArg>,
        exclusion: Option<Py<ExclusionConfig>>,
        max_entries: u64,
        max_bytes: u64,
        store: Option<PathArg>,
    ) -> PyResult<SnapshotManager> {
        let exclusion = exclusion.map(|exclusion| exclusion.get().config()).unwrap_or_default();
        let (turn, names, roots) = long(py, (), |live| {
            let mut pairs: Vec<(PathBuf, PathBuf)> = Vec::new();
            for PathArg(given) in tracked_paths {
                let root = engine::resolved(&given).map_err(raise)?;
                // The same path twice: the first name counts.
                if pairs.iter().all(|(known, _)| *known != root) {
                    pairs.push((root, given));
                }
            }
            let opening = Opening {
                session: session_dir.0,
                tracked: pairs.iter().map(|(root, _)| root.clone()).collect(),
                exclusion,
                limits: Limits { max_entries, max_bytes },
                options: ManagerOptions {
                    store: store.map(PathBuf::from),
                    roots_may_be_missing: true,
                    // After a call no thread may still write to the folder, since the caller may remove it.
                    settle_by_hand: true,
                    ..ManagerOptions::default()
                },
            };
            let (turn, roots) = EngineTurn::open(opening, live)?;
            // A path inside another tracked path is shown below that one.
            pairs.retain(|(root, _)| roots.contains(root));
            Ok((turn, Names::new(pairs), roots))
        })?;
        Ok(SnapshotManager { turn, names: Arc::new(names), roots, last_restore: Mutex::default() })
    }

    /// Take snapshot 0. A session that has snapshots already is left as it is, and SnapshotError raised.
    #[pyo3(signature = (*, progress=None, cancel=None))]
    fn create_baseline(
        &self,
        py: Python<'_>,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<SnapshotManifest> {
        let manifest = self.work(py, (progress, cancel), engine::SnapshotManager::create_baseline)?;
        Ok(SnapshotManifest::new(manifest, &self.names))
    }

    /// Take the next snapshot; gives it with what changed since the last one, sorted by path.
    #[pyo3(signature = (*, progress=None, cancel=None))]
    fn create_incremental<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<(SnapshotManifest, Bound<'py, PyAny>)> {
        let (manifest, changes) =
            self.work(py, (progress, cancel), engine::SnapshotManager::create_incremental)?;
        Ok((SnapshotManifest::new(manifest, &self.names), change_list(py, changes, &self.names)?))
    }

    /// The changes that restoring this snapshot would make; nothing is touched. Only below `paths`, if given.
    #[pyo3(signature = (snapshot_number, *, paths=None, progress=None, cancel=None))]
    fn compute_restore_diff<'py>(
        &self,
        py: Python<'py>,
        snapshot_number: u32,
        #[pyo3(from_py_with = some_many)] paths: Option<Vec<PathArg>>,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = self.chosen(paths);
        let id = SnapshotId::Number(snapshot_number);
        let plan = self.work(py, (progress, cancel), |manager| manager.plan_restore(&id, &options))?;
        change_list(py, plan.changes(), &self.names)
    }

    /// Restore everything that this snapshot holds; only below `paths`, if given. The present state is captured first,
    /// so that `undo_restore` can bring it back. Returns the changes, sorted by path.
    ///
    /// If something is not as it was in the snapshot afterwards, that is a SnapshotError of the kind "incomplete",
    /// whose `report` says what was done and what was not. What the snapshot left out is left alone, and no error. A
    /// restore that is interrupted is completed by the next call on this session.
    #[pyo3(signature = (snapshot_number, *, paths=None, progress=None, cancel=None))]
    fn restore_to<'py>(
        &self,
        py: Python<'py>,
        snapshot_number: u32,
        #[pyo3(from_py_with = some_many)] paths: Option<Vec<PathArg>>,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = self.chosen(paths);
        self.go_back(py, (progress, cancel), |_| Ok(Some(SnapshotId::Number(snapshot_number))), options)
    }

    /// Undo the last restore of this session, by any process; a second call undoes the undo.
    #[pyo3(signature = (*, progress=None, cancel=None))]
    fn undo_restore<'py>(
        &self,
        py: Python<'py>,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let last = |manager: &engine::SnapshotManager| {
            let all = manager.snapshots()?;
            Ok(all.into_iter().rfind(|id| matches!(id, SnapshotId::Safety(_))))
        };
        self.go_back(py, (progress, cancel), last, RestoreOptions::default())
    }

    /// The changes since this snapshot was taken. No snapshot is taken now, and nothing is touched.
    #[pyo3(signature = (snapshot_number, *, progress=None, cancel=None))]
    fn compute_changes<'py>(
        &self,
        py: Python<'py>,
        snapshot_number: u32,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let id = SnapshotId::Number(snapshot_number);
        let changes = self.work(py, (progress, cancel), |manager| manager.compute_changes(&id))?;
        change_list(py, changes, &self.names)
    }

    /// Settle what was captured, unless `settle` is False, and let go of the folder. Afterwards the manager cannot be
    /// used any more; a new one on the same folder can. `with manager:` ends like this.
    #[pyo3(signature = (*, settle=true))]
    fn close(&self, py: Python<'_>, settle: bool) -> PyResult<()> {
        long(py, (), |live| self.turn.close(live, settle))
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (_type=None, _error=None, _traceback=None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _type: Option<Py<PyAny>>,
        _error: Option<Py<PyAny>>,
        _traceback: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        self.close(py, true)
    }

    /// The report of the last restore by this manager.
    #[getter]
    fn last_restore(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        let report = self.last_restore.lock().unwrap_or_else(PoisonError::into_inner).clone();
        report.map(|report| report.record(py)).transpose()
    }

    /// The changes from one snapshot to another.
    fn diff<'py>(&self, py: Python<'py>, first: u32, second: u32) -> PyResult<Bound<'py, PyAny>> {
        let changes = self
            .work(py, (), |manager| manager.diff(&SnapshotId::Number(first), &SnapshotId::Number(second)))?;
        change_list(py, changes, &self.names)
    }

    /// A snapshot that was taken before.
    fn load_manifest(&self, py: Python<'_>, number: u32) -> PyResult<SnapshotManifest> {
        let manifest = self.work(py, (), |manager| manager.load_manifest(number))?;
        Ok(SnapshotManifest::new(manifest, &self.names))
    }

    /// The bytes that a regular file had in a snapshot. A path that the snapshot does not hold is a FileNotFoundError.
    fn read<'py>(&self, py: Python<'py>, number: u32, path: PathArg) -> PyResult<Bound<'py, PyBytes>> {
        let (root, given) = (self.names.root(path.0.clone()), path.0);
        let bytes = self.work(py, (), |manager| {
            let entry = manager.entry(&SnapshotId::Number(number), &root)?;
            let file = entry.as_ref().and_then(engine::FileState::of);
            let Some(file) = file else { return Ok(None) };
            manager.content(file.hash, u64::MAX)
        })?;
        let missing = || Raise::not_found(&given, format!("snapshot {number} holds no such file"));
        Ok(PyBytes::new(py, &bytes.ok_or_else(missing)?))
    }

    /// Write `session.json`, which says what the session is about.
    fn save_session_metadata(&self, py: Python<'_>, meta: Py<SessionMetadata>) -> PyResult<()> {
        let metadata = meta.get().value();
        self.work(py, (), |manager| manager.save_session_metadata(&metadata))
    }

    /// Load the `session.json` of a session. A missing or malformed one is a SnapshotError.
    #[staticmethod]
    fn load_session_metadata(py: Python<'_>, session_dir: PathArg) -> PyResult<SessionMetadata> {
        let load =
            |_: &TaskProgress| engine::SnapshotManager::load_session_metadata(session_dir.0).map_err(raise);
        Ok(SessionMetadata::new(long(py, (), load)?))
    }

    /// The number of snapshots taken in this session.
    fn snapshot_count(&self) -> PyResult<u32> {
        self.count()
    }

    /// Verify every byte of every snapshot; returns the problems as text.
    #[pyo3(signature = (*, progress=None, cancel=None))]
    fn verify(
        &self,
        py: Python<'_>,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Vec<String>> {
        let report = self.work(py, (progress, cancel), engine::SnapshotManager::verify)?;
        let store = report.store.problems.iter();
        let store = store.map(|problem| format!("{}: {}", problem.file.display(), problem.what));
        let snapshots = report.snapshots.iter().map(|problem| match &problem.id {
            Some(id) => format!("snapshot {id}: {}", problem.what),
            None => problem.what.clone(),
        });
        let caches = report.caches.iter().map(|cache| format!("{}: damaged", cache.path.display()));
        Ok(store.chain(snapshots).chain(caches).collect())
    }

    /// Compress what was captured, and make it survive a power loss. Otherwise this is done in the background.
    #[pyo3(signature = (*, progress=None, cancel=None))]
    fn settle(&self, py: Python<'_>, progress: Option<Progress>, cancel: Option<Cancel>) -> PyResult<()> {
        self.work(py, (progress, cancel), engine::SnapshotManager::settle).map(drop)
    }

    /// The folder of the session, resolved.
    #[getter]
    fn session_dir<'py>(&self, py: Python<'py>) -> Bound<'py, PyString> {
        paths::to_python(py, self.turn.session())
    }

    /// The tracked paths as they were given, each once; those inside others are part of these.
    #[getter]
    fn tracked_paths<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyString>> {
        self.roots.iter().map(|root| paths::to_python(py, &self.names.given(root.clone()))).collect()
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("SnapshotManager(snapshots={})", self.count()?))
    }
}
