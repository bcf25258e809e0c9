//! Restoring when the disk is full. A restore must not need more space than it frees, and displaced contents have to be
//! stored first; so, when a safety snapshot of everything does not fit:
//!
//! - Only files selected for the restore are stored, compressed, small ones first: those cannot be moved.
//! - Large files on the store's own filesystem that do not fit stay where they are, hashed. When one is displaced it is
//!   moved into the store, which takes no space (`Store::take_in`).
//! - Files that can neither be stored nor moved stay in the tree and are named; the rest is restored.
//! - The nodes, the manifest and the journal fit in a reserve that the store keeps since the baseline.
//! - Settling, which writes temporary files, stays away while a restore runs.
//!
//! The safety snapshot names contents that are moved later. At the end those that were not moved are taken out of it,
//! so that it names only what the store holds.

use std::collections::HashSet;

use rustix::process::{Resource, getrlimit};

use super::{Limits, Result, SnapshotError, SnapshotManager};
use crate::capture::{CaptureError, Captured, Gaps, RulesFrom, Shortage};
use crate::file::Sync;
use crate::hash::ContentHash;
use crate::manifest::{ManifestBody, SnapshotId};
use crate::node::{Entry, Kind, Node, Omitted, Reason, tree_id};
use crate::objects::StoreObjects;
use crate::restore::Selection;
use crate::session::SessionHold;
use crate::state::{Objects, RootContent};
use crate::store::{Appender, ObjectKey, RESERVE, StoreError, UpkeepPause, WriteOptions};

/// Bytes kept for the manifest, the record, the journal and the caller's own files.
const RECORDS: u64 = 256 << 10;
/// Bytes for the second attempt, which stores only nodes and the smallest files: a quota may leave less than the disk.
const LEAST: u64 = 128 << 10;
/// Free space below which temporary files of maintenance could be what is missing.
const ALMOST_FULL: u64 = 64 << 20;

impl SnapshotManager {
    /// Keep upkeep away from the free space, and release the space reserved for a restore if the store's filesystem is
    /// almost full. Call it before writing anything for a restore, and hold the pause until the restore has ended; the
    /// restore itself does.
    pub fn make_room_to_restore(&self) -> Result<UpkeepPause> {
        let paused = self.store.pause_upkeep()?;
        if self.store.free_space()? < ALMOST_FULL {
            self.store.wait_for_maintenance()?;
        }
        if self.store.free_space()? < RESERVE {
            self.store.release_reserve()?;
        }
        Ok(paused)
    }

    /// Capture the current state of a snapshot's roots under its rules. If not all of it fits, only the selection.
    pub(super) fn capture_as(&mut self, target: &ManifestBody, selection: &Selection) -> Result<Captured> {
        let _paused = self.make_room_to_restore()?;
        let mut full = match self.capture_again(target, None) {
            Err(SnapshotError::Capture(error)) if error.is_full() => error,
            other => return other,
        };
        self.store.wait_for_maintenance()?;
        self.store.release_reserve()?;
        let only = match selection {
            Selection::All => None,
            Selection::Paths(paths) => Some(paths.as_slice()),
        };
        for room in self.rooms()? {
            match self.capture_again(target, Some(Shortage { only, room })) {
                Err(SnapshotError::Capture(error)) if has_no_room(&error) => full = error,
                other => return other,
            }
        }
        Err(SnapshotError::NoRoom { store: self.store.dir().to_owned(), source: Box::new(full) })
    }

    fn capture_again(&mut self, target: &ManifestBody, shortage: Option<Shortage<'_>>) -> Result<Captured> {
        let frozen = self.frozen_rules(target)?;
        let (roots, rules) = (target.state.paths(), RulesFrom::Frozen(&frozen));
        // What does not fit stays in the tree and is reported by name; the rest is restored.
        let gaps = std::mem::replace(&mut self.options.capture.gaps, Gaps::Allow);
        let captured =
            self.capture_of(&roots, &roots, rules, Some(&target.state), Limits::NONE, true, shortage);
        self.options.capture.gaps = gaps;
        captured
    }

    /// Numbers of bytes that a capture may write, for two attempts.
    fn rooms(&self) -> Result<[u64; 2]> {
        let free = self.store.free_space()?;
        let free = free.saturating_sub(RECORDS.min(free / 2));
        // A limit on the file size limits everything written, because all of it may go to one pack.
        let limit = getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX);
        let most = free.min(limit / 2);
        Ok([most, most.min(LEAST)])
    }

    /// Remove contents from safety snapshots that were neither stored nor moved into the store: they are still in the
    /// tree.
    pub(super) fn drop_unstored(
        &self,
        held: &SessionHold,
        ids: &[&SnapshotId],
        deferred: &HashSet<ContentHash>,
    ) -> Result<()> {
        let mut missing = HashSet::new();
        for hash in deferred {
            if !self.store.contains(ObjectKey::from(*hash))? {
                missing.insert(*hash);
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let mut record = self.recorded()?;
        for id in ids {
            let mut sheet = self.session.sheet(&record, id)?;
            let writer = self.store.writer(WriteOptions::default())?;
            let mut appender = writer.appender()?;
            for root in &mut sheet.state.roots {
                let RootContent::Captured(entry) = &root.content else { continue };
                root.content = self.without(entry, &missing, &mut appender)?;
            }
            appender.finish()?;
            let published = writer.publish()?;
            let mut recorded = self.session.save_manifest(&sheet)?;
            self.store.sync()?;
            self.session.sync_manifest(&recorded)?;
            recorded.durable = true;
            let place = record.snapshots.iter_mut().find(|recorded| recorded.snapshot() == **id);
            if let Some(place) = place {
                *place = recorded;
            }
            self.session.save_record(&record, Sync::Yes)?;
            drop(published);
        }
        Ok(self.session.tidy(held)?)
    }

    /// A root without these contents.
    fn without(
        &self,
        root: &Entry,
        missing: &HashSet<ContentHash>,
        appender: &mut Appender<'_>,
    ) -> Result<RootContent> {
        let tree = match root.kind {
            Kind::Dir { tree, .. } => tree,
            Kind::File { hash, size, .. } if missing.contains(&hash) => {
                return Ok(RootContent::Failed(Reason::OverBudget { size }));
            }
            _ => return Ok(RootContent::Captured(root.clone())),
        };
        let objects = StoreObjects::new(&self.store);
        let node = objects.node(tree)?;
        let mut frames = vec![TreeFrame::new(&node, missing)];
        loop {
            let Some(frame) = frames.last_mut() else { return Ok(RootContent::Captured(root.clone())) };
            if let Some(Kind::Dir { tree, .. }) = frame.next() {
                let node = objects.node(tree)?;
                frames.push(TreeFrame::new(&node, missing));
                continue;
            }
            let Some(TreeFrame { node, changed, .. }) = frames.pop() else { continue };
            let bytes = node.encode();
            let kind = Kind::Dir { tree: tree_id(&bytes), merkle: node.merkle() };
            if changed {
                appender.put(ObjectKey::from(tree_id(&bytes)), &bytes)?;
            }
            match frames.last_mut() {
                Some(above) => above.leave(kind, changed),
                None => return Ok(RootContent::Captured(Entry { kind, ..root.clone() })),
            }
        }
    }
}

/// A directory being walked.
struct TreeFrame {
    node: Node,
    at: usize,
    changed: bool,
}

impl TreeFrame {
    fn new(node: &Node, missing: &HashSet<ContentHash>) -> TreeFrame {
        let mut node = node.clone();
        let before = node.entries.len();
        let mut omitted = std::mem::take(&mut node.omitted);
        node.entries.retain(|entry| match entry.kind {
            Kind::File { hash, size, .. } if missing.contains(&hash) => {
                let reason = Reason::OverBudget { size };
                omitted.push(Omitted { name: entry.name.clone(), is_dir: false, reason, stamp: None });
                false
            }
            _ => true,
        });
        omitted.sort_by(|a, b| a.name.cmp(&b.name));
        node.omitted = omitted;
        let changed = node.entries.len() < before;
        TreeFrame { node, at: 0, changed }
    }

    /// Next subdirectory.
    fn next(&mut self) -> Option<Kind> {
        let rest = self.node.entries.get(self.at..)?;
        self.at += rest.iter().position(Entry::is_dir)?;
        Some(self.node.entries.get(self.at)?.kind.clone())
    }

    /// Finish that subdirectory.
    fn leave(&mut self, kind: Kind, changed: bool) {
        if let Some(entry) = self.node.entries.get_mut(self.at) {
            entry.kind = kind;
        }
        self.changed |= changed;
        self.at += 1;
    }
}

fn has_no_room(error: &CaptureError) -> bool {
    error.is_full() || matches!(error, CaptureError::Store(StoreError::OverBudget { .. }))
}
