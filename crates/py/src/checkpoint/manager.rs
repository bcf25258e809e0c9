//! The methods of `CheckpointManager`.

use std::path::PathBuf;

use nono::checkpoints::settings::Given;
use nono::checkpoints::{CheckpointManager as Library, Pruned, Usage, import, json, recording};
use nono::rollback::Catalogue;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::args::{self, Chosen, Globs, Paths, Which, Who, absolute};
use super::call::CheckpointCall;
use super::shared_manager::{CheckpointManager, SharedManager};
use super::work::{self, Taking, Wanted, author, told};
use super::{error, host, text, values};
use crate::blocking::{Cancel, Progress};
use crate::error::Raised;
use crate::history::{conflicts, restore};
use crate::list_args::many;
use crate::paths::{PathArg, PathText};
use crate::plain::{self, Record};

#[pymethods]
#[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools, reason = "keywords of Python")]
impl CheckpointManager {
    #[new]
    #[pyo3(signature = (state_dir=None, home=None, *, agent=None, session=None, enabled=true, always=None,
        max_snapshots=None, max_total_size_mb=None, max_file_size_mb=None, max_ignored_folder_mb=None, max_files=None, auto_prune=None,
        retention_days=None, delete_orphans=None, min_interval_hours=None))]
    fn new(
        state_dir: Option<PathArg>,
        home: Option<PathArg>,
        agent: Option<String>,
        session: Option<String>,
        enabled: bool,
        always: Option<bool>,
        max_snapshots: Option<i64>,
        max_total_size_mb: Option<i64>,
        max_file_size_mb: Option<i64>,
        max_ignored_folder_mb: Option<i64>,
        max_files: Option<i64>,
        auto_prune: Option<bool>,
        retention_days: Option<i64>,
        delete_orphans: Option<bool>,
        min_interval_hours: Option<i64>,
    ) -> PyResult<CheckpointManager> {
        let host = host::host(state_dir, home)?;
        let config = host::config(
            &host,
            &[
                ("enabled", Some(Given::Switch(enabled))),
                ("always", always.map(Given::Switch)),
                ("auto_prune", auto_prune.map(Given::Switch)),
                ("delete_orphans", delete_orphans.map(Given::Switch)),
                ("max_snapshots", max_snapshots.map(Given::Number)),
                ("max_total_size_mb", max_total_size_mb.map(Given::Number)),
                ("max_file_size_mb", max_file_size_mb.map(Given::Number)),
                ("max_ignored_folder_mb", max_ignored_folder_mb.map(Given::Number)),
                ("max_files", max_files.map(Given::Number)),
                ("retention_days", retention_days.map(Given::Number)),
                ("min_interval_hours", min_interval_hours.map(Given::Number)),
            ],
        )?;
        let library = Library::new(host.clone(), config.clone());
        let mut library = recording(library, author(&host.home, "recover"));
        let who = Who { agent, session };
        library.set_who(&who.origin(None, None, None));
        Ok(CheckpointManager { kept: SharedManager::new(library), who, host, config })
    }

    /// nono's own folder.
    #[getter]
    fn state_dir(&self) -> PathText {
        PathText(self.host.state_dir.clone())
    }

    /// The home folder.
    #[getter]
    fn home(&self) -> PathText {
        PathText(self.host.home.clone())
    }

    /// The settings as they are in force, by their names in `config.toml`.
    #[getter]
    fn config<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::plain(py, &serde_json::json!(self.config))
    }

    /// Begin a new turn: the agent's work between two prompts of the user, with at most one checkpoint of each project.
    /// Without a name it gets a unique one. Returns the name.
    #[pyo3(signature = (turn=None))]
    fn new_turn(&self, py: Python<'_>, turn: Option<String>) -> PyResult<String> {
        self.quick(py, |library| match turn {
            Some(turn) if turn.is_empty() => Err(PyValueError::new_err("the name of the turn is empty")),
            Some(turn) => {
                library.new_turn(&turn);
                Ok(library.turn().unwrap_or_default().to_owned())
            }
            None => told(library.begin_turn()),
        })
    }

    /// The turn that checkpoints belong to now.
    #[getter]
    fn turn(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.quick(py, |library| Ok(library.turn().map(str::to_owned)))
    }

    /// The folder of the project that a path belongs to, whether it has checkpoints or not.
    fn project_of(&self, py: Python<'_>, path: PathArg) -> PyResult<PathText> {
        let path = absolute(path)?;
        self.quick(py, |library| told(library.root_of(&path)).map(|root| PathText(root.dir)))
    }

    /// Take a checkpoint of the project that `dir` (a folder or a file) belongs to, unless this turn has one or nothing
    /// changed. A failure is returned, not raised. It begins a call of an agent's tool, which `agent_left` ends.
    #[pyo3(signature = (dir, reason="checkpoint", *, turn=None, tool=None, call=None,
        progress=None, cancel=None))]
    fn ensure_checkpoint(
        &self,
        py: Python<'_>,
        dir: PathArg,
        reason: &str,
        turn: Option<String>,
        tool: Option<String>,
        call: Option<String>,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Record> {
        let origin = self.who.origin(turn, tool, call);
        let taking = Taking { dir: absolute(dir)?, reason: reason.to_owned(), origin };
        self.ensure(py, (progress, cancel), &taking)
    }

    /// Take a checkpoint now, whatever the turn and the setting `enabled` say; skipped only if nothing changed.
    #[pyo3(signature = (dir, message="by hand", *, turn=None, progress=None, cancel=None))]
    fn create(
        &self,
        py: Python<'_>,
        dir: PathArg,
        message: &str,
        turn: Option<String>,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Record> {
        let origin = self.who.origin(turn, None, None);
        let taking = Taking { dir: absolute(dir)?, reason: message.to_owned(), origin };
        self.run(py, (progress, cancel), |library, _| work::create(library, &taking))
    }

    /// `with manager.call(dir, reason):` around a call of an agent's tool: takes a checkpoint before, and records the
    /// state after it, so that a restore can tell the tool's changes from others. Restores nothing by itself. With
    /// `required`, the call does not begin without a checkpoint.
    #[pyo3(signature = (dir, reason="checkpoint", *, turn=None, tool=None, call=None,
        required=false))]
    fn call(
        slf: Py<Self>,
        dir: PathArg,
        reason: &str,
        turn: Option<String>,
        tool: Option<String>,
        call: Option<String>,
        required: bool,
    ) -> PyResult<CheckpointCall> {
        let call = match call {
            Some(call) => call,
            None => told(nono::checkpoints::manager::new_call())?,
        };
        let origin = slf.get().who.origin(turn, tool, Some(call));
        let taking = Taking { dir: absolute(dir)?, reason: reason.to_owned(), origin };
        Ok(CheckpointCall::new(slf, taking, required))
    }

    /// Begin a call of an agent's tool that needs no checkpoint: changes until now are not attributed to it.
    #[pyo3(signature = (dir, *, turn=None, call=None))]
    fn agent_begins(
        &self,
        py: Python<'_>,
        dir: PathArg,
        turn: Option<String>,
        call: Option<String>,
    ) -> PyResult<()> {
        let (dir, origin) = (absolute(dir)?, self.who.origin(turn, None, call));
        self.quick(py, |library| told(library.agent_begins(&dir, &origin)))
    }

    /// End a call of an agent's tool: later differences are attributed to others.
    #[pyo3(signature = (dir, *, turn=None, call=None))]
    fn agent_left(
        &self,
        py: Python<'_>,
        dir: PathArg,
        turn: Option<String>,
        call: Option<String>,
    ) -> PyResult<()> {
        let (dir, origin) = (absolute(dir)?, self.who.origin(turn, None, call));
        self.quick(py, |library| told(library.agent_left(&dir, &origin)))
    }

    /// End all open calls of this conversation, because the agent has stopped.
    #[pyo3(signature = (dir, *, turn=None))]
    fn agent_stopped(&self, py: Python<'_>, dir: PathArg, turn: Option<String>) -> PyResult<()> {
        let (dir, origin) = (absolute(dir)?, self.who.origin(turn, None, None));
        self.quick(py, |library| told(library.agent_stopped(&dir, &origin)))
    }

    /// Take the notes about restores for this conversation of the agent. Each is returned once.
    fn take_notes(&self, py: Python<'_>) -> PyResult<Vec<Record>> {
        let (Some(agent), Some(session)) = (&self.who.agent, &self.who.session) else {
            return Err(PyValueError::new_err(
                "notes need an agent and a session, which the manager does not have",
            ));
        };
        let notes = self.quick(py, |library| told(library.take_notes(agent, session)))?;
        Ok(notes.iter().map(values::note).collect())
    }

    /// Take the interrupted restores that this manager completed. Each is returned once.
    fn take_completed(&self, py: Python<'_>) -> PyResult<Vec<Record>> {
        let all = self.quick(py, |library| Ok(library.take_completed()))?;
        Ok(all.iter().map(restore::completed).collect())
    }

    /// The checkpoints of the project that `dir` belongs to, newest first, each with what the step after it changed.
    #[pyo3(signature = (dir, *, progress=None, cancel=None))]
    fn list_checkpoints<'py>(
        &self,
        py: Python<'py>,
        dir: PathArg,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let dir = absolute(dir)?;
        let list = self.run(py, (progress, cancel), |library, _| work::list(library, &dir))?;
        let class = py.import("nono_py")?.getattr("CheckpointList")?;
        class.call_method1("_read", (plain::plain(py, &list)?,))
    }

    /// Find a checkpoint: by its number in the list, its id or a beginning of it, its name, or before a turn.
    #[pyo3(signature = (dir, checkpoint=None, *, turn=None))]
    fn find(
        &self,
        py: Python<'_>,
        dir: PathArg,
        checkpoint: Option<Which>,
        turn: Option<String>,
    ) -> PyResult<Record> {
        let (dir, target) = (absolute(dir)?, args::target(checkpoint, turn)?);
        self.quick(py, |library| told(library.find(&dir, &target)).map(|one| values::checkpoint(&one)))
    }

    /// Existing paths among these that a checkpoint does not hold, as (path, reason).
    fn uncovered(
        &self,
        py: Python<'_>,
        dir: PathArg,
        checkpoint: Which,
        #[pyo3(from_py_with = many)] paths: Vec<PathArg>,
    ) -> PyResult<Vec<(PathText, String)>> {
        let (dir, Which(target)) = (absolute(dir)?, checkpoint);
        let below = |path: PathArg| args::folder(&dir).join(PathBuf::from(path));
        let paths: Vec<PathBuf> = paths.into_iter().map(below).collect();
        let all = self.quick(py, |library| {
            let id = told(library.find(&dir, &target))?.id;
            told(library.uncovered(&dir, &id, &paths))
        })?;
        Ok(all.into_iter().map(|(path, why)| (PathText(path), why)).collect())
    }

    /// The changes since a checkpoint; with `path` or `glob`, in these files and folders. Paths are below `dir`.
    #[pyo3(signature = (dir, checkpoint, path=None, *, glob=None, progress=None, cancel=None))]
    fn diff(
        &self,
        py: Python<'_>,
        dir: PathArg,
        checkpoint: Which,
        path: Option<Paths>,
        glob: Option<Globs>,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Record> {
        let (dir, Which(target), chosen) = (absolute(dir)?, checkpoint, Chosen::new(path, glob));
        self.run(py, (progress, cancel), |library, _| work::diff(library, &dir, &target, &chosen))
    }

    /// The plan of `restore` with the same arguments.
    #[pyo3(signature = (dir, checkpoint=None, paths=None, glob=None, turn=None, with_git=false, *, conflicts="keep",
        progress=None, cancel=None))]
    fn plan(
        &self,
        py: Python<'_>,
        dir: PathArg,
        checkpoint: Option<Which>,
        paths: Option<Paths>,
        glob: Option<Globs>,
        turn: Option<String>,
        with_git: bool,
        conflicts: &str,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Record> {
        self.restore(py, dir, checkpoint, paths, glob, turn, with_git, true, conflicts, progress, cancel)
    }

    /// Restore a checkpoint: all of it, or these paths and patterns below `dir`. The present state is captured first,
    /// and `undo` goes back to it. Changes by others after the agent's last write are kept, unless `conflicts` says
    /// otherwise: "merge" merges text files ("merge_with_markers" also those that conflict), "force" overwrites them. An
    /// existing `.git` is left alone, unless `with_git`. With `dry_run`, returns only the plan.
    ///
    /// One that is cancelled halfway is completed by the next call on the project.
    #[pyo3(signature = (dir, checkpoint=None, paths=None, glob=None, turn=None, with_git=false, dry_run=false, *,
        conflicts="keep", progress=None, cancel=None))]
    fn restore(
        &self,
        py: Python<'_>,
        dir: PathArg,
        checkpoint: Option<Which>,
        paths: Option<Paths>,
        glob: Option<Globs>,
        turn: Option<String>,
        with_git: bool,
        dry_run: bool,
        conflicts: &str,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Record> {
        let conflicts = self::conflicts(conflicts)?;
        let (target, chosen) = (args::target(checkpoint, turn)?, Chosen::new(paths, glob));
        let wanted = Wanted { dir: absolute(dir)?, target, chosen, with_git, conflicts };
        self.run(py, (progress, cancel), |library, _| wanted.restore(library, dry_run))
    }

    /// Undo the last restore of the project. Later changes by others are kept.
    #[pyo3(signature = (dir, dry_run=false, *, progress=None, cancel=None))]
    fn undo(
        &self,
        py: Python<'_>,
        dir: PathArg,
        dry_run: bool,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Record> {
        let dir = absolute(dir)?;
        self.run(py, (progress, cancel), |library, _| work::undo(library, &dir, dry_run))
    }

    /// Name a checkpoint, which also protects it from pruning; an empty name removes the name.
    fn set_name(&self, py: Python<'_>, dir: PathArg, checkpoint: Which, name: &str) -> PyResult<Record> {
        let (dir, Which(target), name) = (absolute(dir)?, checkpoint, name.to_owned());
        let named = self.quick(py, |library| told(library.set_name(&dir, &target, &name)))?;
        Ok(values::checkpoint(&named))
    }

    /// Pin a checkpoint: it is never removed to free space.
    fn pin(&self, py: Python<'_>, dir: PathArg, checkpoint: Which) -> PyResult<Record> {
        let (dir, Which(target)) = (absolute(dir)?, checkpoint);
        let pinned = self.quick(py, |library| told(library.set_pinned(&dir, &target, true)))?;
        Ok(values::checkpoint(&pinned))
    }

    /// Unpin a checkpoint: it may be removed again to free space.
    fn unpin(&self, py: Python<'_>, dir: PathArg, checkpoint: Which) -> PyResult<Record> {
        let (dir, Which(target)) = (absolute(dir)?, checkpoint);
        let unpinned = self.quick(py, |library| told(library.set_pinned(&dir, &target, false)))?;
        Ok(values::checkpoint(&unpinned))
    }

    /// Status of all projects, with the disk usage of their checkpoints.
    fn status(&self, py: Python<'_>) -> PyResult<Record> {
        self.quick(py, |library| {
            let status = told(library.status())?;
            Ok(Record::new("CheckpointStatus", json::status(&status)))
        })
    }

    /// The disk usage of checkpoints in bytes, counted exactly.
    fn usage(&self, py: Python<'_>) -> PyResult<u64> {
        self.quick(py, |library| told(Usage::new(library.host()).count()))
    }

    /// Remove what is old, too much, or of projects that are gone. Limits that are None are those of the settings;
    /// `max_size_mb` and `retention_days` of 0 are none. Named and pinned checkpoints stay.
    #[pyo3(signature = (*, retention_days=None, max_size_mb=None, max_snapshots=None, delete_orphans=None,
        dry_run=false))]
    fn prune(
        &self,
        py: Python<'_>,
        retention_days: Option<u32>,
        max_size_mb: Option<u64>,
        max_snapshots: Option<u32>,
        delete_orphans: Option<bool>,
        dry_run: bool,
    ) -> PyResult<Record> {
        self.quick(py, |library| {
            let limits = work::retention(library, retention_days, max_size_mb, max_snapshots, delete_orphans);
            told(library.prune(&limits, dry_run)).map(|pruned| report(&pruned, dry_run))
        })
    }

    /// Prune by the settings, at most every `min_interval_hours`; None if it was not due.
    fn auto_prune(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        let pruned = self.quick(py, |library| told(library.auto_prune()))?;
        Ok(pruned.map(|pruned| report(&pruned, false)))
    }

    /// Make room if there is little left, by number and size alone; None if there is enough.
    fn free_room(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        let pruned = self.quick(py, |library| told(library.free_room()))?;
        Ok(pruned.map(|pruned| report(&pruned, false)))
    }

    /// Remove all checkpoints of the project that `dir` belongs to, named and pinned ones too; with `all`, those of
    /// all projects. No file of a project is touched.
    #[pyo3(signature = (dir=None, *, all=false, dry_run=false))]
    fn clear(&self, py: Python<'_>, dir: Option<PathArg>, all: bool, dry_run: bool) -> PyResult<Record> {
        if dir.is_some() == all {
            return Err(PyValueError::new_err("give the dir of one project, or all=True"));
        }
        let dir = dir.map(absolute).transpose()?;
        self.quick(py, |library| {
            told(library.clear(dir.as_deref(), dry_run)).map(|pruned| report(&pruned, dry_run))
        })
    }

    /// Remove archives of superseded formats: (name, bytes) of each.
    #[pyo3(signature = (*, dry_run=false))]
    fn clear_legacy(&self, py: Python<'_>, dry_run: bool) -> PyResult<Vec<(String, u64)>> {
        self.quick(py, |library| told(library.clear_legacy(dry_run)).map(|all| values::archives(&all)))
    }

    /// Remove a path and all that it ever held from every checkpoint of its project and from every session that does
    /// not run. The file itself stays; this cannot be undone.
    #[pyo3(signature = (path, *, dry_run=false))]
    fn forget(&self, py: Python<'_>, path: PathArg, dry_run: bool) -> PyResult<Record> {
        let path = absolute(path)?;
        self.quick(py, |library| {
            let catalogue = Catalogue::new(&library.host().state_dir);
            if dry_run {
                let holding = nono::checkpoints::holding(library, &catalogue, &path);
                return holding.map(|holding| values::holding(&holding)).raised(error::path);
            }
            let forgotten = nono::checkpoints::forget(library, &catalogue, &path);
            forgotten.map(|forgotten| values::forgotten(&forgotten)).raised(error::path)
        })
    }

    /// Check that everything that checkpoints need is there and unaltered: of the project of `dir`, or of all.
    #[pyo3(signature = (dir=None, *, progress=None, cancel=None))]
    fn verify(
        &self,
        py: Python<'_>,
        dir: Option<PathArg>,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Record> {
        let dir = dir.map(absolute).transpose()?;
        let found = self.run(py, (progress, cancel), |library, _| told(library.verify(dir.as_deref())))?;
        Ok(Record::new("VerifyReport", json::verified(&found)))
    }

    /// Compress the checkpoints of a project, and make them survive a power loss.
    fn settle(&self, py: Python<'_>, dir: PathArg) -> PyResult<()> {
        let dir = absolute(dir)?;
        self.quick(py, |library| told(library.settle(&dir)))
    }

    /// Import the checkpoints that another tool keeps in this folder (Hermes); its own data is left alone.
    fn import_checkpoints(&self, py: Python<'_>, dir: PathArg) -> PyResult<Record> {
        let dir = absolute(dir)?;
        self.quick(py, |library| {
            host::ensure(library.host())?;
            let imported = import::import(&dir, library).raised(error::import)?;
            Ok(Record::new("ImportReport", json::imported(&imported)))
        })
    }

    fn __repr__(&self) -> String {
        format!("CheckpointManager(state_dir={})", text(&self.host.state_dir.to_string_lossy()))
    }
}

fn report(pruned: &Pruned, dry_run: bool) -> Record {
    Record::new("PruneReport", json::pruned(pruned, dry_run))
}
