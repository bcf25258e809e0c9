//! Planning: from a request to a [`Session`], with everything resolved and compiled and nothing started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nono_policy::{MergedProfile, PolicyData, ResolvedPolicy, RunRequest, Typed, environment};
use nono_sandbox::{
    Blueprint, ExecStrategy, Mediation, Namespaces, PlanError, Prepared, Refusal, Support, compile,
};
use nono_supervisor::channel::SessionInfo;
use nono_supervisor::terminal_lease::TerminalLeases;
use nono_supervisor::{CommandSpec, Options, RunError};

use super::agent_files::AgentFiles;
use super::audit_log::{AuditPlan, without_secrets};
use super::checkpoints::{Planned, Sweeper};
use super::egress::Connection;
use super::folder::SessionFolder;
use super::learning::Watched;
use super::resolve::{profile, resolve_with};
use super::{
    Asking, Checkpointing, Host, Learning, Rollback, Session, SessionError, SessionRequest, asking, browser,
    channels, check, created_dirs, is_confined, placeholders, rollback_options,
};
use crate::rollback::scope;
use crate::rollback::tracking::{self, RollbackRequest};
use nono_policy::state_dir;
use nono_supervisor::program::{self, ProgramError};

/// Time in milliseconds that processes left by the command have to end by themselves.
const GRACE_MS: u32 = 1000;

/// The user's command line, for hints shown inside the sandbox.
fn as_typed(
    flags: &[OsString],
    command: &[String],
    book: Option<&AuditPlan>,
    host: &Host,
) -> Result<Typed, SessionError> {
    let flags = without_secrets(flags, book, &host.context.state_dir)?;
    Ok(Typed { flags, command: command.to_vec() })
}

/// Tell hooks by `NONO_ASKS` that a refused access can be requested.
fn tell_who_asks(env: &mut Vec<(OsString, OsString)>, asks: &Asks) {
    if asks.opens {
        set(env, ("NONO_ASKS".into(), "1".into()));
    }
}

/// Find the program, resolve the policy, make the session folder, compile, and run the canary once per boot.
pub fn plan(request: SessionRequest, host: &Host) -> Result<Session, SessionError> {
    let SessionRequest {
        mut policy,
        command,
        strategy,
        diagnostics,
        rollback,
        asking,
        auditing,
        network,
        checkpoints,
        learning,
        typed,
        guest,
    } = request;
    network.open(&mut policy);
    auditing.close(&mut policy);
    let file = find_program(&command, host)?;
    policy.program = Some(file.clone());
    let strategy = if host.nested { ExecStrategy::Direct } else { strategy };
    let supervised = strategy == ExecStrategy::Supervised;
    let SessionGround { mut folder, support, inside } = ground(host)?;
    let failed = |source| SessionError::Folder { base: host.session_base.clone(), source };
    let watched = learning.map(|learning| Watched::new(&policy, &inside, learning)).transpose()?;
    if let Some(learning) = learning {
        policy = learning.applied(policy);
    }
    let profile = profile(&policy, host)?;
    let made = created_dirs::make(&policy, &profile, &host.context);
    let rollback = rollback.placed(&host.context);
    let Tracked { policy: mut resolved, wanted } =
        tracked_policy(&mut policy, &inside, &profile, &rollback, strategy, learning.is_some())?;
    let asks = Asks::new(&asking, &profile, strategy, resolved.interactive, learning.is_some())?;
    let book = (supervised && auditing.wanted)
        .then(|| AuditPlan::open(&auditing, &policy.projects, &host.context.state_dir))
        .transpose()?;
    let shown = without_secrets(&command, book.as_ref(), &host.context.state_dir)?;
    let tracked = watched.as_ref().map_or(&resolved, |watched| &watched.tracked);
    let roots = scope::roots(tracked, &folder.dir, wanted.as_ref());
    let wanted = wanted.filter(|_| !roots.tracked.is_empty() || rollback.is_asked_for(&profile));
    let nothing_to_track = wanted.is_some() && roots.tracked.is_empty();
    // A temporary folder opened only for recording will not be granted in the next run.
    let own_tmp = !writes_tmp(tracked);
    let tracking = wanted.filter(|_| !nothing_to_track).map(|wanted| {
        let (id, name) = (folder.id.clone(), policy.name.clone());
        tracking_plan(id, name, shown.clone(), roots, wanted, &profile, host)
    });
    let (checkpoints, sweeper) = match learning {
        None => planned(&checkpoints, strategy, host, &resolved)?,
        Some(_) => (None, None),
    };
    let (agent_files, told) = AgentFiles::place(&mut resolved, made, &folder, host, strategy, &network)?;
    let stage = asks.stage(&asking, checkpoints.is_some() && !resolved.interactive)?;
    let secrets = network.files().into_iter().chain(auditing.file());
    let wish =
        Mediation { opens: asks.opens, record: watched.is_some(), accept_weaker: asking.accept_weaker };
    let blueprint = blueprint(&resolved, &support, strategy, &mut folder, wish)?;
    let (connection, blueprint) = Connection::new(network, &resolved, host, blueprint)?;
    if connection.is_some() && !supervised {
        return Err(SessionError::FilterNeedsSupervisor { strategy });
    }
    let typed = typed.map(|flags| as_typed(&flags, &shown, book.as_ref(), host)).transpose()?;
    folder.describe(&resolved, policy.name.as_deref(), typed).map_err(failed)?;
    let mut env = child_environment(&resolved, host, &folder, strategy, own_tmp, told);
    tell_who_asks(&mut env, &asks);
    if let Some(binary) = host.context.binary.as_ref().filter(|_| asks.urls) {
        set(&mut env, browser::shim(&folder, binary).map_err(failed)?);
    }
    let info = info(&folder, policy.name.clone(), shown.clone(), &resolved, strategy, tracking.as_ref());
    let prepared = prepare(blueprint, &folder)?;
    let sockets = supervised.then(|| channels::bind(&folder, &host.context.state_dir, info));
    let sockets = sockets.transpose().map_err(failed)?;
    Ok(Session {
        options: options(resolved.interactive, stage, diagnostics, learning),
        command: CommandSpec { program: file, argv: command, env },
        name: policy.name,
        shown,
        policy: resolved,
        profile,
        support,
        strategy,
        nothing_to_track,
        urls: asking.urls.filter(|_| asks.urls).map(|opener| (opener, asking.backend.clone())),
        approver: asking.backend.clone(),
        checkpoints,
        sweeper,
        backend: asks.opens.then_some(asking.backend),
        watched,
        agent_files,
        guest,
        own: [host.session_base.clone(), host.context.state_dir.clone()]
            .into_iter()
            .chain(asking.own)
            .chain(secrets)
            .collect(),
        folder,
        prepared,
        tracking: tracking.map(|plan| plan.without(placeholders::on_record(&host.context.state_dir))),
        book,
        connection,
        sockets,
    })
}

/// Plans for checkpoints and for pruning.
fn planned(
    checkpoints: &Checkpointing,
    strategy: ExecStrategy,
    host: &Host,
    policy: &ResolvedPolicy,
) -> Result<(Option<Planned>, Option<Sweeper>), SessionError> {
    if strategy == ExecStrategy::Supervised {
        return checkpoints.planned(&host.context.state_dir, host.context.home.as_deref(), policy);
    }
    match checkpoints.wanted {
        Some(true) => Err(SessionError::CheckpointsNeedSupervisor { strategy }),
        _ => Ok((None, None)),
    }
}

fn options(
    interactive: bool,
    asking: Option<TerminalLeases>,
    listen: bool,
    learning: Option<Learning>,
) -> Options {
    let output_aside = learning.is_some_and(|learning| learning.output_aside);
    Options { interactive, asking, listen, output_aside, streams: None, cancel: None, grace_ms: GRACE_MS }
}

/// The session's description for `nono ps`.
fn info(
    folder: &SessionFolder,
    name: Option<String>,
    command: Vec<String>,
    policy: &ResolvedPolicy,
    strategy: ExecStrategy,
    tracking: Option<&tracking::TrackingPlan>,
) -> SessionInfo {
    SessionInfo {
        id: folder.id.clone(),
        name,
        pid: std::process::id(),
        started: nono_snapshot::time::now_iso(),
        command,
        workdir: policy.workdir.clone(),
        strategy: strategy.to_string(),
        grants: policy.grants.len(),
        rollback: tracking.map(|plan| plan.id.clone()),
    }
}

/// The compiled sandbox, with what the supervisor has to mediate.
fn blueprint(
    policy: &ResolvedPolicy,
    support: &Support,
    strategy: ExecStrategy,
    folder: &mut SessionFolder,
    wish: Mediation,
) -> Result<Blueprint, SessionError> {
    folder.close_usual_bases(policy);
    let blueprint = compile(policy, support, strategy, &folder.paths())?;
    if strategy != ExecStrategy::Supervised {
        return Ok(blueprint);
    }
    Ok(blueprint.mediate(wish, support)?)
}

/// The tracking plan of the run. The recorder is set when the run begins.
fn tracking_plan(
    id: String,
    name: Option<String>,
    command: Vec<String>,
    roots: scope::Roots,
    request: RollbackRequest,
    profile: &MergedProfile,
    host: &Host,
) -> tracking::TrackingPlan {
    tracking::TrackingPlan {
        id,
        name,
        command,
        roots: roots.tracked,
        of_tools: roots.of_tools,
        profile: profile.rollback.clone(),
        own: vec![host.context.state_dir.clone(), host.session_base.clone()],
        state_dir: host.context.state_dir.clone(),
        request,
        recorder: Arc::new(()),
    }
}

/// Session folder, machine support and host description.
struct SessionGround {
    folder: SessionFolder,
    support: Support,
    /// The host with the session folder and masking support filled in, for policy resolution.
    inside: Host,
}

fn ground(host: &Host) -> Result<SessionGround, SessionError> {
    if !host.nested {
        state_dir::ensure(&host.context.state_dir)?;
    }
    let failed = |source| SessionError::Folder { base: host.session_base.clone(), source };
    let folder = SessionFolder::create(&host.session_base).map_err(failed)?;
    let support = checked_support(host, &folder)?;
    let mut inside = host.clone();
    inside.context.session_dir = Some(folder.dir.clone());
    inside.context.can_mask = matches!(support.namespaces, Namespaces::Available { .. });
    Ok(SessionGround { folder, support, inside })
}

/// The resolved policy, and the rollback request if the run is tracked.
struct Tracked {
    policy: ResolvedPolicy,
    wanted: Option<RollbackRequest>,
}

/// Resolve the policy. A rollback destination inside a grant is denied to the command.
fn tracked_policy(
    request: &mut RunRequest,
    host: &Host,
    profile: &MergedProfile,
    rollback: &Rollback,
    strategy: ExecStrategy,
    learning: bool,
) -> Result<Tracked, SessionError> {
    let policy = resolve_with(profile, request, host)?;
    let supervised = strategy == ExecStrategy::Supervised;
    let wanted = rollback.tracked(&policy, profile, &host.context.state_dir, supervised && !learning)?;
    if wanted.is_some() && !supervised {
        return Err(SessionError::NeedsSupervisor { strategy });
    }
    let Some(dest) = wanted.as_ref().and_then(|wanted| rollback_options::readable_dest(wanted, &policy))
    else {
        return Ok(Tracked { policy, wanted });
    };
    request.deny.push(rollback_options::make_dest(dest)?);
    Ok(Tracked { policy: resolve_with(profile, request, host)?, wanted })
}

/// Subjects that the user may be asked about while the command runs.
struct Asks {
    /// Access beyond the grants.
    opens: bool,
    /// Web addresses to open in the browser.
    urls: bool,
}

impl Asks {
    fn new(
        asking: &Asking,
        profile: &MergedProfile,
        strategy: ExecStrategy,
        interactive: bool,
        learning: bool,
    ) -> Result<Asks, SessionError> {
        let asks =
            Asks { opens: !learning && asking.is_wanted(profile), urls: !learning && asking.urls.is_some() };
        if (asks.opens || asks.urls) && strategy != ExecStrategy::Supervised {
            return Err(SessionError::AskNeedsSupervisor { strategy });
        }
        if (asks.opens || asks.urls) && interactive && !asking.off_terminal {
            return Err(SessionError::AskNeedsTerminal);
        }
        Ok(asks)
    }
}

impl Asks {
    /// The terminal for prompts, if there may be any. A restore requested from inside (`back`) needs one, too.
    fn stage(&self, asking: &Asking, back: bool) -> Result<Option<TerminalLeases>, RunError> {
        asking::stage(!asking.off_terminal && (self.opens || self.urls || back))
    }
}

/// Set a variable, replacing an earlier value.
fn set(env: &mut Vec<(OsString, OsString)>, (name, value): (OsString, OsString)) {
    env.retain(|(other, _)| *other != name);
    env.push((name, value));
    env.sort();
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

/// Support of this machine, confirmed by the canary. Inside another nono sandbox there is nothing to try: namespaces
/// are not available, and the outer sandbox holds regardless.
fn checked_support(host: &Host, folder: &SessionFolder) -> Result<Support, SessionError> {
    if host.nested {
        let reason = "already inside a nono sandbox".to_owned();
        return Ok(Support { namespaces: Namespaces::Missing { reason }, ..nono_sandbox::support() });
    }
    let (state, binary) = (&host.context.state_dir, host.context.binary.as_deref());
    if let Some(mut support) = check::known_support(state, binary) {
        // An existing filter may have its own listener, which the record of another start does not tell.
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
    // If it cannot be written, the next run repeats the check.
    let _ = check::remember(state, binary, &support);
    Ok(support)
}

/// The child's environment: variables that the rules let through, paths of this session, and variables for agents
/// (`told`).
fn child_environment(
    policy: &ResolvedPolicy,
    host: &Host,
    folder: &SessionFolder,
    strategy: ExecStrategy,
    own_tmp: bool,
    told: Vec<(OsString, OsString)>,
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
    for variable in told {
        set(&mut env, variable);
    }
    env.sort();
    env
}

/// Whether the machine's temporary folder is writable for the command: it is then used instead of the session's own.
fn writes_tmp(policy: &ResolvedPolicy) -> bool {
    policy.grants.iter().any(|grant| grant.access.writes() && Path::new("/tmp").starts_with(&grant.resolved))
}
