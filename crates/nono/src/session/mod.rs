//! One run, as data: the page that strings the stages together.
//!
//! request and host -> [`plan`] -> [`Session`] (resolved, compiled, nothing started) -> [`run`] or [`replace`] ->
//! [`SessionReport`]. Each stage consumes the one before; nobody reaches two stages back.

mod asking;
mod capturing;
mod channels;
pub mod check;
pub(crate) mod folder;
mod learning;
mod tracked;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nono_policy::{
    HostContext, HostFacts, MergedProfile, NetworkPolicy, PolicyData, PolicyError, ProfileError, ProfileRef,
    ProfileStore, ResolvedPolicy, RunRequest, environment,
};
use nono_sandbox::{
    Blueprint, ExecStrategy, Mediation, Namespaces, PlanError, Prepared, Refusal, Support, compile,
};
pub use nono_supervisor::RunError;
use nono_supervisor::approval::ApprovalBackend;
use nono_supervisor::channel::SessionInfo;
use nono_supervisor::mediate::Mediate;
use nono_supervisor::report::MediationReport;
use nono_supervisor::{CommandSpec, LimitHit, MemoryMethod, Options};
use nono_sys::errno;
use nono_sys::wait::Ended;
use thiserror::Error;

use crate::diagnostic::{Findings, diagnose};
use crate::program::{self, ProgramError};
use crate::rollback::RollbackError;
use crate::rollback::tracking::{self, Baseline, RollbackReport};
use crate::state_dir::{self, StateDirError};
pub use asking::Asking;
use capturing::Capturing;
use channels::Sockets;
use check::CheckError;
pub use folder::SessionFolder;
use learning::Watched;
pub use learning::{Learned, Learning};
pub use tracked::Rollback;
use tracked::begin;
pub(crate) use tracked::resolved;

/// What the edge knows about the machine and hands in.
#[derive(Clone, Debug)]
pub struct Host {
    pub context: HostContext,
    /// The caller's environment.
    pub env: Vec<(OsString, OsString)>,
    /// Where session folders are made.
    pub session_base: PathBuf,
    /// Where user profiles are.
    pub profile_dir: Option<PathBuf>,
    /// This process is itself inside a nono sandbox.
    pub nested: bool,
}

/// What to run and how.
#[derive(Clone, Debug)]
pub struct SessionRequest {
    pub policy: RunRequest,
    pub command: Vec<OsString>,
    pub strategy: ExecStrategy,
    /// Listen to the command's errors for the diagnostic.
    pub diagnostics: bool,
    pub rollback: Rollback,
    pub asking: Asking,
    /// Watch what it does. Nobody is asked then.
    pub learning: Option<Learning>,
}

/// Why a command was not run.
#[derive(Debug, Error)]
pub enum SessionError {
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    State(#[from] StateDirError),
    #[error("the session folder cannot be made in {base}: {}", errno::describe(.source), base = .base.display())]
    Folder { base: PathBuf, source: io::Error },
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("{key} in profile {profile} is not part of this version of nono")]
    NotYet { key: &'static str, profile: String },
    #[error("no snapshot could be taken, so nothing was run: {0}")]
    Rollback(#[from] RollbackError),
    #[error("the profile wants snapshots (rollback.enabled), and {strategy} has nobody to take them")]
    NeedsSupervisor { strategy: ExecStrategy },
    #[error(
        "the profile wants to ask at run time (security.capability_elevation), and {strategy} has nobody to ask"
    )]
    AskNeedsSupervisor { strategy: ExecStrategy },
    #[error(
        "asking at run time needs a terminal that is not the command's, and the profile gives it yours (interactive)"
    )]
    AskNeedsTerminal,
    #[error("{flag} says how snapshots are taken, but nothing asks for any")]
    NotTracked { flag: &'static str },
    #[error("{dest} is writable inside the sandbox: the command could change its own snapshots", dest = .dest.display())]
    DestWritable { dest: PathBuf },
    #[error("{dest} cannot hold sessions: {owner} is nono's own or another session's", dest = .dest.display(), owner = .owner.display())]
    DestTaken { dest: PathBuf, owner: PathBuf },
    #[error("interrupted by {} before the command started; nothing was left behind", nono_sys::wait::signal_name(*.signal))]
    Interrupted { signal: i32 },
}

/// Everything resolved and compiled; nothing started.
#[derive(Debug)]
pub struct Session {
    pub policy: ResolvedPolicy,
    pub profile: MergedProfile,
    pub support: Support,
    pub strategy: ExecStrategy,
    /// Snapshots are wanted, but nothing can be written.
    pub nothing_to_track: bool,
    command: CommandSpec,
    options: Options,
    folder: SessionFolder,
    prepared: Prepared,
    tracking: Option<tracking::Plan>,
    backend: Option<Arc<dyn ApprovalBackend>>,
    /// nono's own folders, never granted.
    own: Vec<PathBuf>,
    /// Where there is a supervisor to serve them.
    sockets: Option<Sockets>,
    /// Where what it does is recorded.
    watched: Option<Watched>,
}

impl Session {
    /// Why `nono ps` will not show it, if it will not.
    pub fn unlisted(&self) -> Option<&io::Error> {
        self.sockets.as_ref()?.unlisted.as_ref()
    }
}

/// Who is told what happens around the command.
pub trait RunObserver: Send + Sync {
    /// A capture goes on: so many files.
    fn capturing(&self, files: u64);
    /// The baseline is taken, and the command is about to start.
    fn baseline(&self, baseline: &Baseline<'_>);
}

/// Nobody is told.
impl RunObserver for () {
    fn capturing(&self, _files: u64) {}

    fn baseline(&self, _baseline: &Baseline<'_>) {}
}

/// What happened.
#[derive(Debug)]
pub struct SessionReport {
    pub session_id: String,
    pub policy: ResolvedPolicy,
    pub ended: Ended,
    pub limit: Option<LimitHit>,
    pub memory_method: Option<MemoryMethod>,
    /// Somebody outside ended it (`nono stop`).
    pub stopped: bool,
    pub findings: Findings,
    /// What it was refused and granted while it ran.
    pub mediation: MediationReport,
    /// Where the run was tracked.
    pub rollback: Option<RollbackReport>,
    /// Where what it did was recorded.
    pub learned: Option<Learned>,
}

/// How long what the command leaves running has to end by itself.
const GRACE_MS: u32 = 1000;

/// Resolve only: what `--dry-run` and `why` show. Touches nothing.
pub fn resolve(request: &RunRequest, host: &Host) -> Result<(ResolvedPolicy, MergedProfile), SessionError> {
    let store = ProfileStore::new(host.profile_dir.clone());
    let wanted = request.profile.clone().unwrap_or_else(|| ProfileRef::Name("default".to_owned()));
    let profile = store.resolve(&wanted, &request.extends)?;
    refuse_later_keys(&profile)?;
    let policy = nono_policy::resolve(request, &host.context, &profile, PolicyData::embedded(), &HostFacts)?;
    Ok((policy, profile))
}

/// Find the program, resolve the policy, make the folder, compile, and see once per boot that it holds.
pub fn plan(request: SessionRequest, host: &Host) -> Result<Session, SessionError> {
    let SessionRequest { mut policy, command, strategy, diagnostics, rollback, asking, learning } = request;
    let file = find_program(&command, host)?;
    policy.program = Some(file.clone());
    let strategy = if host.nested { ExecStrategy::Direct } else { strategy };
    if !host.nested {
        state_dir::ensure(&host.context.state_dir)?;
    }
    let failed = |source| SessionError::Folder { base: host.session_base.clone(), source };
    let folder = SessionFolder::create(&host.session_base).map_err(failed)?;
    let mut inside = host.clone();
    let support = checked_support(host, &folder)?;
    inside.context.session_dir = Some(folder.dir.clone());
    inside.context.can_mask = matches!(support.namespaces, Namespaces::Available { .. });
    let rollback = rollback.placed(&host.context);
    let watched = learning.map(|learning| Watched::new(&policy, &inside, learning)).transpose()?;
    if let Some(learning) = learning {
        policy = learning.applied(policy);
    }
    let (mut resolved, mut profile) = resolve(&policy, &inside)?;
    let tracked = rollback.tracked(&resolved, &profile, &host.context.state_dir)?;
    if let Some(dest) = tracked.as_ref().and_then(|wanted| tracked::readable_dest(wanted, &resolved)) {
        policy.deny.push(tracked::make_dest(dest)?);
        (resolved, profile) = resolve(&policy, &inside)?;
    }
    if tracked.is_some() && strategy != ExecStrategy::Supervised {
        return Err(SessionError::NeedsSupervisor { strategy });
    }
    let roots = tracking::roots(watched.as_ref().map_or(&resolved, |watched| &watched.tracked), &folder.dir);
    let nothing_to_track = tracked.is_some() && roots.is_empty();
    let tracking = tracked.filter(|_| !nothing_to_track).map(|wanted| tracking::Plan {
        id: folder.id.clone(),
        name: policy.name.clone(),
        command: command.iter().map(|part| part.to_string_lossy().into_owned()).collect(),
        roots,
        exclusion: tracking::exclusion(&wanted, &profile.rollback),
        own: vec![host.context.state_dir.clone(), host.session_base.clone()],
        state_dir: host.context.state_dir.clone(),
        request: wanted,
    });
    let ask = learning.is_none() && asking.is_wanted(&profile);
    if ask && strategy != ExecStrategy::Supervised {
        return Err(SessionError::AskNeedsSupervisor { strategy });
    }
    if ask && resolved.interactive {
        return Err(SessionError::AskNeedsTerminal);
    }
    let stage = asking::stage(ask)?;
    let mut blueprint = compile(&resolved, &support, strategy, &folder.paths())?;
    if strategy == ExecStrategy::Supervised {
        let wish = Mediation { opens: ask, record: watched.is_some(), accept_weaker: asking.accept_weaker };
        blueprint = blueprint.mediate(wish, &support)?;
    }
    folder.describe(&resolved, policy.name.as_deref()).map_err(failed)?;
    // Opened for watching, the machine's temporary folder is not what the next run will have.
    let own_tmp = !writes_tmp(watched.as_ref().map_or(&resolved, |watched| &watched.tracked));
    let env = child_environment(&resolved, host, &folder, strategy, own_tmp);
    let info = SessionInfo {
        id: folder.id.clone(),
        name: policy.name.clone(),
        pid: std::process::id(),
        started: nono_snapshot::time::now_iso(),
        command: command.iter().map(|part| part.to_string_lossy().into_owned()).collect(),
        workdir: resolved.workdir.clone(),
        strategy: strategy.to_string(),
        grants: resolved.grants.len(),
        rollback: tracking.as_ref().map(|plan| plan.id.clone()),
    };
    let prepared = prepare(blueprint, &folder)?;
    let supervised = strategy == ExecStrategy::Supervised;
    let sockets = supervised.then(|| channels::bind(&folder, &host.context.state_dir, info));
    let sockets = sockets.transpose().map_err(failed)?;
    Ok(Session {
        options: Options {
            interactive: resolved.interactive,
            asking: stage,
            listen: diagnostics,
            output_aside: learning.is_some_and(|learning| learning.output_aside),
            grace_ms: GRACE_MS,
        },
        command: CommandSpec { program: file, argv: command, env },
        policy: resolved,
        profile,
        support,
        strategy,
        nothing_to_track,
        backend: ask.then_some(asking.backend),
        watched,
        own: [host.session_base.clone(), host.context.state_dir.clone()]
            .into_iter()
            .chain(asking.own)
            .collect(),
        folder,
        prepared,
        tracking,
        sockets,
    })
}

/// Run a supervised or monitored session to its end.
pub fn run(session: Session, observer: &Arc<dyn RunObserver>) -> Result<SessionReport, SessionError> {
    let Session {
        policy, command, options, folder, prepared, tracking, backend, own, sockets, watched, ..
    } = session;
    let (channels, place) = sockets.map(|sockets| (sockets.channels, sockets.place)).unzip();
    // Before any thread is started: signals are data from here on, also while a snapshot is taken.
    let signals = Arc::new(nono_supervisor::take_signals()?);
    let tracked = tracking.map(|plan| begin(&plan, &signals, observer)).transpose()?;
    if let Some(backend) = &backend {
        backend.begin(&folder.id);
    }
    let live = tracked.as_ref().map(|(watching, _)| watching.live());
    let mediate = asking::mediate(&policy, &prepared, own, backend, live);
    let mediate = Mediate { record: watched.is_some(), ..mediate };
    let outcome = nono_supervisor::run(&prepared, &command, &options, &signals, mediate, channels);
    // Nothing runs any more; the last snapshot is no reason to be listed.
    drop(place);
    let rollback = tracked.map(|(watching, ending)| {
        let ended = outcome.as_ref().ok().map(|outcome| exit_code(outcome.ended));
        ending.finish(watching, ended, Arc::new(Capturing::new(signals.clone(), observer.clone())))
    });
    let outcome = outcome?;
    let findings = diagnose(&outcome, &policy);
    let learned = watched.zip(outcome.recorded).map(|(watched, recorded)| watched.learned(recorded));
    Ok(SessionReport {
        mediation: outcome.mediation,
        session_id: folder.id.clone(),
        policy,
        ended: outcome.ended,
        limit: outcome.limit,
        memory_method: outcome.memory_method,
        stopped: outcome.stopped,
        findings,
        rollback,
        learned,
    })
}

fn exit_code(ended: Ended) -> i32 {
    match ended {
        Ended::Code(code) => code,
        Ended::Signal(signal) => 128 + signal,
    }
}

/// Become the command (Direct). Returns only if that failed; the caller must exit then.
pub fn replace(session: Session) -> SessionError {
    let Session { command, folder, prepared, .. } = session;
    let dir = folder.dir.clone();
    folder.leave();
    let error = nono_supervisor::replace(&prepared, &command);
    // May fail by now, half confined as this process is; the next run sweeps.
    let _ = nono_sys::fs::remove_tree(&dir);
    error.into()
}

/// The file the command means, by the caller's PATH.
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

/// This machine's abilities, with the canary behind them. Inside another nono sandbox there is nothing to try: no
/// namespaces can be had, and the outer one holds whatever happens here.
fn checked_support(host: &Host, folder: &SessionFolder) -> Result<Support, SessionError> {
    if host.nested {
        let reason = "already inside a nono sandbox".to_owned();
        return Ok(Support { namespaces: Namespaces::Missing { reason }, ..nono_sandbox::support() });
    }
    let (state, binary) = (&host.context.state_dir, host.context.binary.as_deref());
    if let Some(mut support) = check::known_support(state, binary) {
        // Whoever filters this process may also listen to it, which the record of another start does not tell.
        if is_confined() {
            support.notify = nono_sandbox::try_notify();
        }
        return Ok(support);
    }
    let support = nono_sandbox::support();
    if let Err(reason) = &support.landlock {
        return Err(Refusal::NoLandlock { reason: reason.clone() }.into());
    }
    check::verdict(check::try_canary(&support, folder)?)?;
    // A folder that cannot be written costs the next run this check again, nothing more.
    let _ = check::remember(state, binary, &support);
    Ok(support)
}

/// The child's variables: what the rules let through, and the places of this session.
fn child_environment(
    policy: &ResolvedPolicy,
    host: &Host,
    folder: &SessionFolder,
    strategy: ExecStrategy,
    own_tmp: bool,
) -> Vec<(OsString, OsString)> {
    let mut env = environment::build(&policy.environment, PolicyData::embedded(), host.env.iter().cloned());
    let tmp = folder.tmp();
    if own_tmp && !env.iter().any(|(name, _)| name == "TMPDIR") {
        env.push(("TMPDIR".into(), tmp.clone().into()));
        // tmux alone does not look at TMPDIR.
        env.push(("TMUX_TMPDIR".into(), tmp.into()));
    }
    env.push(("NONO_CAP_FILE".into(), folder.cap_file().into()));
    env.push(("NONO_SESSION".into(), folder.id.clone().into()));
    if strategy == ExecStrategy::Supervised {
        env.push(("NONO_REQUEST_SOCK".into(), channels::request_socket(folder).into()));
    }
    env.sort();
    env
}

/// Whoever granted the machine's own temporary folder wants it used.
fn writes_tmp(policy: &ResolvedPolicy) -> bool {
    policy.grants.iter().any(|grant| grant.access.writes() && Path::new("/tmp").starts_with(&grant.resolved))
}

/// Keys that profiles may already contain and a later version will honour: never parsed and ignored.
fn refuse_later_keys(profile: &MergedProfile) -> Result<(), SessionError> {
    let not_yet = |key| Err(SessionError::NotYet { key, profile: profile.name().to_owned() });
    if !profile.network.allow_domain.is_empty() {
        return not_yet("network.allow_domain");
    }
    if !profile.hooks.is_empty() {
        return not_yet("hooks");
    }
    Ok(())
}

/// Whether the policy leaves the host's network reachable, for messages.
pub fn network_word(network: &NetworkPolicy) -> String {
    match network {
        NetworkPolicy::Blocked => "blocked".to_owned(),
        NetworkPolicy::Allowed => "allowed".to_owned(),
        NetworkPolicy::Ports { connect, listen } => {
            let list = |ports: &[u16]| ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
            let mut parts = Vec::new();
            if !connect.is_empty() {
                parts.push(format!("connect to TCP port {}", list(connect)));
            }
            if !listen.is_empty() {
                parts.push(format!("listen on TCP port {}", list(listen)));
            }
            parts.join("; ")
        }
    }
}

/// Why exec failed, as a shell tells it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecProblem {
    Missing,
    Refused,
}

/// The program and the problem, if it was the last step of the launch that failed.
pub fn failed_exec(error: &RunError) -> Option<(&Path, ExecProblem)> {
    let RunError::Launch { error, program } = error else { return None };
    if error.step != nono_sys::launch::Step::Exec {
        return None;
    }
    let missing = io::Error::from_raw_os_error(error.errno).kind() == io::ErrorKind::NotFound;
    Some((program, if missing { ExecProblem::Missing } else { ExecProblem::Refused }))
}

/// End this process by `signal`. A shell that waits sees then that the person wanted an end, not just this one.
pub fn end_by(signal: i32) {
    nono_sys::process::kill_self(signal);
}

/// The user this process runs as.
pub fn user_id() -> u32 {
    nono_sys::process::uid()
}

/// Whether a system call filter already holds this process.
pub fn is_confined() -> bool {
    nono_sys::process::is_filtered()
}

/// An I/O error in the C library's words.
pub fn io_words(error: &io::Error) -> String {
    errno::describe(error)
}
