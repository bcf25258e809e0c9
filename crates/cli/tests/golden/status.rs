//! `nono status`: one screen for a directory.

use std::fs;

use serde_json::{Value, json};
use snapbox::str;

use super::checkpoints_kit::{ids, moments};
use super::sessions::Sessions;
use super::world::{World, golden};
use nono_testkit::process::Running;

fn transcript(sessions: &Sessions, lines: &[&str]) -> String {
    ids(&sessions.transcript(lines).lines().map(|line| moments(line) + "\n").collect::<String>())
}

/// Sessions and checkpoints of one second have no order of their own.
fn backdate(sessions: &Sessions, number: usize) {
    let path = sessions.folder(number).join("session.json");
    let mut session: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    session["started"] = json!(format!("2020-01-0{number}T23:00:00Z"));
    fs::write(path, session.to_string()).unwrap();
}

#[test]
fn of_a_new_directory() {
    World::new().golden(
        &["nono status", "nono status --json"],
        str![[r#"
$ nono status
[TMP]/work

Protected:
  checkpoints  off; none for this directory
  hooks        none
  sessions     0 kept

Running:
  nothing

Can be undone:
  nothing

Not covered by the last session:
  nothing

Next:
  nono run --rollback -- COMMAND  run something that can be undone
  nono hooks install AGENT        a checkpoint before each risky step of an agent
$ nono status --json
{
  "directory": "[TMP]/work",
  "checkpoints": {
    "enabled": false,
    "project": null,
    "count": 0,
    "last": null,
    "unprotected": null
  },
  "project_profile": null,
  "hooks": [],
  "sessions": 0,
  "running": [],
  "undoable": [],
  "undoable_total": 0,
  "not_covered": {
    "session_id": null,
    "entries": 0,
    "examples": []
  },
  "next": [
    "nono run --rollback -- COMMAND",
    "nono hooks install AGENT"
  ],
  "problems": []
}

"#]],
    );
}

/// Sessions, checkpoints, hooks, what is left out and what was undone already.
#[test]
fn of_a_directory_with_a_past() {
    let sessions = Sessions::new();
    let world = &sessions.world;
    world.file("work/a", "a\n");
    world.file("work/Cargo.toml", "[package]\n");
    world.file("work/target/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n");
    sessions.run("echo 1 > a");
    sessions.run("echo 2 > a; echo 2 > b");
    sessions.run("true");
    (1..=3).for_each(|number| backdate(&sessions, number));
    assert_eq!(world.sh("nono undo --yes").code(), Some(0));
    assert_eq!(world.sh("nono checkpoints create -m 'before the move'").code(), Some(0));
    // A checkpoint that a person took is gone back to by name only, unless a command began from it.
    assert_eq!(world.sh("nono run --checkpoints --allow . -- sh -c 'echo 3 > a'").code(), Some(0));
    golden(
        transcript(&sessions, &["nono status"]),
        str![[r#"
$ nono status
[TMP]/work

Protected:
  checkpoints  off; 1 checkpoint of [TMP]/work, the last one [AGE]
  hooks  none
  sessions  3 kept

Running:
  nothing

Can be undone:
  checkpoint  [id1]  [TIME] ([AGE])  before the move
  session  [1]  [TIME] (2020-01-01)  sh -c 'echo 1 > a'  +0 ~1 -0

Not covered by the last session:
  [TMP]/work/target: a cache, by its CACHEDIR.TAG

Next:
  nono undo  undo the newest above; shows the plan, and asks
  nono diff  see what changed

"#]],
    );
    let shown = sessions.json("nono status --json", 0);
    assert_eq!(shown["sessions"], 3);
    assert_eq!(shown["undoable_total"], 2);
    let kinds = shown["undoable"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap());
    assert_eq!(kinds.collect::<Vec<_>>(), ["checkpoint", "session"], "newest first: {shown}");
    let session = &shown["undoable"][1];
    assert_eq!((&session["id"], &session["changes"]["modified"]), (&json!(sessions.id(1)), &json!(1)));
    assert_eq!(shown["checkpoints"]["count"], 1);
    assert_eq!(shown["not_covered"]["entries"], 1);
    // A directory beside it has nothing of this.
    world.dir("work/../beside", 0o755);
    let beside = sessions.json("cd ../beside && nono status --json", 0);
    assert_eq!((&beside["sessions"], &beside["undoable_total"]), (&json!(0), &json!(0)));
}

/// More than one screen is cut, and what runs is named; what cannot be read is said, and the rest is there.
#[test]
fn of_a_directory_where_something_runs() {
    let sessions = Sessions::new();
    let world = &sessions.world;
    world.file("work/kept", "before\n");
    for number in 1..=6 {
        sessions.run(&format!("echo {number} > kept"));
        backdate(&sessions, number);
    }
    world.sh("nono hooks install claude-code --yes").code();
    let line = "echo after > kept; echo ready; exec sleep 1000";
    let args = ["run", "-s", "--rollback", "--allow", ".", "--", "sh", "-c", line];
    let running = Running::start(&mut world.nono(&args));
    running.until("ready");
    sessions.newest();
    golden(
        transcript(&sessions, &["nono status"]),
        str![[r#"
$ nono status
[TMP]/work

Protected:
  checkpoints  on; 1 checkpoint of [TMP]/work, the last one [AGE]
  hooks  claude-code (installed)
  sessions  7 kept

Running:
  [7]  [AGE]  sh -c 'echo after > kept; echo ready; exec sl...

Can be undone:
  session  [6]  [TIME] (2020-01-06)  sh -c 'echo 6 > kept'  +0 ~1 -0
  session  [5]  [TIME] (2020-01-05)  sh -c 'echo 5 > kept'  +0 ~1 -0
  session  [4]  [TIME] (2020-01-04)  sh -c 'echo 4 > kept'  +0 ~1 -0
  session  [3]  [TIME] (2020-01-03)  sh -c 'echo 3 > kept'  +0 ~1 -0
  session  [2]  [TIME] (2020-01-02)  sh -c 'echo 2 > kept'  +0 ~1 -0
  ... and 1 more: nono rollback list, nono checkpoints list

Not covered by the last session:
  nothing

Next:
  nono inspect [7]  see what it does; it can be undone when it has ended
  nono diff  see what changed

"#]],
    );
    let shown = sessions.json("nono status --json", 0);
    assert_eq!(shown["running"][0]["command"], json!(["sh", "-c", line]));
    assert_eq!((&shown["undoable_total"], shown["undoable"].as_array().unwrap().len()), (&json!(6), 5));
    running.signal(rustix::process::Signal::KILL);
    running.end();
    world.file("state/config.toml", "[checkpoints\n");
    let damaged = sessions.sh("nono status");
    assert_eq!(
        damaged.code(),
        Some(125),
        "settings that cannot be read are an error everywhere: {damaged:?}"
    );
}
