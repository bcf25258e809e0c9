//! Several roots, missing roots, roots that are not directories, nested roots, removed roots.

use std::path::Path;

use nono_snapshot::{CoverageNote, ExclusionConfig, Limits, Protection, SnapshotManager};

use crate::common::{World, by_hand, clean, go_back, sh, write};
use nono_testkit::oracle::{look, same};

fn open(world: &World, roots: &[&Path]) -> nono_snapshot::SnapshotManager {
    world.manager_on(roots, ExclusionConfig::default())
}

#[test]
fn several_roots_are_one_snapshot() {
    let world = World::new();
    let (one, two) = (world.path("one"), world.path("two"));
    write(&one.join("f"), "1");
    write(&two.join("f"), "2");
    write(&world.path("between"), "not tracked");
    let before = look(&world.tree);
    let mut manager = open(&world, &[&two, &one]);
    let baseline = manager.create_baseline().unwrap();
    assert_eq!((baseline.coverage.files, baseline.files().unwrap().len()), (2, 2));
    assert_eq!(baseline.protection(&world.path("between")).unwrap(), Protection::Outside);
    world.sh("echo x > one/f; rm two/f; echo x > two/g");
    let (_, changes) = manager.create_incremental().unwrap();
    assert_eq!(changes.len(), 3);
    let restored = manager.restore_to(0).unwrap();
    clean(&restored);
    assert_eq!(restored.changes.len(), 3);
    same(&before, &look(&world.tree));
}

#[test]
fn a_missing_root_is_reported_and_the_other_captured() {
    let world = World::new();
    write(&world.path("one/f"), "1");
    let (one, none) = (world.path("one"), world.path("none"));
    let mut manager = open(&world, &[&one, &none]);
    let baseline = manager.create_baseline().unwrap();
    let failed = |note: &CoverageNote| matches!(note, CoverageNote::RootFailed { root, .. } if *root == none);
    assert!(baseline.coverage.notes.iter().any(failed), "{:?}", baseline.coverage.notes);
    assert!(matches!(baseline.protection(&none.join("x")).unwrap(), Protection::LeftOut { .. }));
    // It appears: its content before is unknown, so nothing is deleted.
    write(&none.join("f"), "came later");
    world.sh("echo x > one/f");
    let restored = manager.restore_to(0).unwrap();
    assert!(restored.skipped.iter().any(|skipped| skipped.path == none), "{:?}", restored.skipped);
    assert_eq!((world.read("none/f"), world.read("one/f")), ("came later".into(), "1".into()));
}

#[test]
fn all_roots_missing_is_an_error() {
    let world = World::new();
    let mut manager = open(&world, &[&world.path("none"), &world.path("neither")]);
    assert!(manager.create_baseline().is_err());
    assert_eq!(manager.snapshot_count().unwrap(), 0);
}

/// Unless that is allowed. They are named, and what appears there later is not touched.
#[test]
fn all_roots_may_be_missing() {
    let world = World::new();
    let options = nono_snapshot::ManagerOptions { roots_may_be_missing: true, ..by_hand() };
    let (roots, config) = ([world.path("none")], ExclusionConfig::default());
    let manager = SnapshotManager::with_options(&world.session, roots, config, Limits::NONE, options);
    let mut manager = manager.unwrap();
    let baseline = manager.create_baseline().unwrap();
    assert!(
        matches!(baseline.coverage.notes[..], [CoverageNote::RootFailed { .. }]),
        "{:?}",
        baseline.coverage
    );
    write(&world.path("none/f"), "later");
    assert!(manager.create_incremental().unwrap().1.is_empty());
    manager.restore_to(0).unwrap();
    assert_eq!(world.read("none/f"), "later");
}

#[test]
fn a_root_can_be_a_single_file() {
    let world = World::new();
    let file = world.write("file", "old");
    world.write("beside", "beside");
    world.sh("chmod 4711 file; touch -d @1.123456789 file; setfattr -n user.a -v b file");
    let before = look(&world.tree).without(&[""]);
    let mut manager = open(&world, &[&file]);
    let baseline = manager.create_baseline().unwrap();
    assert_eq!(baseline.files().unwrap().keys().collect::<Vec<_>>(), [&file]);
    assert_eq!(baseline.protection(&file).unwrap(), Protection::Captured);
    let scripts = [
        "rm file",
        "echo changed > file",
        "rm file; mkdir -p file/d; echo x > file/d/x",
        "rm file; ln -s beside file",
        "chmod 600 file",
    ];
    for script in scripts {
        world.sh(script);
        let changed = look(&world.tree).without(&[""]);
        let restored = manager.restore_to(0).unwrap();
        clean(&restored);
        same(&before, &look(&world.tree).without(&[""]));
        clean(&go_back(&mut manager, &restored.safety));
        same(&changed, &look(&world.tree).without(&[""]));
        clean(&manager.restore_to(0).unwrap());
    }
    world.sh("rm file");
    let (_, changes) = manager.create_incremental().unwrap();
    assert_eq!(changes.len(), 1);
}

#[test]
fn a_root_in_a_root() {
    let world = World::new();
    write(&world.path("outer/f"), "o");
    write(&world.path("outer/mid/inner/f"), "i");
    write(&world.path("outer/mid/f"), "m");
    let before = look(&world.tree);
    let (outer, inner) = (world.path("outer"), world.path("outer/mid/inner"));
    let mut manager = open(&world, &[&outer, &inner]);
    let baseline = manager.create_baseline().unwrap();
    assert_eq!((baseline.coverage.files, baseline.files().unwrap().len()), (3, 3), "each once");
    assert_eq!(baseline.coverage.entries_left_out(), 0);
    assert_eq!(baseline.protection(&inner.join("f")).unwrap(), Protection::Captured);
    let scripts = [
        "echo x > outer/f; echo x > outer/mid/inner/f; echo n > outer/mid/inner/n",
        "rm -rf outer/mid/inner",
        "rm -rf outer/mid",
        "rm -rf outer",
        "rm -rf outer/mid/inner; echo file > outer/mid/inner",
        "rm -rf outer/mid; echo file > outer/mid",
        "mv outer/mid/inner outer/moved",
        "chmod 700 outer/mid/inner outer/mid; touch -d @3 outer/mid outer/mid/inner",
    ];
    for script in scripts {
        world.sh(script);
        let changed = look(&world.tree).without(&[""]);
        let restored = manager.restore_to(0).unwrap();
        assert!(restored.failed.is_empty() && restored.skipped.is_empty(), "{script}: {restored:#?}");
        same(&before.without(&[""]), &look(&world.tree).without(&[""]));
        let again = go_back(&mut manager, &restored.safety);
        assert!(again.failed.is_empty() && again.skipped.is_empty(), "undo of {script}: {again:#?}");
        same(&changed, &look(&world.tree).without(&[""]));
        clean(&manager.restore_to(0).unwrap());
    }
}

#[test]
fn a_root_that_was_deleted_comes_back() {
    for script in [
        "rm -rf root",
        "rm -rf root; echo x > root",
        "rm -rf root; ln -s /etc root",
        "mv root moved; mkdir root",
    ] {
        let world = World::new();
        write(&world.path("root/sub/f"), "f");
        world.sh("chmod 2750 root; touch -d @77 root");
        let before = look(&world.path("root"));
        let etc = std::fs::metadata("/etc").unwrap();
        let mut manager = open(&world, &[&world.path("root")]);
        manager.create_baseline().unwrap();
        world.sh(script);
        let changed = look(&world.tree).without(&[""]);
        let (gone, changes) = manager.create_incremental().unwrap();
        assert!(!changes.is_empty(), "{script}");
        let restored = manager.restore_to(0).unwrap();
        clean(&restored);
        same(&before, &look(&world.path("root")));
        clean(&go_back(&mut manager, &restored.safety));
        same(&changed, &look(&world.tree).without(&[""]));
        clean(&manager.restore_to(0).unwrap());
        clean(&go_back(&mut manager, &gone.id));
        same(&changed, &look(&world.tree).without(&[""]));
        assert_eq!(etc.modified().unwrap(), std::fs::metadata("/etc").unwrap().modified().unwrap());
    }
}

/// The parent folder of a root is gone: this root cannot be restored, the other one is.
#[test]
fn a_root_without_a_parent_is_reported_and_the_other_restored() {
    let world = World::new();
    write(&world.path("parent/one/f"), "1");
    write(&world.path("two/f"), "2");
    let (one, two) = (world.path("parent/one"), world.path("two"));
    let mut manager = open(&world, &[&one, &two]);
    manager.create_baseline().unwrap();
    world.sh("rm -rf parent; echo x > two/f");
    let (_, changes) = manager.create_incremental().unwrap();
    assert_eq!(changes.len(), 2, "{changes:?}");
    let restored = manager.restore_to(0).unwrap();
    assert_eq!(world.read("two/f"), "2");
    let told = restored.failed.iter().any(|failed| failed.path.starts_with(world.path("parent")));
    assert!(told || world.exists("parent/one/f"), "{:?}", restored.outcome);
}

/// A link put into the path above a root is not followed.
#[test]
fn a_link_above_the_root_is_not_followed() {
    let world = World::new();
    write(&world.path("above/root/f"), "f");
    let mut manager = open(&world, &[&world.path("above/root")]);
    manager.create_baseline().unwrap();
    let other = world.dir.path().join("other");
    write(&other.join("root/f"), "by others");
    sh(&world.tree, "mv above away; ln -s ../other above");
    // Whether it is an error or a failure of this root: the other folder is not touched.
    if let Ok(restored) = manager.restore_to(0) {
        assert!(!restored.failed.is_empty() || !restored.skipped.is_empty(), "{:?}", restored.outcome);
    }
    assert_eq!(std::fs::read(other.join("root/f")).unwrap(), b"by others");
}

/// A part of one root only.
#[test]
fn a_part_outside_of_all_roots_is_refused() {
    let world = World::new();
    write(&world.path("one/f"), "1");
    let mut manager = open(&world, &[&world.path("one")]);
    let baseline = manager.create_baseline().unwrap();
    let options = nono_snapshot::RestoreOptions { paths: vec!["/etc/passwd".into()], ..Default::default() };
    assert!(manager.restore(&baseline.id, &options).is_err());
}
