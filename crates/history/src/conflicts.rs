//! Resolution of conflicts and hunks: paths that others changed since, and files of which only hunks are reverted, are
//! restored, merged or kept.
//!
//! The present content comes from the capture that a plan makes, never from the file by its path: nothing can be placed
//! in the way of a reader. A file of which hunks were reverted before is the owner's, as long as it is exactly what was
//! written.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use nono_snapshot::diff::Version;
use nono_snapshot::merge::{self, Merged};
use nono_snapshot::node::Kind;
use nono_snapshot::restore::{Skipped, Why};
use nono_snapshot::{
    Change, ChangeType, ContentHash, RestoreOptions, SnapshotError, SnapshotId, SnapshotManager,
};

use crate::error::Result;
use crate::log::{RestoreHistory, Scope};
use crate::outcome::{Merge, tidy};
use crate::repositories::file_content;
use crate::restore::History;
use crate::selection::{Conflicts, Edit, OwnerRules, SnapshotChoice};

/// Largest file that is merged.
const MERGED: u64 = 8 << 20;

/// Actions in addition to the plain restore.
#[derive(Debug, Default)]
pub(crate) struct Resolved {
    /// Paths without relevant changes by others: they are restored after all.
    pub(crate) ours: Vec<PathBuf>,
    /// Files with reverted hunks.
    pub(crate) edits: Vec<Edit>,
    /// Files merged with the changes of others.
    pub(crate) merged: Vec<Edit>,
    pub(crate) merges: Vec<Merge>,
    pub(crate) kept: Vec<Skipped>,
    /// Changes of `ours` and `edits`.
    pub(crate) changes: Vec<Change>,
    pub(crate) notes: Vec<String>,
}

/// Contents written when hunks were reverted, by path.
type Written = HashSet<(PathBuf, ContentHash)>;

/// Input of the resolution.
struct Present<'a> {
    choice: &'a SnapshotChoice,
    rule: &'a OwnerRules,
    /// Differences of paths from the target now, whatever process made them.
    changes: HashMap<PathBuf, Change>,
    written: Written,
}

impl History<'_> {
    /// Decide about all paths skipped because others changed them, and about the edits of a choice.
    pub(crate) fn resolve<D>(
        &mut self,
        choice: &SnapshotChoice,
        rule: &OwnerRules,
        log: &RestoreHistory<D>,
        except: &[PathBuf],
        mut skipped: Vec<Skipped>,
    ) -> Result<Resolved> {
        let scope = Scope { paths: choice.paths.clone(), except: except.to_vec(), contents: Vec::new() };
        let since = rule.since.clone().unwrap_or_default();
        let unchanged = self.take_unchanged(&choice.target, &scope, &since, &mut skipped)?;
        let (conflicts, kept): (Vec<Skipped>, Vec<Skipped>) =
            skipped.into_iter().partition(|skipped| skipped.why == Why::ChangedSince);
        let mut resolved =
            Resolved { kept, ours: unchanged.paths, changes: unchanged.changes, ..Resolved::default() };
        let mut paths: Vec<PathBuf> = conflicts.iter().map(|skipped| skipped.path.clone()).collect();
        paths.extend(choice.edits.iter().map(|edit| edit.path.clone()));
        if paths.is_empty() {
            return Ok(resolved);
        }
        // After this the present content is in the store.
        let options = RestoreOptions { paths, force: true, ..RestoreOptions::default() };
        let plan = self.manager.plan_restore(&choice.target, &options)?;
        let changes = plan.changes().iter().map(|change| (change.path.clone(), change)).collect();
        let present = Present { choice, rule, changes, written: written(log) };
        for conflict in conflicts {
            self.settle_conflict(&present, conflict, &mut resolved)?;
        }
        for edit in &choice.edits {
            self.settle_edit(&present, edit, &mut resolved)?;
        }
        tidy(&mut resolved.kept);
        Ok(resolved)
    }

    fn settle_conflict(
        &self,
        present: &Present<'_>,
        conflict: Skipped,
        resolved: &mut Resolved,
    ) -> Result<()> {
        // A `.git` that is kept as a whole has no change of its own.
        let change = present.changes.get(&conflict.path);
        let now = change.and_then(|change| file_content(change.old.as_ref()));
        if let (Some(change), Some(now)) = (change, now)
            && present.written.contains(&(conflict.path.clone(), now))
        {
            resolved.changes.push(change.clone());
            resolved.ours.push(conflict.path);
            return Ok(());
        }
        let target = change.and_then(|change| file_content(change.new.as_ref()));
        if let (Conflicts::Merge { markers }, Some(now), Some(target)) =
            (present.choice.conflicts, now, target)
        {
            let target = self.text(target);
            if let Some(merged) = self.merge(present, &conflict.path, now, target.as_deref())? {
                note_modes(change, resolved);
                take_merge(conflict, now, merged, markers, resolved);
                return Ok(());
            }
        }
        resolved.kept.push(conflict);
        Ok(())
    }

    fn settle_edit(&self, present: &Present<'_>, edit: &Edit, resolved: &mut Resolved) -> Result<()> {
        // As in the target: there is nothing left to revert.
        let Some(change) = present.changes.get(&edit.path) else { return Ok(()) };
        let conflict = Skipped { path: edit.path.clone(), why: Why::ChangedSince };
        let (Some(now), Some(left)) = (file_content(change.old.as_ref()), edit.left) else {
            resolved.kept.push(conflict);
            return Ok(());
        };
        let conflicts = present.choice.conflicts;
        if now == left || conflicts == Conflicts::Force {
            take_hunks(change, edit.bytes.clone(), resolved);
            return Ok(());
        }
        let ours = present.written.contains(&(edit.path.clone(), now));
        let markers = match conflicts {
            Conflicts::Merge { markers } => Some(markers),
            _ => ours.then_some(false),
        };
        match (markers, self.merge(present, &edit.path, now, Some(&edit.bytes))?) {
            // More hunks of a file of which hunks were reverted before.
            (Some(_), Some(merged)) if ours && merged.clean => take_hunks(change, merged.bytes, resolved),
            (Some(markers), Some(merged)) => take_merge(conflict, now, merged, markers, resolved),
            _ => resolved.kept.push(conflict),
        }
        Ok(())
    }

    /// Merge the present content with the wanted one; the base is what the owner left. None if that is impossible: not
    /// text, too large, or missing when the owner ended.
    fn merge(
        &self,
        present: &Present<'_>,
        path: &Path,
        now: ContentHash,
        target: Option<&[u8]>,
    ) -> Result<Option<Merged>> {
        let base = match present.rule.others.get(path) {
            Some(left) => *left,
            None => content_at(self.manager, present.rule.left.as_ref(), path)?,
        };
        let (Some(base), Some(now), Some(target)) = (base, self.text(now), target) else { return Ok(None) };
        let Some(base) = self.text(base) else { return Ok(None) };
        let labels = &present.rule.labels;
        let labels = merge::Labels { now: "now", base: &labels.base, target: &labels.target };
        Ok(merge::merge(&base, &now, target, &labels))
    }

    /// Content that can be merged by lines. Unreadable content cannot be merged, and is kept.
    fn text(&self, hash: ContentHash) -> Option<Vec<u8>> {
        self.manager.content(hash, MERGED).ok().flatten().filter(|bytes| !bytes.contains(&0))
    }
}

/// Contents that restores wrote when hunks were reverted.
fn written<D>(log: &RestoreHistory<D>) -> Written {
    let scopes = log.restores.iter().flat_map(|restore| &restore.steps).map(|step| &step.scope);
    scopes.flat_map(|scope| scope.paths.iter().cloned().zip(scope.contents.iter().copied())).collect()
}

/// Content of a file in a snapshot; None if the snapshot is gone.
pub fn content_at(
    manager: &SnapshotManager,
    id: Option<&SnapshotId>,
    path: &Path,
) -> Result<Option<ContentHash>> {
    let Some(id) = id else { return Ok(None) };
    let entry = match manager.entry(id, path) {
        Err(SnapshotError::Session(_)) => None,
        other => other?,
    };
    Ok(match entry.map(|entry| entry.kind) {
        Some(Kind::File { hash, .. }) => Some(hash),
        _ => None,
    })
}

fn take_hunks(change: &Change, bytes: Vec<u8>, resolved: &mut Resolved) {
    let edit = Edit { path: change.path.clone(), left: None, bytes };
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
    resolved.edits.push(edit);
}

fn take_merge(conflict: Skipped, now: ContentHash, merged: Merged, markers: bool, resolved: &mut Resolved) {
    resolved.merges.push(Merge { path: conflict.path.clone(), clean: merged.clean });
    if !merged.clean && !markers {
        resolved.kept.push(conflict);
        return;
    }
    let edit = Edit { path: conflict.path, left: None, bytes: merged.bytes };
    // The present file has all of it already.
    if edit.hash() != now {
        resolved.merged.push(edit);
    }
}

/// Note that a merge changes contents, not permissions.
fn note_modes(change: Option<&Change>, resolved: &mut Resolved) {
    let Some((Some(old), Some(new))) = change.map(|change| (&change.old, &change.new)) else { return };
    if let Some(change) = change
        && old.mode != new.mode
    {
        let path = change.path.display();
        resolved.notes.push(format!("{path} keeps its permissions: only contents are merged"));
    }
}
