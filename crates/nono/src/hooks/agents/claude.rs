//! Claude Code, and Codex, which took over its events, fields and answers.
//!
//! <https://code.claude.com/docs/en/hooks>, <https://developers.openai.com/codex/hooks>

use nono_checkpoint::Origin;
use nono_checkpoint::trigger::Call;
use serde_json::{Map, Value, json};

use super::super::{Event, Reply, Told};
use super::{Agent, read};

/// Events whose answer may hold a context for the model.
pub(super) const TAKES_CONTEXT: [&str; 5] =
    ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"];

pub(super) fn told(agent: Agent, event: &str, payload: &Value) -> Told {
    let nothing = Value::Null;
    let input = payload.get("tool_input").unwrap_or(&nothing);
    let tool = read::id(payload, "tool_name");
    let call = || {
        let tool = tool.as_deref().unwrap_or_default();
        if agent == Agent::Codex { codex_call(tool, input) } else { claude_call(tool, input) }
    };
    let after = |failed, said: &str| Event::AfterTool {
        call: call(),
        failed,
        output: payload.get(said).map(read::output).unwrap_or_default(),
    };
    let event = match event {
        "SessionStart" => Event::SessionStart,
        "UserPromptSubmit" => Event::Prompt,
        "PreToolUse" => Event::BeforeTool { call: call() },
        // Codex tells it of commands that failed, too.
        "PostToolUse" => after((agent == Agent::ClaudeCode).then_some(false), "tool_response"),
        "PostToolUseFailure" => after(Some(true), "error"),
        "Stop" => Event::Stop,
        "SessionEnd" => Event::SessionEnd,
        _ => Event::Unknown,
    };
    let is_shell = matches!(
        event,
        Event::BeforeTool { call: Call::Shell { .. } } | Event::AfterTool { call: Call::Shell { .. }, .. }
    );
    let cwd = read::place(payload, input, is_shell);
    Told {
        origin: Origin {
            turn: read::id(payload, "prompt_id").or_else(|| read::id(payload, "turn_id")),
            call: read::id(payload, "tool_use_id"),
            tool,
            ..Origin::default()
        },
        cwd,
        event,
    }
}

fn claude_call(tool: &str, input: &Value) -> Call {
    match tool {
        "Write" | "Edit" | "MultiEdit" => read::file(tool, input, &["file_path"]),
        "NotebookEdit" => read::file(tool, input, &["notebook_path", "file_path"]),
        "Bash" | "Monitor" => read::shell(tool, input, &["command"]),
        _ => read::other(tool),
    }
}

fn codex_call(tool: &str, input: &Value) -> Call {
    match tool {
        "apply_patch" => read::patched(tool, input, &["command", "input", "patch"]),
        "Bash" | "shell" | "local_shell" | "exec_command" | "shell_command" => {
            let call = read::shell(tool, input, &["command", "cmd"]);
            match &call {
                // `apply_patch <<'EOF' …` in a shell is taken out of it by Codex, and never runs there.
                Call::Shell { command, .. } if command.trim_start().starts_with("apply_patch") => {
                    read::files(tool, super::patch::paths(command).into_iter().map(Into::into))
                }
                _ => call,
            }
        }
        _ => read::other(tool),
    }
}

/// `{"hookSpecificOutput": {"hookEventName", "additionalContext"}, "systemMessage"}`, without what there is not.
pub(super) fn answer(event: &str, reply: &Reply, takes_context: &[&str]) -> Value {
    let mut answer = Map::new();
    if let Some(context) = reply.context.as_ref().filter(|_| takes_context.contains(&event)) {
        let inner = json!({"hookEventName": event, "additionalContext": context});
        answer.insert("hookSpecificOutput".to_owned(), inner);
    }
    if let Some(message) = &reply.message {
        answer.insert("systemMessage".to_owned(), json!(message));
    }
    Value::Object(answer)
}
