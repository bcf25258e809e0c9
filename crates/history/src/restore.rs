//! A restore: prepare if the owner's rule requires it, restore, resolve the conflicts, record everything in the log.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nono_snapshot::restore::{ActionKind, RestorePlan, Skipped, Why};
use nono_snapshot::session::SnapshotList;
use nono_snapshot::{RestoreOptions, Restored, SnapshotError, SnapshotId, SnapshotManager};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::conflicts::Resolved;
use crate::error::Result;
use crate::log::{Pending, Restore, RestoreHistory, Scope};
use crate::outcome::{Done, Plan, plain, tidy};
use crate::repositories::git_of;
use crate::selection::{Conflicts, Edit, OwnerRules, Repositories, SnapshotChoice};

/// Journal of the engine in an owner's folder, while a restore is incomplete.
const JOURNAL: &str = "restore.journal";

/// Whether a restore of the history in this folder was interrupted, or is in progress.
pub fn has_journal(dir: &Path) -> bool {
    dir.join(JOURNAL).symlink_metadata().is_ok()
}

/// Snapshots of one owner, in its folder.
#[derive(Debug)]
pub struct History<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) manager: &'a mut SnapshotManager,
}

/// What is known about a restore before its first change.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) options: RestoreOptions,
    kept: Vec<Skipped>,
    /// Repositories that differ and are left alone.
    repositories: Vec<PathBuf>,
    /// Paths that others changed, and that are restored by force.
    pub forced: Vec<PathBuf>,
}

/// Header of a new log entry.
#[derive(Clone, Debug)]
pub struct Begin<D> {
    /// First part of its id; unique with the number that follows.
    pub prefix: String,
    pub sequence: Option<u64>,
    pub details: Option<D>,
}

/// A restore that was made but is not complete in the log: the owner does its own part, then finishes it.
#[derive(Debug)]
#[must_use]
pub struct Under<D> {
    pub log: RestoreHistory<D>,
    pub restore: Restore<D>,
    /// Whether anything was changed.
    pub(crate) changed: bool,
}

impl<D> Under<D> {
    pub(crate) fn new(
        log: RestoreHistory<D>,
        begin: Begin<D>,
        target: SnapshotId,
        undoes: Option<String>,
    ) -> Under<D> {
        let restore = log.begin(&begin.prefix, target);
        let restore = Restore { sequence: begin.sequence, details: begin.details, undoes, ..restore };
        Under { log, restore, changed: false }
    }

    /// Whether the file system was changed.
    pub fn has_changed(&self) -> bool {
        self.changed
    }
}

impl<'a> History<'a> {
    pub fn new(dir: &'a Path, manager: &'a mut SnapshotManager) -> History<'a> {
        History { dir, manager }
    }

    pub(crate) fn record(&self) -> Result<SnapshotList> {
        Ok(self.manager.session().record()?.unwrap_or_default())
    }

    /// Plan a restore; nothing is changed.
    pub fn plan<D: Details>(&mut self, choice: &SnapshotChoice, rule: &OwnerRules) -> Result<Plan> {
        self.plan_parts::<D>([(choice, rule)])
    }

    /// Plan a restore in parts that have no paths in common.
    pub fn plan_parts<'p, D: Details>(
        &mut self,
        parts: impl IntoIterator<Item = (&'p SnapshotChoice, &'p OwnerRules)>,
    ) -> Result<Plan> {
        let log: RestoreHistory<D> = RestoreHistory::load(self.dir)?;
        let mut plan = Plan::default();
        for (choice, rule) in parts {
            let prepared = self.prepare(choice, rule)?;
            plan.cannot_tell_conflicts |= rule.since.is_none();
            plan.repositories.extend(prepared.repositories);
            let mut whole = Plan { kept: prepared.kept, ..Plan::default() };
            if choice.has_whole() {
                whole.absorb(&self.manager.plan_restore(&choice.target, &prepared.options)?);
            }
            let Plan { changes, steps, kept: mut skipped, lost, notes, .. } = whole;
            tidy(&mut skipped);
            let resolved = self.resolve(choice, rule, &log, &prepared.options.except, skipped)?;
            plan.changes.extend(changes);
            plan.changes.extend(resolved.changes.into());
            plan.steps += steps;
            plan.lost.extend(lost);
            plan.merges.extend(resolved.merges);
            plan.kept.extend(resolved.kept);
            plan.notes.extend(notes.into_iter().chain(resolved.notes));
        }
        plan.notes.extend(self.manager.take_completed().iter().map(ToString::to_string));
        Ok(plan)
    }

    /// Determine what the rule excludes and what force overrides, before anything is changed.
    pub fn prepare(&mut self, choice: &SnapshotChoice, rule: &OwnerRules) -> Result<Prepared> {
        choice.refuse_parts()?;
        let force = choice.conflicts == Conflicts::Force;
        let options = choice.scope().options(rule.since.clone().unwrap_or_default(), force);
        let mut prepared =
            Prepared { options, kept: Vec::new(), repositories: Vec::new(), forced: Vec::new() };
        if rule.is_plain() {
            return Ok(prepared);
        }
        let first = self.manager.plan_restore(&choice.target, &prepared.options)?;
        let leaves = rule.repositories == Repositories::LeaveAlone;
        if leaves {
            prepared.leave_repositories(&first);
        }
        let changed: BTreeSet<PathBuf> = first.changes().iter().map(|change| change.path).collect();
        if rule.contents_only {
            prepared.only_contents(&changed, &removed(&first), self.manager.roots());
        }
        let in_the_way = self.in_the_way(&choice.target, rule, &changed)?;
        if force {
            prepared.forced = in_the_way;
            prepared.forced.extend(self.forced(&choice.target, &prepared.options)?);
        } else {
            let told = in_the_way.iter().filter(|path| !(leaves && git_of(path).is_some()));
            let conflict = |path: &PathBuf| Skipped { path: path.clone(), why: Why::ChangedSince };
            prepared.kept.extend(told.map(conflict));
            prepared.options.except.extend(in_the_way);
        }
        prepared.options.except.sort();
        prepared.options.except.dedup();
        Ok(prepared)
    }

    /// Paths of others that a restore would change. For a folder that is also one in the target, its content decides.
    fn in_the_way(
        &self,
        target: &SnapshotId,
        rule: &OwnerRules,
        changed: &BTreeSet<PathBuf>,
    ) -> Result<Vec<PathBuf>> {
        let mut in_the_way = Vec::new();
        for path in rule.others.keys().filter(|path| changed.iter().any(|one| one.starts_with(path))) {
            let is_dir = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
            if !(is_dir && self.manager.entry(target, path)?.is_some_and(|entry| entry.is_dir())) {
                in_the_way.push(path.clone());
            }
        }
        Ok(in_the_way)
    }

    /// Paths that would be kept without force.
    fn forced(&mut self, target: &SnapshotId, options: &RestoreOptions) -> Result<Vec<PathBuf>> {
        if options.keep_changed_since.is_empty() {
            return Ok(Vec::new());
        }
        let plan = self.manager.plan_restore(target, &RestoreOptions { force: false, ..options.clone() })?;
        let skipped = plan.skipped().iter().filter(|skipped| skipped.why == Why::ChangedSince);
        Ok(skipped.map(|skipped| skipped.path.clone()).collect())
    }

    /// Carry out a prepared restore. The caller holds the owner's lock and has completed an interrupted restore.
    pub fn restore<D: Details>(
        &mut self,
        choice: &SnapshotChoice,
        rule: &OwnerRules,
        prepared: Prepared,
        begin: Begin<D>,
    ) -> Result<(Under<D>, Done)> {
        self.restore_parts([(choice, rule, prepared)], choice.target.clone(), begin)
    }

    /// Carry out a restore in parts that have no paths in common: one log entry undoes all of them.
    pub fn restore_parts<'p, D: Details>(
        &mut self,
        parts: impl IntoIterator<Item = (&'p SnapshotChoice, &'p OwnerRules, Prepared)>,
        target: SnapshotId,
        begin: Begin<D>,
    ) -> Result<(Under<D>, Done)> {
        let mut under = Under::new(RestoreHistory::load_or_begin(self.dir)?, begin, target, None);
        let mut done = Done::default();
        for (choice, rule, prepared) in parts {
            self.restore_part(&mut under, &mut done, choice, rule, prepared)?;
        }
        Ok((under, done))
    }

    /// Restore one part, unless an earlier part was interrupted.
    fn restore_part<D: Details>(
        &mut self,
        under: &mut Under<D>,
        done: &mut Done,
        choice: &SnapshotChoice,
        rule: &OwnerRules,
        prepared: Prepared,
    ) -> Result<()> {
        if done.interrupted {
            return Ok(());
        }
        done.cannot_tell_conflicts |= rule.since.is_none();
        done.repositories.extend(prepared.repositories);
        // What earlier parts kept is settled already.
        let settled = std::mem::replace(&mut done.kept, prepared.kept);
        let except = prepared.options.except.clone();
        if choice.has_whole() {
            let RestoreOptions { paths, except, .. } = &prepared.options;
            let scope = Scope { paths: paths.clone(), except: except.clone(), contents: Vec::new() };
            let work = |manager: &mut SnapshotManager| manager.restore(&choice.target, &prepared.options);
            done.absorb(self.step(under, Some(choice.target.clone()), scope, work)?);
        }
        tidy(&mut done.kept);
        if !done.interrupted {
            let skipped = std::mem::take(&mut done.kept);
            let resolved = self.resolve(choice, rule, &under.log, &except, skipped)?;
            self.settle_conflicts(under, choice, &except, resolved, done);
        }
        done.kept.splice(0..0, settled);
        under.restore.kept = done.is_left();
        Ok(())
    }

    /// Restore paths that only the owner had changed, then write merged files and reverted hunks. A part that fails is
    /// reported; what was done before stays, and can be undone.
    fn settle_conflicts<D: Details>(
        &mut self,
        under: &mut Under<D>,
        choice: &SnapshotChoice,
        except: &[PathBuf],
        resolved: Resolved,
        done: &mut Done,
    ) {
        done.kept = resolved.kept;
        if !resolved.ours.is_empty() {
            let scope = Scope { paths: resolved.ours, except: except.to_vec(), contents: Vec::new() };
            let (options, paths) = (scope.options(Vec::new(), true), scope.paths.clone());
            let work = |manager: &mut SnapshotManager| manager.restore(&choice.target, &options);
            let restored = self.step(under, Some(choice.target.clone()), scope, work);
            take_in(done, restored, &paths);
        }
        self.write(under, resolved.edits, true, done);
        if self.write(under, resolved.merged, false, done) {
            done.merged.extend(resolved.merges);
        }
    }

    /// Write new content to files; false on failure.
    fn write<D: Details>(
        &mut self,
        under: &mut Under<D>,
        edits: Vec<Edit>,
        ours: bool,
        done: &mut Done,
    ) -> bool {
        if edits.is_empty() || done.interrupted {
            return !done.interrupted;
        }
        let paths: Vec<PathBuf> = edits.iter().map(|edit| edit.path.clone()).collect();
        let contents = edits.iter().filter(|_| ours).map(Edit::hash).collect();
        let scope = Scope { paths: paths.clone(), except: Vec::new(), contents };
        let edits: Vec<(PathBuf, Vec<u8>)> = edits.into_iter().map(|edit| (edit.path, edit.bytes)).collect();
        let restored = self.step(under, None, scope, |manager| manager.edit(&edits));
        take_in(done, restored, &paths)
    }

    /// One step of the engine, recorded in the log before and after.
    pub(crate) fn step<D: Details>(
        &mut self,
        under: &mut Under<D>,
        target: Option<SnapshotId>,
        scope: Scope,
        work: impl FnOnce(&mut SnapshotManager) -> Result<Restored, SnapshotError>,
    ) -> Result<Restored> {
        let recorded = self.record()?.snapshots.len();
        under.restore.pending = Some(Pending { target, scope, recorded });
        under.log.save(self.dir, Some(&under.restore))?;
        let result = work(self.manager);
        match &result {
            Ok(restored) if !restored.cancelled => {
                under.changed |= restored.done > 0 || !restored.kept.is_empty();
                under.restore.settle(&self.record()?);
            }
            // Nothing was touched yet.
            Err(_) if !has_journal(self.dir) => under.restore.pending = None,
            // Completed by the next command.
            _ => {}
        }
        let begun = under.restore.pending.is_some() || !under.restore.steps.is_empty();
        under.log.save(self.dir, Some(&under.restore).filter(|_| begun))?;
        Ok(result?)
    }

    /// Save details that the owner added.
    pub fn save<D: Details>(&self, under: &Under<D>) -> Result<()> {
        under.log.save(self.dir, Some(&under.restore))
    }

    /// Complete the log entry, and return the id that undoes it; None, and no entry, if nothing was changed.
    pub fn finish<D: Details>(&self, under: &mut Under<D>, done: &mut Done) -> Result<()> {
        under.restore.complete = !done.interrupted;
        let counts = under.changed || done.interrupted;
        under.log.save(self.dir, Some(&under.restore).filter(|_| counts))?;
        done.undo = counts.then(|| under.restore.id.clone());
        Ok(())
    }
}

impl Prepared {
    /// Exclude existing repositories that a plan would touch. A missing one is restored with the rest. Those that were
    /// asked for, or that the target does not contain, are reported.
    fn leave_repositories(&mut self, plan: &RestorePlan) {
        let is_there = |git: &&Path| git.symlink_metadata().is_ok();
        let mut there: BTreeSet<PathBuf> = BTreeSet::new();
        let mut told: BTreeSet<PathBuf> = BTreeSet::new();
        for action in plan.actions() {
            let Some(git) = git_of(&action.path).filter(is_there) else { continue };
            there.insert(git.to_owned());
            if action.path == git && is_removal(action.kind) {
                told.insert(git.to_owned());
            }
        }
        let skipped = plan.skipped().iter().filter_map(|skipped| git_of(&skipped.path));
        there.extend(skipped.filter(is_there).map(Path::to_owned));
        let chosen = &self.options.paths;
        told.extend(
            chosen.iter().filter(|path| git_of(path).is_some_and(|git| there.contains(git))).cloned(),
        );
        self.kept.extend(told.into_iter().map(|path| Skipped { path, why: Why::Repository }));
        self.repositories.extend(there.iter().cloned());
        self.options.except.extend(there);
    }

    /// Limit the restore to contents, symlinks and modes of known paths: the target's other metadata is invented.
    fn only_contents(&mut self, changed: &BTreeSet<PathBuf>, removed: &[PathBuf], roots: &[PathBuf]) {
        self.options.except.extend(removed.iter().cloned());
        let kept = changed.iter().filter(|path| !removed.contains(path));
        self.options.paths = kept.map(|path| first_missing(path, roots)).collect();
        self.options.paths.dedup();
        if self.options.paths.is_empty() {
            // An empty list would mean all paths.
            self.options.except.extend(roots.iter().cloned());
        }
    }
}

/// Owner's own part of a log entry.
pub trait Details: Clone + Serialize + DeserializeOwned {}

impl<D: Clone + Serialize + DeserializeOwned> Details for D {}

fn is_removal(kind: ActionKind) -> bool {
    matches!(kind, ActionKind::Delete | ActionKind::RemoveDirectory)
}

/// Paths that a plan would remove.
fn removed(plan: &RestorePlan) -> Vec<PathBuf> {
    plan.actions().filter(|action| is_removal(action.kind)).map(|action| action.path).collect()
}

/// Topmost missing folder above a path, so that an undo removes it too; the path itself if there is none.
fn first_missing(path: &Path, roots: &[PathBuf]) -> PathBuf {
    let above = path.ancestors().take_while(|above| !roots.iter().any(|root| root == above));
    above.filter(|above| above.symlink_metadata().is_err()).last().unwrap_or(path).to_owned()
}

/// Add the result of a later part of a restore; false on failure.
fn take_in(done: &mut Done, restored: Result<Restored>, paths: &[PathBuf]) -> bool {
    match restored {
        Ok(restored) => done.absorb(restored),
        Err(error) => {
            done.failed.extend(paths.iter().map(|path| (path.clone(), plain(&error.to_string()))));
            return false;
        }
    }
    !done.interrupted
}
