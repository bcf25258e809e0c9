//! Closed, read-only and immutable files: restored if the owner can, otherwise reported, and the rest is still done.
//! Run as an ordinary user, because permissions mean nothing to root.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::Command;

use nono_snapshot::{Cause, ExclusionConfig, Limits, SnapshotManager};

use crate::common::user::{as_user, few_open_files, give, prepared_by_root};
use crate::common::{World, by_hand, clean, go_back, left_out, no_debris, sh, skip};
use nono_testkit::oracle::{look, same};

/// Modes of all entries; then open everything, since the oracles cannot look into closed directories.
fn modes(world: &World) -> String {
    let script = "find . -printf '%P %m %T@\\n' 2>/dev/null | sort || true";
    let out = Command::new("bash").args(["-c", script]).current_dir(&world.tree).output().unwrap();
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// No shell can start in a folder that is closed.
fn open_up(path: &std::path::Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn the_agent_closes_files_and_directories() {
    as_user("laws::permissions::the_agent_closes_files_and_directories", |place| {
        let world = World::on(place);
        for n in 0..10 {
            world.write(format!("d{n}/sub/f"), format!("{n}"));
            world.write(format!("f{n}"), format!("{n}"));
        }
        let before = look(&world.tree);
        let mut manager = world.manager();
        manager.create_baseline().unwrap();
        world.sh("echo x > d0/sub/f; echo y > d1/sub/new; rm d2/sub/f; echo z > f0; chmod 000 f0 f1 d0/sub/f; chmod 000 d0/sub d0 d1 d2/sub; chmod 555 d3/sub d3; chmod 311 d4; chmod 000 .");
        let restored = manager.restore_to(0).unwrap();
        clean(&restored);
        same(&before, &look(&world.tree));
        no_debris(&world.tree);
        // And back: closed again, with the agent's content.
        clean(&go_back(&mut manager, &restored.safety));
        assert_eq!(world.tree.metadata().unwrap().mode() & 0o7777, 0);
        open_up(&world.tree);
        let mode = |name: &str| world.path(name).symlink_metadata().unwrap().mode() & 0o7777;
        assert_eq!((mode("d0"), mode("d1"), mode("f0"), mode("d3"), mode("d4")), (0, 0, 0, 0o555, 0o311));
        world.sh("chmod 700 d0 d1 d2/sub; chmod 700 d0/sub; chmod 600 d0/sub/f f0");
        assert_eq!(
            (world.read("d0/sub/f"), world.read("d1/sub/new"), world.read("f0")),
            ("x\n".into(), "y\n".into(), "z\n".into())
        );
        assert!(!world.exists("d2/sub/f"));
    });
}

/// A dry run, or a restore of nothing, leaves no difference: changed modes are restored.
#[test]
fn what_is_opened_up_is_closed_again() {
    as_user("laws::permissions::what_is_opened_up_is_closed_again", |place| {
        let world = World::on(place);
        world.write("d/f", "f");
        world.write("e/f", "f");
        let mut manager = world.manager();
        manager.create_baseline().unwrap();
        world.sh(
            "chmod 000 d/f; chmod 100 d; chmod 311 e; mkdir -p n/m; echo x > n/m/x; chmod 000 n/m/x n/m n",
        );
        let closed = modes(&world);
        manager.compute_restore_diff(0).unwrap();
        assert_eq!(closed, modes(&world));
        clean(&manager.restore_to(0).unwrap());
        assert_eq!(world.read("d/f"), "f");
        assert!(!world.exists("n"));
    });
}

/// Closed files with several names, read by several threads at once: each is captured with its own mode.
#[test]
fn closed_files_with_several_names() {
    as_user("laws::permissions::closed_files_with_several_names", |place| {
        let world = World::on(place);
        world.write("open", "o");
        let mut manager = world.manager();
        manager.create_baseline().unwrap();
        for n in 0..400 {
            world.write(format!("a/{}/{n}", n % 8), format!("{n}"));
        }
        world.sh("cp -al a b; cp -al a c; find a -type f -exec chmod 000 {} +");
        for round in 0..8 {
            let how = nono_snapshot::Next { open_closed: true, if_changed: round > 0, first_rules: false };
            match manager.create_next(how).unwrap() {
                Some(last) => {
                    assert_eq!(left_out(&last, Cause::Unreadable), 0, "{:?}", last.coverage);
                    let files = last.files().unwrap();
                    let closed = files.values().filter(|file| file.permissions == 0).count();
                    assert_eq!((round, closed, files.len()), (0, 1200, 1201));
                }
                None => assert!(round > 0),
            }
        }
        assert!(manager.verify().unwrap().is_clean());
    });
}

/// Parents without write permission, before and after.
#[test]
fn files_below_read_only_directories_come_back() {
    as_user("laws::permissions::files_below_read_only_directories_come_back", |place| {
        let world = World::on(place);
        for n in 0..5 {
            world.write(format!("ro/{n}/f"), "old");
        }
        world.sh("chmod 400 ro/0/f; chmod 555 ro/* ro; chmod 555 .");
        let before = look(&world.tree);
        let mut manager = world.manager();
        manager.create_baseline().unwrap();
        world.sh(
            "chmod -R u+w .; echo new > ro/1/f; rm -rf ro/2; echo n > ro/3/new; rm ro/0/f; chmod -R a-w .",
        );
        let changed = look(&world.tree);
        let restored = manager.restore_to(0).unwrap();
        clean(&restored);
        same(&before, &look(&world.tree));
        clean(&go_back(&mut manager, &restored.safety));
        same(&changed, &look(&world.tree));
        world.sh("chmod -R u+w .");
    });
}

/// Thousands of closed directories: more than a process may have open at once.
#[test]
fn thousands_of_closed_directories() {
    as_user("laws::permissions::thousands_of_closed_directories", |place| {
        few_open_files();
        let world = World::on(place);
        (0..2500).for_each(|n| drop(world.write(format!("d/{n}/f"), "f")));
        let before = look(&world.tree);
        let mut manager = world.manager();
        manager.create_baseline().unwrap();
        world.sh("chmod 000 d/*");
        let restored = manager.restore_to(0).unwrap();
        clean(&restored);
        same(&before, &look(&world.tree));
    });
}

/// Directories that belong to another user, in the way of the restore.
#[test]
fn what_belongs_to_another_user_is_reported_and_the_rest_done() {
    let prepare = |place: &std::path::Path| {
        sh(
            place,
            "mkdir -p tree/mine tree/theirs tree/closed; echo a > tree/mine/f; echo b > tree/theirs/f; echo c > tree/closed/f; chmod 755 tree/theirs; chmod 700 tree/closed; echo r > tree/their-file; chmod 644 tree/their-file",
        );
        for name in ["tree", "tree/mine", "tree/mine/f"] {
            give(&place.join(name));
        }
        chown(place.join("tree/theirs"), Some(1), Some(1)).unwrap();
    };
    prepared_by_root(
        "laws::permissions::what_belongs_to_another_user_is_reported_and_the_rest_done",
        prepare,
        |place| {
            let tree = place.join("tree");
            let make = || {
                SnapshotManager::with_options(
                    place.join("session"),
                    [&tree],
                    ExclusionConfig::default(),
                    Limits::NONE,
                    by_hand(),
                )
            };
            let mut manager = make().unwrap();
            let baseline = manager.create_baseline().unwrap();
            assert_eq!(left_out(&baseline, Cause::Unreadable), 1, "{:?}", baseline.coverage);
            // A file of another user in a folder of ours can be moved away, and then comes back as ours, or is reported.
            sh(&tree, "echo x > mine/f; echo n > mine/new; mv their-file moved; echo z > z");
            let restored = manager.restore_to(0).unwrap();
            assert_eq!(std::fs::read(tree.join("mine/f")).unwrap(), b"a\n");
            assert!(!tree.join("mine/new").exists() && !tree.join("z").exists());
            assert_eq!(std::fs::read(tree.join("their-file")).unwrap(), b"r\n");
            let owner = tree.join("their-file").metadata().unwrap().uid();
            let told = restored.failed.iter().any(|failed| failed.path == tree.join("their-file"));
            assert!(owner == 0 || told, "its owner is {owner}: {:?}", restored.failed);
            no_debris(&tree.join("mine"));
        },
    );
}

/// A set-uid bit comes back only if it was there.
#[test]
fn a_set_uid_bit_is_restored_only_if_it_was_there() {
    as_user("laws::permissions::a_set_uid_bit_is_restored_only_if_it_was_there", |place| {
        let world = World::on(place);
        world.sh("echo a > had; chmod 4755 had; echo b > hadnt; chmod 755 hadnt; mkdir gdir; chmod 2775 gdir; mkdir sticky; chmod 1777 sticky");
        let before = look(&world.tree);
        let mut manager = world.manager();
        manager.create_baseline().unwrap();
        world.sh("echo x > had; chmod 755 had; chmod 6755 hadnt; echo y > hadnt; chmod 6755 hadnt; chmod 755 gdir; rmdir sticky");
        clean(&manager.restore_to(0).unwrap());
        same(&before, &look(&world.tree));
    });
}

fn immutable(flag: &str, path: &std::path::Path) -> bool {
    Command::new("chattr").arg(flag).arg(path).status().is_ok_and(|status| status.success())
}

/// Takes the flags off again, also when the test fails.
struct Flags<'a>(&'a World);

impl Drop for Flags<'_> {
    fn drop(&mut self) {
        Command::new("chattr").args(["-R", "-i", "-a"]).arg(&self.0.tree).status().ok();
    }
}

#[test]
fn immutable_files_are_reported_and_the_rest_done() {
    let world = World::new();
    let _flags = Flags(&world);
    for name in ["a", "fixed", "deleted", "dir/in", "dir/other", "append", "z"] {
        world.write(name, "old");
    }
    let before = look(&world.tree);
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("for f in a fixed dir/in append z; do echo new > $f; done; rm deleted; echo new > extra; chmod 600 dir/other");
    let changed = look(&world.tree);
    if !immutable("+i", &world.path("fixed")) {
        return skip("chattr +i does not work here");
    }
    assert!(
        immutable("+i", &world.path("dir"))
            && immutable("+i", &world.path("extra"))
            && immutable("+a", &world.path("append"))
    );
    let restored = manager.restore_to(0).unwrap();
    let failed: Vec<_> = restored.failed.iter().map(|failed| failed.path.clone()).collect();
    for name in ["fixed", "dir/in", "extra", "append"] {
        assert!(failed.contains(&world.path(name)), "{name} is not reported: {:#?}", restored.failed);
    }
    for name in ["a", "z", "deleted"] {
        assert_eq!(world.read(name), "old", "{name}");
    }
    assert_eq!((world.read("fixed"), world.read("dir/in")), ("new\n".into(), "new\n".into()));
    no_debris(&world.tree);
    for name in ["fixed", "dir", "extra"] {
        assert!(immutable("-i", &world.path(name)));
    }
    assert!(immutable("-a", &world.path("append")));
    clean(&manager.restore_to(0).unwrap());
    same(&before, &look(&world.tree));
    clean(&go_back(&mut manager, &restored.safety));
    same(&changed, &look(&world.tree));
}

/// The user's mask and default lists do not matter for what comes back.
#[test]
fn the_parents_attributes_are_not_inherited() {
    let world = World::new();
    world.sh("mkdir d; echo a > d/a; chmod 666 d/a; mkdir d/s; chmod 777 d/s");
    let before = look(&world.tree);
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("rm -rf d/a d/s; setfacl -m d:u:1234:rwx,d:g::--- d || true; chmod g+s d");
    clean(&manager.restore_to(0).unwrap());
    same(&before, &look(&world.tree));
    assert_eq!(world.path("d/a").metadata().unwrap().permissions().mode() & 0o7777, 0o666);
}
