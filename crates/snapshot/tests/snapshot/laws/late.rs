//! Late roots: their state when they were added is restored, together with all earlier roots.

use std::path::Path;

use nono_snapshot::{
    Cause, ChangeType, ExclusionConfig, Limits, ManagerOptions, Next, Protection, RestoreOptions,
    SnapshotError, SnapshotId, SnapshotManager,
};

use crate::common::{World, by_hand, clean, go_back, no_debris, sh, write};
use nono_testkit::oracle::{Oracle, inodes, look, same};

/// A session on `work` with its first snapshot, and one more.
fn begun(world: &World) -> SnapshotManager {
    write(&world.path("work/f"), "f");
    let mut manager = world.manager_on(&[&world.path("work")], ExclusionConfig::default());
    manager.create_baseline().unwrap();
    world.sh("echo 1 > work/f");
    next(&mut manager);
    manager
}

/// Take the next snapshot as a running session does.
fn next(manager: &mut SnapshotManager) {
    let how = Next { first_rules: true, if_changed: true, open_closed: true };
    manager.create_next(how).unwrap();
}

fn resumed(world: &World) -> SnapshotManager {
    SnapshotManager::resume(&world.session, by_hand()).unwrap()
}

/// Everything but the outermost folder, whose time changes with its content.
fn everything(world: &World) -> Oracle {
    look(&world.tree).without(&[""])
}

/// The script changes something; going back to the first snapshot takes that back, undoing takes it back again, and
/// a later manager can do the same.
fn round(world: &World, mut manager: SnapshotManager, before: &Oracle, script: &str) {
    world.sh(script);
    let changed = everything(world);
    assert!(*before != changed, "{script} changes nothing");
    next(&mut manager);
    assert!(!manager.diff(&0.into(), &manager.snapshots().unwrap().pop().unwrap()).unwrap().is_empty());
    let restored = manager.restore_to(0).unwrap();
    clean(&restored);
    same(before, &everything(world));
    clean(&go_back(&mut manager, &restored.safety));
    same(&changed, &everything(world));
    assert!(manager.verify().unwrap().is_clean());
    drop(manager);
    let mut manager = resumed(world);
    clean(&manager.restore_to(0).unwrap());
    same(before, &everything(world));
    manager.gc().unwrap();
    assert!(manager.verify().unwrap().is_clean());
    no_debris(&world.tree);
}

#[test]
fn a_file_comes_back_to_what_it_was_when_it_joined() {
    let scripts = [
        "echo changed > late",
        "rm late",
        "rm late; mkdir late; echo x > late/x",
        "rm late; ln -s /etc/passwd late",
        "chmod 4755 late; touch -d @9 late; setfattr -n user.a -v c late",
    ];
    for script in scripts {
        let world = World::new();
        world.write("late", "old");
        world.sh("chmod 640 late; touch -d @1.5 late; setfattr -n user.a -v b late");
        let mut manager = begun(&world);
        world.sh("echo f > work/f; touch -d @5 work/f work");
        let manifest = manager.add_root(&world.path("late")).unwrap().unwrap();
        assert_eq!((manifest.number, manifest.parent, manifest.coverage.files), (2, Some(1), 2));
        assert_eq!(manifest.work.files, 1, "the old roots were not looked at");
        assert_eq!(manager.roots(), [world.path("late"), world.path("work")]);
        clean(&manager.restore_to(0).unwrap());
        let before = everything(&world);
        round(&world, manager, &before, script);
        let restored = resumed(&world).restore_to(0).unwrap();
        assert_eq!(restored.done, 0, "what is as it should be is not touched");
    }
}

#[test]
fn nothing_comes_back_to_nothing() {
    for script in ["echo new > late", "mkdir -p late/deep; echo x > late/deep/x", "ln -s work late"] {
        let world = World::new();
        let mut manager = begun(&world);
        manager.restore_to(0).unwrap();
        manager.add_root(&world.path("late")).unwrap().unwrap();
        round(&world, manager, &everything(&world), script);
        assert!(!world.exists("late"));
    }
}

#[test]
fn a_directory_comes_back_and_nothing_behind_a_link_is_touched() {
    let world = World::new();
    world.write("late/keep", "keep");
    world.write("late/sub/f", "sub");
    world.sh("touch -d @7 late/keep late/sub/f late/sub late; chmod 750 late/sub");
    let outside = world.dir.path().join("outside");
    write(&outside.join("f"), "outside");
    let there = look(&outside);
    let mut manager = begun(&world);
    manager.restore_to(0).unwrap();
    manager.add_root(&world.path("late")).unwrap().unwrap();
    let script =
        "rm -r late/sub; ln -s ../../outside late/sub; ln -s /etc/passwd late/planted; echo x >> late/keep";
    round(&world, manager, &everything(&world), script);
    same(&there, &look(&outside));
}

/// Snapshots from a root's first one on have its state at that time; earlier ones have its first state.
#[test]
fn each_snapshot_means_its_own_state() {
    let world = World::new();
    world.write("late", "0");
    let mut manager = begun(&world);
    let first = manager.add_root(&world.path("late")).unwrap().unwrap().number;
    for text in ["1", "2"] {
        world.write("late", text);
        world.write("work/f", format!("with {text}"));
        next(&mut manager);
    }
    let reads = |world: &World| (world.read("late"), world.read("work/f"));
    let wanted = [("0", "f"), ("0", "1\n"), ("0", "1\n"), ("1", "with 1"), ("2", "with 2")]
        .map(|(a, b)| (a.into(), b.into()));
    for (number, wanted) in wanted.iter().enumerate() {
        clean(&manager.restore_to(u32::try_from(number).unwrap()).unwrap());
        assert_eq!(reads(&world), *wanted, "snapshot {number}");
    }
    let changes = manager.diff(&0.into(), &4.into()).unwrap();
    let paths: Vec<_> = changes.iter().map(|change| (change.path.clone(), change.change_type)).collect();
    assert_eq!(
        paths,
        [(world.path("late"), ChangeType::Modified), (world.path("work/f"), ChangeType::Modified)]
    );
    assert_eq!(first, 2);
    assert!(matches!(manager.thin(&[3, first]), Err(SnapshotError::Needed { number: 2, .. })));
    manager.thin(&[1, 3]).unwrap();
    manager.gc().unwrap();
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(reads(&world), wanted[0]);
    assert!(manager.verify().unwrap().is_clean());
}

/// A safety snapshot from before a root was added does not know it: undoing that restore leaves the root alone.
#[test]
fn a_restore_from_before_is_undone_without_it() {
    let world = World::new();
    world.write("late", "old");
    let mut manager = begun(&world);
    let restored = manager.restore_to(0).unwrap();
    manager.add_root(&world.path("late")).unwrap().unwrap();
    world.write("late", "new");
    clean(&go_back(&mut manager, &restored.safety));
    assert_eq!((world.read("late"), world.read("work/f")), ("new".into(), "1\n".into()));
}

#[test]
fn adding_a_tracked_path_again_changes_nothing() {
    let world = World::new();
    world.write("late/f", "f");
    let mut manager = begun(&world);
    for path in ["late", "late", "late/f", "late/new", "work", "work/f", "work/new"] {
        let before = manager.snapshot_count().unwrap();
        let added = manager.add_root(&world.path(path)).unwrap();
        assert_eq!(added.is_some(), before == 2, "{path}");
        assert!(manager.is_tracked(&world.path(path)).unwrap(), "{path}");
    }
    assert_eq!((manager.roots().len(), manager.snapshot_count().unwrap()), (2, 3));
}

/// A root around existing ones: each path is captured once, by one of them.
#[test]
fn a_root_around_others() {
    let scripts = [
        "echo x > around/f; echo x > around/a/root/f; echo n > around/a/root/n; echo n > around/n",
        "rm -rf around/a/root",
        "rm -rf around/a",
        "rm -rf around",
        "rm -rf around/a/root; echo file > around/a/root",
        "rm -rf around/a; echo file > around/a",
        "rm -rf around/a; ln -s /etc around/a",
        "mv around/a/root around/moved",
        "chmod 700 around/a/root around/a; touch -d @3 around/a around/a/root",
    ];
    for script in scripts {
        let world = World::new();
        world.write("around/f", "o");
        world.write("around/a/f", "m");
        world.write("around/a/root/f", "i");
        let mut manager = world.manager_on(&[&world.path("around/a/root")], ExclusionConfig::default());
        manager.create_baseline().unwrap();
        let manifest = manager.add_root(&world.path("around")).unwrap().unwrap();
        assert_eq!((manifest.coverage.files, manifest.files().unwrap().len()), (3, 3), "each once");
        assert_eq!(manifest.coverage.entries_left_out(), 0);
        let protected = |path: &str| manifest.protection(&world.path(path)).unwrap();
        assert_eq!(
            (protected("around/a/root/f"), protected("around/a/f")),
            (Protection::Captured, Protection::Captured)
        );
        round(&world, manager, &everything(&world), script);
    }
}

/// Inside a root and excluded by its rules: a root of its own. If included, it is covered already.
#[test]
fn a_root_in_a_root() {
    let scripts = [
        "echo x > work/secret.env; echo x > work/a; echo y > work/made.env; echo z > work/out/kept",
        "rm work/secret.env work/out/kept; touch -d @3 work",
        "rm -rf work/out work/secret.env; echo n > work/n",
        "rm work/secret.env; ln -s a work/secret.env; rm -rf work/out; ln -s /etc work/out",
    ];
    for script in scripts {
        let world = World::new();
        sh(&world.tree, "git init -q work; printf '*.env\\nout/\\n' > work/.gitignore");
        for (name, text) in [("a", "a"), ("secret.env", "secret"), ("out/kept", "k"), ("other.env", "never")]
        {
            write(&world.path("work").join(name), text);
        }
        let mut manager = world.manager_on(&[&world.path("work")], ExclusionConfig::default());
        let baseline = manager.create_baseline().unwrap();
        assert_eq!(crate::common::left_out(&baseline, Cause::Ignored), 3);
        for taken in ["work/a", "work/made", "work/dir/made"] {
            assert!(manager.add_root(&world.path(taken)).unwrap().is_none(), "{taken} is taken already");
        }
        for hidden in ["work/secret.env", "work/out", "work/made.env"] {
            assert!(manager.add_root(&world.path(hidden)).unwrap().is_some(), "{hidden} is hidden");
        }
        assert!(manager.add_root(&world.path("work/out/kept")).unwrap().is_none());
        let whole = manager.load_whole(&SnapshotId::Number(0)).unwrap();
        assert_eq!(whole.protection(&world.path("work/out/kept")).unwrap(), Protection::Captured);
        assert_eq!(whole.coverage.files, baseline.coverage.files + 2);
        let other = inodes(&world.tree)["work/other.env"].clone();
        round(&world, manager, &everything(&world), script);
        assert_eq!(
            (inodes(&world.tree)["work/other.env"].clone(), world.read("work/other.env")),
            (other, "never".into())
        );
    }
}

/// Nested roots, added in any order.
#[test]
fn the_order_in_which_they_join_does_not_matter() {
    let script =
        "echo x > a/b/c/f; echo x > a/b/f; echo x > a/f; rm -rf a/b/c/d; echo n > a/b/n; touch -d @4 a/b/c";
    for order in [["a", "a/b/c/d", "a/b"], ["a/b/c/d", "a/b", "a"], ["a/b", "a/b/c/d", "a"]] {
        let world = World::new();
        for file in ["a/f", "a/b/f", "a/b/c/f", "a/b/c/d/f"] {
            world.write(file, file);
        }
        let mut manager = begun(&world);
        manager.restore_to(0).unwrap();
        for root in order {
            // One inside is covered by one outside.
            manager.add_root(&world.path(root)).unwrap();
            assert!(manager.is_tracked(&world.path(root)).unwrap());
        }
        let files = manager.load_manifest(manager.snapshot_count().unwrap() - 1).unwrap().coverage.files;
        assert_eq!(files, 5, "each once: {order:?}");
        round(&world, manager, &everything(&world), script);
    }
}

/// Another name of a file of another root is a path like any other. That two roots share a file is not kept.
#[test]
fn a_link_from_root_to_root_hides_nothing() {
    let world = World::new();
    world.write("around/f", "o");
    world.write("around/root/f", "i");
    let before = everything(&world);
    let mut manager = world.manager_on(&[&world.path("around/root/f")], ExclusionConfig::default());
    manager.create_baseline().unwrap();
    manager.add_root(&world.path("around")).unwrap().unwrap();
    world.sh("ln -f around/root/f around/f; ln around/root/f around/new; echo more >> around/f");
    next(&mut manager);
    assert_eq!(manager.load_manifest(2).unwrap().coverage.files, 3);
    let restored = manager.restore_to(0).unwrap();
    clean(&restored);
    same(&before, &everything(&world));
    clean(&go_back(&mut manager, &restored.safety));
    for name in ["around/f", "around/new", "around/root/f"] {
        assert_eq!(world.read(name), "imore\n", "{name}");
    }
}

#[test]
fn one_path_of_several_roots() {
    let world = World::new();
    world.write("around/f", "o");
    world.write("around/root/f", "i");
    let mut manager = world.manager_on(&[&world.path("around/root")], ExclusionConfig::default());
    manager.create_baseline().unwrap();
    manager.add_root(&world.path("around")).unwrap().unwrap();
    world.sh("echo x > around/f; echo x > around/root/f");
    let only = |path: &str| RestoreOptions { paths: vec![world.path(path)], ..RestoreOptions::default() };
    clean(&manager.restore(&0.into(), &only("around/root/f")).unwrap());
    assert_eq!((world.read("around/f"), world.read("around/root/f")), ("x\n".into(), "i".into()));
    world.sh("echo x > around/root/f");
    clean(&manager.restore(&0.into(), &only("around/f")).unwrap());
    assert_eq!((world.read("around/f"), world.read("around/root/f")), ("o".into(), "x\n".into()));
    clean(&manager.restore(&0.into(), &only("around")).unwrap());
    assert_eq!((world.read("around/f"), world.read("around/root/f")), ("o".into(), "i".into()));
}

/// An ignore rule of a repository around it does not hide what was asked for by name; its own rules count, and stay
/// those of the moment when it joined.
#[test]
fn rules_are_those_of_the_moment_it_joined() {
    let world = World::new();
    sh(&world.tree, "git init -q repo; echo late/ > repo/.gitignore");
    write(&world.path("repo/late/f"), "f");
    write(&world.path("repo/late/x.log"), "log");
    write(&world.path("repo/late/.gitignore"), "*.log\n");
    let mut manager = begun(&world);
    manager.restore_to(0).unwrap();
    let manifest = manager.add_root(&world.path("repo/late")).unwrap().unwrap();
    let files: Vec<_> = manifest.files().unwrap().into_keys().collect();
    assert_eq!(files, ["repo/late/.gitignore", "repo/late/f", "work/f"].map(|name| world.path(name)));
    let before = everything(&world);
    round(
        &world,
        manager,
        &before,
        "echo '*' > repo/late/.gitignore; echo x > repo/late/f; echo n > repo/late/n",
    );
}

#[test]
fn what_cannot_be_captured_is_no_root() {
    let world = World::new();
    world.write("large", vec![b'x'; 1 << 20]);
    world.write(
        "tree/large",
        (0..1 << 18).flat_map(|n: u32| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect::<Vec<_>>(),
    );
    write(&world.path("real/f"), "f");
    world.sh("ln -s real link");
    let mut manager = begun(&world);
    let refused = |manager: &mut SnapshotManager, path: &Path| {
        let error = manager.add_root(path).unwrap_err();
        assert_eq!((manager.roots().len(), manager.snapshot_count().unwrap()), (1, 2), "{error}");
        error
    };
    // A link on the way, no path, our own.
    assert!(matches!(refused(&mut manager, &world.path("link/f")), SnapshotError::NotCaptured { .. }));
    for wrong in ["relative", "/", "/a/../b", "/a/./b", "/a//b"] {
        assert!(matches!(refused(&mut manager, Path::new(wrong)), SnapshotError::NoName { .. }), "{wrong}");
    }
    let own = world.session.join("record.json");
    assert!(matches!(refused(&mut manager, &own), SnapshotError::OwnState { .. }));
    manager.set_budget(Some(1000));
    assert!(matches!(refused(&mut manager, &world.path("tree")), SnapshotError::NotCaptured { .. }));
    manager.set_budget(None);
    manager.add_root(&world.path("tree")).unwrap().unwrap();
}

/// A session resumed by its original paths has the late roots too.
#[test]
fn a_session_is_taken_up_with_all_its_roots() {
    let world = World::new();
    world.write("late", "old");
    let mut manager = begun(&world);
    manager.add_root(&world.path("late")).unwrap().unwrap();
    drop(manager);
    world.write("late", "new");
    let work = world.path("work");
    let mut manager = world.manager_on(&[&work], ExclusionConfig::default());
    assert_eq!(manager.roots(), [world.path("late"), work.clone()]);
    next(&mut manager);
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("late"), "old");
    drop(manager);
    let other = SnapshotManager::with_options(
        &world.session,
        [world.path("late")],
        ExclusionConfig::default(),
        Limits::NONE,
        ManagerOptions::default(),
    );
    assert!(matches!(other, Err(SnapshotError::OtherRoots { .. })));
}

#[test]
fn a_damaged_first_state_is_found() {
    let world = World::new();
    world.write("late", "only in this file");
    let mut manager = begun(&world);
    manager.add_root(&world.path("late")).unwrap().unwrap();
    world.write("late", "new");
    next(&mut manager);
    assert!(manager.verify().unwrap().is_clean());
    drop(manager);
    let manifest = world.session.join("snapshots/002.json");
    let text = std::fs::read(&manifest).unwrap();
    std::fs::remove_file(&manifest).unwrap();
    let mut manager = resumed(&world);
    let report = manager.verify().unwrap();
    let named = |problem: &nono_snapshot::SnapshotProblem| problem.id == Some(SnapshotId::Number(2));
    assert!(report.snapshots.iter().any(named), "{report:?}");
    assert!(manager.restore_to(0).is_err(), "half of it would be no answer");
    assert_eq!(world.read("late"), "new");
    std::fs::write(&manifest, text).unwrap();
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("late"), "only in this file");
}
