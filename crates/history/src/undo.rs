//! Undoing a restore, and completing an interrupted one.
//!
//! The steps of a restore are undone from the last to the first, each by restoring the safety snapshot taken before it.
//! Paths changed after the restore are conflicts, and kept.

use std::path::PathBuf;

use nono_snapshot::session::SnapshotList;
use nono_snapshot::{SnapshotId, SnapshotManager};

use crate::error::{HistoryError, Result};
use crate::log::{Restore, RestoreHistory, RestoreStep, Scope};
use crate::outcome::{Done, Plan};
use crate::restore::{Begin, Details, History, Under, has_journal};

/// A step to undo.
struct Back {
    step: RestoreStep,
    /// States left by the owner and by restores: what differs from all of them was changed by others later.
    since: Vec<SnapshotId>,
}

/// An interrupted restore that the engine completed.
#[derive(Debug)]
pub struct Recovered<D> {
    /// Step for the owner to finish; None if the log did not contain it.
    pub under: Option<Under<D>>,
    pub done: Done,
}

impl History<'_> {
    /// Restore with this id, or the last one that was not undone.
    pub fn to_undo<D: Details>(&self, id: Option<&str>) -> Result<Restore<D>> {
        let log: RestoreHistory<D> = RestoreHistory::read(self.dir)?;
        find(&log, id).cloned()
    }

    /// Plan the undo of a restore. `id`: id of the restore; None for the last one that was not undone.
    pub fn plan_undo<D: Details>(&mut self, id: Option<&str>) -> Result<Plan> {
        let log: RestoreHistory<D> = RestoreHistory::read(self.dir)?;
        let steps = self.steps_back(&log, find(&log, id)?)?;
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

    /// Undo a restore. The caller holds the owner's lock.
    pub fn undo<D: Details>(&mut self, id: Option<&str>, begin: Begin<D>) -> Result<(Under<D>, Done)> {
        let log: RestoreHistory<D> = RestoreHistory::load_or_begin(self.dir)?;
        let restore = find(&log, id)?;
        let (id, steps) = (restore.id.clone(), self.steps_back(&log, restore)?);
        let target = restore.steps.last().map_or(SnapshotId::Number(0), |step| step.safety.clone());
        let mut under = Under::new(log, begin, target, Some(id));
        let mut done = Done::default();
        self.take_back(&mut under, steps, &mut done)?;
        Ok((under, done))
    }

    /// Steps of a restore, last first, each with the states that tell later changes from its own.
    fn steps_back<D>(&self, log: &RestoreHistory<D>, restore: &Restore<D>) -> Result<Vec<Back>> {
        let record = self.record()?;
        let later = self.targets_after(&record, log, &restore.id);
        let steps = restore.steps.iter().rev().map(|step| {
            let own = Some(&step.target).filter(|id| self.can_compare(&record, id)).cloned();
            Back { step: step.clone(), since: own.into_iter().chain(later.iter().cloned()).collect() }
        });
        Ok(steps.collect())
    }

    /// Numbered snapshots that were restored after the restore with this id, or all if there is no such restore.
    /// Targets of undos are not among them: an undo may have brought back what others wrote.
    fn targets_after<D>(&self, record: &SnapshotList, log: &RestoreHistory<D>, id: &str) -> Vec<SnapshotId> {
        let from = log.restores.iter().position(|restore| restore.id == id).map_or(0, |at| at + 1);
        let steps = log.restores.iter().skip(from).flat_map(|restore| &restore.steps);
        let own = |id: &&SnapshotId| matches!(id, SnapshotId::Number(_)) && self.can_compare(record, id);
        let mut targets: Vec<SnapshotId> = steps.map(|step| &step.target).filter(own).cloned().collect();
        targets.sort();
        targets.dedup();
        targets
    }

    /// Numbered snapshots that were restored in this history.
    pub fn targets<D: Details>(&self) -> Result<Vec<SnapshotId>> {
        let log: RestoreHistory<D> = RestoreHistory::load(self.dir)?;
        Ok(self.targets_after(&self.record()?, &log, ""))
    }

    /// Whether a snapshot is complete. One lost in a power failure is ignored, and stops nothing.
    fn can_compare(&self, record: &SnapshotList, id: &SnapshotId) -> bool {
        record.find(id).is_some_and(|recorded| !recorded.thinned) && self.manager.can_compare(id)
    }

    fn take_back<D: Details>(
        &mut self,
        under: &mut Under<D>,
        steps: Vec<Back>,
        done: &mut Done,
    ) -> Result<()> {
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
        under.restore.kept = done.is_left();
        Ok(())
    }

    /// Restore a safety snapshot; without `since` whatever others changed.
    fn go_back<D: Details>(
        &mut self,
        under: &mut Under<D>,
        safety: &SnapshotId,
        scope: Scope,
        since: Vec<SnapshotId>,
        done: &mut Done,
    ) -> Result<()> {
        let options = scope.options(since, false);
        let work = |manager: &mut SnapshotManager| manager.restore(safety, &options);
        done.absorb(self.step(under, Some(safety.clone()), scope, work)?);
        Ok(())
    }

    /// Whether a restore was interrupted.
    pub fn is_cut_off<D: Details>(&self) -> Result<bool> {
        Ok(has_journal(self.dir) || RestoreHistory::<D>::load(self.dir)?.take_cut_off().is_some())
    }

    /// Complete an interrupted restore, for the owner to finish under its lock; None if nothing had been changed.
    pub fn recover<D: Details>(&mut self) -> Result<Option<Recovered<D>>> {
        let mut log: RestoreHistory<D> = RestoreHistory::load_or_begin(self.dir)?;
        let mut done = Done::default();
        let restored = self.manager.recover()?;
        let met = restored.is_some();
        if let Some(restored) = restored {
            done.absorb(restored);
        }
        let Some(restore) = log.take_cut_off().filter(|_| !done.interrupted) else {
            return Ok(met.then_some(Recovered { under: None, done }));
        };
        let mut under = Under { log, restore, changed: true };
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
        }
        if !met && !under.changed {
            // Nothing was changed, so it is dropped.
            under.log.save(self.dir, None)?;
            return Ok(None);
        }
        Ok(Some(Recovered { under: Some(under), done }))
    }

    /// Without a journal, the last step was either completed or interrupted between its safety snapshot and its first
    /// change. In the second case it is dropped: its work is still to be done, and there is nothing to undo.
    fn forget_unstarted<D>(&mut self, restore: &mut Restore<D>) -> Result<()> {
        let Some(step) = restore.steps.last() else { return Ok(()) };
        let options = step.scope.options(Vec::new(), true);
        let back = self.manager.plan_restore(&step.safety, &options)?;
        // What cannot be read may have been restored.
        if back.is_empty() && back.skipped().is_empty() {
            restore.steps.pop();
        }
        Ok(())
    }
}

fn find<'a, D>(log: &'a RestoreHistory<D>, id: Option<&str>) -> Result<&'a Restore<D>> {
    let restore = match id {
        None => log.last_to_undo().ok_or(HistoryError::NothingToUndo)?,
        Some(id) => log.find(id).ok_or_else(|| HistoryError::NoSuchRestore { id: id.to_owned() })?,
    };
    if log.is_undone(&restore.id) {
        return Err(HistoryError::UndoneAlready { id: restore.id.clone() });
    }
    Ok(restore)
}

/// Steps of an undo that were not done yet.
fn rest_of_undo<D>(under: &Under<D>) -> Vec<Back> {
    let undone = under.restore.undoes.as_deref().and_then(|id| under.log.find(id));
    let steps = undone.into_iter().flat_map(|restore| restore.steps.iter().rev());
    // One step may have been undone in two: changed paths first, then those that had only been compared.
    let taken = |step: &&RestoreStep| under.restore.steps.iter().any(|taken| taken.target == step.safety);
    let left = steps.filter(|step| !taken(step));
    left.map(|step| Back { step: step.clone(), since: vec![step.target.clone()] }).collect()
}
