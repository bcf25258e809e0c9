//! Grammar of the command line. Help texts are part of the product: each command has an example.

mod agent;
mod asking;
mod audit;
mod auditing;
mod checkpoints;
mod control;
mod directory;
mod hook;
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
pub(crate) use hook::HookArgs;
pub(crate) use hooks::*;
pub(crate) use learn::LearnArgs;
pub(crate) use parse::parse;
pub(crate) use rollback::*;
pub(crate) use run::*;

use crate::failure::USAGE;

/// Run an AI agent, or any command, in a sandbox that the kernel enforces.
#[derive(Debug, Parser)]
#[command(name = "nono", version, about, arg_required_else_help = true)]
#[command(
    after_help = "Example:\n  nono run --allow . -- make test\n\nExit codes: the command's own; 128+n for signal n; \
126 not executable; 127 not found; 124 out of time; 125 the command was not run; 2 wrong usage."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command in a sandbox, with a supervisor outside it
    #[command(
        after_help = "Examples:\n  nono run --allow . -- make test\n  nono run -p rust-dev -- cargo build\n  \
nono run --read /data --max-time 10m -- python3 analyse.py"
    )]
    Run(Box<RunArgs>),
    /// Start your shell in a sandbox
    #[command(after_help = "Example:\n  nono shell --allow . --read ~/notes")]
    Shell(Box<ShellArgs>),
    /// Start Claude Code in a sandbox, with undo
    #[command(disable_help_flag = true, after_help = "Examples:\n  nono claude\n  nono claude --reset")]
    Claude(AgentArgs),
    /// Start Codex in a sandbox, with undo
    #[command(disable_help_flag = true, after_help = "Examples:\n  nono codex\n  nono codex --reset")]
    Codex(AgentArgs),
    /// Start Gemini CLI in a sandbox, with undo
    #[command(disable_help_flag = true, after_help = "Examples:\n  nono gemini\n  nono gemini --reset")]
    Gemini(AgentArgs),
    /// Start OpenCode in a sandbox, with undo
    #[command(disable_help_flag = true, after_help = "Examples:\n  nono opencode\n  nono opencode --reset")]
    Opencode(AgentArgs),
    /// Start Qwen Code in a sandbox, with undo
    #[command(disable_help_flag = true, after_help = "Examples:\n  nono qwen\n  nono qwen --reset")]
    Qwen(AgentArgs),
    /// Start Hermes in a sandbox, with undo
    #[command(disable_help_flag = true, after_help = "Examples:\n  nono hermes\n  nono hermes --reset")]
    Hermes(AgentArgs),
    /// Start aider in a sandbox, with undo
    #[command(disable_help_flag = true, after_help = "Examples:\n  nono aider\n  nono aider --reset")]
    Aider(AgentArgs),
    /// Confine this process and become the command: no supervisor, smallest surface
    #[command(after_help = "Example:\n  nono wrap --read /data -- wc -l /data/log.txt")]
    Wrap(Box<WrapArgs>),
    /// Look at what sessions changed, put it back, check and remove them
    #[command(
        after_help = "Examples:\n  nono rollback list\n  nono rollback show\n  nono rollback restore last"
    )]
    Rollback(RollbackArgs),
    /// Undo what the last session in this directory did: shows the plan, and asks
    #[command(
        after_help = "Examples:\n  nono undo\n  nono undo --dry-run\n  nono undo my-session --merge\n  nono undo --turn 2"
    )]
    Undo(UndoArgs),
    /// Take the last undo or restore back
    #[command(after_help = "Example:\n  nono redo")]
    Redo(ConsentArgs),
    /// List what agents did here, turn by turn: the request, the calls made, the files changed
    #[command(after_help = "Examples:\n  nono turns\n  nono turns 2\n  nono undo --turn 2\n\n\
A turn is what an agent does between two messages of a person. Numbers are counted from the newest each time; ids stay.")]
    Turns(TurnsArgs),
    /// Show what is protected, what runs and what can be undone in this directory
    #[command(after_help = "Examples:\n  nono status\n  nono status --json")]
    Status(JsonArg),
    /// Show what the last session in this directory changed; without one, what changed since the newest checkpoint
    #[command(after_help = "Examples:\n  nono diff\n  nono diff --stat src\n  nono diff | git apply -R\n\n\
Stderr names what is compared. Sessions that changed nothing are skipped. When stdout is not a terminal, the output \
is a patch. Exit codes: 0; with --exit-code 1 when something differs.")]
    Diff(DiffHereArgs),
    /// List every version of a file, and which turn, command or session made it
    #[command(after_help = "Examples:\n  nono log src/main.rs\n  nono log src/main.rs --json")]
    Log(LogArgs),
    /// Print a file as it was: at a checkpoint, before a session, or in a version of `nono log`
    #[command(after_help = "Examples:\n  nono cat 2:src/main.rs\n  nono cat 1f3a9c20:src/main.rs > old.rs")]
    Cat(CatArgs),
    /// List, compare and restore earlier states of a project, kept while agents work on it
    #[command(
        after_help = "Examples:\n  nono checkpoints\n  nono checkpoints list\n  nono checkpoints diff 1\n  \
nono checkpoints restore 1"
    )]
    Checkpoints(Box<CheckpointsArgs>),
    /// Called by agents before and after their tools: reads the agent's JSON on stdin, answers in its format
    #[command(
        after_help = "Example:\n  nono hook claude-code PreToolUse < payload.json\n\n`nono hooks install` writes it into an \
agent's settings. It blocks no tool but one that would remove nono's own history: whatever goes wrong is in the answer, and the exit \
code is 0."
    )]
    Hook(HookArgs),
    /// Put nono's hooks into a coding agent: a checkpoint before each risky step, and /rollback inside the agent
    #[command(
        after_help = "Examples:\n  nono hooks install claude-code\n  nono hooks status\n  nono hooks remove claude-code"
    )]
    Hooks(HooksArgs),
    /// Look at what sessions did, and check that the records were not changed
    #[command(
        after_help = "Examples:\n  nono audit list --since 2d\n  nono audit show last\n  nono audit verify"
    )]
    Audit(AuditArgs),
    /// Explain whether a path or a host is open, by which rule, and what would open it
    #[command(
        after_help = "Examples:\n  nono why --path ~/.ssh/id_ed25519\n  nono why -p claude-code --host example.org --port 443\n  \
nono why --self --path /etc/shadow"
    )]
    Why(Box<WhyArgs>),
    /// List the running sessions
    #[command(after_help = "Example:\n  nono ps --json")]
    Ps(JsonArg),
    /// Show what a running session does: its denials, grants and questions
    #[command(after_help = "Examples:\n  nono inspect last\n  nono inspect my-session --json")]
    Inspect(InspectArgs),
    /// End a running session and everything it started
    #[command(
        after_help = "Examples:\n  nono stop last\n  nono stop my-session --dry-run\n\nEverything gets SIGTERM first, and \
SIGKILL a second later. Exit codes: 0 it is being ended; 125 there is no such session, or it does not answer."
    )]
    Stop(StopArgs),
    /// From inside a sandbox: ask for a file or a folder that was not granted
    #[command(
        after_help = "Examples:\n  nono request --read ~/notes.txt --reason 'the task mentions it' > notes.txt\n  \
nono request --write /srv/report.txt --reason 'to leave the report' -- sh -c 'date >&3'\n\n\
What is granted is an open file, and it ends with the process that has it. So: with a command, the command runs with it \
as descriptor 3 (NONO_FD=3); without one, --read copies the file to stdout, as cat would, and the others only say what \
the answer was.\nExit codes: 0 granted (or the command's own); 1 denied; 125 not inside a sandbox, or no answer."
    )]
    Request(RequestArgs),
    /// Run a command, watch what it does, and propose the smallest profile for it
    #[command(after_help = "Examples:\n  nono learn -- ./build.sh > profile.json\n  \
nono learn --allow-all --rollback --save build -- ./build.sh\n  nono run -p build -- ./build.sh\n\n\
You are not asked, and only what the profile and the flags open is open, unless --allow-all is given. The proposal \
goes to stdout, and the command's stdout to stderr; with --save the command keeps its stdout. Exit \
codes: as `nono run`.")]
    Learn(Box<LearnArgs>),
    /// Serve checkpoints, why and request to an agent, as tools of the Model Context Protocol on stdin and stdout
    #[command(
        after_help = "Examples:\n  nono mcp\n  claude mcp add nono -- nono mcp\n\nA restore, and access to more, wait for the \
person: inside a sandbox the supervisor asks, outside the agent shows the plan and asks. Ends when stdin does."
    )]
    Mcp,
    /// List, show, compare, check and create profiles
    #[command(after_help = "Examples:\n  nono profile list\n  nono profile show rust-dev")]
    Profile(ProfileArgs),
    /// Show what this machine can enforce, and try it
    #[command(after_help = "Example:\n  nono setup --check-only")]
    Setup(SetupArgs),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  nono completion bash > ~/.local/share/bash-completion/completions/nono"
    )]
    Completion(CompletionArgs),
    /// Print a manual page
    #[command(after_help = "Examples:\n  nono man | man -l -\n  nono man --dir ./man")]
    Man(ManArgs),
}

/// Flag of commands that have no other.
#[derive(Debug, Args)]
pub(crate) struct JsonArg {
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The first flag of a list that is given.
fn first_given<const N: usize>(flags: [(&'static str, bool); N]) -> Option<&'static str> {
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

#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    #[command(subcommand)]
    pub(crate) command: ProfileCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// The profiles there are, built in and your own
    #[command(after_help = "Example:\n  nono profile list --json")]
    List {
        /// Answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// A profile with everything it inherits
    #[command(after_help = "Example:\n  nono profile show claude-code")]
    Show {
        /// A name, or a file
        profile: String,
        /// Answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// What differs between two profiles
    #[command(after_help = "Example:\n  nono profile diff default rust-dev")]
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
    #[command(after_help = "Example:\n  nono profile validate ./my-profile.json")]
    Validate {
        /// The files to check
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Start a new profile of your own
    #[command(after_help = "Example:\n  nono profile init my-agent --extends claude-code")]
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
    #[command(after_help = "Example:\n  nono profile trust --show")]
    Trust(TrustArgs),
    /// The JSON schema of a profile
    #[command(after_help = "Example:\n  nono profile schema > nono-profile.schema.json")]
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
pub(crate) struct CompletionArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
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
