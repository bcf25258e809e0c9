//! Errors of the snapshot engine, as exceptions. All are `SnapshotError`, except for an invalid glob (`ValueError`) and
//! cancelled work (`Cancelled`).

use std::io;
use std::path::PathBuf;

use nono::snapshot as engine;
use nono::snapshot::exclusion::RulesError;
use nono::snapshot::restore::{JournalError, PreflightError, RestoreError};
use nono::snapshot::session::SessionError;
use nono::snapshot::store::StoreError;
use nono::snapshot::{CaptureError, ObjectError};
use pyo3::prelude::*;

use crate::error::{Raise, SnapshotError, cancelled};

/// Kind of an error of the system.
fn system(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => "not_found",
        io::ErrorKind::PermissionDenied => "permission_denied",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "no_space",
        io::ErrorKind::ReadOnlyFilesystem => "read_only",
        io::ErrorKind::NotADirectory => "not_a_directory",
        _ => "io",
    }
}

/// Kind and path of a `SnapshotError`.
type ErrorDetails = (&'static str, Option<PathBuf>);

pub(crate) fn raise(error: engine::SnapshotError) -> PyErr {
    let message = error.to_string();
    snapshot(error, &message).map_or_else(|other| other, |details| told(message, details))
}

/// Details, or the exception for an error that is not a `SnapshotError`.
fn snapshot(error: engine::SnapshotError, message: &str) -> Result<ErrorDetails, PyErr> {
    use engine::SnapshotError as E;
    Ok(match error {
        E::Root { path, source }
        | E::Preflight(PreflightError::Io { path, source })
        | E::Journal(JournalError::Io { path, source }) => (system(&source), Some(path)),
        E::NoName { path } => ("no_name", Some(path)),
        E::NotCaptured { path, .. } => ("not_captured", Some(path)),
        E::OwnState { path } => ("own_state", Some(path)),
        E::NoRoom { store, .. } => ("no_space", Some(store)),
        E::Restoring { root, .. } => ("restoring", Some(root)),
        E::Lost { .. } => ("lost", None),
        E::NoBaseline { dir } => ("no_baseline", Some(dir)),
        E::HasSnapshots { dir } => ("has_snapshots", Some(dir)),
        E::OtherRoots { dir, .. } => ("other_paths", Some(dir)),
        E::NoSession { dir } => ("no_session", Some(dir)),
        E::NoStore { dir } => ("no_store", Some(dir)),
        E::Needed { .. } => ("needed", None),
        E::NoFile { path } => ("not_a_file", Some(path)),
        E::Twice { path } => ("twice", Some(path)),
        E::NotTracked { path } => ("not_tracked", Some(path)),
        E::Capture(error) => capture(error, message)?,
        E::Rules(error) => rules(error, message)?,
        E::Session(error) => session(error),
        E::Store(error) => store(error),
        E::Object(error) => object(error),
        E::Restore(error) => restore(error),
        E::Preflight(PreflightError::ReadOnly { path }) => ("read_only", Some(path)),
        E::Preflight(PreflightError::NoSpace { path, .. }) => ("no_space", Some(path)),
        E::Journal(JournalError::Damaged { path, .. }) => ("damaged", Some(path)),
        E::Journal(JournalError::Unfinished { path }) => ("unfinished_restore", Some(path)),
        E::FrozenRules { .. } => ("damaged", None),
    })
}

/// Exception for an error of reading a manifest's objects.
pub(crate) fn raise_object(error: ObjectError) -> PyErr {
    told(error.to_string(), object(error))
}

fn told(message: String, (kind, path): ErrorDetails) -> PyErr {
    Raise::new(kind, message).maybe_about(path).as_a::<SnapshotError>()
}

fn capture(error: CaptureError, message: &str) -> Result<ErrorDetails, PyErr> {
    Ok(match error {
        CaptureError::TooManyFiles { .. } => ("too_many_files", None),
        CaptureError::TooManyBytes { .. } => ("too_large", None),
        CaptureError::NoRoom { examples, .. } => ("over_budget", examples.into_iter().next()),
        CaptureError::Cancelled => return Err(cancelled()),
        CaptureError::Nothing { .. } => ("nothing_captured", None),
        CaptureError::Rules(error) => rules(error, message)?,
        CaptureError::Store(error) => store(error),
        CaptureError::Record(_) => ("damaged", None),
        CaptureError::StaysOpen { path, .. } => ("stays_open", Some(path)),
        CaptureError::Io { path, source } => (system(&source), Some(path)),
    })
}

fn rules(error: RulesError, message: &str) -> Result<ErrorDetails, PyErr> {
    match error {
        RulesError::Glob { .. } => Err(Raise::new("invalid_glob", message).value_error()),
        RulesError::Root { path, source } => Ok((system(&source), Some(path))),
    }
}

fn session(error: SessionError) -> ErrorDetails {
    match error {
        SessionError::Io { path, source } => (system(&source), Some(path)),
        SessionError::Record { path, .. }
        | SessionError::Manifest { path, .. }
        | SessionError::Lost { path, .. } => ("damaged", Some(path)),
        SessionError::NoSnapshot { dir, .. } => ("no_snapshot", Some(dir)),
        SessionError::Thinned { .. } => ("thinned", None),
        SessionError::StaysOpen { path, .. } => ("stays_open", Some(path)),
        SessionError::Metadata { path, .. } => ("bad_metadata", Some(path)),
    }
}

fn store(error: StoreError) -> ErrorDetails {
    match error {
        StoreError::Io { path, source, .. } => (system(&source), Some(path)),
        StoreError::Source(source) | StoreError::Target(source) => (system(&source), None),
        StoreError::SourceChanged => ("changed", None),
        StoreError::Missing { dir, .. } => ("missing_content", Some(dir)),
        StoreError::Damaged { file, .. } => ("damaged", Some(file)),
        StoreError::Version { path } => ("unknown_version", Some(path)),
        StoreError::OverBudget { dir, .. } => ("over_budget", Some(dir)),
        StoreError::TooLarge { dir, .. } => ("too_large", Some(dir)),
        StoreError::Busy { path } => ("busy", Some(path)),
        StoreError::Incomplete { dir } => ("io", Some(dir)),
    }
}

fn object(error: ObjectError) -> ErrorDetails {
    match error {
        ObjectError::Missing { .. } => ("missing_content", None),
        ObjectError::Damaged { .. } => ("damaged", None),
        ObjectError::Io { path, source } => (system(&source), Some(path)),
    }
}

fn restore(error: RestoreError) -> ErrorDetails {
    match error {
        RestoreError::Io { source, .. }
        | RestoreError::Owner { source }
        | RestoreError::Xattr { source, .. } => (system(&source), None),
        RestoreError::Object(error) => object(error),
        RestoreError::Verify | RestoreError::Beside { .. } => ("changed", None),
    }
}
