//! Sessions that run: listed, looked into, ended; from outside alone.

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::Value;
use snapbox::str;

use super::world::{World, golden};
use nono_testkit::process::{Outcome, Running};

/// Says `ready`, and ends only when it is told to.
const WAITS: &str = "trap 'exit 0' HUP; echo ready; while :; do sleep 0.01; done";

/// A session under way.
fn start(world: &World, args: &[&str], line: &str) -> Running {
    let args = [&["run", "--allow-cwd"], args, &["--", "sh", "-c", line]].concat();
    let running = Running::start(&mut world.nono(&args));
    running.until("ready");
    running
}

fn id(world: &World, which: &str) -> String {
    let listed = json(&world.sh("nono ps --json"));
    let mut sessions = listed.as_array().unwrap().iter();
    let found = sessions.find(|session| session["name"] == which).unwrap();
    found["id"].as_str().unwrap().to_owned()
}

#[track_caller]
fn json(outcome: &Outcome) -> Value {
    outcome.quiet(0);
    serde_json::from_str(&outcome.out()).unwrap()
}

fn places(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.path("state/run")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn nothing_runs() {
    let world = World::new();
    world.golden(
        &[
            "nono ps",
            "nono ps --json",
            "nono inspect last",
            "nono stop last",
            "nono stop",
            "nono stop nobody --dry-run",
            "nono run -- true; nono ps",
            "nono wrap -- nono --version; nono ps",
        ],
        str![[r#"
$ nono ps
no session is running
$ nono ps --json
[]
$ nono inspect last
! [nono] error: no session is running
= exit 125
$ nono stop last
! [nono] error: no session is running
= exit 125
$ nono stop
! [nono] error: the following required arguments were not provided:
! [nono]   <ID>
! [nono]
! [nono] Usage: nono stop <ID>
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono stop nobody --dry-run
! [nono] error: no session is running
= exit 125
$ nono run -- true; nono ps
no session is running
$ nono wrap -- nono --version; nono ps
nono 0.1.0
no session is running

"#]],
    );
    assert_eq!(places(&world), Vec::<PathBuf>::new());
}

#[test]
fn inside_a_sandbox_there_is_nothing_to_see() {
    World::new().golden(
        &[
            "nono run -s -- nono ps",
            "nono run -s -- nono inspect last",
            "nono run -s -- nono stop last",
            "nono run -s --monitor -- nono ps",
            "nono run -s -- ls ../state/run",
        ],
        str![[r#"
$ nono run -s -- nono ps
! [nono] error: nono inside a sandbox cannot list or stop sessions
! [nono] hint: `nono why --self` explains this sandbox, `nono request` asks for more
= exit 125
$ nono run -s -- nono inspect last
! [nono] error: nono inside a sandbox cannot list or stop sessions
! [nono] hint: `nono why --self` explains this sandbox, `nono request` asks for more
= exit 125
$ nono run -s -- nono stop last
! [nono] error: nono inside a sandbox cannot list or stop sessions
! [nono] hint: `nono why --self` explains this sandbox, `nono request` asks for more
= exit 125
$ nono run -s --monitor -- nono ps
! [nono] error: nono inside a sandbox cannot list or stop sessions
! [nono] hint: `nono why --self` explains this sandbox, `nono request` asks for more
= exit 125
$ nono run -s -- ls ../state/run
! ls: cannot access '../state/run': Permission denied
= exit 2

"#]],
    );
}

#[test]
fn a_session_is_listed_shown_and_ended() {
    let world = World::new();
    let first = start(&world, &["--name", "first"], WAITS);
    let second = start(&world, &["--name", "second"], WAITS);
    let (one, two) = (id(&world, "first"), id(&world, "second"));
    let clean = |text: String| {
        let text = text.replace(&one, "[ID 1]").replace(&two, "[ID 2]");
        let text = text.replace(&first.child.id().to_string(), "[PID 1]");
        text.replace(&second.child.id().to_string(), "[PID 2]")
    };
    let listed = json(&world.sh("nono ps --json"));
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let pids: Vec<u64> = listed.as_array().unwrap().iter().map(|one| one["pid"].as_u64().unwrap()).collect();
    assert!(pids.contains(&first.child.id().into()) && pids.contains(&second.child.id().into()), "{pids:?}");
    let shared: String = one.chars().zip(two.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    let ambiguous = world.sh(&format!("nono stop {shared}"));
    assert_eq!(ambiguous.code(), Some(125));
    assert!(ambiguous.err().contains("matches several sessions"), "{ambiguous:?}");
    let text =
        clean(world.transcript(&["nono inspect first", "nono stop first --dry-run", "nono stop nobody"]));
    let text: Vec<&str> =
        text.lines().filter(|line| !line.starts_with("started:") && !line.starts_with("grants:")).collect();
    golden(
        text.join("\n") + "\n",
        str![[r#"
$ nono inspect first
session:    [ID 1]
name:       first
pid:        [PID 1]
command:    sh -c 'trap '\''exit 0'\'' HUP; echo ready; while :; do sleep 0.01; done'
directory:  [TMP]/work
questions:  0 asked, 0 waiting
rollback:   none
refused:    0
$ nono stop first --dry-run
would stop [ID 1]: sh -c 'trap '\''exit 0'\'' HUP; echo ready; while :; do sleep 0.01; done'
$ nono stop nobody
! [nono] error: no running session is called "nobody"
! [nono] hint: `nono ps` lists the running sessions
= exit 125

"#]],
    );
    let looked = json(&world.sh(&format!("nono inspect {one} --json")));
    assert_eq!((&looked["id"], &looked["questions_waiting"]), (&Value::from(one.clone()), &Value::from(0)));
    assert_eq!(looked["mediation"]["refused"], Value::Array(Vec::new()));
    world.sh("nono stop first").quiet(0);
    let ended = first.end();
    assert_eq!(ended.code(), Some(143), "{ended:?}");
    assert_eq!(ended.err(), "[nono] the command was ended by `nono stop`\n");
    assert_eq!(json(&world.sh("nono ps --json")).as_array().unwrap().len(), 1);
    world.sh(&format!("nono stop {two}")).quiet(0);
    second.end();
    assert_eq!(world.sh("nono ps").out(), "no session is running\n");
    assert_eq!(places(&world), Vec::<PathBuf>::new());
    world.left_nothing();
}

/// The whole tree, also what does not listen.
#[test]
fn what_does_not_want_to_end_is_killed() {
    let world = World::new();
    let deaf = "trap '' TERM; (trap '' TERM; setsid sleep 1000 &) ; echo ready; while :; do sleep 0.01; done";
    let running = start(&world, &["-s"], deaf);
    world.sh("nono stop last").quiet(0);
    let ended = running.end();
    assert_eq!(ended.code(), Some(137), "{ended:?}");
    world.left_nothing();
}

#[test]
fn what_the_killed_leave_is_not_listed_and_swept_by_the_next_run() {
    let world = World::new();
    let running = start(&world, &[], WAITS);
    assert_eq!(places(&world).len(), 1);
    running.signal(Signal::KILL);
    running.end();
    assert_eq!(places(&world).len(), 1, "no process was left to remove it");
    assert_eq!(world.sh("nono ps").out(), "no session is running\n");
    let next = world.sh("nono run -- true");
    assert!(next.code() == Some(0) && next.err().contains("was killed together with nono"), "{next:?}");
    assert_eq!(places(&world), Vec::<PathBuf>::new());
    world.sh("nono run -- true").quiet(0);
}

/// A socket's path has 107 bytes; a state folder may be deeper.
#[test]
fn a_deep_state_folder() {
    let world = World::new();
    let deep = format!("state/{}/{}", "d".repeat(100), "e".repeat(100));
    let state = world.dir(&deep, 0o700);
    let world = world.with("NONO_HOME", Some(state.to_str().unwrap()));
    let running = start(&world, &["-s", "--name", "deep"], WAITS);
    world.sh("nono inspect deep").quiet(0);
    world.sh("nono stop deep").quiet(0);
    assert_eq!(running.end().code(), Some(143));
}

/// A run goes on where nothing can be written; it is only not listed.
#[test]
fn a_state_folder_that_cannot_be_written() {
    let world = World::new();
    world.sh("nono run -- true").quiet(0);
    fs::remove_dir(world.path("state/run")).unwrap();
    world.dir("state", 0o500);
    world.sh("nono run -- true").quiet(0);
    let outcome = world.sh("nono run -v -- true");
    assert!(outcome.err().contains("`nono ps` cannot show this session: Permission denied"), "{outcome:?}");
    world.dir("state", 0o700);
}
