//! Requests of the channels to the supervisor: the service that carries them out, its answers and its errors.

use std::path::{Path, PathBuf};

use nono_audit::WriteError;
use nono_checkpoint::supervisor_request::RemoteAction;
use nono_policy::AccessMode;
use serde_json::Value;
use thiserror::Error;

use crate::approval::{ApprovalError, Asker};
use crate::error::ServiceError;
use crate::report::{MediationReport, RefusalReason};

/// Result of a request on the request socket.
#[derive(Debug)]
pub enum RequestReply {
    /// Opened as requested.
    Granted {
        fd: std::os::fd::OwnedFd,
        by: String,
    },
    /// Allowed by the policy: the program can open it itself.
    AlreadyOpen,
    Denied {
        because: RefusalReason,
    },
}

/// Reason a request on the request socket was not carried out; its text is the answer.
#[derive(Debug, Error)]
pub enum RequestFailure {
    #[error("this session was started without an approver")]
    NoApprover,
    #[error("this session keeps no checkpoints")]
    NoCheckpoints,
    #[error("{}", NO_HISTORIES)]
    NoHistories,
    #[error("this session has no snapshots: it was started without --rollback")]
    NoSnapshots,
    #[error("this session was started without --open-url")]
    NoUrls,
    #[error("{0}")]
    Url(&'static str),
    #[error("too many questions")]
    TooMany,
    #[error("this is not a restore of a checkpoint")]
    NotRestore,
    #[error(transparent)]
    NoAnswer(#[from] ApprovalError),
    #[error("denied by {by}")]
    Denied { by: String },
    #[error("cannot write the audit log: {0}")]
    Unrecorded(#[from] WriteError),
    #[error(transparent)]
    Service(#[from] ServiceError),
}

/// Error of a session without checkpoints: not a failure, but how it was started.
pub const NO_HISTORIES: &str =
    "this session has no checkpoints: they are not enabled, and it was started without --checkpoints";

/// Whether the client still waits for the answer: a request that was given up need not be decided any more.
pub type StillWanted<'a> = dyn Fn() -> bool + Sync + 'a;

/// Decisions that the channels need from the supervisor. Every call may take as long as a person needs for an answer.
/// What a service does not implement is denied.
pub trait RequestService: Send + Sync {
    /// Opens `path` for `access`, as if the program had tried. `path` is absolute.
    fn capability(
        &self,
        _asker: &Asker,
        _path: PathBuf,
        _access: AccessMode,
        _reason: Option<String>,
        _wanted: &StillWanted<'_>,
    ) -> RequestReply {
        let why = RequestFailure::NoApprover.to_string();
        RequestReply::Denied { because: RefusalReason::NoAnswer { why } }
    }

    /// Takes a snapshot now; returns its number, or why there is none.
    fn checkpoint(&self, _asker: &Asker, _reason: &str) -> Result<u64, RequestFailure> {
        Err(RequestFailure::NoApprover)
    }

    /// Restores `paths` (all, if empty) to a snapshot, once the user agreed; returns a summary.
    fn restore(
        &self,
        _asker: &Asker,
        _snapshot: u64,
        _paths: Vec<PathBuf>,
        _wanted: &StillWanted<'_>,
    ) -> Result<String, RequestFailure> {
        Err(RequestFailure::NoApprover)
    }

    /// Carries out an action on the checkpoints of a project; a restore only once the user agreed.
    fn history(
        &self,
        _asker: &Asker,
        _action: RemoteAction,
        _wanted: &StillWanted<'_>,
    ) -> Result<Value, RequestFailure> {
        Err(RequestFailure::NoCheckpoints)
    }

    /// Opens an address in the user's browser, once they agreed; returns the approver, or why it was not opened.
    fn open_url(
        &self,
        _asker: &Asker,
        _url: &str,
        _wanted: &StillWanted<'_>,
    ) -> Result<String, RequestFailure> {
        Err(RequestFailure::NoApprover)
    }

    /// Approver that denied this in the session, if one did. It does not ask the user.
    fn refusal(&self, _path: &Path, _access: AccessMode) -> Option<String> {
        None
    }

    fn report(&self) -> MediationReport {
        MediationReport::default()
    }

    /// Number of requests that wait for an answer now.
    fn waiting(&self) -> u64 {
        0
    }
}

/// Service of a run that has no approver: it grants nothing while it goes on.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRequests;

impl RequestService for NoRequests {}
