//! Supported agents: how each one formats its payloads and expects its answers.
//!
//! The differences between them are data (`agents/data`, read by `adapter`). A payload is hostile text. It is never an
//! error here: missing or malformed parts are left out, and an unknown event is [`super::HookEvent::Unknown`]. An unknown
//! tool may write anything. An answer contains a decision about a tool only if the call would remove nono's own
//! history; no other call can be blocked.

pub(super) mod adapter;
mod read;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use nono_checkpoint::Origin;
use nono_checkpoint::trigger::ToolCall;
use serde_json::Value;

use super::{HookEvent, HookPayload, HookReply};
use adapter::{Adapter, EventKind, FailureSign, adapters};

/// An agent that nono supports.
#[derive(Clone, Copy)]
pub struct Agent(&'static Adapter);

#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a supported agent; supported are {all}", all = names())]
pub struct UnknownAgent(String);

impl Agent {
    pub fn all() -> Vec<Agent> {
        adapters().iter().map(Agent).collect()
    }

    /// Name on the command line and in checkpoints.
    pub fn name(self) -> &'static str {
        &self.0.name
    }

    /// Name that its makers use.
    pub fn title(self) -> &'static str {
        &self.0.title
    }

    /// Name of the program that is started.
    pub fn program(self) -> &'static str {
        &self.0.program
    }

    /// Address of its makers' documentation of hooks.
    pub fn documentation(self) -> &'static str {
        &self.0.documentation
    }

    pub(super) fn adapter(self) -> &'static Adapter {
        self.0
    }
}

fn names() -> String {
    adapters().iter().map(|adapter| adapter.name.as_str()).collect::<Vec<_>>().join(", ")
}

impl PartialEq for Agent {
    fn eq(&self, other: &Agent) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Agent {}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Agent {
    type Err = UnknownAgent;

    /// Parse an agent's name, or that of its program.
    fn from_str(text: &str) -> Result<Agent, UnknownAgent> {
        let found = adapters().iter().find(|adapter| adapter.name == text || adapter.program == text);
        found.map(Agent).ok_or_else(|| UnknownAgent(text.to_owned()))
    }
}

/// Parse an agent's payload. `event`: the event that the hook was called with, for payloads that do not name theirs.
pub fn told(agent: &str, event: &str, payload: &Value) -> HookPayload {
    let Ok(Agent(adapter)) = agent.parse() else { return HookPayload::default() };
    let fields = &adapter.fields;
    let named = fields.event.as_deref().unwrap_or("hook_event_name");
    // An unknown event name in the payload is ignored in favour of `event`.
    let event = read::at(payload, named)
        .and_then(|value| value.as_str().map(str::to_owned))
        .filter(|name| adapter.events.contains_key(name))
        .unwrap_or_else(|| event.to_owned());
    let input = read::input(payload, &fields.input);
    let tool = read::id(payload, &fields.tool);
    let call = || read_call(adapter, tool.as_deref().unwrap_or_default(), &input);
    let after = |failed: Option<bool>| {
        let output =
            read::first(payload, &fields.output).map(|value| read::output(&value)).unwrap_or_default();
        let signs = || {
            (!adapter.failure.is_empty())
                .then(|| adapter.failure.iter().any(|sign| shows(sign, payload, &output)))
        };
        HookEvent::AfterTool {
            call: really_written(call(), adapter, payload),
            failed: failed.or_else(signs),
            output,
        }
    };
    let event = match adapter.events.get(&event) {
        Some(EventKind::SessionStart) => HookEvent::SessionStart,
        Some(EventKind::Prompt) => prompt(adapter, read::prompt(payload, &fields.prompt)),
        Some(EventKind::BeforeTool) => HookEvent::BeforeTool { call: call() },
        Some(EventKind::AfterTool) => after(None),
        Some(EventKind::ToolSucceeded) => after(Some(false)),
        Some(EventKind::ToolFailed) => after(Some(true)),
        Some(EventKind::Stop) => HookEvent::Stop,
        Some(EventKind::SessionEnd) => HookEvent::SessionEnd,
        None => HookEvent::Unknown,
    };
    let is_shell = matches!(
        event,
        HookEvent::BeforeTool { call: ToolCall::Shell { .. } }
            | HookEvent::AfterTool { call: ToolCall::Shell { .. }, .. }
    );
    HookPayload {
        origin: Origin {
            agent: Some(adapter.name.clone()),
            session: read::id(payload, &fields.session),
            turn: read::id(payload, &fields.turn),
            call: read::id(payload, &fields.call)
                .or_else(|| tool.as_deref().map(|tool| read::derived_id(tool, &input))),
            tool,
            ..Origin::default()
        },
        cwd: read::place(payload, &fields.cwd, &input, is_shell),
        event,
    }
}

/// The user sent a prompt, or an agent that reports its own texts as prompts continued its turn.
fn prompt(adapter: &Adapter, text: String) -> HookEvent {
    let goes_on = |start: &String| if start.is_empty() { text.is_empty() } else { text.starts_with(start) };
    if adapter.goes_on.iter().any(goes_on) { HookEvent::Unknown } else { HookEvent::Prompt { text } }
}

/// Classify a tool call by its input.
fn read_call(adapter: &Adapter, tool: &str, input: &Value) -> ToolCall {
    let tools = &adapter.tools;
    if let Some(keys) = tools.shells.get(tool) {
        let line = read::command(input, keys);
        return line
            .map_or_else(|| read::other(tool), |command| ToolCall::Shell { tool: tool.to_owned(), command });
    }
    let path = |keys: Option<&Vec<String>>| keys.and_then(|keys| read::path_at(input, keys));
    let file = path(tools.files.get(tool));
    match (file, tools.patches.get(tool)) {
        (Some(file), _) => read::files(tool, [file]),
        (None, Some(keys)) => read::patched(tool, input, keys),
        (None, None) if tools.files.contains_key(tool) => read::files(tool, None),
        (None, None) if tools.reads.contains_key(tool) => {
            ToolCall::Reads { tool: tool.to_owned(), path: path(tools.reads.get(tool)) }
        }
        (None, None) => read::other(tool),
    }
}

/// Call with the files that were actually written, if the agent reports them afterwards.
fn really_written(call: ToolCall, adapter: &Adapter, payload: &Value) -> ToolCall {
    let written = adapter.written.as_deref().and_then(|place| read::at(payload, place));
    let written: Vec<PathBuf> = written
        .iter()
        .filter_map(Value::as_array)
        .flatten()
        .filter_map(Value::as_str)
        .map(PathBuf::from)
        .collect();
    match call {
        ToolCall::Files { tool, .. } if !written.is_empty() => read::files(&tool, written),
        call => call,
    }
}

fn shows(sign: &FailureSign, payload: &Value, output: &str) -> bool {
    let found = if sign.at == "$output" { Some(Value::from(output)) } else { read::at(payload, &sign.at) };
    match (&sign.line, found) {
        (_, None) => false,
        (Some(prefix), Some(found)) => {
            let is_other =
                |line: &str| line.strip_prefix(prefix.as_str()).is_some_and(|rest| sign.not != rest.trim());
            found.as_str().is_some_and(|text| text.lines().any(is_other))
        }
        (None, Some(found)) => found != sign.not,
    }
}

/// Keys or command with which the user takes the agent's conversation back to an earlier message, if known.
pub fn rewind(agent: &str) -> Option<&'static str> {
    Agent::all().into_iter().find(|one| one.name() == agent).and_then(|one| one.adapter().rewind.as_deref())
}

/// Whether nono can answer at this event instead of the model.
pub fn answers_itself(agent: &str, event: &str) -> bool {
    let Ok(Agent(adapter)) = agent.parse() else { return false };
    adapter.answer.instead.as_ref().is_some_and(|slot| slot.is_at(event))
}

/// Reply in the agent's format. `event` as in [`told`].
pub fn answer(agent: &str, event: &str, reply: &HookReply) -> String {
    let Ok(Agent(adapter)) = agent.parse() else { return "{}".to_owned() };
    let answer = &adapter.answer;
    let can_ask = answer.ask.as_ref().is_some_and(|slot| slot.is_at(event));
    let (ask, said) = if can_ask { (reply.ask.clone(), None) } else { (None, reply.ask.as_deref()) };
    let said: Vec<&str> = reply.message.iter().map(String::as_str).chain(said).collect();
    let said = (!said.is_empty()).then(|| said.join("\n"));
    let (context, message) = match (&answer.message, &said) {
        // Without a slot for the user, the model passes the message on.
        (None, Some(message)) => {
            let told = format!("Tell the user: {message}");
            let parts: Vec<&str> = reply.context.iter().map(String::as_str).chain([told.as_str()]).collect();
            (Some(parts.join("\n\n")), None)
        }
        (_, message) => (reply.context.clone(), message.clone()),
    };
    let filled = [
        (&answer.instead, reply.answer.clone()),
        (&answer.context, context),
        (&answer.message, message),
        (&answer.ask, ask),
    ];
    let values: Vec<Value> = filled
        .into_iter()
        .filter_map(|(slot, text)| {
            Some(fill(&slot.as_ref().filter(|slot| slot.is_at(event))?.value, event, &text?))
        })
        .collect();
    match values.as_slice() {
        [] => answer.nothing.clone(),
        [Value::String(text), ..] => text.clone(),
        values => {
            let mut whole = Value::Null;
            for value in values {
                join(&mut whole, value);
            }
            whole.to_string()
        }
    }
}

/// Merge two answers: members of both, objects merged recursively.
fn join(whole: &mut Value, more: &Value) {
    match (whole, more) {
        (Value::Object(whole), Value::Object(more)) => {
            for (key, value) in more {
                join(whole.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (whole, more) => *whole = more.clone(),
    }
}

/// Template with text and event filled in.
fn fill(value: &Value, event: &str, text: &str) -> Value {
    match value {
        Value::String(word) if word == "$text" => Value::from(text),
        Value::String(word) if word == "$event" => Value::from(event),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), fill(value, event, text))).collect()
        }
        other => other.clone(),
    }
}
