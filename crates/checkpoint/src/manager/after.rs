//! What follows a restore: it is written down, the marks are moved, the agent is told. Also for one that was cut off and
//! that the engine completed, and for taking one back.

use std::path::{Path, PathBuf};

use nono_history::{Done, Recovered};
use nono_snapshot::{Change, Changes, ContentHash, Next, SnapshotId};

use super::open::{Bounds, Open};
use super::{CheckpointManager, Completed, Note, Outcome, Plan};
use crate::error::CheckpointError;
use crate::folder::Folder;
use crate::history::TurnLink;
use crate::marks::{Marks, Theirs, asides};
use crate::notes;
use crate::project::Project;
use crate::restores::{Details, Log, RESTORES, Restore, Under};

/// Maximum number of file names told to an agent.
const TOLD: usize = 100;

/// A run whose work is gone, or there again.
#[derive(Clone, Copy, Debug)]
pub struct RunGone<'a> {
    pub run: &'a str,
    pub came_back: bool,
}

impl CheckpointManager {
    /// What taking the last restore back would do; nothing is touched.
    pub fn plan_undo(&mut self, dir: &Path) -> Result<Plan, CheckpointError> {
        let mut open = self.open(dir, Bounds::None)?;
        let last = open.last_restore()?;
        let restore = open.restores().plan_undo::<Details>(Some(&last.id))?;
        let project = open.workdir().to_owned();
        Ok(Plan { project, restore, turns_undone: Vec::new(), not_covered: 0 })
    }

    /// Take the last restore of the project back. What was changed after it is kept.
    pub fn undo(&mut self, dir: &Path) -> Result<Outcome, CheckpointError> {
        let mut open = self.open(dir, Bounds::None)?;
        let last = open.last_restore()?;
        let Some(before) = last.details.clone() else { return Err(open.nothing_to_undo()) };
        let checkpoint = before.checkpoint.clone();
        let details = Details { who: self.who.clone(), turns: Vec::new(), ..before };
        let begin = self.next_restore(&open, details)?;
        let (mut under, mut done) = open.restores().undo(Some(&last.id), begin)?;
        open.complete(&mut under, &mut done)?;
        self.tell_back(&open, &last);
        let project = open.workdir().to_owned();
        Ok(Outcome { project, checkpoint, turns_undone: Vec::new(), agents: Vec::new(), done })
    }

    /// A restore of a session made these changes, in whichever projects: they are neither an agent's doing nor that of
    /// others. `gone`: all that the run did is gone, or is there again, and with it the turns in it.
    pub fn restored_beside(
        &self,
        changes: &Changes,
        gone: Option<RunGone<'_>>,
    ) -> Result<(), CheckpointError> {
        if changes.is_empty() {
            return Ok(());
        }
        for dir in self.project_dirs()? {
            let Some(project) = Project::load(&dir)?.filter(|_| Marks::are_in(&dir)) else { continue };
            if !changes.iter().any(|change| change.path.starts_with(&project.workdir)) {
                continue;
            }
            if let Some(folder) = Folder::at(&dir)?.filter(Folder::has_record) {
                let mut open = self.open_folder(folder, Bounds::None)?;
                open.set_mark(changes, &[])?;
                if let Some(gone) = gone {
                    self.turns_of_run(&mut open, gone, changes)?;
                }
            }
        }
        Ok(())
    }

    /// Note that the turns of a run are gone, or there again, and let their agents know.
    fn turns_of_run(
        &self,
        open: &mut Open,
        gone: RunGone<'_>,
        changes: &Changes,
    ) -> Result<(), CheckpointError> {
        let RunGone { run, came_back } = gone;
        let mut turns = Vec::new();
        for link in open.history.turns.iter_mut().filter(|link| link.run.as_deref() == Some(run)) {
            if link.undone == came_back {
                link.undone = !came_back;
                turns.push(link.clone());
            }
        }
        let Some(first) = turns.first().map(|link| link.checkpoint.clone()) else { return Ok(()) };
        open.save_history()?;
        let files = named(changes, open.workdir());
        for (agent, session) in speakers(&turns) {
            if came_back && notes::withdraw(&self.host, &agent, &session, run).unwrap_or(false) {
                continue;
            }
            let own = turns.iter().filter(|link| is_of(link, &agent, &session));
            let note = Note {
                project: open.workdir().to_owned(),
                checkpoint: first.clone(),
                turns_undone: own.map(|link| link.turn.clone()).collect(),
                files: files.clone(),
                restore: run.to_owned(),
                came_back,
                alone: false,
            };
            // As in `tell`: that they cannot be told makes no failure of the restore.
            let _ = notes::add(&self.host, &agent, &session, note);
        }
        Ok(())
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
    pub(super) fn tell(&self, open: &Open, outcome: &Outcome, turns: &[TurnLink], alone: bool) {
        if outcome.changes.is_empty() {
            return;
        }
        let files = named(&outcome.changes, &outcome.project);
        for (agent, session) in conversations(open, turns, outcome) {
            let own = |link: &&TurnLink| is_of(link, &agent, &session);
            let note = Note {
                project: outcome.project.clone(),
                checkpoint: outcome.checkpoint.id.clone(),
                turns_undone: turns.iter().filter(own).map(|link| link.turn.clone()).collect(),
                files: files.clone(),
                restore: outcome.undo.clone().unwrap_or_default(),
                came_back: false,
                alone,
            };
            let _ = notes::add(&self.host, &agent, &session, note);
        }
    }

    /// Their work is there again. As above.
    fn tell_back(&self, open: &Open, restore: &Restore) {
        let Some(details) = &restore.details else { return };
        let mut told = Vec::new();
        for link in &details.turns {
            let (Some(agent), Some(session)) = (&link.agent, &link.session) else { continue };
            if told.contains(&(agent, session)) {
                continue;
            }
            told.push((agent, session));
            if notes::withdraw(&self.host, agent, session, &restore.id).unwrap_or(false) {
                continue;
            }
            let own = details.turns.iter().filter(|link| is_of(link, agent, session));
            let note = Note {
                project: open.workdir().to_owned(),
                checkpoint: details.checkpoint.id.clone(),
                turns_undone: own.map(|link| link.turn.clone()).collect(),
                files: Vec::new(),
                restore: restore.id.clone(),
                came_back: true,
                alone: details.alone,
            };
            let _ = notes::add(&self.host, agent, session, note);
        }
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
    speakers(&since)
}

/// Agents and conversations of turns, each once.
fn speakers(turns: &[TurnLink]) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for link in turns {
        if let (Some(agent), Some(session)) = (link.agent.clone(), link.session.clone())
            && !all.contains(&(agent.clone(), session.clone()))
        {
            all.push((agent, session));
        }
    }
    all
}

/// Names of the first changed files, below the project.
fn named(changes: &Changes, project: &Path) -> Vec<String> {
    let name = |change: Change| {
        change.path.strip_prefix(project).unwrap_or(&change.path).to_string_lossy().into_owned()
    };
    changes.iter().take(TOLD).map(name).collect()
}

impl Open {
    /// The last restore that was not taken back.
    fn last_restore(&self) -> Result<Restore, CheckpointError> {
        let log = Log::load_or_begin(&self.folder.dir)?;
        log.last_to_undo().cloned().ok_or_else(|| self.nothing_to_undo())
    }

    fn nothing_to_undo(&self) -> CheckpointError {
        CheckpointError::NothingToUndo { project: self.workdir().to_owned() }
    }

    /// A restore is done: move the marks, write it down, and give up what nothing leads back to any more.
    pub(super) fn complete(&mut self, under: &mut Under, done: &mut Done) -> Result<(), CheckpointError> {
        if !done.interrupted && under.has_changed() {
            self.note_merged(under)?;
            self.move_mark(&under.restore, &done.changes)?;
            self.turn_back(&under.restore, &under.log)?;
        }
        under.log.keep(RESTORES - 1);
        self.restores().finish(under, done)?;
        if done.interrupted { Ok(()) } else { self.drop_unneeded() }
    }

    /// Remember what the agent had left where files were merged, before the mark moves.
    fn note_merged(&mut self, under: &mut Under) -> Result<(), CheckpointError> {
        let Some(details) = under.restore.details.as_ref().filter(|_| under.restore.undoes.is_none()) else {
            return Ok(());
        };
        let known = |path: &&PathBuf| details.forced.iter().any(|their| their.path == **path);
        let mut merged: Vec<&PathBuf> = under.restore.merged().filter(|path| !known(path)).collect();
        if details.alone {
            // Of a file that one turn is taken out of, the rest may be the work of other turns.
            let others = self.changed_by_others(&under.restore)?;
            merged.retain(|path| others.iter().any(|(other, _)| other == *path));
        }
        let whose = self.whose(&details.checkpoint, merged.into_iter())?;
        if whose.is_empty() {
            return Ok(());
        }
        if let Some(details) = &mut under.restore.details {
            details.forced.extend(whose);
        }
        Ok(self.restores().save(under)?)
    }

    /// What was restored is ours now, and neither the agent's doing nor that of others.
    fn move_mark(&mut self, restore: &Restore, changes: &Changes) -> Result<(), CheckpointError> {
        let Some(details) = restore.details.as_ref().filter(|details| details.marked) else { return Ok(()) };
        let mut set = Vec::new();
        if restore.undoes.is_some() {
            set.extend(details.forced.iter().map(|their| (their.path.clone(), their.left)));
        } else {
            // With what others wrote in it, it comes from what the checkpoint has there. Without one turn it is what it
            // was: somebody else's only if it was that before.
            let target = details.checkpoint.snapshot_id();
            if details.alone {
                set = self.changed_by_others(restore)?;
            } else {
                for path in restore.merged() {
                    set.push((path.clone(), nono_history::content_at(&self.manager, Some(&target), path)?));
                }
            }
        }
        self.set_mark(changes, &set)
    }

    /// Files that a restore merged and that others had changed before it, with what the agent had left there.
    fn changed_by_others(
        &self,
        restore: &Restore,
    ) -> Result<Vec<(PathBuf, Option<ContentHash>)>, CheckpointError> {
        let theirs = Theirs::load(&self.folder)?.into_paths();
        let marks = Marks::load(&self.folder)?;
        let mark = marks.mark().filter(|_| !marks.has_open_calls());
        let mut others = Vec::new();
        for path in restore.merged() {
            let left = nono_history::content_at(&self.manager, mark, path)?;
            let before = nono_history::content_at(&self.manager, restore.safety(), path)?;
            match theirs.get(path) {
                Some(left) => others.push((path.clone(), *left)),
                None if mark.is_some() && left != before => others.push((path.clone(), left)),
                None => {}
            }
        }
        Ok(others)
    }

    /// The project is like this after a restore of ours made these changes; `set`: paths that are others' all the same.
    fn set_mark(
        &mut self,
        changes: &Changes,
        set: &[(PathBuf, Option<ContentHash>)],
    ) -> Result<(), CheckpointError> {
        let mut theirs = Theirs::load(&self.folder)?;
        let marks = Marks::load(&self.folder)?;
        let newest = self.record()?.newest();
        let now = match newest {
            Some(newest) => self.manager.look_now_as(&newest.into())?,
            None => self.manager.look_now(Next::default())?,
        };
        if let Some(mark) = marks.mark().filter(|_| !marks.has_open_calls()) {
            // What differed before, and was kept, is theirs still. A mark that is gone tells nothing.
            let differs = self.manager.changes_until(mark, &now).unwrap_or_default();
            for change in &differs {
                theirs.add(&change.path, change.old.as_ref().and_then(|old| old.hash));
            }
        }
        for change in changes.iter() {
            theirs.remove(&change.path);
        }
        for (path, left) in set {
            theirs.set(path, *left);
        }
        theirs.save(&self.folder)?;
        marks.set(&self.folder, &mut self.manager, now)
    }

    /// Its turns are gone; or those of the restore that it took back are there again.
    fn turn_back(&mut self, restore: &Restore, log: &Log) -> Result<(), CheckpointError> {
        let undone = restore.undoes.as_deref().map(|id| log.find(id));
        let details = undone.map_or(restore.details.as_ref(), |before| before?.details.as_ref());
        let turns = details.map(|details| details.turns.clone()).unwrap_or_default();
        if turns.is_empty() {
            return Ok(());
        }
        for link in &mut self.history.turns {
            let same = |turn: &TurnLink| {
                (&turn.agent, &turn.session, &turn.turn) == (&link.agent, &link.session, &link.turn)
            };
            if turns.iter().any(same) {
                link.undone = restore.undoes.is_none();
            }
        }
        self.save_history()
    }

    /// Snapshots that restores took and that none leads back to.
    fn drop_unneeded(&mut self) -> Result<(), CheckpointError> {
        let log = Log::load(&self.folder.dir)?;
        let needed: Vec<&SnapshotId> = log.needed().collect();
        let mut unneeded = asides(&self.manager, "safety")?;
        unneeded.extend(asides(&self.manager, "edit")?);
        unneeded.retain(|id| !needed.contains(&id));
        if unneeded.is_empty() { Ok(()) } else { Ok(self.manager.drop_asides(&unneeded)?) }
    }

    /// Complete a restore whose process was killed, and write it down.
    pub(super) fn finish_restore(&mut self) -> Result<Option<Completed>, CheckpointError> {
        if !self.restores().is_cut_off::<Details>()? {
            return Ok(None);
        }
        let Some(Recovered { under: Some(mut under), mut done }) = self.restores().recover::<Details>()?
        else {
            return Ok(None);
        };
        // What it changed before it was killed, too.
        if let Some(safety) = under.restore.safety().cloned() {
            let now = self.manager.look_now_as(&safety)?;
            done.changes = self.manager.changes_until(&safety, &now)?.into();
        }
        // Of a turn in several parts only the one that began is complete: the rest can be asked for again.
        if let Some(details) = under.restore.details.as_mut().filter(|details| details.alone) {
            details.turns.clear();
        }
        self.complete(&mut under, &mut done)?;
        let Some(details) = under.restore.details else { return Ok(None) };
        Ok(Some(Completed {
            project: self.workdir().to_owned(),
            checkpoint: details.checkpoint.id,
            changed: done.changes.len(),
            kept: done.kept,
        }))
    }
}
