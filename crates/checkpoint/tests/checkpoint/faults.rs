//! A kill at each step that changes anything on disk: what was there before is there still, and the next command puts
//! in order what was left. What can only happen to a whole process happens to a child: this binary runs itself again.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test stops where it fails"
)]

use std::path::Path;
use std::process::Command;

use crate::common::{World, origin, text};
use nono_checkpoint::{CheckpointChoice, Conflicts, Ensured};
use nono_snapshot::failpoint;

const SCENARIO: &str = "NONO_FAULTS_SCENARIO";
const BASE: &str = "NONO_FAULTS_BASE";
const AT: &str = "NONO_FAULTS_AT";

/// The child.
#[test]
fn entry() {
    let Ok(scenario) = std::env::var(SCENARIO) else { return };
    let world = World::at(Path::new(&std::env::var(BASE).unwrap()));
    failpoint::abort_at(std::env::var(AT).unwrap().parse().unwrap());
    let mut manager = world.manager();
    let origin = origin("s1", "t2", "c");
    match scenario.as_str() {
        "ensure" => {
            let ensured = manager.ensure_checkpoint(&world.tree, "before it", &origin);
            assert!(matches!(ensured, Ensured::Taken { .. }), "{ensured:?}");
        }
        "left" => manager.agent_left(&world.tree, &origin).unwrap(),
        "restore" => drop(manager.restore(&world.tree, &text("1"), &CheckpointChoice::default()).unwrap()),
        "merge" => {
            let conflicts = Conflicts::Merge { markers: false };
            let choice = CheckpointChoice { conflicts, ..CheckpointChoice::default() };
            drop(manager.restore(&world.tree, &text("1"), &choice).unwrap());
        }
        "force" => {
            let choice = CheckpointChoice { conflicts: Conflicts::Force, ..CheckpointChoice::default() };
            drop(manager.restore(&world.tree, &text("1"), &choice).unwrap());
        }
        "undo" => drop(manager.undo(&world.tree).unwrap()),
        "turn" => {
            let turn = manager.find_turn(&world.tree, "t1").unwrap();
            drop(manager.undo_turn(&world.tree, &turn, &CheckpointChoice::default()).unwrap());
        }
        other => panic!("no such operation: {other}"),
    }
    failpoint::disarm();
}

/// Whether the child came to its end.
fn run(world: &World, scenario: &str, at: u64) -> bool {
    let out = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "faults::entry", "--nocapture", "--test-threads", "1"])
        .env(SCENARIO, scenario)
        .env(BASE, &world.base)
        .env(AT, at.to_string())
        .output()
        .unwrap();
    if out.status.success() {
        return true;
    }
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    let killed = std::os::unix::process::ExitStatusExt::signal(&out.status) == Some(9);
    assert!(killed, "{scenario} at {at}: {text}");
    false
}

/// Kill it at each step in turn (or at every so many), each time in a world of its own, and look at what is left.
fn each_step(scenario: &str, stride: usize, prepare: impl Fn(&World), check: impl Fn(&World, u64)) {
    for at in (0..500).step_by(stride) {
        let world = World::new();
        prepare(&world);
        let complete = run(&world, scenario, at);
        check(&world, at);
        let folder = nono_checkpoint::project::folder_of(&world.host, &world.tree);
        let mut all: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        all.retain(|name| name.to_string_lossy().contains(".tmp"));
        assert!(all.is_empty(), "{scenario} at {at} left {all:?}");
        if complete {
            assert!(at > 3, "{scenario} has hardly any steps");
            eprintln!("{scenario}: killed at steps up to {at}");
            return;
        }
    }
    panic!("{scenario} does not end");
}

#[test]
fn a_first_checkpoint() {
    let prepare = |world: &World| world.write("a", "1");
    each_step("ensure", 1, prepare, |world, at| {
        world.write("a", "2");
        let ensured = world.manager().ensure_checkpoint(&world.tree, "again", &origin("s1", "t3", "c"));
        assert!(matches!(ensured, Ensured::Taken { .. }), "at {at}: {ensured:?}");
        let list = world.manager().list(&world.tree).unwrap();
        assert!(list.len() <= 2, "{list:?}");
        world.manager().restore(&world.tree, &text("1"), &CheckpointChoice::default()).unwrap();
        assert_eq!(world.read("a"), "2");
    });
}

/// A project with two checkpoints, and a person's edit after the agent's.
fn worked(world: &World) {
    world.write("a", "1\n2\n3\n4\n5\n6\n7\n");
    world.write("b", "1");
    world.write("mine", "1");
    world.call("t0", || world.write("b", "2"));
    world.call("t1", || world.sh("sed -i s/1/agent/ a; echo 3 > b; echo 3 > new"));
    world.write("mine", "person");
    world.sh("sed -i s/7/person/ a");
}

#[test]
fn a_next_checkpoint() {
    let ids = |world: &World| -> Vec<_> {
        world.manager().list(&world.tree).unwrap().into_iter().map(|line| line.id).collect()
    };
    each_step("ensure", 1, worked, |world, at| {
        let list = world.manager().list(&world.tree).unwrap();
        // Old or new, and the new one has its line whenever it was killed.
        assert!((2..=3).contains(&list.len()), "at {at}: {list:?}");
        let before = ids(world);
        let origin = origin("s1", "t2", "c");
        let again = world.manager().ensure_checkpoint(&world.tree, "before it", &origin);
        assert!(!matches!(again, Ensured::Failed { .. }), "at {at}: {again:?}");
        let after = ids(world);
        assert_eq!(after.len(), 3, "at {at}");
        assert!(after.ends_with(&before), "at {at}: {after:?} {before:?}");
        assert_eq!(
            world
                .manager()
                .find(&world.tree, &nono_checkpoint::CheckpointTarget::Turn("t2".into()))
                .unwrap()
                .id,
            after[0]
        );
        // What a person changed before is a person's still.
        world.write("b", "4");
        world.manager().agent_left(&world.tree, &origin).unwrap();
        world.restore("2");
        assert_eq!((world.read("mine").as_str(), world.read("b").as_str()), ("person", "2"), "at {at}");
    });
}

#[test]
fn the_end_of_a_call() {
    let prepare = |world: &World| {
        worked(world);
        world.manager().ensure_checkpoint(&world.tree, "r", &origin("s1", "t2", "c"));
        world.sh("echo 5 > b; echo 5 > later");
    };
    each_step("left", 1, prepare, |world, at| {
        world.manager().agent_left(&world.tree, &origin("s1", "t2", "c")).unwrap();
        world.write("later", "person");
        let outcome = world.restore("1");
        assert_eq!(crate::common::kept(&outcome), [world.path("later")], "at {at}");
        assert_eq!(world.read("b"), "3\n");
    });
}

fn is_restored(world: &World) -> bool {
    let new = world.exists("new");
    assert_eq!(world.read("mine"), "person");
    assert_eq!(world.read("b"), if new { "3\n" } else { "2" });
    !new
}

#[test]
fn a_restore_and_its_undo() {
    for (scenario, stride) in [("restore", 3), ("merge", 2)] {
        each_step(scenario, stride, worked, |world, at| {
            // The next command completes it, or it never began.
            world.manager().list(&world.tree).unwrap();
            let restored = is_restored(world);
            let merged = "1\n2\n3\n4\n5\n6\nperson\n";
            let person = "agent\n2\n3\n4\n5\n6\nperson\n";
            let text = world.read("a");
            assert!(text == person || (restored && scenario == "merge" && text == merged), "at {at}: {text}");
            if restored {
                let undone = world.manager().undo(&world.tree).unwrap();
                assert!(undone.failed.is_empty() && !is_restored(world), "at {at}: {undone:?}");
                assert_eq!(world.read("a"), person, "{scenario} at {at}: {undone:?}");
            }
            assert!(world.manager().undo(&world.tree).is_err(), "at {at}");
            // And a person's work is still a person's.
            world.restore("1");
            assert!(is_restored(world), "at {at}");
            assert_eq!(world.read("a"), person);
        });
    }
}

#[test]
fn an_undo() {
    let prepare = |world: &World| {
        worked(world);
        world.restore("1");
    };
    each_step("undo", 2, prepare, |world, at| {
        world.manager().list(&world.tree).unwrap();
        if is_restored(world) {
            world.manager().undo(&world.tree).unwrap();
        }
        assert!(!is_restored(world), "at {at}");
        assert!(world.manager().undo(&world.tree).is_err(), "at {at}");
        assert_eq!(world.restore("1").turns_undone, ["t1"], "at {at}");
    });
}

/// Changes after the kill were not part of any question: the process that completes the restore keeps them, and says so.
#[test]
fn work_after_the_kill_stays() {
    let names: Vec<String> = (0..6).map(|n| format!("f{n}")).collect();
    let prepare = |world: &World| {
        for name in &names {
            world.write(name, "1");
        }
        world.create();
        for name in &names {
            world.write(name, "2");
        }
        world.write("made", "2");
    };
    let completed = std::cell::Cell::new(0);
    for scenario in ["restore", "force"] {
        each_step(scenario, 4, prepare, |world, at| {
            world.write("f3", "a person's edit");
            world.write("f4", "another");
            world.write("after", "a person's file");
            let manager = world.manager();
            manager.list(&world.tree).unwrap();
            for done in manager.take_completed() {
                assert_eq!(done.project, world.tree);
                completed.set(completed.get() + 1);
            }
            for (name, text) in [("f3", "a person's edit"), ("f4", "another"), ("after", "a person's file")] {
                assert!(world.exists(name) && world.read(name) == text, "{scenario} at {at}: {name}");
            }
            // Whatever became of the others, it is one or the other.
            let others = |world: &World| ["f0", "f1", "f2", "f5"].map(|name| world.read(name));
            assert!([["1"; 4], ["2"; 4]].iter().any(|all| others(world) == *all), "at {at}");
        });
    }
    assert!(completed.get() > 2, "kills hit a restore that was under way");
}

/// A turn of two parts, since a person worked between its calls, and a later turn.
#[test]
fn a_turn_that_is_taken_back() {
    let prepare = |world: &World| {
        for name in ["first", "second", "mine", "later"] {
            world.write(name, "1\n");
        }
        world.call("t1", || world.write("first", "2\n"));
        world.write("mine", "2\n");
        world.call("t1", || world.write("second", "2\n"));
        world.call("t2", || world.write("later", "2\n"));
    };
    let present = |world: &World| ["first", "second", "mine", "later"].map(|name| world.read(name));
    each_step("turn", 2, prepare, |world, at| {
        world.manager().list(&world.tree).unwrap();
        let [first, second, mine, later] = present(world);
        assert_eq!((mine.as_str(), later.as_str()), ("2\n", "2\n"), "at {at}");
        let turn = world.manager().find_turn(&world.tree, "t1").unwrap();
        let whole = first == "1\n" && second == "1\n";
        assert!(!turn.undone || whole, "at {at}: said to be undone: {first:?} {second:?}");
        // Whatever was left is done now, and all of it can be taken back.
        world.manager().undo_turn(&world.tree, &turn, &CheckpointChoice::default()).unwrap();
        assert_eq!(present(world), ["1\n", "1\n", "2\n", "2\n"], "at {at}");
        while world.manager().undo(&world.tree).is_ok() {}
        assert_eq!(present(world), ["2\n"; 4], "at {at}");
    });
}
