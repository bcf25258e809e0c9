//! OpenCode has no hooks that start programs. Its plugin of ours (`install`) sends what the plugin's functions are
//! given, under these names, and does what the answer says. <https://opencode.ai/docs/plugins>

use nono_checkpoint::Origin;
use nono_checkpoint::trigger::Call;
use serde_json::{Map, Value, json};

use super::super::{Event, Reply, Told};
use super::read;

pub(super) fn told(event: &str, payload: &Value) -> Told {
    let nothing = Value::Null;
    let input = payload.get("tool_input").unwrap_or(&nothing);
    let tool = read::id(payload, "tool_name");
    let call = || call(tool.as_deref().unwrap_or_default(), input);
    let event = match event {
        "session.created" => Event::SessionStart,
        "chat.message" => Event::Prompt,
        "tool.execute.before" => Event::BeforeTool { call: call() },
        "tool.execute.after" => Event::AfterTool {
            call: call(),
            // Other tools that fail are not told at all.
            failed: Some(payload.get("exit").and_then(Value::as_i64).is_some_and(|code| code != 0)),
            output: payload.get("tool_output").map(read::output).unwrap_or_default(),
        },
        "session.idle" => Event::Stop,
        _ => Event::Unknown,
    };
    let cwd = read::place(payload, input, tool.as_deref() == Some("bash"));
    Told {
        origin: Origin {
            turn: read::id(payload, "message_id"),
            call: read::id(payload, "call_id"),
            tool,
            ..Origin::default()
        },
        cwd,
        event,
    }
}

fn call(tool: &str, input: &Value) -> Call {
    match tool {
        "write" | "edit" | "multiedit" => read::file(tool, input, &["filePath", "file_path", "path"]),
        "patch" | "apply_patch" => read::patched(tool, input, &["patchText", "patch"]),
        "bash" => read::shell(tool, input, &["command"]),
        _ => read::other(tool),
    }
}

pub(super) fn answer(reply: &Reply) -> Value {
    let mut answer = Map::new();
    for (key, text) in [("context", &reply.context), ("message", &reply.message)] {
        if let Some(text) = text {
            answer.insert(key.to_owned(), json!(text));
        }
    }
    Value::Object(answer)
}
