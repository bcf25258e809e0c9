//! Plan and result of a restore.

use nono::checkpoints::{Completed, ProjectOutcome, ProjectPlan, RestoreNote, json as shapes};
use nono::json::{kept as kept_shape, path as path_shape};
use nono::rollback::Merge;
use nono::snapshot::restore::Skipped;
use pyo3::prelude::*;
use serde_json::{Value, json};

use super::changes::{CheckpointChange, table};
use super::json::to_python;
use super::text;
use super::values::{Checkpoint, PathText, places};

fn kept(all: &[Skipped]) -> Vec<(PathText, String)> {
    all.iter().map(|one| (PathText(one.path.clone()), one.why.to_string())).collect()
}

/// Plan of a restore; nothing was touched.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(super) struct CheckpointPlan {
    /// The project's folder.
    #[pyo3(get)]
    project: PathText,
    /// Changes that would be made.
    #[pyo3(get)]
    changes: Vec<CheckpointChange>,
    /// Paths that would be kept, as (path, reason).
    #[pyo3(get)]
    kept: Vec<(PathText, String)>,
    /// Paths that the checkpoint does not hold and that are gone or changed, as (path, what became of it).
    #[pyo3(get)]
    lost: Vec<(PathText, String)>,
    /// Files that would be merged with changes by others.
    #[pyo3(get)]
    merged: Vec<PathText>,
    /// Turns that would be undone, oldest first.
    #[pyo3(get)]
    turns_undone: Vec<String>,
    /// Whether the agent's changes cannot be told from others: all of them would be reverted.
    #[pyo3(get)]
    unattributed: bool,
    /// Repositories that differ and would be left alone.
    #[pyo3(get)]
    left_alone: Vec<PathText>,
    /// Number of paths that the checkpoint does not hold and a restore does not touch.
    #[pyo3(get)]
    not_covered: u64,
    shape: Value,
}

impl From<ProjectPlan> for CheckpointPlan {
    fn from(plan: ProjectPlan) -> CheckpointPlan {
        CheckpointPlan {
            shape: shapes::plan(&plan.project, &plan.turns_undone, plan.not_covered, &plan),
            changes: plan.changes.iter().map(|change| CheckpointChange::of(&change)).collect(),
            kept: kept(&plan.kept),
            lost: plan.lost.iter().map(|lost| (PathText(lost.path.clone()), lost.to_string())).collect(),
            merged: merged(&plan.written_merges()),
            unattributed: plan.cannot_tell_conflicts,
            left_alone: places(&plan.repositories),
            turns_undone: plan.turns_undone,
            not_covered: plan.not_covered,
            project: PathText(plan.project),
        }
    }
}

#[pymethods]
impl CheckpointPlan {
    /// The data of `nono checkpoints restore --dry-run --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.shape)
    }

    fn __repr__(&self) -> String {
        let (changes, kept, merged) = (self.changes.len(), self.kept.len(), self.merged.len());
        format!("CheckpointPlan(changes={changes}, kept={kept}, merged={merged})")
    }

    fn _repr_html_(&self) -> String {
        table(&self.changes)
    }
}

/// Result of a restore: what was done, kept, and failed.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(super) struct RestoreOutcome {
    /// The project's folder.
    #[pyo3(get)]
    project: PathText,
    /// The checkpoint that was restored; of an undo, the one that the undone restore had restored.
    #[pyo3(get)]
    checkpoint: Checkpoint,
    /// Changes that were made.
    #[pyo3(get)]
    done: Vec<CheckpointChange>,
    /// Paths that were kept, as (path, reason): changed by others, for example.
    #[pyo3(get)]
    kept: Vec<(PathText, String)>,
    /// Paths that could not be restored, as (path, error).
    #[pyo3(get)]
    failed: Vec<(PathText, String)>,
    /// Paths that the checkpoint does not hold and that are gone or changed, as (path, what became of it).
    #[pyo3(get)]
    lost: Vec<(PathText, String)>,
    /// Files that were merged with changes by others.
    #[pyo3(get)]
    merged: Vec<PathText>,
    /// Turns that were undone, oldest first.
    #[pyo3(get)]
    turns_undone: Vec<String>,
    /// Whether the agent's changes could not be told from others: all of them were reverted.
    #[pyo3(get)]
    unattributed: bool,
    /// Repositories that differ and were left alone.
    #[pyo3(get)]
    left_alone: Vec<PathText>,
    /// Number of paths that the checkpoint does not hold and the restore did not touch.
    #[pyo3(get)]
    not_covered: u64,
    /// The id of this restore, which `undo()` reverts; None if nothing was changed.
    #[pyo3(get)]
    undo: Option<String>,
    /// Reason why it is not in the audit log; None if it is.
    #[pyo3(get)]
    unrecorded: Option<String>,
    shape: Value,
}

impl From<ProjectOutcome> for RestoreOutcome {
    fn from(outcome: ProjectOutcome) -> RestoreOutcome {
        let ProjectOutcome { project, checkpoint, turns_undone, done, .. } = outcome;
        let shape = shapes::outcome(&project, Some(&checkpoint), &turns_undone, &done);
        RestoreOutcome {
            shape,
            project: PathText(project),
            not_covered: checkpoint.left_out,
            checkpoint: checkpoint.into(),
            turns_undone,
            kept: kept(&done.kept),
            lost: done.lost.iter().map(|lost| (PathText(lost.path.clone()), lost.to_string())).collect(),
            merged: merged(&done.written_merges()),
            unattributed: done.cannot_tell_conflicts,
            left_alone: places(&done.repositories),
            done: done.changes.iter().map(|change| CheckpointChange::of(&change)).collect(),
            failed: done.failed.into_iter().map(|(path, error)| (PathText(path), error)).collect(),
            undo: done.undo,
            unrecorded: done.unrecorded,
        }
    }
}

fn merged(merges: &[&Merge]) -> Vec<PathText> {
    merges.iter().map(|merge| PathText(merge.path.clone())).collect()
}

#[pymethods]
impl RestoreOutcome {
    /// Whether all of it was done: nothing was kept or lost, nothing failed.
    #[getter]
    fn is_complete(&self) -> bool {
        self.kept.is_empty() && self.lost.is_empty() && self.failed.is_empty()
    }

    /// The data of `nono checkpoints restore --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.shape)
    }

    fn __repr__(&self) -> String {
        let id = text(self.checkpoint.value.id.as_str());
        let (done, kept, failed) = (self.done.len(), self.kept.len(), self.failed.len());
        format!("RestoreOutcome(checkpoint={id}, done={done}, kept={kept}, failed={failed})")
    }

    fn _repr_html_(&self) -> String {
        table(&self.done)
    }
}

/// Note to an agent about a restore since its last query.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(super) struct CheckpointNote(RestoreNote);

impl From<RestoreNote> for CheckpointNote {
    fn from(note: RestoreNote) -> CheckpointNote {
        CheckpointNote(note)
    }
}

#[pymethods]
impl CheckpointNote {
    /// The project's folder.
    #[getter]
    fn project(&self) -> PathText {
        PathText(self.0.project.clone())
    }

    /// The id of the checkpoint that was gone back to.
    #[getter]
    fn checkpoint(&self) -> &str {
        self.0.checkpoint.as_str()
    }

    /// The agent's turns that were undone; with `came_back`, brought back.
    #[getter]
    fn turns_undone(&self) -> Vec<String> {
        self.0.turns_undone.clone()
    }

    /// Restored files, relative to the project; at most a hundred.
    #[getter]
    fn files(&self) -> Vec<String> {
        self.0.files.clone()
    }

    /// The id of the restore.
    #[getter]
    fn restore(&self) -> &str {
        &self.0.restore
    }

    /// Whether an undo brought these turns back, after the agent had the note that they are gone.
    #[getter]
    fn came_back(&self) -> bool {
        self.0.came_back
    }

    /// The values as a plain dict.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut value = json!(self.0);
        value["project"] = path_shape(&self.0.project);
        to_python(py, &value)
    }

    fn __repr__(&self) -> String {
        let (id, files) = (text(self.checkpoint()), self.0.files.len());
        format!("CheckpointNote(checkpoint={id}, files={files})")
    }
}

/// An interrupted restore that a later call on its project completed.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(super) struct CompletedRestore(Completed);

impl From<Completed> for CompletedRestore {
    fn from(completed: Completed) -> CompletedRestore {
        CompletedRestore(completed)
    }
}

#[pymethods]
impl CompletedRestore {
    /// The project's folder.
    #[getter]
    fn project(&self) -> PathText {
        PathText(self.0.project.clone())
    }

    /// The id of the checkpoint that was gone back to.
    #[getter]
    fn checkpoint(&self) -> &str {
        self.0.checkpoint.as_str()
    }

    /// Number of paths changed, before the interruption and now.
    #[getter]
    fn changed(&self) -> usize {
        self.0.changed
    }

    /// Paths that others changed meanwhile, which were kept: (path, reason).
    #[getter]
    fn kept(&self) -> Vec<(PathText, String)> {
        kept(&self.0.kept)
    }

    /// The values as a plain dict.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Completed { project, checkpoint, changed, kept } = &self.0;
        let value = json!({
            "project": path_shape(project),
            "checkpoint": checkpoint,
            "changed": changed,
            "kept": kept_shape(kept),
        });
        to_python(py, &value)
    }

    fn __repr__(&self) -> String {
        format!("CompletedRestore(checkpoint={}, changed={})", text(self.checkpoint()), self.0.changed)
    }
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CheckpointPlan>()?;
    module.add_class::<RestoreOutcome>()?;
    module.add_class::<CheckpointNote>()?;
    module.add_class::<CompletedRestore>()
}
