//! Hermes' shell hooks. <https://hermes-agent.nousresearch.com/docs/user-guide/features/hooks>
//!
//! Limit: its file tools take a relative path from where its terminal is, which the payload does not tell (`cwd` is where
//! Hermes was started). After the call the real paths are known, and used.

use std::path::PathBuf;

use nono_checkpoint::Origin;
use nono_checkpoint::trigger::Call;
use serde_json::{Value, json};

use super::super::{Event, Reply, Told};
use super::read;

pub(super) fn told(event: &str, payload: &Value) -> Told {
    let nothing = Value::Null;
    let input = payload.get("tool_input").unwrap_or(&nothing);
    let extra = payload.get("extra").unwrap_or(&nothing);
    let tool = read::id(payload, "tool_name");
    let called = || call(tool.as_deref().unwrap_or_default(), input);
    let event = match event {
        "on_session_start" => Event::SessionStart,
        // Once for each turn, before the first call of the model.
        "pre_llm_call" => Event::Prompt,
        "pre_tool_call" => Event::BeforeTool { call: called() },
        "post_tool_call" => after(called(), extra),
        // In spite of its name: once for each turn.
        "on_session_end" => Event::Stop,
        "on_session_finalize" => Event::SessionEnd,
        _ => Event::Unknown,
    };
    let cwd = read::place(payload, input, tool.as_deref() == Some("terminal"));
    Told {
        origin: Origin {
            turn: read::id(extra, "turn_id"),
            call: read::id(extra, "tool_call_id"),
            tool,
            ..Origin::default()
        },
        cwd,
        event,
    }
}

fn call(tool: &str, input: &Value) -> Call {
    match tool {
        "write_file" => read::file(tool, input, &["path"]),
        "patch" if input.get("path").and_then(Value::as_str).is_some_and(|path| !path.is_empty()) => {
            read::file(tool, input, &["path"])
        }
        "patch" => read::patched(tool, input, &["patch"]),
        "terminal" => read::shell(tool, input, &["command"]),
        // A program that can do anything, in another language.
        "execute_code" => read::files(tool, None),
        _ => read::other(tool),
    }
}

/// The result is JSON in a text, with the files that were really written.
fn after(call: Call, extra: &Value) -> Event {
    let text = extra.get("result").and_then(Value::as_str).unwrap_or_default();
    let result: Option<Value> = serde_json::from_str(text).ok().filter(Value::is_object);
    let output = match &result {
        Some(result) => read::output(result),
        None => read::tail(text),
    };
    let code = result.as_ref().and_then(|result| result.get("exit_code")?.as_i64()).unwrap_or(0);
    let failed = extra.get("status").and_then(Value::as_str).map(|status| status != "ok" || code != 0);
    let written = result.as_ref().and_then(|result| result.get("files_modified")?.as_array());
    let written: Vec<PathBuf> =
        written.into_iter().flatten().filter_map(Value::as_str).map(PathBuf::from).collect();
    let call = match call {
        Call::Files { tool, .. } if !written.is_empty() => read::files(&tool, written),
        call => call,
    };
    Event::AfterTool { call, failed, output }
}

/// Only the model can be told something, and only before it is called; so the person hears through it.
pub(super) fn answer(event: &str, reply: &Reply) -> Value {
    let message = reply.message.as_ref().map(|message| format!("Tell the user: {message}"));
    let parts: Vec<String> = reply.context.iter().cloned().chain(message).collect();
    if event == "pre_llm_call" && !parts.is_empty() {
        json!({"context": parts.join("\n\n")})
    } else {
        json!({})
    }
}
