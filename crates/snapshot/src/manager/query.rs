//! Reading snapshots.

use std::path::Path;

use super::{Manifest, Result, SnapshotManager};
use crate::diff::{Change, Lost, each_change, lost, sort};
use crate::hash::ContentHash;
use crate::manifest::SnapshotId;
use crate::node::Entry;
use crate::objects::StoreObjects;
use crate::store::ObjectKey;

impl SnapshotManager {
    pub fn load_manifest(&self, number: u32) -> Result<Manifest> {
        self.load(&SnapshotId::Number(number))
    }

    /// Load any snapshot, numbered or safety.
    pub fn load(&self, id: &SnapshotId) -> Result<Manifest> {
        let record = self.recorded()?;
        let sheet = self.session.sheet(&record, id)?;
        let durable = record.find(id).is_some_and(|recorded| recorded.durable);
        Ok(self.manifest(sheet, durable))
    }

    /// All snapshots, in the order they were taken.
    pub fn snapshots(&self) -> Result<Vec<SnapshotId>> {
        let record = self.session.record()?.unwrap_or_default();
        Ok(record.snapshots.iter().map(crate::session::Recorded::snapshot).collect())
    }

    /// Changes from one snapshot to another.
    pub fn diff(&self, from: &SnapshotId, to: &SnapshotId) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        self.each_change(from, to, &mut |change| changes.push(change))?;
        sort(&mut changes);
        Ok(changes)
    }

    /// The same, each change as it is found, in no particular order: the whole list may be larger than everything else.
    pub fn each_change(
        &self,
        from: &SnapshotId,
        to: &SnapshotId,
        found: &mut dyn FnMut(Change),
    ) -> Result<()> {
        let record = self.recorded()?;
        let from = self.whole(&record, from)?;
        let to = self.whole(&record, to)?;
        Ok(each_change(&from.state, &to.state, &StoreObjects::new(&self.store), found)?)
    }

    /// Entries that one snapshot excluded and that are gone or changed in another.
    pub fn losses(&self, from: &SnapshotId, to: &SnapshotId) -> Result<Vec<Lost>> {
        let record = self.recorded()?;
        let (from, to) = (self.whole(&record, from)?, self.whole(&record, to)?);
        Ok(lost(&from.state, &to.state, &StoreObjects::new(&self.store))?)
    }

    /// Entry of a snapshot at this path (absolute); `None` if it did not exist or was excluded.
    pub fn entry(&self, id: &SnapshotId, path: &Path) -> Result<Option<Entry>> {
        let sheet = self.whole(&self.recorded()?, id)?;
        Ok(crate::files::entry(&sheet.state, &StoreObjects::new(&self.store), path)?)
    }

    /// A file's content, checked; `None` if it is larger than `limit` bytes.
    pub fn content(&self, hash: ContentHash, limit: u64) -> Result<Option<Vec<u8>>> {
        Ok(self.store.read_up_to(ObjectKey::from(hash), limit)?)
    }
}
