//! The part of a session that has to do with checkpoints of projects: whether there are any, the one before the command
//! starts, and what is said about them at the end.
//!
//! A project that can be written is checkpointed before the command starts, whether or not an agent in there has hooks
//! that ask for more. That costs a look at every file where nothing changed. One that cannot be taken stops no run: it is
//! in the report, in the log, and in the project's status.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nono_audit::Digest;
use nono_audit::event::{AgentCall, AgentPrompt, Checkpoint as Event, Restore};
use nono_checkpoint::project::Why;
use nono_checkpoint::{CheckpointManager, Config, Ensured, Host, Origin, Skip};
use nono_policy::{AccessMode, CapabilitySource, QueryResult, ResolvedPolicy, is_within, query_path};
use nono_snapshot::ChangedByOthers;
use nono_supervisor::approval::ApprovalBackend;
use nono_supervisor::mediate::History;
use nono_sys::time::now_ms;

use super::auditing::{AgentEvent, Trail};
use super::histories::Inside;
use super::{SessionError, stand_ins};
use crate::audit::Author;
use crate::checkpoints::settings;
use crate::rollback::recorder::Recorder;

/// Whether checkpoints are taken while the command runs.
#[derive(Clone, Debug, Default)]
pub struct Checkpointing {
    /// `None`: as the settings say.
    pub wanted: Option<bool>,
}

impl Checkpointing {
    /// How they are taken, if they are; and who sweeps at the end, which does not depend on that.
    pub(super) fn planned(
        &self,
        state_dir: &Path,
        home: Option<&Path>,
        policy: &ResolvedPolicy,
    ) -> Result<(Option<Planned>, Option<Sweeper>), SessionError> {
        if self.wanted == Some(false) {
            return Ok((None, None));
        }
        let config = settings::load(&state_dir.join("config.toml"))?;
        // Without a home folder there is none to be spared.
        let home = home.map_or_else(|| state_dir.to_owned(), Path::to_owned);
        let host = Host { state_dir: state_dir.to_owned(), home };
        let sweeper = Sweeper(CheckpointManager::new(host.clone(), config.clone()));
        let planned = self.wanted.unwrap_or(config.enabled).then(|| Planned {
            host,
            config: Config { enabled: true, ..config },
            writable: writable(policy),
            by_name: self.wanted == Some(true),
        });
        Ok((planned, Some(sweeper)))
    }
}

/// The folders that the command may write, each with everything below it.
fn writable(policy: &ResolvedPolicy) -> Vec<PathBuf> {
    let grants = policy.grants.iter().filter(|grant| grant.access.writes() && !grant.is_file);
    grants.map(|grant| grant.resolved.clone()).collect()
}

/// Removes what is too old, now and then, whether or not this run took any.
#[derive(Debug)]
pub(super) struct Sweeper(CheckpointManager);

impl Sweeper {
    /// What went wrong stands in the log; the next run tries again.
    pub(super) fn sweep(&self, trail: Option<&Trail>) {
        let swept = self.0.auto_prune();
        let problems: Vec<String> = match swept {
            Ok(pruned) => {
                pruned.into_iter().flat_map(|pruned| pruned.problems).map(|one| one.to_string()).collect()
            }
            Err(error) => vec![error.to_string()],
        };
        for problem in problems {
            if let Some(trail) = trail {
                trail.warn(format!("old checkpoints could not be removed: {problem}"));
            }
        }
    }
}

/// Checkpoints will be taken.
#[derive(Debug)]
pub(super) struct Planned {
    host: Host,
    config: Config,
    writable: Vec<PathBuf>,
    /// Somebody asked for them for this run.
    by_name: bool,
}

/// What became of the checkpoints of a run.
#[derive(Clone, Debug, Default)]
pub struct CheckpointsReport {
    /// Those that were taken, oldest first: project and id.
    pub taken: Vec<(PathBuf, String)>,
    /// What asked for protection and did not get it, with the reason; nothing was saved there since.
    pub unprotected: Vec<(PathBuf, String)>,
    /// Why old ones were not removed.
    pub problems: Vec<String>,
    /// Paths that others changed between the calls of the agent; none where no hooks told of calls.
    pub others: Option<Vec<ChangedByOthers>>,
    /// A hook of an agent inside spoke.
    pub heard: bool,
}

/// Checkpoints are being taken.
#[derive(Debug)]
pub(super) struct Protecting {
    pub(super) host: Host,
    pub(super) config: Config,
    pub(super) run: String,
    pub(super) writable: Vec<PathBuf>,
    pub(super) policy: Arc<ResolvedPolicy>,
    /// What runs, without what may be secret in it.
    command: Vec<String>,
    by_name: bool,
    trail: Option<Arc<Trail>>,
    report: Mutex<CheckpointsReport>,
    /// Projects that hooks inside told of.
    hooked: Mutex<HashSet<PathBuf>>,
}

impl Planned {
    /// With one of every project before the command starts.
    pub(super) fn begin(
        self,
        run: &str,
        command: &[String],
        policy: &ResolvedPolicy,
        trail: Option<Arc<Trail>>,
    ) -> Arc<Protecting> {
        let protecting = Protecting {
            host: self.host,
            config: self.config,
            run: run.to_owned(),
            writable: self.writable,
            policy: Arc::new(policy.clone()),
            command: command.to_vec(),
            by_name: self.by_name,
            trail,
            report: Mutex::default(),
            hooked: Mutex::default(),
        };
        protecting.before();
        Arc::new(protecting)
    }
}

impl Protecting {
    /// For requests from inside.
    pub(super) fn history(self: &Arc<Protecting>, backend: Arc<dyn ApprovalBackend>) -> History {
        History { histories: Arc::new(Inside::new(self.clone())), backend }
    }

    pub(super) fn manager(&self) -> CheckpointManager {
        let manager = CheckpointManager::new(self.host.clone(), self.config.clone());
        manager.within(self.writable.clone()).without(stand_ins::on_record(&self.host.state_dir))
    }

    fn report(&self) -> MutexGuard<'_, CheckpointsReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every project that the command was let into by name, before it starts.
    fn before(&self) {
        let reason = format!("before run: {}", self.command.join(" "));
        let origin = self.origin();
        let projects = self.projects();
        if projects.is_empty() && self.by_name {
            let cwd = &self.policy.workdir;
            let why = match self.manager().root_of(cwd) {
                Err(error) if self.is_writable(cwd) => error.to_string(),
                _ => "nothing that the command may write is a project".to_owned(),
            };
            self.missed(cwd, &why, &reason);
        }
        for project in projects {
            let mut manager = self.manager();
            let ensured = manager.begin_run(&project, &reason, &origin);
            self.note(&ensured, &reason);
        }
    }

    /// A hook inside spoke.
    pub(super) fn hear(&self) {
        self.report().heard = true;
    }

    /// Hooks inside tell of each call from now on: the run itself is none any more.
    pub(super) fn hooks_speak(&self, project: &Path, manager: &mut CheckpointManager) {
        let mut hooked = self.hooked.lock().unwrap_or_else(PoisonError::into_inner);
        if !hooked.contains(project) && hooked.len() < MOST_TAKEN {
            hooked.insert(project.to_owned());
            drop(hooked);
            // What cannot be told apart then is the command's.
            let _ = manager.agent_stopped(project, &self.origin());
        }
    }

    fn origin(&self) -> Origin {
        Origin { run: Some(self.run.clone()), ..Origin::default() }
    }

    /// The working directory's, and folders that were granted by name and are projects themselves. What a group opens
    /// (caches, an agent's own state) is none.
    fn projects(&self) -> Vec<PathBuf> {
        let by_name = |source: &CapabilitySource| {
            matches!(source, CapabilitySource::User | CapabilitySource::Profile(_))
        };
        let granted = self.policy.grants.iter().filter(|grant| by_name(&grant.source));
        let granted = granted.filter(|grant| grant.access.writes() && !grant.is_file);
        let manager = self.manager();
        let mut projects = Vec::new();
        let cwd = &self.policy.workdir;
        if self.is_writable(cwd)
            && let Ok(root) = manager.root_of(cwd)
        {
            projects.push(root.dir);
        }
        for grant in granted {
            if let Ok(root) = manager.root_of(&grant.resolved)
                && root.dir == grant.resolved
                && root.why != Why::Itself
            {
                projects.push(root.dir);
            }
        }
        projects.sort();
        projects.dedup();
        projects
    }

    /// Whether the command may write there: granted, and not closed inside the grant.
    pub(super) fn is_writable(&self, path: &Path) -> bool {
        let granted = self.writable.iter().any(|grant| is_within(path, grant));
        let answer = || query_path(&self.policy, path, true, AccessMode::Write);
        granted && matches!(answer(), QueryResult::Allowed { .. })
    }

    /// Who restores on behalf of the command.
    pub(super) fn author(&self) -> Author {
        Author {
            command: self.command.iter().map(OsString::from).collect(),
            workdir: self.policy.workdir.clone(),
        }
    }

    /// What came of wanting one, for the report and the log.
    pub(super) fn note(&self, ensured: &Ensured, reason: &str) {
        match ensured {
            Ensured::Taken { project, checkpoint, .. } => {
                let id = checkpoint.id.to_string();
                self.write_down(project, Some(id.clone()), reason, None);
                let mut report = self.report();
                report.unprotected.retain(|(other, _)| other != project);
                if report.taken.len() < MOST_TAKEN {
                    report.taken.push((project.clone(), id));
                }
            }
            // Nobody wanted it, then.
            Ensured::Skipped { why: Skip::Disabled, .. } => {}
            Ensured::Skipped { project, .. } => {
                self.report().unprotected.retain(|(other, _)| other != project);
            }
            Ensured::Failed { dir, error } => self.missed(dir, &error.to_string(), reason),
        }
    }

    /// Something asked for protection and did not get it.
    pub(super) fn missed(&self, dir: &Path, why: &str, reason: &str) {
        let mut report = self.report();
        let known = report.unprotected.iter().any(|(other, known)| other == dir && known == why);
        // Whoever asks for the same again and again, or for thousands of folders, does not fill the log.
        if known || report.unprotected.len() >= MOST_MISSED {
            return;
        }
        report.unprotected.retain(|(other, _)| other != dir);
        report.unprotected.push((dir.to_owned(), why.to_owned()));
        drop(report);
        self.write_down(dir, None, reason, Some(why.to_owned()));
    }

    /// A person spoke to an agent inside, as its hooks tell.
    pub(super) fn told_prompt(&self, origin: &Origin, digest: Option<&str>) {
        let (Some(trail), Some(digest)) =
            (&self.trail, digest.and_then(|digits| Digest::try_from(digits.to_owned()).ok()))
        else {
            return;
        };
        let Origin { agent, session, turn, .. } = origin.clone();
        trail.told(AgentEvent::Prompt(AgentPrompt {
            time_ms: now_ms(),
            agent,
            conversation: session,
            turn,
            sha256: digest,
        }));
    }

    /// An agent inside calls one of its tools, as its hooks tell.
    pub(super) fn told_call(&self, origin: &Origin, command: Option<&str>) {
        let Some(trail) = self.trail.as_ref().filter(|_| origin.agent.is_some()) else { return };
        let Origin { agent, session, turn, tool, .. } = origin.clone();
        let command = command.map(|command| trail.redactor().text(command));
        let time_ms = now_ms();
        trail.told(AgentEvent::Call(AgentCall {
            time_ms,
            agent,
            conversation: session,
            turn,
            tool,
            command,
        }));
    }

    /// Something was put back, and the log of this session says so, too.
    pub(super) fn restored(&self, restore: Restore) {
        if let Some(trail) = &self.trail {
            trail.restored(restore);
        }
    }

    fn write_down(&self, project: &Path, checkpoint: Option<String>, reason: &str, error: Option<String>) {
        let Some(trail) = &self.trail else { return };
        let project = project.to_owned();
        let reason = trail.redactor().text(reason);
        trail.checkpoint(Event { time_ms: now_ms(), project, checkpoint, reason, error });
    }

    /// The command has ended: old ones may go, and what there is to say.
    pub(super) fn finish(&self) -> CheckpointsReport {
        let mut report = self.report().clone();
        let mut manager = self.manager();
        // What changes from now on is not the command's doing.
        for project in self.projects() {
            let left = manager.agent_stopped(&project, &self.origin());
            report.problems.extend(left.err().map(|error| error.to_string()));
        }
        let hooked = self.hooked.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for project in hooked {
            match manager.others(&project) {
                Ok(others) => report.others.get_or_insert_default().extend(others),
                Err(error) => report.problems.push(error.to_string()),
            }
        }
        // Where nothing was ever taken there is nothing to free.
        if self.host.state_dir.join("projects").is_dir() {
            report.problems.extend(manager.free_room().err().map(|error| error.to_string()));
        }
        let mut projects: Vec<_> = report.taken.iter().map(|(project, _)| project).collect();
        projects.sort();
        projects.dedup();
        let settled: Vec<_> =
            projects.into_iter().filter_map(|project| manager.settle(project).err()).collect();
        report.problems.extend(settled.iter().map(ToString::to_string));
        report
    }
}

/// Of so many the report names each; the log has all of them.
const MOST_TAKEN: usize = 10_000;
/// The command chooses what it names.
const MOST_MISSED: usize = 64;
