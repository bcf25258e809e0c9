//! Hooks of coding agents: what agents report, and what they are answered.
//!
//! Each hook of an agent is a process of its own: its payload becomes [`HookPayload`] (`agents`), `run` acts on it, and the
//! [`HookReply`] goes back in the agent's own format. Errors are part of the reply, for the user to see, and never block a
//! tool. One thing does: a call that removes nono's own history makes the agent ask its user, or is refused.

pub mod agents;
pub mod backend;
pub mod declined;
pub mod install;
pub mod json;
pub mod run;
pub mod slash_command;
pub mod upkeep;

use std::path::PathBuf;

use nono_checkpoint::Origin;
use nono_checkpoint::trigger::ToolCall;

/// Payload of a hook, independent of the agent's format. All of it comes from the agent: hostile text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookPayload {
    /// Agent, conversation, turn or message, tool and call, as far as the agent reports them.
    pub origin: Origin,
    /// Working directory of the agent; the hook's own if it does not report one.
    pub cwd: Option<PathBuf>,
    pub event: HookEvent,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HookEvent {
    SessionStart,
    /// The user sent a prompt: a turn begins, with the id in the origin if the agent numbers its turns.
    Prompt {
        /// Beginning of the prompt; empty if the agent does not report it.
        text: String,
    },
    BeforeTool {
        call: ToolCall,
    },
    AfterTool {
        call: ToolCall,
        /// Whether the tool failed; `None` if the agent does not report it.
        failed: Option<bool>,
        /// End of the tool's output (see [`OUTPUT`]).
        output: String,
    },
    /// The agent finished its answer.
    Stop,
    SessionEnd,
    /// Not acted on.
    #[default]
    Unknown,
}

/// Maximum number of bytes of a tool's output that are examined.
pub const OUTPUT: usize = 64 << 10;

/// Answer to the agent. Parts for which the agent's format has no place are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookReply {
    /// Text for the model.
    pub context: Option<String>,
    /// Text for the user, such as missing protection.
    pub message: Option<String>,
    /// Text for the user, instead of the model's answer; the model does not get the prompt.
    pub answer: Option<String>,
    /// Reason to ask the user before this tool runs.
    pub ask: Option<String>,
}

impl HookReply {
    /// Reply with a message for the user only.
    pub fn message(text: impl Into<String>) -> HookReply {
        HookReply { message: Some(text.into()), ..HookReply::default() }
    }
}

/// Quote a word for a POSIX shell: unchanged if that is safe, else in single quotes.
pub fn quote(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=@%+,".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
