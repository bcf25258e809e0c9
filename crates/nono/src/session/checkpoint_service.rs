//! Checkpoint service for the sandbox: requests of hooks and slash commands over the request channel.
//!
//! The caller may lie about everything. So: a path counts only if, with links followed outside the sandbox, it lies in
//! a folder that the sandbox may write, and no project extends above that folder. An answer never shows a name or a
//! line that the policy denies to the command. Turns are counted here, for this run alone, so that the command cannot
//! use up or end a turn of another conversation. A restore needs the user's approval, for exactly the checkpoint that
//! was shown. Every failure is sent as an answer.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use nono_checkpoint::manager::RestoreNote;
use nono_checkpoint::supervisor_request::{Path as AskedPath, RemoteAction};
use nono_checkpoint::{
    Checkpoint, CheckpointChoice, CheckpointError, CheckpointManager, CheckpointTarget, Conflicts, Ensured,
    Origin, ProjectOutcome, Skip,
};
use nono_policy::{AccessMode, query_path};
use nono_supervisor::approval::Subject;
use nono_supervisor::mediate::{CheckpointService, RestoreConsent};
use nono_supervisor::request_service::RequestFailure;
use serde_json::{Value, json};

use super::checkpoint_quota::CheckpointQuota;
use super::checkpoint_request_error::CheckpointRequestError;
use super::checkpoints::Protecting;
use super::rollback_options::resolved;
use crate::checkpoints::{self, json as shapes};
use crate::json::path;
use crate::rollback::patch;

/// Handler of checkpoint requests from inside the sandbox.
#[derive(Debug)]
pub(super) struct InsideRequests {
    protecting: Arc<Protecting>,
    state: Mutex<ServiceState>,
}

#[derive(Debug, Default)]
struct ServiceState {
    conversations: Conversations,
    /// One per project, so that projects do not wait for each other.
    managers: HashMap<PathBuf, Arc<Mutex<CheckpointManager>>>,
    room: CheckpointQuota,
}

impl InsideRequests {
    pub(super) fn new(protecting: Arc<Protecting>) -> InsideRequests {
        InsideRequests { protecting, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, ServiceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CheckpointService for InsideRequests {
    fn carry_out(&self, action: RemoteAction, agree: &RestoreConsent<'_>) -> Result<Value, RequestFailure> {
        let answer = match action {
            RemoteAction::Restore { dir, target, paths, conflicts } => {
                self.restore(&dir, &target, &paths, conflicts, agree)
            }
            action => on_a_deep_stack(|| self.answer(action)),
        };
        answer.map_err(|error| match error {
            CheckpointRequestError::Refused(failure) => failure,
            error => RequestFailure::Service(error.into()),
        })
    }
}

/// Whether an agent's hook sent the request: the user's own commands name no agent.
fn is_of_a_hook(action: &RemoteAction) -> bool {
    match action {
        RemoteAction::Prompt { origin, .. }
        | RemoteAction::Begins { origin, .. }
        | RemoteAction::Before { origin, .. }
        | RemoteAction::After { origin, .. }
        | RemoteAction::Stopped { origin, .. }
        | RemoteAction::Notes { origin } => origin.agent.is_some(),
        RemoteAction::List { .. } | RemoteAction::Diff { .. } | RemoteAction::Restore { .. } => false,
    }
}

/// Run `work` on a large stack: requests are served on small ones, and trees may be deep.
fn on_a_deep_stack<T: Send>(
    work: impl FnOnce() -> Result<T, CheckpointRequestError> + Send,
) -> Result<T, CheckpointRequestError> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().name("nono-history".to_owned()).stack_size(STACK);
        let worker = worker.spawn_scoped(scope, work)?;
        worker.join().unwrap_or_else(|_| Err(CheckpointRequestError::Panicked))
    })
}

const STACK: usize = 8 << 20;

impl InsideRequests {
    fn answer(&self, action: RemoteAction) -> Result<Value, CheckpointRequestError> {
        if is_of_a_hook(&action) {
            self.protecting.hear();
        }
        match action {
            RemoteAction::Prompt { origin, digest } => {
                let mut origin = self.mine(origin);
                let turn = self.state().conversations.prompt(&origin);
                origin.turn = Some(turn.clone());
                self.protecting.told_prompt(&origin, digest.as_deref());
                Ok(json!({ "turn": turn }))
            }
            RemoteAction::Before { origin, reason, command, targets } => {
                Ok(self.before(origin, &reason, command.as_deref(), &targets))
            }
            RemoteAction::Begins { origin, command, targets } => {
                Ok(self.begins(origin, command.as_deref(), &targets))
            }
            RemoteAction::After { origin, targets } => {
                Ok(self.in_each(origin, &targets, CheckpointManager::agent_left))
            }
            RemoteAction::Stopped { origin, targets } => {
                Ok(self.in_each(origin, &targets, CheckpointManager::agent_stopped))
            }
            RemoteAction::List { dir } => self.list(&dir),
            RemoteAction::Diff { dir, target, paths, brief } => self.diff(&dir, target, &paths, brief),
            RemoteAction::Notes { origin } => self.notes(&origin),
            RemoteAction::Restore { .. } => Err(CheckpointRequestError::NeedsApproval),
        }
    }

    /// The origin with this run's id: the caller cannot choose it.
    fn mine(&self, origin: Origin) -> Origin {
        Origin { run: Some(self.protecting.run.clone()), ..origin }
    }

    /// The same, with the turn its conversation is in.
    fn placed(&self, origin: Origin) -> Origin {
        let mut origin = self.mine(origin);
        self.state().conversations.place(&mut origin);
        origin
    }

    /// The project of a path, if the sandbox may write it. Links are followed outside the sandbox.
    fn project(&self, path: &Path) -> Result<PathBuf, CheckpointRequestError> {
        let found = resolved(path);
        if !self.protecting.is_writable(&found) {
            return Err(CheckpointRequestError::NotWritable(path.to_owned()));
        }
        let project = self.protecting.manager().root_of(&found)?.dir;
        // A link may have changed since the path was resolved.
        if !self.protecting.is_writable(&project) {
            return Err(CheckpointRequestError::NotWritable(project));
        }
        Ok(project)
    }

    fn with_manager<T>(&self, project: &Path, work: impl FnOnce(&mut CheckpointManager) -> T) -> T {
        let mut state = self.state();
        if state.managers.len() >= MOST_PROJECTS && !state.managers.contains_key(project) {
            // Their memory of turns is lost: at worst one checkpoint more is taken.
            state.managers.clear();
        }
        let new = || Arc::new(Mutex::new(self.protecting.manager()));
        let manager = state.managers.entry(project.to_owned()).or_insert_with(new).clone();
        drop(state);
        let mut manager = manager.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut manager)
    }

    /// Take a checkpoint of each project among the targets.
    fn before(&self, origin: Origin, reason: &str, command: Option<&str>, targets: &[AskedPath]) -> Value {
        let origin = self.placed(origin);
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

    fn begins(&self, origin: Origin, command: Option<&str>, targets: &[AskedPath]) -> Value {
        self.protecting.told_call(&self.placed(origin.clone()), command);
        self.in_each(origin, targets, CheckpointManager::agent_begins)
    }

    fn in_each(
        &self,
        origin: Origin,
        targets: &[AskedPath],
        work: impl Fn(&mut CheckpointManager, &Path, &Origin) -> Result<(), CheckpointError>,
    ) -> Value {
        let origin = self.placed(origin);
        let mut problems = Vec::new();
        let projects: BTreeSet<_> =
            targets.iter().filter_map(|AskedPath(path)| self.project(path).ok()).collect();
        for project in projects {
            let left = self.with_manager(&project, |manager| {
                self.protecting.hooks_speak(&project, manager);
                work(manager, &project, &origin)
            });
            problems.extend(left.err().map(|error| error.to_string()));
        }
        json!({ "problems": problems })
    }

    /// The projects of these paths, each once; and the paths that cannot be protected.
    fn projects(&self, targets: &[AskedPath], reason: &str) -> (BTreeSet<PathBuf>, Vec<Value>) {
        let (mut projects, mut refused) = (BTreeSet::new(), Vec::new());
        for AskedPath(target) in targets {
            match self.project(target) {
                Ok(project) => {
                    projects.insert(project);
                }
                // The kernel denies writing there, so there is nothing to protect.
                Err(why) if !self.protecting.is_writable(&resolved(target)) => {
                    refused.push(json!({ "project": path(target), "refused": why.to_string() }));
                }
                Err(why) => {
                    let why = why.to_string();
                    self.protecting.missed(target, &why, reason);
                    refused.push(json!({ "project": path(target), "failed": why }));
                }
            }
        }
        (projects, refused)
    }

    fn list(&self, AskedPath(dir): &AskedPath) -> Result<Value, CheckpointRequestError> {
        let project = self.project(dir)?;
        self.with_manager(&project, |manager| {
            let here = manager.here(&project).unwrap_or_default();
            Ok(shapes::list(&project, &manager.list(&project)?, here.as_ref()))
        })
    }

    /// Changes since a checkpoint that the command may read, as a patch or in brief.
    fn diff(
        &self,
        AskedPath(dir): &AskedPath,
        target: String,
        paths: &[AskedPath],
        brief: bool,
    ) -> Result<Value, CheckpointRequestError> {
        let project = self.project(dir)?;
        let target = CheckpointTarget::Text(target);
        self.with_manager(&project, |manager| {
            let checkpoint = manager.find(&project, &target)?;
            let target = CheckpointTarget::Id(checkpoint.id.clone());
            let mut compared = manager.compare(&project, &target)?;
            if !compared.manager.roots().iter().all(|root| self.protecting.is_writable(root)) {
                return Err(CheckpointRequestError::Moved);
            }
            let chosen: Vec<_> = paths.iter().map(|AskedPath(path)| resolved(path)).collect();
            let mut set = checkpoints::changes_of(&mut compared, &chosen);
            let total = set.items.len();
            set.items.retain(|item| self.may_see(&item.path) && self.may_see(item.old_path()));
            let mut left_out = total - set.items.len();
            if brief {
                let brief = checkpoints::brief(&compared.manager, &set)?;
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
                patch::write_patch(&compared.manager, &set, &[item], &mut text)?;
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
        query_path(&self.protecting.policy, path, true, AccessMode::Read).is_allowed()
    }

    /// Notes for a conversation, about projects that the sandbox may write.
    fn notes(&self, origin: &Origin) -> Result<Value, CheckpointRequestError> {
        let (Some(agent), Some(session)) = (&origin.agent, &origin.session) else { return Ok(json!([])) };
        let mine = |note: &RestoreNote| self.protecting.is_writable(&note.project);
        let notes = self.protecting.manager().take_notes_about(agent, session, mine);
        Ok(json!(notes?))
    }

    fn restore(
        &self,
        AskedPath(dir): &AskedPath,
        target: &str,
        paths: &[AskedPath],
        conflicts: Conflicts,
        agree: &RestoreConsent<'_>,
    ) -> Result<Value, CheckpointRequestError> {
        if conflicts != Conflicts::Keep {
            return Err(CheckpointRequestError::Overwrites);
        }
        let project = self.project(dir)?;
        let paths: Vec<_> = paths.iter().map(|AskedPath(path)| resolved(path)).collect();
        if let Some(path) = paths.iter().find(|path| !path.starts_with(&project)) {
            return Err(CheckpointRequestError::Outside { path: path.clone(), project });
        }
        let choice = CheckpointChoice { paths, ..CheckpointChoice::default() };
        let (checkpoint, subject) = on_a_deep_stack(|| {
            self.with_manager(&project, |manager| planned(manager, &project, target, &choice))
        })?;
        agree(subject)?;
        on_a_deep_stack(|| {
            let target = CheckpointTarget::Id(checkpoint.id.clone());
            let author = self.protecting.author();
            self.with_manager(&project, |manager| {
                let done = checkpoints::restore(manager, &author, &project, &target, &choice)?;
                let subject = checkpoints::subject(done.checkpoint.id.to_string(), &choice.paths);
                self.protecting.restored(subject.event::<CheckpointError>(Ok(&done)));
                let ProjectOutcome { project, checkpoint, turns_undone, done, .. } = done;
                let outcome = shapes::outcome(&project, Some(&checkpoint), &turns_undone, &done);
                // A message of the channel is short.
                Ok(crate::json::short(outcome, MOST_LISTED))
            })
        })
    }
}

/// The checkpoint, and the restore plan as the user is asked to approve it.
fn planned(
    manager: &mut CheckpointManager,
    project: &Path,
    target: &str,
    choice: &CheckpointChoice,
) -> Result<(Checkpoint, Subject), CheckpointRequestError> {
    let target = CheckpointTarget::Text(target.to_owned());
    let checkpoint = manager.find(project, &target)?;
    let target = CheckpointTarget::Id(checkpoint.id.clone());
    let plan = manager.plan(project, &target, choice)?;
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

fn said(ensured: &Ensured) -> Value {
    match ensured {
        Ensured::Taken { project, checkpoint, coverage } => json!({
            "project": path(project),
            "taken": checkpoint.id,
            "not_covered": checkpoint.left_out,
            "gaps": nono_history::quota::gaps(coverage),
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

/// Maximum number of projects whose managers are kept.
const MOST_PROJECTS: usize = 64;
/// Maximum length of each list in the answer to a restore.
const MOST_LISTED: usize = 100;
/// Maximum size of a patch in an answer, in bytes.
const MOST_TEXT: usize = 32 << 10;

/// Current turns of the conversations inside the sandbox.
#[derive(Debug, Default)]
struct Conversations {
    turns: HashMap<(Option<String>, Option<String>), SessionTurn>,
}

#[derive(Debug, Default)]
struct SessionTurn {
    prompts: u64,
    id: Option<String>,
    /// The user's prompt.
    prompt: Option<String>,
}

const MOST_CONVERSATIONS: usize = 256;

impl Conversations {
    fn of(&mut self, origin: &Origin) -> &mut SessionTurn {
        let key = (origin.agent.clone(), origin.session.clone());
        if self.turns.len() >= MOST_CONVERSATIONS && !self.turns.contains_key(&key) {
            // At worst the turns of a conversation are counted from 1 again.
            self.turns.clear();
        }
        self.turns.entry(key).or_default()
    }

    /// Start a turn with a user prompt.
    fn prompt(&mut self, origin: &Origin) -> String {
        let run = origin.run.clone().unwrap_or_default();
        let turn = self.of(origin);
        turn.prompts += 1;
        let id = origin.turn.clone().unwrap_or_else(|| format!("{run}.{}", turn.prompts));
        turn.id = Some(id.clone());
        turn.prompt.clone_from(&origin.prompt);
        id
    }

    /// Give an origin without a turn the current one.
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
