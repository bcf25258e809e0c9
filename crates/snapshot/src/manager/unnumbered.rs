//! Unnumbered snapshots: neither the parent of another one nor compared with the next. They keep the state of a tree at
//! some moment, and are dropped when it is no longer needed.

use super::incremental::{Now, last_of};
use super::restore::random_id;
use super::{Limits, Manifest, Result, SnapshotManager};
use crate::capture::RulesFrom;
use crate::diff::{Change, diff};
use crate::file::Sync;
use crate::manifest::SnapshotId;
use crate::objects::StoreObjects;

impl SnapshotManager {
    /// Capture the current state under the frozen rules of a snapshot, whatever ignore files say now.
    pub fn look_now_as(&mut self, rules_of: &SnapshotId) -> Result<Now> {
        let held = self.enter()?;
        let record = self.recorded()?;
        let sheet = self.whole(&record, rules_of)?;
        let frozen = self.frozen_rules(&sheet)?;
        let (roots, rules) = (sheet.state.paths(), RulesFrom::Frozen(&frozen));
        let captured = self.capture(&roots, rules, Some(&sheet.state), Limits::NONE, false)?;
        let before = last_of(&record, &self.session)?;
        Ok(Now::new(held, record, captured, before, &self.store))
    }

    /// Changes from a snapshot to the current state.
    pub fn changes_until(&self, from: &SnapshotId, now: &Now) -> Result<Vec<Change>> {
        let from = self.whole(&now.record, from)?;
        if from.state == *now.state() {
            return Ok(Vec::new());
        }
        Ok(diff(&from.state, now.state(), &StoreObjects::new(&self.store))?)
    }

    /// Whether the current state equals this snapshot; false for one that is missing or was dropped.
    pub fn is_as_in(&self, id: &SnapshotId, now: &Now) -> bool {
        self.session.sheet(&now.record, id).is_ok_and(|sheet| sheet.state == *now.state())
    }

    /// Publish it without a number, under a name that begins with `prefix` (letters).
    pub fn publish_aside(&mut self, now: Now, prefix: &str) -> Result<Manifest> {
        let Now { held, record, captured, .. } = now;
        let id = SnapshotId::Safety(format!("{prefix}-{}", random_id()?));
        self.publish(&held, record, captured, id, None)
    }

    /// Drop unnumbered snapshots completely; missing ones are ignored.
    pub fn drop_asides(&mut self, ids: &[SnapshotId]) -> Result<()> {
        let held = self.enter()?;
        let mut record = self.recorded()?;
        let before = record.snapshots.len();
        let is_aside = |id: &SnapshotId| matches!(id, SnapshotId::Safety(_)) && ids.contains(id);
        record.snapshots.retain(|recorded| !is_aside(&recorded.id));
        if record.snapshots.len() < before {
            // Durable before the manifests are removed: a record that names a missing manifest would be damage.
            self.session.save_record(&record, Sync::Yes)?;
            self.session.tidy(&held)?;
        }
        Ok(())
    }
}
