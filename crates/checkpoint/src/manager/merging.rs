//! Text files that both the agent and somebody else changed, merged three ways: what is there now, what is to be there,
//! and what the agent had left as that which both come from.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use nono_snapshot::merge::{Labels, Merged, merge};
use nono_snapshot::node::Kind;
use nono_snapshot::restore::{Skipped, Why};
use nono_snapshot::{Change, ContentHash, RestoreOptions, Restored, SnapshotError, SnapshotId};

use super::open::Open;
use super::restore::Prepared;
use crate::error::CheckpointError;
use crate::history::Checkpoint;
use crate::marks::Theirs;

/// Larger files are not merged.
const MERGED: u64 = 8 << 20;

/// Files and their new bytes.
#[derive(Debug, Default)]
pub(super) struct Merging(Vec<(PathBuf, Vec<u8>)>);

impl Merging {
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.0.iter().map(|(path, _)| path.clone()).collect()
    }

    fn has(&self, skipped: &Skipped) -> bool {
        skipped.why == Why::ChangedSince && self.0.iter().any(|(path, _)| *path == skipped.path)
    }

    pub(super) fn without_merged(&self, kept: Vec<Skipped>) -> Vec<Skipped> {
        kept.into_iter().filter(|skipped| !self.has(skipped)).collect()
    }

    /// What was kept in the end.
    pub(super) fn kept_after(&self, kept: &[Skipped], merged: &[PathBuf]) -> Vec<Skipped> {
        let done = |skipped: &&Skipped| !(self.has(skipped) && merged.contains(&skipped.path));
        kept.iter().filter(done).cloned().collect()
    }
}

impl Open {
    /// Merge what can be merged of the conflicts. What does not merge cleanly is kept, or gets markers.
    pub(super) fn merging(
        &mut self,
        line: &Checkpoint,
        mark: Option<&SnapshotId>,
        theirs: &Theirs,
        kept: &[Skipped],
        markers: bool,
    ) -> Result<Merging, CheckpointError> {
        let conflicts = kept.iter().filter(|skipped| skipped.why == Why::ChangedSince);
        let paths: Vec<PathBuf> = conflicts.map(|skipped| skipped.path.clone()).collect();
        if paths.is_empty() {
            return Ok(Merging::default());
        }
        // The present bytes come from a capture: nothing can be put in the way of a reader.
        let options = RestoreOptions { paths: paths.clone(), force: true, ..RestoreOptions::default() };
        let plan = self.manager.plan_restore(&line.snapshot_id(), &options)?;
        let present: HashMap<PathBuf, Change> =
            plan.changes().into_iter().map(|change| (change.path.clone(), change)).collect();
        let target = format!("checkpoint {}", line.id.short());
        let labels = Labels { now: "now", base: "what the agent left", target: &target };
        let mut merging = Merging::default();
        for path in paths {
            let Some(change) = present.get(&path) else { continue };
            let base = match theirs.left(&path) {
                Some(left) => Some(left),
                None => self.content_at(mark, &path)?,
            };
            let hash = |side: Option<&nono_snapshot::diff::Version>| side.and_then(|version| version.hash);
            let (now, then) = (hash(change.old.as_ref()), hash(change.new.as_ref()));
            let (Some(base), Some(now), Some(then)) = (base, now, then) else { continue };
            let (Some(base), Some(now), Some(then)) = (self.text(base), self.text(now), self.text(then))
            else {
                continue;
            };
            match merge(&base, &now, &then, &labels) {
                Some(Merged { bytes, clean }) if clean || markers => merging.0.push((path, bytes)),
                _ => {}
            }
        }
        Ok(merging)
    }

    /// The content that a snapshot has at a path; nothing where it is gone itself.
    pub(super) fn content_at(
        &self,
        id: Option<&SnapshotId>,
        path: &Path,
    ) -> Result<Option<ContentHash>, CheckpointError> {
        let Some(id) = id else { return Ok(None) };
        let entry = match self.manager.entry(id, path) {
            Err(SnapshotError::Session(_)) => None,
            other => other?,
        };
        Ok(match entry.map(|entry| entry.kind) {
            Some(Kind::File { hash, .. }) => Some(hash),
            _ => None,
        })
    }

    /// A content that lines can be merged of. One that is not stored any more cannot be.
    fn text(&self, hash: ContentHash) -> Option<Vec<u8>> {
        self.manager.content(hash, MERGED).ok().flatten().filter(|bytes| !bytes.contains(&0))
    }

    /// Write what was merged, after the restore. A file that changed meanwhile is the engine's to keep.
    pub(super) fn merge(
        &mut self,
        mut restored: Restored,
        prepared: &Prepared,
    ) -> Result<(Restored, Vec<PathBuf>), CheckpointError> {
        if prepared.merging.0.is_empty() || restored.outcome.cancelled {
            return Ok((restored, Vec::new()));
        }
        let edited = self.manager.edit(&prepared.merging.0)?;
        let more = edited.outcome;
        restored.outcome.cancelled |= more.cancelled;
        restored.outcome.changes.extend(more.changes);
        restored.outcome.failed.extend(more.failed);
        restored.outcome.skipped.extend(more.skipped);
        Ok((restored, prepared.merging.paths()))
    }
}
