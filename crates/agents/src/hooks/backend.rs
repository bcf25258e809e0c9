//! Backends that carry out what hooks ask for: this process, or the supervisor of the sandbox around it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use nono_audit::Digest;
use nono_checkpoint::manager::RestoreNote;
use nono_checkpoint::supervisor_request::{self, RemoteAction};
use nono_checkpoint::turns::Turns;
use nono_checkpoint::{CheckpointError, CheckpointId, CheckpointManager, Ensured, Origin, Skip};
use nono_history::quota::gaps;
use nono_supervisor::request::{self, RequestError, Wait};
use nono_supervisor::request_service::NO_HISTORIES;
use serde_json::Value;

/// Error message.
pub type ErrorText = String;

/// Result of taking checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Protected {
    /// Projects of which a checkpoint was taken now.
    pub taken: Vec<PathBuf>,
    /// Paths without protection, and why.
    pub unprotected: Vec<(PathBuf, ErrorText)>,
    /// Other problems.
    pub troubles: Vec<ErrorText>,
}

pub trait Backend {
    /// The user sent a prompt.
    fn prompt(&mut self, origin: &Origin, text: &str) -> Result<(), ErrorText>;

    /// A read-only call begins.
    fn begins(&mut self, origin: &Origin, command: Option<&str>) -> Result<(), ErrorText>;

    /// A call begins that may change these.
    fn before(
        &mut self,
        origin: &Origin,
        reason: &str,
        command: Option<&str>,
        targets: &[PathBuf],
    ) -> Protected;

    /// A call ended.
    fn after(&mut self, origin: &Origin, targets: &[PathBuf]) -> Result<(), ErrorText>;

    /// The agent has finished for now.
    fn stopped(&mut self, origin: &Origin, targets: &[PathBuf]) -> Result<(), ErrorText>;

    /// Restores that the agent has not been informed of yet.
    fn notes(&mut self, origin: &Origin) -> Result<Vec<RestoreNote>, ErrorText>;
}

/// Backend in this process.
#[derive(Debug)]
pub struct Local {
    pub manager: CheckpointManager,
    turns: Turns,
}

impl Local {
    pub fn new(manager: CheckpointManager) -> Local {
        let turns = Turns::new(&manager.host().state_dir);
        Local { manager, turns }
    }

    /// Origin with its turn. If the turn cannot be determined, there is an extra checkpoint, not a missing one.
    fn place(&self, origin: &Origin) -> (Origin, Option<ErrorText>) {
        match self.turns.current(origin) {
            Ok(turn) => {
                let damaged = turn.damaged.map(|error| format!("{error}; a new one was started"));
                (Origin { turn: Some(turn.id), prompt: turn.prompt, ..origin.clone() }, damaged)
            }
            Err(error) => (origin.clone(), Some(error.to_string())),
        }
    }

    /// Report a call to each project among the paths.
    fn report(
        &mut self,
        origin: &Origin,
        targets: &[PathBuf],
        tell: fn(&mut CheckpointManager, &Path, &Origin) -> Result<(), CheckpointError>,
    ) -> Result<(), ErrorText> {
        let (origin, trouble) = self.place(origin);
        let mut first = Ok(());
        for target in self.projects(targets) {
            let result = match tell(&mut self.manager, &target, &origin) {
                // Not a project and never one: nothing is kept of it.
                Err(CheckpointError::TooBroad { .. }) => Ok(()),
                result => result.map_err(|error| error.to_string()),
            };
            first = first.and(result);
        }
        first.and(trouble.map_or(Ok(()), Err))
    }

    /// Report paths that are named but not covered by the checkpoint. An error here is ignored: the checkpoint exists.
    fn tell_uncovered(
        &self,
        project: &Path,
        id: &CheckpointId,
        targets: &[PathBuf],
        protected: &mut Protected,
    ) {
        for (path, why) in self.manager.uncovered(project, id, targets).unwrap_or_default() {
            protected.troubles.push(format!("{} is not covered: {why}", path.display()));
        }
    }

    /// One path for each project, and those that belong to none.
    fn projects(&self, targets: &[PathBuf]) -> Vec<PathBuf> {
        let mut roots: Vec<PathBuf> = Vec::new();
        let mut paths = Vec::new();
        for target in targets {
            match self.manager.root_of(target) {
                Ok(root) if roots.contains(&root.dir) => {}
                Ok(root) => {
                    roots.push(root.dir);
                    paths.push(target.clone());
                }
                // Files directly in a folder for temporary files belong to no project.
                Err(CheckpointError::TooBroad { path, .. }) if is_temporary(&path) => {}
                Err(_) => paths.push(target.clone()),
            }
        }
        paths
    }
}

/// Message about checkpoints removed to make room for this one.
fn made_room(pruned: &nono_checkpoint::Pruned) -> Option<ErrorText> {
    let count: usize = pruned.removed.iter().map(|(_, checkpoints)| checkpoints.len()).sum();
    (count > 0).then(|| format!("{count} old checkpoints were removed to make room for this one"))
}

fn is_temporary(path: &Path) -> bool {
    ["/tmp", "/var/tmp", "/dev/shm"].iter().any(|folder| path == Path::new(folder))
}

impl Backend for Local {
    fn prompt(&mut self, origin: &Origin, _text: &str) -> Result<(), ErrorText> {
        let turn = self.turns.prompt(origin).map_err(|error| error.to_string())?;
        turn.damaged.map_or(Ok(()), |error| Err(format!("{error}; a new one was started")))
    }

    fn begins(&mut self, origin: &Origin, _command: Option<&str>) -> Result<(), ErrorText> {
        self.place(origin).1.map_or(Ok(()), Err)
    }

    fn before(
        &mut self,
        origin: &Origin,
        reason: &str,
        _command: Option<&str>,
        targets: &[PathBuf],
    ) -> Protected {
        let (origin, trouble) = self.place(origin);
        let mut protected = Protected { troubles: trouble.into_iter().collect(), ..Protected::default() };
        for target in self.projects(targets) {
            match self.manager.ensure_checkpoint(&target, reason, &origin) {
                Ensured::Taken { project, checkpoint, coverage } => {
                    self.tell_uncovered(&project, &checkpoint.id, targets, &mut protected);
                    protected.troubles.extend(gaps(&coverage));
                    protected.taken.push(project);
                }
                Ensured::Skipped { project, why: Skip::Unchanged(id) } => {
                    self.tell_uncovered(&project, &id, targets, &mut protected);
                }
                Ensured::Skipped { .. } => {}
                Ensured::Failed { dir, error } => protected.unprotected.push((dir, error.to_string())),
            }
        }
        protected.troubles.extend(self.manager.take_pruned().iter().filter_map(made_room));
        for done in self.manager.take_completed() {
            protected.troubles.push(format!(
                "an interrupted restore of {} was completed; undo it with `nono checkpoints undo`",
                done.project.display()
            ));
        }
        protected.troubles.extend(self.manager.take_completed_others());
        protected
    }

    fn after(&mut self, origin: &Origin, targets: &[PathBuf]) -> Result<(), ErrorText> {
        self.report(origin, targets, CheckpointManager::agent_left)
    }

    fn stopped(&mut self, origin: &Origin, targets: &[PathBuf]) -> Result<(), ErrorText> {
        self.report(origin, targets, CheckpointManager::agent_stopped)
    }

    fn notes(&mut self, origin: &Origin) -> Result<Vec<RestoreNote>, ErrorText> {
        let (Some(agent), Some(session)) = (&origin.agent, &origin.session) else { return Ok(Vec::new()) };
        self.manager.take_notes(agent, session).map_err(|error| error.to_string())
    }
}

/// Backend at the supervisor of the sandbox around this process. Its answers are trusted: it is outside.
#[derive(Clone, Debug)]
pub struct Remote {
    socket: PathBuf,
}

/// Maximum number of bytes of a command that are sent.
const COMMAND: usize = 900;

/// Time limit for an answer, because an agent waits for its hook: a longer capture continues, but is not waited for.
const PATIENCE: Duration = Duration::from_secs(50);

impl Remote {
    pub fn new(socket: PathBuf) -> Remote {
        Remote { socket }
    }

    fn ask(&self, action: RemoteAction) -> Result<Value, ErrorText> {
        let wait = Wait { patience: Some(PATIENCE), until: None };
        match request::history(&self.socket, action, wait) {
            // Not reported at every call: it was chosen when the session began.
            Err(RequestError::Refused(why)) if why == NO_HISTORIES => Ok(Value::Null),
            answer => answer.map_err(|error| error.to_string()),
        }
    }
}

/// Beginning of a command, with the total length.
fn beginning(command: &str) -> String {
    if command.len() <= COMMAND {
        return command.to_owned();
    }
    let cut: String =
        command.char_indices().take_while(|(at, _)| *at < COMMAND).map(|(_, char)| char).collect();
    // Cut at a word: half of a secret would not be recognised and redacted.
    let whole = cut.rsplit_once(char::is_whitespace).map_or(cut.as_str(), |(whole, _)| whole);
    format!("{whole} … ({} bytes)", command.len())
}

fn lossless(targets: &[PathBuf]) -> Vec<supervisor_request::Path> {
    targets.iter().cloned().map(supervisor_request::Path).collect()
}

impl Backend for Remote {
    fn prompt(&mut self, origin: &Origin, text: &str) -> Result<(), ErrorText> {
        let digest = Some(Digest::of(b"", &[text.as_bytes()]).hex());
        self.ask(RemoteAction::Prompt { origin: origin.clone(), digest }).map(|_| ())
    }

    fn begins(&mut self, origin: &Origin, command: Option<&str>) -> Result<(), ErrorText> {
        let (origin, command) = (origin.clone(), command.map(beginning));
        self.ask(RemoteAction::Begins { origin, command, targets: Vec::new() }).map(|_| ())
    }

    fn before(
        &mut self,
        origin: &Origin,
        reason: &str,
        command: Option<&str>,
        targets: &[PathBuf],
    ) -> Protected {
        let (origin, reason, lossless) = (origin.clone(), reason.to_owned(), lossless(targets));
        let action =
            RemoteAction::Before { origin, reason, command: command.map(beginning), targets: lossless };
        match self.ask(action) {
            Ok(answer) => understood(&answer),
            Err(why) => {
                let path = targets.first().cloned().unwrap_or_default();
                Protected { unprotected: vec![(path, why)], ..Protected::default() }
            }
        }
    }

    fn after(&mut self, origin: &Origin, targets: &[PathBuf]) -> Result<(), ErrorText> {
        first_problem(&self.ask(RemoteAction::After { origin: origin.clone(), targets: lossless(targets) })?)
    }

    fn stopped(&mut self, origin: &Origin, targets: &[PathBuf]) -> Result<(), ErrorText> {
        first_problem(
            &self.ask(RemoteAction::Stopped { origin: origin.clone(), targets: lossless(targets) })?,
        )
    }

    fn notes(&mut self, origin: &Origin) -> Result<Vec<RestoreNote>, ErrorText> {
        let answer: Option<Vec<RestoreNote>> =
            serde_json::from_value(self.ask(RemoteAction::Notes { origin: origin.clone() })?)
                .map_err(|error| error.to_string())?;
        Ok(answer.unwrap_or_default())
    }
}

fn first_problem(answer: &Value) -> Result<(), ErrorText> {
    let problem = answer["problems"].as_array().and_then(|problems| problems.first()?.as_str());
    problem.map_or(Ok(()), |problem| Err(problem.to_owned()))
}

/// Parse `{"results": [{"project", "taken" | "skipped" | "refused" | "failed"}]}`. A refused path cannot be written
/// either.
fn understood(answer: &Value) -> Protected {
    let mut protected = Protected::default();
    for result in answer["results"].as_array().into_iter().flatten() {
        let project = PathBuf::from(result["project"].as_str().unwrap_or_default());
        if result["taken"].is_string() {
            protected.taken.push(project.clone());
        }
        protected.troubles.extend(result["gaps"].as_str().map(str::to_owned));
        if let Some(why) = result["failed"].as_str() {
            protected.unprotected.push((project, why.to_owned()));
        }
    }
    protected
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_supervisor_answers() {
        let answer = json!({"turn": "1", "results": [
            {"project": "/a", "taken": "abcdef012345", "not_covered": 0},
            {"project": "/b", "skipped": "unchanged", "checkpoint": "bbcdef012345"},
            {"project": "/c", "refused": "not writable"},
            {"project": "/d", "failed": "no room"},
        ]});
        let protected = understood(&answer);
        assert_eq!(protected.taken, [PathBuf::from("/a")]);
        assert_eq!(protected.unprotected, [(PathBuf::from("/d"), "no room".to_owned())]);
        for strange in [json!(null), json!([]), json!({"results": 7}), json!({"results": [null, 1, {}]})] {
            assert_eq!(understood(&strange), Protected::default());
        }
    }
}
