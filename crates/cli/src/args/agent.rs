//! Arguments of the commands that start an agent (`nono claude`, …).

use std::ffi::OsString;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// Show again what the agent is granted, and ask
    #[arg(long)]
    pub(crate) reset: bool,
    /// Accept what is granted without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Leave out the profile that the project carries, what it closes included
    #[arg(long)]
    pub(crate) no_project_profile: bool,
    /// Arguments for the agent: the first one that is not an option of nono, and everything after it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub(crate) arguments: Vec<OsString>,
}
