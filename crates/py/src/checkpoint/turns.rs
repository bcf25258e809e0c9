//! Turns of agents and versions of files, as values for Python.

use std::path::Path;

use nono::checkpoints::{self, CheckpointChoice, CheckpointManager as Library, json};
use nono::file_log::{self, FileLog, FileLogError};
use nono::rollback::Catalogue;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Value;

use super::args::{Chosen, Paths, absolute, folder};
use super::error::{failed, raise};
use super::shared_manager::CheckpointManager;
use super::work::{author, complete, told};
use crate::blocking::{Cancel, Progress};
use crate::history::{conflicts, restore};
use crate::paths::PathArg;
use crate::plain::{self, Record};

/// Turns of agents in the projects of a `CheckpointManager`: the changes of each, and undo of one turn while later ones
/// stay.
#[pyclass(module = "nono_py", frozen)]
pub(crate) struct AgentTurns {
    manager: Py<CheckpointManager>,
}

#[allow(clippy::too_many_arguments, reason = "each is an argument in Python")]
#[pymethods]
impl AgentTurns {
    #[new]
    fn new(manager: Py<CheckpointManager>) -> AgentTurns {
        AgentTurns { manager }
    }

    /// The turns of the project of `dir`, newest first: as `nono turns --json` has them.
    fn list_turns<'py>(&self, py: Python<'py>, dir: PathArg) -> PyResult<Bound<'py, PyAny>> {
        let dir = absolute(dir)?;
        let all = self.manager.get().quick(py, |library| list(library, &dir))?;
        plain::plain(py, &all)
    }

    /// Undo one turn: its number in the list, its id or a beginning of it. Later work stays: in the same text file it
    /// is merged, and a file that does not merge is kept, unless `conflicts` is "merge_with_markers" or "force". With
    /// `dry_run`, returns only the plan.
    #[pyo3(signature = (dir, turn, paths=None, dry_run=false, *, conflicts="keep", progress=None, cancel=None))]
    fn undo(
        &self,
        py: Python<'_>,
        dir: PathArg,
        turn: TurnName,
        paths: Option<Paths>,
        dry_run: bool,
        conflicts: &str,
        progress: Option<Progress>,
        cancel: Option<Cancel>,
    ) -> PyResult<Record> {
        let dir = absolute(dir)?;
        let conflicts = self::conflicts(conflicts)?;
        let names = Chosen::new(paths, None).names;
        let paths = names.into_iter().map(|name| folder(&dir).join(name)).collect();
        let choice = CheckpointChoice { paths, conflicts, ..CheckpointChoice::default() };
        self.manager.get().run(py, (progress, cancel), |library, _| {
            let link = told(library.find_turn(&dir, &turn.text()))?;
            if dry_run {
                return told(library.plan_turn(&dir, &link, &choice))
                    .map(|plan| restore::project_plan(&plan));
            }
            let author = author(&dir, "undo_turn");
            complete(told(checkpoints::undo_turn(library, &author, &dir, &link, &choice))?)
        })
    }
}

/// Versions of files that checkpoints and sessions know.
#[pyclass(module = "nono_py", frozen)]
pub(crate) struct FileVersions {
    manager: Py<CheckpointManager>,
}

#[pymethods]
impl FileVersions {
    #[new]
    fn new(manager: Py<CheckpointManager>) -> FileVersions {
        FileVersions { manager }
    }

    /// Every version of a file with the author of the change, newest first: as `nono log --json` has them.
    fn list_versions<'py>(&self, py: Python<'py>, path: PathArg) -> PyResult<Bound<'py, PyAny>> {
        let path = absolute(path)?;
        let all = self.manager.get().quick(py, |library| versions(library, &path))?;
        plain::plain(py, &all)
    }

    /// The bytes of a file as they were: `version` is one of the list (its digest or a beginning of it), a checkpoint,
    /// or a session, as it was before it.
    fn read<'py>(&self, py: Python<'py>, path: PathArg, version: String) -> PyResult<Bound<'py, PyBytes>> {
        let path = absolute(path)?;
        let bytes = self.manager.get().quick(py, |library| content(library, &path, &version))?;
        Ok(PyBytes::new(py, &bytes))
    }
}

/// Reference to a turn: a number of the list, or text.
#[derive(FromPyObject)]
enum TurnName {
    Number(u32),
    Text(String),
}

impl TurnName {
    fn text(self) -> String {
        match self {
            TurnName::Number(number) => number.to_string(),
            TurnName::Text(text) => text,
        }
    }
}

fn list(manager: &Library, dir: &Path) -> PyResult<Value> {
    let all = told(manager.turns(dir))?;
    let project = told(manager.root_of(dir))?.dir;
    Ok(json::turns(&project, &all)["turns"].take())
}

fn versions(manager: &Library, path: &Path) -> PyResult<Value> {
    let catalogue = Catalogue::new(&manager.host().state_dir);
    let log = FileLog { catalogue: &catalogue, checkpoints: manager };
    let versions = log.versions(path).map_err(not_told)?;
    Ok(file_log::json(path, &versions)["versions"].take())
}

fn content(manager: &Library, path: &Path, version: &str) -> PyResult<Vec<u8>> {
    let catalogue = Catalogue::new(&manager.host().state_dir);
    let log = FileLog { catalogue: &catalogue, checkpoints: manager };
    log.content(version, path).map_err(not_told)
}

fn not_told(error: FileLogError) -> PyErr {
    match error {
        FileLogError::Checkpoint(error) => failed(&error),
        error => raise("no_such_version", error),
    }
}
