//! Arguments of `ps`, `inspect`, `stop` and `request`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use nono::AccessMode;

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// A running session: its id, the beginning of one, its name, or `last`
    #[arg(value_name = "ID")]
    pub(crate) session: String,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// A running session: its id, the beginning of one, its name, or `last`
    #[arg(value_name = "ID")]
    pub(crate) session: String,
    /// Print which session would be stopped, and stop nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("wanted").required(true).args(["read", "write", "allow"])))]
pub(crate) struct RequestArgs {
    /// Ask to read this file or folder
    #[arg(short, long, value_name = "PATH")]
    read: Option<PathBuf>,
    /// Ask to write it
    #[arg(short, long, value_name = "PATH")]
    write: Option<PathBuf>,
    /// Ask to read and write it
    #[arg(short, long, value_name = "PATH")]
    allow: Option<PathBuf>,
    /// Reason, in a sentence; shown with the question
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Answer as JSON, and do nothing with what was granted
    #[arg(long, conflicts_with = "command")]
    pub(crate) json: bool,
    /// A command that gets what was granted as descriptor 3
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl RequestArgs {
    /// Requested path and access.
    pub(crate) fn wanted(&self) -> Option<(&Path, AccessMode)> {
        let read = self.read.as_deref().map(|path| (path, AccessMode::Read));
        let write = self.write.as_deref().map(|path| (path, AccessMode::Write));
        read.or(write).or_else(|| self.allow.as_deref().map(|path| (path, AccessMode::ReadWrite)))
    }
}
