//! Past sessions: finding, inspecting, restoring, verifying.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use nono::audit::Author;
use nono::rollback::{
    Catalogue, ChangeSet, Done, Plan, RestoreChoice, RollbackError, RollbackSession as Opened, SessionEntry,
    json, patch,
};
use nono::snapshot::Observer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Value;

use super::{error, host};
use crate::blocking::{Cancel, Progress, TaskProgress, TaskWatch, long};
use crate::error::{Raise, Raised, SessionError};
use crate::history::{changes, conflicts, restore};
use crate::list_args::some_many;
use crate::paths::{PathArg, PathText, texts};
use crate::plain::{self, Record};

/// Catalogue of sessions. Creates nothing: without a state folder there are none.
pub(super) fn catalogue(py: Python<'_>) -> PyResult<Catalogue> {
    let host = host::outside(py, None, "looked at")?;
    let state = &host.context.state_dir;
    if state.symlink_metadata().is_ok() {
        let failed =
            |error: &nono::state_dir::StateDirError| Raise::new("state", error).as_a::<SessionError>();
        nono::state_dir::ensure(state).raised(failed)?;
    }
    let argv: Vec<OsString> = py.import("sys")?.getattr("argv")?.extract().unwrap_or_default();
    let command = std::iter::once("nono_py".into()).chain(argv).collect();
    Ok(Catalogue::new(state).recording(Author { command, workdir: host.context.cwd }))
}

/// The sessions that there are, newest first. `path`: only those that tracked something around or below it.
#[pyfunction]
#[pyo3(signature = (*, path = None))]
pub(crate) fn list_sessions(py: Python<'_>, path: Option<PathArg>) -> PyResult<Vec<RollbackSession>> {
    let catalogue = catalogue(py)?;
    let path = path.map(|path| path.0.canonicalize().unwrap_or(path.0));
    let (mut entries, problems) = long(py, (), |_| catalogue.list().raised(error::rollback))?;
    if let Some(path) = path {
        entries.retain(|entry| {
            let tracked = entry.metadata.tracked_paths.iter().chain([&entry.project]);
            tracked.into_iter().any(|root| path.starts_with(root) || root.starts_with(&path))
        });
    }
    // Unreadable sessions are never left out silently.
    for problem in problems {
        let warn = py.import("warnings")?.getattr("warn")?;
        warn.call1((format!("cannot read a session: {problem}"),))?;
    }
    Ok(entries.into_iter().map(|entry| RollbackSession::new(&catalogue, entry)).collect())
}

/// Verify all sessions: recompute everything that is stored, and compare it with what was sealed.
#[pyfunction]
#[pyo3(signature = (*, progress = None, cancel = None))]
pub(crate) fn verify_sessions(
    py: Python<'_>,
    progress: Option<Progress>,
    cancel: Option<Cancel>,
) -> PyResult<Record> {
    let catalogue = catalogue(py)?;
    let found = long(py, (progress, cancel), |live| {
        let observer: Arc<dyn Observer + Send> = Arc::new(live.clone());
        catalogue.verify_all(&observer).raised(error::rollback)
    })?;
    Ok(Record::new("VerifyReport", json::all_verified(&found)))
}

/// A past session: its id, a unique beginning of one, its name, "last", or the path of its folder.
#[pyfunction]
#[pyo3(signature = (session = None))]
pub(crate) fn open_session(py: Python<'_>, session: Option<PathArg>) -> PyResult<RollbackSession> {
    let catalogue = catalogue(py)?;
    let text = session.map_or_else(|| "last".to_owned(), |session| session.0.to_string_lossy().into_owned());
    let entry = long(py, (), |_| catalogue.find(&text).raised(error::rollback))?;
    Ok(RollbackSession::new(&catalogue, entry))
}

/// A tracked run: its changes, and their restore.
///
/// Nothing stays open between two calls, and each of them sees the session as it is then.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct RollbackSession {
    catalogue: Catalogue,
    /// The id of the session.
    #[pyo3(get)]
    session_id: String,
    /// Its name, if it was given one.
    #[pyo3(get)]
    name: Option<String>,
    /// The command, without what may be secret in it.
    #[pyo3(get)]
    command: Vec<String>,
    /// The time it started, ISO 8601.
    #[pyo3(get)]
    started: String,
    /// "live", "finished" or "interrupted", when it was opened.
    #[pyo3(get)]
    status: &'static str,
    /// The exit code of the command; None while it runs, or when its end was not observed.
    #[pyo3(get)]
    exit_code: Option<i32>,
    /// Whether it is protected from pruning.
    #[pyo3(get)]
    pinned: bool,
    /// The folder that holds it.
    #[pyo3(get)]
    dir: PathText,
    /// The tracked paths.
    #[pyo3(get)]
    tracked_paths: Vec<PathText>,
}

impl RollbackSession {
    fn new(catalogue: &Catalogue, entry: SessionEntry) -> RollbackSession {
        RollbackSession {
            catalogue: catalogue.clone(),
            session_id: entry.id,
            name: entry.metadata.name,
            command: entry.metadata.command,
            started: entry.metadata.started,
            status: json::status(entry.status),
            exit_code: entry.metadata.exit_code,
            pinned: entry.pinned,
            dir: PathText(entry.dir),
            tracked_paths: texts(entry.metadata.tracked_paths),
        }
    }

    /// Present entry of the session.
    fn found(&self) -> Result<SessionEntry, RollbackError> {
        self.catalogue.find(&self.dir.0.to_string_lossy())
    }

    fn open(&self) -> Result<Opened, RollbackError> {
        self.catalogue.open(self.found()?)
    }

    /// Runs work with it, without the interpreter.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        watch: impl Into<TaskWatch>,
        work: impl FnOnce(&mut Opened, &TaskProgress) -> Result<T, RollbackError> + Send,
    ) -> PyResult<T> {
        long(py, watch, |live| {
            let work = || {
                let mut session = self.open()?;
                session.manager().observe(live.clone());
                work(&mut session, live)
            };
            work().raised(error::rollback)
        })
    }

    fn chosen(
        session: &Opened,
        from: u32,
        to: Option<u32>,
        paths: &[OsString],
    ) -> Result<ChangeSet, RollbackError> {
        let (from, to) = session.range(from, to)?;
        let mut set = session.changes(&from, &to)?;
        if !paths.is_empty() {
            let chosen = session.resolve_paths(&from, paths, &here()?)?;
            set = set.within(&chosen);
        }
        Ok(set)
    }
}

fn here() -> Result<PathBuf, RollbackError> {
    std::env::current_dir().map_err(|source| RollbackError::Io { path: ".".into(), source })
}

fn words(paths: Option<Vec<PathArg>>) -> Vec<OsString> {
    paths.unwrap_or_default().into_iter().map(|path| path.0.into_os_string()).collect()
}

#[pymethods]
impl RollbackSession {
    /// The snapshots that can be compared and restored.
    fn snapshots<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let all: Value =
            self.with(py, (), |session, _| Ok(session.snapshots()?.iter().map(json::snapshot).collect()))?;
        plain::plain(py, &all)
    }

    /// The coverage of a snapshot.
    #[pyo3(signature = (snapshot = 0))]
    fn coverage<'py>(&self, py: Python<'py>, snapshot: u32) -> PyResult<Bound<'py, PyAny>> {
        let coverage = self.with(py, (), |session, _| {
            let (id, _) = session.range(snapshot, None)?;
            session.coverage(&id)
        })?;
        plain::value(py, &coverage)
    }

    /// What changed from one snapshot to another (0 is the state before the command; the last one if `to` is not
    /// given).
    #[pyo3(signature = (paths = None, *, from_snapshot = 0, to_snapshot = None, progress = None, cancel = None))]
    fn changes(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = some_many)] paths: Option<Vec<PathArg>>,
        from_snapshot: u32,
        to_snapshot: Option<u32>,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Record> {
        let paths = words(paths);
        let set = self.with(py, (progress, cancel), |session, _| {
            RollbackSession::chosen(session, from_snapshot, to_snapshot, &paths)
        })?;
        Ok(changes::of_session(&set))
    }

    /// The changes as a patch for `git apply`: bytes, since files may hold any.
    #[pyo3(signature = (paths = None, *, from_snapshot = 0, to_snapshot = None, progress = None, cancel = None))]
    fn diff<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = some_many)] paths: Option<Vec<PathArg>>,
        from_snapshot: u32,
        to_snapshot: Option<u32>,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let paths = words(paths);
        let patch = self.with(py, (progress, cancel), |session, _| {
            let set = RollbackSession::chosen(session, from_snapshot, to_snapshot, &paths)?;
            let items: Vec<_> = set.items.iter().collect();
            let mut patch = Vec::new();
            patch::write_patch(session.engine(), &set, &items, &mut patch)?;
            Ok(patch)
        })?;
        Ok(PyBytes::new(py, &patch))
    }

    /// Restore a snapshot: all of it, or only `paths` (files, folders, globs).
    ///
    /// Changes by others after the session are kept, unless `conflicts` says otherwise: "merge" merges text files
    /// ("merge_with_markers" also those that conflict), "force" overwrites them. Everything that is overwritten is
    /// stored first: `undo` reverts the restore. With `dry_run` nothing is changed.
    #[pyo3(signature = (paths = None, *, snapshot = 0, conflicts = "keep", dry_run = false, progress = None, cancel = None))]
    #[allow(clippy::too_many_arguments, reason = "keywords")]
    fn restore(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = some_many)] paths: Option<Vec<PathArg>>,
        snapshot: u32,
        conflicts: &str,
        dry_run: bool,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Record> {
        let conflicts = self::conflicts(conflicts)?;
        let none = paths.as_ref().is_some_and(Vec::is_empty);
        let paths = words(paths);
        let id = &self.session_id;
        self.with(py, (progress, cancel), |session, _| {
            session.recover()?;
            let (snapshot, _) = session.range(snapshot, None)?;
            if none {
                // An empty choice means nothing, not everything.
                return Ok(if dry_run {
                    restore::planned(id, &Plan::default())
                } else {
                    restore::done(id, &Done::default())
                });
            }
            let paths = if paths.is_empty() {
                Vec::new()
            } else {
                session.resolve_paths(&snapshot, &paths, &here()?)?
            };
            let choice = RestoreChoice { snapshot, paths, conflicts, ..RestoreChoice::everything() };
            if dry_run {
                session.plan(&choice).map(|plan| restore::planned(id, &plan))
            } else {
                session.restore(&choice).map(|done| restore::done(id, &done))
            }
        })
    }

    /// Undo a restore: the one with this id, or the last one that was not undone.
    #[pyo3(signature = (restore = None, *, dry_run = false, progress = None, cancel = None))]
    fn undo(
        &self,
        py: Python<'_>,
        restore: Option<String>,
        dry_run: bool,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Record> {
        let (id, restore) = (&self.session_id, restore.as_deref());
        self.with(py, (progress, cancel), |session, _| {
            session.recover()?;
            if dry_run {
                session.plan_undo(restore).map(|plan| restore::planned(id, &plan))
            } else {
                session.undo(restore).map(|done| restore::done(id, &done))
            }
        })
    }

    /// Complete an interrupted restore; None if there is none.
    #[pyo3(signature = (*, progress = None, cancel = None))]
    fn recover(
        &self,
        py: Python<'_>,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Option<Record>> {
        let done = self.with(py, (progress, cancel), |session, _| session.recover())?;
        Ok(done.map(|done| restore::done(&self.session_id, &done)))
    }

    /// Recompute everything that is stored, and compare it with what was sealed.
    #[pyo3(signature = (*, progress = None, cancel = None))]
    fn verify(&self, py: Python<'_>, progress: Option<Progress>, cancel: Option<Cancel>) -> PyResult<Record> {
        let found = self.with(py, (progress, cancel), |session, _| session.verify())?;
        Ok(Record::new("VerifyReport", json::verified(&self.session_id, &found)))
    }

    /// Protect it from pruning, or no longer.
    #[pyo3(signature = (pinned = true))]
    fn pin(&self, py: Python<'_>, pinned: bool) -> PyResult<()> {
        long(py, (), |_| {
            let pin = || self.catalogue.pin(&self.found()?, pinned);
            pin().raised(error::rollback)
        })
    }

    /// The data of `nono rollback list --json`, read anew.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let value =
            long(py, (), |_| self.found().and_then(|entry| json::session(&entry)).raised(error::rollback))?;
        plain::plain(py, &value)
    }

    fn __repr__(&self) -> String {
        let RollbackSession { session_id, status, command, .. } = self;
        format!("RollbackSession(session_id='{session_id}', status='{status}', command={command:?})")
    }
}

/// Remove old sessions, and free what only they needed. Running and pinned ones stay.
#[pyfunction]
#[pyo3(signature = (*, keep = None, older_than_days = None, max_bytes = None, remove_all = false, dry_run = false))]
pub(crate) fn cleanup_sessions(
    py: Python<'_>,
    keep: Option<usize>,
    older_than_days: Option<u32>,
    max_bytes: Option<u64>,
    remove_all: bool,
    dry_run: bool,
) -> PyResult<Record> {
    let retention = nono::rollback::Retention {
        max_sessions: keep,
        max_per_project: None,
        max_bytes,
        older_than: older_than_days.map(|days| std::time::Duration::from_secs(u64::from(days) * 86_400)),
        all: remove_all,
        lazy: None,
    };
    if retention == nono::rollback::Retention::default() {
        return Err(PyValueError::new_err("give a limit: keep, older_than_days, max_bytes or remove_all"));
    }
    let catalogue = catalogue(py)?;
    let pruned = long(py, (), |_| catalogue.prune(&retention, dry_run).raised(error::rollback))?;
    Ok(Record::new("PruneReport", json::pruned(&pruned, dry_run).raised(error::rollback)?))
}
