//! Commands, one file each, and their dispatch.

mod agent;
mod approval_notices;
mod audit;
mod checkpoints;
mod completion_and_man;
mod confirm;
mod control;
mod diff;
mod diff_output;
mod dry_run;
mod file_log;
mod first_use;
pub(crate) mod hook;
mod hooks;
mod interrupted;
mod learn;
mod links;
mod mcp;
pub(crate) mod open_url;
mod perform;
mod profile;
mod project_profile;
pub(crate) mod proxy;
mod removal;
mod request;
mod rollback;
pub(crate) mod rollback_notices;
mod run;
mod setup;
mod silent_hooks;
mod status;
mod turns;
mod undo;
pub(crate) mod upkeep;
pub(crate) mod webhook;
mod why;
mod why_rules;

use crate::args::Command;
use crate::failure::Failure;

pub(crate) fn dispatch(command: Command) -> Result<u8, Failure> {
    if is_about_the_project(&command) {
        interrupted::end_here()?;
    }
    match command {
        Command::Run(args) => run::run(*args),
        Command::Shell(args) => run::shell(&args),
        Command::Wrap(args) => run::wrap(*args),
        Command::Claude(args) => agent::start("claude", args),
        Command::Codex(args) => agent::start("codex", args),
        Command::Gemini(args) => agent::start("gemini", args),
        Command::Opencode(args) => agent::start("opencode", args),
        Command::Qwen(args) => agent::start("qwen", args),
        Command::Hermes(args) => agent::start("hermes", args),
        Command::Aider(args) => agent::start("aider", args),
        Command::Rollback(command) => rollback::rollback(&command),
        Command::Checkpoints(args) => checkpoints::checkpoints(*args),
        // For its help only: calls by agents are handled before the command line is parsed.
        Command::Hook { agent, event } => {
            hook::hook(&[agent.into(), event.into()]);
            Ok(0)
        }
        Command::Undo(args) => undo::undo(&args),
        Command::Redo(args) => undo::redo(args),
        Command::Log(args) => file_log::log(&args),
        Command::Cat(args) => file_log::cat(&args),
        Command::Turns(args) => turns::turns(&args),
        Command::Status(args) => status::status(&args),
        Command::Diff(args) => diff::diff(args),
        Command::Hooks(command) => hooks::hooks(&command),
        Command::Audit(command) => audit::audit(&command),
        Command::Why(args) => why::why(&args),
        Command::Ps(args) => control::ps(&args),
        Command::Inspect(args) => control::inspect(&args),
        Command::Stop(args) => control::stop(&args),
        Command::Request(args) => request::request(&args),
        Command::Learn(args) => learn::learn(*args),
        Command::Mcp => mcp::mcp(),
        Command::Profile(command) => profile::profile(command),
        Command::Setup(args) => setup::setup(&args),
        Command::Completion { shell } => completion_and_man::completion(shell),
        Command::Man(args) => completion_and_man::man(&args),
    }
}

/// Whether a command shows, changes or runs something in the project: then killed sessions there are ended first.
fn is_about_the_project(command: &Command) -> bool {
    !matches!(
        command,
        Command::Hook { .. }
            | Command::Hooks(_)
            | Command::Audit(_)
            | Command::Why(_)
            | Command::Ps(_)
            | Command::Inspect(_)
            | Command::Stop(_)
            | Command::Request(_)
            | Command::Mcp
            | Command::Profile(_)
            | Command::Setup(_)
            | Command::Completion { .. }
            | Command::Man(_)
    )
}
