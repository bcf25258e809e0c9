//! Checkpoints, and results of taking one.

use std::path::{Path, PathBuf};

use nono::checkpoints::{Ensured, Origin, Skip, Stats, json as shapes};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::{Value, json};

use super::{error, text};
use crate::paths::PathText;
use crate::plain;
use crate::snapshot::coverage::Coverage;
use crate::snapshot::names::Names;

/// Changes after a checkpoint: up to the next one; for the newest, up to the end of the agent's last call.
#[pyclass(frozen, get_all, module = "nono_py")]
#[derive(Clone, Debug)]
pub(crate) struct CheckpointStats {
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
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        plain::attributes(slf, "files insertions deletions")
    }

    fn __repr__(&self) -> String {
        let CheckpointStats { files, insertions, deletions } = self;
        format!("CheckpointStats(files={files}, insertions={insertions}, deletions={deletions})")
    }
}

/// A stored state of a project. Checkpoints with the same id are equal.
#[pyclass(frozen, module = "nono_py")]
#[derive(Clone, Debug)]
pub(crate) struct Checkpoint {
    pub(super) value: nono::checkpoints::Checkpoint,
    /// Its permanent id: twelve hexadecimal digits.
    #[pyo3(get)]
    pub(super) id: String,
    /// The beginning of its id, as lists show it.
    #[pyo3(get)]
    short_id: String,
    /// Whether the project was restored to it and no work began since; False if it comes from no list.
    #[pyo3(get)]
    here: bool,
    /// Its place in the list that it comes from, counted from 1, the newest; None if it comes from elsewhere.
    #[pyo3(get)]
    number: Option<usize>,
    /// The time it was taken: ISO 8601, UTC.
    #[pyo3(get)]
    time: String,
    /// The reason it was taken for. Untrusted text.
    #[pyo3(get)]
    reason: String,
    /// The agent that it was taken for.
    #[pyo3(get)]
    agent: Option<String>,
    /// The agent's own id of the conversation.
    #[pyo3(get)]
    session: Option<String>,
    /// The turn of the agent that it was taken in.
    #[pyo3(get)]
    turn: Option<String>,
    /// The tool that was about to run.
    #[pyo3(get)]
    tool: Option<String>,
    /// The agent's own id of the call.
    #[pyo3(get)]
    call: Option<String>,
    /// The session of `nono run` around it.
    #[pyo3(get)]
    run: Option<String>,
    /// Its name, if it was given one: then it is never removed by itself.
    #[pyo3(get)]
    name: Option<String>,
    /// Whether it is kept until it is unpinned.
    #[pyo3(get)]
    pinned: bool,
    /// The other tool's name of it, if it was imported.
    #[pyo3(get)]
    imported_from: Option<String>,
    /// The number of files it holds.
    #[pyo3(get)]
    files: u64,
    /// The number of paths it does not hold and a restore does not touch.
    #[pyo3(get)]
    not_covered: u64,
    /// The changes after it; None if it comes from no list.
    #[pyo3(get)]
    stats: Option<CheckpointStats>,
}

impl From<nono::checkpoints::Checkpoint> for Checkpoint {
    fn from(value: nono::checkpoints::Checkpoint) -> Checkpoint {
        let Origin { agent, session, turn, tool, call, run, .. } = value.origin.clone();
        Checkpoint {
            id: value.id.to_string(),
            short_id: value.id.short().to_owned(),
            here: false,
            number: None,
            time: value.time.clone(),
            reason: value.reason.clone(),
            agent,
            session,
            turn,
            tool,
            call,
            run,
            name: value.name.clone(),
            pinned: value.pinned,
            imported_from: value.imported_from.clone(),
            files: value.files,
            not_covered: value.left_out,
            stats: value.stats.map(CheckpointStats::from),
            value,
        }
    }
}

impl Checkpoint {
    pub(super) fn listed(value: nono::checkpoints::Checkpoint, number: usize, here: bool) -> Checkpoint {
        Checkpoint { number: Some(number), here, ..value.into() }
    }

    fn shape(&self) -> Value {
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
    /// The data of `nono checkpoints list --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::plain(py, &self.shape())
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Checkpoint>().is_ok_and(|other| other.get().id == self.id)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        PyString::new(py, &self.id).hash()
    }

    fn __repr__(&self) -> String {
        let (id, time, reason) = (text(&self.id), text(&self.time), text(&self.reason));
        format!("Checkpoint(id={id}, time={time}, reason={reason})")
    }
}

/// Result of requesting a checkpoint. A failure is one of them: an agent's work goes on.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct CheckpointResult {
    shape: Value,
    /// The project's folder; of a failure, the folder that was asked about.
    #[pyo3(get)]
    project: PathText,
    /// The checkpoint, if one was taken now.
    #[pyo3(get)]
    checkpoint: Option<Checkpoint>,
    /// The coverage of the checkpoint, if one was taken now.
    #[pyo3(get)]
    coverage: Option<Coverage>,
    /// The id of the checkpoint that protects: taken now, or there already.
    #[pyo3(get)]
    checkpoint_id: Option<String>,
    /// "disabled", "this_turn" or "unchanged"; of a failure, what went wrong.
    #[pyo3(get)]
    why: Option<String>,
    error: Option<PyErr>,
}

impl CheckpointResult {
    pub(super) fn new(ensured: Ensured) -> CheckpointResult {
        let shape = shapes::ensured(&ensured);
        match ensured {
            Ensured::Taken { project, checkpoint, coverage } => CheckpointResult {
                // Tracked paths have no other names here.
                coverage: Some(Coverage::new(coverage, &Names::default())),
                checkpoint_id: Some(checkpoint.id.to_string()),
                checkpoint: Some(checkpoint.into()),
                ..CheckpointResult::bare(shape, project)
            },
            Ensured::Skipped { project, why } => {
                let (word, id) = match why {
                    Skip::Disabled => ("disabled", None),
                    Skip::ThisTurn(id) => ("this_turn", Some(id)),
                    Skip::Unchanged(id) => ("unchanged", Some(id)),
                };
                CheckpointResult {
                    why: Some(word.to_owned()),
                    checkpoint_id: id.map(|id| id.to_string()),
                    ..CheckpointResult::bare(shape, project)
                }
            }
            Ensured::Failed { dir, error } => CheckpointResult {
                why: Some(error.to_string()),
                error: Some(error::failed(&error)),
                ..CheckpointResult::bare(shape, dir)
            },
        }
    }

    /// Result for a checkpoint that could not even be tried.
    pub(super) fn refused(dir: &Path, error: PyErr) -> CheckpointResult {
        let why = error.to_string();
        let shape = json!({"result": "failed", "project": nono::json::path(dir), "why": why});
        let bare = CheckpointResult::bare(shape, dir.to_owned());
        CheckpointResult { why: Some(why), error: Some(error), ..bare }
    }

    fn bare(shape: Value, project: PathBuf) -> CheckpointResult {
        CheckpointResult {
            shape,
            project: PathText(project),
            checkpoint: None,
            coverage: None,
            checkpoint_id: None,
            why: None,
            error: None,
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

    /// The exception of a failure, which was not raised.
    #[getter]
    fn error(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.error.as_ref().map(|error| error.clone_ref(py).into_value(py).into_any())
    }

    /// Raise the failure, if it is one.
    pub(super) fn raise_if_failed(&self, py: Python<'_>) -> PyResult<()> {
        self.error.as_ref().map_or(Ok(()), |error| Err(error.clone_ref(py)))
    }

    /// The data of `nono checkpoints create --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::plain(py, &self.shape)
    }

    fn __repr__(&self) -> String {
        let none = || "None".to_owned();
        let id = self.checkpoint_id.as_deref().map_or_else(none, text);
        let why = self.why.as_deref().map_or_else(none, text);
        format!("CheckpointResult(result={}, checkpoint_id={id}, why={why})", text(self.result()))
    }
}
