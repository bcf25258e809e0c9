//! Record of a session, `session.json`: a summary of its log, for listing sessions.
//!
//! Everything in it follows from the log and the ledger, so that it can be checked against them, byte for byte. A field
//! that is added later has to be left out when it is empty, or older records would not match.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::event::{Decision, Executable, Network};
use crate::files;
use crate::hash::{Digest, SESSION_DIGEST_DOMAIN};

/// Name of the file.
pub const SESSION: &str = "session.json";
const MAX_FILE: u64 = 16 << 20;

#[derive(Debug, Error)]
pub enum SessionError {
    #[error("{}: {}", .path.display(), nono_sys::errno::describe(.source))]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{}: not a session record: {source}", .path.display())]
    Malformed { path: PathBuf, source: serde_json::Error },
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    pub session_id: String,
    pub started: String,
    /// Time of the end. `None` while the session runs, and after nono was killed until a later command closes the log.
    pub ended: Option<String>,
    /// Command line, redacted.
    pub command: Vec<String>,
    pub executable_identity: Option<Executable>,
    #[serde(with = "nono_sys::path_serde::list")]
    pub tracked_paths: Vec<PathBuf>,
    pub snapshot_count: u32,
    pub exit_code: Option<i32>,
    pub merkle_roots: Vec<String>,
    /// First network events; all are in the log.
    pub network_events: Vec<NetworkEntry>,
    pub audit_event_count: u64,
    /// Digests over all records, including the seal.
    pub audit_integrity: Option<Integrity>,
    pub audit_attestation: Option<Attestation>,
    pub name: Option<String>,
    pub version: String,
    pub pid: u32,
    #[serde(with = "nono_sys::path_serde")]
    pub workdir: PathBuf,
    pub policy_digest: Digest,
    pub network: String,
    pub signal: Option<i32>,
    pub limit: Option<String>,
    pub stopped: bool,
    /// Whether nono was killed and the log was closed later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    pub counts: EventCounts,
    pub sealed: bool,
    /// Sequence number of its entry in the ledger.
    pub ledger_sequence: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Integrity {
    pub hash_algorithm: String,
    pub event_count: u64,
    pub chain_head: Digest,
    pub merkle_root: Digest,
}

/// Signature of the seal, which is the last record of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attestation {
    pub predicate_type: String,
    pub key_id: String,
    pub public_key: String,
    pub bundle_filename: String,
}

/// Numbers of events by kind and decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCounts {
    pub decisions: Answers,
    pub urls: Answers,
    pub network: Answers,
    /// Denials by the policy, without a prompt.
    pub denials: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers {
    pub allowed: u64,
    pub denied: u64,
}

impl Answers {
    pub(crate) fn add(&mut self, decision: Decision, count: u64) {
        let which = match decision {
            Decision::Allowed => &mut self.allowed,
            Decision::Denied => &mut self.denied,
        };
        *which = which.saturating_add(count);
    }
}

/// Network event in the format that other programs know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkEntry {
    pub timestamp_unix_ms: u64,
    pub mode: String,
    pub decision: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_mechanism: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_outcome: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub managed_credential_active: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub injection_mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denial_category: Option<String>,
    pub target: String,
    pub port: Option<u16>,
    pub method: Option<String>,
    pub path: Option<String>,
    pub status: Option<u16>,
    pub reason: Option<String>,
}

impl From<&Network> for NetworkEntry {
    fn from(event: &Network) -> NetworkEntry {
        let denied = event.decision == Decision::Denied;
        NetworkEntry {
            timestamp_unix_ms: event.time_ms,
            mode: event.mode.clone(),
            decision: if denied { "deny" } else { "allow" }.to_owned(),
            route_id: event.credential.clone(),
            auth_mechanism: None,
            auth_outcome: None,
            managed_credential_active: event.credential.as_ref().map(|_| true),
            injection_mode: None,
            denial_category: event.category.clone().filter(|_| denied),
            target: event.host.clone(),
            port: Some(event.port),
            method: event.method.clone(),
            path: event.path.clone(),
            status: event.status,
            reason: event.reason.clone(),
        }
    }
}

impl SessionRecord {
    pub fn read(dir: &Path) -> Result<SessionRecord, SessionError> {
        Ok(Self::read_exact(dir)?.0)
    }

    /// Reads the record, with the bytes of the file.
    pub(crate) fn read_exact(dir: &Path) -> Result<(SessionRecord, Vec<u8>), SessionError> {
        let path = dir.join(SESSION);
        let bytes = files::open(&path).and_then(|file| files::read_all(file, MAX_FILE));
        let bytes = bytes.map_err(|source| SessionError::Io { path: path.clone(), source })?;
        let record = serde_json::from_slice(&bytes);
        Ok((record.map_err(|source| SessionError::Malformed { path, source })?, bytes))
    }

    /// Replaces the record in `dir` atomically; durably too for a session that has an entry in the ledger.
    pub(crate) fn write(&self, dir: &Path, durably: bool) -> Result<(), SessionError> {
        let path = dir.join(SESSION);
        let bytes = self.bytes().map_err(|source| SessionError::Malformed { path: path.clone(), source })?;
        let write = if durably { nono_sys::fs::write_whole } else { nono_sys::fs::write_atomic };
        write(&path, &bytes).map_err(|source| SessionError::Io { path, source })
    }

    pub(crate) fn bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Digest for the ledger. nono's own fields are not covered: they repeat the log, whose digests are.
    pub fn digest(&self) -> Result<Digest, serde_json::Error> {
        ProtectedFields::deserialize(serde_json::to_value(self)?)?.digest()
    }

    /// Time of the end, or of the start if there is no end.
    pub fn completed_at(&self) -> &str {
        completed_at(&self.started, self.ended.as_deref())
    }
}

fn completed_at<'a>(started: &'a str, ended: Option<&'a str>) -> &'a str {
    ended.filter(|ended| !ended.is_empty()).unwrap_or(started)
}

/// Fields of a session's record that its digest covers: those that other programs know too, in their order and with
/// paths as bytes. A record has all of them.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProtectedFields {
    pub session_id: String,
    started: String,
    ended: Option<String>,
    command: Vec<String>,
    executable_identity: Option<ProtectedExecutable>,
    tracked_paths: Vec<PathBytes>,
    snapshot_count: u32,
    exit_code: Option<i32>,
    merkle_roots: Vec<String>,
    network_events: Vec<NetworkEntry>,
    audit_event_count: u64,
    audit_integrity: Option<Integrity>,
    audit_attestation: Option<Attestation>,
}

impl ProtectedFields {
    pub fn digest(&self) -> Result<Digest, serde_json::Error> {
        Ok(Digest::of(SESSION_DIGEST_DOMAIN, &[&serde_json::to_vec(self)?]))
    }

    /// Time of the end, or of the start if there is no end.
    pub fn completed_at(&self) -> &str {
        completed_at(&self.started, self.ended.as_deref())
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct ProtectedExecutable {
    resolved_path: PathBytes,
    sha256: Digest,
}

/// Path, written as an array of its bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "PathForm", into = "Vec<u8>")]
struct PathBytes(Vec<u8>);

/// Forms of a path in records: of sessions (`bytes`) and of snapshots (`hex`), where it is not UTF-8.
#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum PathForm {
    Text(String),
    Bytes { bytes: Vec<u8> },
    Hex { hex: String },
}

impl From<PathBytes> for Vec<u8> {
    fn from(path: PathBytes) -> Vec<u8> {
        path.0
    }
}

impl TryFrom<PathForm> for PathBytes {
    type Error = &'static str;

    fn try_from(form: PathForm) -> Result<PathBytes, Self::Error> {
        Ok(PathBytes(match form {
            PathForm::Text(text) => text.into_bytes(),
            PathForm::Bytes { bytes } => bytes,
            PathForm::Hex { hex } => {
                nono_sys::hex::decode(&hex).ok_or("a path in hexadecimal has two digits for each byte")?
            }
        }))
    }
}

#[cfg(test)]
pub(crate) fn golden() -> SessionRecord {
    SessionRecord {
        session_id: "20260421-200000-11111".into(),
        started: "2026-04-21T20:00:00Z".into(),
        ended: Some("2026-04-21T20:00:01Z".into()),
        command: vec!["/bin/pwd".into()],
        tracked_paths: vec!["/tmp/work".into()],
        exit_code: Some(0),
        audit_event_count: 2,
        version: "0".into(),
        pid: 1,
        workdir: "/tmp/work".into(),
        network: "blocked".into(),
        ..SessionRecord::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_golden_digest() {
        let digest = "3a1ed53d426d6ea2544cec6cf6b95ccdc31fda4570d86931239ee0f7d7d39012";
        assert_eq!(golden().digest().unwrap().hex(), digest);
        let fields = ProtectedFields::deserialize(serde_json::to_value(golden()).unwrap()).unwrap();
        let payload = serde_json::to_string(&fields).unwrap();
        assert!(payload.starts_with("{\"session_id\":"));
        assert!(payload.contains("\"tracked_paths\":[[47,116,109,112,47,119,111,114,107]],"), "{payload}");
    }
}
