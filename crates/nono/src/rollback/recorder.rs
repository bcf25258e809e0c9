//! Who writes down what the snapshots of a run were, outside the session itself.

use std::fmt::Debug;

use nono_audit::event::Restore;
use nono_snapshot::{AuditIntegrity, Manifest};

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
