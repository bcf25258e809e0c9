//! Reports: status, pruning, verification, forgetting, import.

use std::path::PathBuf;

use nono::checkpoints::import::Imported;
use nono::checkpoints::{
    HoldingEverywhere, Legacy, ProjectStatus, ProjectVerified, Pruned, PurgedEverywhere, StatusReport,
    Unprotected, json as shapes,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use super::text;
use super::values::Checkpoint;
use crate::paths::{PathText, texts};
use crate::{plain, render};

/// One project that has checkpoints.
#[pyclass(frozen, get_all, module = "nono_py")]
#[derive(Clone, Debug)]
pub(crate) struct CheckpointProject {
    /// The name of its folder below `projects/` in nono's state.
    hash: String,
    /// The project's folder.
    workdir: PathText,
    /// Number of its checkpoints.
    checkpoints: u64,
    /// Time of the last work in it: ISO 8601, UTC.
    last_touch: String,
    /// "live", or "orphan" if its folder is gone.
    state: &'static str,
    /// Reason why the last checkpoint failed, so that nothing protects the project; None if it is protected.
    unprotected: Option<String>,
}

impl From<ProjectStatus> for CheckpointProject {
    fn from(one: ProjectStatus) -> CheckpointProject {
        CheckpointProject {
            hash: one.hash,
            workdir: PathText(one.workdir),
            checkpoints: one.checkpoints,
            last_touch: one.last_touch,
            state: if one.orphan { "orphan" } else { "live" },
            unprotected: one.unprotected,
        }
    }
}

#[pymethods]
impl CheckpointProject {
    /// The data of `nono checkpoints status --json`.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        plain::attributes(slf, "hash workdir checkpoints last_touch state unprotected")
    }

    fn __repr__(&self) -> String {
        let workdir = text(&self.workdir.0.to_string_lossy());
        format!("CheckpointProject(workdir={workdir}, checkpoints={})", self.checkpoints)
    }
}

/// Status of all projects, with the disk usage of their checkpoints.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct CheckpointStatus {
    /// Whether `ensure_checkpoint` takes any.
    #[pyo3(get)]
    enabled: bool,
    /// nono's own folder.
    #[pyo3(get)]
    base: PathText,
    /// Disk usage of checkpoints and archives of superseded formats.
    #[pyo3(get)]
    total_bytes: u64,
    /// Disk usage of checkpoints.
    #[pyo3(get)]
    store_bytes: u64,
    /// Disk usage of archives of superseded formats.
    #[pyo3(get)]
    legacy_bytes: u64,
    /// Whether `store_bytes` was counted, and nothing was written since; else it is not less than it says.
    #[pyo3(get)]
    exact: bool,
    /// The last one touched first.
    #[pyo3(get)]
    projects: Vec<CheckpointProject>,
    /// Archives of superseded formats, as (name, bytes).
    #[pyo3(get)]
    legacy: Vec<(String, u64)>,
    /// Folders whose first checkpoint failed, as (path, why, time).
    #[pyo3(get)]
    unprotected: Vec<(PathText, String, String)>,
    /// Projects that cannot be read.
    #[pyo3(get)]
    problems: Vec<String>,
    shape: Value,
}

impl From<StatusReport> for CheckpointStatus {
    fn from(status: StatusReport) -> CheckpointStatus {
        let note = |Unprotected { time, dir, why }: Unprotected| (PathText(dir), why, time);
        CheckpointStatus {
            shape: shapes::status(&status),
            enabled: status.enabled,
            base: PathText(status.base),
            total_bytes: status.store_bytes.saturating_add(status.legacy_bytes),
            store_bytes: status.store_bytes,
            legacy_bytes: status.legacy_bytes,
            exact: status.exact,
            projects: status.projects.into_iter().map(CheckpointProject::from).collect(),
            legacy: status.legacy,
            unprotected: status.unprotected.into_iter().map(note).collect(),
            problems: status.problems,
        }
    }
}

#[pymethods]
impl CheckpointStatus {
    /// The data of `nono checkpoints status --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::plain(py, &self.shape)
    }

    fn __repr__(&self) -> String {
        format!("CheckpointStatus(projects={}, total_bytes={})", self.projects.len(), self.total_bytes)
    }

    fn _repr_html_(&self) -> String {
        let row = |one: &CheckpointProject| {
            let protected = one.unprotected.clone().unwrap_or_default();
            let workdir = one.workdir.0.to_string_lossy().into_owned();
            vec![
                workdir,
                one.checkpoints.to_string(),
                one.last_touch.clone(),
                one.state.to_owned(),
                protected,
            ]
        };
        let head = ["project", "checkpoints", "last touch", "state", "unprotected"];
        render::table(&head, self.projects.iter().map(row))
    }
}

/// Result of pruning, or with `dry_run` its preview.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct PruneReport {
    /// Whether nothing was changed.
    #[pyo3(get)]
    dry_run: bool,
    /// Projects, each with the checkpoints that were removed.
    #[pyo3(get)]
    removed: Vec<(PathText, Vec<Checkpoint>)>,
    /// Projects that were removed completely.
    #[pyo3(get)]
    projects_removed: Vec<PathText>,
    /// Archives of superseded formats that were removed, as (name, bytes).
    #[pyo3(get)]
    legacy: Vec<(String, u64)>,
    /// Disk usage of checkpoints before.
    #[pyo3(get)]
    bytes_before: u64,
    /// Disk usage of checkpoints now.
    #[pyo3(get)]
    bytes_after: u64,
    /// Whether the size still exceeds the limit: what is left is pinned, named, or the newest of its project.
    #[pyo3(get)]
    over_budget: bool,
    /// Errors for what could not be removed.
    #[pyo3(get)]
    problems: Vec<String>,
    shape: Value,
}

impl PruneReport {
    pub(super) fn new(pruned: Pruned, dry_run: bool) -> PruneReport {
        let own = |all: Vec<nono::checkpoints::Checkpoint>| all.into_iter().map(Checkpoint::from).collect();
        PruneReport {
            shape: shapes::pruned(&pruned, dry_run),
            dry_run,
            removed: pruned.removed.into_iter().map(|(project, all)| (PathText(project), own(all))).collect(),
            projects_removed: texts(&pruned.projects_removed),
            legacy: archives(&pruned.legacy),
            bytes_before: pruned.bytes_before,
            bytes_after: pruned.bytes_after,
            over_budget: pruned.over_budget,
            problems: pruned.problems.iter().map(ToString::to_string).collect(),
        }
    }
}

pub(super) fn archives(all: &[Legacy]) -> Vec<(String, u64)> {
    all.iter().map(|one| (one.name(), one.bytes)).collect()
}

#[pymethods]
impl PruneReport {
    /// The data of `nono checkpoints prune --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::plain(py, &self.shape)
    }

    fn __repr__(&self) -> String {
        let count: usize = self.removed.iter().map(|(_, gone)| gone.len()).sum();
        let freed = self.bytes_before.saturating_sub(self.bytes_after);
        let dry_run = if self.dry_run { "True" } else { "False" };
        format!("PruneReport(checkpoints={count}, bytes_freed={freed}, dry_run={dry_run})")
    }
}

/// Result of verifying checkpoints.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct CheckpointVerification {
    /// Whether everything is intact.
    #[pyo3(get)]
    good: bool,
    /// Number of projects checked.
    #[pyo3(get)]
    projects: u64,
    /// Number of checkpoints checked.
    #[pyo3(get)]
    checkpoints: u64,
    /// Number of contents read.
    #[pyo3(get)]
    objects: u64,
    /// Number of bytes read.
    #[pyo3(get)]
    bytes: u64,
    /// Checkpoints that cannot be restored as a whole: (project, checkpoint, paths that are lost).
    #[pyo3(get)]
    lost: Vec<(PathText, Checkpoint, Vec<PathText>)>,
    /// Other problems.
    #[pyo3(get)]
    problems: Vec<String>,
    shape: Value,
}

impl From<ProjectVerified> for CheckpointVerification {
    fn from(found: ProjectVerified) -> CheckpointVerification {
        let shape = shapes::verified(&found);
        let lost = |one: nono::checkpoints::Lost| {
            (PathText(one.project), Checkpoint::from(one.checkpoint), texts(&one.paths))
        };
        CheckpointVerification {
            shape,
            good: found.is_good(),
            projects: found.projects,
            checkpoints: found.checkpoints,
            objects: found.objects,
            bytes: found.bytes,
            lost: found.lost.into_iter().map(lost).collect(),
            problems: found.problems,
        }
    }
}

#[pymethods]
impl CheckpointVerification {
    /// The data of `nono checkpoints verify --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::plain(py, &self.shape)
    }

    fn __repr__(&self) -> String {
        let good = if self.good { "True" } else { "False" };
        let (checkpoints, lost) = (self.checkpoints, self.lost.len());
        format!("CheckpointVerification(good={good}, checkpoints={checkpoints}, lost={lost})")
    }
}

/// Result of forgetting a path, or with `dry_run` its preview.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct ForgetReport {
    /// Whether nothing was changed.
    #[pyo3(get)]
    dry_run: bool,
    /// The project's folder.
    #[pyo3(get)]
    project: PathText,
    /// The path, absolute.
    #[pyo3(get)]
    path: PathText,
    /// Checkpoints that have it; only in a dry run.
    #[pyo3(get)]
    checkpoints: Vec<Checkpoint>,
    /// Checkpoints, and other snapshots of the project, that had it.
    #[pyo3(get)]
    snapshots: u64,
    /// Contents that were removed.
    #[pyo3(get)]
    contents: u64,
    /// Others that have the same bytes, which stay there: (folder of a session or a project, paths).
    #[pyo3(get)]
    held_by: Vec<(PathText, Vec<PathText>)>,
    /// Sessions that had it, with the number of their snapshots that did.
    #[pyo3(get)]
    sessions: Vec<(String, u64)>,
    /// Sessions that still have it, and why: one that runs, for example.
    #[pyo3(get)]
    held: Vec<(String, String)>,
    shape: Value,
}

impl ForgetReport {
    pub(super) fn done(everywhere: PurgedEverywhere) -> ForgetReport {
        let shape = shapes::purged_everywhere(&everywhere);
        let PurgedEverywhere { checkpoints: purged, sessions, held: still } = everywhere;
        let held = |(by, paths): (PathBuf, Vec<PathBuf>)| (PathText(by), texts(&paths));
        ForgetReport {
            shape,
            dry_run: false,
            project: PathText(purged.project),
            path: PathText(purged.path),
            checkpoints: Vec::new(),
            snapshots: purged.snapshots,
            contents: purged.contents,
            held_by: purged.held_by.into_iter().map(held).collect(),
            sessions,
            held: still,
        }
    }

    pub(super) fn planned(everywhere: HoldingEverywhere) -> ForgetReport {
        let shape = shapes::holding_everywhere(&everywhere);
        let HoldingEverywhere { path, checkpoints: holding, sessions } = everywhere;
        let count = holding.checkpoints.len() as u64;
        ForgetReport {
            shape,
            dry_run: true,
            project: PathText(holding.project),
            path: PathText(path),
            checkpoints: holding.checkpoints.into_iter().map(Checkpoint::from).collect(),
            snapshots: count.saturating_add(holding.others),
            contents: 0,
            held_by: Vec::new(),
            sessions: sessions.into_iter().map(|(entry, snapshots)| (entry.id, snapshots)).collect(),
            held: Vec::new(),
        }
    }
}

#[pymethods]
impl ForgetReport {
    /// The data of `nono checkpoints forget --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::plain(py, &self.shape)
    }

    fn __repr__(&self) -> String {
        let path = text(&self.path.0.to_string_lossy());
        format!("ForgetReport(path={path}, snapshots={}, contents={})", self.snapshots, self.contents)
    }
}

/// Result of an import from another tool.
#[pyclass(frozen, module = "nono_py")]
#[derive(Debug)]
pub(crate) struct ImportReport {
    /// Folders whose checkpoints were found, with how many are new.
    #[pyo3(get)]
    projects: Vec<(PathText, u64)>,
    /// Ids of the imported checkpoints.
    #[pyo3(get)]
    checkpoints: Vec<String>,
    /// Number of checkpoints that were imported before.
    #[pyo3(get)]
    known: u64,
    /// Checkpoints that could not be imported, as (what, why).
    #[pyo3(get)]
    skipped: Vec<(String, String)>,
    shape: Value,
}

impl From<Imported> for ImportReport {
    fn from(imported: Imported) -> ImportReport {
        ImportReport {
            shape: shapes::imported(&imported),
            projects: imported.projects.into_iter().map(|(project, new)| (PathText(project), new)).collect(),
            checkpoints: imported.checkpoints.iter().map(ToString::to_string).collect(),
            known: imported.known,
            skipped: imported.skipped.into_iter().map(|one| (one.what, one.why)).collect(),
        }
    }
}

#[pymethods]
impl ImportReport {
    /// The data of `nono checkpoints import --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain::plain(py, &self.shape)
    }

    fn __repr__(&self) -> String {
        let (new, known, skipped) = (self.checkpoints.len(), self.known, self.skipped.len());
        format!("ImportReport(checkpoints={new}, known={known}, skipped={skipped})")
    }
}
