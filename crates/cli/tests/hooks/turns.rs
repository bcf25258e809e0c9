//! Turns, checkpoints, restores: each hook is a process of its own.

use std::fs;

use serde_json::json;

use super::said::Said;
use super::world::World;
use super::{bash, claude, enabled, reasons};

#[test]
fn one_checkpoint_in_a_turn() {
    let world = enabled();
    assert_eq!(claude(&world, "UserPromptSubmit", json!({"prompt": "x"})), json!({}));
    assert_eq!(claude(&world, "PreToolUse", bash("ls")), json!({}));
    assert!(reasons(&world).is_empty());
    assert_eq!(claude(&world, "PreToolUse", bash("rm a.txt")), json!({}));
    fs::remove_file(world.path("work/a.txt")).unwrap();
    assert_eq!(claude(&world, "PostToolUse", bash("rm a.txt")), json!({}));
    assert_eq!(claude(&world, "PreToolUse", bash("rm Makefile")), json!({}));
    assert_eq!(reasons(&world), ["before Bash: rm a.txt"]);
    claude(&world, "UserPromptSubmit", json!({"prompt": "y"}));
    let write = json!({"tool_name": "Write", "tool_input": {"file_path": world.path("work/b")}});
    claude(&world, "PreToolUse", write);
    assert_eq!(reasons(&world), ["before Bash: rm a.txt", "before Write"]);
    let listed = Said::of(&world.command("nono").args(["checkpoints", "list"]).output().unwrap()).ok();
    assert!(
        listed.out.contains("\n       \u{201c}x\u{201d}\n") && listed.out.contains("\u{201c}y\u{201d}"),
        "{listed:?}"
    );
    let json = Said::of(&world.command("nono").args(["checkpoints", "list", "--json"]).output().unwrap())
        .ok()
        .json();
    assert_eq!(json["checkpoints"][0]["prompt"], "y");
}

#[test]
fn a_prompt_is_one_short_harmless_line() {
    let world = enabled();
    let long = format!("make it\n\u{1b}[2J {}", "x".repeat(100_000));
    claude(&world, "UserPromptSubmit", json!({"prompt": long}));
    claude(&world, "PreToolUse", bash("rm a.txt"));
    let listed = Said::of(&world.command("nono").args(["checkpoints", "list"]).output().unwrap()).ok();
    assert!(listed.out.contains("\u{201c}make it ") && !listed.out.contains('\u{1b}'), "{listed:?}");
    assert!(listed.out.lines().all(|line| line.chars().count() < 200), "{listed:?}");
}

/// An unknown tool may do anything: there is a checkpoint before the first such call of a turn.
#[test]
fn what_is_not_known_to_read_is_kept_from() {
    let mcp = |tool: &str| json!({"tool_name": tool, "tool_input": {"query": "x"}});
    let read = json!({"tool_name": "Read", "tool_input": {"file_path": "/etc/hostname"}});
    for (call, why) in [
        (bash("./cleanup.sh"), "before Bash: ./cleanup.sh"),
        (bash("python3 script.py"), "before Bash: python3 script.py"),
        (bash("node x.js"), "before Bash: node x.js"),
        (bash("npm run build"), "before Bash: npm run build"),
        (mcp("mcp__files__remove"), "before mcp__files__remove"),
    ] {
        let world = enabled();
        claude(&world, "UserPromptSubmit", json!({"prompt": "x"}));
        for harmless in [bash("git status && ls -la | head"), read.clone()] {
            assert_eq!(claude(&world, "PreToolUse", harmless), json!({}));
        }
        assert!(reasons(&world).is_empty(), "{why}");
        assert_eq!(claude(&world, "PreToolUse", call), json!({}));
        assert_eq!(reasons(&world), [why]);
        fs::remove_file(world.path("work/a.txt")).unwrap();
        let undone = world.command("nono").args(["checkpoints", "restore", "1", "--yes"]).output().unwrap();
        Said::of(&undone).ok();
        assert_eq!(fs::read_to_string(world.path("work/a.txt")).unwrap(), "one\n", "{why}");
    }
}

#[test]
fn a_restore_reaches_the_next_prompt() {
    let world = enabled();
    claude(&world, "UserPromptSubmit", json!({"prompt": "x", "prompt_id": "p1"}));
    claude(&world, "PreToolUse", bash("rm a.txt"));
    fs::remove_file(world.path("work/a.txt")).unwrap();
    claude(&world, "PostToolUse", bash("rm a.txt"));
    let restored = world.command("nono").args(["checkpoints", "restore", "1", "--yes"]).output().unwrap();
    Said::of(&restored).ok();
    assert_eq!(fs::read_to_string(world.path("work/a.txt")).unwrap(), "one\n");
    let heard = claude(&world, "UserPromptSubmit", json!({"prompt": "y", "prompt_id": "p2"}));
    let context = heard["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(context.contains("turns_undone") && context.contains("a.txt"), "{context}");
    let again = claude(&world, "UserPromptSubmit", json!({"prompt": "z", "prompt_id": "p3"}));
    assert_eq!(again, json!({}));
}

#[test]
fn nothing_is_kept_while_it_is_off() {
    let world = World::new();
    world.file("work/Makefile", "all:\n", 0o644);
    assert_eq!(claude(&world, "PreToolUse", bash("rm Makefile")), json!({}));
    assert!(fs::read_dir(world.path("state")).unwrap().next().is_none());
}

#[test]
fn a_missing_protection_is_in_the_answer() {
    let world = enabled();
    let heard = claude(&world, "PreToolUse", bash("rm -rf ~/*"));
    let message = heard["systemMessage"].as_str().unwrap();
    assert!(message.contains("no checkpoint of"), "{message}");
    assert!(
        heard.get("decision").is_none() && heard["hookSpecificOutput"].get("permissionDecision").is_none()
    );
}

/// `/rollback` is answered by the hook, and begins no turn.
#[test]
fn rollback_is_answered_without_the_model() {
    let world = enabled();
    claude(&world, "UserPromptSubmit", json!({"prompt": "x"}));
    claude(&world, "PreToolUse", bash("rm a.txt"));
    fs::remove_file(world.path("work/a.txt")).unwrap();
    claude(&world, "PostToolUse", bash("rm a.txt"));
    let typed = |words: &str| {
        let heard = claude(&world, "UserPromptSubmit", json!({"prompt": words}));
        assert_eq!(heard["decision"], "block", "{heard}");
        heard["reason"].as_str().unwrap().to_owned()
    };
    let list = typed("/rollback");
    assert!(
        list.contains("before Bash: rm a.txt")
            && list.contains("/rollback N")
            && !list.contains("nono check"),
        "{list}"
    );
    assert!(typed("/rollback diff 1").contains("a.txt"));
    assert!(
        typed("/rollback 7").contains("no checkpoint \"7\"")
            && typed("/rollback $(id)").contains("not a checkpoint")
    );
    let restored = typed("/rollback 1 --force");
    assert!(restored.contains("brought back 1") && !restored.contains('{'), "{restored}");
    assert_eq!(fs::read_to_string(world.path("work/a.txt")).unwrap(), "one\n");
    assert_eq!(reasons(&world).len(), 1);
    // Others' prompts reach the model.
    let other = claude(&world, "UserPromptSubmit", json!({"prompt": "what does /rollback do?"}));
    assert!(other.get("decision").is_none(), "{other}");
}
