//! Arguments of `learn`.

use std::ffi::OsString;

use clap::Args;

use super::CommonArgs;

#[derive(Debug, Args)]
pub(crate) struct LearnArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Let it do everything but reach protected paths, to see all that it would do
    #[arg(long, help_heading = "Learning")]
    pub(crate) allow_all: bool,
    /// Save the proposal as a profile of this name, instead of printing it
    #[arg(long, value_name = "NAME", help_heading = "Learning")]
    pub(crate) save: Option<String>,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
