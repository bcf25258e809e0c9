//! What follows a restore: it is written down, the marks are moved, the agent is told. Also for one that was cut off and
//! that the engine completed, and for taking one back.

use std::path::Path;

use nono_snapshot::session::Recorded;
use nono_snapshot::{Change, Changes, Next, RestoreOptions, SnapshotId};

use super::open::{Bounds, Open};
use super::restore::random_id;
use super::{CheckpointManager, Completed, Note, Outcome, Plan};
use crate::error::CheckpointError;
use crate::history::TurnLink;
use crate::marks::{Marks, Theirs, asides};
use crate::notes;
use crate::restores::{OnePath, Restore, Restores, Scope, plain};

/// So many names are told to an agent.
const TOLD: usize = 100;

impl CheckpointManager {
    /// What taking the last restore back would do; nothing is touched.
    pub fn plan_undo(&mut self, dir: &Path) -> Result<Plan, CheckpointError> {
        let mut open = self.open(dir, Bounds::None)?;
        let Undoing { safety, options, .. } = open.undoing()?;
        let plan = open.manager.plan_restore(&safety, &options)?;
        Ok(Plan {
            project: open.workdir().to_owned(),
            changes: plan.changes(),
            kept: plan.skipped().to_vec(),
            lost: plan.lost().to_vec(),
            ..Plan::default()
        })
    }

    /// Take the last restore of the project back. What somebody changed after it is kept.
    pub fn undo(&mut self, dir: &Path) -> Result<Outcome, CheckpointError> {
        let mut open = self.open(dir, Bounds::None)?;
        let Undoing { last, safety, options } = open.undoing()?;
        let recorded = open.record()?.snapshots.len();
        let restore = Restore {
            id: random_id()?,
            time: nono_sys::time::now_iso(),
            who: self.who.clone(),
            safety: None,
            made: Vec::new(),
            recorded,
            turns: Vec::new(),
            undoes: Some(last.id.clone()),
            scope: Scope { except: Vec::new(), ..last.scope.clone() },
            ..last.clone()
        };
        restore.begin(&open.folder)?;
        let restored = open.carry_out(&safety, &options)?;
        let mut outcome = Outcome {
            project: open.workdir().to_owned(),
            checkpoint: last.checkpoint.clone(),
            changes: Changes::default(),
            kept: Vec::new(),
            failed: Vec::new(),
            lost: Vec::new(),
            merged: Vec::new(),
            turns_undone: Vec::new(),
            unattributed: false,
            repositories: Vec::new(),
            undo: String::new(),
            safety: Some(restored.safety.clone()),
            interrupted: false,
        };
        outcome.absorb(restored);
        open.complete(restore, &mut outcome)?;
        self.tell_back(&open, &last);
        Ok(outcome)
    }

    /// What restores of this conversation undid and the agent was not told yet; asked once, it is forgotten.
    pub fn take_notes(&self, agent: &str, session: &str) -> Result<Vec<Note>, CheckpointError> {
        self.take_notes_about(agent, session, |_| true)
    }

    /// The same, about some projects only.
    pub fn take_notes_about(
        &self,
        agent: &str,
        session: &str,
        about: impl Fn(&Note) -> bool,
    ) -> Result<Vec<Note>, CheckpointError> {
        notes::take(&self.host, &crate::origin::bounded(agent), &crate::origin::bounded(session), about)
    }

    /// Let the agents know whose work is gone. That they cannot be told is no reason to call the restore a failure.
    pub(super) fn tell(&self, open: &Open, outcome: &Outcome, turns: &[TurnLink]) {
        if outcome.changes.is_empty() {
            return;
        }
        let name = |change: Change| {
            let below = change.path.strip_prefix(&outcome.project).unwrap_or(&change.path);
            below.to_string_lossy().into_owned()
        };
        let files: Vec<String> = outcome.changes.iter().take(TOLD).map(name).collect();
        for (agent, session) in conversations(open, turns, outcome) {
            let own = |link: &&TurnLink| is_of(link, &agent, &session);
            let note = Note {
                project: outcome.project.clone(),
                checkpoint: outcome.checkpoint.id.clone(),
                turns_undone: turns.iter().filter(own).map(|link| link.turn.clone()).collect(),
                files: files.clone(),
                restore: outcome.undo.clone(),
                came_back: false,
            };
            let _ = notes::add(&self.host, &agent, &session, note);
        }
    }

    /// Their work is there again. As above.
    fn tell_back(&self, open: &Open, restore: &Restore) {
        let mut told = Vec::new();
        for link in &restore.turns {
            let (Some(agent), Some(session)) = (&link.agent, &link.session) else { continue };
            if told.contains(&(agent, session)) {
                continue;
            }
            told.push((agent, session));
            if notes::withdraw(&self.host, agent, session, &restore.id).unwrap_or(false) {
                continue;
            }
            let own = restore.turns.iter().filter(|link| is_of(link, agent, session));
            let note = Note {
                project: open.workdir().to_owned(),
                checkpoint: restore.checkpoint.id.clone(),
                turns_undone: own.map(|link| link.turn.clone()).collect(),
                files: Vec::new(),
                restore: restore.id.clone(),
                came_back: true,
            };
            let _ = notes::add(&self.host, agent, session, note);
        }
    }
}

/// What takes a restore back.
struct Undoing {
    last: Restore,
    safety: SnapshotId,
    options: RestoreOptions,
}

impl Open {
    fn undoing(&self) -> Result<Undoing, CheckpointError> {
        let nothing = || CheckpointError::NothingToUndo { project: self.workdir().to_owned() };
        let last = Restores::load(&self.folder)?.last().cloned().ok_or_else(nothing)?;
        let safety = last.safety.clone().ok_or_else(nothing)?;
        let record = self.record()?;
        let there = |id: &&SnapshotId| record.find(id).is_some_and(|recorded| !recorded.thinned);
        let options = RestoreOptions {
            paths: plain(&last.scope.paths),
            except: plain(&last.scope.except),
            keep_changed_since: last.made.iter().filter(there).cloned().collect(),
            force: false,
        };
        Ok(Undoing { last, safety, options })
    }
}

fn is_of(link: &TurnLink, agent: &str, session: &str) -> bool {
    link.agent.as_deref() == Some(agent) && link.session.as_deref() == Some(session)
}

/// Those whose turns are gone; after a restore of some files, all who worked since the checkpoint.
fn conversations(open: &Open, turns: &[TurnLink], outcome: &Outcome) -> Vec<(String, String)> {
    let since: Vec<TurnLink> = if turns.is_empty() {
        open.history.turns_after(&outcome.checkpoint).cloned().collect()
    } else {
        turns.to_vec()
    };
    let mut all: Vec<(String, String)> = Vec::new();
    for link in since {
        if let (Some(agent), Some(session)) = (link.agent, link.session)
            && !all.contains(&(agent.clone(), session.clone()))
        {
            all.push((agent, session));
        }
    }
    all
}

impl Open {
    /// A restore is done: write it down, and say what undoes it.
    pub(super) fn complete(
        &mut self,
        mut restore: Restore,
        outcome: &mut Outcome,
    ) -> Result<(), CheckpointError> {
        if outcome.interrupted {
            // Whoever comes next completes it.
            return Ok(());
        }
        restore.safety.clone_from(&outcome.safety);
        let changed = !outcome.changes.is_empty();
        if changed {
            outcome.undo.clone_from(&restore.id);
        }
        let whole = outcome.kept.is_empty() && outcome.failed.is_empty();
        self.write_restore(restore, &outcome.changes, changed, whole)
    }

    fn write_restore(
        &mut self,
        mut restore: Restore,
        changes: &Changes,
        counts: bool,
        whole: bool,
    ) -> Result<(), CheckpointError> {
        let mut restores = Restores::load(&self.folder)?;
        if counts {
            self.move_mark(&restore, changes)?;
            self.turn_back(&restore, &mut restores, whole)?;
            let record = self.record()?;
            let fresh = record.snapshots.iter().skip(restore.recorded).map(Recorded::snapshot);
            restore.made.extend(fresh.filter(is_edit));
            restores.0.push(restore);
            restores.save(&self.folder)?;
        }
        Restore::over(&self.folder)?;
        self.drop_unneeded(&restores)
    }

    /// What was restored is ours now, and neither the agent's doing nor somebody else's.
    fn move_mark(&mut self, restore: &Restore, changes: &Changes) -> Result<(), CheckpointError> {
        if !restore.marked {
            return Ok(());
        }
        let mut theirs = Theirs::load(&self.folder)?;
        let marks = Marks::load(&self.folder)?;
        let newest = self.record()?.newest();
        let now = match newest {
            Some(newest) => self.manager.look_now_as(&newest.into())?,
            None => self.manager.look_now(Next::default())?,
        };
        if let Some(mark) = marks.mark().filter(|_| !marks.has_open_calls()) {
            // What differed before, and was kept, is somebody else's still. A mark that is gone tells nothing.
            let differs = self.manager.changes_until(mark, &now).unwrap_or_default();
            for change in &differs {
                theirs.add(&change.path, change.old.as_ref().and_then(|old| old.hash));
            }
        }
        for change in changes.iter() {
            theirs.remove(&change.path);
        }
        if restore.undoes.is_some() {
            for their in &restore.forced {
                theirs.set(&their.path, their.left);
            }
        } else {
            // With what somebody else wrote in it, it comes from what the checkpoint has there.
            for OnePath(path) in &restore.merged {
                theirs.set(path, self.content_at(Some(&restore.checkpoint.snapshot_id()), path)?);
            }
        }
        theirs.save(&self.folder)?;
        marks.set(&self.folder, &mut self.manager, now)
    }

    /// Its turns are gone; or those of the restore that it took back are there again.
    /// A part that was taken back leaves the rest to be taken back.
    fn turn_back(
        &mut self,
        restore: &Restore,
        restores: &mut Restores,
        whole: bool,
    ) -> Result<(), CheckpointError> {
        let mut turns = restore.turns.clone();
        let mut undone = true;
        if let Some(before) = &restore.undoes
            && let Some(before) = restores.0.iter_mut().find(|other| other.id == *before)
        {
            before.undone = whole;
            turns.clone_from(&before.turns);
            undone = false;
        }
        if turns.is_empty() {
            return Ok(());
        }
        for link in &mut self.history.turns {
            let same = |turn: &TurnLink| {
                (&turn.agent, &turn.session, &turn.turn) == (&link.agent, &link.session, &link.turn)
            };
            if turns.iter().any(same) {
                link.undone = undone;
            }
        }
        self.save_history()
    }

    /// Snapshots that restores took and nobody goes back to.
    fn drop_unneeded(&mut self, restores: &Restores) -> Result<(), CheckpointError> {
        let needed: Vec<SnapshotId> = restores.needed().cloned().collect();
        let mut unneeded = asides(&self.manager, "safety")?;
        unneeded.extend(asides(&self.manager, "edit")?);
        unneeded.retain(|id| !needed.contains(id));
        if unneeded.is_empty() { Ok(()) } else { Ok(self.manager.drop_asides(&unneeded)?) }
    }

    /// Complete a restore whose process was killed, and write it down.
    pub(super) fn finish_restore(&mut self) -> Result<Option<Completed>, CheckpointError> {
        let Some(mut restore) = Restore::under_way(&self.folder)? else { return Ok(None) };
        if Restores::load(&self.folder)?.0.iter().any(|known| known.id == restore.id) {
            return Restore::over(&self.folder).map(|()| None);
        }
        let recovered = self.manager.recover()?;
        let kept = recovered.as_ref().map(|restored| restored.outcome.skipped.clone()).unwrap_or_default();
        let record = self.record()?;
        let fresh = record.snapshots.iter().skip(restore.recorded).map(Recorded::snapshot);
        // Its own is the first: there may be another one, of the merges that follow it.
        restore.safety = fresh.into_iter().find(is_safety).or(recovered.map(|restored| restored.safety));
        // Killed before it had captured anything, it came to nothing.
        let Some(safety) = restore.safety.clone() else {
            return Restore::over(&self.folder).map(|()| None);
        };
        let now = self.manager.look_now_as(&safety)?;
        let changes = self.manager.changes_until(&safety, &now)?;
        drop(now);
        let counts = !changes.is_empty();
        let completed = Completed {
            project: self.workdir().to_owned(),
            checkpoint: restore.checkpoint.id.clone(),
            changed: changes.len(),
            kept,
        };
        self.write_restore(restore, &changes.into(), counts, true)?;
        Ok(Some(completed))
    }
}

fn is_safety(id: &SnapshotId) -> bool {
    matches!(id, SnapshotId::Safety(name) if name.starts_with("safety-"))
}

fn is_edit(id: &SnapshotId) -> bool {
    matches!(id, SnapshotId::Safety(name) if name.starts_with("edit-"))
}
