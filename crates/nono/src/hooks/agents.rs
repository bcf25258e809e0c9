//! The agents there are: how each one words its payloads, and how it wants to be answered.
//!
//! A payload is hostile text. It is never an error here: what is missing or of another shape is left out, and an event
//! that nobody knows is [`super::Event::Unknown`]. An answer never holds a decision, so it cannot block a tool.

mod claude;
mod gemini;
mod hermes;
mod opencode;
mod patch;
mod read;

#[cfg(test)]
mod tests;

use std::str::FromStr;

use serde_json::Value;

use super::{Reply, Told};

/// An agent that nono knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Agent {
    ClaudeCode,
    Codex,
    Gemini,
    Opencode,
    Hermes,
}

#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no agent that nono knows; these are: {all}", all = Agent::names())]
pub struct UnknownAgent(String);

impl Agent {
    pub const ALL: [Agent; 5] =
        [Agent::ClaudeCode, Agent::Codex, Agent::Gemini, Agent::Opencode, Agent::Hermes];

    /// As it is typed, and as it is written into checkpoints.
    pub fn name(self) -> &'static str {
        match self {
            Agent::ClaudeCode => "claude-code",
            Agent::Codex => "codex",
            Agent::Gemini => "gemini",
            Agent::Opencode => "opencode",
            Agent::Hermes => "hermes",
        }
    }

    /// As its makers call it.
    pub fn title(self) -> &'static str {
        match self {
            Agent::ClaudeCode => "Claude Code",
            Agent::Codex => "Codex",
            Agent::Gemini => "Gemini CLI",
            Agent::Opencode => "OpenCode",
            Agent::Hermes => "Hermes",
        }
    }

    fn names() -> String {
        Agent::ALL.map(Agent::name).join(", ")
    }
}

impl FromStr for Agent {
    type Err = UnknownAgent;

    fn from_str(text: &str) -> Result<Agent, UnknownAgent> {
        let found = Agent::ALL.into_iter().find(|agent| agent.name() == text);
        found.ok_or_else(|| UnknownAgent(text.to_owned()))
    }
}

/// What an agent's payload says. `event`: the event as the hook was called with it, for payloads that do not name theirs.
pub fn told(agent: &str, event: &str, payload: &Value) -> Told {
    let Ok(known) = agent.parse::<Agent>() else { return Told::default() };
    let event = read::text(payload, "hook_event_name").unwrap_or_else(|| event.to_owned());
    let mut told = match known {
        // The same events and fields, save for the tools.
        Agent::ClaudeCode | Agent::Codex => claude::told(known, &event, payload),
        Agent::Gemini => gemini::told(&event, payload),
        Agent::Opencode => opencode::told(&event, payload),
        Agent::Hermes => hermes::told(&event, payload),
    };
    told.origin.agent = Some(known.name().to_owned());
    told.origin.session = read::id(payload, "session_id");
    told
}

/// The reply as the agent reads it: JSON, `{}` where there is nothing to say. `event` as in [`told`].
pub fn answer(agent: &str, event: &str, reply: &Reply) -> String {
    let value = match agent.parse::<Agent>() {
        Ok(Agent::ClaudeCode | Agent::Codex) => claude::answer(event, reply, &claude::TAKES_CONTEXT),
        // A context before a tool has no place in Gemini's format.
        Ok(Agent::Gemini) => claude::answer(event, reply, &gemini::TAKES_CONTEXT),
        Ok(Agent::Opencode) => opencode::answer(reply),
        Ok(Agent::Hermes) => hermes::answer(event, reply),
        Err(_) => Value::Object(serde_json::Map::new()),
    };
    value.to_string()
}
