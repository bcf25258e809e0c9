//! Who writes down what the snapshots of a run were, outside the session itself.

use std::fmt::Debug;

use nono_audit::event::{Restore, Snapshot};
use nono_audit::{Event, SessionRecord};
use nono_snapshot::{AuditIntegrity, Manifest};
use nono_sys::time::now_ms;
use serde_json::{Value, json};

/// Told of every snapshot, and once of the end.
pub(crate) trait Recorder: Debug + Send + Sync {
    /// One more is taken and published.
    fn taken(&self, manifest: &Manifest);

    /// A restore was completed before the first snapshot.
    fn restored(&self, restore: Restore);

    /// None will follow `last`, if there is one: its session is about to be closed. What goes into its `session.json`.
    fn close(&self, last: Option<&Manifest>) -> Closed;
}

/// What the audit log came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closed {
    pub(crate) event_count: u64,
    pub(crate) integrity: Option<AuditIntegrity>,
    pub(crate) network_events: Vec<serde_json::Value>,
}

/// Nobody.
impl Recorder for () {
    fn taken(&self, _manifest: &Manifest) {}

    fn restored(&self, _restore: Restore) {}

    fn close(&self, _last: Option<&Manifest>) -> Closed {
        Closed::default()
    }
}

/// What the tracked files were at the end.
pub(crate) fn tree(manifest: &Manifest) -> Value {
    json!({
        "snapshot": manifest.number,
        "merkle_root": manifest.merkle_root.hex(),
        "state_root": manifest.state_root.hex(),
    })
}

/// What a closed log came to.
pub(crate) fn closed(record: &SessionRecord) -> Closed {
    let integrity = record.audit_integrity.as_ref().map(|integrity| AuditIntegrity {
        hash_algorithm: integrity.hash_algorithm.clone(),
        event_count: integrity.event_count,
        chain_head: integrity.chain_head.hex(),
        merkle_root: integrity.merkle_root.hex(),
    });
    // Plain values: each of them can be put in JSON.
    let network_events = record.network_events.iter().filter_map(|event| serde_json::to_value(event).ok());
    Closed { event_count: record.audit_event_count, integrity, network_events: network_events.collect() }
}

/// What the log says of a snapshot.
pub(crate) fn snapshot(manifest: &Manifest) -> Event {
    Event::Snapshot(Snapshot {
        time_ms: now_ms(),
        number: manifest.number,
        merkle_root: manifest.merkle_root.hex(),
        state_root: manifest.state_root.hex(),
    })
}
