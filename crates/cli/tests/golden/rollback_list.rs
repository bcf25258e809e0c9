//! `nono rollback list`: what there is, by project, with everything that one should know before choosing.

use std::fs;

use rustix::process::Signal;
use serde_json::json;
use snapbox::str;

use super::sessions::Sessions;
use super::world::World;
use nono_testkit::process::Running;

#[test]
fn without_sessions_nothing_is_said_or_made() {
    let world = World::new();
    world.sh("rmdir ../state").quiet(0);
    world.golden(
        &[
            "nono rollback list",
            "nono rollback list --json",
            "nono rollback list --path .",
            "nono rollback verify",
            "nono rollback verify --json",
            "nono rollback recover",
            "nono rollback cleanup --dry-run",
            "nono rollback cleanup --all --yes",
            "nono undo --yes",
            "nono redo --yes",
            "nono rollback undo --yes",
            "nono rollback restore last --yes",
            "nono rollback pin last",
        ],
        str![[r#"
$ nono rollback list
no sessions; `nono run --rollback -- command` makes one
$ nono rollback list --json
[]
$ nono rollback list --path .
no sessions of .
$ nono rollback verify
no sessions to check
$ nono rollback verify --json
{
  "good": true,
  "sessions": [],
  "running": []
}
$ nono rollback recover
! [nono] there is no interrupted restore
$ nono rollback cleanup --dry-run
nothing to remove
$ nono rollback cleanup --all --yes
! [nono] nothing to remove
$ nono undo --yes
! [nono] error: no session has snapshots of [TMP]/work
! [nono] hint: `nono run --rollback -- command` takes them
= exit 1
$ nono redo --yes
! [nono] error: nothing to redo in [TMP]/work
! [nono] hint: `nono status` shows what can be undone here
= exit 1
$ nono rollback undo --yes
! [nono] error: no restore is left to undo
! [nono] hint: `nono rollback list` lists the sessions
= exit 1
$ nono rollback restore last --yes
! [nono] error: there are no sessions yet
! [nono] hint: `nono run --rollback -- command` makes one
= exit 125
$ nono rollback pin last
! [nono] error: there are no sessions yet
! [nono] hint: `nono run --rollback -- command` makes one
= exit 125

"#]],
    );
    assert!(!world.path("state").exists(), "a look made it");
}

#[test]
fn grouped_by_project_newest_first() {
    let sessions = Sessions::new();
    let world = &sessions.world;
    world.file("work/a/one", "1\n");
    world.file("work/a/two", "2\n");
    world.file("work/b/three", "3\n");
    sessions.run_with("--allow a", "cd a; echo more >> one; rm two; echo new > new; echo x > x");
    sessions.run_with("--allow b --name second", "chmod 600 b/three");
    sessions.run_with("--allow a", "true");
    world.sh("nono rollback pin second").code();
    sessions.golden(
        &[
            "nono rollback list",
            "nono rollback list --recent 1",
            "nono rollback list --recent 0",
            "nono rollback list --path a/not/there",
            "nono rollback list --path b/three",
            "nono rollback list --path .",
            "cd a && nono rollback list --path .",
        ],
        str![[r#"
$ nono rollback list
[TMP]/work/a (2 sessions)
  [3]  [AGE]  sh -c true  +0 ~0 -0
  [1]  [AGE]  sh -c 'cd a; echo more >> one; rm two; echo n...  +2 ~1 -1
[TMP]/work/b (1 session)
  [2]  [AGE]  sh -c 'chmod 600 b/three'  +0 ~0 -0 (1 with other permissions)  [pinned] [name: second]
$ nono rollback list --recent 1
[TMP]/work/a (1 session)
  [3]  [AGE]  sh -c true  +0 ~0 -0
$ nono rollback list --recent 0
! [nono] error: invalid value '0' for '--recent <N>': write a whole number from 1 on
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono rollback list --path a/not/there
[TMP]/work/a (2 sessions)
  [3]  [AGE]  sh -c true  +0 ~0 -0
  [1]  [AGE]  sh -c 'cd a; echo more >> one; rm two; echo n...  +2 ~1 -1
$ nono rollback list --path b/three
[TMP]/work/b (1 session)
  [2]  [AGE]  sh -c 'chmod 600 b/three'  +0 ~0 -0 (1 with other permissions)  [pinned] [name: second]
$ nono rollback list --path .
no sessions of .
$ cd a && nono rollback list --path .
[TMP]/work/a (2 sessions)
  [3]  [AGE]  sh -c true  +0 ~0 -0
  [1]  [AGE]  sh -c 'cd a; echo more >> one; rm two; echo n...  +2 ~1 -1

"#]],
    );
}

#[test]
fn json_has_the_fields_of_the_session_and_what_is_known_of_it() {
    let sessions = Sessions::new();
    sessions.world.file("work/.venv/pyvenv.cfg", "not covered\n");
    sessions.world.file("work/file", "covered\n");
    sessions.run_with("--allow . --name first", "echo new > new");
    sessions.sh("nono rollback pin last");
    let list = sessions.json("nono rollback list --json", 0);
    let [session] = &list.as_array().unwrap()[..] else { panic!("{list}") };
    let work = sessions.world.path("work");
    let expected = json!({
        "session_id": sessions.id(1),
        "command": ["sh", "-c", "echo new > new"],
        "tracked_paths": [work],
        "snapshot_count": 2,
        "exit_code": 0,
        "name": "first",
        "status": "finished",
        "pinned": true,
        "foreign": false,
        "project": work,
        "dir": sessions.folder(1),
        "not_covered": 1,
    });
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&session[key], value, "{key} in {session}");
    }
    assert_eq!(session["changes"]["created"], 1, "{session}");
    assert_eq!(session["merkle_roots"].as_array().unwrap().len(), 2, "{session}");
    let plain = sessions.transcript(&["nono rollback list"]);
    assert!(plain.contains("[not covered: 1]"), "{plain}");
}

#[test]
fn one_that_runs_and_one_that_was_killed() {
    let sessions = Sessions::new();
    let world = &sessions.world;
    world.file("work/kept", "before\n");
    let line = "echo after > kept; echo ready; exec sleep 1000";
    let running =
        Running::start(&mut world.nono(&["run", "-s", "--rollback", "--allow", ".", "--", "sh", "-c", line]));
    running.until("ready");
    sessions.newest();
    sessions.golden_while_running(
        &[
            "nono rollback list",
            "nono rollback restore last --yes",
            "nono undo --yes",
            "nono rollback verify",
            "nono rollback cleanup --all --yes",
        ],
        str![[r#"
$ nono rollback list
[TMP]/work (1 session)
  [1]  [AGE]  sh -c 'echo after > kept; echo ready; exec sl...  [running]
$ nono rollback restore last --yes
! [nono] error: session [1] is running on [TMP]/work
! [nono] hint: wait until it ends, or run `nono stop [1]`
= exit 1
$ nono undo --yes
! [nono] error: session [1] is running on [TMP]/work
! [nono] hint: wait until it ends, or run `nono stop [1]`
= exit 1
$ nono rollback verify
! [nono] session [1] is running: not checked
$ nono rollback cleanup --all --yes
! [nono] nothing to remove

"#]],
    );
    running.signal(Signal::KILL);
    running.end();
    // Its snapshots taken while it ran are as they were; how many there are depends on the moment.
    let list = sessions.transcript(&["nono rollback list"]);
    assert!(list.contains("[interrupted]") && !list.contains("[live]"), "{list}");
    assert_eq!(sessions.json("nono rollback list --json", 0)[0]["status"], "interrupted");
    sessions.golden_while_running(&["nono rollback restore last --yes", "cat kept"], str![[r#"
$ nono rollback restore last --yes
! [nono] went back to before session [1] (sh -c 'echo after > kept; echo ready; exec sleep 1000', [AGE]) in [TMP]/work:
! [nono] changed 1
! [nono]  ~ kept
! [nono] undo this with: nono rollback undo [1].1
$ cat kept
before

"#]]);
    let outcome = sessions.sh("nono rollback verify");
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert!(outcome.out().contains("good (") && outcome.out().contains(", sealed)"), "{outcome:?}");
}

#[test]
fn what_cannot_be_read_is_said_and_is_not_the_end_of_the_list() {
    let sessions = Sessions::new();
    let world = &sessions.world;
    sessions.run("echo 1 > a");
    sessions.run("echo 2 > a");
    fs::write(sessions.folder(1).join("session.json"), "{ not json").unwrap();
    world.dir("state/rollbacks/20200101-000000-1", 0o700);
    world.file("state/rollbacks/odd\u{1b}[31m\nname", "nothing");
    sessions.golden(
        &["nono rollback list", "nono rollback list --all", "nono rollback verify"],
        str![[r#"
$ nono rollback list
[TMP]/work (2 sessions)
  [2]  [AGE]  sh -c 'echo 2 > a'  +0 ~1 -0
  [1]  [AGE]
! [nono] warning: 1 entry of [TMP]/state/rollbacks is not a readable session; `nono rollback list --all` says why
$ nono rollback list --all
[TMP]/work (2 sessions)
  [2]  [AGE]  sh -c 'echo 2 > a'  +0 ~1 -0
  [1]  [AGE]
! [nono] warning: [TMP]/state/rollbacks/odd\u{1b}[31m\u{a}name is not a session: it is not a directory
$ nono rollback verify
[2]: good (2 snapshots, [N] objects, [SIZE], sealed)
[1]: BAD (2 snapshots, [N] objects, [SIZE], seal broken)
  [TMP]/state/rollbacks/[1]/session.json is damaged: key must be a string at line 1 column 3
  [TMP]/state/rollbacks/[1]/session.json was changed after the session was sealed
! [nono] error: [TMP]/state/rollbacks/odd\u{1b}[31m\u{a}name is not a session: it is not a directory
! [nono] hint: `nono rollback repair --dry-run` shows what can be rebuilt
= exit 1

"#]],
    );
    let list = sessions.json("nono rollback list --all --json", 0);
    let errors = list.as_array().unwrap().iter().filter(|one| one["error"].is_string()).count();
    assert_eq!((list.as_array().unwrap().len(), errors), (3, 1), "{list}");
    assert_eq!(sessions.json("nono rollback list --json", 0).as_array().unwrap().len(), 2);
}

#[test]
fn names_do_not_reach_the_terminal_as_commands_to_it() {
    let sessions = Sessions::new();
    let world = &sessions.world;
    let project = "work/a\u{1b}[31m\nb";
    world.file(&format!("{project}/file"), "x\n");
    sessions.run_with("--read . --allow \"$(printf \"a\\033[31m\\nb\")\"", "rm */file; : \u{1b}[5m");
    let text = sessions.transcript(&[
        "nono rollback list",
        "nono rollback restore last --dry-run",
        "nono rollback restore last --yes",
        "nono rollback cleanup --all --dry-run",
    ]);
    assert!(!text.contains('\u{1b}'), "{text}");
    assert_eq!(fs::read_to_string(world.path(&format!("{project}/file"))).unwrap(), "x\n");
}
