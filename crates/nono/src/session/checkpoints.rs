//! Checkpoints of projects in a session: whether they are taken, the one before the command starts, and the report.
//!
//! A writable project is checkpointed before the command starts, whether or not the agent has hooks that request more.
//! Where nothing changed, that costs one stat per file. A failed checkpoint does not stop the run: it is in the report,
//! in the audit log and in the project's status.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nono_audit::Digest;
use nono_audit::event::{AgentCall, AgentPrompt, AuditEvent, CheckpointEvent as Event, Restore};
use nono_catalogue::rollback::recorder::Recorder;
use nono_checkpoint::project::Why;
use nono_checkpoint::{CheckpointManager, Config, Ensured, Host, Origin, Skip};
use nono_policy::{AccessMode, CapabilitySource, FsCapability, ResolvedPolicy, is_within, query_path};
use nono_snapshot::ChangedByOthers;
use nono_supervisor::approval::ApprovalBackend;
use nono_supervisor::mediate::CheckpointAccess;
use nono_sys::time::now_ms;

use super::audit_log::RunLog;
use super::checkpoint_service::InsideRequests;
use super::error::SessionError;
use super::stand_ins;
use crate::audit::Author;
use crate::checkpoints::{self, settings};

#[derive(Clone, Debug, Default)]
pub struct Checkpointing {
    /// `None`: the configuration decides.
    pub wanted: Option<bool>,
}

impl Checkpointing {
    /// The plan for checkpoints, if they are taken; and the pruning at the end, which happens either way.
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
        // Without a home folder there is no home to exclude from being a project.
        let home = home.map_or_else(|| state_dir.to_owned(), Path::to_owned);
        let host = Host { state_dir: state_dir.to_owned(), home };
        let sweeper = Sweeper(CheckpointManager::new(host.clone(), config.clone()));
        let planned = self.wanted.unwrap_or(config.enabled).then(|| Planned {
            host,
            config: Config { enabled: true, ..config },
            writable: writable(policy).map(|grant| grant.resolved.clone()).collect(),
            by_name: self.wanted == Some(true),
        });
        Ok((planned, Some(sweeper)))
    }
}

/// Granted directories that the command may write.
fn writable(policy: &ResolvedPolicy) -> impl Iterator<Item = &FsCapability> {
    policy.grants.iter().filter(|grant| grant.access.writes() && !grant.is_file)
}

/// Occasional pruning of old checkpoints, whether or not this run takes any.
#[derive(Debug)]
pub(super) struct Sweeper(CheckpointManager);

impl Sweeper {
    /// Prune. Problems go to the audit log; the next run tries again.
    pub(super) fn sweep(&self, trail: Option<&RunLog>) {
        let problems: Vec<String> = match self.0.auto_prune() {
            Ok(pruned) => {
                pruned.into_iter().flat_map(|pruned| pruned.problems).map(|one| one.to_string()).collect()
            }
            Err(error) => vec![error.to_string()],
        };
        let completed = self.0.take_completed();
        let Some(trail) = trail else { return };
        for problem in problems {
            trail.warn(format!("cannot remove old checkpoints: {problem}"));
        }
        for completed in completed {
            trail.restored(checkpoints::completion(&completed));
        }
    }
}

/// Settings for the checkpoints of a run.
#[derive(Debug)]
pub(super) struct Planned {
    host: Host,
    config: Config,
    writable: Vec<PathBuf>,
    /// Requested for this run by flag.
    by_name: bool,
}

/// Checkpoints taken in a run, and the failures.
#[derive(Clone, Debug, Default)]
pub struct CheckpointsReport {
    /// Checkpoints taken, oldest first: project and id.
    pub taken: Vec<(PathBuf, String)>,
    /// Directories without a checkpoint, with the reason.
    pub unprotected: Vec<(PathBuf, String)>,
    /// Problems while removing old checkpoints.
    pub problems: Vec<String>,
    /// Paths changed by other processes between the agent's calls; `None` where no hook reported calls.
    pub others: Option<Vec<ChangedByOthers>>,
    /// Whether an agent's hook inside the sandbox called.
    pub heard: bool,
}

/// State of checkpoints while the command runs.
#[derive(Debug)]
pub(super) struct Protecting {
    plan: Planned,
    pub(super) run: String,
    pub(super) policy: Arc<ResolvedPolicy>,
    /// The command with secrets redacted.
    command: Vec<String>,
    trail: Option<Arc<RunLog>>,
    report: Mutex<CheckpointsReport>,
    /// Projects reported by hooks inside the sandbox.
    hooked: Mutex<HashSet<PathBuf>>,
}

impl Planned {
    /// Take a checkpoint of every project before the command starts.
    pub(super) fn begin(
        self,
        run: &str,
        command: &[String],
        policy: &ResolvedPolicy,
        trail: Option<Arc<RunLog>>,
    ) -> Arc<Protecting> {
        let protecting = Protecting {
            plan: self,
            run: run.to_owned(),
            policy: Arc::new(policy.clone()),
            command: command.to_vec(),
            trail,
            report: Mutex::default(),
            hooked: Mutex::default(),
        };
        protecting.before();
        Arc::new(protecting)
    }
}

impl Protecting {
    /// Service for checkpoint requests from inside the sandbox.
    pub(super) fn history(self: &Arc<Protecting>, backend: Arc<dyn ApprovalBackend>) -> CheckpointAccess {
        CheckpointAccess { histories: Arc::new(InsideRequests::new(self.clone())), backend }
    }

    pub(super) fn manager(&self) -> CheckpointManager {
        let manager = CheckpointManager::new(self.plan.host.clone(), self.plan.config.clone());
        let manager = checkpoints::recording(manager, self.author());
        manager.within(self.plan.writable.clone()).without(stand_ins::on_record(&self.plan.host.state_dir))
    }

    fn report(&self) -> MutexGuard<'_, CheckpointsReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checkpoint every project that was granted by name, before the command starts.
    fn before(&self) {
        let reason = format!("before run: {}", self.command.join(" "));
        let origin = self.origin();
        let projects = self.projects();
        if projects.is_empty() && self.plan.by_name {
            let cwd = &self.policy.workdir;
            let why = match self.manager().root_of(cwd) {
                Err(error) if self.is_writable(cwd) => error.to_string(),
                _ => "no project is writable for the command".to_owned(),
            };
            self.missed(cwd, &why, &reason);
        }
        for project in projects {
            let mut manager = self.manager();
            let ensured = manager.begin_run(&project, &reason, &origin);
            self.note(&ensured, &reason);
        }
    }

    /// Note that a hook inside the sandbox called.
    pub(super) fn hear(&self) {
        self.report().heard = true;
    }

    /// Note that hooks report each call in `project` from now on; the run as a whole no longer counts as one call.
    pub(super) fn hooks_speak(&self, project: &Path, manager: &mut CheckpointManager) {
        let mut hooked = self.hooked.lock().unwrap_or_else(PoisonError::into_inner);
        if !hooked.contains(project) && hooked.len() < MOST_TAKEN {
            hooked.insert(project.to_owned());
            drop(hooked);
            // On failure, changes that cannot be attributed count as the command's.
            let _ = manager.agent_stopped(project, &self.origin());
        }
    }

    fn origin(&self) -> Origin {
        Origin { run: Some(self.run.clone()), ..Origin::default() }
    }

    /// The working directory's project, and directories granted by name that are projects themselves. Those that a
    /// group opens (caches, an agent's own state) do not count.
    fn projects(&self) -> BTreeSet<PathBuf> {
        let by_name = |source: &CapabilitySource| {
            matches!(source, CapabilitySource::User | CapabilitySource::Profile(_))
        };
        let manager = self.manager();
        let mut projects = BTreeSet::new();
        let cwd = &self.policy.workdir;
        if self.is_writable(cwd)
            && let Ok(root) = manager.root_of(cwd)
        {
            projects.insert(root.dir);
        }
        for grant in writable(&self.policy).filter(|grant| by_name(&grant.source)) {
            if let Ok(root) = manager.root_of(&grant.resolved)
                && root.dir == grant.resolved
                && root.why != Why::Itself
            {
                projects.insert(root.dir);
            }
        }
        projects
    }

    /// Whether the command may write there: granted, and not denied inside the grant.
    pub(super) fn is_writable(&self, path: &Path) -> bool {
        let granted = self.plan.writable.iter().any(|grant| is_within(path, grant));
        granted && query_path(&self.policy, path, true, AccessMode::Write).is_allowed()
    }

    /// Author of restores made for the command.
    pub(super) fn author(&self) -> Author {
        Author {
            command: self.command.iter().map(OsString::from).collect(),
            workdir: self.policy.workdir.clone(),
        }
    }

    /// Record the outcome of a checkpoint in the report and the log.
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
            // Checkpoints are off: nothing to report.
            Ensured::Skipped { why: Skip::Disabled, .. } => {}
            Ensured::Skipped { project, .. } => {
                self.report().unprotected.retain(|(other, _)| other != project);
            }
            Ensured::Failed { dir, error } => self.missed(dir, &error.to_string(), reason),
        }
    }

    /// Record that a directory got no checkpoint.
    pub(super) fn missed(&self, dir: &Path, why: &str, reason: &str) {
        let mut report = self.report();
        let known = report.unprotected.iter().any(|(other, known)| other == dir && known == why);
        // Repeated requests, or requests for thousands of folders, must not fill the log.
        if known || report.unprotected.len() >= MOST_MISSED {
            return;
        }
        report.unprotected.retain(|(other, _)| other != dir);
        report.unprotected.push((dir.to_owned(), why.to_owned()));
        drop(report);
        self.write_down(dir, None, reason, Some(why.to_owned()));
    }

    /// Record a user prompt reported by an agent's hooks.
    pub(super) fn told_prompt(&self, origin: &Origin, digest: Option<&str>) {
        let (Some(trail), Some(digest)) =
            (&self.trail, digest.and_then(|digits| Digest::try_from(digits.to_owned()).ok()))
        else {
            return;
        };
        let Origin { agent, session, turn, .. } = origin.clone();
        trail.told(&AuditEvent::AgentPrompt(AgentPrompt {
            time_ms: now_ms(),
            agent,
            conversation: session,
            turn,
            sha256: digest,
        }));
    }

    /// Record a tool call reported by an agent's hooks.
    pub(super) fn told_call(&self, origin: &Origin, command: Option<&str>) {
        let Some(trail) = self.trail.as_ref().filter(|_| origin.agent.is_some()) else { return };
        let Origin { agent, session, turn, tool, .. } = origin.clone();
        let command = command.map(|command| trail.redactor.text(command));
        trail.told(&AuditEvent::AgentCall(AgentCall {
            time_ms: now_ms(),
            agent,
            conversation: session,
            turn,
            tool,
            command,
        }));
    }

    /// Record a restore in this session's log.
    pub(super) fn restored(&self, restore: Restore) {
        if let Some(trail) = &self.trail {
            trail.restored(restore);
        }
    }

    fn write_down(&self, project: &Path, checkpoint: Option<String>, reason: &str, error: Option<String>) {
        let Some(trail) = &self.trail else { return };
        let project = project.to_owned();
        let reason = trail.redactor.text(reason);
        let event = Event { time_ms: now_ms(), project, checkpoint, reason, error };
        trail.note(&AuditEvent::Checkpoint(event));
    }

    /// After the command's end: free space taken by old checkpoints, and report.
    pub(super) fn finish(&self) -> CheckpointsReport {
        let mut report = self.report().clone();
        let mut manager = self.manager();
        // Later changes are not the command's.
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
        // Without any project there is nothing to free.
        if self.plan.host.state_dir.join("projects").is_dir() {
            report.problems.extend(manager.free_room().err().map(|error| error.to_string()));
        }
        let projects: BTreeSet<_> = report.taken.iter().map(|(project, _)| project).collect();
        let unsettled = projects.into_iter().filter_map(|project| manager.settle(project).err());
        report.problems.extend(unsettled.map(|error| error.to_string()));
        report
    }
}

/// Maximum number of checkpoints listed in the report; the log has all of them.
const MOST_TAKEN: usize = 10_000;
/// Maximum number of directories reported as unprotected: the command chooses their names.
const MOST_MISSED: usize = 64;
