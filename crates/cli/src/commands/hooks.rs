//! `nono hooks`: installs, checks and removes the hooks of agents; runs `/rollback`.

use std::io::Read;
use std::process::{Command, Stdio};

use nono::diagnostic::{escape, shown};
use nono::hooks::agents::Agent;
use nono::hooks::install::{
    self, AgentStatus, Applied, FileEdit, InstallError, InstallPlan, InstallRequest, Scope,
};
use nono::hooks::{json, slash_command};
use nono::session::Host;

use crate::args::{ConsentArgs, HooksChangeArgs, HooksCommand, HooksStatusArgs, ScopeArgs, ScopeKind};
use crate::failure::{Failure, NOT_DONE};
use crate::host::{agent_places, host, nono_home};
use crate::message;

/// Maximum size of the text after `/rollback`.
const TYPED: u64 = 64 << 10;

pub(crate) fn hooks(command: &HooksCommand) -> Result<u8, Failure> {
    match command {
        HooksCommand::Install(args) => change(args, "install", install::plan_install),
        HooksCommand::Remove(args) => change(args, "remove", install::plan_remove),
        HooksCommand::Status(args) => status(args),
        HooksCommand::Slash { typed } => typed_rollback(typed.as_deref()),
    }
}

fn request(agent: Agent, scope: ScopeArgs, host: &Host) -> Result<InstallRequest, Failure> {
    let context = &host.context;
    let binary = context.binary.clone();
    Ok(InstallRequest {
        agent,
        scope: match scope.scope {
            ScopeKind::User => Scope::User,
            ScopeKind::Project => Scope::Project(context.cwd.clone()),
        },
        places: agent_places(context.home.clone().ok_or_else(Failure::no_home)?),
        binary: binary.ok_or_else(|| Failure::new("cannot find nono's own program file"))?,
        nono_home: nono_home(),
        state_dir: context.state_dir.clone(),
    })
}

/// Request for the user's own settings.
pub(super) fn for_user(agent: Agent, host: &Host) -> Result<InstallRequest, Failure> {
    request(agent, ScopeArgs { scope: ScopeKind::User }, host)
}

fn change(
    args: &HooksChangeArgs,
    verb: &str,
    plan: impl Fn(&InstallRequest) -> Result<InstallPlan, InstallError>,
) -> Result<u8, Failure> {
    let request = request(args.agent, args.scope, &host(None)?)?;
    let plan = plan(&request)?;
    let consent = args.consent;
    if plan.changes.is_empty() || consent.dry_run {
        return tell(&plan, verb, None, consent);
    }
    if !consent.json {
        message::line(&text(&plan, verb));
    }
    if !consent.yes && !message::confirm(&format!("Go on and {verb} them?")) {
        let refused = Failure::refused("nothing was changed: not confirmed");
        return Err(if message::can_ask() {
            refused
        } else {
            refused.hint("add --yes to do it without asking")
        });
    }
    let applied = install::apply(&plan)?;
    tell(&plan, verb, Some(&applied), consent)
}

/// Prints the plan or the result.
fn tell(
    plan: &InstallPlan,
    verb: &str,
    applied: Option<&Applied>,
    consent: ConsentArgs,
) -> Result<u8, Failure> {
    if consent.json {
        return message::answer_json(&json::plan(plan, applied));
    }
    match applied {
        None if plan.changes.is_empty() => {
            let agent = plan.agent.title();
            let state = if verb == "install" { "has nono's hooks already" } else { "has no hooks of nono" };
            message::line(&format!("{agent} {state}; nothing to do"));
        }
        None => message::line(&text(plan, verb)),
        Some(done) => written(plan, verb, done),
    }
    for note in &plan.notes {
        message::line(&format!("note: {note}"));
    }
    Ok(0)
}

/// Writes the files of a plan, and prints what was written.
pub(super) fn carry_out(plan: &InstallPlan, verb: &str) -> Result<(), Failure> {
    written(plan, verb, &install::apply(plan)?);
    Ok(())
}

/// Prints what was written.
fn written(plan: &InstallPlan, verb: &str, applied: &Applied) {
    for backup in &applied.backups {
        message::line(&format!("kept a copy: {}", shown(backup)));
    }
    let done = if verb == "install" { "are installed" } else { "are removed" };
    message::line(&format!("the hooks of {} {done}", plan.agent.title()));
}

pub(super) fn text(plan: &InstallPlan, verb: &str) -> String {
    let mut lines = vec![format!("To {verb} the hooks of {}:", plan.agent.title())];
    lines.extend(plan.changes.iter().map(|change| {
        let place = change.leads_to.as_ref().map(|place| format!(" -> {}", shown(place)));
        let place = place.unwrap_or_default();
        format!("  {:<7} {}{place}  ({})", change.action(), shown(&change.path), describe(change))
    }));
    lines.join("\n")
}

fn describe(change: &FileEdit) -> &'static str {
    use nono::hooks::install::Purpose;
    match change.purpose {
        Purpose::Hooks => "the hooks",
        Purpose::Command => "the /rollback command",
        Purpose::Instructions => "what the agent should know",
        Purpose::Config => "turns checkpoints on",
    }
}

fn status(args: &HooksStatusArgs) -> Result<u8, Failure> {
    let host = host(None)?;
    let agents = args.agent.map_or_else(Agent::all, |agent| vec![agent]);
    let mut all = Vec::new();
    for agent in agents {
        // Without a named agent, those that cannot have hooks in this scope are skipped.
        match install::status(&request(agent, args.scope, &host)?) {
            Err(error) if args.agent.is_none() && error.is_no_place() => {}
            status => all.push(status?),
        }
    }
    let value = || all.iter().map(json::status).collect::<Vec<_>>();
    message::answer_either(args.json, value, || all.iter().map(status_line).collect::<Vec<_>>().join("\n"))?;
    let is_broken = all.iter().any(|status| matches!(status.state, install::HookState::Broken { .. }));
    Ok(if is_broken { NOT_DONE } else { 0 })
}

/// Status of every agent in the user's and the project's settings, and problems reading them.
pub(super) fn everywhere(host: &Host) -> (Vec<AgentStatus>, Vec<String>) {
    let (mut all, mut problems) = (Vec::new(), Vec::new());
    for scope in [ScopeKind::User, ScopeKind::Project] {
        for agent in Agent::all() {
            match request(agent, ScopeArgs { scope }, host).map(|request| install::status(&request)) {
                Ok(Ok(status)) => all.push(status),
                Ok(Err(error)) if error.is_no_place() => {}
                Ok(Err(error)) => problems.push(error.to_string()),
                // The same failure for all agents.
                Err(failure) => return (all, vec![failure.sentence().to_owned()]),
            }
        }
    }
    (all, problems)
}

fn status_line(status: &AgentStatus) -> String {
    let first = format!("{:<12} {:<14} {}", status.agent.name(), status.state.name(), shown(&status.file));
    let binary = status.binary.as_ref().map(|(binary, _)| format!("calls {}", shown(binary)));
    let below = binary.into_iter().chain(status.state.why().map(escape));
    std::iter::once(first).chain(below.map(|text| format!("{:27} {text}", ""))).collect::<Vec<_>>().join("\n")
}

/// Runs `/rollback`. All output goes to stdout and it never fails, since on failure an agent shows nothing else.
fn typed_rollback(typed: Option<&str>) -> Result<u8, Failure> {
    let mut read = String::new();
    if typed.is_none() {
        // Input that is not text names no checkpoint.
        let _ = std::io::stdin().lock().take(TYPED).read_to_string(&mut read);
    }
    message::answer(&rollback_said(typed.unwrap_or(&read)))
}

/// Output of `/rollback` with these arguments.
pub(super) fn rollback_said(typed: &str) -> String {
    let said = match slash_command::arguments(typed) {
        Ok(arguments) => run_self(&arguments),
        Err(why) => why.to_string(),
    };
    slash_command::in_its_words(said.trim_end())
}

fn run_self(arguments: &[String]) -> String {
    let output = std::env::current_exe()
        .and_then(|nono| Command::new(nono).args(arguments).stdin(Stdio::null()).output());
    match output {
        Ok(output) => {
            [output.stdout, output.stderr].iter().map(|text| String::from_utf8_lossy(text)).collect()
        }
        Err(error) => format!("cannot run nono: {error}"),
    }
}
