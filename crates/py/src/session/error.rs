//! Errors of sessions, as exceptions.

use std::path::Path;

use nono::control::ControlError;
use nono::program::ProgramError;
use nono::project_profile::ProjectProfileError;
use nono::rollback::RollbackError;
use nono::session::{ExecProblem, HostError, SessionError as Refused, failed_exec};
use nono::{PolicyError as Policy, snapshot};
use pyo3::PyErr;

use crate::error::{Cancelled, PolicyError, Raise, SandboxError, SessionError, SnapshotError};

const NO_ENTRY: i32 = 2;
const NO_ACCESS: i32 = 13;

fn missing(raise: Raise) -> PyErr {
    raise.os_error(&std::io::Error::from_raw_os_error(NO_ENTRY))
}

fn closed(raise: Raise) -> PyErr {
    raise.os_error(&std::io::Error::from_raw_os_error(NO_ACCESS))
}

/// Exception for an unusable profile of a project.
pub(super) fn project_profile(error: &ProjectProfileError) -> PyErr {
    let message = format!("{error}; no_project_profile=True runs without it");
    Raise::new("project_profile", message).as_a::<PolicyError>()
}

/// Exception for a command that was not run.
pub(super) fn session(error: &Refused) -> PyErr {
    let raise = |kind| Raise::new(kind, error);
    let failed = |kind| raise(kind).as_a::<SessionError>();
    match error {
        Refused::Program(error) => program(error),
        Refused::Profile(_) => raise("profile").value_error(),
        Refused::Policy(error) => policy(error),
        Refused::Refused(_) => raise("refused").as_a::<SandboxError>(),
        Refused::Check(_) => raise("does_not_hold").as_a::<SandboxError>(),
        Refused::State(_) => failed("state"),
        Refused::Folder { base, source } => raise("session_folder").about(base).os_error(source),
        Refused::Run(error) => match failed_exec(error) {
            Some((path, ExecProblem::Missing)) => missing(raise("program_not_found").about(path)),
            Some((path, ExecProblem::Refused)) => closed(raise("not_executable").about(path)),
            None => failed("launch"),
        },
        Refused::Rollback(error) => rollback(error),
        Refused::Checkpoints(_) => failed("checkpoints"),
        Refused::Log(_) => failed("audit"),
        Refused::Network(_) => failed("network"),
        Refused::NotTracked { flag } => {
            let message = format!("{} needs rollback=True", keyword(flag));
            Raise::new("not_tracked", message).value_error()
        }
        Refused::DestWritable { dest } | Refused::DestTaken { dest, .. } => {
            raise("rollback_dest").about(dest).value_error()
        }
        Refused::NeedsSupervisor { .. }
        | Refused::CheckpointsNeedSupervisor { .. }
        | Refused::AskNeedsSupervisor { .. }
        | Refused::FilterNeedsSupervisor { .. } => failed("needs_supervisor"),
        Refused::AskNeedsTerminal => failed("needs_terminal"),
        Refused::Hold(_) | Refused::Saved(_) => failed("agent_files"),
        Refused::Interrupted { .. } | Refused::Cancelled => raise("cancelled").as_a::<Cancelled>(),
    }
}

/// Keyword for a flag of `nono run`.
pub(super) fn keyword(flag: &str) -> String {
    flag.trim_start_matches('-').replace('-', "_")
}

fn program(error: &ProgramError) -> PyErr {
    let raise = |kind| Raise::new(kind, error);
    match error {
        ProgramError::NotFound(path) | ProgramError::NoSuchFile(path) => {
            missing(raise("program_not_found").about(path))
        }
        ProgramError::IsDirectory(path) | ProgramError::NotExecutable(path) => {
            closed(raise("not_executable").about(path))
        }
        ProgramError::Empty => raise("empty_command").value_error(),
    }
}

fn policy(error: &Policy) -> PyErr {
    let raise = |kind, path: &Path| Raise::new(kind, error).about(path);
    match error {
        Policy::PathNotFound { path, .. } | Policy::DanglingLink { path, .. } => {
            missing(raise("not_found", path))
        }
        Policy::Resolve { path, source } | Policy::List { dir: path, source, .. } => {
            raise("resolve", path).os_error(source)
        }
        Policy::ExpectedDirectory { path, .. } => raise("expected_directory", path).value_error(),
        Policy::ExpectedFile { path, .. } => raise("expected_file", path).value_error(),
        Policy::IsSocket { path }
        | Policy::IsDevice { path }
        | Policy::IsFifo { path }
        | Policy::NotASocket { path } => raise("wrong_kind", path).value_error(),
        Policy::LeadsOut { path, .. } => raise("leads_out", path).as_a::<PolicyError>(),
        Policy::Protected { path, .. } => raise("protected", path).as_a::<PolicyError>(),
        Policy::NonoOwned { path, .. } => raise("nono_owned", path).as_a::<PolicyError>(),
        Policy::AgentSettings { path, .. } => raise("agent_settings", path).as_a::<PolicyError>(),
        Policy::GrantDenied { path, .. } => raise("grant_denied", path).as_a::<PolicyError>(),
        Policy::DenyAbsent { path, .. } => raise("deny_absent", path).as_a::<PolicyError>(),
        Policy::BypassWithoutGrant { path } | Policy::NothingToBypass { path } => {
            raise("bypass", path).as_a::<PolicyError>()
        }
        Policy::TooBroadForProject { path, .. }
        | Policy::NotAsAgreed { path, .. }
        | Policy::BypassForProject { path, .. } => raise("project_profile", path).as_a::<PolicyError>(),
        Policy::NeverVariable { .. } | Policy::ReservedVariable { .. } | Policy::BadVariable { .. } => {
            Raise::new("variable", error).value_error()
        }
        Policy::NoHome { .. }
        | Policy::UnknownVariable { .. }
        | Policy::UnknownGroup { .. }
        | Policy::ProtectedGroupExcluded { .. }
        | Policy::NetworkContradiction { .. }
        | Policy::HostContradiction { .. }
        | Policy::BadHost { .. } => Raise::new("policy", error).as_a::<PolicyError>(),
    }
}

pub(super) fn host(error: &HostError) -> PyErr {
    match error {
        HostError::NoHome | HostError::RelativeHome { .. } => {
            Raise::new("no_home", error).as_a::<SessionError>()
        }
        HostError::Workdir { dir, source } => Raise::new("workdir", error).about(dir).os_error(source),
    }
}

pub(super) fn rollback(error: &RollbackError) -> PyErr {
    let raise = |kind| Raise::new(kind, error);
    let failed = |kind| raise(kind).as_a::<SessionError>();
    match error {
        RollbackError::NotFound { .. } | RollbackError::NoSessions | RollbackError::NoSessionHere { .. } => {
            raise("no_such_session").as_a::<SessionError>()
        }
        RollbackError::Ambiguous { .. } => raise("ambiguous").value_error(),
        RollbackError::Live { root, .. } => raise("live").about(root).as_a::<SessionError>(),
        RollbackError::Restoring { root, .. } => raise("restoring").about(root).as_a::<SessionError>(),
        RollbackError::NothingToUndo { .. }
        | RollbackError::NoRestores
        | RollbackError::NoRestoresHere { .. }
        | RollbackError::NoneHere { .. }
        | RollbackError::AllUndone { .. } => failed("nothing_to_undo"),
        RollbackError::NoSuchRestore { .. } => failed("no_such_restore"),
        RollbackError::UndoneAlready { .. } => failed("undone_already"),
        RollbackError::NoSuchPath { path, .. } => missing(raise("no_such_path").about(path)),
        RollbackError::PartOfRepository { path, .. } => raise("part_of_repository").about(path).value_error(),
        RollbackError::Pattern { .. } => raise("pattern").value_error(),
        RollbackError::NoSnapshot { .. } => raise("no_such_snapshot").value_error(),
        RollbackError::Io { path, source } => raise("io").about(path).os_error(source),
        RollbackError::Damaged { path, .. } => raise("damaged").about(path).as_a::<SessionError>(),
        RollbackError::NoSession { path, .. } => raise("no_session").about(path).value_error(),
        RollbackError::Settings { path, .. } | RollbackError::Format { path, .. } => {
            raise("settings").about(path).value_error()
        }
        RollbackError::Snapshot(snapshot::SnapshotError::Capture(snapshot::CaptureError::Cancelled)) => {
            raise("cancelled").as_a::<Cancelled>()
        }
        RollbackError::NoRoom { .. } => raise("no_room").as_a::<SnapshotError>(),
        RollbackError::Snapshot(_) => raise("snapshot").as_a::<SnapshotError>(),
    }
}

pub(super) fn control(error: &ControlError) -> PyErr {
    let raise = |kind| Raise::new(kind, error);
    match error {
        ControlError::NoSessions | ControlError::NotFound { .. } => {
            raise("no_such_session").as_a::<SessionError>()
        }
        ControlError::Ambiguous { .. } => raise("ambiguous").value_error(),
        ControlError::Io { path, source } => raise("io").about(path).os_error(source),
        ControlError::Damaged { path, .. } => raise("damaged").about(path).as_a::<SessionError>(),
        ControlError::NoAnswer { .. } | ControlError::WrongAnswer { .. } => {
            raise("no_answer").as_a::<SessionError>()
        }
    }
}
