//! Who a checkpoint was taken for.

use serde::{Deserialize, Serialize};

/// Where a checkpoint comes from, as far as the agent said. All of it is the agent's word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// `claude-code`, `codex`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The agent's own id of the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The turn or message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The first words of what the person said in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The nono session around it (`nono run`), set by the supervisor and never by the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// What agents say is kept up to this length, in bytes.
const LONGEST: usize = 500;

/// The beginning of a text, where it is long.
pub(crate) fn bounded(text: &str) -> String {
    let fits = |(at, char): (usize, char)| at + char.len_utf8() <= LONGEST;
    text.char_indices().take_while(|at| fits(*at)).map(|(_, char)| char).collect()
}

impl Origin {
    /// With everything in it of a length that can be kept.
    pub(crate) fn bounded(&self) -> Origin {
        let short = |text: &Option<String>| text.as_deref().map(bounded);
        Origin {
            agent: short(&self.agent),
            session: short(&self.session),
            turn: short(&self.turn),
            prompt: short(&self.prompt),
            tool: short(&self.tool),
            call: short(&self.call),
            run: short(&self.run),
        }
    }
}
