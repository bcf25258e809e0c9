//! `nono checkpoints restore` and `undo`: restores of a project.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nono::checkpoints::{
    self, Checkpoint, CheckpointChoice, CheckpointError, CheckpointTarget, PathError, ProjectOutcome,
    ProjectPlan, TurnLink, json,
};
use nono::diagnostic::shown;
use nono::rollback::{Done, Plan};
use nono::snapshot::Observer;
use nono::snapshot::restore::{Skipped, Why};
use serde_json::Value;

use super::{CheckpointContext, text};
use crate::age::ago;
use crate::args::{CheckpointRestoreArgs, CheckpointUndoArgs};
use crate::commands::perform::{Completion, Restoration, Tense, perform};
use crate::commands::rollback::conflicts;
use crate::commands::rollback::text::{self as words, Below};
use crate::failure::Failure;
use crate::progress::{ReportsProgress, Worked, watched};
use crate::units::some;

pub(super) const UNDO: &str = "nono checkpoints undo";
pub(super) const COMPLETES: &str = "interrupted; the next command for this project completes it";

const NO_SUCH_PATH: &str = "`nono checkpoints diff N` shows what changed; with --glob the paths are patterns";

pub(super) fn restore(args: CheckpointRestoreArgs, place: &mut CheckpointContext) -> Result<u8, Failure> {
    let dir = place.dir(&args.project);
    let (target, typed) = what(args.turn, args.checkpoint, args.paths)?;
    // Resolved once: numbers shift when another checkpoint is taken meanwhile.
    let checkpoint = place.manager.find(&dir, &target)?;
    let paths = chosen(place, &dir, &target, &typed, args.glob)?;
    let choice = CheckpointChoice { paths, with_git: args.with_git, conflicts: conflicts(args.conflicts) };
    let task = CheckpointTask::Restore(Box::new(checkpoint), choice);
    perform(OfProject::new(place, dir, task), args.consent)
}

pub(super) fn take_back(args: &CheckpointUndoArgs, place: &mut CheckpointContext) -> Result<u8, Failure> {
    let dir = place.dir(&args.project);
    perform(OfProject::new(place, dir, CheckpointTask::TakeBack), args.consent)
}

/// Kind of restore.
pub(crate) enum CheckpointTask {
    Restore(Box<Checkpoint>, CheckpointChoice),
    /// Undo of one turn of an agent, but not of those that came later.
    Turn(Box<TurnLink>, CheckpointChoice),
    TakeBack,
}

/// Restore of a project, with the parts of its plan and outcome that only projects have.
pub(crate) struct OfProject<'a> {
    place: &'a mut CheckpointContext,
    dir: PathBuf,
    task: CheckpointTask,
    /// Project of the plan or outcome; the following fields come from there, too.
    project: PathBuf,
    turns_undone: Vec<String>,
    /// Agents whose conversations continue past the checkpoint.
    agents: Vec<String>,
    not_covered: u64,
    checkpoint: Option<Checkpoint>,
    /// Whether it is part of `nono undo`, which prints no JSON and is reverted by `nono redo`.
    in_undo: bool,
}

impl<'a> OfProject<'a> {
    pub(crate) fn new(place: &'a mut CheckpointContext, dir: PathBuf, task: CheckpointTask) -> OfProject<'a> {
        OfProject {
            place,
            project: dir.clone(),
            dir,
            task,
            turns_undone: Vec::new(),
            agents: Vec::new(),
            not_covered: 0,
            checkpoint: None,
            in_undo: false,
        }
    }

    pub(crate) fn within_undo(self) -> OfProject<'a> {
        OfProject { in_undo: true, ..self }
    }

    fn undo_command(&self) -> &'static str {
        if self.in_undo { "nono redo" } else { UNDO }
    }

    /// Plans without progress and without handling of interrupts.
    pub(crate) fn plan_quietly(&mut self) -> Result<Plan, CheckpointError> {
        let manager = &mut self.place.manager;
        let plan = match &self.task {
            CheckpointTask::Restore(checkpoint, choice) => {
                manager.plan(&self.dir, &CheckpointTarget::Id(checkpoint.id.clone()), choice)
            }
            CheckpointTask::Turn(turn, choice) => manager.plan_turn(&self.dir, turn, choice),
            CheckpointTask::TakeBack => manager.plan_undo(&self.dir),
        };
        let ProjectPlan { project, restore, turns_undone, not_covered } = plan?;
        (self.project, self.turns_undone, self.not_covered) = (project, turns_undone, not_covered);
        Ok(restore)
    }

    /// Restores without progress and without handling of interrupts.
    pub(crate) fn carry_out_quietly(&mut self) -> Result<Done, CheckpointError> {
        let CheckpointContext { manager, author, .. } = &mut *self.place;
        let outcome = match &self.task {
            CheckpointTask::Restore(checkpoint, choice) => {
                let target = CheckpointTarget::Id(checkpoint.id.clone());
                checkpoints::restore(manager, author, &self.dir, &target, choice)
            }
            CheckpointTask::Turn(turn, choice) => {
                checkpoints::undo_turn(manager, author, &self.dir, turn, choice)
            }
            CheckpointTask::TakeBack => checkpoints::undo(manager, author, &self.dir),
        };
        let ProjectOutcome { project, checkpoint, turns_undone, agents, mut done } = outcome?;
        // An undo is reverted by restoring again.
        if matches!(self.task, CheckpointTask::TakeBack) {
            done.undo = None;
        }
        (self.project, self.turns_undone, self.agents) = (project, turns_undone, agents);
        self.checkpoint = Some(checkpoint);
        Ok(done)
    }

    /// Notes about repositories and paths that the restore does not touch.
    fn left_alone(&self, repositories: &[PathBuf], lost: usize) -> Vec<String> {
        let roots = self.roots();
        let below = Below::new(&roots);
        let how = match &self.task {
            CheckpointTask::Restore(checkpoint, _) if self.in_undo => {
                format!("nono checkpoints restore {} --with-git", checkpoint.id.short())
            }
            _ => "--with-git".to_owned(),
        };
        let mut lines: Vec<String> = repositories
            .iter()
            .map(|git| format!("{} differs and is left alone; {how} restores it too", below.show(git)))
            .collect();
        let rest = self.not_covered.saturating_sub(lost as u64);
        if rest > 0 {
            let paths = some(rest, "path");
            lines.push(format!("not covered by this checkpoint, and left as they are: {paths}"));
        }
        lines
    }

    /// Turns that are undone: `undo 2 turns: a, b`.
    fn turns(&self, word: &str) -> Option<String> {
        let names: Vec<String> = self.turns_undone.iter().map(|turn| text::cut(turn, 64)).collect();
        (!names.is_empty()).then(|| format!("{word} {}: {}", some(names.len(), "turn"), names.join(", ")))
    }
}

impl ReportsProgress for OfProject<'_> {
    fn watch(&mut self, observer: impl Observer + Send + 'static) {
        self.place.manager.observe(observer);
    }
}

impl Restoration for OfProject<'_> {
    fn title(&self, tense: Tense) -> String {
        let (go, undo, take) = match tense {
            Tense::Plan => ("go", "undo", "take"),
            Tense::Done => ("went", "undid", "took"),
        };
        match &self.task {
            CheckpointTask::Restore(checkpoint, _) => {
                let (id, taken) = (checkpoint.id.short(), ago(&checkpoint.time));
                let reason = text::cut(&checkpoint.reason, 64);
                format!("{go} back to checkpoint {id} ({reason}, {taken}) in {}:", shown(&self.project))
            }
            CheckpointTask::Turn(turn, _) => {
                let said = turn
                    .prompt
                    .as_deref()
                    .map(|prompt| format!(" \u{201c}{}\u{201d}", text::cut(prompt, 48)));
                let agent = text::cut(turn.agent.as_deref().unwrap_or("an agent"), 32);
                let at = turn.time.as_deref().map(ago).unwrap_or_default();
                let said = said.unwrap_or_default();
                format!("{undo} only the turn{said} ({agent}, {at}) in {}:", shown(&self.project))
            }
            CheckpointTask::TakeBack => {
                format!("{take} back the last restore of {}:", shown(&self.project))
            }
        }
    }

    fn question(&self) -> &'static str {
        match self.task {
            CheckpointTask::Restore(..) => "Restore this?",
            CheckpointTask::Turn(..) => "Undo this turn?",
            CheckpointTask::TakeBack => "Take the restore back?",
        }
    }

    fn roots(&self) -> Vec<PathBuf> {
        vec![self.project.clone()]
    }

    /// Nothing to do: opening the project completes interrupted restores.
    fn complete_first(&mut self) -> Result<Completion, Failure> {
        Ok(Completion::Nothing)
    }

    fn plan(&mut self) -> Result<Worked<Plan>, Failure> {
        watched(self, "looking at the tree", OfProject::plan_quietly)
    }

    fn carry_out(&mut self) -> Result<Worked<Done>, Failure> {
        watched(self, "restoring", OfProject::carry_out_quietly)
    }

    fn plan_json(&self, plan: &Plan) -> Value {
        json::plan(&self.project, &self.turns_undone, self.not_covered, plan)
    }

    fn done_json(&self, done: &Done) -> Value {
        let checkpoint = match (&self.task, &self.checkpoint) {
            (CheckpointTask::Restore(checkpoint, _), _) => Some(&**checkpoint),
            (CheckpointTask::Turn(..) | CheckpointTask::TakeBack, known) => known.as_ref(),
        };
        json::outcome(&self.project, checkpoint, &self.turns_undone, done)
    }

    fn plan_notes(&self, plan: &Plan) -> Vec<String> {
        let mut lines = Vec::new();
        if plan.cannot_tell_conflicts && !plan.changes.is_empty() {
            lines.push(cannot_tell(&plan.kept, "will be"));
        }
        lines.extend(self.turns("undo"));
        lines.extend(self.left_alone(&plan.repositories, plan.lost.len()));
        lines
    }

    fn done_notes(&self, done: &Done) -> Vec<String> {
        let mut lines: Vec<String> = self.turns("undid").into_iter().collect();
        lines.extend(self.agents.iter().filter_map(|agent| {
            let how = nono::hooks::agents::rewind(agent)?;
            Some(format!("to take the conversation back too, in {agent}: {how}"))
        }));
        // For a checkpoint of an agent, users expect their own changes to be kept.
        let by_agent =
            matches!(&self.task, CheckpointTask::Restore(checkpoint, _) if checkpoint.origin.agent.is_some());
        if done.cannot_tell_conflicts && by_agent && !done.changes.is_empty() {
            lines.push(cannot_tell(&done.kept, "was"));
        }
        lines.extend(self.left_alone(&done.repositories, done.lost.len()));
        lines
    }

    fn answers_programs(&self) -> bool {
        !self.in_undo
    }

    /// None for the undo of a restore, which cannot be forced.
    fn hint(&self, kept: &[Skipped]) -> Option<String> {
        match &self.task {
            CheckpointTask::Restore(_, choice) | CheckpointTask::Turn(_, choice) => {
                words::hint(kept, choice.conflicts, self.undo_command())
            }
            CheckpointTask::TakeBack => None,
        }
    }

    fn undo(&self, _id: &str) -> Option<String> {
        Some(self.undo_command().to_owned())
    }

    fn completes(&self) -> &'static str {
        COMPLETES
    }
}

/// Note that changes of people and agents cannot be told apart. `goes`: "will be" or "was".
fn cannot_tell(kept: &[Skipped], goes: &str) -> String {
    if kept.iter().any(|kept| kept.why == Why::ChangedSince) {
        format!(
            "an agent's call has not ended: everything since it began {goes} undone, your own changes too"
        )
    } else {
        format!("your changes cannot be told from the agent's: everything {goes} restored")
    }
}

/// Target and paths. With `--turn` the first argument is a path as well.
fn what(
    turn: Option<String>,
    first: Option<OsString>,
    paths: Vec<OsString>,
) -> Result<(CheckpointTarget, Vec<OsString>), Failure> {
    match (turn, first) {
        (Some(turn), first) => Ok((CheckpointTarget::Turn(turn), first.into_iter().chain(paths).collect())),
        (None, Some(text)) => Ok((CheckpointTarget::Text(text.to_string_lossy().into_owned()), paths)),
        (None, None) => Err(Failure::usage("name a checkpoint: its number, id or name, or --turn ID")),
    }
}

fn chosen(
    place: &mut CheckpointContext,
    dir: &Path,
    target: &CheckpointTarget,
    typed: &[OsString],
    glob: bool,
) -> Result<Vec<PathBuf>, Failure> {
    if typed.is_empty() {
        return Ok(Vec::new());
    }
    let compared = watched(&mut place.manager, "looking at the tree", |m| m.compare(dir, target))?.value;
    let chosen = checkpoints::chosen(&compared, typed, &place.cwd, glob);
    compared.close()?;
    chosen.map_err(|error| {
        let literal = !glob && matches!(error, PathError::NoSuchPath { .. });
        let failure = Failure::from(error);
        if literal { failure.hint(NO_SUCH_PATH) } else { failure }
    })
}
