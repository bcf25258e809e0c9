//! Record of a session, `session.json`: a summary of its log, for listing sessions.
//!
//! Everything in it follows from the log and the ledger, so that it can be checked against them, byte for byte. A field
//! that is added later has to be left out when it is empty, or older records would not match.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::event::{Decision, Executable, Network};
use crate::files;
use crate::hash::{Digest, SESSION_DIGEST_DOMAIN};

/// Name of the file.
pub const SESSION: &str = "session.json";
/// Maximum size of the file.
const MAX_FILE: u64 = 16 << 20;

#[derive(Debug, Error)]
pub enum SessionError {
    #[error("{}: {}", .path.display(), nono_sys::errno::describe(.source))]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{}: not a session record: {source}", .path.display())]
    Malformed { path: PathBuf, source: serde_json::Error },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    pub session_id: String,
    pub started: String,
    /// Time of the end. `None` while the session runs, and after nono was killed until a later command closes the log.
    pub ended: Option<String>,
    /// Command line, redacted.
    pub command: Vec<String>,
    pub executable_identity: Option<Executable>,
    #[serde(with = "crate::paths")]
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
    pub key_id: Digest,
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
    /// Reads the record of the session in `dir`.
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

    /// Replaces the record in `dir` atomically.
    pub(crate) fn write(&self, dir: &Path) -> Result<(), SessionError> {
        self.write_by(dir, nono_sys::fs::write_atomic)
    }

    /// Replaces the record in `dir` durably, for a session that has an entry in the ledger.
    pub(crate) fn write_whole(&self, dir: &Path) -> Result<(), SessionError> {
        self.write_by(dir, nono_sys::fs::write_whole)
    }

    fn write_by(&self, dir: &Path, write: fn(&Path, &[u8]) -> io::Result<()>) -> Result<(), SessionError> {
        let path = dir.join(SESSION);
        let failed = |source| SessionError::Io { path: path.clone(), source };
        let bytes = self.bytes().map_err(|source| SessionError::Malformed { path: path.clone(), source })?;
        write(&path, &bytes).map_err(failed)
    }

    pub(crate) fn bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Digest for the ledger, over the fields that other programs know too, in their order and with paths as bytes.
    /// nono's own fields repeat the log, whose digests are included.
    pub fn digest(&self) -> Result<Digest, serde_json::Error> {
        let payload = serde_json::to_vec(&Protected::of(self))?;
        Ok(Digest::of(SESSION_DIGEST_DOMAIN, &[&payload]))
    }

    /// Time of the end, or of the start if there is no end.
    pub fn completed_at(&self) -> &str {
        self.ended.as_deref().filter(|ended| !ended.is_empty()).unwrap_or(&self.started)
    }
}

#[derive(Serialize)]
struct Protected<'a> {
    session_id: &'a str,
    started: &'a str,
    ended: Option<&'a str>,
    command: &'a [String],
    executable_identity: Option<ProtectedExecutable<'a>>,
    tracked_paths: Vec<&'a [u8]>,
    snapshot_count: u32,
    exit_code: Option<i32>,
    merkle_roots: &'a [String],
    network_events: &'a [NetworkEntry],
    audit_event_count: u64,
    audit_integrity: Option<&'a Integrity>,
    audit_attestation: Option<&'a Attestation>,
}

#[derive(Serialize)]
struct ProtectedExecutable<'a> {
    resolved_path: &'a [u8],
    sha256: Digest,
}

impl<'a> Protected<'a> {
    fn of(record: &'a SessionRecord) -> Protected<'a> {
        let bytes = |path: &'a PathBuf| path.as_os_str().as_encoded_bytes();
        Protected {
            session_id: &record.session_id,
            started: &record.started,
            ended: record.ended.as_deref(),
            command: &record.command,
            executable_identity: record.executable_identity.as_ref().map(|run| ProtectedExecutable {
                resolved_path: bytes(&run.resolved_path),
                sha256: run.sha256,
            }),
            tracked_paths: record.tracked_paths.iter().map(bytes).collect(),
            snapshot_count: record.snapshot_count,
            exit_code: record.exit_code,
            merkle_roots: &record.merkle_roots,
            network_events: &record.network_events,
            audit_event_count: record.audit_event_count,
            audit_integrity: record.audit_integrity.as_ref(),
            audit_attestation: record.audit_attestation.as_ref(),
        }
    }
}

#[cfg(test)]
pub(crate) fn golden() -> SessionRecord {
    SessionRecord {
        session_id: "20260421-200000-11111".into(),
        started: "2026-04-21T20:00:00Z".into(),
        ended: Some("2026-04-21T20:00:01Z".into()),
        command: vec!["/bin/pwd".into()],
        executable_identity: None,
        tracked_paths: vec!["/tmp/work".into()],
        snapshot_count: 0,
        exit_code: Some(0),
        merkle_roots: Vec::new(),
        network_events: Vec::new(),
        audit_event_count: 2,
        audit_integrity: None,
        audit_attestation: None,
        name: None,
        version: "0".into(),
        pid: 1,
        workdir: "/tmp/work".into(),
        policy_digest: Digest::ZERO,
        network: "blocked".into(),
        signal: None,
        limit: None,
        stopped: false,
        interrupted: false,
        counts: EventCounts::default(),
        sealed: false,
        ledger_sequence: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_golden_digest() {
        let digest = "3a1ed53d426d6ea2544cec6cf6b95ccdc31fda4570d86931239ee0f7d7d39012";
        assert_eq!(golden().digest().unwrap().hex(), digest);
        let payload = serde_json::to_string(&Protected::of(&golden())).unwrap();
        assert!(payload.starts_with("{\"session_id\":"));
        assert!(payload.contains("\"tracked_paths\":[[47,116,109,112,47,119,111,114,107]],"), "{payload}");
    }
}
