//! The agent's changes go back, a person's stay.

use std::path::PathBuf;

use nono_checkpoint::{CheckpointChoice, Conflicts};

use crate::common::{World, kept, origin, taken, text};

fn with(conflicts: Conflicts) -> CheckpointChoice {
    CheckpointChoice { conflicts, ..CheckpointChoice::default() }
}

#[test]
fn what_was_changed_after_the_agent_is_kept() {
    let world = World::new();
    world.write("agents", "1");
    world.write("mine", "1");
    world.write("both", "1");
    taken(world.call("t1", || {
        world.write("agents", "2");
        world.write("both", "2");
    }));
    world.write("mine", "my edit");
    world.write("both", "my edit of both");
    world.write("my new file", "x");
    let plan = world.manager().plan(&world.tree, &text("1"), &CheckpointChoice::default()).unwrap();
    assert!(!plan.cannot_tell_conflicts);
    let outcome = world.restore("1");
    assert_eq!(world.read("agents"), "1");
    assert_eq!(world.read("mine"), "my edit");
    assert_eq!(world.read("both"), "my edit of both");
    assert!(world.exists("my new file"));
    let paths = ["both", "mine", "my new file"].map(|name| world.path(name));
    assert_eq!(kept(&outcome), paths);
    assert_eq!(plan.kept, outcome.kept);
    // They are still not the agent's, when it is asked for again.
    assert_eq!(kept(&world.restore("1")), paths);
    // Forced they go back too, and an undo brings them back as not the agent's.
    let forced = world.restore_with("1", &with(Conflicts::Force));
    assert!(forced.kept.is_empty(), "{forced:?}");
    assert_eq!((world.read("mine").as_str(), world.exists("my new file")), ("1", false));
    world.manager().undo(&world.tree).unwrap();
    assert_eq!(world.read("mine"), "my edit");
    assert_eq!(kept(&world.restore("1")), paths);
}

#[test]
fn an_edit_between_two_calls_is_not_the_agents_until_it_writes_there() {
    let world = World::new();
    world.write("a", "1");
    world.write("b", "1");
    taken(world.call("t1", || world.write("a", "agent 1")));
    world.write("a", "person");
    world.write("b", "person");
    taken(world.call("t2", || world.write("c", "agent 2")));
    // Long before the agent's last call, and yet not its doing.
    let outcome = world.restore("2");
    assert_eq!((world.read("a").as_str(), world.read("b").as_str()), ("person", "person"));
    assert!(!world.exists("c"));
    assert_eq!(kept(&outcome), [world.path("a"), world.path("b")]);
    // Now the agent writes over it: from there on it is the agent's.
    world.call("t3", || world.write("a", "agent 3"));
    let outcome = world.restore("2");
    assert_eq!(kept(&outcome), [world.path("b")], "{outcome:?}");
    assert_eq!(world.read("a"), "1");
}

#[test]
fn damage_by_a_shell_is_undone() {
    let world = World::new();
    world.write("src/a", "1");
    world.write("src/deep/b", "2");
    world.write("keep", "3");
    taken(world.call("t1", || world.sh("rm -rf src; sed -i s/3/4/ keep; mkdir -p x/y; mv keep x/y/kept")));
    let outcome = world.restore("1");
    assert!(outcome.kept.is_empty(), "{outcome:?}");
    assert_eq!((world.read("src/a").as_str(), world.read("src/deep/b").as_str()), ("1", "2"));
    assert_eq!(world.read("keep"), "3");
    assert!(!world.exists("x"));
    // The bytes of what was removed are stored.
    world.manager().undo(&world.tree).unwrap();
    assert_eq!(world.read("x/y/kept"), "4");
    assert!(!world.exists("src"));
}

#[test]
fn a_call_that_never_ended_claims_nothing() {
    let world = World::new();
    world.write("a", "1");
    taken(world.manager().ensure_checkpoint(&world.tree, "r", &origin("s1", "t1", "c1")));
    // The agent is killed in the middle of its work.
    world.write("a", "half");
    let plan = world.manager().plan(&world.tree, &text("1"), &CheckpointChoice::default()).unwrap();
    assert!(plan.cannot_tell_conflicts);
    assert!(world.restore("1").kept.is_empty());
    assert_eq!(world.read("a"), "1");
    // The next turn of the same conversation puts that in order: what happened until then was the agent's.
    world.write("a", "still the old call");
    taken(world.call("t2", || world.write("b", "agent")));
    world.write("b", "person");
    let outcome = world.restore("2");
    assert_eq!(kept(&outcome), [world.path("b")]);
    assert_eq!(world.read("a"), "1");
}

#[test]
fn calls_at_the_same_time_are_the_agents() {
    let world = World::new();
    world.write("a", "1");
    taken(world.manager().ensure_checkpoint(&world.tree, "r", &origin("s1", "t1", "c1")));
    world.write("a", "by call 1");
    taken(world.manager().ensure_checkpoint(&world.tree, "r", &origin("s2", "t1", "c1")));
    world.write("b", "by call 2");
    world.manager().agent_left(&world.tree, &origin("s2", "t1", "c1")).unwrap();
    world.write("a", "by call 1 again");
    world.manager().agent_left(&world.tree, &origin("s1", "t1", "c1")).unwrap();
    let outcome = world.restore("2");
    assert!(outcome.kept.is_empty(), "{outcome:?}");
    assert_eq!((world.read("a").as_str(), world.exists("b")), ("1", false));
}

#[test]
fn an_agent_cannot_hide_behind_an_ignore_file() {
    let world = World::new();
    world.write("a", "1");
    world.write("b", "1");
    world.sh("git init -q .");
    taken(world.call("t1", || {
        world.write(".gitignore", "a\n");
        world.write("a", "spoiled");
    }));
    let outcome = world.restore("1");
    assert!(outcome.kept.is_empty(), "{outcome:?}");
    assert_eq!((world.read("a").as_str(), world.exists(".gitignore")), ("1", false));
}

#[test]
fn checkpoints_made_by_hand_bring_everything_back() {
    let world = World::new();
    world.write("a", "1");
    taken(world.call("t1", || world.write("a", "agent")));
    let by_hand = world.create();
    world.write("a", "by whomever");
    let outcome = world.restore(by_hand.id.as_str());
    assert!(outcome.kept.is_empty(), "{outcome:?}");
    assert_eq!(world.read("a"), "agent");
    // Of what was before it, that is a person's change still.
    world.write("a", "by whomever");
    assert_eq!(kept(&world.restore("2")), [world.path("a")]);
}

#[test]
fn both_sides_of_a_text_are_merged() {
    let world = World::new();
    let lines = |first: &str, last: &str| format!("{first}\nb\nc\nd\ne\nf\ng\n{last}\n");
    world.write("text", lines("a", "h"));
    world.write("clash", "a\n");
    world.write("binary", b"\0a");
    taken(world.call("t1", || {
        world.write("text", lines("agent", "h"));
        world.write("clash", "agent\n");
        world.write("binary", b"\0b");
    }));
    world.write("text", lines("agent", "person"));
    world.write("clash", "person\n");
    world.write("binary", b"\0c");
    let merge = with(Conflicts::Merge { markers: false });
    let plan = world.manager().plan(&world.tree, &text("1"), &merge).unwrap();
    assert_eq!(merged(&plan.written_merges()), [world.path("text")]);
    let outcome = world.restore_with("1", &merge);
    assert_eq!(world.read("text"), lines("a", "person"));
    assert_eq!(merged(&outcome.written_merges()), [world.path("text")]);
    assert_eq!(kept(&outcome), [world.path("binary"), world.path("clash")]);
    assert_eq!(plan.kept, outcome.kept);
    // Taken back as one.
    let undone = world.manager().undo(&world.tree).unwrap();
    assert_eq!(world.read("text"), lines("agent", "person"), "{undone:?}");
    let outcome = world.restore_with("1", &with(Conflicts::Merge { markers: true }));
    assert_eq!(merged(&outcome.written_merges()), [world.path("clash"), world.path("text")]);
    let marked = world.read("clash");
    assert!(marked.contains("<<<<<<< now\nperson\n") && marked.contains(">>>>>>> checkpoint "), "{marked}");
}

#[test]
fn an_undo_keeps_what_was_done_since() {
    let world = World::new();
    world.write("a", "1");
    world.write("b", "1");
    taken(world.call("t1", || world.sh("echo 2 > a; echo 2 > b")));
    world.restore("1");
    world.write("b", "after the restore");
    let undone = world.manager().undo(&world.tree).unwrap();
    assert_eq!((world.read("a").as_str(), world.read("b").as_str()), ("2\n", "after the restore"));
    assert_eq!(kept(&undone), [world.path("b")]);
}

#[test]
fn what_the_agent_removed_comes_back_into_a_folder_that_was_made_again() {
    let world = World::new();
    world.write("d/e.txt", "precious");
    world.write("other", "1");
    taken(world.call("t1", || std::fs::remove_dir_all(world.path("d")).unwrap()));
    world.write("d/mine", "a person's");
    let outcome = world.restore("1");
    assert_eq!((world.read("d/e.txt").as_str(), world.read("d/mine").as_str()), ("precious", "a person's"));
    assert_eq!(kept(&outcome), [world.path("d/mine")]);
}

#[test]
fn a_repository_that_differs_is_named() {
    let world = World::new();
    world.sh("git init -q . && echo 1 > a");
    taken(world.call("t1", || world.sh("rm -rf .git/refs .git/objects; echo 2 > a")));
    let outcome = world.restore("1");
    assert_eq!(world.read("a"), "1\n");
    assert_eq!(outcome.repositories, [world.path(".git")]);
    assert!(outcome.kept.is_empty() && !world.exists(".git/objects"), "{outcome:?}");
}

#[test]
fn where_nothing_goes_back_no_turn_is_undone() {
    let world = World::new();
    world.write("a", "1");
    taken(world.call("t1", || {}));
    assert!(world.restore("1").turns_undone.is_empty());
}

#[test]
fn an_undo_that_keeps_something_can_be_said_again() {
    let world = World::new();
    world.write("a", "1");
    world.write("b", "1");
    taken(world.call("t1", || {
        world.write("a", "2");
        world.write("b", "2");
    }));
    world.restore("1");
    world.write("a", "a person's");
    let undone = world.manager().undo(&world.tree).unwrap();
    assert_eq!((kept(&undone), world.read("b").as_str()), (vec![world.path("a")], "2"));
    std::fs::write(world.path("a"), "1").unwrap();
    world.manager().undo(&world.tree).unwrap();
    assert_eq!(world.read("a"), "2");
}

fn merged(merges: &[&nono_history::Merge]) -> Vec<PathBuf> {
    merges.iter().map(|merge| merge.path.clone()).collect()
}
