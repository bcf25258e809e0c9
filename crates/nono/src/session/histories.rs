//! Checkpoints for those inside: what hooks and slash commands ask for over the request channel.
//!
//! Whoever asks may lie about everything. So: a path counts only if it lies, links followed out here, in a folder that
//! this sandbox may write, and no project reaches further up than that folder. What is answered never shows a name or a
//! line that the policy keeps from the command. Turns are counted here, for this run alone, so that nobody inside can use
//! up or end a turn of a conversation elsewhere. A restore happens only once a person agreed, to exactly the checkpoint
//! they were shown. Every failure is an answer.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nono_audit::event::Restore;
use nono_checkpoint::manager::Note;
use nono_checkpoint::remote::{self, Action};
use nono_checkpoint::{
    Checkpoint, CheckpointError, CheckpointManager, Choice, Conflicts, Ensured, Origin, Outcome, Skip, Target,
};
use nono_policy::{AccessMode, QueryResult, query_path};
use nono_supervisor::approval::Subject;
use nono_supervisor::mediate::{Agree, Histories};
use nono_sys::time::now_ms;
use serde_json::{Value, json};

use super::checkpoints::Protecting;
use super::tracked::resolved;
use crate::checkpoints::{self, json as shapes};
use crate::rollback::patch;
use crate::rollback::room::gaps;

/// The way in for requests.
pub(super) struct Inside {
    protecting: Arc<Protecting>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    conversations: Conversations,
    /// One for each project: two projects do not wait for each other.
    managers: HashMap<PathBuf, Arc<Mutex<CheckpointManager>>>,
    room: Room,
}

impl Inside {
    pub(super) fn new(protecting: Arc<Protecting>) -> Inside {
        Inside { protecting, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Histories for Inside {
    fn carry_out(&self, action: Action, agree: &Agree<'_>) -> Result<Value, String> {
        match action {
            Action::Restore { dir, target, paths, conflicts } => {
                let choice = Choice { conflicts, ..Choice::default() };
                self.restore(&dir, &target, &paths, &choice, agree)
            }
            action => on_a_deep_stack(|| self.answer(action)),
        }
    }
}

/// Whether an agent's hook says it: a person's commands name no agent.
fn is_of_a_hook(action: &Action) -> bool {
    match action {
        Action::Prompt { origin, .. }
        | Action::Begins { origin, .. }
        | Action::Before { origin, .. }
        | Action::After { origin, .. }
        | Action::Stopped { origin, .. }
        | Action::Notes { origin } => origin.agent.is_some(),
        Action::List { .. } | Action::Diff { .. } | Action::Restore { .. } => false,
    }
}

/// Requests are served on small stacks, and trees may be deep.
fn on_a_deep_stack<T: Send>(work: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().name("nono-history".to_owned()).stack_size(STACK);
        let worker = worker.spawn_scoped(scope, work).map_err(|error| error.to_string())?;
        worker.join().unwrap_or_else(|_| Err("it could not be carried out".to_owned()))
    })
}

const STACK: usize = 8 << 20;

impl Inside {
    fn answer(&self, action: Action) -> Result<Value, String> {
        if is_of_a_hook(&action) {
            self.protecting.hear();
        }
        match action {
            Action::Prompt { origin, digest } => {
                let mut origin = self.mine(origin);
                let turn = self.state().conversations.prompt(&origin);
                origin.turn = Some(turn.clone());
                self.protecting.told_prompt(&origin, digest.as_deref());
                Ok(json!({ "turn": turn }))
            }
            Action::Before { origin, reason, command, targets } => {
                Ok(self.before(origin, &reason, command.as_deref(), &targets))
            }
            Action::Begins { origin, command, targets } => {
                Ok(self.begins(origin, command.as_deref(), &targets))
            }
            Action::After { origin, targets } => Ok(self.after(origin, &targets)),
            Action::Stopped { origin, targets } => {
                Ok(self.in_each(origin, &targets, CheckpointManager::agent_stopped))
            }
            Action::List { dir } => self.list(&dir),
            Action::Diff { dir, target, paths, brief } => self.diff(&dir, target, &paths, brief),
            Action::Notes { origin } => self.notes(&origin),
            Action::Restore { .. } => Err("a restore is asked about".to_owned()),
        }
    }

    /// The run is not theirs to say.
    fn mine(&self, origin: Origin) -> Origin {
        Origin { run: Some(self.protecting.run.clone()), ..origin }
    }

    /// The project of a path from inside, if the sandbox may write it. Links are followed as they lead out here.
    fn project(&self, path: &Path) -> Result<PathBuf, String> {
        let found = resolved(path);
        if !self.protecting.is_writable(&found) {
            return Err(format!("{} is not writable in this sandbox", path.display()));
        }
        let root = self.protecting.manager().root_of(&found).map_err(|error| error.to_string())?;
        self.check(&root.dir).map(|()| root.dir)
    }

    /// Whoever resolved it in between, it must still be theirs.
    fn check(&self, project: &Path) -> Result<(), String> {
        if self.protecting.is_writable(project) {
            return Ok(());
        }
        Err(format!("{} is not writable in this sandbox", project.display()))
    }

    fn manager_of(&self, project: &Path) -> Arc<Mutex<CheckpointManager>> {
        let mut state = self.state();
        if state.managers.len() >= MOST_PROJECTS && !state.managers.contains_key(project) {
            // What they know of turns goes with them: at worst a checkpoint more.
            state.managers.clear();
        }
        let new = || Arc::new(Mutex::new(self.protecting.manager()));
        state.managers.entry(project.to_owned()).or_insert_with(new).clone()
    }

    fn with_manager<T>(&self, project: &Path, work: impl FnOnce(&mut CheckpointManager) -> T) -> T {
        let manager = self.manager_of(project);
        let mut manager = manager.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut manager)
    }

    /// One checkpoint for each project among the targets.
    fn before(&self, origin: Origin, reason: &str, command: Option<&str>, targets: &[remote::Path]) -> Value {
        let mut origin = self.mine(origin);
        self.state().conversations.place(&mut origin);
        self.protecting.told_call(&origin, command);
        let (projects, mut results) = self.projects(targets, reason);
        for project in projects {
            if !self.state().room.left() {
                let why = "too many checkpoints in a short time";
                self.protecting.missed(&project, why, reason);
                results.push(json!({ "project": path(&project), "failed": why }));
                continue;
            }
            let ensured = self.with_manager(&project, |manager| {
                self.protecting.hooks_speak(&project, manager);
                manager.ensure_checkpoint(&project, reason, &origin)
            });
            if matches!(ensured, Ensured::Taken { .. }) {
                self.state().room.take();
            }
            self.protecting.note(&ensured, reason);
            results.push(said(&ensured));
        }
        json!({ "turn": origin.turn, "results": results })
    }

    fn begins(&self, origin: Origin, command: Option<&str>, targets: &[remote::Path]) -> Value {
        let mut told = self.mine(origin.clone());
        self.state().conversations.place(&mut told);
        self.protecting.told_call(&told, command);
        self.in_each(origin, targets, CheckpointManager::agent_begins)
    }

    fn after(&self, origin: Origin, targets: &[remote::Path]) -> Value {
        self.in_each(origin, targets, CheckpointManager::agent_left)
    }

    fn in_each(
        &self,
        origin: Origin,
        targets: &[remote::Path],
        work: impl Fn(&mut CheckpointManager, &Path, &Origin) -> Result<(), CheckpointError>,
    ) -> Value {
        let mut origin = self.mine(origin);
        self.state().conversations.place(&mut origin);
        let mut problems = Vec::new();
        let mut projects: Vec<_> =
            targets.iter().filter_map(|remote::Path(path)| self.project(path).ok()).collect();
        projects.sort();
        projects.dedup();
        for project in projects {
            let left = self.with_manager(&project, |manager| {
                self.protecting.hooks_speak(&project, manager);
                work(manager, &project, &origin)
            });
            problems.extend(left.err().map(|error| error.to_string()));
        }
        json!({ "problems": problems })
    }

    /// The projects of these paths, each once; and what cannot be protected.
    fn projects(&self, targets: &[remote::Path], reason: &str) -> (Vec<PathBuf>, Vec<Value>) {
        let (mut projects, mut refused) = (Vec::new(), Vec::new());
        for remote::Path(target) in targets {
            match self.project(target) {
                Ok(project) => projects.push(project),
                // The kernel keeps it from being written, so there is nothing to protect: only to be said.
                Err(why) if !self.protecting.is_writable(&resolved(target)) => {
                    refused.push(json!({ "project": path(target), "refused": why }));
                }
                Err(why) => {
                    self.protecting.missed(target, &why, reason);
                    refused.push(json!({ "project": path(target), "failed": why }));
                }
            }
        }
        projects.sort();
        projects.dedup();
        (projects, refused)
    }

    fn list(&self, remote::Path(dir): &remote::Path) -> Result<Value, String> {
        let project = self.project(dir)?;
        self.with_manager(&project, |manager| {
            let here = manager.here(&project).unwrap_or_default();
            Ok(shapes::list(&project, &manager.list(&project)?, here.as_ref()))
        })
        .map_err(|error: CheckpointError| error.to_string())
    }

    /// As a patch or in brief, of what the command may read.
    fn diff(
        &self,
        remote::Path(dir): &remote::Path,
        target: String,
        paths: &[remote::Path],
        brief: bool,
    ) -> Result<Value, String> {
        let project = self.project(dir)?;
        let target = Target::Text(target);
        self.with_manager(&project, |manager| {
            let checkpoint = manager.find(&project, &target).map_err(|error| error.to_string())?;
            let target = Target::Id(checkpoint.id.clone());
            let mut compared = manager.compare(&project, &target).map_err(|error| error.to_string())?;
            if !compared.manager.roots().iter().all(|root| self.protecting.is_writable(root)) {
                return Err("the project has changed its place".to_owned());
            }
            let mut set = checkpoints::changes(&mut compared);
            if !paths.is_empty() {
                let chosen: Vec<_> = paths.iter().map(|remote::Path(path)| resolved(path)).collect();
                set.items.retain(|item| chosen.iter().any(|path| item.path.starts_with(path)));
            }
            let total = set.items.len();
            set.items.retain(|item| self.may_see(&item.path) && self.may_see(item.old_path()));
            let mut left_out = total - set.items.len();
            if brief {
                let brief = checkpoints::brief(&compared.manager, &set).map_err(|error| error.to_string())?;
                return Ok(json!({
                    "checkpoint": checkpoint.id,
                    "project": path(&project),
                    "brief": brief,
                    "left_out": left_out,
                }));
            }
            let mut text = Vec::new();
            for item in &set.items {
                let before = text.len();
                patch::write_patch(&compared.manager, &set, &[item], &mut text)
                    .map_err(|error| error.to_string())?;
                if text.len() > MOST_TEXT {
                    text.truncate(before);
                    left_out += 1;
                }
            }
            Ok(json!({
                "checkpoint": shapes::checkpoint(&checkpoint),
                "counts": set.counts(),
                "patch": String::from_utf8_lossy(&text),
                "left_out": left_out,
            }))
        })
    }

    fn may_see(&self, path: &Path) -> bool {
        let answer = query_path(&self.protecting.policy, path, true, AccessMode::Read);
        matches!(answer, QueryResult::Allowed { .. })
    }

    /// Only about projects that are theirs.
    fn notes(&self, origin: &Origin) -> Result<Value, String> {
        let (Some(agent), Some(session)) = (&origin.agent, &origin.session) else { return Ok(json!([])) };
        let mine = |note: &Note| self.protecting.is_writable(&note.project);
        let notes = self.protecting.manager().take_notes_about(agent, session, mine);
        Ok(json!(notes.map_err(|error| error.to_string())?))
    }

    fn restore(
        &self,
        remote::Path(dir): &remote::Path,
        target: &str,
        paths: &[remote::Path],
        choice: &Choice,
        agree: &Agree<'_>,
    ) -> Result<Value, String> {
        if choice.conflicts != Conflicts::Keep {
            return Err("what people changed is restored or merged from outside only".to_owned());
        }
        let project = self.project(dir)?;
        let paths: Vec<_> = paths.iter().map(|remote::Path(path)| resolved(path)).collect();
        if let Some(path) = paths.iter().find(|path| !path.starts_with(&project)) {
            return Err(format!("{} is not below {}", path.display(), project.display()));
        }
        let choice = Choice { paths, ..choice.clone() };
        let (checkpoint, subject) = on_a_deep_stack(|| {
            self.with_manager(&project, |manager| planned(manager, &project, target, &choice))
        })?;
        agree(subject)?;
        on_a_deep_stack(|| {
            let target = Target::Id(checkpoint.id.clone());
            let author = self.protecting.author();
            self.with_manager(&project, |manager| {
                let done = checkpoints::restore(manager, &author, &project, &target, &choice)
                    .map_err(|error| error.to_string())?;
                self.protecting.restored(recorded(&project, &choice, &done));
                let Outcome { project, checkpoint, turns_undone, done, .. } = done;
                let mut value = shapes::outcome(&project, Some(&checkpoint), &turns_undone, &done);
                value["unrecorded"] = json!(done.unrecorded);
                Ok(value)
            })
        })
    }
}

/// What a person has to know before they agree.
fn planned(
    manager: &mut CheckpointManager,
    project: &Path,
    target: &str,
    choice: &Choice,
) -> Result<(Checkpoint, Subject), String> {
    let target = Target::Text(target.to_owned());
    let checkpoint = manager.find(project, &target).map_err(|error| error.to_string())?;
    let target = Target::Id(checkpoint.id.clone());
    let plan = manager.plan(project, &target, choice).map_err(|error| error.to_string())?;
    let subject = Subject::RestoreCheckpoint {
        project: project.to_owned(),
        checkpoint: checkpoint.id.to_string(),
        reason: checkpoint.reason.clone(),
        paths: choice.paths.clone(),
        changes: (plan.changes.len() + plan.merges.len()) as u64,
        kept: plan.kept.len() as u64,
    };
    Ok((checkpoint, subject))
}

fn recorded(project: &Path, choice: &Choice, done: &Outcome) -> Restore {
    let changed = done.changes.len() + done.written_merges().len();
    Restore {
        time_ms: now_ms(),
        session_id: project.to_string_lossy().into_owned(),
        snapshot: done.checkpoint.id.to_string(),
        paths: choice.paths.clone(),
        restored: changed as u64,
        kept: done.kept.len() as u64,
        failed: done.failed.len() as u64,
        outcome: format!("restored {changed}, kept {}, failed {}", done.kept.len(), done.failed.len()),
    }
}

fn said(ensured: &Ensured) -> Value {
    match ensured {
        Ensured::Taken { project, checkpoint, coverage } => json!({
            "project": path(project),
            "taken": checkpoint.id,
            "not_covered": checkpoint.left_out,
            "gaps": gaps(coverage),
        }),
        Ensured::Skipped { project, why } => {
            let (why, id) = match why {
                Skip::Disabled => ("disabled", None),
                Skip::ThisTurn(id) => ("this_turn", Some(id)),
                Skip::Unchanged(id) => ("unchanged", Some(id)),
            };
            json!({ "project": path(project), "skipped": why, "checkpoint": id })
        }
        Ensured::Failed { dir, error } => json!({ "project": path(dir), "failed": error.to_string() }),
    }
}

fn path(path: &Path) -> Value {
    crate::shapes::path(path)
}

/// So many projects are remembered.
const MOST_PROJECTS: usize = 64;
/// A frame holds no more.
const MOST_TEXT: usize = 32 << 10;

/// The turns of the conversations inside.
#[derive(Default)]
struct Conversations {
    turns: HashMap<(Option<String>, Option<String>), Turn>,
}

#[derive(Default)]
struct Turn {
    prompts: u64,
    id: Option<String>,
    /// What the person said in it.
    prompt: Option<String>,
}

const MOST_CONVERSATIONS: usize = 256;

impl Conversations {
    fn of(&mut self, origin: &Origin) -> &mut Turn {
        let key = (origin.agent.clone(), origin.session.clone());
        if self.turns.len() >= MOST_CONVERSATIONS && !self.turns.contains_key(&key) {
            // At worst a turn is counted anew.
            self.turns.clear();
        }
        self.turns.entry(key).or_default()
    }

    /// A person spoke.
    fn prompt(&mut self, origin: &Origin) -> String {
        let run = origin.run.clone().unwrap_or_default();
        let turn = self.of(origin);
        turn.prompts += 1;
        let id = origin.turn.clone().unwrap_or_else(|| format!("{run}.{}", turn.prompts));
        turn.id = Some(id.clone());
        turn.prompt.clone_from(&origin.prompt);
        id
    }

    /// Give an origin that names no turn the one that goes on.
    fn place(&mut self, origin: &mut Origin) {
        let run = origin.run.clone().unwrap_or_default();
        let turn = self.of(origin);
        match &origin.turn {
            Some(id) if turn.id.as_ref() != Some(id) => {
                turn.id = Some(id.clone());
                turn.prompt = None;
            }
            Some(_) => {}
            None => origin.turn = Some(turn.id.clone().unwrap_or_else(|| format!("{run}.{}", turn.prompts))),
        }
        origin.prompt.clone_from(&turn.prompt);
    }
}

/// How many checkpoints a command may have taken: a flood of them must not push older ones out of the history.
#[derive(Default)]
struct Room {
    taken: VecDeque<Instant>,
}

const BURST: usize = 30;
const SPAN: Duration = Duration::from_secs(150);

impl Room {
    fn left(&mut self) -> bool {
        while self.taken.front().is_some_and(|first| first.elapsed() > SPAN) {
            self.taken.pop_front();
        }
        self.taken.len() < BURST
    }

    fn take(&mut self) {
        self.taken.push_back(Instant::now());
    }
}
