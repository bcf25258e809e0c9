//! Planning: from a request to a [`Session`], with everything resolved and compiled and nothing started.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nono_catalogue::rollback::scope;
use nono_policy::{MergedProfile, PolicyData, ResolvedPolicy, Typed, environment};
use nono_sandbox::{Blueprint, ExecStrategy, Mediation, PlanError, Prepared, compile};
use nono_supervisor::channel::SessionInfo;
use nono_supervisor::program::{self, ProgramError};
use nono_supervisor::{CommandSpec, Options, RunError};

use super::agent_files::AgentFiles;
use super::asking::AskableSubjects;
use super::audit_log::{AuditPlan, without_secrets};
use super::channels::Sockets;
use super::checkpoints::{Planned, Sweeper};
use super::created_dirs::CreatedDirs;
use super::egress::Connection;
use super::folder::SessionFolder;
use super::learning::Watched;
use super::parts::{PlannedAsking, PlannedParts};
use super::resolve::{profile, resolve};
use super::setup::{SessionSetup, set_up};
use super::{
    Asking, Host, Session, SessionError, SessionRequest, browser, channels, created_dirs, rollback_options,
    stand_ins,
};
use crate::rollback::tracking::{RollbackRequest, TrackingPlan};

/// Time in milliseconds that processes left by the command have to end by themselves.
const GRACE_MS: u32 = 1000;

/// Find the program, resolve the policy, make the session folder, compile, and run the canary once per boot.
pub fn plan(request: SessionRequest, host: &Host) -> Result<Session, SessionError> {
    ResolvedRequest::new(request, host)?.plan()
}

/// A request with its profile loaded and its policy resolved: the one resolution that a run goes by.
#[derive(Debug)]
pub struct ResolvedRequest<'a> {
    draft: SessionDraft<'a>,
    made: CreatedDirs,
    tracked: Tracked,
}

impl<'a> ResolvedRequest<'a> {
    /// Find the program, make the session's folder and the directories that agents need, and resolve the policy.
    pub fn new(request: SessionRequest, host: &'a Host) -> Result<ResolvedRequest<'a>, SessionError> {
        let mut draft = SessionDraft::new(request, host)?;
        let made = created_dirs::make(&draft.request.policy, &draft.profile, &host.context);
        let tracked = draft.resolve()?;
        Ok(ResolvedRequest { draft, made, tracked })
    }

    pub fn policy(&self) -> &ResolvedPolicy {
        &self.tracked.policy
    }

    pub fn profile(&self) -> &MergedProfile {
        &self.draft.profile
    }

    /// Grant the working directory too.
    pub fn allow_cwd(&mut self) -> Result<(), SessionError> {
        self.draft.request.policy.allow_cwd = true;
        self.tracked = self.draft.resolve()?;
        Ok(())
    }

    /// Set who answers requests while the command runs.
    pub fn answered_by(&mut self, asking: Asking) {
        self.draft.request.asking = asking;
    }

    /// Compile the sandbox and plan every part of the run.
    pub fn plan(self) -> Result<Session, SessionError> {
        let ResolvedRequest { mut draft, made, tracked: Tracked { mut policy, wanted } } = self;
        let asks = draft.asks(policy.interactive)?;
        let audit = draft.audit()?;
        let shown = without_secrets(&draft.request.command, audit.as_ref(), draft.state_dir())?;
        let (tracking, nothing_to_track) = draft.tracking(&policy, wanted, &shown);
        // A temporary folder opened only for recording will not be granted in the next run.
        let own_tmp = !writes_tmp(draft.tracked(&policy));
        let (checkpoints, sweeper) = draft.checkpoints(&policy)?;
        let (agent_files, told) = draft.agent_files(&mut policy, made)?;
        let prompts = asks.prompts(&draft.request.asking, checkpoints.is_some() && !policy.interactive)?;
        let asking = draft.asking(&asks);
        let (network, blueprint) = draft.compile(&policy, &asks)?;
        draft.describe(&policy, &shown, audit.as_ref())?;
        let env = draft.environment(&policy, &asks, own_tmp, told)?;
        let prepared = prepare(blueprint, &draft.setup.folder)?;
        let sockets = draft.sockets(&policy, &shown, tracking.as_ref())?;
        let tracking = tracking.map(|plan| plan.without(stand_ins::on_record(draft.state_dir())));
        let SessionDraft { request, program, setup, profile, watched, .. } = draft;
        let parts = PlannedParts {
            audit,
            tracking,
            network,
            checkpoints,
            sweeper,
            asking,
            sockets,
            watched,
            agent_files,
        };
        Ok(Session {
            options: Options {
                interactive: policy.interactive,
                asking: prompts,
                listen: request.diagnostics,
                output_aside: request.learning.is_some_and(|learning| learning.output_aside),
                streams: None,
                cancel: None,
                grace_ms: GRACE_MS,
            },
            command: CommandSpec { program, argv: request.command, env },
            name: request.policy.name,
            shown,
            policy,
            profile,
            support: setup.support,
            strategy: request.strategy,
            nothing_to_track,
            folder: setup.folder,
            prepared,
            parts,
            guest: request.guest,
        })
    }
}

/// A request on its way to a session: what is known before the policy is resolved.
#[derive(Debug)]
struct SessionDraft<'a> {
    host: &'a Host,
    /// The request, completed by what network, audit and learning add to the policy.
    request: SessionRequest,
    program: PathBuf,
    setup: SessionSetup,
    profile: MergedProfile,
    watched: Option<Watched>,
}

impl SessionDraft<'_> {
    fn new(mut request: SessionRequest, host: &Host) -> Result<SessionDraft<'_>, SessionError> {
        request.network.open(&mut request.policy);
        request.auditing.close(&mut request.policy);
        let program = find_program(&request.command, host)?;
        request.policy.program = Some(program.clone());
        if host.nested {
            request.strategy = ExecStrategy::Direct;
        }
        let setup = set_up(host)?;
        let profile = match request.profile.take() {
            Some(profile) => profile,
            None => profile(&request.policy, host)?,
        };
        let learning = request.learning;
        let watched =
            learning.map(|learning| Watched::new(&request.policy, &profile, &setup.inside, learning));
        let watched = watched.transpose()?;
        if let Some(learning) = learning {
            request.policy = learning.applied(request.policy);
        }
        request.rollback = request.rollback.placed(&host.context);
        Ok(SessionDraft { host, request, program, setup, profile, watched })
    }

    fn is_supervised(&self) -> bool {
        self.request.strategy == ExecStrategy::Supervised
    }

    fn state_dir(&self) -> &Path {
        &self.host.context.state_dir
    }

    fn failed(&self) -> impl Fn(io::Error) -> SessionError + use<> {
        let base = self.host.session_base.clone();
        move |source| SessionError::Folder { base: base.clone(), source }
    }

    /// Resolve the policy. A rollback destination inside a grant is denied to the command.
    fn resolve(&mut self) -> Result<Tracked, SessionError> {
        let supervised = self.is_supervised();
        let SessionDraft { request, profile, setup: SessionSetup { inside, .. }, .. } = self;
        let policy = resolve(&request.policy, profile, inside)?;
        let by_setting = supervised && request.learning.is_none();
        let wanted = request.rollback.tracked(&policy, profile, &inside.context.state_dir, by_setting)?;
        if wanted.is_some() && !supervised {
            return Err(SessionError::NeedsSupervisor { strategy: request.strategy });
        }
        let dest = wanted.as_ref().and_then(|wanted| rollback_options::readable_dest(wanted, &policy));
        let Some(dest) = dest else { return Ok(Tracked { policy, wanted }) };
        request.policy.deny.push(rollback_options::make_dest(dest)?);
        Ok(Tracked { policy: resolve(&request.policy, profile, inside)?, wanted })
    }

    fn asks(&self, interactive: bool) -> Result<AskableSubjects, SessionError> {
        let (asking, learning) = (&self.request.asking, self.request.learning.is_some());
        AskableSubjects::new(asking, &self.profile, self.request.strategy, interactive, learning)
    }

    fn audit(&self) -> Result<Option<AuditPlan>, SessionError> {
        let auditing = &self.request.auditing;
        let wanted = self.is_supervised() && auditing.wanted;
        let plan = wanted.then(|| AuditPlan::open(auditing, &self.request.policy.projects, self.state_dir()));
        Ok(plan.transpose()?)
    }

    /// Policy that decides snapshots and the temporary folder.
    fn tracked<'a>(&'a self, resolved: &'a ResolvedPolicy) -> &'a ResolvedPolicy {
        self.watched.as_ref().map_or(resolved, |watched| &watched.tracked)
    }

    /// The tracking plan, and whether snapshots are wanted but no granted path is writable.
    fn tracking(
        &self,
        resolved: &ResolvedPolicy,
        wanted: Option<RollbackRequest>,
        shown: &[String],
    ) -> (Option<TrackingPlan>, bool) {
        let folder = &self.setup.folder;
        let roots = scope::roots(self.tracked(resolved), &folder.dir, wanted.as_ref());
        let asked_for = self.request.rollback.is_asked_for(&self.profile);
        let wanted = wanted.filter(|_| !roots.tracked.is_empty() || asked_for);
        let nothing_to_track = wanted.is_some() && roots.tracked.is_empty();
        let plan = wanted.filter(|_| !nothing_to_track).map(|request| TrackingPlan {
            id: folder.id.clone(),
            name: self.request.policy.name.clone(),
            command: shown.to_vec(),
            roots: roots.tracked,
            of_tools: roots.of_tools,
            profile: self.profile.rollback.clone(),
            own: vec![self.state_dir().to_owned(), self.host.session_base.clone()],
            state_dir: self.state_dir().to_owned(),
            request,
            // Set when the run begins.
            recorder: Arc::new(()),
        });
        (plan, nothing_to_track)
    }

    fn checkpoints(
        &self,
        resolved: &ResolvedPolicy,
    ) -> Result<(Option<Planned>, Option<Sweeper>), SessionError> {
        let (context, strategy) = (&self.host.context, self.request.strategy);
        if self.request.learning.is_some() {
            return Ok((None, None));
        }
        if self.is_supervised() {
            let checkpoints = &self.request.checkpoints;
            return checkpoints.planned(&context.state_dir, context.home.as_deref(), resolved);
        }
        match self.request.checkpoints.wanted {
            Some(true) => Err(SessionError::CheckpointsNeedSupervisor { strategy }),
            _ => Ok((None, None)),
        }
    }

    fn agent_files(
        &self,
        resolved: &mut ResolvedPolicy,
        made: CreatedDirs,
    ) -> Result<(AgentFiles, Environment), SessionError> {
        let (folder, network) = (&self.setup.folder, &self.request.network);
        AgentFiles::place(resolved, made, folder, self.host, self.request.strategy, network)
    }

    fn asking(&self, asks: &AskableSubjects) -> PlannedAsking {
        let Asking { backend, urls, own, .. } = &self.request.asking;
        let secrets = self.request.network.files().into_iter().chain(self.request.auditing.file());
        let nono = [self.host.session_base.clone(), self.state_dir().to_owned()];
        PlannedAsking {
            opens: asks.opens.then(|| backend.clone()),
            urls: urls.clone().filter(|_| asks.urls).map(|opener| (opener, backend.clone())),
            restores: backend.clone(),
            own: nono.into_iter().chain(own.iter().cloned()).chain(secrets).collect(),
        }
    }

    /// The compiled sandbox, and the planned filter of the network that it leads to.
    fn compile(
        &mut self,
        resolved: &ResolvedPolicy,
        asks: &AskableSubjects,
    ) -> Result<(Option<Connection>, Blueprint), SessionError> {
        let strategy = self.request.strategy;
        let wish = Mediation {
            opens: asks.opens,
            record: self.watched.is_some(),
            accept_weaker: self.request.asking.accept_weaker,
        };
        let SessionSetup { folder, support, .. } = &mut self.setup;
        folder.close_usual_bases(resolved);
        let mut blueprint = compile(resolved, support, strategy, &folder.paths())?;
        if strategy == ExecStrategy::Supervised {
            blueprint = blueprint.mediate(wish, support)?;
        }
        let network = std::mem::take(&mut self.request.network);
        let (connection, blueprint) = Connection::new(network, resolved, self.host, blueprint)?;
        if connection.is_some() && !self.is_supervised() {
            return Err(SessionError::FilterNeedsSupervisor { strategy });
        }
        Ok((connection, blueprint))
    }

    /// Write what a program inside can read about its sandbox, with the user's command line for hints.
    fn describe(
        &self,
        resolved: &ResolvedPolicy,
        shown: &[String],
        audit: Option<&AuditPlan>,
    ) -> Result<(), SessionError> {
        let flags = self.request.typed.as_deref();
        let flags = flags.map(|flags| without_secrets(flags, audit, self.state_dir())).transpose()?;
        let typed = flags.map(|flags| Typed { flags, command: shown.to_vec() });
        let name = self.request.policy.name.as_deref();
        self.setup.folder.describe(resolved, name, typed).map_err(self.failed())
    }

    /// The child's environment: variables that the rules let through, paths of this session, and variables for agents
    /// (`told`).
    fn environment(
        &self,
        resolved: &ResolvedPolicy,
        asks: &AskableSubjects,
        own_tmp: bool,
        told: Environment,
    ) -> Result<Environment, SessionError> {
        let folder = &self.setup.folder;
        let ours = self.host.env.iter().cloned();
        let mut env = environment::build(&resolved.environment, PolicyData::embedded(), ours);
        let tmp = folder.tmp();
        if own_tmp && !env.iter().any(|(name, _)| name == "TMPDIR") {
            env.push(("TMPDIR".into(), tmp.clone().into()));
            // tmux alone does not look at TMPDIR.
            env.push(("TMUX_TMPDIR".into(), tmp.into()));
        }
        env.push(("NONO_CAP_FILE".into(), folder.cap_file().into()));
        env.push(("NONO_SESSION".into(), folder.id.clone().into()));
        if self.is_supervised() {
            env.push(("NONO_REQUEST_SOCK".into(), channels::request_socket(folder).into()));
        }
        for variable in told {
            set(&mut env, variable);
        }
        if asks.opens {
            // Tells hooks that a refused access can be requested.
            set(&mut env, ("NONO_ASKS".into(), "1".into()));
        }
        if let Some(binary) = self.host.context.binary.as_ref().filter(|_| asks.urls) {
            set(&mut env, browser::shim(folder, binary).map_err(self.failed())?);
        }
        env.sort();
        Ok(env)
    }

    fn sockets(
        &self,
        resolved: &ResolvedPolicy,
        shown: &[String],
        tracking: Option<&TrackingPlan>,
    ) -> Result<Option<Sockets>, SessionError> {
        let folder = &self.setup.folder;
        let info = SessionInfo {
            id: folder.id.clone(),
            name: self.request.policy.name.clone(),
            pid: std::process::id(),
            started: nono_snapshot::time::now_iso(),
            command: shown.to_vec(),
            workdir: resolved.workdir.clone(),
            strategy: self.request.strategy.to_string(),
            grants: resolved.grants.len(),
            rollback: tracking.map(|plan| plan.id.clone()),
        };
        let bound = self.is_supervised().then(|| channels::bind(folder, self.state_dir(), info));
        bound.transpose().map_err(self.failed())
    }
}

/// Variables of the command.
type Environment = Vec<(OsString, OsString)>;

/// The resolved policy, and the rollback request if the run is tracked.
#[derive(Debug)]
struct Tracked {
    policy: ResolvedPolicy,
    wanted: Option<RollbackRequest>,
}

/// Set a variable, replacing an earlier value.
fn set(env: &mut Vec<(OsString, OsString)>, (name, value): (OsString, OsString)) {
    env.retain(|(other, _)| *other != name);
    env.push((name, value));
}

/// The command's program file, found by the caller's PATH.
pub fn find_program(command: &[OsString], host: &Host) -> Result<PathBuf, ProgramError> {
    let name = command.first().ok_or(ProgramError::Empty)?;
    let path = host.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    program::find(name, path, &host.context.cwd)
}

fn prepare(blueprint: Blueprint, folder: &SessionFolder) -> Result<Prepared, SessionError> {
    Prepared::new(blueprint, folder.paths()).map_err(|error| match error {
        PlanError::Refused(refusal) => refusal.into(),
        other => RunError::from(other).into(),
    })
}

/// Whether the machine's temporary folder is writable for the command: it is then used instead of the session's own.
fn writes_tmp(policy: &ResolvedPolicy) -> bool {
    policy.grants.iter().any(|grant| grant.access.writes() && Path::new("/tmp").starts_with(&grant.resolved))
}
