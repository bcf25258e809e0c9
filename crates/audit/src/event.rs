//! Audit events. Field names are stable: other programs read them. Paths are lossless (`nono_sys::path_serde`).

use std::path::PathBuf;

use nono_sys::launch::NOT_RUN;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hash::Digest;

/// Audit event, written as one record. Every event has its time, in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AuditEvent {
    SessionStarted(SessionStarted),
    SessionEnded(SessionEnded),
    CapabilityDecision(CapabilityDecision),
    Denial(Denial),
    UrlOpen(UrlOpen),
    Network(Network),
    Snapshot(Snapshot),
    Restore(Restore),
    Checkpoint(CheckpointEvent),
    AgentPrompt(AgentPrompt),
    AgentCall(AgentCall),
    BackendError(BackendError),
    Warning(Warning),
    /// Last record of a log that was closed with a seal.
    Seal(Seal),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStarted {
    pub time_ms: u64,
    pub session_id: String,
    pub name: Option<String>,
    pub version: String,
    /// Process id of the supervisor.
    pub pid: u32,
    /// Command line, redacted.
    pub command: Vec<String>,
    #[serde(with = "nono_sys::path_serde")]
    pub workdir: PathBuf,
    pub executable: Option<Executable>,
    /// SHA-256 over the resolved policy as JSON.
    pub policy_digest: Digest,
    #[serde(with = "nono_sys::path_serde::list")]
    pub tracked_paths: Vec<PathBuf>,
    pub network: String,
    /// Profiles of projects that were used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub project_profiles: Vec<ProjectProfile>,
    /// Head of the ledger when this session began; links sessions beside the ledger itself.
    pub ledger_head: Option<Digest>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectProfile {
    #[serde(with = "nono_sys::path_serde")]
    pub file: PathBuf,
    pub sha256: String,
    /// Whether the user agreed to what it opens. If not, only what it closes was used.
    pub agreed: bool,
}

/// Executable file of the command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executable {
    #[serde(with = "nono_sys::path_serde")]
    pub resolved_path: PathBuf,
    pub sha256: Digest,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnded {
    pub time_ms: u64,
    pub exit_code: i32,
    pub signal: Option<i32>,
    /// Resource limit that ended the command.
    pub limit: Option<String>,
    /// Whether the session was stopped from outside.
    pub stopped: bool,
    /// Whether nono itself was killed: a later command closed the log, and the exit code is unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

impl SessionEnded {
    /// End of a session whose command never ran.
    pub fn not_run(time_ms: u64) -> SessionEnded {
        SessionEnded { time_ms, exit_code: i32::from(NOT_RUN), ..SessionEnded::default() }
    }

    /// End of a session whose supervisor was killed, written by a later command.
    pub fn interrupted(time_ms: u64) -> SessionEnded {
        SessionEnded { interrupted: true, ..SessionEnded::not_run(time_ms) }
    }
}

/// Decision on a request, recorded before it takes effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapabilityDecision {
    pub time_ms: u64,
    #[serde(with = "nono_sys::path_serde")]
    pub path: PathBuf,
    /// `read`, `write`, `readwrite`, or `restore`.
    pub access: String,
    #[serde(with = "nono_sys::path_serde")]
    pub program: PathBuf,
    pub pid: u32,
    pub decision: Decision,
    /// Approver or rule that decided.
    pub by: String,
    /// `once`, `session`, `directory`, `saved`.
    pub scope: Option<String>,
    /// Reason given by the command, if any.
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allowed,
    Denied,
}

/// Denial. The first of a kind is recorded when it happens, then the number so far from time to time, and the sum at
/// the end: `count` is always the sum so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    pub time_ms: u64,
    pub what: DenialKey,
    pub pid: u32,
    pub count: u64,
}

/// Kind of a denial; equal ones are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DenialKey {
    /// `open`, `socket`, `network`, `metadata`, …
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "nono_sys::path_serde::optional")]
    pub path: Option<PathBuf>,
    /// `read`, `write`, or a description of the operation.
    pub access: String,
    pub reason: String,
    #[serde(with = "nono_sys::path_serde")]
    pub program: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlOpen {
    pub time_ms: u64,
    /// Address, redacted.
    pub url: String,
    #[serde(with = "nono_sys::path_serde")]
    pub program: PathBuf,
    pub pid: u32,
    pub decision: Decision,
    pub by: String,
    /// Reason why an allowed address could not be opened, or why there was no prompt or no decision.
    pub error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Opened,
    /// End, with the bytes moved. A tunnel is counted at its opening; one that was refused after that counts as
    /// refused.
    Ended,
}

/// Request through the proxy, or opening or end of a tunnel. `count` above 1: that many equal ones, with their bytes
/// added up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    pub time_ms: u64,
    /// `connect`, `connect_intercept`, `forward`, `reverse`.
    pub mode: String,
    pub decision: Decision,
    pub host: String,
    pub port: u16,
    pub method: Option<String>,
    /// Path without the query, redacted.
    pub path: Option<String>,
    pub status: Option<u16>,
    /// Reason of a refusal or failure.
    pub reason: Option<String>,
    /// Category of `reason` as a fixed word, for programs.
    pub category: Option<String>,
    pub address: Option<String>,
    /// Name of the credential that was inserted.
    pub credential: Option<String>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub duration_ms: u64,
    /// Phase of a tunnel; a request has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    pub count: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub time_ms: u64,
    pub number: u32,
    pub merkle_root: String,
    pub state_root: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    pub time_ms: u64,
    /// Session whose files were restored; for a checkpoint, the project's folder.
    pub session_id: String,
    pub snapshot: String,
    /// Restored paths; all, if empty.
    #[serde(with = "nono_sys::path_serde::list")]
    pub paths: Vec<PathBuf>,
    pub restored: u64,
    pub kept: u64,
    pub failed: u64,
    pub outcome: String,
}

/// Checkpoint of a project that was taken during the session, or failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointEvent {
    pub time_ms: u64,
    #[serde(with = "nono_sys::path_serde")]
    pub project: PathBuf,
    /// Id of the checkpoint; `None` if there is none, for the reason in `error`.
    pub checkpoint: Option<String>,
    /// Reason for the checkpoint, as given by the command.
    pub reason: String,
    pub error: Option<String>,
}

/// Prompt of the user to an agent in the sandbox, as reported by the agent's hooks, hence by the command itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentPrompt {
    pub time_ms: u64,
    pub agent: Option<String>,
    /// Id of the conversation, assigned by the agent.
    pub conversation: Option<String>,
    pub turn: Option<String>,
    /// Digest of the prompt's text.
    pub sha256: Digest,
}

/// Tool call of an agent in the sandbox, also reported by the command itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCall {
    pub time_ms: u64,
    pub agent: Option<String>,
    pub conversation: Option<String>,
    pub turn: Option<String>,
    pub tool: Option<String>,
    /// Shell command, redacted, and cut if it was long.
    pub command: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendError {
    pub time_ms: u64,
    pub backend: String,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    pub time_ms: u64,
    pub message: String,
}

/// Seal over all records before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    pub time_ms: u64,
    pub hash_algorithm: String,
    pub event_count: u64,
    pub chain_head: Digest,
    pub merkle_root: Digest,
    /// Summary of the tracked files at the end.
    pub tree: Option<Value>,
    pub signature: Option<Signature>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    pub algorithm: String,
    /// Public key, base64.
    pub public_key: String,
    /// Signature, base64.
    pub signature: String,
}
