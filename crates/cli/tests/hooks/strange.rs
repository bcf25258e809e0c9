//! Whatever comes in, the exit code is 0 and the answer is one that the agent can read.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};

use super::said::Said;
use super::{bash, claude, enabled, hook, payload, reasons};

#[test]
fn payloads_that_are_none() {
    let deep = [b"{\"a\":".repeat(100_000), b"1".to_vec(), b"}".repeat(100_000)].concat();
    let long = format!("{{\"a\": \"{}\"}}", "x".repeat(17 << 20));
    let inputs: [&[u8]; 9] =
        [b"", b" \n", b"{", b"[]", b"null", b"\"text\"", b"\xff\xfe\0\x01binary", &deep, long.as_bytes()];
    for agent in ["claude-code", "codex", "gemini", "opencode", "hermes"] {
        let world = enabled();
        for input in inputs {
            let said = hook(&world, &[agent, "UserPromptSubmit"], input);
            assert_eq!(said.code, Some(0), "{said:?}");
            assert!(said.json().is_object() && said.err.is_empty(), "{said:?}");
        }
    }
    let world = enabled();
    let said = hook(&world, &["claude-code", "PreToolUse"], b"{").ok().json();
    assert!(said["systemMessage"].as_str().unwrap().contains("cannot parse"), "{said}");
    assert_eq!(reasons(&world), ["before a call that nono could not parse"]);
}

#[test]
fn fields_of_every_wrong_type() {
    let world = enabled();
    let values = [json!(null), json!(7), json!([]), json!({}), json!("\0\u{1b}[2J"), json!(["a", 1])];
    for name in
        ["session_id", "cwd", "hook_event_name", "tool_name", "tool_input", "tool_use_id", "tool_response"]
    {
        for value in &values {
            let mut payload = payload(&world, "PreToolUse", bash("rm a.txt"));
            payload[name] = value.clone();
            for event in ["PreToolUse", "PostToolUse", "UserPromptSubmit", "SessionStart", "Other"] {
                let said = hook(&world, &["claude-code", event], payload.to_string().as_bytes()).ok();
                assert!(said.json().is_object(), "{name} {value} {said:?}");
            }
        }
    }
}

#[test]
fn calls_with_the_wrong_arguments_end_well_too() {
    let world = enabled();
    for args in [
        &[][..],
        &["claude-code"],
        &["nobody", "PreToolUse"],
        &["claude-code", "PreToolUse", "more"],
        &["--x"],
    ] {
        hook(&world, args, b"{}").ok();
    }
    let help = world.command("nono").args(["hook", "--help"]).output().unwrap();
    assert!(Said::of(&help).ok().out.contains("blocks no tool but one"));
}

#[test]
fn streams_that_are_closed() {
    let world = enabled();
    for line in [
        "nono hook claude-code PreToolUse <&-",
        "nono hook claude-code PreToolUse >&- 2>&- </dev/null",
        "nono hook claude-code PreToolUse </dev/null >/dev/full",
    ] {
        let status =
            world.command("sh").args(["-c", line]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        assert_eq!(status.unwrap().code(), Some(0), "{line}");
    }
}

#[test]
fn a_state_that_cannot_be_used() {
    let world = enabled();
    let message = |value: &Value| value["systemMessage"].as_str().unwrap_or_default().to_owned();
    world.file("state/config.toml", "[checkpoints]\nenabled = 7\n", 0o600);
    assert!(message(&claude(&world, "PreToolUse", bash("rm a.txt"))).contains("enabled"));
    world.file("state/config.toml", "[checkpoints]\nenabled = true\n", 0o600);
    fs::set_permissions(world.path("state"), fs::Permissions::from_mode(0o777)).unwrap();
    assert!(message(&claude(&world, "PreToolUse", bash("rm a.txt"))).contains("written by others"));
    fs::set_permissions(world.path("state"), fs::Permissions::from_mode(0o500)).unwrap();
    assert!(message(&claude(&world, "PreToolUse", bash("rm a.txt"))).contains("no checkpoint"));
    fs::set_permissions(world.path("state"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(claude(&world, "PreToolUse", bash("rm a.txt")), json!({}));
}

#[test]
fn lines_that_overwhelm_the_parser() {
    let world = enabled();
    for line in [
        "(".repeat(20_000),
        format!("echo {}", "$(".repeat(9_000)),
        "((".repeat(30),
        "\"$(echo ".repeat(5_000),
    ] {
        claude(&world, "PreToolUse", bash(&line));
    }
    assert_eq!(reasons(&world).len(), 1);
}
