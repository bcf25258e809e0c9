//! Origin of a checkpoint.

use serde::{Deserialize, Serialize};

/// Origin of a checkpoint, as reported by the agent. Untrusted, except for `run`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// `claude-code`, `codex`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Id of the conversation, assigned by the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Id of the turn or message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// First words of the user's prompt.
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

/// Maximum length of an agent's text, in bytes.
const LONGEST: usize = 500;

/// Beginning of a text that is too long.
pub(crate) fn bounded(text: &str) -> String {
    let fits = |(at, char): (usize, char)| at + char.len_utf8() <= LONGEST;
    text.char_indices().take_while(|at| fits(*at)).map(|(_, char)| char).collect()
}

impl Origin {
    /// Origin with all texts cut to the maximum length.
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
