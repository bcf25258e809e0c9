//! Payloads recorded from real agents (`fixtures/`, by `tests/agents/run`), and malformed ones.

use std::path::{Path, PathBuf};

use nono_checkpoint::trigger::ToolCall;
use serde_json::{Value, json};

use super::super::{HookEvent, HookPayload, HookReply, OUTPUT, quote};
use super::{Agent, answer, told};

fn replay(agent: &str, fixture: &str) -> Vec<HookPayload> {
    let payloads: Vec<Value> = serde_json::from_str(fixture).unwrap();
    payloads.iter().map(|payload| told(agent, "", payload)).collect()
}

/// One line for each payload: the event and its details.
fn lines(told: &[HookPayload]) -> Vec<String> {
    let call = |call: &ToolCall| match call {
        ToolCall::Files { tool, paths } => {
            let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
            format!("{tool} writes {}", paths.join(" "))
        }
        ToolCall::Shell { tool, command } => format!("{tool} runs {command}"),
        ToolCall::Reads { tool, path } => match path {
            Some(path) => format!("{tool} reads {}", path.display()),
            None => format!("{tool} reads"),
        },
        ToolCall::Other { tool } => format!("{tool} does something"),
    };
    let line = |told: &HookPayload| match &told.event {
        HookEvent::BeforeTool { call: what } => format!("before {}", call(what)),
        HookEvent::AfterTool { call: what, failed, output } => {
            format!("after {}: {failed:?} {:?}", call(what), output.lines().last().unwrap_or_default())
        }
        HookEvent::Prompt { .. } => "Prompt".to_owned(),
        event => format!("{event:?}"),
    };
    told.iter().map(line).collect()
}

/// Properties of every payload of a conversation with one turn.
fn check_origins(told: &[HookPayload], agent: &str, has_turn: bool) {
    let session = told[0].origin.session.clone().unwrap();
    let mut turns = Vec::new();
    for told in told {
        assert_eq!(told.origin.agent.as_deref(), Some(agent));
        assert_eq!(told.origin.session.as_ref(), Some(&session));
        assert!(told.cwd.as_deref().is_some_and(Path::is_absolute), "{told:?}");
        if !matches!(told.event, HookEvent::SessionStart) {
            turns.push(told.origin.turn.clone());
        }
        if let HookEvent::BeforeTool { call } | HookEvent::AfterTool { call, .. } = &told.event {
            assert_eq!(told.origin.tool.as_deref(), Some(call.tool()));
            assert!(told.origin.call.is_some(), "{told:?}");
        }
    }
    turns.dedup();
    assert_eq!(turns.len(), 1, "one turn: {turns:?}");
    assert_eq!(turns[0].is_some(), has_turn);
    for pair in told.windows(2) {
        if let (HookEvent::BeforeTool { .. }, HookEvent::AfterTool { .. }) = (&pair[0].event, &pair[1].event)
        {
            assert_eq!(pair[0].origin.call, pair[1].origin.call, "the same call before and after");
        }
    }
}

#[test]
fn claude_code() {
    let told = replay("claude-code", include_str!("fixtures/claude-code.json"));
    check_origins(&told, "claude-code", true);
    assert_eq!(
        lines(&told),
        [
            "SessionStart",
            "Prompt",
            "before Write writes /home/u/project/new.txt",
            "after Write writes /home/u/project/new.txt: Some(false) \"\"",
            "before Read reads /home/u/project/a.txt",
            "after Read reads /home/u/project/a.txt: Some(false) \"\"",
            "before Edit writes /home/u/project/a.txt",
            "after Edit writes /home/u/project/a.txt: Some(false) \"\"",
            "before Bash runs rm b.txt",
            "after Bash runs rm b.txt: Some(false) \"\"",
            "before Bash runs cat /nonexistent",
            "after Bash runs cat /nonexistent: Some(true) \"cat: /nonexistent: No such file or directory\"",
        ]
    );
}

#[test]
fn codex() {
    let told = replay("codex", include_str!("fixtures/codex.json"));
    check_origins(&told, "codex", true);
    assert_eq!(
        lines(&told),
        [
            "SessionStart",
            "Prompt",
            "before Bash runs rm b.txt",
            "after Bash runs rm b.txt: None \"\"",
            "before apply_patch writes a.txt sub/new.txt",
            "after apply_patch writes a.txt sub/new.txt: None \"M a.txt\"",
            "before Bash runs cat /nonexistent",
            "after Bash runs cat /nonexistent: None \"cat: /nonexistent: No such file or directory\"",
            "before apply_patch writes a.txt",
        ]
    );
}

#[test]
fn gemini() {
    let told = replay("gemini", include_str!("fixtures/gemini.json"));
    check_origins(&told, "gemini", false);
    let lines = lines(&told);
    assert_eq!(lines.len(), 14);
    assert_eq!(lines[..3], ["SessionStart", "Prompt", "before write_file writes /home/u/project/new.txt"]);
    assert_eq!(lines[4], "before read_file reads /home/u/project/a.txt");
    assert_eq!(lines[6], "before replace writes /home/u/project/a.txt");
    assert_eq!(lines[8], "before run_shell_command runs rm b.txt");
    assert!(lines[9].starts_with("after run_shell_command runs rm b.txt: Some(false)"), "{}", lines[9]);
    assert!(lines[11].starts_with("after run_shell_command runs cat /nonexistent: Some(true)"));
    assert!(lines[13].starts_with("after replace writes /home/u/project/a.txt: Some(true)"));
    let HookEvent::AfterTool { output, .. } = &told[11].event else { panic!() };
    assert!(output.contains("No such file or directory"));
}

#[test]
fn hermes() {
    let told = replay("hermes", include_str!("fixtures/hermes.json"));
    // A session begins before its first turn.
    check_origins(&told, "hermes", true);
    let lines = lines(&told);
    assert_eq!(lines[..3], ["SessionStart", "Prompt", "before write_file writes /home/u/project/new.txt"]);
    assert!(
        lines[3].starts_with("after write_file writes /home/u/project/new.txt: Some(false)"),
        "{}",
        lines[3]
    );
    assert_eq!(lines[4], "before patch writes a.txt");
    assert!(
        lines[5].starts_with("after patch writes /home/u/project/a.txt: Some(false)"),
        "the real path: {}",
        lines[5]
    );
    assert_eq!(lines[6], "before patch writes a.txt");
    assert_eq!(lines[8], "before terminal runs rm b.txt");
    assert_eq!(told[8].cwd.as_deref(), Some(Path::new("/home/u/project")));
    assert_eq!(told[10].cwd.as_deref(), Some(Path::new("/home/u/elsewhere")), "its workdir");
    assert!(
        lines[11].contains("Some(true) \"cat: /nonexistent: No such file or directory\""),
        "{}",
        lines[11]
    );
    assert_eq!(lines[12], "before execute_code writes .");
    assert!(lines[15].starts_with("after patch writes a.txt: Some(true)"), "{}", lines[15]);
    assert_eq!(lines[16], "Stop");
}

#[test]
fn opencode() {
    let told = replay("opencode", include_str!("fixtures/opencode.json"));
    check_origins(&told, "opencode", true);
    assert_eq!(
        lines(&told),
        [
            "SessionStart",
            "Prompt",
            "before write writes /home/u/project/new.txt",
            "after write writes /home/u/project/new.txt: Some(false) \"Wrote file successfully.\"",
            "before edit writes /home/u/project/a.txt",
            "after edit writes /home/u/project/a.txt: Some(false) \"Edit applied successfully.\"",
            "before bash runs rm b.txt",
            "after bash runs rm b.txt: Some(false) \"(no output)\"",
            "before bash runs cat /nonexistent",
            "after bash runs cat /nonexistent: Some(true) \"cat: /nonexistent: No such file or directory\"",
            "before edit writes /home/u/project/a.txt",
            "Stop",
        ]
    );
}

#[test]
fn tools_that_no_recording_has() {
    let before = |agent: &str, tool: &str, input: Value| {
        let event = match agent {
            "gemini" => "BeforeTool",
            "opencode" => "tool.execute.before",
            "hermes" => "pre_tool_call",
            _ => "PreToolUse",
        };
        let payload = json!({"tool_name": tool, "tool_input": input, "cwd": "/p"});
        let told = told(agent, event, &payload);
        (lines(std::slice::from_ref(&told)).remove(0), told.cwd)
    };
    let line = |agent: &str, tool: &str, input: Value| before(agent, tool, input).0;
    assert_eq!(
        line("claude-code", "NotebookEdit", json!({"notebook_path": "/p/n.ipynb"})),
        "before NotebookEdit writes /p/n.ipynb"
    );
    assert_eq!(
        line("claude-code", "MultiEdit", json!({"file_path": "/p/m"})),
        "before MultiEdit writes /p/m"
    );
    assert_eq!(
        line("claude-code", "mcp__fs__write_file", json!({"path": "/p/x"})),
        "before mcp__fs__write_file does something"
    );
    assert_eq!(
        line("claude-code", "mcp__nono__changes", json!({})),
        "before mcp__nono__changes does something",
        "any server can have that name"
    );
    assert_eq!(line("claude-code", "Bash", json!({})), "before Bash does something");
    assert_eq!(
        line("claude-code", "Write", json!({"file_path": 7})),
        "before Write writes .",
        "the directory is unknown"
    );
    assert_eq!(line("claude-code", "Write", json!({"file_path": "a\0b"})), "before Write writes .");
    assert_eq!(
        line("codex", "shell", json!({"command": ["bash", "-lc", "rm a b"]})),
        "before shell runs rm a b"
    );
    assert_eq!(
        line("codex", "shell", json!({"command": ["rm", "a b", "it's"]})),
        r"before shell runs rm 'a b' 'it'\''s'"
    );
    assert_eq!(line("codex", "shell", json!({"command": ["rm", 7]})), "before shell does something");
    assert_eq!(line("codex", "exec_command", json!({"cmd": "ls"})), "before exec_command runs ls");
    let heredoc = "apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: a b\n*** End Patch\nEOF";
    assert_eq!(
        line("codex", "Bash", json!({"command": heredoc})),
        "before Bash runs apply_patch <<'EOF'\n*** Begin Patch\n*** Delete File: a b\n*** End Patch\nEOF"
    );
    assert_eq!(
        line("opencode", "apply_patch", json!({"patchText": "*** Delete File: x"})),
        "before apply_patch writes x"
    );
    assert_eq!(
        before("codex", "shell", json!({"cmd": "ls", "workdir": "sub"})).1,
        Some(PathBuf::from("/p/sub"))
    );
    assert_eq!(
        before("gemini", "run_shell_command", json!({"command": "ls", "dir_path": "/q"})).1,
        Some(PathBuf::from("/q"))
    );
    assert_eq!(
        before("opencode", "bash", json!({"command": "ls", "workdir": "/q"})).1,
        Some(PathBuf::from("/q"))
    );
    assert_eq!(
        before("opencode", "write", json!({"filePath": "x", "workdir": "/q"})).1,
        Some(PathBuf::from("/p"))
    );
}

/// Payloads as the agents' documentation describes them.
#[test]
fn agents_that_were_only_read_about() {
    let said = |agent: &str, event: &str, payload: Value| {
        let told = told(agent, event, &payload);
        let origin = &told.origin;
        let ids =
            [&origin.session, &origin.turn, &origin.call].map(|id| id.as_deref().unwrap_or("-").to_owned());
        let cwd = told.cwd.as_ref().map(|dir| dir.display().to_string()).unwrap_or_default();
        format!("{} | {cwd} | {}", lines(std::slice::from_ref(&told)).remove(0), ids.join(" "))
    };
    let qwen = json!({"session_id": "s", "cwd": "/p", "hook_event_name": "PreToolUse", "tool_name": "run_shell_command",
        "tool_input": {"command": "./x.sh"}, "tool_use_id": "c"});
    assert_eq!(said("qwen", "", qwen), "before run_shell_command runs ./x.sh | /p | s - c");
    let prompt = |text: &str| {
        told("qwen", "", &json!({"session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt": text}))
            .event
    };
    assert_eq!(prompt("do it"), HookEvent::Prompt { text: "do it".to_owned() });
    assert_eq!(prompt(""), HookEvent::Unknown, "it goes on after a tool");
    let qwen = json!({"session_id": "s", "hook_event_name": "PostToolUseFailure", "tool_name": "read_file",
        "tool_input": {"file_path": "/x"}, "tool_use_id": "c", "error": "EACCES"});
    assert_eq!(said("qwen", "", qwen), "after read_file reads /x: Some(true) \"EACCES\" |  | s - c");
    let cursor = json!({"conversation_id": "s", "generation_id": "t", "hook_event_name": "preToolUse", "tool_name": "Shell",
        "tool_input": {"command": "rm a"}, "tool_use_id": "c", "workspace_roots": ["/p"]});
    assert_eq!(said("cursor", "", cursor), "before Shell runs rm a | /p | s t c");
    let copilot = json!({"timestamp": 1, "cwd": "/p", "toolName": "edit", "toolArgs": "{\"path\": \"a\"}"});
    assert!(said("copilot", "preToolUse", copilot).starts_with("before edit writes a | /p | - - edit-"));
    let copilot = json!({"cwd": "/p", "toolName": "bash", "toolArgs": "{\"command\": \"ls\"}",
        "toolResult": {"resultType": "failure", "textResultForLlm": "no"}});
    assert!(
        said("copilot", "postToolUse", copilot).starts_with("after bash runs ls: Some(true) \"no\" | /p")
    );
    let goose = json!({"event": "PreToolUse", "session_id": "s", "tool_name": "developer__write",
        "tool_input": {"path": "/p/a", "content": ""}, "working_dir": "/p", "tool_call_id": "c"});
    assert_eq!(said("goose", "", goose), "before developer__write writes /p/a | /p | s - c");
    let kiro = json!({"hook_event_name": "preToolUse", "cwd": "/p", "tool_name": "fs_write", "tool_input": {"command": "create", "path": "a"}});
    assert!(said("kiro", "", kiro).starts_with("before fs_write writes a | /p |"));
    let cline = json!({"hookName": "PreToolUse", "taskId": "s", "workspaceRoots": ["/p"],
        "preToolUse": {"toolName": "execute_command", "parameters": {"command": "rm a"}}});
    assert!(said("cline", "", cline).starts_with("before execute_command runs rm a | /p | s -"));
    for agent in Agent::all() {
        let event =
            agent.adapter().events.iter().find(|(_, kind)| format!("{kind:?}") == "BeforeTool").unwrap().0;
        let fields = json!({"hook_event_name": event, "event": event, "hookName": event, "tool_name": "mcp__x", "toolName": "mcp__x",
            "preToolUse": {"toolName": "mcp__x"}, "cwd": "/p"});
        assert!(said(agent.name(), event, fields).starts_with("before mcp__x does something"), "{agent:?}");
    }
}

/// Arbitrary input: no panic, and no answer that could block.
#[test]
fn nonsense_is_unknown() {
    let shapes = [
        Value::Null,
        json!([]),
        json!("text"),
        json!({"hook_event_name": 7}),
        json!({"hook_event_name": "PreToolUse"}),
        json!({"hook_event_name": "Nothing", "tool_name": [], "tool_input": "rm"}),
        json!({"tool_name": "Write", "tool_input": [1, 2], "cwd": "relative", "session_id": {}}),
        json!({"tool_name": "x".repeat(1 << 20), "tool_input": {"command": {"a": 1}}, "extra": 3, "tool_response": [1]}),
    ];
    for agent in Agent::all() {
        for event in [
            "PreToolUse",
            "PostToolUse",
            "BeforeTool",
            "AfterTool",
            "tool.execute.after",
            "post_tool_call",
            "",
            "\u{1b}[2J",
        ] {
            for shape in &shapes {
                let told = told(agent.name(), event, shape);
                assert!(told.cwd.is_none(), "a relative one is none");
                assert!(told.origin.tool.is_none_or(|tool| tool.len() <= 200));
            }
            assert_eq!(answer(agent.name(), event, &HookReply::default()), agent.adapter().answer.nothing);
        }
    }
    assert_eq!(told("nobody", "PreToolUse", &json!({"session_id": "s"})), HookPayload::default());
    assert_eq!(answer("nobody", "PreToolUse", &HookReply::message("m")), "{}");
}

#[test]
fn long_output_keeps_its_end() {
    let text = format!("{}é", "ü".repeat(OUTPUT));
    let payload =
        json!({"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_response": {"stdout": text}});
    let HookEvent::AfterTool { output, .. } = told("claude-code", "", &payload).event else { panic!() };
    assert!(output.len() <= OUTPUT && output.ends_with("üé"));
}

#[test]
fn replies_have_the_format_of_each_agent() {
    let reply = HookReply {
        context: Some("for the \"model\"".into()),
        message: Some("for you".into()),
        ..HookReply::default()
    };
    let says =
        |agent: &str, event: &str| -> Value { serde_json::from_str(&answer(agent, event, &reply)).unwrap() };
    for agent in ["claude-code", "codex"] {
        for event in ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse"] {
            assert_eq!(
                says(agent, event),
                json!({
                    "hookSpecificOutput": {"hookEventName": event, "additionalContext": "for the \"model\""},
                    "systemMessage": "for you",
                })
            );
        }
        assert_eq!(says(agent, "Stop"), json!({"systemMessage": "for you"}));
    }
    assert_eq!(says("gemini", "BeforeTool"), json!({"systemMessage": "for you"}));
    assert_eq!(says("gemini", "AfterTool")["hookSpecificOutput"]["additionalContext"], "for the \"model\"");
    assert_eq!(
        says("opencode", "chat.message"),
        json!({"context": "for the \"model\"", "message": "for you"})
    );
    assert_eq!(
        says("hermes", "pre_llm_call"),
        json!({"context": "for the \"model\"\n\nTell the user: for you"})
    );
    assert_eq!(says("hermes", "pre_tool_call"), json!({}));
}

#[test]
fn words_for_a_shell() {
    assert_eq!(quote("/usr/bin/nono"), "/usr/bin/nono");
    for word in ["", "a b", "it's", "$HOME", "a\nb", "\"", "`x`", "~/x", "*", "é"] {
        let output = std::process::Command::new("sh")
            .arg("-c")
            .arg(format!("printf %s {}", quote(word)))
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
    }
}
