//! Hard links: groups of names come back, and no other name is ever written through.

use std::fs;
use std::os::unix::fs::MetadataExt;

use nono_snapshot::restore::{NoteKind, Selection};

use crate::kit::{World, inode, set_mtime};

fn together(world: &World, names: &[&str]) -> bool {
    names.windows(2).all(|two| inode(&world.at(two[0])) == inode(&world.at(two[1])))
}

fn group(world: &World) {
    world.write("x/a", "shared");
    fs::create_dir(world.at("y")).unwrap();
    fs::hard_link(world.at("x/a"), world.at("x/b")).unwrap();
    fs::hard_link(world.at("x/a"), world.at("y/c")).unwrap();
}

#[test]
fn a_lost_name_is_linked_to_those_that_are_left() {
    for damage in [
        (|world| fs::remove_file(world.at("y/c")).unwrap()) as fn(&World),
        |world| fs::remove_dir_all(world.at("y")).unwrap(),
        |world| {
            fs::remove_file(world.at("y/c")).unwrap();
            world.write("y/c", "shared");
        },
        |world| {
            fs::remove_file(world.at("y/c")).unwrap();
            world.write("y/c", "other");
        },
        |world| {
            fs::remove_file(world.at("y/c")).unwrap();
            world.write("y/c/now/a", "directory");
        },
    ] {
        let world = World::new();
        group(&world);
        let target = world.snap();
        let kept = inode(&world.at("x/a"));
        damage(&world);
        world.check(&target);
        assert!(together(&world, &["x/a", "x/b", "y/c"]));
        assert_eq!(inode(&world.at("x/a")), kept);
    }
}

#[test]
fn all_names_come_back_as_one_file() {
    let world = World::new();
    group(&world);
    let target = world.snap();
    fs::remove_dir_all(world.at("x")).unwrap();
    fs::remove_dir_all(world.at("y")).unwrap();
    world.check(&target);
    assert!(together(&world, &["x/a", "x/b", "y/c"]));
    // Its inode number differs now, which is no difference.
    let again = world.check(&target);
    assert!(again.changes.is_empty());
    // Written through all names.
    world.write("x/a", "overwritten");
    world.check(&target);
    // Directories in the place of all of them.
    for name in ["x/a", "x/b", "y/c"] {
        fs::remove_file(world.at(name)).unwrap();
        world.write(&format!("{name}/in"), "dir");
    }
    world.check(&target);
    assert!(together(&world, &["x/a", "x/b", "y/c"]));
}

#[test]
fn files_that_were_apart_come_apart_again() {
    let world = World::new();
    world.write("a", "same");
    world.write("b", "same");
    world.mode("b", 0o600);
    let target = world.snap();
    fs::remove_file(world.at("b")).unwrap();
    fs::hard_link(world.at("a"), world.at("b")).unwrap();
    fs::hard_link(world.at("a"), world.at("c")).unwrap();
    world.check(&target);
    assert!(!together(&world, &["a", "b"]));
}

#[test]
fn groups_that_were_mixed_up() {
    let world = World::new();
    for (one, other) in [("a1", "a2"), ("b1", "b2")] {
        world.write(one, "equal content");
        fs::hard_link(world.at(one), world.at(other)).unwrap();
    }
    for name in ["a1", "b1"] {
        set_mtime(&world.at(name), 5, 5);
    }
    let target = world.snap();
    fs::rename(world.at("a1"), world.at("t")).unwrap();
    fs::rename(world.at("b1"), world.at("a1")).unwrap();
    fs::rename(world.at("t"), world.at("b1")).unwrap();
    world.check(&target);
    assert!(together(&world, &["a1", "a2"]) && together(&world, &["b1", "b2"]));
    assert!(!together(&world, &["a1", "b1"]));
}

/// The agent links a file of another user into the tree and changes it: the other name keeps its content.
#[test]
fn names_outside_are_never_written_through() {
    let world = World::new();
    world.write("file", "inside");
    let target = world.snap();
    let outside = world.base.path().join("outside");
    fs::write(&outside, "inside").unwrap();
    fs::remove_file(world.at("file")).unwrap();
    fs::hard_link(&outside, world.at("file")).unwrap();
    world.mode("file", 0o777);
    set_mtime(&outside, 9, 9);
    let current = world.snap();
    let plan = world.plan(&target, &current, &Selection::All);
    assert_eq!(plan.notes().iter().map(|note| note.kind).collect::<Vec<_>>(), [NoteKind::LinkedOutside]);
    world.check(&target);
    let meta = fs::metadata(&outside).unwrap();
    assert_eq!((meta.mode() & 0o7777, meta.mtime(), meta.nlink()), (0o777, 9, 1));
}

#[test]
fn one_chosen_name_does_not_change_the_others() {
    let world = World::new();
    world.write("a", "one");
    world.write("b", "two");
    let target = world.snap();
    fs::remove_file(world.at("a")).unwrap();
    fs::hard_link(world.at("b"), world.at("a")).unwrap();
    world.mode("b", 0o640);
    let current = world.snap();
    let outcome = world.restore_with(&target, &current, &Selection::Paths(vec![world.at("a")]));
    assert!(outcome.failed.is_empty() && outcome.skipped.is_empty());
    assert_eq!((world.read("a").as_str(), world.read("b").as_str()), ("one", "two"));
    assert_eq!(fs::metadata(world.at("b")).unwrap().mode() & 0o7777, 0o640);
}
