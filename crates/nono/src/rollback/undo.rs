//! Taking back a restore, and completing one that was cut off.
//!
//! The steps of a restore are undone from the last to the first, each by going to the safety snapshot that it had taken.
//! What somebody changed after it is a conflict, and kept.

use std::path::{Path, PathBuf};

use nono_snapshot::{SnapshotId, SnapshotManager};

use super::catalogue::{Catalogue, RollbackSession, SessionEntry, Status};
use super::error::RollbackError;
use super::history::{History, Restore, Scope, Step};
use super::restore::{Done, Plan, Under, left_open};

/// A step to be undone.
struct Back {
    step: Step,
    /// What differs from all of these was changed by somebody else after it.
    since: Vec<SnapshotId>,
}

impl RollbackSession {
    /// What undoing a restore would do. `undo`: the id that the restore gave; the last one that was not undone if none.
    pub fn plan_undo(&mut self, undo: Option<&str>) -> Result<Plan, RollbackError> {
        self.ready(&SnapshotId::Number(0))?;
        let history = History::read(&self.entry.dir)?;
        let (_, steps) = self.to_undo(&history, undo)?;
        let mut plan = Plan::default();
        let mut before: Vec<PathBuf> = Vec::new();
        for Back { step, since } in steps {
            let scope = step.scope_without(&before);
            before.extend(step.scope.paths.iter().cloned());
            let options = scope.options(since.clone(), false);
            let mut kept = std::mem::take(&mut plan.kept);
            plan.absorb(&self.manager.plan_restore(&step.safety, &options)?);
            let unchanged = self.take_unchanged(&step.safety, &scope, &since, &mut plan.kept)?;
            plan.changes.extend(unchanged.changes.into());
            plan.kept.append(&mut kept);
        }
        plan.notes.extend(self.manager.take_completed().iter().map(ToString::to_string));
        Ok(plan)
    }

    pub fn undo(&mut self, undo: Option<&str>) -> Result<Done, RollbackError> {
        self.ready(&SnapshotId::Number(0))?;
        let history = History::read(&self.entry.dir)?;
        let (id, steps) = self.to_undo(&history, undo)?;
        let target = steps.first().map_or(SnapshotId::Number(0), |back| back.step.safety.clone());
        let subject = self.subject(history.find(&id)).to(target);
        self.recorded(subject, |session| session.undo_now(undo))
    }

    fn undo_now(&mut self, undo: Option<&str>) -> Result<Done, RollbackError> {
        let (lock, history) = self.history()?;
        let (id, steps) = self.to_undo(&history, undo)?;
        let target = steps.first().map_or(SnapshotId::Number(0), |back| back.step.safety.clone());
        let sequence = self.catalogue.next_sequence()?;
        let restore = history.begin(&self.entry.id, sequence, target, Some(id));
        let mut under = Under::new(lock, history, restore);
        let mut done = Done::default();
        self.take_back(&mut under, steps, &mut done)?;
        Ok(done)
    }

    /// The restore to undo, and its steps, the last one first, each with what tells later changes from its own.
    fn to_undo(&self, history: &History, undo: Option<&str>) -> Result<(String, Vec<Back>), RollbackError> {
        let restore = match undo {
            None => history
                .last_to_undo()
                .ok_or_else(|| RollbackError::NothingToUndo { id: self.entry.id.clone() })?,
            Some(undo) => {
                history.find(undo).ok_or_else(|| RollbackError::NoSuchRestore { undo: undo.to_owned() })?
            }
        };
        if history.is_undone(&restore.id) {
            return Err(RollbackError::UndoneAlready { undo: restore.id.clone() });
        }
        let later = self.targets_after(history, &restore.id)?;
        let steps = restore.steps.iter().rev().map(|step| {
            let since = std::iter::once(step.target.clone()).chain(later.iter().cloned());
            Back { step: step.clone(), since: since.collect() }
        });
        Ok((restore.id.clone(), steps.collect()))
    }

    fn take_back(
        &mut self,
        under: &mut Under,
        steps: Vec<Back>,
        done: &mut Done,
    ) -> Result<(), RollbackError> {
        let taken = under.restore.steps.iter();
        let mut before: Vec<PathBuf> = taken.flat_map(|step| step.scope.paths.clone()).collect();
        for Back { step, since } in steps {
            let scope = step.scope_without(&before);
            before.extend(step.scope.paths.iter().cloned());
            let mut kept = std::mem::take(&mut done.kept);
            self.go_back(under, &step.safety, scope.clone(), since.clone(), done)?;
            if !done.interrupted {
                let unchanged = self.take_unchanged(&step.safety, &scope, &since, &mut done.kept)?;
                if !unchanged.paths.is_empty() {
                    let scope = Scope { paths: unchanged.paths, ..scope };
                    self.go_back(under, &step.safety, scope, Vec::new(), done)?;
                }
            }
            done.kept.append(&mut kept);
            if done.interrupted {
                break;
            }
        }
        done.undo = self.finish(under, !done.interrupted)?;
        Ok(())
    }

    /// To a safety snapshot; without `since` whoever changed what.
    fn go_back(
        &mut self,
        under: &mut Under,
        safety: &SnapshotId,
        scope: Scope,
        since: Vec<SnapshotId>,
        done: &mut Done,
    ) -> Result<(), RollbackError> {
        let options = scope.options(since, false);
        let work = |manager: &mut SnapshotManager| manager.restore(safety, &options);
        done.absorb(self.step(under, Some(safety.clone()), scope, work)?);
        Ok(())
    }

    /// Complete a restore that was cut off, if there is one.
    pub fn recover(&mut self) -> Result<Option<Done>, RollbackError> {
        if let Some(done) = self.recovered.take() {
            return Ok(Some(done));
        }
        let cut_off = History::load(&self.entry.dir)?.take_cut_off().is_some();
        if !cut_off && !self.has_journal() {
            // A running session there looks after what is open; so does the next one who comes.
            if left_open(&self.entry.dir) && self.refuse_live().is_ok() {
                self.manager.recover()?;
            }
            return Ok(None);
        }
        self.refuse_live()?;
        let mut met = true;
        let completed = self.recorded(self.cut_off()?, |session| {
            let done = session.complete()?;
            met = done.is_some();
            Ok(done.unwrap_or_default())
        })?;
        Ok(met.then_some(completed))
    }

    /// None: it had not begun to change anything.
    fn complete(&mut self) -> Result<Option<Done>, RollbackError> {
        let (lock, mut history) = self.history()?;
        let mut done = Done::default();
        let restored = self.manager.recover()?;
        let met = restored.is_some();
        if let Some(restored) = restored {
            done.absorb(restored);
        }
        let Some(restore) = history.take_cut_off().filter(|_| !done.interrupted) else {
            return Ok(met.then_some(done));
        };
        let mut under = Under::new(lock, history, restore);
        under.changed = true;
        let taken = under.restore.steps.len();
        under.restore.settle(&self.record()?);
        if under.restore.steps.len() > taken && !met {
            self.forget_unstarted(&mut under.restore)?;
        }
        if under.restore.undoes.is_some() {
            let left = rest_of_undo(&under);
            self.take_back(&mut under, left, &mut done)?;
        } else {
            under.changed = !under.restore.steps.is_empty();
            done.undo = self.finish(&mut under, true)?;
        }
        Ok((met || done.undo.is_some()).then_some(done))
    }

    /// With no journal, the last step was either completed or cut off between its safety snapshot and its first change.
    /// The second is no step: what it was to do is still to be done, and there is nothing to undo.
    fn forget_unstarted(&mut self, restore: &mut Restore) -> Result<(), RollbackError> {
        let Some(step) = restore.steps.last() else { return Ok(()) };
        let options = step.scope.options(Vec::new(), true);
        let back = self.manager.plan_restore(&step.safety, &options)?;
        // What cannot be looked at may have been restored.
        if back.is_empty() && back.skipped().is_empty() {
            restore.steps.pop();
        }
        Ok(())
    }

    /// What completing a restore that was cut off did, if a plan, a restore or an undo met one. Asked once, it is forgotten.
    pub fn take_recovered(&mut self) -> Option<Done> {
        self.recovered.take()
    }
}

impl Step {
    /// What it was about, without what later steps of the same restore were: those are back before it is undone, and it
    /// had left them as they were.
    fn scope_without(&self, later: &[PathBuf]) -> Scope {
        let mut except = self.scope.except.clone();
        except.extend(later.iter().filter(|path| !self.scope.except.contains(path)).cloned());
        Scope { paths: self.scope.paths.clone(), except, contents: Vec::new() }
    }
}

/// The steps of an undo that were not taken yet.
fn rest_of_undo(under: &Under) -> Vec<Back> {
    let undone = under.restore.undoes.as_deref().and_then(|id| under.history.find(id));
    let steps = undone.into_iter().flat_map(|restore| restore.steps.iter().rev());
    // One step may have been undone in two: what was changed, then what had only been looked at.
    let taken = |step: &&Step| under.restore.steps.iter().any(|taken| taken.target == step.safety);
    let left = steps.filter(|step| !taken(step));
    left.map(|step| Back { step: step.clone(), since: vec![step.target.clone()] }).collect()
}

impl Catalogue {
    /// The sessions to undo in a directory, newest first: those that changed something there, or at these paths, and were
    /// not undone. Each undo goes one further back.
    pub fn to_undo_in(&self, dir: &Path, paths: &[PathBuf]) -> Result<Vec<SessionEntry>, RollbackError> {
        let here = self.here(dir)?;
        if here.is_empty() {
            let last = self.list()?.0.into_iter().next().map(Box::new);
            return Err(RollbackError::NoneHere { dir: dir.to_owned(), last });
        }
        let mut to_undo = Vec::new();
        for entry in here {
            // What runs is refused by name, not passed over.
            let running = entry.status == Status::Live;
            if !running && (entry.is_empty() || History::load(&entry.dir)?.has_brought_back(paths)) {
                continue;
            }
            if running || paths.is_empty() || self.has_changed(&entry, paths)? {
                to_undo.push(entry);
            }
        }
        Ok(to_undo)
    }

    /// The session whose restore is the last one in a directory that was not undone, if that kept something: whoever now
    /// forces or merges means that one.
    pub fn last_kept_in(&self, dir: &Path) -> Result<Option<SessionEntry>, RollbackError> {
        let Some(entry) = last_restored(self.here(dir)?)? else { return Ok(None) };
        let kept = History::load(&entry.dir)?.last_to_undo().is_some_and(|restore| restore.kept);
        Ok(kept.then_some(entry))
    }

    /// Whether a session changed anything at these paths; one that is not known to have ended may have.
    fn has_changed(&self, entry: &SessionEntry, paths: &[PathBuf]) -> Result<bool, RollbackError> {
        let session = self.open(entry.clone())?;
        let Some(last) = session.final_snapshot()? else { return Ok(true) };
        let mut changed = false;
        session.manager.each_change(&SnapshotId::Number(0), &last, &mut |change| {
            changed |=
                paths.iter().any(|path| change.path.starts_with(path) || path.starts_with(&change.path));
        })?;
        Ok(changed)
    }

    /// The session whose restore is the last one that was not undone.
    pub fn last_restored(&self) -> Result<SessionEntry, RollbackError> {
        last_restored(self.list()?.0)?.ok_or(RollbackError::NoRestores)
    }

    /// The same of those that worked in a directory.
    pub fn last_restored_in(&self, dir: &Path) -> Result<SessionEntry, RollbackError> {
        last_restored(self.here(dir)?)?.ok_or_else(|| RollbackError::NoRestoresHere { dir: dir.to_owned() })
    }

    /// The session of a restore, by the id that undoes it.
    pub fn find_restore(&self, undo: &str) -> Result<SessionEntry, RollbackError> {
        let missing = || RollbackError::NoSuchRestore { undo: undo.to_owned() };
        let (session, _) = undo.rsplit_once('.').ok_or_else(missing)?;
        let (sessions, _) = self.list()?;
        let entry = sessions.into_iter().find(|entry| entry.id == session).ok_or_else(missing)?;
        let there = History::load(&entry.dir)?.find(undo).is_some();
        if there { Ok(entry) } else { Err(missing()) }
    }
}

fn last_restored(sessions: Vec<SessionEntry>) -> Result<Option<SessionEntry>, RollbackError> {
    let mut last: Option<((Option<u64>, u64), SessionEntry)> = None;
    for entry in sessions {
        let history = History::load(&entry.dir)?;
        let Some(at) = history.last_to_undo().map(|restore| (restore.sequence, restore.at)) else {
            continue;
        };
        if last.as_ref().is_none_or(|(then, _)| *then < at) {
            last = Some((at, entry));
        }
    }
    Ok(last.map(|(_, entry)| entry))
}
