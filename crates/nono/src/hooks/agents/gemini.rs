//! Gemini CLI. It gives neither its turns nor its calls an id. <https://geminicli.com/docs/hooks/reference>

use nono_checkpoint::Origin;
use nono_checkpoint::trigger::Call;
use serde_json::Value;

use super::super::{Event, Told};
use super::read;

pub(super) const TAKES_CONTEXT: [&str; 3] = ["SessionStart", "BeforeAgent", "AfterTool"];

pub(super) fn told(event: &str, payload: &Value) -> Told {
    let nothing = Value::Null;
    let input = payload.get("tool_input").unwrap_or(&nothing);
    let tool = read::id(payload, "tool_name");
    let call = || call(tool.as_deref().unwrap_or_default(), input);
    let event = match event {
        "SessionStart" => Event::SessionStart,
        "BeforeAgent" => Event::Prompt,
        "BeforeTool" => Event::BeforeTool { call: call() },
        "AfterTool" => {
            let response = payload.get("tool_response").unwrap_or(&nothing);
            let output = read::output(response);
            let failed = response.get("error").is_some_and(|error| !error.is_null()) || exited(&output);
            Event::AfterTool { call: call(), failed: Some(failed), output }
        }
        "AfterAgent" => Event::Stop,
        "SessionEnd" => Event::SessionEnd,
        _ => Event::Unknown,
    };
    let cwd = read::place(payload, input, tool.as_deref() == Some("run_shell_command"));
    Told {
        origin: Origin {
            call: tool.as_deref().map(|tool| read::derived_id(tool, input)),
            tool,
            ..Origin::default()
        },
        cwd,
        event,
    }
}

fn call(tool: &str, input: &Value) -> Call {
    match tool {
        "write_file" | "replace" => read::file(tool, input, &["file_path", "absolute_path", "path"]),
        "run_shell_command" => read::shell(tool, input, &["command"]),
        _ => read::other(tool),
    }
}

/// A shell command that failed is no error of the tool: its code stands in a line of the text, which is there for
/// other codes than 0 only.
fn exited(output: &str) -> bool {
    output.lines().any(|line| line.strip_prefix("Exit Code: ").is_some_and(|code| code.trim() != "0"))
}
