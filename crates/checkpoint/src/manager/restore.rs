//! Restore of a checkpoint: the project's side of a history.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use nono_history::{
    Begin, Done, History, Labels, OwnerRules, Plan as RestorePlan, Repositories, SnapshotChoice as Wanted,
    sequence,
};
use nono_snapshot::SnapshotId;

use super::open::{Bounds, Open};
use super::{CheckpointChoice, CheckpointManager, CheckpointTarget, ProjectOutcome, ProjectPlan};
use crate::error::{CheckpointError, Result};
use crate::history::{Checkpoint, TurnLink};
use crate::pending_calls::{PendingCalls, Their, Theirs};
use crate::project;
use crate::restores::Details;

impl CheckpointManager {
    /// Plan of a restore; nothing is touched.
    pub fn plan(
        &mut self,
        dir: &Path,
        target: &CheckpointTarget,
        choice: &CheckpointChoice,
    ) -> Result<ProjectPlan> {
        let mut open = self.open(dir, Bounds::None)?;
        let line = self.find_in(&open, target)?;
        let (wanted, rule) = (open.wanted(&line, choice)?, open.rule(&line, choice)?);
        let restore = open.restores().plan::<Details>(&wanted, &rule)?;
        let turns = open.turns_undone(&line, &wanted);
        Ok(ProjectPlan {
            project: open.workdir().to_owned(),
            turns_undone: if restore.changes.is_empty() { Vec::new() } else { names(&turns) },
            not_covered: line.left_out,
            restore,
        })
    }

    /// Restores a checkpoint. A safety snapshot is taken first, to which [`CheckpointManager::undo`] goes back.
    pub fn restore(
        &mut self,
        dir: &Path,
        target: &CheckpointTarget,
        choice: &CheckpointChoice,
    ) -> Result<ProjectOutcome> {
        let mut open = self.open(dir, Bounds::None)?;
        let _paused = open.manager.make_room_to_restore()?;
        let line = self.find_in(&open, target)?;
        let (wanted, rule) = (open.wanted(&line, choice)?, open.rule(&line, choice)?);
        let prepared = open.restores().prepare(&wanted, &rule)?;
        let details = Details {
            checkpoint: line.clone(),
            who: self.who.clone(),
            forced: open.whose(&line, prepared.forced.iter())?,
            turns: open.turns_undone(&line, &wanted),
            alone: false,
            marked: PendingCalls::load(&open.folder)?.since(line.snapshot).is_some(),
        };
        let turns = details.turns.clone();
        let begin = self.next_restore(&open, details)?;
        let (mut under, mut done) = open.restores().restore(&wanted, &rule, prepared, begin)?;
        open.complete(&mut under, &mut done)?;
        let turns = if done.changes.is_empty() { Vec::new() } else { turns };
        let outcome = ProjectOutcome {
            project: open.workdir().to_owned(),
            checkpoint: line,
            turns_undone: names(&turns),
            agents: agents(&turns),
            done,
        };
        self.tell(&open, &outcome, &turns, false);
        Ok(outcome)
    }

    /// Next entry of the log.
    pub(super) fn next_restore(&self, open: &Open, details: Details) -> Result<Begin<Details>> {
        let state_dir = &self.host.state_dir;
        let taken = sequence::next_in(state_dir);
        let sequence = taken.map_err(CheckpointError::io(sequence::counter(state_dir)))?;
        let prefix = open.folder.hash.as_str().chars().take(12).collect();
        Ok(Begin { prefix, sequence, details: Some(details) })
    }
}

impl Open {
    pub(super) fn restores(&mut self) -> History<'_> {
        History::new(&self.folder.dir, &mut self.manager)
    }

    fn wanted(&self, line: &Checkpoint, choice: &CheckpointChoice) -> Result<Wanted> {
        let paths = self.chosen(&choice.paths)?;
        Ok(Wanted { paths, conflicts: choice.conflicts, ..Wanted::everything(line.snapshot_id()) })
    }

    /// Rule that separates the agent's changes from those of others: the mark, if it covers the time since the
    /// checkpoint.
    fn rule(&self, line: &Checkpoint, choice: &CheckpointChoice) -> Result<OwnerRules> {
        let marks = PendingCalls::load(&self.folder)?;
        // The mark may be gone with an old checkpoint or by a power loss: then it is ignored.
        let record = self.record()?;
        let is_there = |id: &&SnapshotId| {
            record.find(id).is_some_and(|recorded| !recorded.thinned) && self.manager.can_compare(id)
        };
        let mark = marks.since(line.snapshot).filter(is_there).cloned();
        let others =
            if mark.is_some() { Theirs::load(&self.folder)?.into_paths() } else { BTreeMap::default() };
        let told = mark.clone().filter(|_| !marks.has_open_calls());
        let repositories = if choice.with_git { Repositories::Restore } else { Repositories::LeaveAlone };
        Ok(OwnerRules {
            since: told.map(|mark| vec![mark]),
            left: mark,
            others,
            repositories,
            contents_only: line.imported_from.is_some(),
            labels: Labels {
                base: "what the agent left".to_owned(),
                target: format!("checkpoint {}", line.id.short()),
            },
        })
    }

    /// Turns that the restore undoes. A restore of a part of the project undoes no turn.
    fn turns_undone(&self, line: &Checkpoint, wanted: &Wanted) -> Vec<TurnLink> {
        if wanted.paths.is_empty() { self.history.turns_after(line).cloned().collect() } else { Vec::new() }
    }

    /// Paths of others that a restore changes, with the content the agent had left.
    pub(super) fn whose<'a>(
        &self,
        line: &Checkpoint,
        paths: impl Iterator<Item = &'a PathBuf>,
    ) -> Result<Vec<Their>> {
        let theirs = Theirs::load(&self.folder)?;
        let marks = PendingCalls::load(&self.folder)?;
        let mut all = Vec::new();
        for path in paths {
            let left = match theirs.left(path) {
                Some(left) => Some(left),
                None => nono_history::content_at(&self.manager, marks.since(line.snapshot), path)?,
            };
            all.push(Their { path: path.clone(), left });
        }
        Ok(all)
    }

    /// Absolute paths below the project, without links in them.
    pub(super) fn chosen(&self, paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
        let mut chosen = Vec::new();
        for path in paths {
            let place = project::place(path)?;
            if !place.starts_with(self.workdir()) {
                let project = self.workdir().to_owned();
                return Err(CheckpointError::Outside { path: path.clone(), project });
            }
            chosen.push(place);
        }
        // The project itself means everything in it.
        if chosen.iter().any(|path| path == self.workdir()) {
            chosen.clear();
        }
        Ok(chosen)
    }
}

fn agents(turns: &[TurnLink]) -> Vec<String> {
    let mut agents: Vec<String> = turns.iter().filter_map(|link| link.agent.clone()).collect();
    agents.sort();
    agents.dedup();
    agents
}

fn names(turns: &[TurnLink]) -> Vec<String> {
    turns.iter().map(|link| link.turn.clone()).collect()
}

impl Deref for ProjectOutcome {
    type Target = Done;

    fn deref(&self) -> &Done {
        &self.done
    }
}

impl Deref for ProjectPlan {
    type Target = RestorePlan;

    fn deref(&self) -> &RestorePlan {
        &self.restore
    }
}

pub(super) fn random_id() -> Result<String> {
    nono_sys::random::id::<6>().map_err(CheckpointError::io("/dev/urandom"))
}
