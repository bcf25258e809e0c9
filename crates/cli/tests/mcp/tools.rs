//! Each tool, outside of a sandbox.

use std::fs;

use serde_json::json;

use super::kit::Client;
use super::{changed_world, nono, world};

#[test]
fn checkpoints_are_taken_and_listed() {
    let world = world();
    let mut client = Client::new(&world, &json!({}));
    assert!(client.told("list_checkpoints", &json!({})).contains("create_checkpoint takes the first one"));
    let result = client.call("create_checkpoint", &json!({"reason": "before\u{1b}[2J it"}));
    assert_eq!(result["structuredContent"]["result"], "taken", "{result}");
    assert!(client.told("create_checkpoint", &json!({})).contains("nothing changed in "));
    world.file("work/src/a", "two\n", 0o644);
    client.told("create_checkpoint", &json!({}));
    let result = client.call("list_checkpoints", &json!({"limit": 1}));
    assert_eq!(result["structuredContent"]["total"], 2);
    assert_eq!(result["structuredContent"]["checkpoints"][0]["number"], 1);
    assert_eq!(result["structuredContent"]["checkpoints"][0]["reason"], "asked for by an agent");
    let said = client.told("list_checkpoints", &json!({}));
    assert!(said.contains("  2. ") && said.contains("before\\u{1b}[2J it  (1 file, +1/-1)"), "{said}");
    assert!(nono(&world, &["checkpoints", "list"]).contains("asked for by an agent"));
}

#[test]
fn a_diff_is_bounded_and_harmless() {
    let world = changed_world();
    world.file("work/long", &"a line of a long text\n".repeat(20_000), 0o644);
    world.file("work/e\u{1b}]0;x\u{7}\n", "\u{1b}[31mred\n", 0o644);
    fs::write(world.path("work/src/a"), [&[0; 8][..], &vec![7; 4_000_000]].concat()).unwrap();
    let mut client = Client::new(&world, &json!({}));
    let id = client.begin("diff_checkpoint", &json!({"checkpoint": "1"}));
    let whole = client.answer(id).to_string();
    assert!(whole.len() < 64 << 10, "{}", whole.len());
    let said = client.told("diff_checkpoint", &json!({"checkpoint": 1}));
    assert!(!said.contains(['\u{1b}', '\u{7}']), "{said}");
    assert!(said.contains("src/a (modified); binary, before: 4 bytes, sha256 "), "{said}");
    assert!(said.contains("binary, now: 4000008 bytes, sha256 "), "{said}");
    assert!(
        said.contains("e\\u{1b}]0;x\\u{7}\\u{a} (created, +1 -0)") && said.contains("+\\u{1b}[31mred"),
        "{said}"
    );
    assert!(
        said.contains("more lines of long: call diff_checkpoint with paths to see more of them"),
        "{said}"
    );
    let said = client.told("diff_checkpoint", &json!({"checkpoint": "1", "paths": ["src"]}));
    assert!(said.contains("src/a") && !said.contains("long"), "{said}");
    let said = client.refused("diff_checkpoint", &json!({"checkpoint": "99"}));
    assert!(said.contains("has no checkpoint \"99\""), "{said}");
    let said = client.refused("diff_checkpoint", &json!({"checkpoint": "1", "paths": ["nothing\u{1b}"]}));
    assert!(said.contains("nothing\\u{1b} in the project or in the checkpoint"), "{said}");
}

#[test]
fn changes_are_those_since_the_last_point() {
    let world = changed_world();
    let mut client = Client::new(&world, &json!({}));
    let said = client.told("changes", &json!({}));
    assert!(said.contains("Changed since checkpoint") && said.contains("src/a (modified, +1 -1)"), "{said}");
    assert!(!said.contains("+two"), "{said}");
    nono(&world, &["checkpoints", "create"]);
    assert!(client.told("changes", &json!({})).ends_with("\nnothing"));
    // Moments have whole seconds.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    nono(
        &world,
        &[
            "run",
            "-s",
            "--rollback",
            "--no-rollback-prompt",
            "--allow",
            ".",
            "--",
            "sh",
            "-c",
            "echo x > new",
        ],
    );
    let said = client.told("changes", &json!({}));
    assert!(said.starts_with("Changed by session ") && said.contains("new (created, +1 -0)"), "{said}");
}

#[test]
fn why_has_the_rule_and_the_way() {
    let world = world();
    let mut client = Client::new(&world, &json!({}));
    let result = client.call("why", &json!({"path": "~/.ssh/id_ed25519"}));
    assert_eq!(result["structuredContent"]["status"], "denied", "{result}");
    let said = client.told("why", &json!({"path": "~/.ssh/id_ed25519"}));
    assert!(said.starts_with("DENIED: read ") && said.contains("protected group ssh"), "{said}");
    assert!(client.told("why", &json!({"path": "/usr/bin/env"})).starts_with("ALLOWED: read /usr/bin/env"));
    let said = client.told("why", &json!({"host": "example.org", "port": 443, "profile": "claude-code"}));
    assert!(said.contains("DENIED: connect to example.org:443"), "{said}");
    let said = client.refused("why", &json!({"path": "/", "profile": "no-such-profile"}));
    assert!(said.contains("no-such-profile"), "{said}");
    let said = client.refused("request_access", &json!({"path": "/etc/shadow", "reason": "to see"}));
    assert!(said.starts_with("there is no sandbox around this server"), "{said}");
}

#[test]
fn without_any_checkpoint_the_next_step_is_said() {
    let world = world();
    let mut client = Client::new(&world, &json!({}));
    let said = client.refused("restore_checkpoint", &json!({"checkpoint": "1"}));
    assert!(said.contains("has no checkpoints") && said.contains("takes the first one"), "{said}");
    let said = client.refused("changes", &json!({}));
    assert!(said.contains("has no checkpoints"), "{said}");
}
