//! Denials and grants of a supervised run, as values.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use nono_policy::{AccessMode, DeniedReason};
use serde::{Deserialize, Serialize};

use crate::approval::Scope;

/// Action a program tried.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum DeniedAttempt {
    /// Open a file or a directory, or ask for one on the request socket.
    Open {
        #[serde(with = "nono_policy::path_serde")]
        path: PathBuf,
        access: AccessMode,
    },
    /// Change owner, mode, times or attributes.
    Metadata {
        #[serde(with = "nono_policy::path_serde")]
        path: PathBuf,
        call: String,
    },
    /// Connect to a unix socket.
    Socket {
        #[serde(with = "nono_policy::path_serde")]
        path: PathBuf,
    },
    /// Connect to an address, or listen.
    Network {
        what: String,
        /// Grant that would be enough to open it; `None`: only the whole network would.
        #[serde(default)]
        port: Option<Port>,
    },
    /// Use of something nono keeps for itself.
    Other { what: String },
}

impl DeniedAttempt {
    /// Kind, path and operation, for records.
    pub fn parts(&self) -> (&'static str, Option<&Path>, String) {
        match self {
            DeniedAttempt::Open { path, access } => ("open", Some(path), access.to_string()),
            DeniedAttempt::Metadata { path, call } => ("metadata", Some(path), call.clone()),
            DeniedAttempt::Socket { path } => ("socket", Some(path), "connect".to_owned()),
            DeniedAttempt::Network { what, .. } => ("network", None, what.clone()),
            DeniedAttempt::Other { what } => ("other", None, what.clone()),
        }
    }
}

/// Address of a refused connection or listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Port {
    /// TCP port of this machine's loopback.
    Connect(u16),
    Listen(u16),
    /// Address outside, without the proxy that leads there where the network is filtered.
    Direct(SocketAddr),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum RefusalReason {
    /// Denied by the policy, before the approver was asked.
    Policy { reason: DeniedReason },
    /// Denied by an approver; `by` names it.
    Answered { by: String },
    /// Denied because there was no approver or no answer came.
    NoAnswer { why: String },
    /// More requests than a person should be asked.
    TooMany,
    /// The object changed, or could not be opened with the requested access.
    Failed { why: String },
}

impl RefusalReason {
    /// Text for records.
    pub fn words(&self) -> String {
        match self {
            RefusalReason::Policy { reason } => reason.words(),
            RefusalReason::Answered { by } => format!("denied by {by}"),
            RefusalReason::NoAnswer { why } => format!("no answer: {why}"),
            RefusalReason::TooMany => "more questions than a person should be asked".to_owned(),
            RefusalReason::Failed { why } => why.clone(),
        }
    }
}

/// One kind of denial, counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    pub attempt: DeniedAttempt,
    pub because: RefusalReason,
    /// First program that was refused it.
    pub program: PathBuf,
    pub pid: u32,
    pub count: u64,
}

/// Grant made while the command ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expansion {
    #[serde(with = "nono_policy::path_serde")]
    pub path: PathBuf,
    pub access: AccessMode,
    pub is_dir: bool,
    pub scope: Scope,
    pub by: String,
}

/// Report of everything that was mediated in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediationReport {
    pub refused: Vec<Refused>,
    /// Number of denials beyond those listed.
    pub refused_unlisted: u64,
    pub expansions: Vec<Expansion>,
    /// Number of requests put to the approver.
    pub asked: u64,
}
