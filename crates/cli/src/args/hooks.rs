//! Arguments of `hooks`.

use clap::{Args, Subcommand, ValueEnum};
use nono::hooks::agents::Agent;

use super::rollback::ConsentArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    /// Install nono's hooks in an agent, so that a checkpoint exists before its changes
    #[command(after_help = super::after_help("hooks install"))]
    Install(HooksChangeArgs),
    /// Which agents have the hooks, and whether they work
    #[command(after_help = super::after_help("hooks status"))]
    Status(HooksStatusArgs),
    /// Take the hooks out again: the files become what they were
    #[command(after_help = super::after_help("hooks remove"))]
    Remove(HooksChangeArgs),
    /// Run by /rollback in an agent, with the text typed after it
    #[command(hide = true)]
    Slash {
        /// The text; read from stdin if it is not given
        #[arg(value_name = "TEXT", allow_hyphen_values = true)]
        typed: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct HooksChangeArgs {
    /// Which agent
    #[arg(value_name = "AGENT", value_parser = agent())]
    pub(crate) agent: Agent,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    #[command(flatten)]
    pub(crate) consent: ConsentArgs,
}

#[derive(Debug, Args)]
pub(crate) struct HooksStatusArgs {
    /// Which agent; all of them if none is given
    #[arg(value_name = "AGENT", value_parser = agent())]
    pub(crate) agent: Option<Agent>,
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// Answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ScopeArgs {
    /// Whose settings: yours, or those of the project in this directory
    #[arg(long, value_enum, default_value_t = ScopeKind::User)]
    pub(crate) scope: ScopeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeKind {
    User,
    Project,
}

fn agent() -> impl clap::builder::TypedValueParser<Value = Agent> {
    use clap::builder::TypedValueParser;
    let names = Agent::all().into_iter().map(|agent| {
        let name = clap::builder::PossibleValue::new(agent.name()).help(agent.title());
        if agent.program() == agent.name() { name } else { name.alias(agent.program()) }
    });
    clap::builder::PossibleValuesParser::new(names).try_map(|name| name.parse::<Agent>())
}
