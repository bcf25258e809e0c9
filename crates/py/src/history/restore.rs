//! Plan and result of a restore, of a session or of a project.

use std::path::PathBuf;

use nono::checkpoints::{Completed, ProjectOutcome, ProjectPlan, json as shapes};
use nono::rollback::{Done, Merge, Plan, json};
use nono::snapshot::Lost;
use nono::snapshot::restore::Skipped;
use pyo3::prelude::*;
use serde_json::Value;

use super::changes::HistoryChange;
use crate::paths::{PathText, texts};
use crate::{plain, render};

/// Paths, each with a text about it.
type Reasons = Vec<(PathText, String)>;

/// Result of a restore or an undo; with `dry_run`, its plan.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "attributes in Python")]
pub(crate) struct RestoreResult {
    /// Whether this is only a plan, and nothing was done.
    #[pyo3(get)]
    dry_run: bool,
    /// Whether it is complete: nothing was kept or lost, nothing failed, and it was not interrupted.
    #[pyo3(get)]
    ok: bool,
    /// The changes that were made.
    #[pyo3(get)]
    changes: Vec<HistoryChange>,
    /// Paths that were kept, as (path, reason): changed later, for example.
    #[pyo3(get)]
    kept: Reasons,
    /// Paths that are in no snapshot and that are gone or changed, as (path, what became of it).
    #[pyo3(get)]
    lost: Reasons,
    /// Paths that could not be restored, as (path, error).
    #[pyo3(get)]
    failed: Reasons,
    /// Files that were merged with changes by others.
    #[pyo3(get)]
    merged: Vec<PathText>,
    /// Other information about it.
    #[pyo3(get)]
    notes: Vec<String>,
    /// Whether it was interrupted: `recover()` of the session or the next call on the project completes it.
    #[pyo3(get)]
    interrupted: bool,
    /// The id of this restore, which `undo()` reverts; None if nothing was changed, or if it is an undo in a project.
    #[pyo3(get)]
    undo_id: Option<String>,
    /// Whether the owner's changes could not be told from others: all of them were reverted.
    #[pyo3(get)]
    cannot_tell_conflicts: bool,
    /// Repositories that differ and were left alone.
    #[pyo3(get)]
    left_alone: Vec<PathText>,
    /// Reason why it is not in the audit log; None if it is.
    #[pyo3(get)]
    unrecorded: Option<String>,
    /// The id of the session; None for a project.
    #[pyo3(get)]
    session: Option<String>,
    /// The project's folder; None for a session.
    #[pyo3(get)]
    project: Option<PathText>,
    /// The id of the checkpoint that was gone back to; of an undo, the one that the undone restore had gone back to. None
    /// in a plan, for a session, and if the log of restores lost it.
    #[pyo3(get)]
    checkpoint: Option<String>,
    /// Turns of agents that were undone, oldest first.
    #[pyo3(get)]
    turns_undone: Vec<String>,
    /// Number of paths of the project that the checkpoint does not hold and a restore does not touch; None if unknown.
    #[pyo3(get)]
    not_covered: Option<u64>,
    /// Data of `--json`.
    shape: Value,
}

fn kept(all: &[Skipped]) -> Reasons {
    all.iter().map(|one| (PathText(one.path.clone()), one.why.to_string())).collect()
}

fn lost(all: &[Lost]) -> Reasons {
    all.iter().map(|lost| (PathText(lost.path.clone()), lost.to_string())).collect()
}

fn failed(all: &[(PathBuf, String)]) -> Reasons {
    all.iter().map(|(path, error)| (PathText(path.clone()), error.clone())).collect()
}

fn merged(merges: &[&Merge]) -> Vec<PathText> {
    texts(merges.iter().map(|merge| &merge.path))
}

/// What plans of all owners have.
impl From<&Plan> for RestoreResult {
    fn from(plan: &Plan) -> RestoreResult {
        RestoreResult {
            dry_run: true,
            ok: plan.kept.is_empty() && plan.lost.is_empty(),
            changes: plan.changes.iter().map(HistoryChange::from).collect(),
            kept: kept(&plan.kept),
            lost: lost(&plan.lost),
            merged: merged(&plan.written_merges()),
            notes: plan.notes.clone(),
            cannot_tell_conflicts: plan.cannot_tell_conflicts,
            left_alone: texts(&plan.repositories),
            ..RestoreResult::default()
        }
    }
}

/// What results of all owners have.
impl From<&Done> for RestoreResult {
    fn from(done: &Done) -> RestoreResult {
        RestoreResult {
            ok: done.is_whole(),
            changes: done.changes.iter().map(HistoryChange::from).collect(),
            kept: kept(&done.kept),
            lost: lost(&done.lost),
            failed: failed(&done.failed),
            merged: merged(&done.written_merges()),
            notes: done.notes.clone(),
            interrupted: done.interrupted,
            undo_id: done.undo.clone(),
            cannot_tell_conflicts: done.cannot_tell_conflicts,
            left_alone: texts(&done.repositories),
            unrecorded: done.unrecorded.clone(),
            ..RestoreResult::default()
        }
    }
}

impl RestoreResult {
    /// Plan for a session.
    pub(crate) fn planned(session: &str, plan: &Plan) -> RestoreResult {
        let shape = json::plan(session, plan);
        RestoreResult { session: Some(session.to_owned()), shape, ..plan.into() }
    }

    /// Result for a session.
    pub(crate) fn done(session: &str, done: &Done) -> RestoreResult {
        let shape = json::done(session, done);
        RestoreResult { session: Some(session.to_owned()), shape, ..done.into() }
    }
}

impl From<ProjectPlan> for RestoreResult {
    fn from(plan: ProjectPlan) -> RestoreResult {
        RestoreResult {
            shape: shapes::plan(&plan.project, &plan.turns_undone, plan.not_covered, &plan.restore),
            not_covered: Some(plan.not_covered),
            turns_undone: plan.turns_undone,
            project: Some(PathText(plan.project)),
            ..(&plan.restore).into()
        }
    }
}

impl From<ProjectOutcome> for RestoreResult {
    fn from(outcome: ProjectOutcome) -> RestoreResult {
        let ProjectOutcome { project, checkpoint, turns_undone, done, .. } = outcome;
        RestoreResult {
            shape: shapes::outcome(&project, Some(&checkpoint), &turns_undone, &done),
            not_covered: Some(checkpoint.left_out),
            checkpoint: Some(checkpoint.id.to_string()),
            turns_undone,
            project: Some(PathText(project)),
            ..(&done).into()
        }
    }
}

/// Interrupted restore that a later call completed, or tried to complete.
impl From<Completed> for RestoreResult {
    fn from(completed: Completed) -> RestoreResult {
        RestoreResult {
            shape: shapes::completed(&completed),
            checkpoint: completed.checkpoint.map(|id| id.to_string()),
            project: Some(PathText(completed.project)),
            ..(&completed.done).into()
        }
    }
}

#[pymethods]
impl RestoreResult {
    /// All values as a plain dict, as in `--json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::plain(py, &self.shape)
    }

    fn __repr__(&self) -> String {
        let (changes, kept, failed) = (self.changes.len(), self.kept.len(), self.failed.len());
        let dry = if self.dry_run { ", dry_run=True" } else { "" };
        format!("RestoreResult(changes={changes}, kept={kept}, failed={failed}{dry})")
    }

    fn _repr_html_(&self) -> String {
        let made = self.changes.iter().map(|one| one.cells().into_iter().chain([String::new()]).collect());
        let others = [("kept", &self.kept), ("lost", &self.lost), ("failed", &self.failed)];
        let others = others.into_iter().flat_map(|(what, all)| {
            all.iter().map(move |(path, why)| {
                vec![what.to_owned(), path.0.to_string_lossy().into_owned(), why.clone()]
            })
        });
        render::table(&["outcome", "path", "why"], made.chain(others))
    }
}
