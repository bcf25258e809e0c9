//! Hard links: groups come back as groups, and links outside are reported.

use std::os::unix::fs::MetadataExt;

use nono_snapshot::{ChangeType, CoverageNote, ExclusionConfig};

use crate::common::{World, clean, go_back};
use nono_testkit::oracle::{look, same};

fn inode(world: &World, name: &str) -> (u64, u64) {
    let meta = world.path(name).symlink_metadata().unwrap();
    (meta.ino(), meta.nlink())
}

fn groups(world: &World, groups: &[&[&str]]) {
    for group in groups {
        for name in *group {
            assert_eq!(inode(world, name).0, inode(world, group[0]).0, "{name}");
            assert_eq!(inode(world, name).1, group.len() as u64, "{name}");
        }
    }
}

#[test]
fn groups_come_back_whatever_happened_to_them() {
    let scripts = [
        "rm a",
        "rm a b c/d",
        "cp -p a t; mv t a",
        "cp -p a t; mv t a; cp -p b t; mv t b",
        "echo changed > a",
        "echo changed > t; mv t b",
        "ln a e; ln x f",
        "rm -rf c; rm x; ln a x",
        "mv a t; mv x a; mv t x",
        "rm a b; ln x a; ln x b",
        "rm x y; ln a x; ln a y",
        "chmod 600 a; touch -d @5 x",
        "rm a; mkdir a; ln b a/in",
        "rm c/d; rmdir c; ln a c",
        "rm lone; ln a lone",
        "rm a; ln lone a",
        "rm l1; ln -s other l1; rm p1; mkfifo p1",
    ];
    for script in scripts {
        let world = World::new();
        world.sh("mkdir c; echo one > a; ln a b; ln a c/d; echo two > x; ln x y; echo lone > lone
             ln -s target l1; ln -P l1 l2; mkfifo p1; ln p1 p2");
        let all: &[&[&str]] = &[&["a", "b", "c/d"], &["x", "y"], &["lone"], &["l1", "l2"], &["p1", "p2"]];
        let before = look(&world.tree);
        let mut manager = world.manager();
        let baseline = manager.create_baseline().unwrap();
        assert!(baseline.coverage.notes.is_empty(), "{:?}", baseline.coverage.notes);
        world.sh(script);
        let changed = look(&world.tree);
        let restored = manager.restore_to(0).unwrap();
        clean(&restored);
        same(&before, &look(&world.tree));
        groups(&world, all);
        clean(&go_back(&mut manager, &restored.safety));
        same(&changed, &look(&world.tree));
    }
}

/// Two groups with equal bytes are two groups.
#[test]
fn equal_files_are_not_linked() {
    let world = World::new();
    world.sh("echo same > a; cp -p a b; cp -p a c; ln c d; cp -p a e; ln e f");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("rm -f *");
    clean(&manager.restore_to(0).unwrap());
    groups(&world, &[&["a"], &["b"], &["c", "d"], &["e", "f"]]);
}

#[test]
fn links_outside_the_tree_are_told_and_spared() {
    let world = World::new();
    world.sh("echo one > a; ln a ../outside; echo two > b; ln b c; ln b ../outside-2");
    let mut manager = world.manager();
    let baseline = manager.create_baseline().unwrap();
    // Two files with names outside.
    let told = |note: &CoverageNote| matches!(note, CoverageNote::LinkedOutside { files: 2 | 3 });
    assert!(baseline.coverage.notes.iter().any(told), "{:?}", baseline.coverage.notes);
    world.sh("echo changed > a; echo changed > b");
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(
        (world.read("a"), world.read("b"), world.read("c")),
        ("one\n".into(), "two\n".into(), "two\n".into())
    );
    assert_eq!(inode(&world, "b").0, inode(&world, "c").0);
    // Names outside the tree are left alone.
    for name in ["outside", "outside-2"] {
        assert_eq!(std::fs::read(world.dir.path().join(name)).unwrap(), b"changed\n");
    }
}

#[test]
fn a_link_to_outside_made_later_does_not_write_there() {
    let world = World::new();
    let outside = world.dir.path().join("outside");
    std::fs::write(&outside, "outside").unwrap();
    world.sh("echo in > a; chmod 644 a; touch -d @1000 a");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    // The same bytes and another mode, linked to a file outside: restoring the mode must not change that one.
    world.sh("echo in > ../outside; chmod 600 ../outside; rm a; ln ../outside a");
    let was = outside.metadata().unwrap();
    clean(&manager.restore_to(0).unwrap());
    let is = outside.metadata().unwrap();
    assert_eq!((was.mode(), was.mtime(), was.ino()), (is.mode(), is.mtime(), is.ino()));
    assert_eq!((world.path("a").metadata().unwrap().mode() & 0o7777, inode(&world, "a").1), (0o644, 1));
}

/// Names in two roots are one file, and the roots are one snapshot.
#[test]
fn groups_across_roots_come_back() {
    let world = World::new();
    world.sh("mkdir r1 r2; echo x > r1/a; ln r1/a r2/b");
    let (one, two) = (world.path("r1"), world.path("r2"));
    let mut manager = world.manager_on(&[&one, &two], ExclusionConfig::default());
    let baseline = manager.create_baseline().unwrap();
    let outside =
        baseline.coverage.notes.iter().any(|note| matches!(note, CoverageNote::LinkedOutside { .. }));
    world.sh("rm r1/a r2/b");
    clean(&manager.restore_to(0).unwrap());
    let linked = inode(&world, "r1/a").0 == inode(&world, "r2/b").0;
    // Either it is one file again, or coverage said that it would not be.
    assert!(linked || outside);
    assert_eq!((world.read("r1/a"), world.read("r2/b")), ("x\n".into(), "x\n".into()));
}

/// A broken hard link is not shown as a change, but it is restored.
#[test]
fn a_broken_link_is_no_change_but_is_restored() {
    let world = World::new();
    world.sh("echo x > a; ln a b");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("cp -p a t; mv t a");
    let (_, changes) = manager.create_incremental().unwrap();
    assert!(changes.iter().all(|change| change.change_type != ChangeType::Created), "{changes:?}");
    clean(&manager.restore_to(0).unwrap());
    groups(&world, &[&["a", "b"]]);
    clean(&manager.restore_to(1).unwrap());
    groups(&world, &[&["a"], &["b"]]);
}

/// One name of a file is ignored: it keeps the file it has.
#[test]
fn an_ignored_name_of_a_captured_file_stays() {
    let world = World::new();
    world.sh("echo '*.out' > .gitignore; echo x > a; ln a b.out; echo y > c");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("echo changed > a");
    let was = inode(&world, "b.out").0;
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("a"), "x\n");
    assert_eq!((world.read("b.out"), inode(&world, "b.out").0), ("changed\n".into(), was));
}
