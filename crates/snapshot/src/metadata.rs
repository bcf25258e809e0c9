//! Metadata of a session besides its snapshots: `session.json`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::coverage::{Coverage, Example};
use crate::diff::ChangeType;
use crate::hash::{ContentHash, MerkleRoot};
use crate::paths;
use crate::time;

/// Metadata of one session, for people and programs. Unknown keys are dropped when it is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionMetadata {
    pub session_id: String,
    /// Start time in ISO 8601, UTC.
    pub started: String,
    #[serde(default)]
    pub ended: Option<String>,
    pub command: Vec<String>,
    /// Identity of the program that was run.
    #[serde(default)]
    pub executable_identity: Option<ExecutableIdentity>,
    #[serde(with = "paths::list")]
    pub tracked_paths: Vec<PathBuf>,
    pub snapshot_count: u32,
    #[serde(default)]
    pub exit_code: Option<i32>,
    pub merkle_roots: Vec<MerkleRoot>,
    #[serde(default)]
    pub network_events: Vec<serde_json::Value>,
    /// Number of events in the session's audit log.
    #[serde(default)]
    pub audit_event_count: u64,
    /// Digests of that log, when it was closed.
    #[serde(default)]
    pub audit_integrity: Option<AuditIntegrity>,
    /// Signature over that log.
    #[serde(default)]
    pub audit_attestation: Option<AuditAttestation>,
    /// Number of the snapshot taken after the command ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_snapshot: Option<u32>,
    /// Position among all sessions of a state folder, independent of the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// Name given by the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Coverage of the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
    /// Entries made since the baseline that are in no snapshot, so that a restore leaves them; only the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made_uncovered: Vec<Example>,
    /// Number of entries that the baseline excluded and that were gone or changed at the end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// Paths that others changed while the command ran, as reported by an agent's hooks; `None` without such reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<Vec<ChangedByOthers>>,
    /// Snapshots requested while it ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<RequestedSnapshot>,
    /// Whether nono was killed and a later command took the last snapshot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Number of differences between the baseline and the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangeCounts>,
}

/// A path changed by another process between the calls of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedByOthers {
    #[serde(with = "nono_sys::path_serde")]
    pub path: PathBuf,
    /// Content that the agent had left there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<ContentHash>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl SessionMetadata {
    /// Whether it ended with a final snapshot and changed nothing that it tracked.
    pub fn is_empty(&self) -> bool {
        self.changes == Some(ChangeCounts::default()) && self.lost == 0
    }

    /// Metadata of a session that starts now.
    pub fn new(
        session_id: impl Into<String>,
        command: Vec<String>,
        tracked_paths: Vec<PathBuf>,
    ) -> SessionMetadata {
        SessionMetadata {
            session_id: session_id.into(),
            started: time::now_iso(),
            command,
            tracked_paths,
            ..SessionMetadata::default()
        }
    }

    /// Record the end of the session.
    pub fn end(&mut self, exit_code: Option<i32>) {
        self.ended = Some(time::now_iso());
        self.exit_code = exit_code;
    }

    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    pub fn from_json(json: &str) -> Result<SessionMetadata, serde_json::Error> {
        serde_json::from_str(json)
    }
}

/// A program, by its path and its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutableIdentity {
    #[serde(with = "paths")]
    pub resolved_path: PathBuf,
    pub sha256: ContentHash,
}

/// A signature over the audit log of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditAttestation {
    pub predicate_type: String,
    pub key_id: String,
    pub public_key: String,
    pub bundle_filename: String,
}

/// Digests over the audit log of a session, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditIntegrity {
    pub hash_algorithm: String,
    pub event_count: u64,
    pub chain_head: String,
    pub merkle_root: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedSnapshot {
    pub snapshot: u32,
    /// Reason as given by the requester, cut if it is long; escape it for display.
    pub why: String,
}

/// Number of differing paths, by kind of change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeCounts {
    pub created: u64,
    pub modified: u64,
    pub deleted: u64,
    pub permissions_changed: u64,
    pub renamed: u64,
}

impl ChangeCounts {
    pub fn add(&mut self, change: ChangeType) {
        let count = match change {
            ChangeType::Created => &mut self.created,
            ChangeType::Modified => &mut self.modified,
            ChangeType::Deleted => &mut self.deleted,
            ChangeType::PermissionsChanged => &mut self.permissions_changed,
        };
        *count += 1;
    }
}
