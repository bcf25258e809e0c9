//! Paths that a restore leaves alone because it was told to, or because others changed them; `.git` as a whole; and new
//! bytes for existing files.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use nono_snapshot::restore::Why;
use nono_snapshot::{ChangeType, RestoreOptions, Restored, SnapshotError, SnapshotId, SnapshotManager};

use crate::common::user::as_user;
use crate::common::{World, bytes, clean, git, go_back, no_debris};
use nono_testkit::oracle::{look, same};

fn since(ids: &[&SnapshotId]) -> RestoreOptions {
    let keep_changed_since = ids.iter().map(|id| (*id).clone()).collect();
    RestoreOptions { keep_changed_since, ..RestoreOptions::default() }
}

fn skipped(world: &World, restored: &Restored) -> Vec<(String, Why)> {
    let name = |path: &std::path::Path| path.strip_prefix(&world.tree).unwrap().display().to_string();
    restored.skipped.iter().map(|one| (name(&one.path), one.why.clone())).collect()
}

/// Restore, checking that the plan gave the same result.
fn restore(manager: &mut SnapshotManager, number: u32, options: &RestoreOptions) -> Restored {
    let id = SnapshotId::Number(number);
    let plan = manager.plan_restore(&id, options).unwrap();
    let (planned, changes) = (plan.skipped().to_vec(), plan.changes());
    let restored = manager.restore(&id, options).unwrap();
    assert!(restored.failed.is_empty(), "{:?}", restored.failed);
    assert_eq!((&planned, &changes), (&restored.skipped, &restored.changes));
    restored
}

#[test]
fn what_is_excepted_stays_and_nothing_is_said() {
    let world = World::new();
    for name in ["a/one", "a/two", "b/three", "gone", "was-file"] {
        world.write(name, "old");
    }
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("for f in a/one a/two b/three; do echo new > $f; done; rm gone was-file; mkdir -p new/deep was-file; echo n > new/deep/kept; echo n > new/deep/other; echo n > was-file/kept");
    let except: Vec<PathBuf> = ["a/two", "b", "gone", "new/deep/kept", "was-file/kept", "not/there"]
        .map(|name| world.path(name))
        .into();
    let options = RestoreOptions { except, ..RestoreOptions::default() };
    let restored = restore(&mut manager, 0, &options);
    assert_eq!(
        (world.read("a/one"), world.read("a/two"), world.read("b/three")),
        ("old".into(), "new\n".into(), "new\n".into())
    );
    assert!(!world.exists("gone") && !world.exists("new/deep/other"));
    assert_eq!((world.read("new/deep/kept"), world.read("was-file/kept")), ("n\n".into(), "n\n".into()));
    // What cannot be put back because of it is said.
    assert_eq!(skipped(&world, &restored), [("was-file".into(), Why::InTheWay)]);
    // Chosen and excepted: excepted.
    let both = RestoreOptions { paths: vec![world.path("b")], ..options.clone() };
    assert!(restore(&mut manager, 0, &both).changes.is_empty());
    // All of it, when a root is excepted.
    world.write("a/one", "newer");
    let all = RestoreOptions { except: vec![world.tree.clone()], ..RestoreOptions::default() };
    let restored = restore(&mut manager, 0, &all);
    assert!(restored.changes.is_empty() && restored.skipped.is_empty());
    let outside = RestoreOptions { except: vec!["/etc".into()], ..RestoreOptions::default() };
    let error = manager.restore(&0.into(), &outside).unwrap_err();
    assert!(matches!(error, SnapshotError::NotTracked { .. }), "{error}");
}

/// A path known from any of several states was not changed by others.
#[test]
fn a_state_in_none_of_the_snapshots_is_a_conflict() {
    let world = World::new();
    for name in ["first", "second", "person", "back", "mode"] {
        world.write(name, "old");
    }
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("echo 1 > first; echo 1 > second; echo 1 > person; echo 1 > back; chmod 600 mode; mkdir d; echo 1 > d/one");
    let one = manager.create_incremental().unwrap().0.id;
    world.sh("echo 2 > second; echo 2 > back; chmod 640 mode; echo 2 > d/two; rm d/one");
    let two = manager.create_incremental().unwrap().0.id;
    // In the tree now: from the first, from the second, from neither, back to the first, and modes the same way.
    world.sh("echo me > person; echo 1 > back; chmod 600 mode; echo 1 > d/one; echo me > d/me");
    let restored = restore(&mut manager, 0, &since(&[&one, &two]));
    let expected = [("d", Why::HoldsOthers), ("d/me", Why::ChangedSince), ("person", Why::ChangedSince)];
    assert_eq!(skipped(&world, &restored), expected.map(|(name, why)| (name.to_owned(), why)));
    for name in ["first", "second", "back"] {
        assert_eq!(world.read(name), "old", "{name}");
    }
    assert_eq!(world.path("mode").metadata().unwrap().mode() & 0o777, 0o644);
    assert!(!world.exists("d/one") && !world.exists("d/two") && world.exists("d/me"));
    assert_eq!(world.read("person"), "me\n");
    // With one of them alone, what comes from the other counts as changed by others.
    clean(&go_back(&mut manager, &restored.safety));
    let restored = restore(&mut manager, 0, &since(&[&two]));
    let names: Vec<String> = skipped(&world, &restored).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["back", "d", "d/me", "d/one", "mode", "person"]);
    // With none, no conflict is looked for.
    clean(&restore(&mut manager, 0, &RestoreOptions::default()));
    assert_eq!(world.read("person"), "old");
}

fn commit(world: &World, dir: &str, message: &str) {
    git(&world.path(dir), &["add", "-A"]);
    git(&world.path(dir), &["commit", "-q", "-m", message]);
}

fn with_repositories() -> World {
    let world = World::new();
    for dir in [".", "sub/inner"] {
        std::fs::create_dir_all(world.path(dir)).unwrap();
        world.write(format!("{dir}/file"), "old");
        git(&world.path(dir), &["init", "-q"]);
        commit(&world, dir, "first");
    }
    world
}

/// Restored as a whole or kept as a whole.
#[test]
fn a_git_folder_is_one_thing() {
    let world = with_repositories();
    let before = look(&world.tree);
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("echo agent > file; echo agent > sub/inner/file");
    commit(&world, ".", "by the agent");
    commit(&world, "sub/inner", "by the agent");
    let last = manager.create_incremental().unwrap().0.id;
    // The person commits in one of them only.
    world.sh("echo person > mine");
    commit(&world, ".", "by the person");
    let git_now = look(&world.path(".git"));
    let options = since(&[&last]);
    let restored = restore(&mut manager, 0, &options);
    assert_eq!(
        skipped(&world, &restored),
        [(".git".into(), Why::ChangedSince), ("mine".into(), Why::ChangedSince)]
    );
    same(&git_now, &look(&world.path(".git")));
    git(&world.tree, &["fsck", "--strict"]);
    git(&world.path("sub/inner"), &["fsck", "--strict"]);
    assert_eq!((world.read("file"), world.read("sub/inner/file")), ("old".into(), "old".into()));
    world.sh("test \"$(GIT_CONFIG_GLOBAL=/dev/null git -C sub/inner log --format=%s)\" = first");
    // A path inside that was chosen is no exception.
    let chosen = RestoreOptions { paths: vec![world.path(".git/index")], ..options.clone() };
    let part = restore(&mut manager, 0, &chosen);
    assert_eq!(skipped(&world, &part), [(".git".into(), Why::ChangedSince)]);
    same(&git_now, &look(&world.path(".git")));
    // Forced it is, and can be had back.
    let forced = restore(&mut manager, 0, &RestoreOptions { force: true, ..options });
    clean(&forced);
    same(&before, &look(&world.tree));
    clean(&go_back(&mut manager, &forced.safety));
    same(&git_now, &look(&world.path(".git")));
}

/// Any change of the user in it counts: each of these alone keeps all of it.
#[test]
fn whatever_changed_in_it_keeps_it() {
    for (script, kept) in [
        ("echo x > .git/hooks/new", true),
        ("rm .git/HEAD", true),
        ("chmod 600 .git/config", true),
        ("chmod 700 .git/refs", true),
        ("mkdir .git/refs/empty", true),
        ("rm -rf .git/refs", true),
        ("rm -rf .git", true),
        ("rm -rf .git; echo 'gitdir: x' > .git", true),
        ("touch .git/config", false),
        ("echo x >> file", false),
    ] {
        let world = with_repositories();
        let mut manager = world.manager();
        manager.create_baseline().unwrap();
        world.sh("echo agent > .git/description; echo agent > .git/config");
        let last = manager.create_incremental().unwrap().0.id;
        world.sh(script);
        let now = if world.path(".git").is_dir() { Some(look(&world.path(".git"))) } else { None };
        let restored = restore(&mut manager, 0, &since(&[&last]));
        let skipped = skipped(&world, &restored);
        let reported = skipped.iter().any(|one| *one == (".git".into(), Why::ChangedSince));
        let inside = skipped.iter().any(|(name, _)| name.starts_with(".git/"));
        assert_eq!((reported, inside), (kept, false), "{script}: {skipped:?}");
        if let Some(now) = now.filter(|_| kept) {
            same(&now, &look(&world.path(".git")));
        }
        if !kept {
            assert!(!world.read(".git/config").contains("agent"), "{script}");
        }
    }
}

/// The session removed it, or put something else in its place.
#[test]
fn a_git_folder_that_the_session_removed() {
    for (session, person, comes_back) in [
        ("rm -rf .git", "true", true),
        ("rm -rf .git; echo x > .git", "true", true),
        ("rm -rf .git; ln -s / .git", "true", true),
        ("rm -rf .git", "git init -q", false),
        ("rm -rf .git; echo x > .git", "echo y > .git", false),
        ("rm -rf .git; echo x > .git", "rm .git", false),
    ] {
        let world = with_repositories();
        let before = look(&world.tree);
        let mut manager = world.manager();
        manager.create_baseline().unwrap();
        world.sh(session);
        let last = manager.create_incremental().unwrap().0.id;
        world.sh(person);
        let restored = restore(&mut manager, 0, &since(&[&last]));
        if comes_back {
            clean(&restored);
            same(&before, &look(&world.tree));
        } else {
            assert_eq!(
                skipped(&world, &restored),
                [(".git".into(), Why::ChangedSince)],
                "{session}; {person}"
            );
            assert!(
                !world.exists(".git/hooks/pre-commit") && !world.exists(".git/logs"),
                "{session}; {person}"
            );
        }
    }
}

#[test]
fn files_get_new_bytes_and_keep_the_rest() {
    let world = World::new();
    world.write("plain", "old");
    world.write("d/exec", "old");
    world.write("other", "other");
    world.write("same", "same");
    world.sh(
        "chmod 4751 d/exec; setfattr -n user.note -v kept d/exec; touch -d @77 d plain; ln -s plain link",
    );
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("echo changed > plain; echo changed > other; touch -d @77 d");
    let before = look(&world.tree);
    let large = vec![b'x'; (4 << 20) + 17];
    let edits = [
        (world.path("plain"), b"merged\n".to_vec()),
        (world.path("d/exec"), large.clone()),
        (world.path("same"), b"same".to_vec()),
    ];
    let restored = manager.edit(&edits).unwrap();
    clean(&restored);
    assert_eq!(world.read("plain"), "merged\n");
    assert!(std::fs::read(world.path("d/exec")).unwrap() == large);
    let mut changed: Vec<_> = restored.changes.iter().map(|change| change.path.clone()).collect();
    changed.sort();
    assert_eq!(changed, [world.path("d/exec"), world.path("plain")]);
    assert!(restored.changes.iter().all(|change| change.change_type == ChangeType::Modified));
    let meta = world.path("d/exec").metadata().unwrap();
    assert_eq!(meta.mode() & 0o7777, 0o4751);
    world.sh("test $(getfattr --only-values -n user.note d/exec) = kept");
    assert!(meta.mtime() > 1_000_000_000 && world.path("d").metadata().unwrap().mtime() == 77);
    // Nothing else was touched.
    let names = ["plain", "d/exec"];
    same(&before.without(&names), &look(&world.tree).without(&names));
    no_debris(&world.tree);
    assert!(manager.verify().unwrap().is_clean());
    // It can be undone, and that too.
    let undone = go_back(&mut manager, &restored.safety);
    clean(&undone);
    same(&before, &look(&world.tree));
    clean(&go_back(&mut manager, &undone.safety));
    assert_eq!(world.read("plain"), "merged\n");
    // Numbers are as they were, and nothing is collected that is needed.
    assert_eq!(manager.snapshot_count().unwrap(), 1);
    manager.gc().unwrap();
    assert!(manager.verify().unwrap().is_clean());
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("plain"), "old");
}

#[test]
fn names_of_one_file_stay_one_file() {
    let world = World::new();
    world.write("one", "old");
    world.sh("mkdir d; ln one d/two; ln one three; echo old > alone");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    clean(&manager.edit(&[(world.path("d/two"), b"new".to_vec())]).unwrap());
    let inode = |name: &str| world.path(name).metadata().unwrap().ino();
    assert_eq!((inode("one"), inode("three")), (inode("d/two"), inode("d/two")));
    assert_eq!((world.read("one"), world.read("alone")), ("new".into(), "old\n".into()));
    // Named apart, they come apart.
    let edits = [(world.path("one"), b"a".to_vec()), (world.path("three"), b"b".to_vec())];
    clean(&manager.edit(&edits).unwrap());
    assert_eq!((world.read("one"), world.read("three")), ("a".into(), "b".into()));
}

/// Fails before anything is changed, even if the other edits are valid.
#[test]
fn what_is_no_file_is_not_edited() {
    let world = World::new();
    world.write("file", "old");
    world.write(".gitignore", "*.o\n");
    world.write("left.o", "o");
    world.write(bytes(b"odd\xff\nname"), "odd");
    world.sh("mkdir dir; ln -s file link; mkfifo pipe");
    let mut manager = world.manager();
    assert!(matches!(manager.edit(&[]).unwrap_err(), SnapshotError::NoBaseline { .. }));
    manager.create_baseline().unwrap();
    let before = look(&world.tree);
    let good = || (world.path("file"), b"new".to_vec());
    for name in ["dir", "link", "pipe", "none", "left.o", "file/below", "link/below"] {
        let error = manager.edit(&[good(), (world.path(name), Vec::new())]).unwrap_err();
        assert!(
            matches!(&error, SnapshotError::NoFile { path } if *path == world.path(name)),
            "{name}: {error}"
        );
    }
    let twice = manager.edit(&[good(), good()]).unwrap_err();
    assert!(matches!(twice, SnapshotError::Twice { .. }), "{twice}");
    for outside in ["/etc/passwd".into(), world.path("../tree/file"), world.path("dir/../file")] {
        let error = manager.edit(&[good(), (outside, Vec::new())]).unwrap_err();
        assert!(matches!(error, SnapshotError::NotTracked { .. }), "{error}");
    }
    same(&before, &look(&world.tree));
    assert_eq!(manager.snapshots().unwrap().len(), 1);
    let odd = world.path(bytes(b"odd\xff\nname"));
    clean(&manager.edit(&[(odd.clone(), Vec::new()), good()]).unwrap());
    assert_eq!((std::fs::read(odd).unwrap(), world.read("file")), (Vec::new(), "new".into()));
    // A root that is a file.
    let single = World::new();
    single.write("file", "old");
    let mut manager = single.manager_on(&[&single.path("file")], nono_snapshot::ExclusionConfig::default());
    manager.create_baseline().unwrap();
    clean(&manager.edit(&[(single.path("file"), b"new".to_vec())]).unwrap());
    assert_eq!(single.read("file"), "new");
}

#[test]
fn a_closed_file_in_a_closed_directory_is_edited() {
    as_user("laws::conflicts::a_closed_file_in_a_closed_directory_is_edited", |place| {
        let world = World::on(place);
        world.write("d/file", "old");
        let mut manager = world.manager();
        manager.create_baseline().unwrap();
        world.sh("chmod 000 d/file; chmod 000 d");
        clean(&manager.edit(&[(world.path("d/file"), b"new".to_vec())]).unwrap());
        assert_eq!(world.path("d").metadata().unwrap().mode() & 0o7777, 0);
        world.sh("chmod 700 d");
        assert_eq!(world.path("d/file").metadata().unwrap().mode() & 0o7777, 0);
        world.sh("chmod 600 d/file");
        assert_eq!(world.read("d/file"), "new");
    });
}

/// A later snapshot that a power loss emptied does not prevent a forced restore of an earlier one.
#[test]
fn a_forced_restore_needs_only_the_snapshot_that_is_restored() {
    let world = World::new();
    std::fs::write(world.path("file"), "before").unwrap();
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    std::fs::write(world.path("file"), "after").unwrap();
    manager.create_incremental().unwrap();
    std::fs::write(world.session.join("snapshots/001.json"), "").unwrap();
    let mut options =
        RestoreOptions { keep_changed_since: vec![SnapshotId::Number(1)], ..RestoreOptions::default() };
    assert!(manager.restore(&SnapshotId::Number(0), &options).is_err(), "nothing tells who changed what");
    options.force = true;
    manager.restore(&SnapshotId::Number(0), &options).unwrap();
    assert_eq!(std::fs::read_to_string(world.path("file")).unwrap(), "before");
}
