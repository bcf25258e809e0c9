//! Errors of checkpoints, as exceptions.

use std::fmt::Display;
use std::io;
use std::path::Path;

use nono::checkpoints::import::ImportError;
use nono::checkpoints::{CheckpointError as Failed, PathError, SettingsError};
use nono::hooks::install::InstallError;
use nono::rollback::RollbackError;
use nono::snapshot::store::StoreError;
use nono::snapshot::{CaptureError, SnapshotError};
use nono::state_dir::StateDirError;
use pyo3::prelude::*;

use crate::error::{CheckpointError, Raise, cancelled};

pub(super) fn raise(kind: &'static str, message: impl ToString) -> PyErr {
    Raise::new(kind, message).as_a::<CheckpointError>()
}

fn about(kind: &'static str, message: impl ToString, path: &Path) -> PyErr {
    Raise::new(kind, message).about(path).as_a::<CheckpointError>()
}

fn with_hint(error: &impl Display, hint: Option<impl Display>) -> String {
    hint.map_or_else(|| error.to_string(), |hint| format!("{error} ({hint})"))
}

/// Error of the system, as Python's own exception where there is one.
fn system(message: impl ToString, path: &Path, source: &io::Error) -> PyErr {
    match source.kind() {
        io::ErrorKind::NotFound => Raise::new("not_found", message).about(path).os_error(source),
        io::ErrorKind::PermissionDenied => Raise::new("permission", message).about(path).os_error(source),
        _ => about("io", message, path),
    }
}

pub(crate) fn failed(error: &Failed) -> PyErr {
    match error {
        Failed::TooBroad { path, .. } => about("too_broad", error, path),
        Failed::Io { path, source } => system(error, path, source),
        Failed::Damaged { path, .. } => about("damaged", error, path),
        Failed::Moved { project } => about("moved", error, project),
        // A path that does not exist cannot have checkpoints.
        Failed::NoProject { path } if path.symlink_metadata().is_err() => Raise::not_found(path, error),
        Failed::NoProject { path } => about("no_project", error, path),
        Failed::NotFound { project, .. } => about("no_such_checkpoint", error, project),
        Failed::Ambiguous { .. } => raise("ambiguous", error),
        Failed::OtherProject { project, .. } => about("other_project", error, project),
        Failed::NoTurn { project, .. } => about("no_such_turn", error, project),
        Failed::TurnGone { project, .. } => about("turn_gone", error, project),
        Failed::Outside { path, .. } | Failed::IsProject { project: path } => {
            Raise::new("outside", error).about(path).value_error()
        }
        Failed::PartOfRepository { path, .. } => {
            Raise::new("part_of_repository", error).about(path).value_error()
        }
        Failed::TooManyFiles { project, .. } => about("too_many_files", error, project),
        Failed::BadName { .. } => Raise::new("bad_name", error).value_error(),
        Failed::NothingToUndo { project } => about("nothing_to_undo", error, project),
        Failed::Restores(_) => raise("nothing_to_undo", error),
        Failed::NotAllowed { path } => about("not_allowed", error, path),
        Failed::Snapshot(error) => engine(error),
    }
}

/// Exception for an error of the engine; errors that callers can handle have a kind of their own.
fn engine(error: &SnapshotError) -> PyErr {
    match error {
        SnapshotError::Root { path, source } => system(error, path, source),
        SnapshotError::Capture(CaptureError::Cancelled) => cancelled(),
        SnapshotError::Capture(CaptureError::NoRoom { .. }) => raise("no_room", error),
        SnapshotError::Capture(CaptureError::Store(StoreError::OverBudget { dir, .. }))
        | SnapshotError::Store(StoreError::OverBudget { dir, .. }) => about("no_room", error, dir),
        SnapshotError::NotTracked { path } => Raise::new("outside", error).about(path).value_error(),
        SnapshotError::NotCaptured { path, .. } => about("not_captured", error, path),
        SnapshotError::Store(StoreError::Damaged { file, .. }) => about("damaged", error, file),
        SnapshotError::Store(StoreError::Busy { path }) => about("busy", error, path),
        SnapshotError::Preflight(_) => raise("cannot_restore", error),
        _ => raise("snapshot", error),
    }
}

pub(super) fn path(error: &PathError) -> PyErr {
    match error {
        PathError::NoSuchPath { path } => Raise::not_found(path, error),
        PathError::Pattern { .. } => Raise::new("pattern", error).value_error(),
        PathError::Checkpoint(error) => failed(error),
        PathError::Other(error) => rollback(error),
    }
}

/// Exception for an error of a text diff.
pub(super) fn rollback(error: &RollbackError) -> PyErr {
    match error {
        RollbackError::Snapshot(error) => engine(error),
        RollbackError::Io { path, source } => system(error, path, source),
        RollbackError::Damaged { path, .. } => about("damaged", error, path),
        _ => raise("snapshot", error),
    }
}

pub(super) fn settings(error: &SettingsError) -> PyErr {
    match error {
        SettingsError::Io { path, source } => system(error, path, source),
        SettingsError::Wrong { path, .. } => Raise::new("settings", error).about(path).value_error(),
    }
}

pub(super) fn state_dir(error: &StateDirError) -> PyErr {
    let words = with_hint(error, error.hint());
    match error {
        StateDirError::Untrusted { path, .. } => about("untrusted_state_dir", words, path),
        StateDirError::Unusable { path, source } => system(words, path, source),
    }
}

pub(super) fn import(error: &ImportError) -> PyErr {
    match error {
        ImportError::Io { path, source } => system(error, path, source),
        ImportError::Nothing { path } => about("nothing_to_import", error, path),
    }
}

pub(super) fn install(error: &InstallError) -> PyErr {
    let words = with_hint(error, error.hint());
    match error {
        InstallError::Malformed { path, .. }
        | InstallError::Yaml { path, .. }
        | InstallError::Section { path, .. }
        | InstallError::NotText { path } => about("malformed", words, path),
        InstallError::Dangling { path } => about("dangling", words, path),
        InstallError::LeadsOut { path, .. } => about("leads_out", words, path),
        InstallError::NotAFile { path } | InstallError::TooLarge { path, .. } => {
            about("wrong_kind", words, path)
        }
        InstallError::Name { path } => Raise::new("bad_name", words).about(path).value_error(),
        InstallError::NoProject { .. } => Raise::new("no_project_hooks", words).value_error(),
        InstallError::OnlyProject { .. } => Raise::new("only_project_hooks", words).value_error(),
        InstallError::ByHand { .. } => Raise::new("hooks_by_hand", words).value_error(),
        InstallError::Changed { path } => about("changed", words, path),
        InstallError::Foreign { path } => about("foreign", words, path),
        InstallError::Busy { path } => about("busy", words, path),
        InstallError::Io { path, source } => system(words, path, source),
        InstallError::Record { path, .. } => about("damaged", words, path),
        InstallError::State(error) => state_dir(error),
    }
}
