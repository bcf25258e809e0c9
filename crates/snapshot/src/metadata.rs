//! What is known about a session besides its snapshots: `session.json`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::hash::MerkleRoot;
use crate::paths;
use crate::time;

/// The record of one session, for people and programs. Keys that are not known are dropped when it is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionMetadata {
    pub session_id: String,
    /// ISO 8601, UTC.
    pub started: String,
    #[serde(default)]
    pub ended: Option<String>,
    pub command: Vec<String>,
    #[serde(with = "paths::list")]
    pub tracked_paths: Vec<PathBuf>,
    pub snapshot_count: u32,
    #[serde(default)]
    pub exit_code: Option<i32>,
    pub merkle_roots: Vec<MerkleRoot>,
    #[serde(default)]
    pub network_events: Vec<serde_json::Value>,
}

impl SessionMetadata {
    /// A session that starts now.
    pub fn new(
        session_id: impl Into<String>,
        command: Vec<String>,
        tracked_paths: Vec<PathBuf>,
    ) -> SessionMetadata {
        SessionMetadata {
            session_id: session_id.into(),
            started: time::now_iso(),
            ended: None,
            command,
            tracked_paths,
            snapshot_count: 0,
            exit_code: None,
            merkle_roots: Vec::new(),
            network_events: Vec::new(),
        }
    }

    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    pub fn from_json(json: &str) -> Result<SessionMetadata, serde_json::Error> {
        serde_json::from_str(json)
    }
}
