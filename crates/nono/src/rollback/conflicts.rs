//! What becomes of paths that somebody else changed, and of files that only hunks are taken from.
//!
//! The present bytes come from the capture that a plan makes, never from the tree by its path: nothing can be put in the
//! way of a reader. A file that hunks were taken from before is ours, as long as it is exactly what we wrote.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use nono_snapshot::diff::Version;
use nono_snapshot::hash::content_hash;
use nono_snapshot::merge::{self, Labels, Merged};
use nono_snapshot::node::Kind;
use nono_snapshot::restore::{Skipped, Why};
use nono_snapshot::{Change, ChangeType, ContentHash, RestoreOptions};

use super::catalogue::RollbackSession;
use super::changes::Item;
use super::error::RollbackError;
use super::history::History;
use super::repositories::file;
use super::restore::{CONTEXT, Conflicts, Merge, RestoreChoice};

/// Larger files are not merged.
const MERGED: u64 = 8 << 20;

/// A file and its new bytes.
#[derive(Debug)]
pub(super) struct Edit {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
}

impl Edit {
    pub(super) fn hash(&self) -> ContentHash {
        content_hash(&self.bytes)
    }
}

/// What is to be done beside the plain restore.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    /// Nobody else changed anything in them that matters: they are restored after all.
    pub(super) ours: Vec<PathBuf>,
    /// Hunks were taken back.
    pub(super) hunks: Vec<Edit>,
    /// With what somebody else wrote in it.
    pub(super) merged: Vec<Edit>,
    pub(super) merges: Vec<Merge>,
    pub(super) kept: Vec<Skipped>,
    /// Of `ours` and `hunks`.
    pub(super) changes: Vec<Change>,
    pub(super) notes: Vec<String>,
}

/// Contents that were written when hunks were taken back, by path.
type Written = HashSet<(PathBuf, ContentHash)>;

impl RollbackSession {
    /// Decide about everything that was skipped because somebody changed it, and about the hunks of a choice.
    pub(super) fn resolve(
        &mut self,
        choice: &RestoreChoice,
        mut skipped: Vec<Skipped>,
    ) -> Result<Resolved, RollbackError> {
        let since = self.since()?.unwrap_or_default();
        let unchanged = self.take_unchanged(&choice.snapshot, &choice.scope(), &since, &mut skipped)?;
        let (conflicts, kept): (Vec<Skipped>, Vec<Skipped>) =
            skipped.into_iter().partition(|skipped| skipped.why == Why::ChangedSince);
        let mut resolved =
            Resolved { kept, ours: unchanged.paths, changes: unchanged.changes, ..Resolved::default() };
        let mut paths: Vec<PathBuf> = conflicts.iter().map(|skipped| skipped.path.clone()).collect();
        paths.extend(choice.hunks.iter().map(|(item, _)| item.path.clone()));
        if paths.is_empty() {
            return Ok(resolved);
        }
        let written = self.written()?;
        let present = self.present(choice, paths)?;
        for conflict in conflicts {
            self.settle_conflict(choice, conflict, &present, &written, &mut resolved)?;
        }
        for (item, hunks) in &choice.hunks {
            self.cut_hunks(choice, item, hunks, &present, &written, &mut resolved)?;
        }
        resolved.kept.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(resolved)
    }

    /// How these paths differ from the target now, whoever changed them. Their bytes are in the store after this.
    fn present(
        &mut self,
        choice: &RestoreChoice,
        paths: Vec<PathBuf>,
    ) -> Result<HashMap<PathBuf, Change>, RollbackError> {
        let options = RestoreOptions { paths, force: true, ..RestoreOptions::default() };
        let plan = self.manager.plan_restore(&choice.snapshot, &options)?;
        Ok(plan.changes().iter().map(|change| (change.path.clone(), change)).collect())
    }

    fn written(&self) -> Result<Written, RollbackError> {
        let history = History::load(&self.entry.dir)?;
        let scopes = history.restores.iter().flat_map(|restore| &restore.steps).map(|step| &step.scope);
        Ok(scopes.flat_map(|scope| scope.paths.iter().cloned().zip(scope.contents.iter().copied())).collect())
    }

    fn settle_conflict(
        &self,
        choice: &RestoreChoice,
        conflict: Skipped,
        present: &HashMap<PathBuf, Change>,
        written: &Written,
        resolved: &mut Resolved,
    ) -> Result<(), RollbackError> {
        // A `.git` that is kept as a whole has no change of its own.
        let change = present.get(&conflict.path);
        let now = change.and_then(|change| file(change.old.as_ref()));
        if let (Some(change), Some(now)) = (change, now)
            && written.contains(&(conflict.path.clone(), now))
        {
            resolved.changes.push(change.clone());
            resolved.ours.push(conflict.path);
            return Ok(());
        }
        let target = change.and_then(|change| file(change.new.as_ref()));
        if let (Conflicts::Merge { markers }, Some(now), Some(target)) = (choice.conflicts, now, target) {
            let theirs = self.text(target)?;
            if let Some(merged) = self.merge(choice, &conflict.path, now, theirs.as_deref())? {
                note_modes(change, resolved);
                take_merge(conflict, now, merged, markers, resolved);
                return Ok(());
            }
        }
        resolved.kept.push(conflict);
        Ok(())
    }

    fn cut_hunks(
        &self,
        choice: &RestoreChoice,
        item: &Item,
        hunks: &[usize],
        present: &HashMap<PathBuf, Change>,
        written: &Written,
        resolved: &mut Resolved,
    ) -> Result<(), RollbackError> {
        // It is what it was before the session: there is nothing left to take back.
        let Some(change) = present.get(&item.path) else { return Ok(()) };
        let conflict = Skipped { path: item.path.clone(), why: Why::ChangedSince };
        let (Some(now), Some(last)) = (file(change.old.as_ref()), file(item.new.as_ref())) else {
            resolved.kept.push(conflict);
            return Ok(());
        };
        let bytes = self.without_hunks(item, CONTEXT, hunks)?;
        if now == last || choice.conflicts == Conflicts::Force {
            take_hunks(change, bytes, resolved);
            return Ok(());
        }
        let ours = written.contains(&(item.path.clone(), now));
        let markers = match choice.conflicts {
            Conflicts::Merge { markers } => Some(markers),
            _ => ours.then_some(false),
        };
        match (markers, self.merge(choice, &item.path, now, Some(&bytes))?) {
            // More hunks of a file that hunks were taken from before.
            (Some(_), Some(merged)) if ours && merged.clean => take_hunks(change, merged.bytes, resolved),
            (Some(markers), Some(merged)) => take_merge(conflict, now, merged, markers, resolved),
            _ => resolved.kept.push(conflict),
        }
        Ok(())
    }

    /// Merge what is there now with what is to be there; what the session left is what both come from. None where that
    /// cannot be done: not text, too large, or not there when the session ended.
    fn merge(
        &self,
        choice: &RestoreChoice,
        path: &Path,
        now: ContentHash,
        theirs: Option<&[u8]>,
    ) -> Result<Option<Merged>, RollbackError> {
        let Some(last) = self.final_snapshot()? else { return Ok(None) };
        let Some(Kind::File { hash, .. }) = self.manager.entry(&last, path)?.map(|entry| entry.kind) else {
            return Ok(None);
        };
        let (Some(base), Some(ours), Some(theirs)) = (self.text(hash)?, self.text(now)?, theirs) else {
            return Ok(None);
        };
        let target = format!("snapshot {}", choice.snapshot);
        let labels = Labels { now: "now", base: "what the session left", target: &target };
        Ok(merge::merge(&base, &ours, theirs, &labels))
    }

    /// A content that lines can be merged of.
    fn text(&self, hash: ContentHash) -> Result<Option<Vec<u8>>, RollbackError> {
        Ok(self.manager.content(hash, MERGED)?.filter(|bytes| !bytes.contains(&0)))
    }
}

fn take_hunks(change: &Change, bytes: Vec<u8>, resolved: &mut Resolved) {
    let edit = Edit { path: change.path.clone(), bytes };
    let size = edit.bytes.len() as u64;
    let new = change.old.clone().map(|old| Version { hash: Some(edit.hash()), size: Some(size), ..old });
    let before = change.old.as_ref().and_then(|old| old.size).unwrap_or(0);
    resolved.changes.push(Change {
        path: change.path.clone(),
        change_type: ChangeType::Modified,
        size_delta: size.cast_signed().saturating_sub(before.cast_signed()),
        old: change.old.clone(),
        new,
    });
    resolved.hunks.push(edit);
}

fn take_merge(conflict: Skipped, now: ContentHash, merged: Merged, markers: bool, resolved: &mut Resolved) {
    resolved.merges.push(Merge { path: conflict.path.clone(), clean: merged.clean });
    if !merged.clean && !markers {
        resolved.kept.push(conflict);
        return;
    }
    let edit = Edit { path: conflict.path, bytes: merged.bytes };
    // What is there has it all already.
    if edit.hash() != now {
        resolved.merged.push(edit);
    }
}

/// A merge is of contents; of permissions it knows nothing.
fn note_modes(change: Option<&Change>, resolved: &mut Resolved) {
    let Some((Some(old), Some(new))) = change.map(|change| (&change.old, &change.new)) else { return };
    if let Some(change) = change
        && old.mode != new.mode
    {
        let path = change.path.display();
        resolved.notes.push(format!("{path} keeps its permissions: only contents are merged"));
    }
}
