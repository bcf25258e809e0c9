//! Decisions for a run that has no approver: it grants nothing while it goes on.

use std::path::PathBuf;

use nono_checkpoint::supervisor_request::RemoteAction;
use nono_policy::AccessMode;

use crate::approval::Asker;
use crate::report::{MediationReport, RefusalReason, RequestReply, RequestService, StillWanted};

/// Denies every request.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRequests;

const WHY: &str = "this session was started without an approver";

impl RequestService for NoRequests {
    fn capability(
        &self,
        _asker: &Asker,
        _path: PathBuf,
        _access: AccessMode,
        _reason: Option<String>,
        _wanted: &StillWanted<'_>,
    ) -> RequestReply {
        RequestReply::Denied { because: RefusalReason::NoAnswer { why: WHY.to_owned() } }
    }

    fn checkpoint(&self, _asker: &Asker, _reason: &str) -> Result<u64, String> {
        Err(WHY.to_owned())
    }

    fn restore(
        &self,
        _asker: &Asker,
        _snapshot: u64,
        _paths: Vec<PathBuf>,
        _wanted: &StillWanted<'_>,
    ) -> Result<String, String> {
        Err(WHY.to_owned())
    }

    fn history(
        &self,
        _asker: &Asker,
        _action: RemoteAction,
        _wanted: &StillWanted<'_>,
    ) -> Result<serde_json::Value, String> {
        Err("this session keeps no checkpoints".to_owned())
    }

    fn open_url(&self, _asker: &Asker, _url: &str, _wanted: &StillWanted<'_>) -> Result<String, String> {
        Err(WHY.to_owned())
    }

    fn report(&self) -> MediationReport {
        MediationReport::default()
    }

    fn waiting(&self) -> u64 {
        0
    }
}
