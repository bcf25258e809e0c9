//! Recording of a run's snapshots outside the session itself (the audit log).

use std::fmt::Debug;

use nono_audit::event::{Restore, Snapshot};
use nono_audit::{AuditEvent, SessionRecord};
use nono_snapshot::{AuditIntegrity, Manifest};
use nono_sys::time::now_ms;
use serde_json::{Value, json};

/// Receives every snapshot, and the end.
pub trait Recorder: Debug + Send + Sync {
    /// A snapshot was taken and published.
    fn taken(&self, manifest: &Manifest);

    /// An interrupted restore was completed before the first snapshot.
    fn restored(&self, restore: Restore);

    /// No snapshot follows `last`: the session is about to be closed. Returns what goes into its `session.json`.
    fn close(&self, last: Option<&Manifest>) -> Closed;
}

/// Summary of the closed audit log.
#[derive(Clone, Debug, Default)]
pub struct Closed {
    pub event_count: u64,
    pub integrity: Option<AuditIntegrity>,
    pub network_events: Vec<serde_json::Value>,
}

/// Records nothing.
impl Recorder for () {
    fn taken(&self, _manifest: &Manifest) {}

    fn restored(&self, _restore: Restore) {}

    fn close(&self, _last: Option<&Manifest>) -> Closed {
        Closed::default()
    }
}

/// Digests of the tracked files at the end.
pub fn tree(manifest: &Manifest) -> Value {
    json!({
        "snapshot": manifest.number,
        "merkle_root": manifest.merkle_root.hex(),
        "state_root": manifest.state_root.hex(),
    })
}

/// Summary of a closed log.
pub fn closed(record: &SessionRecord) -> Closed {
    let integrity = record.audit_integrity.as_ref().map(|integrity| AuditIntegrity {
        hash_algorithm: integrity.hash_algorithm.clone(),
        event_count: integrity.event_count,
        chain_head: integrity.chain_head.hex(),
        merkle_root: integrity.merkle_root.hex(),
    });
    // Plain values: none of them fails to serialise.
    let network_events = record.network_events.iter().filter_map(|event| serde_json::to_value(event).ok());
    Closed { event_count: record.audit_event_count, integrity, network_events: network_events.collect() }
}

/// Log entry of a snapshot.
pub fn snapshot(manifest: &Manifest) -> AuditEvent {
    AuditEvent::Snapshot(Snapshot {
        time_ms: now_ms(),
        number: manifest.number,
        merkle_root: manifest.merkle_root.hex(),
        state_root: manifest.state_root.hex(),
    })
}
