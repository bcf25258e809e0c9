//! Decisions for a run that has no approver: it grants nothing while it goes on.

use std::path::PathBuf;

use nono_checkpoint::supervisor_request::RemoteAction;
use nono_policy::AccessMode;

use crate::approval::Asker;
use crate::report::{MediationReport, RefusalReason};
use crate::request_service::{RequestFailure, RequestReply, RequestService, StillWanted};

/// Denies every request.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRequests;

impl RequestService for NoRequests {
    fn capability(
        &self,
        _asker: &Asker,
        _path: PathBuf,
        _access: AccessMode,
        _reason: Option<String>,
        _wanted: &StillWanted<'_>,
    ) -> RequestReply {
        RequestReply::Denied {
            because: RefusalReason::NoAnswer { why: RequestFailure::NoApprover.to_string() },
        }
    }

    fn checkpoint(&self, _asker: &Asker, _reason: &str) -> Result<u64, RequestFailure> {
        Err(RequestFailure::NoApprover)
    }

    fn restore(
        &self,
        _asker: &Asker,
        _snapshot: u64,
        _paths: Vec<PathBuf>,
        _wanted: &StillWanted<'_>,
    ) -> Result<String, RequestFailure> {
        Err(RequestFailure::NoApprover)
    }

    fn history(
        &self,
        _asker: &Asker,
        _action: RemoteAction,
        _wanted: &StillWanted<'_>,
    ) -> Result<serde_json::Value, RequestFailure> {
        Err(RequestFailure::NoCheckpoints)
    }

    fn open_url(
        &self,
        _asker: &Asker,
        _url: &str,
        _wanted: &StillWanted<'_>,
    ) -> Result<String, RequestFailure> {
        Err(RequestFailure::NoApprover)
    }

    fn report(&self) -> MediationReport {
        MediationReport::default()
    }

    fn waiting(&self) -> u64 {
        0
    }
}
