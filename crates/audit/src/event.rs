//! What is recorded. Field names are stable: other programs read them. Paths are lossless (`nono_sys::path_serde`).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hash::Digest;

/// One event; one record. Every event has the moment it happened, in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    SessionStarted(SessionStarted),
    SessionEnded(SessionEnded),
    CapabilityDecision(CapabilityDecision),
    Denial(Denial),
    UrlOpen(UrlOpen),
    Network(Network),
    Snapshot(Snapshot),
    Restore(Restore),
    Checkpoint(Checkpoint),
    AgentPrompt(AgentPrompt),
    AgentCall(AgentCall),
    BackendError(BackendError),
    Warning(Warning),
    /// The last record of a log that was closed properly and asked for it.
    Seal(Seal),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStarted {
    pub time_ms: u64,
    pub session_id: String,
    pub name: Option<String>,
    pub version: String,
    /// Of the supervisor.
    pub pid: u32,
    /// Redacted.
    pub command: Vec<String>,
    #[serde(with = "nono_sys::path_serde")]
    pub workdir: PathBuf,
    pub executable: Option<Executable>,
    /// SHA-256 over the resolved policy as JSON.
    pub policy_digest: Digest,
    #[serde(with = "crate::paths")]
    pub tracked_paths: Vec<PathBuf>,
    pub network: String,
    /// Profiles that the project carries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub project_profiles: Vec<ProjectProfile>,
    /// The ledger's head when this session began: what links sessions, besides the ledger itself.
    pub ledger_head: Option<Digest>,
}

/// A profile that the project carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectProfile {
    #[serde(with = "nono_sys::path_serde")]
    pub file: PathBuf,
    pub sha256: String,
    /// A person agreed to what it opens. If not, only what it closes was used.
    pub agreed: bool,
}

/// The file that was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executable {
    #[serde(with = "nono_sys::path_serde")]
    pub resolved_path: PathBuf,
    pub sha256: Digest,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnded {
    pub time_ms: u64,
    pub exit_code: i32,
    pub signal: Option<i32>,
    /// The limit that struck.
    pub limit: Option<String>,
    /// Somebody outside ended it.
    pub stopped: bool,
    /// nono itself was killed: a later command closed the log, and nobody knows the exit code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

impl SessionEnded {
    /// The end of a session whose supervisor was killed, as a later command writes it down.
    pub fn interrupted(time_ms: u64) -> SessionEnded {
        SessionEnded { time_ms, exit_code: 125, signal: None, limit: None, stopped: false, interrupted: true }
    }
}

/// An answer to a question, recorded before it takes effect.
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
    /// Who or which rule.
    pub by: String,
    /// `once`, `session`, `directory`, `saved`.
    pub scope: Option<String>,
    /// In the command's own words, where it gave any.
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allowed,
    Denied,
}

/// What was refused. The first of a kind is recorded when it happens, then the number so far now and then, and the sum at
/// the end: `count` is always the sum so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    pub time_ms: u64,
    pub what: DenialKey,
    pub pid: u32,
    pub count: u64,
}

/// What makes refusals one kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DenialKey {
    /// `open`, `socket`, `network`, `metadata`, …
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::paths::optional")]
    pub path: Option<PathBuf>,
    /// `read`, `write`, or what was tried in words.
    pub access: String,
    pub reason: String,
    #[serde(with = "nono_sys::path_serde")]
    pub program: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlOpen {
    pub time_ms: u64,
    /// Redacted.
    pub url: String,
    #[serde(with = "nono_sys::path_serde")]
    pub program: PathBuf,
    pub pid: u32,
    pub decision: Decision,
    pub by: String,
    /// Why it could not be opened although it was allowed, or why nobody was asked or answered.
    pub error: Option<String>,
}

/// Which end of a tunnel is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Opened,
    /// With what it moved. It is counted where it was opened; one that was refused after that is counted as refused.
    Ended,
}

/// One request through the proxy, or one end of a tunnel. `count` above 1: that many of a kind, with their bytes together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    pub time_ms: u64,
    /// `connect`, `connect_intercept`, `forward`, `reverse`.
    pub mode: String,
    pub decision: Decision,
    pub host: String,
    pub port: u16,
    pub method: Option<String>,
    /// Redacted, without the query.
    pub path: Option<String>,
    pub status: Option<u16>,
    /// Why not, or what went wrong.
    pub reason: Option<String>,
    /// A fixed word for `reason`, for programs.
    pub category: Option<String>,
    /// The address that was dialled.
    pub address: Option<String>,
    /// The credential that was put in, by name.
    pub credential: Option<String>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub duration_ms: u64,
    /// Of a tunnel; a request has none.
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
    /// Whose files: a session, or where a checkpoint was restored, the project's folder.
    pub session_id: String,
    pub snapshot: String,
    /// All, if empty.
    #[serde(with = "crate::paths")]
    pub paths: Vec<PathBuf>,
    pub restored: u64,
    pub kept: u64,
    pub failed: u64,
    pub outcome: String,
}

/// A checkpoint of a project that was taken during the session, or could not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub time_ms: u64,
    #[serde(with = "nono_sys::path_serde")]
    pub project: PathBuf,
    /// None: there is no protection, for the reason in `error`.
    pub checkpoint: Option<String>,
    /// What it was taken for, in the command's own words.
    pub reason: String,
    pub error: Option<String>,
}

/// A person spoke to an agent inside. As the agent's hooks told: the command's own word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentPrompt {
    pub time_ms: u64,
    pub agent: Option<String>,
    /// The agent's own id of the conversation.
    pub conversation: Option<String>,
    pub turn: Option<String>,
    /// Of what the person said.
    pub sha256: Digest,
}

/// An agent inside called one of its tools. The command's own word, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCall {
    pub time_ms: u64,
    pub agent: Option<String>,
    pub conversation: Option<String>,
    pub turn: Option<String>,
    pub tool: Option<String>,
    /// What a shell was to run: redacted, and cut where it was long.
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

/// Over everything before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    pub time_ms: u64,
    pub hash_algorithm: String,
    pub event_count: u64,
    pub chain_head: Digest,
    pub merkle_root: Digest,
    /// Of the tracked files at the end.
    pub tree: Option<Value>,
    pub signature: Option<Signature>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    pub algorithm: String,
    /// The public key, base64.
    pub public_key: String,
    /// base64.
    pub signature: String,
}
