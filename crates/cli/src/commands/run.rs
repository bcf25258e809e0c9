//! `nono run`, `shell` and `wrap`: one path through crate `nono`, and the messages around it.

use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::sync::Arc;

use nono::diagnostic::{escape, shown};
use nono::network::NetworkReport;
use nono::session::{
    self, Asking, CheckpointsReport, Host, ResolvedRequest, RunObserver, SavedReport, Session, SessionReport,
    SessionRequest,
};
use nono::urls::UrlOpener;
use nono::{
    DiagnosticFormatter, Ended, ExecStrategy, LimitHit, MemoryMethod, Namespaces, ProfileRef, RunRequest,
    agents,
};

use super::project_profile::{self, ProfileQuestion};
use super::{approval_notices, dry_run, first_use, links, open_url, rollback_notices, silent_hooks, upkeep};
use crate::args::{CommonArgs, DiagnosticArgs, RunArgs, ShellArgs, WrapArgs, first_given, here};
use crate::failure::{Failure, words};
use crate::host::host;
use crate::message;
use crate::units::few;
use crate::{approver, prompt};

pub(crate) fn run(args: RunArgs) -> Result<u8, Failure> {
    run_as(args, std::env::args_os().collect(), ProfileQuestion::Now)
}

/// Runs as if this command line had been typed.
pub(super) fn run_as(args: RunArgs, typed: Vec<OsString>, asks: ProfileQuestion) -> Result<u8, Failure> {
    let strategy = match (args.monitor, args.exec) {
        (true, _) => ExecStrategy::Monitor,
        (_, true) => ExecStrategy::Direct,
        _ => ExecStrategy::Supervised,
    };
    execute(&args.common, Some(&args.diagnostics), args.command, strategy, (typed, asks))
}

pub(crate) fn shell(args: &ShellArgs) -> Result<u8, Failure> {
    let shell =
        std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into());
    let typed = std::env::args_os().collect();
    execute(
        &args.common,
        Some(&args.diagnostics),
        vec![shell],
        ExecStrategy::Supervised,
        (typed, ProfileQuestion::Now),
    )
}

pub(crate) fn wrap(args: WrapArgs) -> Result<u8, Failure> {
    let typed = std::env::args_os().collect();
    execute(&args.common, None, args.command, ExecStrategy::Direct, (typed, ProfileQuestion::Now))
}

fn execute(
    common: &CommonArgs,
    diagnostics: Option<&DiagnosticArgs>,
    command: Vec<OsString>,
    strategy: ExecStrategy,
    (typed, asks): (Vec<OsString>, ProfileQuestion),
) -> Result<u8, Failure> {
    let host = host(common.policy.workdir.as_deref())?;
    let mut request = common.request(&here()?)?;
    refuse_what_needs_a_parent(common, diagnostics, strategy, host.nested)?;
    profile_by_name(&mut request, &command, strategy, common);
    if !common.policy.no_project_profile {
        let quiet = common.dry_run || common.silent;
        project_profile::apply(&mut request, &host, if quiet { ProfileQuestion::No } else { asks })?;
    }
    let typed = flags(typed, common, &command);
    hide_secrets(common, &command)?;
    let networking = common.network.networking(&host, &here()?)?;
    networking.open(&mut request);
    if common.dry_run {
        return dry_run::show(&request, (&host, common.policy.workdir.as_deref()), &command, strategy);
    }
    let profile = session::profile(&request, &host)?;
    links::decide(&mut request, &profile, &host, common)?;
    first_use::offer(&profile, &command, &host, common.silent)?;
    let used = request.profile.clone();
    let mut resolved = ResolvedRequest::new(
        SessionRequest {
            strategy,
            profile: Some(profile),
            diagnostics: diagnostics.is_some_and(|args| !args.no_diagnostics),
            rollback: common.tracking.request(),
            auditing: common.auditing.request(),
            network: networking,
            checkpoints: common.checkpointing.request(),
            typed,
            ..SessionRequest::new(request, command)
        },
        &host,
    )?;
    ask_for_cwd(&mut resolved, &host, common)?;
    resolved.answered_by(who_answers(common, &resolved, &host)?);
    let session = resolved.plan()?;
    announce(&session, &host, strategy, common);
    if session.strategy == ExecStrategy::Direct {
        return Err(session::replace(session).into());
    }
    let told: Arc<dyn RunObserver> = Arc::new(rollback_notices::TerminalObserver::new(common));
    let mut report = session::run(session, &told)?;
    let code = conclude(&report, diagnostics, common);
    if let Some(line) = silent_hooks::line(&report, &host).filter(|_| !common.silent) {
        message::line(&line);
    }
    prompt::save(host.profile_dir.as_deref(), used.as_ref(), &report.mediation.expansions);
    if let Some(rollback) = report.rollback.take() {
        upkeep::after_command();
        rollback_notices::conclude(rollback, &host, common);
    }
    end_by_interrupt(&report);
    Ok(code)
}

/// Selects the profile of an agent that is run without one.
fn profile_by_name(
    request: &mut RunRequest,
    command: &[OsString],
    strategy: ExecStrategy,
    common: &CommonArgs,
) {
    let chosen = request.profile.is_some() || !request.extends.is_empty();
    let agent = command.first().and_then(|program| agents::of_program(program));
    let Some(agent) = agent.filter(|_| !chosen && strategy == ExecStrategy::Supervised) else { return };
    request.profile = Some(ProfileRef::Name(agent.name.clone()));
    if !common.silent {
        let (title, name, program) = (&agent.title, &agent.name, &agent.program);
        message::line(&format!(
            "using the profile of {title}, as with -p {name} (`nono {program}` sets up more; -p default uses none)"
        ));
    }
}

/// Flags as typed; none if they hold a secret that the command must not see.
fn flags(typed: Vec<OsString>, common: &CommonArgs, command: &[OsString]) -> Option<Vec<OsString>> {
    if common.network.is_secret() || common.asking.is_secret() {
        return None;
    }
    let mut words: Vec<OsString> = typed.into_iter().skip(1).collect();
    if words.ends_with(command) {
        words.truncate(words.len() - command.len());
    }
    words.pop_if(|word| word == "--");
    Some(words)
}

/// Overwrites secrets in nono's own command line, which the command could read from /proc.
fn hide_secrets(common: &CommonArgs, command: &[OsString]) -> Result<(), Failure> {
    if !common.network.is_secret() && !common.asking.is_secret() {
        return Ok(());
    }
    let own = ["nono", "run", "[hidden]", "--"].map(OsStr::new);
    let shown: Vec<&OsStr> = own.into_iter().chain(command.iter().map(OsString::as_os_str)).collect();
    session::show_arguments(&shown)
        .map_err(|error| Failure::new(format!("cannot hide the command line: {}", words(&error))))
}

/// Approver of requests while the command runs, if it may ask.
fn who_answers(common: &CommonArgs, resolved: &ResolvedRequest<'_>, host: &Host) -> Result<Asking, Failure> {
    let args = &common.asking;
    let wanted = args.capability_elevation.then_some(true);
    let asks = wanted.or(resolved.profile().security.capability_elevation) == Some(true) || args.open_url;
    if let Some(flag) = args.given().filter(|_| !asks) {
        return Err(Failure::usage(format!("{flag} has no effect without --ask")).hint("add --ask"));
    }
    Ok(Asking {
        wanted,
        backend: approver::backend(args, host, resolved.policy())?,
        accept_weaker: args.accept_weaker,
        own: approver::files(args)?,
        urls: args.open_url.then(|| Arc::new(open_url::Desktop) as Arc<dyn UrlOpener>),
        off_terminal: false,
    })
}

/// Refuses flags that need a supervisor where there is none. Only `nono wrap` has no flags about diagnostics.
fn refuse_what_needs_a_parent(
    common: &CommonArgs,
    diagnostics: Option<&DiagnosticArgs>,
    strategy: ExecStrategy,
    nested: bool,
) -> Result<(), Failure> {
    if strategy == ExecStrategy::Monitor {
        let rollback = common.tracking.rollback().then_some("--rollback");
        let checkpoints = common.checkpointing.checkpoints.then_some("--checkpoints");
        if let Some(flag) = rollback
            .or(checkpoints)
            .or(common.asking.needs_supervisor())
            .or(common.auditing.given())
            .or(common.filter_flag())
        {
            return Err(Failure::usage(format!(
                "{flag} needs a supervisor outside the sandbox, and --monitor confines it too"
            ))
            .hint(format!("leave --monitor or {flag} out")));
        }
    }
    if strategy != ExecStrategy::Direct && !nested {
        return Ok(());
    }
    let first = first_given([
        ("--rollback", common.tracking.rollback()),
        ("--checkpoints", common.checkpointing.checkpoints),
        ("--max-time", common.max_time.is_some()),
        ("--max-memory", common.max_memory.is_some()),
        ("--diagnostics-json", diagnostics.is_some_and(|args| args.diagnostics_json)),
    ]);
    let given = first.or(common.asking.needs_supervisor()).or(common.auditing.given());
    let Some(flag) = given.or(common.filter_flag()) else { return Ok(()) };
    let (why, hint) = if nested {
        let hint = format!("leave {flag} out, or give it to the outer nono");
        ("inside a nono sandbox the command runs directly", hint)
    } else if diagnostics.is_none() {
        ("`nono wrap` has none", format!("use `nono run`, or leave {flag} out"))
    } else {
        ("--exec starts none", format!("leave --exec or {flag} out"))
    };
    Err(Failure::usage(format!("{flag} needs a supervisor, and {why}")).hint(hint))
}

/// Asks about the working directory on a terminal, unless something else grants it.
fn ask_for_cwd(resolved: &mut ResolvedRequest<'_>, host: &Host, common: &CommonArgs) -> Result<(), Failure> {
    if common.silent || !message::can_ask() {
        return Ok(());
    }
    let cwd = host.context.cwd.canonicalize().unwrap_or_else(|_| host.context.cwd.clone());
    if resolved.policy().grants.iter().any(|grant| nono::is_within(&cwd, &grant.resolved)) {
        return Ok(());
    }
    if message::confirm(&format!("Let it read and write the working directory {}?", shown(&cwd))) {
        resolved.allow_cwd()?;
    }
    Ok(())
}

/// Messages before the command starts about what is weaker or different in this run.
pub(super) fn announce(session: &Session, host: &Host, asked: ExecStrategy, common: &CommonArgs) {
    if common.silent {
        return;
    }
    if host.nested {
        message::line("already inside a nono sandbox: the command runs directly, confined by both sandboxes");
        return;
    }
    if let Namespaces::Missing { reason } = &session.support.namespaces {
        message::line(&format!(
            "weaker protection: {reason}; `nono setup --check-only` lists what that changes"
        ));
    }
    if let Some(MemoryMethod::Polled(_)) = session.memory_method() {
        message::line(&unheld_memory(session));
    }
    if session.nothing_to_track {
        message::line("no snapshots: nothing is granted for writing");
    }
    if common.verbose {
        if let Some(error) = session.unlisted() {
            message::line(&format!("`nono ps` cannot show this session: {}", words(error)));
        }
        let policy = &session.policy;
        message::line(&format!(
            "{asked}: {} grants, {} closed paths, network {}",
            policy.grants.len(),
            policy.closed.len(),
            session::network_word(&policy.network)
        ));
    }
}

/// Notice about what `--max-memory` does not count without a cgroup.
fn unheld_memory(session: &Session) -> String {
    let sockets = match session.strategy {
        ExecStrategy::Monitor => "sockets, shared mappings",
        _ if session.has_own_network() => "TCP buffers",
        _ => "sockets",
    };
    format!(
        "--max-memory is polled, since there is no cgroup for it: pipes, {sockets} and open files are not counted, \
         memfd_create is closed"
    )
}

/// Warnings about the network, checkpoints, saved settings and the audit log. Printed even with `--silent`.
fn recorded(report: &SessionReport) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(why) = report.network.as_ref().and_then(|network| network.lost.as_ref()) {
        let why = escape(why);
        lines.push(format!(
            "warning: the network filter ended before the command: {why}; the command had no network from then on"
        ));
    }
    let missing = report.network.as_ref().and_then(NetworkReport::missing);
    lines.extend(missing.map(|missing| format!("warning: {missing}")));
    lines.extend(report.checkpoints.as_ref().and_then(unprotected));
    lines.extend(report.saved.iter().filter_map(held_back));
    let Some(audit) = &report.audit else { return lines };
    let problem = |problem: &String| format!("error: the audit log is not complete: {}", escape(problem));
    lines.extend(audit.problems.iter().map(problem));
    lines.extend(audit.notices.iter().map(|notice| format!("warning: {}", escape(notice))));
    lines
}

/// Notice about settings that an agent saved, and that apply to sandboxed runs only or were lost.
fn held_back(saved: &SavedReport) -> Option<String> {
    const SHOWN: usize = 3;
    let file = shown(&saved.file);
    if let Some(problem) = &saved.problem {
        return Some(format!("warning: {file}: the agent's changes were not saved: {}", escape(problem)));
    }
    let keys: Vec<String> = saved.inside.iter().map(|key| escape(key)).collect();
    let some = few(&keys, SHOWN);
    (!keys.is_empty()).then(|| format!("{file}: {some}: saved for sandboxed runs in this directory only"))
}

/// Warning about projects without a checkpoint, in one line.
fn unprotected(checkpoints: &CheckpointsReport) -> Option<String> {
    let (dir, why) = checkpoints.unprotected.first()?;
    let more = match checkpoints.unprotected.len() - 1 {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    Some(format!("warning: {} is not protected by a checkpoint: {}{more}", shown(dir), escape(why)))
}

/// Prints the messages after the run and returns the exit code.
pub(super) fn conclude(
    report: &SessionReport,
    diagnostics: Option<&DiagnosticArgs>,
    common: &CommonArgs,
) -> u8 {
    let silent = report.ended == Ended::Code(0) && report.limit.is_none();
    // A failure that is explained as JSON has the other messages in it.
    let as_json = report.ended != Ended::Code(0) && diagnostics.is_some_and(|args| args.diagnostics_json);
    let mut lines =
        if common.silent || as_json { Vec::new() } else { approval_notices::lines(report, common.verbose) };
    lines.extend(recorded(report));
    if report.findings.unfinished_line && (!silent || !lines.is_empty()) {
        message::raw_error("");
    }
    for line in lines {
        message::line(&line);
    }
    let code = u8::try_from(report.exit_code()).unwrap_or(u8::MAX);
    if let Some(limit) = report.limit {
        message::line(&limit_words(limit, report.memory_method));
        if !matches!(limit, LimitHit::FileSize(_)) {
            return code;
        }
    }
    if report.stopped && !common.silent {
        message::line("the command was ended by `nono stop`");
    }
    match report.ended {
        Ended::Signal(signal) if common.verbose => {
            message::line(&format!("the command was ended by {}", nono::signal_name(signal)));
        }
        Ended::Code(failure @ 1..) if !report.stopped => explain(report, failure, diagnostics, common),
        Ended::Signal(_) | Ended::Code(_) => {}
    }
    code
}

/// Ends nono by the signal that ended the command after Ctrl-C or Ctrl-\\, so that a calling script sees it too.
pub(super) fn end_by_interrupt(report: &SessionReport) {
    if let Ended::Signal(signal) = report.ended
        && report.limit.is_none()
        && matches!(nono::signal_name(signal).as_str(), "SIGINT" | "SIGQUIT")
        && std::io::stdin().is_terminal()
    {
        session::end_by(signal);
    }
}

fn explain(
    report: &SessionReport,
    exit_code: i32,
    diagnostics: Option<&DiagnosticArgs>,
    common: &CommonArgs,
) {
    let Some(args) = diagnostics.filter(|args| !args.no_diagnostics && !common.silent) else { return };
    let (policy, findings) = (&report.policy, &report.findings);
    let formatter = DiagnosticFormatter { exit_code, policy, findings, verbose: common.verbose };
    if args.diagnostics_json {
        message::raw_error(&format!("{:#}", formatter.json()));
    } else {
        for line in formatter.lines() {
            message::line(&line);
        }
    }
}

fn limit_words(limit: LimitHit, method: Option<MemoryMethod>) -> String {
    match limit {
        LimitHit::Time(time) => {
            format!("the command was ended: it ran longer than --max-time {}", plain(time))
        }
        LimitHit::Memory { limit, seen } => {
            let how = match method {
                Some(MemoryMethod::Polled(every)) => format!(", polled every {} ms", every.as_millis()),
                Some(MemoryMethod::Cgroup) | None => String::new(),
            };
            format!(
                "the command was ended: its processes used {} MiB, --max-memory allows {} MiB{how}",
                seen >> 20,
                limit >> 20
            )
        }
        LimitHit::FileSize(bytes) => {
            format!("the command was ended: it wrote a file beyond --max-file-size ({bytes} bytes)")
        }
    }
}

fn plain(time: std::time::Duration) -> String {
    if time.subsec_nanos() == 0 { format!("{}s", time.as_secs()) } else { format!("{}ms", time.as_millis()) }
}
