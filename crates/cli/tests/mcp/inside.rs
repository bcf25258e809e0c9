//! In a sandbox the server asks the supervisor, and the supervisor asks the person.

use serde_json::json;

use super::kit::{Client, text};
use super::world::World;
use super::{changed_world, nono, world};
use nono_testkit::look::read;
use nono_testkit::screen::Screen;

/// A server in a sandbox, and its client outside, without a terminal.
fn confined(world: &World, flags: &[&str]) -> Client {
    let args = [&["run", "-s", "--allow-cwd", "--checkpoints"], flags, &["--", "nono", "mcp"]].concat();
    let mut client = Client::bare(world, &args);
    client.introduce(&json!({"elicitation": {}}));
    client
}

#[test]
fn the_same_history_is_seen_and_grows() {
    let world = changed_world();
    let mut client = confined(&world, &[]);
    let said = client.told("list_checkpoints", &json!({}));
    assert!(said.contains("by hand") && said.contains("before run"), "{said}");
    let said = client.told("diff_checkpoint", &json!({"checkpoint": "2", "paths": ["src"]}));
    assert!(said.contains("src/a (modified, +1 -1)") && said.contains("-one\n+two"), "{said}");
    assert!(client.told("changes", &json!({})).ends_with("\nnothing"));
    world.file("work/src/a", "three\n", 0o644);
    assert!(client.told("changes", &json!({})).contains("src/a (modified, +1 -1)"));
    let result = client.call("create_checkpoint", &json!({"reason": "from inside"}));
    assert!(result["structuredContent"]["taken"].is_string(), "{result}");
    let said = client.told("why", &json!({"path": "/etc/shadow"}));
    assert!(said.starts_with("DENIED"), "{said}");
    assert!(client.told("why", &json!({"path": "src/a", "operation": "readwrite"})).starts_with("ALLOWED"));
    assert_eq!(client.end().1, 0);
    assert!(nono(&world, &["checkpoints", "list"]).contains("from inside"));
}

#[test]
fn a_server_that_was_told_nothing_finds_its_supervisor() {
    let world = changed_world();
    let line = "env -i PATH=\"$PATH\" HOME=\"$HOME\" nono mcp; exit $?";
    let args = ["run", "-s", "--allow-cwd", "--checkpoints", "--", "sh", "-c", line];
    let mut client = Client::bare(&world, &args);
    client.introduce(&json!({"elicitation": {}}));
    let said = client.told("list_checkpoints", &json!({}));
    assert!(said.contains("by hand") && said.contains("before run"), "{said}");
    let said = client.refused("restore_checkpoint", &json!({"checkpoint": "2"}));
    assert!(said.contains("no terminal to ask on"), "{said}");
    assert_eq!(client.end().1, 0);
}

#[test]
fn a_large_binary_and_what_is_denied_stay_outside() {
    let world = changed_world();
    world.file("work/.env", "KEY=new\n", 0o600);
    std::fs::write(world.path("work/src/a"), vec![0; 4_000_000]).unwrap();
    let env = world.path("work/.env").display().to_string();
    let mut client = confined(&world, &["--deny", &env]);
    let said = client.told("diff_checkpoint", &json!({"checkpoint": "2"}));
    assert!(said.contains("binary, now: 4000000 bytes, sha256 ") && !said.contains("KEY"), "{said}");
    assert!(said.contains("1 more changed, not shown because not open to this sandbox"), "{said}");
}

#[test]
fn without_a_terminal_nothing_is_restored_whatever_the_client_could_ask() {
    let world = changed_world();
    let mut client = confined(&world, &[]);
    let said = client.refused("restore_checkpoint", &json!({"checkpoint": "2"}));
    assert!(said.starts_with("nothing was restored: ") && said.contains("no terminal to ask on"), "{said}");
    assert_eq!(read(&world, "work/src/a"), "two\n");
}

#[test]
fn a_policy_answers_for_the_person() {
    let world = world();
    let place = world.path("other").display().to_string();
    world.file("other/notes.txt", "what it says\n", 0o644);
    world.file("other/closed.txt", "not this\n", 0o644);
    std::fs::write(world.path("other/pixels"), [0, 1, 2]).unwrap();
    let rules = json!({"rules": [
        {"path": format!("{place}/closed.txt"), "action": "deny"},
        {"path": format!("{place}/**"), "action": "allow"},
    ]});
    world.file("home/rules.json", &rules.to_string(), 0o600);
    let policy = format!("policy:{}", world.path("home/rules.json").display());
    let mut client = confined(&world, &["--ask", "--approve", &policy]);
    let result =
        client.call("request_access", &json!({"path": format!("{place}/notes.txt"), "reason": "the task"}));
    assert_eq!(result["isError"], false, "{result}");
    assert!(text(&result).contains("granted by ") && text(&result).ends_with("\nwhat it says\n"), "{result}");
    assert_eq!(result["structuredContent"]["text"], "what it says\n");
    let said = client.told("request_access", &json!({"path": format!("{place}/pixels"), "reason": "x"}));
    assert!(said.contains("binary, 3 bytes, sha256 "), "{said}");
    let said =
        client.refused("request_access", &json!({"path": format!("{place}/closed.txt"), "reason": "x"}));
    assert!(said.starts_with("denied by ") && said.contains("Do not try another way"), "{said}");
    assert!(
        client
            .told("request_access", &json!({"path": "src/a", "reason": "x"}))
            .contains("open in this sandbox already")
    );
}

/// A client of its own in the sandbox: says hello, calls a restore, and prints what came of it. When a file `cancel` is
/// there it does not want it any more.
const CLIENT: &str = r#"
import json, os, subprocess, sys, threading, time
server = subprocess.Popen(["nono", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
def send(**message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n"); server.stdin.flush()
def heard(id):
    while True:
        message = json.loads(server.stdout.readline())
        if message.get("id") == id:
            return message
hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
send(id=1, method="initialize", params=hello); heard(1)
send(method="notifications/initialized")
send(id=2, method="tools/call", params={"name": "restore_checkpoint", "arguments": {"checkpoint": "2"}})
if "cancel" in sys.argv:
    while not os.path.exists("cancel"):
        time.sleep(0.05)
    send(method="notifications/cancelled", params={"requestId": 2})
    send(id=3, method="tools/call", params={"name": "list_checkpoints", "arguments": {}})
    print("came to", heard(3)["result"]["isError"])
    while not os.path.exists("over"):
        time.sleep(0.05)
else:
    print("came to", heard(2)["result"]["isError"])
server.stdin.close()
print("ended", server.wait())
"#;

fn asked<'w>(world: &'w World, word: &str) -> Screen<'w> {
    world.file("bin/client.py", CLIENT, 0o644);
    let screen = Screen::new(world);
    let bin = world.path("bin").display().to_string();
    screen
        .start(&format!("nono run --allow-cwd --checkpoints --read {bin} -- python3 {bin}/client.py {word}"));
    screen.wait_for("Allow? [y/N]");
    assert_eq!(read(world, "work/src/a"), "two\n");
    screen
}

#[test]
fn the_person_agrees() {
    let world = changed_world();
    let screen = asked(&world, "");
    screen.key("y");
    screen.wait_for("came to False");
    screen.wait_for("ended 0");
    assert_eq!(screen.prompt(), 0);
    assert_eq!(read(&world, "work/src/a"), "one\n");
}

#[test]
fn the_person_does_not() {
    let world = changed_world();
    let screen = asked(&world, "");
    screen.key("n");
    screen.wait_for("came to True");
    assert_eq!(screen.prompt(), 0);
    assert_eq!(read(&world, "work/src/a"), "two\n");
}

#[test]
fn a_call_that_is_cancelled_withdraws_the_question() {
    let world = changed_world();
    let screen = asked(&world, "cancel");
    world.file("work/cancel", "", 0o644);
    screen.wait_for("came to False");
    screen.wait_for("withdrawn: ");
    world.file("work/over", "", 0o644);
    screen.wait_for("ended 0");
    assert_eq!(screen.prompt(), 0);
    assert_eq!(read(&world, "work/src/a"), "two\n");
}
