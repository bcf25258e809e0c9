//! Calls of the library's manager, from checked arguments to Python values.

use std::path::{Path, PathBuf};

use nono::audit::Author;
use nono::checkpoints::project::Why;
use nono::checkpoints::{
    self, CheckpointChoice, CheckpointError as Failed, CheckpointManager, CheckpointTarget, Compared,
    Conflicts, Ensured, Origin, Retention, Root, json,
};
use pyo3::prelude::*;
use serde_json::Value;

use super::args::{Chosen, folder};
use super::{error, host, values};
use crate::error::{Raise, Raised};
use crate::history::{changes, restore};
use crate::plain::Record;

/// Converts an error of the library to an exception.
pub(super) fn told<T>(result: Result<T, Failed>) -> PyResult<T> {
    result.raised(error::failed)
}

/// Options of a restore.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) dir: PathBuf,
    pub(super) target: CheckpointTarget,
    pub(super) chosen: Chosen,
    pub(super) with_git: bool,
    pub(super) conflicts: Conflicts,
}

/// Arguments of taking a checkpoint.
#[derive(Clone, Debug)]
pub(super) struct Taking {
    pub(super) dir: PathBuf,
    pub(super) reason: String,
    pub(super) origin: Origin,
}

/// Whether a folder does not exist and is in no project. (A file that is about to be created in a project is fine.)
fn is_missing(manager: &CheckpointManager, dir: &Path) -> bool {
    let is_known = |root: Root| root.why != Why::Itself;
    dir.symlink_metadata().is_err() && !manager.root_of(dir).is_ok_and(is_known)
}

fn exists(manager: &CheckpointManager, dir: &Path) -> PyResult<()> {
    if is_missing(manager, dir) {
        return Err(Raise::not_found(dir, format!("{} does not exist", dir.display())));
    }
    Ok(())
}

/// Checks that a checkpoint can be taken.
fn ready(manager: &CheckpointManager, dir: &Path) -> PyResult<()> {
    exists(manager, dir)?;
    host::ensure(manager.host())
}

/// Takes a checkpoint on request: a failure is an exception.
pub(super) fn create(manager: &mut CheckpointManager, taking: &Taking) -> PyResult<Record> {
    ready(manager, &taking.dir)?;
    match manager.create(&taking.dir, &taking.reason, &taking.origin) {
        Ensured::Failed { error, .. } => Err(error::failed(&error)),
        done => Ok(values::ensured(done)),
    }
}

/// Takes a checkpoint before a call of an agent: a failure is a result, except for a cancellation.
pub(super) fn ensure(
    manager: &mut CheckpointManager,
    taking: &Taking,
    is_cancelled: &dyn Fn() -> bool,
) -> PyResult<Record> {
    if manager.config().enabled
        && let Err(error) = ready(manager, &taking.dir)
    {
        return Ok(values::refused(&taking.dir, error));
    }
    match manager.ensure_checkpoint(&taking.dir, &taking.reason, &taking.origin) {
        Ensured::Failed { error, .. } if is_cancelled() => Err(error::failed(&error)),
        done => Ok(values::ensured(done)),
    }
}

/// Ends a call of an agent. Outside a project there is nothing to mark.
pub(super) fn left(manager: &mut CheckpointManager, taking: &Taking) -> PyResult<()> {
    match manager.agent_left(&taking.dir, &taking.origin) {
        Err(Failed::TooBroad { .. }) => Ok(()),
        other => told(other),
    }
}

pub(super) fn list(manager: &CheckpointManager, dir: &Path) -> PyResult<Value> {
    exists(manager, dir)?;
    let root = told(manager.root_of(dir))?;
    let all = match manager.list(&root.dir) {
        // The folder exists and has no checkpoints yet.
        Err(Failed::NoProject { .. }) => Vec::new(),
        other => told(other)?,
    };
    // Damage must not prevent a list.
    let here = manager.here(&root.dir).unwrap_or_default();
    Ok(json::list(&root.dir, &all, here.as_ref()))
}

/// The paths of the project that were chosen.
fn chosen(compared: &Compared, chosen: &Chosen, dir: &Path) -> PyResult<Vec<PathBuf>> {
    let find = |typed: &[_], globs| {
        let found = checkpoints::chosen(compared, typed, folder(dir), globs);
        found.raised(error::path)
    };
    let mut paths = find(&chosen.names, false)?;
    paths.extend(find(&chosen.patterns, true)?);
    Ok(paths)
}

pub(super) fn diff(
    manager: &mut CheckpointManager,
    dir: &Path,
    target: &CheckpointTarget,
    wanted: &Chosen,
) -> PyResult<Record> {
    let since = told(manager.find(dir, target))?;
    let mut compared = told(manager.compare(dir, &CheckpointTarget::Id(since.id.clone())))?;
    let found = chosen(&compared, wanted, dir)
        .and_then(|paths| checkpoints::differences(&mut compared, &paths).raised(error::rollback));
    told(compared.close())?;
    Ok(changes::since(&since, &found?))
}

impl Wanted {
    /// Resolves the target to a fixed checkpoint and fixed paths.
    fn settled(&self, manager: &mut CheckpointManager) -> PyResult<(CheckpointTarget, CheckpointChoice)> {
        let target = CheckpointTarget::Id(told(manager.find(&self.dir, &self.target))?.id);
        let mut paths = Vec::new();
        if !self.chosen.is_all() {
            let compared = told(manager.compare(&self.dir, &target))?;
            let found = chosen(&compared, &self.chosen, &self.dir);
            told(compared.close())?;
            paths = found?;
        }
        Ok((target, CheckpointChoice { paths, with_git: self.with_git, conflicts: self.conflicts }))
    }

    pub(super) fn restore(&self, manager: &mut CheckpointManager, dry_run: bool) -> PyResult<Record> {
        let (target, choice) = self.settled(manager)?;
        if dry_run {
            return told(manager.plan(&self.dir, &target, &choice)).map(|plan| restore::project_plan(&plan));
        }
        let author = author(&self.dir, "restore");
        complete(told(checkpoints::restore(manager, &author, &self.dir, &target, &choice))?)
    }
}

pub(super) fn undo(manager: &mut CheckpointManager, dir: &Path, dry_run: bool) -> PyResult<Record> {
    if dry_run {
        return told(manager.plan_undo(dir)).map(|plan| restore::project_plan(&plan));
    }
    let author = author(dir, "undo");
    let mut done = told(checkpoints::undo(manager, &author, dir))?;
    // An undo is reverted by restoring again.
    done.done.undo = None;
    complete(done)
}

/// Author for the audit log: the program's name without its other arguments.
pub(super) fn author(dir: &Path, what: &str) -> Author {
    Author { command: vec!["nono_py.CheckpointManager".into(), what.into()], workdir: dir.to_owned() }
}

/// Result of a restore; an interrupted one is raised as an exception.
pub(super) fn complete(done: checkpoints::ProjectOutcome) -> PyResult<Record> {
    if done.interrupted {
        return Err(error::raise("interrupted", "the next call on this project completes the restore"));
    }
    Ok(restore::outcome(&done))
}

/// Configured limits, overridden by the arguments.
pub(super) fn retention(
    manager: &CheckpointManager,
    retention_days: Option<u32>,
    max_size_mb: Option<u64>,
    max_snapshots: Option<u32>,
    delete_orphans: Option<bool>,
) -> Retention {
    let configured = manager.retention();
    Retention {
        max_snapshots: max_snapshots.unwrap_or(configured.max_snapshots),
        max_bytes: max_size_mb.map_or(configured.max_bytes, |megabytes| megabytes.saturating_mul(1 << 20)),
        retention_days: retention_days.unwrap_or(configured.retention_days),
        delete_orphans: delete_orphans.unwrap_or(configured.delete_orphans),
    }
}
