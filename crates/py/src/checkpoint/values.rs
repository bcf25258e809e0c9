//! Checkpoints, and results of taking one.

use std::path::{Path, PathBuf};

use nono::checkpoints::{Ensured, Skip, Stats, json as shapes};
use pyo3::prelude::*;
use pyo3::types::PyString;
use serde_json::{Value, json};

use super::json::to_python;
use super::{error, text};
use crate::paths;
use crate::snapshot::coverage::Coverage;
use crate::snapshot::names::Names;

/// A path that Python gets as `str`.
#[derive(Clone, Debug)]
pub(super) struct PathText(pub(super) PathBuf);

impl<'py> IntoPyObject<'py> for &PathText {
    type Target = PyString;
    type Output = Bound<'py, PyString>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        Ok(paths::to_python(py, &self.0))
    }
}

impl<'py> IntoPyObject<'py> for PathText {
    type Target = PyString;
    type Output = Bound<'py, PyString>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        (&self).into_pyobject(py)
    }
}

pub(super) fn places(paths: &[PathBuf]) -> Vec<PathText> {
    paths.iter().cloned().map(PathText).collect()
}

/// Changes after a checkpoint: up to the next one; for the newest, up to the end of the agent's last call.
#[pyclass(frozen, get_all, module = "nono_py")]
#[derive(Clone, Debug)]
pub(super) struct CheckpointStats {
    /// Number of files that differ.
    files: u64,
    /// Number of lines added.
    insertions: u64,
    /// Number of lines removed.
    deletions: u64,
}

impl From<Stats> for CheckpointStats {
    fn from(Stats { files, insertions, deletions }: Stats) -> CheckpointStats {
        CheckpointStats { files, insertions, deletions }
    }
}

#[pymethods]
impl CheckpointStats {
    /// The data of `nono checkpoints list --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let CheckpointStats { files, insertions, deletions } = self;
        to_python(py, &json!({"files": files, "insertions": insertions, "deletions": deletions}))
    }

    fn __repr__(&self) -> String {
        let CheckpointStats { files, insertions, deletions } = self;
        format!("CheckpointStats(files={files}, insertions={insertions}, deletions={deletions})")
    }
}

/// A stored state of a project. Checkpoints with the same id are equal.
#[pyclass(frozen, module = "nono_py")]
#[derive(Clone, Debug)]
pub(super) struct Checkpoint {
    pub(super) value: nono::checkpoints::Checkpoint,
    /// Number in the list that it comes from.
    pub(super) number: Option<usize>,
    /// Whether the project was restored to it and no work began since, according to that list.
    pub(super) here: bool,
}

impl From<nono::checkpoints::Checkpoint> for Checkpoint {
    fn from(value: nono::checkpoints::Checkpoint) -> Checkpoint {
        Checkpoint { value, number: None, here: false }
    }
}

impl Checkpoint {
    pub(super) fn shape(&self) -> Value {
        let mut value = shapes::checkpoint(&self.value);
        if let Some(number) = self.number {
            value["number"] = json!(number);
            value["here"] = json!(self.here);
        }
        value
    }
}

#[pymethods]
impl Checkpoint {
    /// Its permanent id: twelve hexadecimal digits.
    #[getter]
    fn id(&self) -> &str {
        self.value.id.as_str()
    }

    /// The beginning of its id, as lists show it.
    #[getter]
    fn short_id(&self) -> &str {
        self.value.id.short()
    }

    /// Whether the project was restored to it and no work began since; False if it comes from no list.
    #[getter]
    fn here(&self) -> bool {
        self.here
    }

    /// Its place in the list that it comes from, counted from 1, the newest; None if it comes from elsewhere.
    #[getter]
    fn number(&self) -> Option<usize> {
        self.number
    }

    /// The time it was taken: ISO 8601, UTC.
    #[getter]
    fn time(&self) -> &str {
        &self.value.time
    }

    /// The reason it was taken for. Untrusted text.
    #[getter]
    fn reason(&self) -> &str {
        &self.value.reason
    }

    /// The agent that it was taken for.
    #[getter]
    fn agent(&self) -> Option<&str> {
        self.value.origin.agent.as_deref()
    }

    /// The agent's own id of the conversation.
    #[getter]
    fn session(&self) -> Option<&str> {
        self.value.origin.session.as_deref()
    }

    /// The turn of the agent that it was taken in.
    #[getter]
    fn turn(&self) -> Option<&str> {
        self.value.origin.turn.as_deref()
    }

    /// The tool that was about to run.
    #[getter]
    fn tool(&self) -> Option<&str> {
        self.value.origin.tool.as_deref()
    }

    /// The agent's own id of the call.
    #[getter]
    fn call(&self) -> Option<&str> {
        self.value.origin.call.as_deref()
    }

    /// The session of `nono run` around it.
    #[getter]
    fn run(&self) -> Option<&str> {
        self.value.origin.run.as_deref()
    }

    /// Its name, if it was given one: then it is never removed by itself.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.value.name.as_deref()
    }

    /// Whether it is kept until it is unpinned.
    #[getter]
    fn pinned(&self) -> bool {
        self.value.pinned
    }

    /// The other tool's name of it, if it was imported.
    #[getter]
    fn imported_from(&self) -> Option<&str> {
        self.value.imported_from.as_deref()
    }

    /// The number of files it holds.
    #[getter]
    fn files(&self) -> u64 {
        self.value.files
    }

    /// The number of paths it does not hold and a restore does not touch.
    #[getter]
    fn not_covered(&self) -> u64 {
        self.value.left_out
    }

    /// The changes after it; None if it comes from no list.
    #[getter]
    fn stats(&self) -> Option<CheckpointStats> {
        self.value.stats.map(CheckpointStats::from)
    }

    /// The data of `nono checkpoints list --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.shape())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Checkpoint>().is_ok_and(|other| other.get().value.id == self.value.id)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.id().into_pyobject(py)?.hash()
    }

    fn __repr__(&self) -> String {
        let (id, time) = (self.id(), self.time());
        format!("Checkpoint(id={}, time={}, reason={})", text(id), text(time), text(self.reason()))
    }
}

/// Result of requesting a checkpoint. A failure is one of them: an agent's work goes on.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(super) struct CheckpointResult {
    shape: Value,
    project: PathText,
    checkpoint: Option<Checkpoint>,
    coverage: Option<Coverage>,
    checkpoint_id: Option<String>,
    why: Option<String>,
    error: Option<PyErr>,
}

impl CheckpointResult {
    pub(super) fn new(ensured: Ensured) -> CheckpointResult {
        let shape = shapes::ensured(&ensured);
        let mut result = CheckpointResult {
            shape,
            project: PathText(PathBuf::new()),
            checkpoint: None,
            coverage: None,
            checkpoint_id: None,
            why: None,
            error: None,
        };
        match ensured {
            Ensured::Taken { project, checkpoint, coverage } => {
                result.project = PathText(project);
                // Tracked paths have no other names here.
                result.coverage = Some(Coverage::new(coverage, &Names::default()));
                result.checkpoint_id = Some(checkpoint.id.to_string());
                result.checkpoint = Some(checkpoint.into());
            }
            Ensured::Skipped { project, why } => {
                result.project = PathText(project);
                let (word, id) = match why {
                    Skip::Disabled => ("disabled", None),
                    Skip::ThisTurn(id) => ("this_turn", Some(id)),
                    Skip::Unchanged(id) => ("unchanged", Some(id)),
                };
                result.why = Some(word.to_owned());
                result.checkpoint_id = id.map(|id| id.to_string());
            }
            Ensured::Failed { dir, error } => {
                result.project = PathText(dir);
                result.why = Some(error.to_string());
                result.error = Some(error::failed(&error));
            }
        }
        result
    }

    /// Result for a checkpoint that could not even be tried.
    pub(super) fn refused(dir: &Path, error: PyErr) -> CheckpointResult {
        let why = error.to_string();
        CheckpointResult {
            shape: json!({"result": "failed", "project": nono::json::path(dir), "why": why}),
            project: PathText(dir.to_owned()),
            checkpoint: None,
            coverage: None,
            checkpoint_id: None,
            why: Some(why),
            error: Some(error),
        }
    }

    /// Whether checkpoints are off.
    pub(super) fn is_off(&self) -> bool {
        self.is("skipped") && self.checkpoint_id.is_none()
    }

    fn is(&self, word: &str) -> bool {
        self.shape["result"] == word
    }
}

#[pymethods]
impl CheckpointResult {
    /// "taken", "skipped" or "failed".
    #[getter]
    fn result(&self) -> &str {
        self.shape["result"].as_str().unwrap_or_default()
    }

    /// Whether one was taken now.
    #[getter]
    fn taken(&self) -> bool {
        self.is("taken")
    }

    /// Whether none was needed; `why` has the reason.
    #[getter]
    fn skipped(&self) -> bool {
        self.is("skipped")
    }

    /// Whether it failed, so that there is no protection; `why` and `error` have the reason.
    #[getter]
    fn failed(&self) -> bool {
        self.is("failed")
    }

    /// Whether a checkpoint shows the project as it was before: one taken now, or one that was there already.
    #[getter]
    fn is_protected(&self) -> bool {
        self.checkpoint_id.is_some()
    }

    /// The project's folder; of a failure, the folder that was asked about.
    #[getter]
    fn project(&self) -> PathText {
        self.project.clone()
    }

    /// The checkpoint, if one was taken now.
    #[getter]
    fn checkpoint(&self) -> Option<Checkpoint> {
        self.checkpoint.clone()
    }

    /// The id of the checkpoint that protects: taken now, or there already.
    #[getter]
    fn checkpoint_id(&self) -> Option<&str> {
        self.checkpoint_id.as_deref()
    }

    /// "disabled", "this_turn" or "unchanged"; of a failure, what went wrong.
    #[getter]
    fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// The exception of a failure, which was not raised.
    #[getter]
    fn error(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.error.as_ref().map(|error| error.clone_ref(py).into_value(py).into_any())
    }

    /// The coverage of the checkpoint, if one was taken now.
    #[getter]
    fn coverage(&self) -> Option<Coverage> {
        self.coverage.clone()
    }

    /// Raise the failure, if it is one.
    pub(super) fn raise_if_failed(&self, py: Python<'_>) -> PyResult<()> {
        self.error.as_ref().map_or(Ok(()), |error| Err(error.clone_ref(py)))
    }

    /// The data of `nono checkpoints create --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.shape)
    }

    fn __repr__(&self) -> String {
        let none = || "None".to_owned();
        let id = self.checkpoint_id().map_or_else(none, text);
        let why = self.why().map_or_else(none, text);
        format!("CheckpointResult(result={}, checkpoint_id={id}, why={why})", text(self.result()))
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CheckpointStats>()?;
    module.add_class::<Checkpoint>()?;
    module.add_class::<CheckpointResult>()
}
