//! An agent works, and a person too: what the agent did goes back, what the person did stays.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::kit::{Kit, Said};
use super::project::split;
use nono_testkit::oracle::same;

/// A project with checkpoints on.
fn protected() -> Kit {
    let kit = Kit::project();
    kit.bare(
        "printf '[checkpoints]\\nenabled = true\\n' > $NONO_HOME/config.toml; seq 1 9 > lines; echo a > mine",
    );
    kit
}

/// What the agent's hook is called with.
fn hook(kit: &Kit, event: &str, more: &Value) -> Said {
    let mut payload = json!({
        "session_id": "conversation",
        "transcript_path": "/nowhere",
        "cwd": kit.tree(),
        "hook_event_name": event,
    });
    for (key, value) in more.as_object().unwrap() {
        payload[key] = value.clone();
    }
    let mut command = kit.command(&["hook", "claude-code", event]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    super::kit::end(child).ok()
}

fn prompt(kit: &Kit) {
    hook(kit, "UserPromptSubmit", &json!({"prompt": "go on"}));
}

/// A call of the agent's shell.
fn agent(kit: &Kit, call: &str, script: &str) {
    let about = json!({"tool_name": "Bash", "tool_input": {"command": script}, "tool_use_id": call});
    hook(kit, "PreToolUse", &about);
    kit.bare(script);
    let mut after = about;
    after["tool_response"] = json!({"stdout": "", "stderr": "", "interrupted": false});
    hook(kit, "PostToolUse", &after);
}

#[test]
fn what_a_person_changed_stays_unless_it_is_forced() {
    let kit = protected();
    let before = kit.look();
    prompt(&kit);
    agent(&kit, "1", "rm -r src/deep; echo agent > docs/plain; echo agent > mine; echo new > fresh");
    kit.bare("echo person > mine");
    let said = kit.restore(&["1"]).code(1);
    let note: Value = said.json();
    assert_eq!(note["kept"].as_array().unwrap().len(), 1, "{note}");
    assert_eq!(note["kept"][0]["path"], kit.tree().join("mine").to_str().unwrap());
    assert_eq!(note["turns_undone"].as_array().unwrap().len(), 1, "{note}");
    assert!(said.err.contains("hint: --force"), "{}", said.err);
    assert_eq!(kit.read("mine"), "person\n");
    same(&split(&before, &["mine"]).1, &split(&kit.look(), &["mine"]).1);
    kit.restore(&["1", "--force"]).ok();
    same(&before, &kit.look());
    kit.checkpoints(&["undo", "--yes"]).ok();
    assert_eq!(kit.read("mine"), "person\n");
}

#[test]
fn what_both_changed_is_merged() {
    let kit = protected();
    prompt(&kit);
    agent(&kit, "1", "sed -i s/2/agent/ lines");
    kit.bare("sed -i s/8/person/ lines");
    kit.restore(&["1"]).code(1);
    let said = kit.restore(&["1", "--merge"]).ok();
    assert_eq!(kit.read("lines"), "1\n2\n3\n4\n5\n6\n7\nperson\n9\n", "{said:?}");
    assert_eq!(said.json()["merges"].as_array().unwrap().len(), 1, "{}", said.out);
    kit.checkpoints(&["undo", "--yes"]).ok();
    assert_eq!(kit.read("lines"), "1\nagent\n3\n4\n5\n6\n7\nperson\n9\n");
    // What does not merge is kept, or has both sides in it.
    kit.bare("sed -i s/agent/both/ lines");
    kit.restore(&["1", "--merge"]).code(1);
    assert!(kit.read("lines").contains("both\n") && !kit.read("lines").contains("<<<<"));
    kit.restore(&["1", "--merge", "--conflict-markers"]).ok();
    assert!(kit.read("lines").contains("<<<<<<<") && kit.read("lines").contains("person"));
}

#[test]
fn back_to_before_a_turn() {
    let kit = protected();
    let mut states = Vec::new();
    for round in 0..3 {
        states.push(kit.look());
        prompt(&kit);
        agent(&kit, &format!("{round}a"), &format!("sed -i s/{}/x/ lines", round + 1));
        agent(&kit, &format!("{round}b"), &format!("rm -f file{round}; echo x > made{round}"));
    }
    let list = kit.list();
    assert_eq!(list.len(), 3, "once a turn: {list:?}");
    let turns: Vec<&str> = list.iter().map(|one| one["turn"].as_str().unwrap()).collect();
    assert_eq!(list[0]["agent"], "claude-code");
    assert_eq!(list[0]["session"], "conversation");
    assert!(list[0]["reason"].as_str().unwrap().contains("sed -i s/3/x/ lines"), "{list:?}");
    let said = kit.restore(&["--turn", turns[1]]).ok();
    same(&states[1], &kit.look());
    let undone: Vec<Value> = said.json()["turns_undone"].as_array().unwrap().clone();
    assert_eq!(undone, [turns[1], turns[0]]);
    assert!(said.err.contains("undid 2 turns"), "{}", said.err);
    // With a turn, what would be a checkpoint is a path.
    kit.checkpoints(&["undo", "--yes"]).ok();
    kit.restore(&["--turn", turns[2], "lines"]).ok();
    assert_eq!(kit.read("lines"), "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    assert!(kit.tree().join("made2").exists());
}
