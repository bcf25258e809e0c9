//! Late roots: a kill at every step of their first capture, and of a restore of several nested roots.

use nono_testkit::noise;
use std::fs;
use std::path::{Path, PathBuf};

use nono_snapshot::{Next, SnapshotManager};

use super::kill::{assert_tidy, every_step};
use super::lab::{Lab, assert_clean, scratch};
use super::trees::{self, Listing, assert_same, list, make_new, make_small_old};

/// The late root, beside the tree.
pub(crate) fn root(manager: &SnapshotManager) -> PathBuf {
    let tree = manager.roots().iter().find(|root| root.ends_with("tree")).unwrap();
    tree.with_file_name("late")
}

fn make_late(late: &Path) {
    trees::write(&late.join("sub/small"), "late");
    trees::write(&late.join("large"), noise(5 << 20, 9));
}

fn next(manager: &mut SnapshotManager) {
    manager.create_next(Next { first_rules: true, ..Next::default() }).unwrap();
}

#[test]
fn killed_while_a_root_joins() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    make_small_old(&lab.tree());
    let old = list(&lab.tree());
    lab.manager().unwrap().create_baseline().unwrap();
    make_new(&lab.tree());
    let late = lab.tree().with_file_name("late");
    make_late(&late);
    let first = list(&late);
    lab.save("start");
    every_step(&lab, "add-root", |when, _| {
        assert_same(&list(&late), &first, &format!("{when}: what joins"));
        let mut manager = lab.manager().unwrap();
        assert_clean(&mut manager, when);
        let joined = manager.roots().contains(&late);
        assert_eq!(manager.snapshot_count().unwrap(), 1 + u32::from(joined), "{when}");
        let again = manager.add_root(&late).unwrap_or_else(|error| panic!("{when}, again: {error}"));
        assert_eq!(again.is_none(), joined, "{when}");
        assert_tidy(&lab, &mut manager, when);
        fs::remove_dir_all(late.join("sub")).unwrap();
        trees::write(&late.join("large"), "changed");
        next(&mut manager);
        let restored = manager.restore_to(0).unwrap();
        assert!(restored.failed.is_empty() && restored.skipped.is_empty(), "{when}: {restored:?}");
        assert_same(&list(&late), &first, &format!("{when}: what joined"));
        assert_same(&list(&lab.tree()), &old, &format!("{when}: the tree"));
        assert_tidy(&lab, &mut manager, when);
    });
}

/// Around the tree, excluded inside it, and beside it; some come back, one is removed again.
#[test]
fn a_killed_restore_of_roots_in_roots_is_completed() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    let tree = lab.tree();
    fs::create_dir(tree.join(".git")).unwrap();
    trees::write(&tree.join(".gitignore"), "*.env\n");
    for name in ["f", "dir/a.env", "dir/f"] {
        trees::write(&tree.join(name), format!("old {name}"));
    }
    let mut manager = lab.manager().unwrap();
    manager.create_baseline().unwrap();
    let late = tree.with_file_name("late");
    make_late(&late);
    for root in [tree.join("dir/a.env"), tree.join("dir/new.env"), late.clone()] {
        assert!(manager.add_root(&root).unwrap().is_some());
    }
    let states = || -> [Listing; 2] { [list(&tree), list(&late)] };
    let old = states();
    fs::remove_file(tree.join("dir/a.env")).unwrap();
    for name in ["f", "dir/f", "dir/new.env", "dir/other"] {
        trees::write(&tree.join(name), format!("new {name}"));
    }
    fs::remove_dir_all(&late).unwrap();
    next(&mut manager);
    drop(manager);
    lab.save("start");
    every_step(&lab, "restore", |when, _| {
        let mut manager = lab.manager().unwrap();
        assert_clean(&mut manager, when);
        let under_way = lab.session().join("restore.journal").exists();
        manager.recover().unwrap_or_else(|error| panic!("{when}: recover: {error}"));
        if !under_way {
            manager.restore_to(0).unwrap();
        }
        for (is, was) in states().iter().zip(&old) {
            assert_same(is, was, when);
        }
        assert_tidy(&lab, &mut manager, when);
    });
}
