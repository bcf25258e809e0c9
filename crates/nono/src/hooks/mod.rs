//! What coding agents tell through their hooks, and what they hear.
//!
//! Each hook of an agent is a process of its own: its payload becomes [`Told`] (`agents`), `run` does what has to be
//! done about it, and the [`Reply`] goes back in the agent's own format. Whatever goes wrong is part of the reply, for the
//! person to see, and never blocks a tool. One thing does: a call that removes nono's own history, where the agent can ask
//! its person or be refused it.

pub mod agents;
pub mod backend;
pub mod declined;
pub mod denial;
pub mod install;
pub mod json;
pub mod run;
pub mod slash;
pub mod upkeep;

use std::path::PathBuf;

use nono_checkpoint::Origin;
use nono_checkpoint::trigger::Call;

/// A hook's payload, in the words of no agent in particular. All of it is the agent's word: hostile text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Agent, conversation, turn or message, tool and call: as far as the agent says them.
    pub origin: Origin,
    /// Where the agent works; the hook's own working directory if it does not say.
    pub cwd: Option<PathBuf>,
    pub event: Event,
}

/// What happens at the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Event {
    SessionStart,
    /// A person spoke: a turn begins, with the id in the origin if the agent gives turns one.
    Prompt {
        /// What they said, its beginning if it is long; empty where the agent does not tell.
        text: String,
    },
    BeforeTool {
        call: Call,
    },
    AfterTool {
        call: Call,
        /// Whether the tool failed; `None` where the agent does not tell.
        failed: Option<bool>,
        /// What the tool printed or answered, its end if it is long (see [`OUTPUT`]).
        output: String,
    },
    /// The agent finished its answer.
    Stop,
    SessionEnd,
    /// Nothing is done about it.
    #[default]
    Unknown,
}

/// As much of a tool's output as is looked at, in bytes.
pub const OUTPUT: usize = 64 << 10;

/// What the agent hears. An agent's format that has no place for one of them leaves it out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// For the model.
    pub context: Option<String>,
    /// For the person: a protection that is missing is visible.
    pub message: Option<String>,
    /// For the person, instead of what the model would say to their prompt, which it does not get.
    pub answer: Option<String>,
    /// Why the person is to be asked before this tool runs.
    pub ask: Option<String>,
}

impl Reply {
    pub fn is_empty(&self) -> bool {
        self.context.is_none() && self.message.is_none() && self.answer.is_none() && self.ask.is_none()
    }

    /// Nothing for the model, this for the person.
    pub fn message(text: impl Into<String>) -> Reply {
        Reply { message: Some(text.into()), ..Reply::default() }
    }
}

/// A word for a POSIX shell: as it is where that is safe, else in single quotes.
pub fn quote(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:=@%+,".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
