//! The grammar of `hook`, for its help: agents are answered before any of it is parsed.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    /// claude-code, codex, gemini, opencode or hermes
    pub(crate) agent: String,
    /// The event, as the agent calls it
    pub(crate) event: String,
}
