//! Errors of capabilities, as exceptions.

use std::path::Path;

use nono::{ApplyError, CapabilityError, PolicyError, Refusal, StateError};
use pyo3::prelude::*;

use crate::error::{Raise, SandboxError};

fn with_hint(message: String, hint: Option<String>) -> String {
    match hint {
        Some(hint) => format!("{message}; {hint}"),
        None => message,
    }
}

pub(crate) fn capability_error(error: &CapabilityError) -> PyErr {
    let message = with_hint(error.to_string(), error.hint());
    let value = |kind, path: &Path| Raise::new(kind, &message).about(path).value_error();
    match error {
        CapabilityError::PathNotFound { path } => Raise::not_found(path, &message),
        CapabilityError::ExpectedDirectory { path } => value("not_a_directory", path),
        CapabilityError::ExpectedFile { path } => value("is_a_directory", path),
        CapabilityError::Elsewhere { path, .. } => value("leads_elsewhere", path),
        CapabilityError::Resolve { path, source } => {
            Raise::new("unresolvable", &message).about(path).os_error(source)
        }
    }
}

pub(super) fn state_error(error: &StateError) -> PyErr {
    match error {
        StateError::Capability(error) => capability_error(error),
        StateError::Json { .. } => Raise::new("bad_json", error).value_error(),
        StateError::UnknownAccess { path, .. } => {
            let message = with_hint(error.to_string(), error.hint());
            Raise::new("unknown_access", message).about(path).value_error()
        }
    }
}

/// Exception for a set that contradicts itself: of a policy's errors, only a grant inside a denied path is possible
/// here.
pub(crate) fn policy_error(error: &PolicyError) -> PyErr {
    let path = if let PolicyError::GrantDenied { path, .. } = error { Some(path) } else { None };
    Raise::new("contradiction", error).maybe_about(path).as_a::<crate::error::PolicyError>()
}

pub(super) fn apply_error(error: &ApplyError) -> PyErr {
    match error {
        ApplyError::Policy(error) => policy_error(error),
        ApplyError::Refused(refusal) => refusal_error(refusal),
    }
}

fn refusal_error(refusal: &Refusal) -> PyErr {
    let (kind, path): (_, Option<&Path>) = match refusal {
        Refusal::UnsupportedSystem => ("unsupported_system", None),
        Refusal::NoLandlock { .. } => ("no_landlock", None),
        Refusal::LandlockTooOld { .. } => ("landlock_too_old", None),
        Refusal::CannotMask { path, .. } => ("cannot_mask", Some(path)),
        Refusal::CannotHold { path } => ("cannot_hold", Some(path)),
        Refusal::CannotGive { path, .. } => ("cannot_give", Some(path)),
        Refusal::CannotLimitProcesses { .. } => ("cannot_limit_processes", None),
        Refusal::CannotOpenSocket { .. } => ("cannot_open_socket", None),
        Refusal::CannotMediate { .. } => ("cannot_mediate", None),
        Refusal::CannotFilter { .. } => ("cannot_filter", None),
        Refusal::Threads { .. } => ("threads", None),
        Refusal::Rule { path, .. } => ("rule", Some(path)),
        Refusal::Changed { path } => ("changed", Some(path)),
        Refusal::Kernel { .. } => ("kernel", None),
    };
    // Hints are written for the command line; only the one about threads applies to programs.
    let message = match refusal {
        Refusal::Threads { .. } => {
            format!("{refusal}; use sandboxed_exec(), or call apply() before other threads start")
        }
        other => other.to_string(),
    };
    Raise::new(kind, message).maybe_about(path).as_a::<SandboxError>()
}
