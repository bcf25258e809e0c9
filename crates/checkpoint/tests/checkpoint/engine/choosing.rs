//! Selection of a checkpoint, and of paths in it.

use std::path::PathBuf;

use nono_checkpoint::{CheckpointChoice, CheckpointError, CheckpointTarget, Origin};

use crate::common::{World, kept, taken, text};

#[test]
fn numbers_ids_names_and_strangers() {
    let world = World::new();
    let manager = world.manager();
    world.write("a", "1");
    let first = world.create();
    world.write("a", "2");
    let second = world.create();
    let find = |target: &str| manager.find(&world.tree, &text(target));
    assert_eq!(find("1").unwrap().id, second.id);
    assert_eq!(find("2").unwrap().id, first.id);
    assert_eq!(find(first.id.short()).unwrap().id, first.id);
    assert_eq!(find(first.id.as_str()).unwrap().id, first.id);
    for missing in ["0", "3", "99999999999999999999", "", "nobody", "A", "../x"] {
        let error = find(missing).unwrap_err();
        assert!(matches!(error, CheckpointError::NotFound { .. }), "{missing}: {error}");
    }
    let named = manager.set_name(&world.tree, &text("2"), "before the big one").unwrap();
    assert_eq!((named.id, named.name.as_deref()), (first.id.clone(), Some("before the big one")));
    assert_eq!(find("before the big one").unwrap().id, first.id);
    for wrong in ["12", " a", "a\nb", "before the big one", &"x".repeat(101)] {
        let error = manager.set_name(&world.tree, &text("1"), wrong).unwrap_err();
        assert!(matches!(error, CheckpointError::BadName { .. }), "{wrong}: {error}");
    }
    assert!(manager.set_pinned(&world.tree, &text("1"), true).unwrap().pinned);
    // Another project has other checkpoints.
    let other = world.host.home.join("work/other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("x"), "x").unwrap();
    let theirs = taken(world.manager().create(&other, "r", &Origin::default()));
    for target in [text(theirs.id.short()), CheckpointTarget::Id(theirs.id.clone())] {
        let error = world.manager().restore(&world.tree, &target, &CheckpointChoice::default()).unwrap_err();
        let CheckpointError::OtherProject { other: named, .. } = error else { panic!("{error}") };
        assert_eq!(named, other);
    }
    let turn = CheckpointTarget::Turn("t".to_owned());
    assert!(matches!(manager.find(&world.tree, &turn), Err(CheckpointError::NoTurn { .. })));
}

#[test]
fn one_file_or_one_folder() {
    let world = World::new();
    world.write("a", "1");
    world.write("dir/b", "1");
    world.write("dir/deep/c", "1");
    world.create();
    world.sh("echo 2 > a; rm -r dir; mkdir dir; echo 2 > dir/new; echo 2 > new");
    let some = |names: &[&str]| CheckpointChoice {
        paths: names.iter().map(|name| world.path(name)).collect(),
        ..CheckpointChoice::default()
    };
    let outcome = world.restore_with("1", &some(&["dir/b"]));
    assert_eq!(world.read("dir/b"), "1");
    assert!(world.exists("dir/new") && !world.exists("dir/deep"));
    assert!(outcome.turns_undone.is_empty());
    world.restore_with("1", &some(&["dir"]));
    assert_eq!(world.read("dir/deep/c"), "1");
    assert!(!world.exists("dir/new"));
    assert_eq!((world.read("a").as_str(), world.exists("new")), ("2\n", true));
    // Both are taken back one by one.
    world.manager().undo(&world.tree).unwrap();
    assert!(world.exists("dir/new") && !world.exists("dir/deep"));
    world.manager().undo(&world.tree).unwrap();
    assert!(!world.exists("dir/b"));
    // What was created since goes, when it is named.
    world.restore_with("1", &some(&["new"]));
    assert!(!world.exists("new"));
    // A path is a path: nothing in it means anything.
    let outcome = world.restore_with("1", &some(&["*"]));
    assert_eq!(kept(&outcome), [world.path("*")]);
}

#[test]
fn paths_outside_the_project_are_refused() {
    let world = World::new();
    world.write("a", "1");
    std::fs::write(world.base.join("secret"), "x").unwrap();
    std::os::unix::fs::symlink(&world.base, world.path("out")).unwrap();
    world.create();
    world.write("a", "2");
    let refused = |path: PathBuf| {
        let choice = CheckpointChoice { paths: vec![path], ..CheckpointChoice::default() };
        let error = world.manager().restore(&world.tree, &text("1"), &choice).unwrap_err();
        assert!(matches!(error, CheckpointError::Outside { .. }), "{error}");
    };
    refused(world.base.join("secret"));
    refused(world.path("../other"));
    refused(world.path("out/secret"));
    refused(PathBuf::from(format!("{}2/a", world.tree.display())));
    assert_eq!(world.read("a"), "2");
    // By way of a link to the project it is the same project.
    let link = world.base.join("link");
    std::os::unix::fs::symlink(&world.tree, &link).unwrap();
    let choice = CheckpointChoice { paths: vec![link.join("./dir/../a")], ..CheckpointChoice::default() };
    world.manager().restore(&link, &text("1"), &choice).unwrap();
    assert_eq!(world.read("a"), "1");
}

#[test]
fn a_project_that_is_gone_comes_back() {
    let world = World::new();
    world.write("Makefile", "all:");
    world.write("src/a", "1");
    world.create();
    std::fs::remove_dir_all(&world.tree).unwrap();
    assert_eq!(world.manager().list(&world.tree).unwrap().len(), 1);
    world.restore("1");
    assert_eq!(world.read("src/a"), "1");
    // Also from below it.
    std::fs::remove_dir_all(world.tree.parent().unwrap()).unwrap();
    std::fs::create_dir(world.tree.parent().unwrap()).unwrap();
    world.manager().restore(&world.path("src/a"), &text("1"), &CheckpointChoice::default()).unwrap();
    assert_eq!(world.read("src/a"), "1");
}
