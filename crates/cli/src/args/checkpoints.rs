//! Arguments of `checkpoints`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::directory::DiffLookArgs;
use super::rollback::{ConflictArgs, ConsentArgs};
use super::{JsonArg, values};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct CheckpointsArgs {
    #[command(flatten)]
    pub(crate) status: JsonArg,
    #[command(subcommand)]
    pub(crate) command: Option<CheckpointsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CheckpointsCommand {
    /// List the projects, and the space their checkpoints take
    #[command(after_help = "Examples:\n  nono checkpoints\n  nono checkpoints status --json")]
    Status(JsonArg),
    /// The checkpoints of a project, newest first, each with what the step after it changed
    #[command(
        after_help = "Examples:\n  nono checkpoints list\n  nono checkpoints list --path ~/project --json\n\n\
Ids are stable; numbers are counted from the newest each time. Outside any project this is `nono checkpoints status`."
    )]
    List(CheckpointListArgs),
    /// Take a checkpoint now
    #[command(
        after_help = "Examples:\n  nono checkpoints create\n  nono checkpoints create -m 'before the big move' ~/project"
    )]
    Create(CreateArgs),
    /// What changed since a checkpoint
    #[command(
        after_help = "Examples:\n  nono checkpoints diff 1\n  nono checkpoints diff a1b2c3d4 src/main.rs\n  \
nono checkpoints diff 1 | git apply -R\n\n\
Where it goes to a terminal: how much changed in each file, then the differences, paged. Elsewhere: a patch."
    )]
    Diff(DiffArgs),
    /// Put back what was there at a checkpoint, or before a turn of an agent
    #[command(
        after_help = "Examples:\n  nono checkpoints restore 1\n  nono checkpoints restore a1b2c3d4 src/main.rs --yes\n  \
nono checkpoints restore --turn msg_01 --dry-run\n\n\
What people changed after the agent's last write is kept, unless --merge or --force is given. A .git that is there is left \
alone.\nExit codes: 0 everything was restored; 1 something was kept or failed, or it was not confirmed."
    )]
    Restore(CheckpointRestoreArgs),
    /// Take the last restore of a project back
    #[command(after_help = "Examples:\n  nono checkpoints undo\n  nono checkpoints undo --dry-run")]
    Undo(CheckpointUndoArgs),
    /// Give a checkpoint a name; a named one is never pruned
    #[command(after_help = "Example:\n  nono checkpoints name 1 works")]
    Name(NameArgs),
    /// Keep a checkpoint: it is never removed to make room
    #[command(after_help = "Example:\n  nono checkpoints pin 1")]
    Pin(CheckpointArg),
    /// Let a pinned checkpoint be removed again when room is needed
    #[command(after_help = "Example:\n  nono checkpoints unpin 1")]
    Unpin(CheckpointArg),
    /// Remove checkpoints that are old, over the size limit, or of projects that are gone
    #[command(
        after_help = "Examples:\n  nono checkpoints prune --dry-run\n  nono checkpoints prune --retention-days 30 --yes\n\n\
A full sweep, whenever the last one was. Limits that are not given are those of [checkpoints] in config.toml. Named and \
pinned checkpoints stay, and the newest one of each project that is in use.\n\
Exit codes: 0 done; 1 it was not confirmed, or something could not be removed."
    )]
    Prune(PruneArgs),
    /// Take over the checkpoints of another tool; what it has is left alone
    #[command(after_help = "Example:\n  nono checkpoints import ~/.hermes/checkpoints\n\n\
Supported: Hermes. Checkpoints that were imported before are skipped.")]
    Import(ImportArgs),
    /// Remove all checkpoints of all projects, or of one
    #[command(
        after_help = "Examples:\n  nono checkpoints clear --dry-run\n  nono checkpoints clear --path ~/project\n\n\
Named and pinned ones too. Your files are not touched, and what sessions need is kept."
    )]
    Clear(ClearArgs),
    /// Remove archives of superseded formats
    #[command(
        after_help = "Examples:\n  nono checkpoints clear-legacy\n  nono checkpoints clear-legacy --dry-run"
    )]
    ClearLegacy(ConsentArgs),
    /// Check that everything that checkpoints need is there and unaltered
    #[command(
        after_help = "Examples:\n  nono checkpoints verify\n  nono checkpoints verify --path . --json\n\n\
Exit codes: 0 everything is as it was; 1 something is missing or altered."
    )]
    Verify(CheckpointVerifyArgs),
    /// Remove a path and all its stored contents from every checkpoint and every session
    #[command(
        after_help = "Examples:\n  nono checkpoints forget secrets.env --dry-run\n  nono checkpoints forget secrets.env --yes\n\n\
The file itself stays. It cannot be restored from any checkpoint or session after this, and this cannot be undone. \
Snapshots that are taken later have it again.\n\
Exit codes: 0 it is gone; 1 nothing had it, it was not confirmed, or something still has it: a session that runs, or \
the same bytes elsewhere."
    )]
    Forget(ForgetPathArgs),
}

/// Choice of a project.
#[derive(Debug, Args)]
pub(crate) struct ProjectArg {
    /// The project that this path is in; the one of the current directory if none is given
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckpointListArgs {
    #[command(flatten)]
    pub(crate) project: ProjectArg,
    /// Those of all projects
    #[arg(long, conflicts_with = "path")]
    pub(crate) all: bool,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// A path in the project; the current directory if none is given
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
    /// Why it is taken, as lists show it
    #[arg(short, long, value_name = "WHY", default_value = "by hand")]
    pub(crate) message: String,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Choice of a checkpoint.
#[derive(Debug, Args)]
pub(crate) struct CheckpointArg {
    /// A checkpoint: its number in the list, its id, the beginning of one, or its name
    #[arg(value_name = "N|ID")]
    pub(crate) checkpoint: String,
    #[command(flatten)]
    pub(crate) project: ProjectArg,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub(crate) checkpoint: CheckpointArg,
    /// Only these files or directories
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<OsString>,
    /// The paths are patterns: `*.rs`, `src/**`
    #[arg(long)]
    pub(crate) glob: bool,
    #[command(flatten)]
    pub(crate) look: DiffLookArgs,
    /// As on a terminal, also where there is none
    #[arg(long, hide = true)]
    pub(crate) for_reading: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckpointRestoreArgs {
    /// A checkpoint: its number in the list, its id, the beginning of one, or its name
    #[arg(value_name = "N|ID", required_unless_present = "turn")]
    pub(crate) checkpoint: Option<OsString>,
    /// Only these files or directories
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<OsString>,
    /// Go back to before this turn of an agent; then every argument is a path
    #[arg(long, value_name = "ID")]
    pub(crate) turn: Option<String>,
    /// The paths are patterns: `*.rs`, `src/**`
    #[arg(long)]
    pub(crate) glob: bool,
    /// Put back what is in .git, too
    #[arg(long)]
    pub(crate) with_git: bool,
    #[command(flatten)]
    pub(crate) project: ProjectArg,
    #[command(flatten)]
    pub(crate) conflicts: ConflictArgs,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CheckpointUndoArgs {
    #[command(flatten)]
    pub(crate) project: ProjectArg,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
}

#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    #[command(flatten)]
    pub(crate) checkpoint: CheckpointArg,
    /// The name; an empty one takes the name away
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Remove projects that were not touched for this many days
    #[arg(long, value_name = "DAYS", value_parser = values::number::<u32>)]
    pub(crate) retention_days: Option<u32>,
    /// Limit on the size of all checkpoints together, in MB
    #[arg(long, value_name = "MB", value_parser = values::megabytes)]
    pub(crate) max_size_mb: Option<u64>,
    /// Keep those of projects whose directory is gone
    #[arg(long)]
    pub(crate) keep_orphans: bool,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The folder of the other tool's checkpoints
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ClearArgs {
    /// Only those of the project that this path is in
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CheckpointVerifyArgs {
    /// Only the project that this path is in
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ForgetPathArgs {
    /// The file or directory
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
}
