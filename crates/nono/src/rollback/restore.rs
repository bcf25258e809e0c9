//! Putting back what a session changed, and taking that back.
//!
//! A path is a conflict when it differs from what the session left there, and from what an earlier restore put there:
//! somebody else changed it. Conflicts are kept unless forced or merged; a restore prints the id that undoes it.

use std::path::{Path, PathBuf};

use nono_snapshot::restore::{RestorePlan, Skipped, Why};
use nono_snapshot::{
    Changes, Lost, RestoreOptions, Restored, SnapshotError, SnapshotId, SnapshotManager, repository_of,
};

use super::catalogue::RollbackSession;
use super::changes::Item;
use super::conflicts::{Edit, Resolved};
use super::error::RollbackError;
use super::history::{History, Lock, Pending, Restore, Scope};
use super::later::Later;
use super::live::is_live;

/// What to do with paths that somebody else changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Conflicts {
    #[default]
    Keep,
    /// Restore them too; the safety snapshot has them.
    Force,
    /// Merge text files three ways; those that do not merge cleanly are kept, or get markers if that is wanted.
    Merge { markers: bool },
}

/// What to restore.
#[derive(Clone, Debug)]
pub struct RestoreChoice {
    pub snapshot: SnapshotId,
    /// Absolute; a directory with all that is in it. Everything when empty, unless there are `hunks`: then only those.
    pub paths: Vec<PathBuf>,
    /// These stay as they are.
    pub except: Vec<PathBuf>,
    /// Hunks to take back, by item: the item must be of the change set from `snapshot` to the session's last snapshot,
    /// hunk numbers are those of `file_diff(item, CONTEXT)`.
    pub hunks: Vec<(Item, Vec<usize>)>,
    pub conflicts: Conflicts,
}

/// The context that hunk numbers in a [`RestoreChoice`] refer to.
pub const CONTEXT: usize = 3;

/// What a restore would do.
#[derive(Debug, Default)]
pub struct Plan {
    pub changes: Changes,
    /// Everything that is done: also times and names of one file, which are no changes to people.
    pub steps: usize,
    /// Left as they are, with the reason.
    pub kept: Vec<Skipped>,
    pub merges: Vec<Merge>,
    /// What the snapshot had left out and is gone or changed: no restore brings it back.
    pub lost: Vec<Lost>,
    /// Nothing tells the command's changes from later ones: the session has no final snapshot.
    pub cannot_tell_conflicts: bool,
    /// What the session changed, what is kept, and what will run later; with the reason.
    pub still_executes: Vec<(PathBuf, Later)>,
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    pub path: PathBuf,
    pub clean: bool,
}

/// What a restore did.
#[derive(Debug, Default)]
pub struct Done {
    /// `nono rollback undo` takes it; none if nothing was changed.
    pub undo: Option<String>,
    pub changes: Changes,
    pub kept: Vec<Skipped>,
    pub merged: Vec<Merge>,
    /// As in a [`Plan`].
    pub lost: Vec<Lost>,
    /// As in a [`Plan`].
    pub still_executes: Vec<(PathBuf, Later)>,
    pub failed: Vec<(PathBuf, String)>,
    /// It was interrupted: `nono rollback recover` completes it.
    pub interrupted: bool,
    /// Why it is not in the audit log, where it should be.
    pub unrecorded: Option<String>,
}

impl RestoreChoice {
    /// Everything back to the baseline.
    pub fn everything() -> RestoreChoice {
        RestoreChoice {
            snapshot: SnapshotId::Number(0),
            paths: Vec::new(),
            except: Vec::new(),
            hunks: Vec::new(),
            conflicts: Conflicts::Keep,
        }
    }

    /// A part of a repository is neither restored nor spared by itself: its files mean nothing one by one.
    fn refuse_parts(&self) -> Result<(), RollbackError> {
        let hunks = self.hunks.iter().map(|(item, _)| &item.path);
        let mut all = self.paths.iter().chain(&self.except).chain(hunks);
        let part = all.find_map(|path| Some((path.clone(), repository_of(path)?)));
        part.map_or(Ok(()), |(path, git)| Err(RollbackError::PartOfRepository { path, git }))
    }

    /// Whether more than hunks is wanted.
    fn has_whole(&self) -> bool {
        self.hunks.is_empty() || !self.paths.is_empty()
    }

    /// Files that hunks are taken from are not restored as a whole.
    pub(super) fn scope(&self) -> Scope {
        let hunks = self.hunks.iter().map(|(item, _)| item.path.clone());
        Scope {
            paths: self.paths.clone(),
            except: self.except.iter().cloned().chain(hunks).collect(),
            contents: Vec::new(),
        }
    }
}

impl Plan {
    pub(super) fn absorb(&mut self, plan: &RestorePlan) {
        self.changes.extend(plan.changes());
        self.steps += plan.len();
        self.kept.extend_from_slice(plan.skipped());
        add_lost(&mut self.lost, plan.lost());
        let linked = plan.notes().iter().map(|note| {
            format!("{} has other names outside: those keep the present file", note.path.display())
        });
        self.notes.extend(linked);
    }
}

impl Done {
    /// Everything is as it was: nothing was kept, lost or failed.
    pub fn is_whole(&self) -> bool {
        self.kept.is_empty() && self.lost.is_empty() && self.failed.is_empty() && !self.interrupted
    }

    pub(super) fn absorb(&mut self, restored: Restored) {
        let outcome = restored.outcome;
        self.interrupted |= outcome.cancelled;
        self.changes.extend(outcome.changes);
        self.kept.extend(outcome.skipped);
        add_lost(&mut self.lost, &outcome.lost);
        let failed = outcome.failed.into_iter().map(|failed| (failed.path, plain(&failed.error.to_string())));
        self.failed.extend(failed);
    }
}

/// Each path once, however many steps met it.
fn add_lost(all: &mut Vec<Lost>, more: &[Lost]) {
    for one in more {
        if !all.iter().any(|known| known.path == one.path) {
            all.push(one.clone());
        }
    }
}

impl Scope {
    pub(super) fn options(&self, keep_changed_since: Vec<SnapshotId>, force: bool) -> RestoreOptions {
        RestoreOptions { paths: self.paths.clone(), except: self.except.clone(), keep_changed_since, force }
    }
}

/// A restore that is under way, after all those before it.
pub(super) struct Under {
    _lock: Lock,
    pub(super) history: History,
    pub(super) restore: Restore,
    /// Anything at all.
    pub(super) changed: bool,
}

impl Under {
    pub(super) fn new(lock: Lock, history: History, restore: Restore) -> Under {
        Under { _lock: lock, history, restore, changed: false }
    }
}

impl RollbackSession {
    /// What a restore would do; nothing is touched, except that one that was cut off is completed first.
    pub fn plan(&mut self, choice: &RestoreChoice) -> Result<Plan, RollbackError> {
        choice.refuse_parts()?;
        self.ready(&choice.snapshot)?;
        let since = self.since()?;
        let mut plan = Plan { cannot_tell_conflicts: since.is_none(), ..Plan::default() };
        if choice.has_whole() {
            let force = choice.conflicts == Conflicts::Force;
            let options = choice.scope().options(since.unwrap_or_default(), force);
            plan.absorb(&self.manager.plan_restore(&choice.snapshot, &options)?);
        }
        let Resolved { ours, hunks, merged, merges, kept, changes, notes } =
            self.resolve(choice, std::mem::take(&mut plan.kept))?;
        drop((ours, hunks, merged));
        plan.changes.extend(changes.into());
        plan.merges = merges;
        plan.still_executes = self.still_executing(&choice.snapshot, &kept)?;
        plan.kept = kept;
        plan.notes.extend(notes);
        plan.notes.extend(self.manager.take_completed().iter().map(ToString::to_string));
        Ok(plan)
    }

    /// Refused while a session is live on one of these roots.
    pub fn restore(&mut self, choice: &RestoreChoice) -> Result<Done, RollbackError> {
        choice.refuse_parts()?;
        self.ready(&choice.snapshot)?;
        self.recorded(self.chosen(choice), |session| session.put_back(choice))
    }

    fn put_back(&mut self, choice: &RestoreChoice) -> Result<Done, RollbackError> {
        let (lock, history) = self.history()?;
        let since = self.since()?.unwrap_or_default();
        let sequence = self.catalogue.next_sequence()?;
        let restore = history.begin(&self.entry.id, sequence, choice.snapshot.clone(), None);
        let mut under = Under::new(lock, history, restore);
        let mut done = Done::default();
        let target = &choice.snapshot;
        if choice.has_whole() {
            let scope = choice.scope();
            let options = scope.options(since, choice.conflicts == Conflicts::Force);
            let work = |manager: &mut SnapshotManager| manager.restore(target, &options);
            done.absorb(self.step(&mut under, Some(target.clone()), scope, work)?);
        }
        if !done.interrupted {
            let resolved = self.resolve(choice, std::mem::take(&mut done.kept))?;
            self.settle_conflicts(&mut under, choice, resolved, &mut done);
        }
        under.restore.kept = done.kept.iter().any(|kept| kept.why == Why::ChangedSince);
        done.undo = self.finish(&mut under, !done.interrupted)?;
        self.warn(&choice.snapshot, &mut done);
        Ok(done)
    }

    /// Say what is kept and will run. What was done must be told even if this cannot be.
    fn warn(&self, target: &SnapshotId, done: &mut Done) {
        match self.still_executing(target, &done.kept) {
            Ok(still) => done.still_executes = still,
            Err(error) => {
                let what = format!("what is kept may run later, which could not be looked up: {error}");
                done.failed.push((self.entry.dir.clone(), plain(&what)));
            }
        }
    }

    /// Restore what only we had changed, then write what was merged or cut. A part that fails is reported; what was done
    /// before it stays, and can be undone.
    fn settle_conflicts(
        &mut self,
        under: &mut Under,
        choice: &RestoreChoice,
        resolved: Resolved,
        done: &mut Done,
    ) {
        done.kept = resolved.kept;
        if !resolved.ours.is_empty() {
            let scope = Scope { paths: resolved.ours, ..choice.scope() };
            let (options, paths) = (scope.options(Vec::new(), true), scope.paths.clone());
            let work = |manager: &mut SnapshotManager| manager.restore(&choice.snapshot, &options);
            let restored = self.step(under, Some(choice.snapshot.clone()), scope, work);
            take_in(done, restored, &paths);
        }
        self.write(under, resolved.hunks, true, done);
        if self.write(under, resolved.merged, false, done) {
            done.merged = resolved.merges;
        }
    }

    /// Give files new bytes. Says whether that went well.
    fn write(&mut self, under: &mut Under, edits: Vec<Edit>, ours: bool, done: &mut Done) -> bool {
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

    /// Before anything: nobody works in these roots, and no restore is half done.
    pub(super) fn ready(&mut self, target: &SnapshotId) -> Result<(), RollbackError> {
        self.refuse_live()?;
        self.manager.make_room_to_restore()?;
        self.recovered = self.recover()?;
        let known = self.record()?.find(target).is_some();
        let missing = || RollbackError::NoSnapshot { id: self.entry.id.clone(), snapshot: target.clone() };
        if known { Ok(()) } else { Err(missing()) }
    }

    pub(super) fn refuse_live(&self) -> Result<(), RollbackError> {
        let roots = self.manager.roots();
        if !self.running && is_live(&self.entry.dir) {
            let root = roots.first().cloned().unwrap_or_default();
            return Err(RollbackError::Live { id: self.entry.id.clone(), root });
        }
        match self.catalogue.live_on(roots, self.running.then_some(&*self.entry.dir))? {
            Some((id, root)) => Err(RollbackError::Live { id, root }),
            None => Ok(()),
        }
    }

    pub(super) fn has_journal(&self) -> bool {
        self.entry.dir.join(JOURNAL).symlink_metadata().is_ok()
    }

    /// The final snapshot, if it was taken: what the session left. A run says which one it is; of a session that was made
    /// by others it is the last one, if their description knows it.
    pub(super) fn final_snapshot(&self) -> Result<Option<SnapshotId>, RollbackError> {
        let record = self.record()?;
        let metadata = &self.entry.metadata;
        let last = if self.entry.foreign { record.last_number() } else { metadata.final_snapshot };
        let Some(last) = last.filter(|_| metadata.ended.is_some()) else { return Ok(None) };
        let id = SnapshotId::Number(last);
        let root = record.find(&id).map(|recorded| recorded.merkle_root);
        let named = usize::try_from(last).ok().and_then(|last| metadata.merkle_roots.get(last)).copied();
        let is_it = named.is_some() && named == root;
        // One that cannot be read, as after a loss of power, tells nothing; the others restore without it.
        Ok((is_it && self.manager.can_compare(&id)).then_some(id))
    }

    /// What the session, or a restore of ours, may have left at a path. None: that cannot be told.
    pub(super) fn since(&self) -> Result<Option<Vec<SnapshotId>>, RollbackError> {
        let Some(last) = self.final_snapshot()? else { return Ok(None) };
        let mut since = vec![last];
        since.extend(self.targets_after(&History::load(&self.entry.dir)?, "")?);
        since.dedup();
        Ok(Some(since))
    }

    /// The session's own snapshots that restores went to after this one. Where an undo went to is not among them: it may
    /// have brought back what somebody else wrote.
    pub(super) fn targets_after(
        &self,
        history: &History,
        id: &str,
    ) -> Result<Vec<SnapshotId>, RollbackError> {
        let record = self.record()?;
        let from = history.restores.iter().position(|restore| restore.id == id).map_or(0, |at| at + 1);
        let steps = history.restores.iter().skip(from).flat_map(|restore| &restore.steps);
        let known = |id: &SnapshotId| record.find(id).is_some() && self.manager.can_compare(id);
        let own = |id: &&SnapshotId| matches!(id, SnapshotId::Number(_)) && known(id);
        let mut targets: Vec<SnapshotId> = steps.map(|step| &step.target).filter(own).cloned().collect();
        targets.sort();
        targets.dedup();
        Ok(targets)
    }

    pub(super) fn history(&self) -> Result<(Lock, History), RollbackError> {
        let lock = Lock::take(&self.entry.dir)?;
        // With the lock held: whoever begins now sees it, and whoever began before is seen.
        self.refuse_live()?;
        self.catalogue.refuse_restoring(self.manager.roots(), &self.entry.dir)?;
        Ok((lock, History::load_or_begin(&self.entry.dir)?))
    }

    /// One step of the engine, written down before and after.
    pub(super) fn step(
        &mut self,
        under: &mut Under,
        target: Option<SnapshotId>,
        scope: Scope,
        work: impl FnOnce(&mut SnapshotManager) -> Result<Restored, SnapshotError>,
    ) -> Result<Restored, RollbackError> {
        let recorded = self.record()?.snapshots.len();
        under.restore.pending = Some(Pending { target, scope, recorded });
        under.history.save(&self.entry.dir, Some(&under.restore))?;
        let result = work(&mut self.manager);
        match &result {
            Ok(restored) if !restored.cancelled => {
                under.changed |= restored.done > 0 || !restored.kept.is_empty();
                under.restore.settle(&self.record()?);
            }
            // Nothing was touched yet.
            Err(_) if !self.has_journal() => under.restore.pending = None,
            // It is completed by whoever comes next.
            _ => {}
        }
        let begun = under.restore.pending.is_some() || !under.restore.steps.is_empty();
        under.history.save(&self.entry.dir, Some(&under.restore).filter(|_| begun))?;
        Ok(result?)
    }

    /// The id that undoes it all; none, and nothing to remember, if nothing was changed.
    pub(super) fn finish(&self, under: &mut Under, complete: bool) -> Result<Option<String>, RollbackError> {
        under.restore.complete = complete;
        let counts = under.changed || !complete;
        under.history.save(&self.entry.dir, Some(&under.restore).filter(|_| counts))?;
        Ok(counts.then(|| under.restore.id.clone()))
    }
}

/// Take in what a later part of a restore came to. Says whether that went well.
fn take_in(done: &mut Done, restored: Result<Restored, RollbackError>, paths: &[PathBuf]) -> bool {
    match restored {
        Ok(restored) => done.absorb(restored),
        Err(error) => {
            done.failed.extend(paths.iter().map(|path| (path.clone(), plain(&error.to_string()))));
            return false;
        }
    }
    !done.interrupted
}

/// Whether a capture of this session was killed that had opened up what is closed to its own owner.
pub(super) fn left_open(session: &Path) -> bool {
    session.join("unlocked").symlink_metadata().is_ok()
}

/// A message for people: without Rust's "(os error N)", wherever in it an error of the system is told.
fn plain(message: &str) -> String {
    let mut parts = message.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| match part.split_once(')') {
        Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => text + rest,
        // Not Rust's: it is part of a name.
        _ => text + " (os error " + part,
    })
}

/// The engine's, in a session's folder, while a restore is not complete.
pub(super) const JOURNAL: &str = "restore.journal";

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn messages_have_no_numbers() {
        let error = std::io::Error::from_raw_os_error(1);
        assert!(error.to_string().contains("os error 1"), "{error}");
        assert_eq!(plain(&format!("cannot change it: {error}")), "cannot change it: Operation not permitted");
        assert_eq!(
            plain(&format!("{error}; {error}, twice")),
            "Operation not permitted; Operation not permitted, twice"
        );
        assert_eq!(plain("a (os error x) b"), "a (os error x) b");
        assert_eq!(plain("a (os error "), "a (os error ");
    }
}
