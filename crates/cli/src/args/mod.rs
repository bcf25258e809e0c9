//! Grammar of the command line. Help texts are part of the product: each command has an example.

mod agent;
mod asking;
mod audit;
mod auditing;
mod checkpoints;
mod control;
mod directory;
mod hooks;
mod learn;
mod network;
mod parse;
mod rollback;
mod run;
mod tracking;
mod values;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

pub(crate) use agent::AgentArgs;
pub(crate) use asking::{Approver, AskArgs};
pub(crate) use audit::*;
pub(crate) use checkpoints::*;
pub(crate) use control::*;
pub(crate) use directory::*;
pub(crate) use hooks::*;
pub(crate) use learn::LearnArgs;
pub(crate) use parse::parse;
pub(crate) use rollback::*;
pub(crate) use run::*;

use crate::failure::USAGE;

/// Run an AI agent, or any command, in a sandbox that the kernel enforces.
#[derive(Debug, Parser)]
#[command(name = "nono", version, about, arg_required_else_help = true)]
#[command(after_help = after_help("nono"))]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command in a sandbox, with a supervisor outside it
    #[command(after_help = after_help("run"))]
    Run(Box<RunArgs>),
    /// Start your shell in a sandbox
    #[command(after_help = after_help("shell"))]
    Shell(Box<ShellArgs>),
    /// Start Claude Code in a sandbox, with undo
    #[command(disable_help_flag = true, after_help = after_help("claude"))]
    Claude(AgentArgs),
    /// Start Codex in a sandbox, with undo
    #[command(disable_help_flag = true, after_help = after_help("codex"))]
    Codex(AgentArgs),
    /// Start Gemini CLI in a sandbox, with undo
    #[command(disable_help_flag = true, after_help = after_help("gemini"))]
    Gemini(AgentArgs),
    /// Start OpenCode in a sandbox, with undo
    #[command(disable_help_flag = true, after_help = after_help("opencode"))]
    Opencode(AgentArgs),
    /// Start Qwen Code in a sandbox, with undo
    #[command(disable_help_flag = true, after_help = after_help("qwen"))]
    Qwen(AgentArgs),
    /// Start Hermes in a sandbox, with undo
    #[command(disable_help_flag = true, after_help = after_help("hermes"))]
    Hermes(AgentArgs),
    /// Start aider in a sandbox, with undo
    #[command(disable_help_flag = true, after_help = after_help("aider"))]
    Aider(AgentArgs),
    /// Confine this process and become the command: no supervisor, smallest surface
    #[command(after_help = after_help("wrap"))]
    Wrap(Box<WrapArgs>),
    /// Look at what sessions changed, put it back, check and remove them
    #[command(subcommand, after_help = after_help("rollback"))]
    Rollback(RollbackCommand),
    /// Undo what the last session in this directory did: shows the plan, and asks
    #[command(after_help = after_help("undo"))]
    Undo(UndoArgs),
    /// Take the last undo or restore back
    #[command(after_help = after_help("redo"))]
    Redo(ConsentArgs),
    /// List what agents did here, turn by turn: the request, the calls made, the files changed
    #[command(after_help = after_help("turns"))]
    Turns(TurnsArgs),
    /// Show what is protected, what runs and what can be undone in this directory
    #[command(after_help = after_help("status"))]
    Status(JsonArg),
    /// Show what the last session in this directory changed; without one, what changed since the newest checkpoint
    #[command(after_help = after_help("diff"))]
    Diff(DiffHereArgs),
    /// List every version of a file, and which turn, command or session made it
    #[command(after_help = after_help("log"))]
    Log(LogArgs),
    /// Print a file as it was: at a checkpoint, before a session, or in a version of `nono log`
    #[command(after_help = after_help("cat"))]
    Cat(CatArgs),
    /// List, compare and restore earlier states of a project, kept while agents work on it
    #[command(after_help = after_help("checkpoints"))]
    Checkpoints(Box<CheckpointsArgs>),
    /// Called by agents before and after their tools: reads the agent's JSON on stdin, answers in its format
    #[command(after_help = after_help("hook"))]
    Hook {
        /// claude-code, codex, gemini, opencode or hermes
        agent: String,
        /// The event, as the agent calls it
        event: String,
    },
    /// Put nono's hooks into a coding agent: a checkpoint before each risky step, and /rollback inside the agent
    #[command(subcommand, after_help = after_help("hooks"))]
    Hooks(HooksCommand),
    /// Look at what sessions did, and check that the records were not changed
    #[command(subcommand, after_help = after_help("audit"))]
    Audit(AuditCommand),
    /// Explain whether a path or a host is open, by which rule, and what would open it
    #[command(after_help = after_help("why"))]
    Why(Box<WhyArgs>),
    /// List the running sessions
    #[command(after_help = after_help("ps"))]
    Ps(JsonArg),
    /// Show what a running session does: its denials, grants and questions
    #[command(after_help = after_help("inspect"))]
    Inspect(InspectArgs),
    /// End a running session and everything it started
    #[command(after_help = after_help("stop"))]
    Stop(StopArgs),
    /// From inside a sandbox: ask for a file or a folder that was not granted
    #[command(after_help = after_help("request"))]
    Request(RequestArgs),
    /// Run a command, watch what it does, and propose the smallest profile for it
    #[command(after_help = after_help("learn"))]
    Learn(Box<LearnArgs>),
    /// Serve checkpoints, why and request to an agent, as tools of the Model Context Protocol on stdin and stdout
    #[command(after_help = after_help("mcp"))]
    Mcp,
    /// List, show, compare, check and create profiles
    #[command(subcommand, after_help = after_help("profile"))]
    Profile(ProfileCommand),
    /// Show what this machine can enforce, and try it
    #[command(after_help = after_help("setup"))]
    Setup(SetupArgs),
    /// Print a completion script for a shell
    #[command(after_help = after_help("completion"))]
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print a manual page
    #[command(after_help = after_help("man"))]
    Man(ManArgs),
}

/// Text below the help of a command, from `after_help.txt`: examples, and what else one has to know.
fn after_help(command: &str) -> &'static str {
    let mut all = include_str!("after_help.txt").split("\n== ").filter_map(|part| part.split_once('\n'));
    all.find(|(of, _)| *of == command).map_or("", |(_, text)| text.trim_end())
}

/// Flag of commands that have no other.
#[derive(Debug, Args)]
pub(crate) struct JsonArg {
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The first flag of a list that is given.
pub(crate) fn first_given<const N: usize>(flags: [(&'static str, bool); N]) -> Option<&'static str> {
    flags.into_iter().find_map(|(flag, given)| given.then_some(flag))
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("question").required(true).args(["path", "host"])))]
pub(crate) struct WhyArgs {
    /// Ask about the sandbox this command runs in
    #[arg(long = "self", conflicts_with_all = ["allow", "read", "write", "profile"])]
    pub(crate) inside: bool,
    /// The path to ask about
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
    /// What would be done with the path
    #[arg(long, value_enum, default_value_t = Operation::Read, requires = "path")]
    pub(crate) op: Operation,
    /// The host to ask about
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// The port on that host
    #[arg(long, value_name = "PORT", requires = "host", conflicts_with = "path")]
    pub(crate) port: Option<u16>,
    /// Also show which rule of this file would answer: policy:FILE
    #[arg(long, value_name = "WHO", value_parser = asking::approver, requires = "path", conflicts_with = "inside")]
    pub(crate) approve: Option<Approver>,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Exit with 1 when the answer is DENIED
    #[arg(long)]
    pub(crate) exit_code: bool,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Operation {
    Read,
    Write,
    Readwrite,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// The profiles there are, built in and your own
    #[command(after_help = after_help("profile list"))]
    List {
        /// Answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// A profile with everything it inherits
    #[command(after_help = after_help("profile show"))]
    Show {
        /// A name, or a file
        profile: String,
        /// Answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// What differs between two profiles
    #[command(after_help = after_help("profile diff"))]
    Diff {
        /// A name, or a file
        from: String,
        /// A name, or a file
        to: String,
        /// Answer as JSON
        #[arg(long)]
        json: bool,
        /// Exit with 1 when they differ
        #[arg(long)]
        exit_code: bool,
    },
    /// Check profile files
    #[command(after_help = after_help("profile validate"))]
    Validate {
        /// The files to check
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Start a new profile of your own
    #[command(after_help = after_help("profile init"))]
    Init {
        /// The name of the new profile
        name: String,
        /// The profile to build on
        #[arg(long, default_value = "default")]
        extends: String,
        /// Print it instead of writing the file
        #[arg(long)]
        dry_run: bool,
    },
    /// Agree to the profile that a project carries (.nono/profile.json), after it was shown
    #[command(after_help = after_help("profile trust"))]
    Trust(TrustArgs),
    /// The JSON schema of a profile
    #[command(after_help = after_help("profile schema"))]
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The project, or a folder in it
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Only show what it opens and closes
    #[arg(long, conflicts_with = "forget")]
    pub(crate) show: bool,
    /// Forget your earlier answer
    #[arg(long)]
    pub(crate) forget: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// Only look; write nothing
    #[arg(long)]
    pub(crate) check_only: bool,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The command to describe; without it, nono itself
    pub(crate) command: Option<String>,
    /// Write the pages of all commands into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// Prints help and version to stdout; everything else is a usage error with the `[nono]` prefix.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // Stdout may be closed: there is no way left to report that.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(USAGE)
        }
        _ => {
            crate::message::line(error.to_string().trim_end());
            ExitCode::from(USAGE)
        }
    }
}

#[cfg(test)]
mod tests;
