//! The words that start an agent.

use std::ffi::OsString;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    /// Show again what it is given, and ask
    #[arg(long)]
    pub(crate) reset: bool,
    /// Agree without being asked
    #[arg(long)]
    pub(crate) yes: bool,
    /// Leave out the profile that the project carries, what it closes included
    #[arg(long)]
    pub(crate) no_project_profile: bool,
    /// Arguments of the agent; everything from the first that is not one of the above
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    pub(crate) arguments: Vec<OsString>,
}
