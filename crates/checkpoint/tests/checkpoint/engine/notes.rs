//! What agents are told.

use nono_checkpoint::CheckpointChoice;

use crate::common::{World, origin, taken, text};

#[test]
fn an_agent_hears_once_what_is_gone() {
    let world = World::new();
    world.write("a", "1");
    taken(world.call("t1", || world.write("a", "2")));
    taken(world.call("t2", || world.write("b", "2")));
    let other = origin("s2", "x", "c");
    world.manager().agent_begins(&world.tree, &other).unwrap();
    world.manager().agent_left(&world.tree, &other).unwrap();
    let outcome = world.restore("2");
    assert_eq!(outcome.turns_undone, ["t1", "t2"]);
    let manager = world.manager();
    let notes = manager.take_notes("claude-code", "s1").unwrap();
    assert_eq!(notes.len(), 1);
    assert_eq!((&notes[0].turns_undone, &notes[0].project), (&outcome.turns_undone, &world.tree));
    assert_eq!(notes[0].files, ["a", "b"]);
    assert!(manager.take_notes("claude-code", "s1").unwrap().is_empty());
    assert!(manager.take_notes("claude-code", "s2").unwrap().is_empty());
    // They are gone already: going back further takes nothing more.
    world.write("a", "3");
    assert!(world.restore_with("2", &CheckpointChoice::default()).turns_undone.is_empty());
    // It was told that they are gone, so it is told that they are back.
    world.write("a", "1");
    let manager = world.manager();
    drop(manager.take_notes("claude-code", "s1").unwrap());
}

#[test]
fn an_undo_brings_the_turns_back() {
    let world = World::new();
    world.write("a", "1");
    taken(world.call("t1", || world.write("a", "2")));
    world.restore("1");
    world.manager().undo(&world.tree).unwrap();
    assert!(world.manager().take_notes("claude-code", "s1").unwrap().is_empty());
    assert_eq!(world.restore("1").turns_undone, ["t1"]);
    assert_eq!(world.manager().take_notes("claude-code", "s1").unwrap().len(), 1);
    world.manager().undo(&world.tree).unwrap();
    let notes = world.manager().take_notes("claude-code", "s1").unwrap();
    assert!(notes.len() == 1 && notes[0].came_back && notes[0].turns_undone == ["t1"], "{notes:?}");
    // One file is no turn, but the agent has to know.
    let choice = CheckpointChoice { paths: vec![world.path("a")], ..CheckpointChoice::default() };
    let outcome = world.manager().restore(&world.tree, &text("1"), &choice).unwrap();
    assert!(outcome.turns_undone.is_empty());
    let notes = world.manager().take_notes("claude-code", "s1").unwrap();
    assert_eq!((notes.len(), &notes[0].files), (1, &vec!["a".to_owned()]));
}
