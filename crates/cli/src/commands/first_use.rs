//! Offer to install an agent's hooks, at its first run with a profile that names it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use nono::hooks::agents::Agent;
use nono::hooks::declined;
use nono::hooks::install::{self, HookState};
use nono::session::Host;
use nono::{HookInstall, MergedProfile};

use super::hooks;
use crate::failure::Failure;
use crate::message;

/// Asks on a terminal, unless it was declined before. Only an invalid profile stops the run.
pub(super) fn offer(
    profile: &MergedProfile,
    command: &[OsString],
    host: &Host,
    silent: bool,
) -> Result<(), Failure> {
    if host.nested {
        return Ok(());
    }
    for (name, section) in &profile.hooks {
        let agent: Agent =
            name.parse().map_err(|error| Failure::new(format!("hooks in the profile: {error}")))?;
        let wanted = section.install == HookInstall::Ask && runs(agent, command);
        if !wanted || declined::is_declined(&host.context.state_dir, agent) {
            continue;
        }
        if let Err(failure) = offer_one(agent, host, silent) {
            // Not fatal: the command runs without hooks.
            let why = failure.sentence();
            message::line(&format!("warning: cannot install the hooks of {}: {why}", agent.title()));
        }
    }
    Ok(())
}

/// Whether the command is this agent, judged by its name.
fn runs(agent: Agent, command: &[OsString]) -> bool {
    let name = command.first().and_then(|word| Path::new(word).file_name());
    name == Some(OsStr::new(agent.program()))
}

fn offer_one(agent: Agent, host: &Host, silent: bool) -> Result<(), Failure> {
    let request = hooks::for_user(agent, host)?;
    let status = install::status(&request)?;
    if status.state == HookState::Installed {
        return Ok(());
    }
    let (title, name) = (agent.title(), agent.name());
    if !message::can_ask() {
        if !silent {
            let state = status.state.name();
            message::line(&format!(
                "hint: the hooks of {title} are {state}; `nono hooks install {name}` adds checkpoints and /rollback"
            ));
        }
        return Ok(());
    }
    let plan = install::plan_install(&request)?;
    message::line(&hooks::text(&plan, "install"));
    let question = format!("Install nono's hooks, so that every turn of {title} can be undone?");
    if !message::confirm(&question) {
        declined::decline(&host.context.state_dir, agent).map_err(|error| Failure::new(error.to_string()))?;
        message::line(&format!(
            "you will not be asked again; `nono hooks install {name}` installs them any time"
        ));
        return Ok(());
    }
    hooks::carry_out(&plan, "install")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_known_by_its_name() {
        let runs = |agent: &str, word: &str| runs(agent.parse().unwrap(), &[word.into(), "-p".into()]);
        assert!(runs("claude-code", "claude") && runs("claude-code", "/opt/x/claude"));
        assert!(!runs("claude-code", "claude-code") && !runs("claude-code", "bash"));
        assert!(runs("codex", "./codex") && !runs("codex", "claude"));
    }
}
