//! Restores are on record: in the log of the run while it runs, in a log of their own later.

use std::fs;

use serde_json::{Value, json};

use super::kit::{Kit, Said};
use nono_testkit::process::killed;
use nono_testkit::screen::Screen;

/// A session that changed two files; its id.
fn past() -> (Kit, String) {
    let kit = Kit::new();
    kit.world.file("work/one", "before\n", 0o644);
    kit.world.file("work/two", "before\n", 0o644);
    let id = kit.session(&["--rollback"], "echo after > one; echo after > two");
    (kit, id)
}

fn text(kit: &Kit, name: &str) -> String {
    fs::read_to_string(kit.world.path(&format!("work/{name}"))).unwrap()
}

/// The log of a command that restores: its events.
#[track_caller]
fn recorded(kit: &Kit, args: &[&str], code: i32) -> (Vec<Value>, Said) {
    let before = kit.ids();
    let said = kit.nono(args).code(code);
    let id = kit.new_id(&before);
    let events = kit.events(&id);
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["session_started", "restore", "session_ended", "seal"], "{args:?}");
    let command: Vec<&str> = std::iter::once("nono").chain(args.iter().copied()).collect();
    assert_eq!(events[0]["command"], json!(command));
    assert_eq!(events[0]["workdir"], kit.world.path("work").to_str().unwrap());
    assert_eq!(events[0]["tracked_paths"], json!([kit.world.path("work")]));
    assert_eq!(events[2]["exit_code"], code);
    assert!(kit.ledger().iter().any(|line| line["session_id"] == id.as_str()));
    (events, said)
}

#[test]
fn each_way_of_restoring_has_a_log() {
    let (kit, session) = past();
    let (events, _) = recorded(&kit, &["undo", "--yes"], 0);
    let restore = &events[1];
    assert_eq!((&restore["session_id"], &restore["snapshot"]), (&session.clone().into(), &"0".into()));
    assert_eq!(
        (&restore["restored"], &restore["kept"], &restore["failed"]),
        (&2.into(), &0.into(), &0.into())
    );
    assert_eq!(restore["paths"], json!([]));
    assert!(restore["outcome"].as_str().unwrap().contains("nono rollback undo"), "{restore}");
    assert_eq!((text(&kit, "one"), text(&kit, "two")), ("before\n".to_owned(), "before\n".to_owned()));

    let (events, _) = recorded(&kit, &["redo", "--yes"], 0);
    assert_eq!(events[1]["restored"], 2);
    assert!(events[1]["snapshot"].as_str().unwrap().starts_with("safety-"), "{}", events[1]);
    assert_eq!(text(&kit, "one"), "after\n");

    let (events, said) = recorded(&kit, &["rollback", "restore", &session, "one", "--yes", "--json"], 0);
    assert_eq!(events[1]["paths"], json!([kit.world.path("work/one")]));
    assert_eq!(events[1]["restored"], 1);
    assert_eq!(said.json()["changes"].as_array().unwrap().len(), 1);

    let (events, _) = recorded(&kit, &["rollback", "undo", "--yes"], 0);
    assert_eq!(events[1]["paths"], json!([kit.world.path("work/one")]));
    // Something was kept: that is on record, too.
    fs::write(kit.world.path("work/one"), "mine\n").unwrap();
    let (events, _) = recorded(&kit, &["undo", &session, "--yes"], 1);
    assert_eq!((&events[1]["restored"], &events[1]["kept"]), (&1.into(), &1.into()));
    kit.good();
    // What only looks leaves nothing.
    let before = kit.ids();
    kit.nono(&["rollback", "restore", &session, "--dry-run"]).ok();
    kit.nono(&["rollback", "list"]).ok();
    kit.nono(&["rollback", "recover"]).ok();
    assert_eq!(kit.ids(), before);
    let shown = kit.nono(&["audit", "show", "last"]).ok().out;
    assert!(shown.contains("restore ") && shown.contains(&session), "{shown}");
}

#[test]
fn a_log_that_cannot_be_written_stops_no_undo() {
    let (kit, session) = past();
    let before = kit.ids();
    kit.sh("chmod 500 $NONO_HOME/audit").ok();
    let warning = "[nono] warning: this restore is not in the audit log: ";
    let said = kit.nono(&["undo", "--yes"]).ok();
    assert!(said.err.contains(warning) && said.err.contains("Permission denied"), "{said:?}");
    assert_eq!(text(&kit, "one"), "before\n");
    let said = kit.nono(&["redo", "--yes", "--json"]).ok();
    assert!(said.err.contains(warning), "{said:?}");
    said.json();
    assert_eq!(text(&kit, "one"), "after\n");
    kit.sh("chmod 700 $NONO_HOME/audit").ok();
    assert_eq!(kit.ids(), before);
    // A wrong setting is no reason either.
    kit.world.file("state/config.toml", "[audit]\nwrong = 1\n", 0o600);
    let said = kit.nono(&["undo", &session, "--yes"]).ok();
    assert!(said.err.contains(warning) && said.err.contains("audit.wrong"), "{said:?}");
    assert_eq!(text(&kit, "one"), "before\n");
}

const FILES: usize = 40;

/// A session whose restore was killed in its middle; its id and its restore's.
fn killed_restore() -> (Kit, String, String) {
    let kit = Kit::new();
    kit.sh(&format!("mkdir many; cd many; seq {FILES} | split -l 1 -a 4 - f")).ok();
    let session = kit.session(&["--rollback"], "rm -r many");
    let before = kit.ids();
    killed(kit.world.command("strace"), &["undo", "--yes"]).status().unwrap();
    assert!(kit.world.path(&format!("state/rollbacks/{session}/restore.journal")).exists());
    let killed = kit.new_id(&before);
    (kit, session, killed)
}

fn count(kit: &Kit) -> usize {
    fs::read_dir(kit.world.path("work/many")).unwrap().count()
}

#[test]
fn what_completes_a_restore_has_a_log_and_what_was_killed_a_beginning() {
    let (kit, session, killed) = killed_restore();
    assert_eq!(kit.events(&killed).len(), 1);
    let found = kit.good();
    let killed =
        found["sessions"].as_array().unwrap().iter().find(|one| one["id"] == killed.as_str()).unwrap();
    assert_eq!(killed["state"], "unfinished");
    let (events, said) = recorded(&kit, &["rollback", "recover"], 0);
    assert!(said.err.contains("completed an interrupted restore"), "{said:?}");
    assert_eq!((&events[1]["session_id"], &events[1]["snapshot"]), (&session.into(), &"0".into()));
    assert_eq!(count(&kit), FILES);
    kit.good();
}

#[test]
fn what_completes_a_restore_of_a_project_has_a_log_and_says_everything() {
    let kit = Kit::new();
    kit.sh(&format!("git init -q; mkdir many; cd many; seq {FILES} | split -l 1 -a 4 - f")).ok();
    kit.nono(&["checkpoints", "create"]).ok();
    kit.sh("rm -r many").ok();
    killed(kit.world.command("strace"), &["checkpoints", "restore", "1", "--yes"]).status().unwrap();
    let mut projects = fs::read_dir(kit.world.path("state/projects")).unwrap();
    assert!(projects.any(|one| one.unwrap().path().join("restore.journal").exists()));
    let before = kit.ids();
    let said = kit.nono(&["checkpoints", "list"]).ok();
    let id = kit.new_id(&before);
    let events = kit.events_of(&id, "restore");
    assert_eq!(events.len(), 1);
    assert_eq!((&events[0]["session_id"], &events[0]["failed"]), (&"checkpoints".into(), &0.into()));
    assert!(said.err.contains("completed an interrupted restore of"), "{said:?}");
    assert!(said.err.contains("brought back 4"), "{said:?}");
    assert!(said.err.contains("undo this with: nono checkpoints undo"), "{said:?}");
    assert_eq!(count(&kit), FILES);
    kit.good();
}

#[test]
fn a_run_that_completes_a_restore_records_it() {
    let (kit, session, _) = killed_restore();
    let id = kit.session(&["--rollback"], "ls many | wc -l > count");
    assert_eq!(text(&kit, "count"), format!("{FILES}\n"));
    let restores = kit.events_of(&id, "restore");
    assert_eq!(restores.len(), 1);
    assert_eq!(restores[0]["session_id"], session);
    kit.good();
}

#[test]
fn a_review_is_recorded_like_any_restore() {
    let (kit, session) = past();
    let screen = Screen::new(&kit.world);
    let before = kit.ids();
    screen.start("TERM=dumb nono rollback review last");
    screen.wait_last("[nono] Restore? [y/N/d/s]");
    screen.enter("y");
    screen.wait_last("[nono] Do this? [y/N]");
    screen.enter("y");
    assert_eq!(screen.prompt(), 0, "{}", screen.text());
    let id = kit.new_id(&before);
    assert_eq!(kit.events(&id)[0]["command"], json!(["nono", "rollback", "review", "last"]));
    let restores = kit.events_of(&id, "restore");
    assert_eq!((restores.len(), &restores[0]["session_id"]), (1, &session.into()));
    // At the end of a run: its own log is sealed by then.
    screen.clear();
    let before = kit.ids();
    screen.start("TERM=dumb nono run --rollback --allow-cwd -- sh -c 'echo again > one'");
    screen.wait_last("[nono] Restore? [y/N/d/s]");
    screen.enter("y");
    screen.wait_last("[nono] Do this? [y/N]");
    screen.enter("y");
    assert_eq!(screen.prompt(), 0, "{}", screen.text());
    let new: Vec<String> = kit.ids().difference(&before).cloned().collect();
    assert_eq!(new.len(), 2);
    let is_restore = |id: &&String| !kit.events_of(id, "restore").is_empty();
    let (restore, run): (Vec<&String>, Vec<&String>) = new.iter().partition(is_restore);
    assert_eq!((restore.len(), run.len()), (1, 1));
    assert_eq!(kit.events_of(restore[0], "restore")[0]["session_id"], run[0].as_str());
    let command = json!(["nono", "run", "--", "sh", "-c", "echo again > one"]);
    assert_eq!(kit.events(restore[0])[0]["command"], command);
    kit.good();
}

/// What a program inside sends to have a file put back.
const ASKS: &str = r#"
import json, os, socket, struct, sys
message = {"version": 1, "type": "restore_request", "id": "r1", "snapshot": 0, "paths": [os.path.abspath("one")]}
body = json.dumps(message).encode()
channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
channel.connect(os.environ["NONO_REQUEST_SOCK"])
channel.sendall(struct.pack("<I", len(body)) + body)
answer = json.loads(channel.recv(1 << 20)[4:])
sys.exit(0 if answer.get("restored") else 1)
"#;

#[test]
fn a_restore_from_inside_is_in_the_log_of_the_run() {
    let kit = Kit::new();
    kit.world.file("work/one", "before\n", 0o644);
    kit.world.file("work/ask.py", ASKS, 0o644);
    let screen = Screen::new(&kit.world);
    screen.start(
        "nono run --silent --no-rollback-prompt --ask --rollback --allow-cwd -- sh -c 'echo after > one; python3 ask.py && cat one'",
    );
    screen.wait_for("wants to put these back to the state of snapshot 0");
    screen.wait_for("Allow? [y/N]");
    screen.key("y");
    assert_eq!(screen.prompt(), 0, "{}", screen.text());
    assert!(screen.text().contains("before"), "{}", screen.text());
    let id = kit.ids().pop_first().unwrap();
    let restores = kit.events_of(&id, "restore");
    assert_eq!(restores.len(), 1);
    assert_eq!((&restores[0]["session_id"], &restores[0]["restored"]), (&id.clone().into(), &1.into()));
    let decisions = kit.events_of(&id, "capability_decision");
    assert!(
        decisions.iter().any(|event| event["access"] == "restore" && event["decision"] == "allowed"),
        "{decisions:?}"
    );
    assert!(kit.events_of(&id, "snapshot").len() >= 2);
    kit.good();
}
