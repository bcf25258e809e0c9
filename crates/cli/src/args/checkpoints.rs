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
    #[command(after_help = super::after_help("checkpoints status"))]
    Status(JsonArg),
    /// The checkpoints of a project, newest first, each with what the step after it changed
    #[command(after_help = super::after_help("checkpoints list"))]
    List(CheckpointListArgs),
    /// Take a checkpoint now
    #[command(after_help = super::after_help("checkpoints create"))]
    Create(CreateArgs),
    /// What changed since a checkpoint
    #[command(after_help = super::after_help("checkpoints diff"))]
    Diff(DiffArgs),
    /// Put back what was there at a checkpoint, or before a turn of an agent
    #[command(after_help = super::after_help("checkpoints restore"))]
    Restore(CheckpointRestoreArgs),
    /// Take the last restore of a project back
    #[command(after_help = super::after_help("checkpoints undo"))]
    Undo(CheckpointUndoArgs),
    /// Give a checkpoint a name; a named one is never pruned
    #[command(after_help = super::after_help("checkpoints name"))]
    Name(NameArgs),
    /// Keep a checkpoint: it is never removed to make room
    #[command(after_help = super::after_help("checkpoints pin"))]
    Pin(CheckpointArg),
    /// Let a pinned checkpoint be removed again when room is needed
    #[command(after_help = super::after_help("checkpoints unpin"))]
    Unpin(CheckpointArg),
    /// Remove checkpoints that are old, over the size limit, or of projects that are gone
    #[command(after_help = super::after_help("checkpoints prune"))]
    Prune(PruneArgs),
    /// Take over the checkpoints of another tool; what it has is left alone
    #[command(after_help = super::after_help("checkpoints import"))]
    Import(ImportArgs),
    /// Remove all checkpoints of all projects, or of one
    #[command(after_help = super::after_help("checkpoints clear"))]
    Clear(ClearArgs),
    /// Remove archives of superseded formats
    #[command(after_help = super::after_help("checkpoints clear-legacy"))]
    ClearLegacy(ConsentArgs),
    /// Check that everything that checkpoints need is there and unaltered
    #[command(after_help = super::after_help("checkpoints verify"))]
    Verify(CheckpointVerifyArgs),
    /// Remove a path and all its stored contents from every checkpoint and every session
    #[command(after_help = super::after_help("checkpoints forget"))]
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
