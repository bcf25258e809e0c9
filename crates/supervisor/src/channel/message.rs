//! Messages of the two channels. Field names are stable; paths are lossless (`nono_policy::path_serde`).

use std::path::{Path, PathBuf};

pub use nono_checkpoint::supervisor_request::Path as LosslessPath;
use nono_checkpoint::supervisor_request::RemoteAction;
use nono_policy::AccessMode;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::frame::Message;
use super::rate_limit::ChannelCounts;
use crate::report::MediationReport;

/// Request from inside the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ChannelRequest {
    CapabilityRequest {
        id: String,
        #[serde(with = "nono_policy::path_serde")]
        path: PathBuf,
        access: AccessMode,
        #[serde(default)]
        reason: Option<String>,
    },
    CheckpointRequest {
        id: String,
        #[serde(default)]
        reason: Option<String>,
    },
    RestoreRequest {
        id: String,
        snapshot: u64,
        /// Paths to restore; empty means all.
        #[serde(default)]
        paths: Vec<LosslessPath>,
    },
    UrlRequest {
        id: String,
        url: String,
    },
    /// Request about the checkpoints of a project.
    HistoryRequest {
        id: String,
        action: Box<RemoteAction>,
    },
    /// Whether this access was denied by an answer in the session. It does not ask the user.
    RefusalRequest {
        id: String,
        #[serde(with = "nono_policy::path_serde")]
        path: PathBuf,
        access: AccessMode,
    },
}

/// Request from outside the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ControlRequest {
    Status { id: String },
    Stop { id: String },
}

/// An answer on either channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ChannelResponse {
    CapabilityResponse {
        id: String,
        granted: bool,
        /// Allowed by the policy: no descriptor is sent, since the program can open it itself.
        already_open: bool,
        /// Index of the descriptor among those sent along: always the first, or `None` if none was sent.
        proxy_fd: Option<u32>,
        by: Option<String>,
        reason: Option<String>,
    },
    CheckpointResponse {
        id: String,
        snapshot: Option<u64>,
        reason: Option<String>,
    },
    RestoreResponse {
        id: String,
        restored: bool,
        outcome: String,
    },
    UrlResponse {
        id: String,
        opened: bool,
        by: Option<String>,
        reason: Option<String>,
    },
    HistoryResponse {
        id: String,
        /// Answer to the action, if there is no error.
        answer: Value,
        error: Option<String>,
    },
    RefusalResponse {
        id: String,
        /// Approver that denied it.
        by: Option<String>,
    },
    StatusResponse {
        id: String,
        status: Box<RunningStatus>,
    },
    StopResponse {
        id: String,
        stopping: bool,
    },
    Error {
        /// Id of the request, where it could be read.
        id: Option<String>,
        error: RequestProblem,
        message: String,
    },
}

/// Reason a request was rejected before it was considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestProblem {
    Malformed,
    /// The client is another user, or on the wrong side of the sandbox.
    Stranger,
    TooManyConnections,
    TooFast,
    Replayed,
    /// The session has reached its maximum number of requests.
    UsedUp,
    TooSlow,
    Ending,
}

/// Facts that do not change while a session runs; also the `session.json` of its directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionInfo {
    pub id: String,
    pub name: Option<String>,
    /// Process id of the supervisor.
    pub pid: u32,
    pub started: String,
    pub command: Vec<String>,
    #[serde(with = "nono_policy::path_serde")]
    pub workdir: PathBuf,
    pub strategy: String,
    /// Number of grants it began with.
    pub grants: usize,
    /// Session id for `nono rollback`, if the run is tracked.
    pub rollback: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningStatus {
    #[serde(flatten)]
    pub session: SessionInfo,
    /// Requests that wait for an answer.
    pub questions_waiting: u64,
    /// Grants made while it ran.
    pub expansions: u64,
    /// Report of the mediator, cut to what a message holds.
    pub mediation: MediationReport,
    pub requests: ChannelCounts,
}

#[derive(Debug, Error)]
pub(super) enum RequestError {
    #[error("{0}")]
    Fields(#[from] serde_json::Error),
    #[error("an id must have between 1 and {ID} bytes")]
    Id,
    #[error("a reason must have at most {REASON} bytes")]
    Reason,
    #[error("a request must name at most {TARGETS} paths")]
    Targets,
    #[error("a path must be absolute, with at most {PATH} bytes and no NUL")]
    Path,
}

const ID: usize = 128;
const REASON: usize = 1024;
const PATH: usize = 4095;
const TARGETS: usize = 512;

/// Common part of all requests.
pub(super) trait CheckedRequest: DeserializeOwned {
    /// Id chosen by the client; each can be used once.
    fn id(&self) -> &str;

    /// Checks everything the types alone do not guarantee.
    fn check(&self) -> Result<(), RequestError>;

    fn read(message: Message) -> Result<Self, RequestError> {
        let request: Self = serde_json::from_value(Value::Object(message))?;
        if request.id().is_empty() || request.id().len() > ID {
            return Err(RequestError::Id);
        }
        request.check()?;
        Ok(request)
    }
}

impl CheckedRequest for ChannelRequest {
    fn id(&self) -> &str {
        match self {
            ChannelRequest::CapabilityRequest { id, .. }
            | ChannelRequest::CheckpointRequest { id, .. }
            | ChannelRequest::RestoreRequest { id, .. }
            | ChannelRequest::UrlRequest { id, .. }
            | ChannelRequest::HistoryRequest { id, .. }
            | ChannelRequest::RefusalRequest { id, .. } => id,
        }
    }

    fn check(&self) -> Result<(), RequestError> {
        match self {
            ChannelRequest::CapabilityRequest { path, reason, .. } => {
                check_path(path)?;
                check_reason(reason.as_deref())
            }
            ChannelRequest::CheckpointRequest { reason, .. } => check_reason(reason.as_deref()),
            ChannelRequest::RestoreRequest { paths, .. } => {
                paths.iter().try_for_each(|LosslessPath(path)| check_path(path))
            }
            // The code that opens it checks the address.
            ChannelRequest::UrlRequest { .. } => Ok(()),
            ChannelRequest::HistoryRequest { action, .. } => check_action(action),
            ChannelRequest::RefusalRequest { path, .. } => check_path(path),
        }
    }
}

impl CheckedRequest for ControlRequest {
    fn id(&self) -> &str {
        match self {
            ControlRequest::Status { id } | ControlRequest::Stop { id } => id,
        }
    }

    fn check(&self) -> Result<(), RequestError> {
        Ok(())
    }
}

fn check_path(path: &Path) -> Result<(), RequestError> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let good = path.is_absolute() && bytes.len() <= PATH && !bytes.contains(&0);
    if good { Ok(()) } else { Err(RequestError::Path) }
}

fn check_action(action: &RemoteAction) -> Result<(), RequestError> {
    if action.paths().count() > TARGETS {
        return Err(RequestError::Targets);
    }
    action.paths().try_for_each(check_path)?;
    if action.words().any(|word| word.len() > REASON) { Err(RequestError::Reason) } else { Ok(()) }
}

fn check_reason(reason: Option<&str>) -> Result<(), RequestError> {
    if reason.is_none_or(|reason| reason.len() <= REASON) { Ok(()) } else { Err(RequestError::Reason) }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use serde_json::json;

    use super::*;

    fn read<T: CheckedRequest>(value: Value) -> Result<T, RequestError> {
        let Value::Object(message) = value else { panic!("no object") };
        T::read(message)
    }

    #[test]
    fn a_path_of_any_bytes_comes_through() {
        let path = PathBuf::from(OsString::from_vec(b"/odd\xff\n".to_vec()));
        let asked = ChannelRequest::CapabilityRequest {
            id: "1".to_owned(),
            path: path.clone(),
            access: AccessMode::ReadWrite,
            reason: None,
        };
        let value = serde_json::to_value(&asked).unwrap();
        assert_eq!(value["access"], "read+write");
        assert_eq!(read::<ChannelRequest>(value).unwrap(), asked);
        let restore = json!({"type": "restore_request", "id": "2", "snapshot": 3, "paths": ["/a", {"bytes": [47, 255]}]});
        let ChannelRequest::RestoreRequest { paths, .. } = read(restore).unwrap() else {
            panic!("another type")
        };
        assert_eq!(paths[1].0, PathBuf::from(OsString::from_vec(b"/\xff".to_vec())));
    }

    #[test]
    fn what_is_not_a_request() {
        let good = json!({"type": "capability_request", "id": "1", "path": "/a", "access": "read"});
        assert!(read::<ChannelRequest>(good.clone()).is_ok());
        let with = |name: &str, value: Value| {
            let mut changed = good.clone();
            changed[name] = value;
            changed
        };
        for changed in [
            with("type", json!("status")),
            with("type", json!("capability_response")),
            with("id", json!("")),
            with("id", json!("x".repeat(129))),
            with("id", json!(7)),
            with("path", json!("relative")),
            with("path", json!("")),
            with("path", json!("/a\0b")),
            with("path", json!(format!("/{}", "a".repeat(4095)))),
            with("path", json!({"bytes": [47, 256]})),
            with("access", json!("execute")),
            with("reason", json!("x".repeat(1025))),
            with("more", json!(1)),
        ] {
            assert!(read::<ChannelRequest>(changed.clone()).is_err(), "{changed}");
        }
        assert!(read::<ControlRequest>(good).is_err(), "the channels do not mix");
        assert!(read::<ControlRequest>(json!({"type": "stop", "id": "1"})).is_ok());
    }
}
