//! Arguments of `diff`, `status`, `turns`, `log` and `cat`, which work on the current directory.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::checkpoints::ProjectArg;

/// How differences are shown.
#[allow(clippy::struct_excessive_bools, reason = "each is a flag")]
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DiffLookArgs {
    /// Show how many lines changed in each file, and nothing else
    #[arg(long)]
    pub(crate) stat: bool,
    /// Show the differences in two columns
    #[arg(long)]
    pub(crate) side_by_side: bool,
    /// Show whole files around the differences
    #[arg(long)]
    pub(crate) full: bool,
    /// Exit with 1 when something differs
    #[arg(long)]
    pub(crate) exit_code: bool,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DiffHereArgs {
    /// Only these files, directories or globs
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<OsString>,
    #[command(flatten)]
    pub(crate) look: DiffLookArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TurnsArgs {
    /// Show one turn with its calls and files: its number in the list, its id or the beginning of one
    #[arg(value_name = "TURN")]
    pub(crate) turn: Option<String>,
    #[command(flatten)]
    pub(crate) project: ProjectArg,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// The file
    #[arg(value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CatArgs {
    /// The version and the file: ID is a checkpoint, a session (as it was before it) or a version in `nono log FILE`
    #[arg(value_name = "ID:FILE")]
    pub(crate) version: OsString,
}
