//! Roots added to a running session.
//!
//! A late root has a first snapshot, and no earlier snapshot knows it. [`SnapshotManager::whole`] alone decides what an
//! earlier snapshot stands for: its own roots, and the first state of each root added later. Everything that compares
//! with or restores a snapshot uses it. A safety snapshot belongs to one restore and stands for exactly what it holds:
//! that restore did not touch roots that it did not know.
//!
//! No two roots capture the same path. A late root inside another root must be excluded by that root's rules, otherwise
//! it is not added; a late root around others excludes those by their paths.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::{Captured, Manifest, Result, SnapshotError, SnapshotManager};
use crate::capture::RulesFrom;
use crate::coverage::{Cause, Coverage, Protection};
use crate::dirs::open_dir;
use crate::exclusion::Rules;
use crate::hash::ContentHash;
use crate::manifest::{ManifestBody, ManifestDefect, SnapshotId, is_plain};
use crate::objects::StoreObjects;
use crate::paths;
use crate::session::{LateRoot, SessionError, SnapshotList};
use crate::stat::stat_at;
use crate::state::{ObjectError, Objects, RootContent, RootState, SnapshotState};

impl SnapshotManager {
    /// Whether the entry at `path` (absolute) is captured with the current roots.
    pub fn is_tracked(&self, path: &Path) -> Result<bool> {
        let record = self.recorded()?;
        let last = self.session.newest_sheet(&record)?.ok_or_else(|| self.no_baseline())?;
        self.is_covered(&last, path)
    }

    /// Track one more path from now on, and capture it now: a snapshot with the other roots as in the last one.
    /// Restoring a snapshot before this one brings the path back to its state now. The path is absolute and resolved,
    /// and no link in it is followed; if nothing exists there, that is the state restored. Returns `None` if the path
    /// is tracked already. A path that cannot be captured, or not completely for lack of space, is an error and is not
    /// added.
    pub fn add_root(&mut self, path: &Path) -> Result<Option<Manifest>> {
        if !is_plain(path) {
            return Err(SnapshotError::NoName { path: path.to_owned() });
        }
        if self.own().iter().any(|own| path.starts_with(own)) {
            return Err(SnapshotError::OwnState { path: path.to_owned() });
        }
        let held = self.enter()?;
        let mut record = self.recorded()?;
        let last = record.last_number().ok_or_else(|| self.no_baseline())?;
        let before = self.session.newest_sheet(&record)?.ok_or_else(|| self.no_baseline())?;
        if self.is_covered(&before, path)? {
            return Ok(None);
        }
        let captured = self.capture_late(path)?;
        let first = last + 1;
        record.roots.push(path.to_owned());
        record.roots.sort();
        record.late.push(LateRoot { path: path.to_owned(), first });
        let roots = record.roots.clone();
        let joined = join(before, captured);
        let manifest = self.publish(&held, record, joined, SnapshotId::Number(first), Some(last))?;
        self.roots = roots;
        self.settle_in_background();
        Ok(Some(manifest))
    }

    /// Capture the new root alone. The others are passed along, so that a root inside it is left out.
    fn capture_late(&mut self, path: &Path) -> Result<Captured> {
        let one = [path.to_owned()];
        let all: Vec<PathBuf> = self.roots.iter().cloned().chain(one.clone()).collect();
        // The path is named explicitly, so its absence is a valid state.
        let nothing = RootState { path: path.to_owned(), content: RootContent::Absent };
        let previous = SnapshotState { roots: vec![nothing] };
        let config = self.exclusion.clone();
        let rules = RulesFrom::Live { config: &config, set_aside: &[], known: &[] };
        let captured = self.capture_of(&one, &all, rules, Some(&previous), self.limits, false, None)?;
        let refuse = |reason: String| SnapshotError::NotCaptured { path: path.to_owned(), reason };
        if let Some(RootContent::Failed(reason)) = captured.state.root(path).map(|root| &root.content) {
            return Err(refuse(reason.to_string()));
        }
        let left_out = captured.coverage.left_out.iter();
        let mut no_room = left_out.filter(|left_out| left_out.cause == Cause::OverBudget);
        match no_room.next().and_then(|left_out| left_out.examples.first()) {
            Some(example) => Err(refuse(format!("{}: {}", example.path.display(), example.reason))),
            None => Ok(captured),
        }
    }

    fn is_covered(&self, last: &ManifestBody, path: &Path) -> Result<bool> {
        if let Some(root) = last.state.root(path) {
            // A root that could not be captured when the session began has no state to restore.
            return match &root.content {
                RootContent::Failed(reason) => {
                    Err(SnapshotError::NotCaptured { path: path.to_owned(), reason: reason.to_string() })
                }
                _ => Ok(true),
            };
        }
        match crate::files::protection(&last.state, &StoreObjects::new(&self.store), path)? {
            Protection::Captured => Ok(true),
            Protection::Outside | Protection::LeftOut { .. } => Ok(false),
            Protection::NotThere => self.would_be_taken(last, path),
        }
    }

    /// Whether the rules of the enclosing root include this path, which the last snapshot has not seen.
    fn would_be_taken(&self, last: &ManifestBody, path: &Path) -> Result<bool> {
        let around = |(root, _): &(&RootState, &Option<ContentHash>)| path.starts_with(&root.path);
        let roots = last.state.roots.iter().zip(&last.rules).filter(around);
        let innermost = roots.max_by_key(|(root, _)| root.path.components().count());
        // Without rules the root was not a directory: whatever it becomes is captured as a whole.
        let Some((root, Some(rules))) = innermost else { return Ok(true) };
        let rules = Rules::frozen(&self.frozen(&last.id, *rules)?)?;
        let dir = open_dir(rustix::fs::CWD, paths::bytes(&root.path));
        let dir = dir.map_err(|source| SnapshotError::Root { path: root.path.clone(), source })?;
        let there = |below: &[u8]| stat_at(dir.as_fd(), below).is_ok();
        let is_dir = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let below = path.strip_prefix(&root.path).unwrap_or(Path::new(""));
        Ok(rules.take(dir.as_fd(), paths::bytes(below), is_dir, &there))
    }

    /// The state that a snapshot stands for with the current roots: see the module documentation.
    pub(super) fn whole(&self, record: &SnapshotList, id: &SnapshotId) -> Result<ManifestBody> {
        let mut sheet = self.session.sheet(record, id)?;
        let Some(number) = sheet.number() else { return Ok(sheet) };
        let objects = StoreObjects::new(&self.store);
        let mut added = Vec::new();
        for late in record.late.iter().filter(|late| late.first > number) {
            // If an enclosing root captured it under the rules of that time, that state is used.
            if crate::files::protection(&sheet.state, &objects, &late.path)? != Protection::Captured {
                added.push(self.first_state(record, late)?);
            }
        }
        let roots = std::mem::take(&mut sheet.state.roots).into_iter().zip(std::mem::take(&mut sheet.rules));
        (sheet.state.roots, sheet.rules) = in_order(roots.chain(added));
        Ok(sheet)
    }

    pub(super) fn first_state(&self, record: &SnapshotList, late: &LateRoot) -> Result<Captive> {
        let sheet = self.session.sheet(record, &SnapshotId::Number(late.first))?;
        let roots = sheet.state.roots.into_iter().zip(sheet.rules);
        let found = roots.into_iter().find(|(root, _)| root.path == late.path);
        let defect = ManifestDefect::OtherRoots;
        let path = self.session.dir().to_owned();
        Ok(found.ok_or(SessionError::Manifest { path, defect })?)
    }

    /// A snapshot with the first states of the roots added later, in its coverage too.
    pub fn load_whole(&self, id: &SnapshotId) -> Result<Manifest> {
        let record = self.recorded()?;
        let mut sheet = self.whole(&record, id)?;
        let own = self.session.sheet(&record, id)?.state;
        let objects = StoreObjects::new(&self.store);
        for root in sheet.state.roots.iter().filter(|root| own.root(&root.path).is_none()) {
            let more = coverage_of(root, &objects)?;
            sheet.coverage.join(more);
        }
        let durable = record.find(id).is_some_and(|recorded| recorded.durable);
        Ok(self.manifest(sheet, durable))
    }
}

/// A root and the address of its rules.
type Captive = (RootState, Option<ContentHash>);

fn in_order(roots: impl Iterator<Item = Captive>) -> (Vec<RootState>, Vec<Option<ContentHash>>) {
    let mut roots: Vec<Captive> = roots.collect();
    roots.sort_by(|(a, _), (b, _)| a.path.cmp(&b.path));
    roots.into_iter().unzip()
}

/// The last snapshot joined with a new capture.
fn join(before: ManifestBody, captured: Captured) -> Captured {
    let mut coverage = before.coverage;
    coverage.join(captured.coverage);
    let old = before.state.roots.into_iter().zip(before.rules);
    let new = captured.state.roots.into_iter().zip(captured.rules);
    let (roots, rules) = in_order(old.chain(new));
    Captured { state: SnapshotState { roots }, rules, coverage, ..captured }
}

/// Coverage of one root, computed from its nodes.
fn coverage_of(root: &RootState, objects: &dyn Objects) -> Result<Coverage, ObjectError> {
    let mut coverage = Coverage::default();
    root.content.entry().into_iter().for_each(|entry| coverage.count(&entry.kind));
    let state = SnapshotState { roots: vec![root.clone()] };
    crate::files::walk(&state, objects, |dir, node| {
        node.entries.iter().for_each(|entry| coverage.count(&entry.kind));
        coverage.leave_out(dir, &node.omitted);
    })?;
    Ok(coverage)
}
