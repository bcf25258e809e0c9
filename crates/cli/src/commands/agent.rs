//! `nono claude` and similar commands that start an agent.
//!
//! They are `nono run` with what the agent needs: its profile, snapshots, checkpoints, approvals while it runs, its API
//! key kept outside. What that opens is shown and confirmed once.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nono::ResolvedPolicy;
use nono::agents::{self, Agent, AgentLaunch, ServiceAddress};
use nono::diagnostic::{escape, shown};
use nono::hooks::agents::Agent as Hooked;
use nono::hooks::install::{self, HookState};
use nono::session::{self, Host, SessionError};

use super::project_profile::ProfileQuestion;
use super::{hooks, links, run};
use crate::args::{AgentArgs, Command, here, parse};
use crate::failure::Failure;
use crate::host::host;
use crate::message;
use crate::units::few;

/// Index of the first flag of `nono run`.
const RUN: usize = 2;

/// Maximum number of hosts and paths that are named.
const NAMED: usize = 4;

pub(crate) fn start(program: &str, args: AgentArgs) -> Result<u8, Failure> {
    let agent = agents::of_program(program.as_ref())
        .ok_or_else(|| Failure::new(format!("unknown agent {program}")))?;
    let host = host(None)?;
    let file = session::find_program(&[program.into()], &host).map_err(SessionError::from)?;
    let start = agents::start(agent, &host.env);
    let mut words = words(agent, &start, agents::installation(&file), args.arguments);
    if args.no_project_profile {
        words.insert(RUN, "--no-project-profile".into());
    }
    let Ok(Command::Run(run_args)) = parse(&words) else {
        return Err(Failure::new(format!("cannot start {}: this is a bug in nono", agent.title)));
    };
    let mut asks = ProfileQuestion::Now;
    if !host.nested {
        let mut request = run_args.common.request(&here()?)?;
        let profile = session::profile(&request, &host)?;
        let terms = agents::terms(agent, &profile);
        if args.reset || !agents::is_agreed(&host.context.state_dir, agent, &terms) {
            links::decide(&mut request, &profile, &host, &run_args.common)?;
            let policy = session::resolve(&request, &profile, &host)?;
            let state = session::agent_state(&agent.name, &host.context);
            agree(agent, lines(agent, &start, &policy, &state, &host), &host, args.yes)?;
            let kept = agents::agree(&host.context.state_dir, agent, &terms);
            kept.map_err(|error| Failure::new(error.to_string()))?;
            // One question at a start is enough.
            asks = ProfileQuestion::NextTime;
        }
    }
    run::run_as(*run_args, words, asks)
}

/// Equivalent `nono run` command line.
fn words(
    agent: &Agent,
    start: &AgentLaunch,
    installation: Option<PathBuf>,
    arguments: Vec<OsString>,
) -> Vec<OsString> {
    let mut words: Vec<OsString> = ["nono", "run", "-p"].map(OsString::from).into();
    words.push((&agent.name).into());
    words.extend(["--rollback", "--no-rollback-prompt", "--checkpoints"].map(OsString::from));
    if message::can_ask() {
        words.push("--ask".into());
    }
    if let Some(dir) = installation {
        words.extend(["--read".into(), dir.into()]);
    }
    if let Some((service, variable)) = &start.credential {
        words.extend(["--credential".into(), format!("{service}=env:{variable}").into()]);
    }
    for service in &start.services {
        match service {
            ServiceAddress::Host(rule) => words.extend(["--allow-domain".into(), rule.to_string().into()]),
            ServiceAddress::Port(port) => {
                words.extend(["--allow-connect-port".into(), port.to_string().into()]);
            }
        }
    }
    for (name, value) in &agent.start.variables {
        words.extend(["--env".into(), format!("{name}={value}").into()]);
    }
    words.extend(["--".into(), (&agent.program).into()]);
    words.extend(agent.start.arguments.iter().map(OsString::from));
    words.extend(arguments);
    words
}

/// Shows what the agent is granted, its hooks included, and asks once.
fn agree(agent: &Agent, mut lines: Vec<StatusLine>, host: &Host, yes: bool) -> Result<(), Failure> {
    let hooked: Option<Hooked> = agent.name.parse().ok();
    let hooks = hooked.map(|hooked| plan_hooks(hooked, host)).transpose()?.flatten();
    if hooks.is_some() {
        lines.push((
            "hooks",
            "added to its settings: a checkpoint before a turn changes something".to_owned(),
        ));
    }
    message::line(&format!("{}, in a sandbox:", agent.title));
    for (what, said) in lines {
        message::line(&format!("  {what:<8} {said}"));
    }
    let agreed = yes || message::confirm(&format!("Start {} like this from now on?", agent.title));
    if !agreed {
        let refused = Failure::refused(format!("{} was not started: not confirmed", agent.title));
        return Err(if message::can_ask() {
            refused
                .hint(format!("`nono run -p {} --no-rollback -- {}` grants less", agent.name, agent.program))
        } else {
            refused.hint(format!("start it in a terminal once, or run `nono {} --yes`", agent.program))
        });
    }
    if let Some(plan) = hooks {
        hooks::carry_out(&plan, "install")?;
        for note in &plan.notes {
            message::line(&format!("note: {note}"));
        }
    }
    Ok(())
}

/// Plan to install the agent's hooks; none if they are installed.
fn plan_hooks(agent: Hooked, host: &Host) -> Result<Option<install::InstallPlan>, Failure> {
    let request = hooks::for_user(agent, host)?;
    let status = install::status(&request)?;
    if status.state == HookState::Installed {
        return Ok(None);
    }
    Ok(Some(install::plan_install(&request)?))
}

/// Label and text of a line.
type StatusLine = (&'static str, String);

fn lines(
    agent: &Agent,
    start: &AgentLaunch,
    policy: &ResolvedPolicy,
    state: &[PathBuf],
    host: &Host,
) -> Vec<StatusLine> {
    let home = host.context.home.as_deref();
    let state: Vec<String> = state.iter().map(|dir| below_home(dir, home)).collect();
    let mut lines = vec![
        ("project", format!("{}: read and written", below_home(&policy.workdir, home))),
        ("state", format!("{}: its own, read and written", few(&state, NAMED))),
        ("read", "installed programs; none of your other files".to_owned()),
        ("network", network(policy)),
    ];
    if let Some((_, variable)) = &start.credential {
        lines.push((
            "key",
            format!("{variable} stays outside; the agent gets a placeholder, which the filter replaces"),
        ));
    }
    lines.push(("more", "you are asked about whatever else it wants to open".to_owned()));
    if let Some(off) = &agent.start.switches_off {
        lines.push(("off", format!("{off}; nono's sandbox takes its place")));
    }
    lines.push(("undo", "`nono undo` undoes what it did here; its own state stays".to_owned()));
    lines
}

fn network(policy: &ResolvedPolicy) -> String {
    let hosts: Vec<String> = policy.hosts.iter().map(|grant| escape(&grant.rule.to_string())).collect();
    if hosts.is_empty() {
        session::network_word(&policy.network)
    } else {
        format!("{}, nothing else", few(&hosts, NAMED))
    }
}

fn below_home(path: &Path, home: Option<&Path>) -> String {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) if !rest.as_os_str().is_empty() => format!("~/{}", shown(rest)),
        _ => shown(path),
    }
}
