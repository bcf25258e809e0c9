//! Arguments of `hook`, for its help only: calls by agents are handled before the command line is parsed.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    /// claude-code, codex, gemini, opencode or hermes
    pub(crate) agent: String,
    /// The event, as the agent calls it
    pub(crate) event: String,
}
