//! Steps after a restore: logging it, moving the marks, and notes to the agents. Also for an interrupted restore that
//! the engine completed, and for undo.

use std::path::{Path, PathBuf};

use nono_history::{Done, Recovered};
use nono_snapshot::{Change, Changes, ContentHash, SnapshotId};

use super::open::{Bounds, Open};
use super::{CheckpointManager, Completed, ProjectOutcome, ProjectPlan, RestoreNote};
use crate::agent_notes;
use crate::error::{CheckpointError, Result};
use crate::folder::Folder;
use crate::history::TurnLink;
use crate::pending_calls::{PendingCalls, Theirs, Whose, asides};
use crate::project::Project;
use crate::restores::{Details, ProjectRestores, RESTORES, Restore, Under};

/// Maximum number of file names in a note to an agent.
const TOLD: usize = 100;

/// Session whose work was undone, or brought back.
#[derive(Clone, Copy, Debug)]
pub struct RunGone<'a> {
    pub run: &'a str,
    pub came_back: bool,
}

impl CheckpointManager {
    /// Plan of undoing the last restore; nothing is touched.
    pub fn plan_undo(&mut self, dir: &Path) -> Result<ProjectPlan> {
        let mut open = self.open(dir, Bounds::None)?;
        let _paused = open.manager.make_room_to_restore()?;
        let last = open.last_restore()?;
        let restore = open.restores().plan_undo::<Details>(Some(&last.id))?;
        let project = open.workdir().to_owned();
        Ok(ProjectPlan { project, restore, turns_undone: Vec::new(), not_covered: 0 })
    }

    /// Undoes the last restore of the project. Later changes are kept.
    pub fn undo(&mut self, dir: &Path) -> Result<ProjectOutcome> {
        let mut open = self.open(dir, Bounds::None)?;
        let _paused = open.manager.make_room_to_restore()?;
        let last = open.last_restore()?;
        let Some(before) = last.details.clone() else { return Err(open.nothing_to_undo()) };
        let checkpoint = before.checkpoint.clone();
        let details = Details { who: self.who.clone(), turns: Vec::new(), ..before };
        let begin = self.next_restore(&open, details)?;
        let (mut under, mut done) = open.restores().undo(Some(&last.id), begin)?;
        open.complete(&mut under, &mut done)?;
        self.tell_back(&open, &last);
        let project = open.workdir().to_owned();
        Ok(ProjectOutcome { project, checkpoint, turns_undone: Vec::new(), agents: Vec::new(), done })
    }

    /// Records changes that a restore of a session made in projects: they are attributed neither to an agent nor to
    /// others. `gone`: the session whose whole work was undone or brought back, with its turns.
    pub fn restored_beside(&self, changes: &Changes, gone: Option<RunGone<'_>>) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        for dir in self.project_dirs()? {
            let Some(project) = Project::load(&dir)?.filter(|_| PendingCalls::are_in(&dir)) else { continue };
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

    /// Marks the turns of a session as undone or brought back, and leaves notes for their agents.
    fn turns_of_run(&self, open: &mut Open, gone: RunGone<'_>, changes: &Changes) -> Result<()> {
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
        let note = RestoreNote {
            project: open.workdir().to_owned(),
            checkpoint: first,
            turns_undone: Vec::new(),
            files: named(changes, open.workdir()),
            restore: run.to_owned(),
            came_back,
            alone: false,
        };
        self.leave_notes(&speakers(&turns), &turns, &note);
        Ok(())
    }

    /// Takes the notes for this conversation about restores. Each is returned once.
    pub fn take_notes(&self, agent: &str, session: &str) -> Result<Vec<RestoreNote>> {
        self.take_notes_about(agent, session, |_| true)
    }

    /// Takes the notes for this conversation about some projects only.
    pub fn take_notes_about(
        &self,
        agent: &str,
        session: &str,
        about: impl Fn(&RestoreNote) -> bool,
    ) -> Result<Vec<RestoreNote>> {
        agent_notes::take(&self.host, &crate::origin::bounded(agent), &crate::origin::bounded(session), about)
    }

    /// Leaves notes for the agents whose work was undone. A failure to do so is not a failure of the restore.
    pub(super) fn tell(&self, open: &Open, outcome: &ProjectOutcome, turns: &[TurnLink], alone: bool) {
        if outcome.changes.is_empty() {
            return;
        }
        let note = RestoreNote {
            project: outcome.project.clone(),
            checkpoint: outcome.checkpoint.id.clone(),
            turns_undone: Vec::new(),
            files: named(&outcome.changes, &outcome.project),
            restore: outcome.undo.clone().unwrap_or_default(),
            came_back: false,
            alone,
        };
        self.leave_notes(&conversations(open, turns, outcome), turns, &note);
    }

    /// Leaves notes for the agents whose work was brought back. As above.
    fn tell_back(&self, open: &Open, restore: &Restore) {
        let Some(details) = &restore.details else { return };
        let note = RestoreNote {
            project: open.workdir().to_owned(),
            checkpoint: details.checkpoint.id.clone(),
            turns_undone: Vec::new(),
            files: Vec::new(),
            restore: restore.id.clone(),
            came_back: true,
            alone: details.alone,
        };
        self.leave_notes(&speakers(&details.turns), &details.turns, &note);
    }

    /// Leaves this note in each of these conversations, with its own turns. One that was not told yet of what came back
    /// loses that note instead. A failure to leave a note is not a failure of the restore.
    fn leave_notes(&self, conversations: &[(String, String)], turns: &[TurnLink], note: &RestoreNote) {
        for (agent, session) in conversations {
            let withdrawn = || agent_notes::withdraw(&self.host, agent, session, &note.restore);
            if note.came_back && withdrawn().unwrap_or(false) {
                continue;
            }
            let own = turns.iter().filter(|link| is_of(link, agent, session));
            let turns_undone = own.map(|link| link.turn.clone()).collect();
            let _ =
                agent_notes::add(&self.host, agent, session, RestoreNote { turns_undone, ..note.clone() });
        }
    }
}

fn is_of(link: &TurnLink, agent: &str, session: &str) -> bool {
    link.agent.as_deref() == Some(agent) && link.session.as_deref() == Some(session)
}

/// Conversations whose turns were undone; after a restore of some files, all that worked since the checkpoint.
fn conversations(open: &Open, turns: &[TurnLink], outcome: &ProjectOutcome) -> Vec<(String, String)> {
    let since: Vec<TurnLink> = if turns.is_empty() {
        open.history.turns_after(&outcome.checkpoint).cloned().collect()
    } else {
        turns.to_vec()
    };
    speakers(&since)
}

/// Agents and conversations of turns, without duplicates.
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

/// Names of the first changed files, relative to the project.
fn named(changes: &Changes, project: &Path) -> Vec<String> {
    let name = |change: Change| {
        change.path.strip_prefix(project).unwrap_or(&change.path).to_string_lossy().into_owned()
    };
    changes.iter().take(TOLD).map(name).collect()
}

impl Open {
    /// The last restore that was not undone.
    fn last_restore(&self) -> Result<Restore> {
        let log = ProjectRestores::load_or_begin(&self.folder.dir)?;
        log.last_to_undo().cloned().ok_or_else(|| self.nothing_to_undo())
    }

    fn nothing_to_undo(&self) -> CheckpointError {
        CheckpointError::NothingToUndo { project: self.workdir().to_owned() }
    }

    /// Completes a restore: moves the marks, logs it, and drops snapshots that no restore needs any more.
    pub(super) fn complete(&mut self, under: &mut Under, done: &mut Done) -> Result<()> {
        if !done.interrupted && under.has_changed() {
            self.note_merged(under)?;
            self.move_mark(&under.restore, &done.changes)?;
            self.turn_back(&under.restore, &under.log)?;
        }
        under.log.keep(RESTORES - 1);
        self.restores().finish(under, done)?;
        if done.interrupted { Ok(()) } else { self.drop_unneeded() }
    }

    /// Stores what the agent had left where files were merged, before the mark moves.
    fn note_merged(&mut self, under: &mut Under) -> Result<()> {
        let Some(details) = under.restore.details.as_ref().filter(|_| under.restore.undoes.is_none()) else {
            return Ok(());
        };
        let known = |path: &&PathBuf| details.forced.iter().any(|their| their.path == **path);
        let mut merged: Vec<&PathBuf> = under.restore.merged().filter(|path| !known(path)).collect();
        if details.alone {
            // When one turn is removed from a file, the rest may be the work of other turns.
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

    /// Moves the mark, so that restored paths are attributed neither to the agent nor to others.
    fn move_mark(&mut self, restore: &Restore, changes: &Changes) -> Result<()> {
        let Some(details) = restore.details.as_ref().filter(|details| details.marked) else { return Ok(()) };
        let mut set = Vec::new();
        if restore.undoes.is_some() {
            set.extend(details.forced.iter().map(|their| (their.path.clone(), their.left)));
        } else {
            // A file merged with changes of others is based on the checkpoint's content. A file without one turn keeps
            // its owner: it is another's only if it was before.
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

    /// Files that a restore merged and that others had changed before it, with the content the agent had left.
    fn changed_by_others(&self, restore: &Restore) -> Result<Vec<(PathBuf, Option<ContentHash>)>> {
        let theirs = Theirs::load(&self.folder)?.into_paths();
        let marks = PendingCalls::load(&self.folder)?;
        let mark = marks.settled_mark();
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

    /// Sets the mark to the present state after a restore made these changes; `set`: paths that stay attributed to
    /// others.
    fn set_mark(&mut self, changes: &Changes, set: &[(PathBuf, Option<ContentHash>)]) -> Result<()> {
        let mut theirs = Theirs::load(&self.folder)?;
        let marks = PendingCalls::load(&self.folder)?;
        let now = self.look_now_as_newest()?;
        if let Some(mark) = marks.settled_mark() {
            // Paths that differed before and were kept stay attributed to others. A missing mark counts as no
            // difference.
            theirs.take(&self.manager.changes_until(mark, &now).unwrap_or_default(), Whose::Theirs);
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

    /// Marks the restore's turns as undone; or as brought back, for those of the restore that it undid.
    fn turn_back(&mut self, restore: &Restore, log: &ProjectRestores) -> Result<()> {
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

    /// Drops safety snapshots that no restore needs any more.
    fn drop_unneeded(&mut self) -> Result<()> {
        let log = ProjectRestores::load(&self.folder.dir)?;
        let needed: Vec<&SnapshotId> = log.needed().collect();
        let mut unneeded = asides(&self.manager, "safety")?;
        unneeded.extend(asides(&self.manager, "edit")?);
        unneeded.retain(|id| !needed.contains(&id));
        if unneeded.is_empty() { Ok(()) } else { Ok(self.manager.drop_asides(&unneeded)?) }
    }

    /// Completes an interrupted restore and logs it.
    pub(super) fn finish_restore(&mut self) -> Result<Option<Completed>> {
        if !self.restores().is_cut_off::<Details>()? {
            return Ok(None);
        }
        let cut_off = ProjectRestores::load(&self.folder.dir)?.take_cut_off();
        let checkpoint = cut_off.and_then(|restore| Some(restore.details?.checkpoint.id));
        let Some(Recovered { under, mut done }) = self.restores().recover::<Details>()? else {
            return Ok(None);
        };
        if let Some(under) = under {
            self.complete_recovered(under, &mut done)?;
        }
        Ok(Some(Completed { project: self.workdir().to_owned(), checkpoint, done }))
    }

    fn complete_recovered(&mut self, mut under: Under, done: &mut Done) -> Result<()> {
        // Include what it changed before the interruption.
        let safety = under.restore.safety().cloned().filter(|_| !done.interrupted);
        if let Some(safety) = safety {
            let now = self.manager.look_now_as(&safety)?;
            done.changes = self.manager.changes_until(&safety, &now)?.into();
        }
        // Of a turn in several parts only the interrupted part is complete: the rest can be requested again.
        if let Some(details) = under.restore.details.as_mut().filter(|details| details.alone) {
            details.turns.clear();
        }
        self.complete(&mut under, done)?;
        // An undo is reverted by restoring again.
        if under.restore.undoes.is_some() {
            done.undo = None;
        }
        Ok(())
    }
}
