//! Law 1: a restore never deletes or overwrites bytes that are not stored.

use std::os::unix::fs::MetadataExt;

use nono_snapshot::{
    CaptureOptions, Cause, CoverageNote, ExclusionConfig, Limits, ManagerOptions, Protection, SnapshotManager,
};

use crate::common::user::{as_user, few_open_files};
use crate::common::{World, by_hand, clean, git, go_back, left_out, noise, write};
use nono_testkit::oracle::{look, same};

fn patterns(patterns: &[&str]) -> ExclusionConfig {
    ExclusionConfig { exclude_patterns: patterns.iter().map(|&p| p.into()).collect(), ..Default::default() }
}

#[test]
fn what_a_pattern_left_out_stays() {
    let world = World::new();
    world.write("keep/file", "kept");
    world.write("data/precious", "precious");
    world.write("sub/data/more", "more");
    let mut manager = world.manager_with(patterns(&["data"]));
    let baseline = manager.create_baseline().unwrap();
    assert_eq!(left_out(&baseline, Cause::Pattern), 2);
    world.sh("echo edited > data/precious; echo new > data/new; rm sub/data/more; mkdir -p other/data; echo x > other/data/x; echo x > keep/file");
    let (data, others) = (look(&world.path("data")), look(&world.path("other/data")));
    let restored = manager.restore_to(0).unwrap();
    assert!(restored.failed.is_empty(), "{:?}", restored.failed);
    same(&data, &look(&world.path("data")));
    same(&others, &look(&world.path("other/data")));
    assert!(!world.exists("sub/data/more"), "it was never stored");
    assert_eq!(world.read("keep/file"), "kept");
}

/// The rules may change from manager to manager; those of a snapshot do not.
#[test]
fn rules_are_those_of_the_snapshot() {
    let world = World::new();
    world.write("a/file", "old");
    world.write("b/file", "old");
    world.manager_with(patterns(&["a"])).create_baseline().unwrap();
    let mut manager = world.manager_with(patterns(&["b"]));
    world.sh("echo new > a/file; echo new > b/file; echo new > a/new; echo new > b/new");
    clean(&manager.restore_to(0).unwrap());
    assert_eq!((world.read("a/file"), world.read("a/new")), ("new\n".into(), "new\n".into()));
    assert_eq!(world.read("b/file"), "old");
    assert!(!world.exists("b/new"));
}

#[test]
fn what_a_nested_gitignore_left_out_stays() {
    let world = World::new();
    world.write("top", "top");
    world.write("sub/.gitignore", "*.log\n/cache/\n!keep.log\n");
    world.write("sub/a.log", "log");
    world.write("sub/keep.log", "keep");
    world.write("sub/cache/c", "c");
    world.write("sub/deep/cache/c", "not ignored");
    world.write("a.log", "not ignored here");
    let mut manager = world.manager();
    let baseline = manager.create_baseline().unwrap();
    assert_eq!(left_out(&baseline, Cause::Ignored), 2);
    world.sh("for f in sub/a.log sub/keep.log sub/cache/c sub/deep/cache/c a.log; do echo changed > $f; done; echo x > sub/cache/x; echo x > sub/b.log");
    let restored = manager.restore_to(0).unwrap();
    clean(&restored);
    for untouched in ["sub/a.log", "sub/cache/c"] {
        assert_eq!(world.read(untouched), "changed\n", "{untouched}");
    }
    assert!(world.exists("sub/cache/x") && world.exists("sub/b.log"));
    assert_eq!(world.read("sub/keep.log"), "keep");
    assert_eq!(world.read("sub/deep/cache/c"), "not ignored");
    assert_eq!(world.read("a.log"), "not ignored here");
}

/// The agent removes the directory that holds ignored files: what is ignored elsewhere stays, and is not missed.
#[test]
fn a_directory_with_ignored_content_cannot_be_replaced() {
    let world = World::new();
    world.write(".gitignore", "*.secret\n");
    world.write("place", "a file");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("rm place; mkdir -p place/in; echo mine > place/in/my.secret; echo junk > place/junk");
    let restored = manager.restore_to(0).unwrap();
    assert_eq!(world.read("place/in/my.secret"), "mine\n");
    assert!(!world.exists("place/junk"), "what is stored goes");
    assert!(
        restored.skipped.iter().any(|skipped| skipped.path == world.path("place")),
        "{:?}",
        restored.skipped
    );
}

/// A name that was excluded as a directory is a file now, or the other way round.
#[test]
fn a_name_that_was_left_out_stays_whatever_it_became() {
    let world = World::new();
    world.write(".gitignore", "out/\n");
    world.write("out/was", "dir");
    world.write("x", "x");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("rm -rf out; echo 'now a file' > out; echo y > x");
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("out"), "now a file\n");
    world.sh("rm out; ln -s /etc/passwd out");
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(std::fs::read_link(world.path("out")).unwrap().to_str(), Some("/etc/passwd"));
}

#[test]
fn an_ignore_file_changed_later_changes_nothing() {
    for change in [
        "echo '*.txt' > .gitignore",
        "rm .gitignore",
        "echo '!*.log' >> .gitignore",
        "echo '*' > sub/.gitignore",
    ] {
        let world = World::new();
        world.write(".gitignore", "*.log\n");
        for n in 0..5 {
            world.write(format!("sub/{n}.txt"), "old");
            world.write(format!("sub/{n}.log"), "old");
        }
        let before = look(&world.tree);
        let mut manager = world.manager();
        manager.create_baseline().unwrap();
        world.sh(change);
        world.sh("for f in sub/*.txt; do echo new > $f; done; echo new > sub/new.log; echo new > sub/new.txt; rm sub/3.txt");
        let changed = look(&world.tree);
        let restored = manager.restore_to(0).unwrap();
        clean(&restored);
        assert!(world.exists("sub/new.log"), "{change}");
        world.sh("rm sub/new.log; touch -d @1 sub");
        let fixed = ["sub", "acl sub", "acl sub/new.log"];
        same(&before.without(&["sub"]), &look(&world.tree).without(&["sub"]));
        for n in 0..5 {
            assert_eq!(world.read(format!("sub/{n}.txt")), "old", "{change}");
            assert_eq!(world.read(format!("sub/{n}.log")), "old", "{change}");
        }
        assert!(!world.exists("sub/new.txt") && !world.exists("sub/.gitignore"), "{change}");
        clean(&go_back(&mut manager, &restored.safety));
        same(&changed.without(&fixed), &look(&world.tree).without(&fixed));
    }
}

/// The other direction: ignored when captured, no longer ignored when restored, and taken by a later snapshot.
#[test]
fn what_was_ignored_then_and_captured_later_stays() {
    let world = World::new();
    world.write(".gitignore", "data\n");
    world.write("data/file", "then");
    world.write("code", "code");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("rm .gitignore; echo later > data/file");
    manager.create_incremental().unwrap();
    world.sh("echo now > data/file; echo now > data/new");
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("data/file"), "now\n", "snapshot 0 does not hold it");
    assert!(world.exists("data/new") && world.exists(".gitignore"));
    clean(&manager.restore_to(1).unwrap());
    assert_eq!(world.read("data/file"), "later\n");
    assert!(!world.exists("data/new") && !world.exists(".gitignore"));
}

/// Captured at first, ignored by a later snapshot: restoring that one leaves it alone.
#[test]
fn what_a_later_snapshot_ignores_is_not_deleted_by_it() {
    let world = World::new();
    world.write("data/file", "data");
    world.write("code", "code");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("echo data > .gitignore");
    let (_, changes) = manager.create_incremental().unwrap();
    assert!(changes.iter().all(|change| !change.path.starts_with(world.path("data"))), "{changes:?}");
    world.sh("echo changed > data/file; rm .gitignore");
    clean(&manager.restore_to(1).unwrap());
    assert_eq!(world.read("data/file"), "changed\n");
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("data/file"), "data");
}

#[test]
fn what_was_unreadable_stays() {
    as_user("laws::untouched::what_was_unreadable_stays", |place| {
        let world = World::on(place);
        world.write("fine", "fine");
        world.write("closed", "secret");
        world.write("dir/in", "in");
        world.sh("chmod 000 closed dir");
        let mut manager = world.manager();
        let baseline = manager.create_baseline().unwrap();
        assert_eq!(left_out(&baseline, Cause::Unreadable), 2);
        let protection = baseline.protection(&world.path("dir/in")).unwrap();
        assert!(
            matches!(protection, Protection::LeftOut { because_of, .. } if because_of == world.path("dir"))
        );
        // Still closed, and then open and edited: never touched.
        let stat = || ["closed", "dir"].map(|name| world.path(name).metadata().unwrap());
        let closed = stat().map(|stat| (stat.ino(), stat.mode(), stat.mtime_nsec()));
        clean(&manager.restore_to(0).unwrap());
        assert_eq!(closed, stat().map(|stat| (stat.ino(), stat.mode(), stat.mtime_nsec())));
        world.sh("chmod 755 dir; chmod 644 closed; echo changed > closed; echo new > dir/new; rm dir/in; echo x > fine");
        clean(&manager.restore_to(0).unwrap());
        assert_eq!((world.read("closed"), world.read("dir/new")), ("changed\n".into(), "new\n".into()));
        assert_eq!(world.read("fine"), "fine");
    });
}

fn with_budget(world: &World, budget: u64) -> SnapshotManager {
    let capture = CaptureOptions { budget: Some(budget), ..CaptureOptions::default() };
    let options = ManagerOptions { capture, ..by_hand() };
    SnapshotManager::with_options(
        &world.session,
        [&world.tree],
        ExclusionConfig::default(),
        Limits::NONE,
        options,
    )
    .unwrap()
}

#[test]
fn what_did_not_fit_the_budget_stays() {
    let world = World::new();
    world.write("small", "small");
    world.write("sub/large", noise(5_000_000, 1));
    let mut manager = with_budget(&world, 1_000_000);
    let baseline = manager.create_baseline().unwrap();
    assert_eq!(left_out(&baseline, Cause::OverBudget), 1);
    assert!(matches!(baseline.protection(&world.path("sub/large")).unwrap(), Protection::LeftOut { .. }));
    let large = noise(4_000_000, 2);
    world.write("sub/large", &large);
    world.write("small", "changed");
    let restored = manager.restore_to(0).unwrap();
    assert!(restored.failed.is_empty());
    assert!(std::fs::read(world.path("sub/large")).unwrap() == large);
    assert_eq!(world.read("small"), "small");
}

/// The safety snapshot has a budget too: files that do not fit must not be overwritten.
#[test]
fn what_the_safety_snapshot_cannot_hold_stays() {
    let world = World::new();
    world.write("file", "old");
    world.write("other", "old");
    let mut manager = with_budget(&world, 1_000_000);
    manager.create_baseline().unwrap();
    let (large, new) = (noise(5_000_000, 3), noise(6_000_000, 4));
    world.write("file", &large);
    world.write("new/file", &new);
    world.write("other", "changed");
    match manager.restore_to(0) {
        Ok(restored) => {
            let skipped = |path| restored.skipped.iter().any(|skipped| skipped.path == world.path(path));
            assert!(skipped("file") && skipped("new/file"), "{:?}", restored.skipped);
            assert_eq!(world.read("other"), "old");
        }
        Err(error) => panic!("nothing was restored: {error}"),
    }
    assert!(std::fs::read(world.path("file")).unwrap() == large);
    assert!(std::fs::read(world.path("new/file")).unwrap() == new);
}

/// A file that others made after the session: conflicts are kept when asked for, and stored either way.
#[test]
fn a_file_made_after_the_session_is_kept() {
    let world = World::new();
    world.write("a", "a");
    world.write("b", "b");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("echo agent > a; echo agent > b; echo agent > new");
    let (last, _) = manager.create_incremental().unwrap();
    world.sh("echo person > b; echo person > mine; mkdir d; echo person > d/mine");
    let options =
        nono_snapshot::RestoreOptions { keep_changed_since: vec![last.id.clone()], ..Default::default() };
    let first = nono_snapshot::SnapshotId::Number(0);
    let restored = manager.restore(&first, &options).unwrap();
    assert_eq!(world.read("a"), "a");
    assert_eq!(
        (world.read("b"), world.read("mine"), world.read("d/mine")),
        ("person\n".into(), "person\n".into(), "person\n".into())
    );
    assert!(!world.exists("new"));
    let reported =
        |name: &str| restored.skipped.iter().any(|skipped| skipped.path.starts_with(world.path(name)));
    assert!(reported("b") && reported("mine") && reported("d"), "{:?}", restored.skipped);
    // restore_to of the library restores everything captured; nothing is lost.
    let all = manager.restore_to(0).unwrap();
    clean(&all);
    assert!(!world.exists("mine") && !world.exists("d"));
    clean(&go_back(&mut manager, &all.safety));
    assert_eq!(world.read("d/mine"), "person\n");
}

#[test]
fn the_session_folder_may_be_in_the_tree() {
    let world = World::new();
    world.write("file", "old");
    let session = world.path("state/session");
    let roots = [&world.tree];
    let make = || {
        SnapshotManager::with_options(&session, roots, ExclusionConfig::default(), Limits::NONE, by_hand())
            .unwrap()
    };
    let mut manager = make();
    let baseline = manager.create_baseline().unwrap();
    assert_eq!(left_out(&baseline, Cause::OwnState), 1);
    assert!(baseline.files().unwrap().keys().all(|path| !path.starts_with(&session)));
    world.sh("echo new > file; echo new > state/new");
    let (_, changes) = manager.create_incremental().unwrap();
    assert_eq!(changes.len(), 2, "{changes:?}");
    let restored = manager.restore_to(0).unwrap();
    clean(&restored);
    assert_eq!(world.read("file"), "old");
    assert!(!world.exists("state/new"));
    clean(&go_back(&mut manager, &restored.safety));
    assert_eq!(world.read("file"), "new\n");
    assert!(manager.verify().unwrap().is_clean());
    drop(manager);
    let mut manager = make();
    clean(&manager.restore_to(0).unwrap());
    assert_eq!((world.read("file"), manager.snapshot_count().unwrap()), ("old".into(), 2));
}

/// The session folder appeared after the snapshot, like that of another session: it must not be deleted unstored.
#[test]
fn a_session_folder_in_a_tree_that_ignores_it() {
    let world = World::new();
    world.write(".gitignore", "state\n");
    world.write("file", "old");
    let session = world.path("state");
    let mut manager = SnapshotManager::with_options(
        &session,
        [&world.tree],
        ExclusionConfig::default(),
        Limits::NONE,
        by_hand(),
    )
    .unwrap();
    manager.create_baseline().unwrap();
    world.sh("echo new > file; rm .gitignore");
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("file"), "old");
    assert!(manager.verify().unwrap().is_clean());
}

#[test]
fn a_pattern_that_is_a_folder_above_the_root_matches_nothing() {
    let world = World::new();
    let root = world.path("build/node_modules/project");
    write(&root.join("src/file"), "old");
    write(&root.join("build/out"), "out");
    let config = patterns(&["build", "node_modules", "tree/build", "node_modules/project"]);
    let mut manager = world.manager_on(&[&root], config);
    let baseline = manager.create_baseline().unwrap();
    assert_eq!(baseline.protection(&root.join("src/file")).unwrap(), Protection::Captured);
    assert!(matches!(baseline.protection(&root.join("build/out")).unwrap(), Protection::LeftOut { .. }));
    write(&root.join("src/file"), "new");
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(std::fs::read(root.join("src/file")).unwrap(), b"old");
}

/// A rule above the root, in the same repository, that would leave the root itself out.
#[test]
fn a_root_that_is_ignored_itself_is_captured() {
    let world = World::new();
    git(&world.tree, &["init", "-q"]);
    world.write(".gitignore", "/work/\n");
    let root = world.path("work");
    for n in 0..50 {
        write(&root.join(format!("{n}")), "x");
    }
    let mut manager = world.manager_on(&[&root], ExclusionConfig::default());
    let baseline = manager.create_baseline().unwrap();
    assert_eq!(baseline.coverage.files, 50);
    assert!(!baseline.coverage.notes.is_empty());
}

fn set_aside(manifest: &nono_snapshot::Manifest) -> usize {
    let aside = |note: &&CoverageNote| matches!(note, CoverageNote::IgnoreRulesSetAside { .. });
    manifest.coverage.notes.iter().filter(aside).count()
}

#[test]
fn rules_that_leave_almost_nothing_are_set_aside() {
    for rules in ["*\n", ".*\n*.txt\n", "/*\n!/.gitignore\n", "sub/\n"] {
        let world = World::new();
        world.write(".gitignore", rules);
        for n in 0..40 {
            world.write(format!("sub/{n}.txt"), "old");
        }
        let before = look(&world.tree);
        let mut manager = world.manager();
        let baseline = manager.create_baseline().unwrap();
        assert_eq!(set_aside(&baseline), 1, "{rules:?}: {:?}", baseline.coverage);
        assert_eq!((baseline.coverage.files, baseline.coverage.entries_left_out()), (41, 0), "{rules:?}");
        let line = baseline.coverage.notes.iter().map(ToString::to_string).collect::<String>();
        assert!(line.contains("set aside") && line.lines().count() == 1, "{line}");
        world.sh("rm -rf sub; echo junk > junk.txt");
        clean(&manager.restore_to(0).unwrap());
        same(&before, &look(&world.tree));
        world.sh("echo new > sub/1.txt");
        let (next, changes) = manager.create_incremental().unwrap();
        assert_eq!((set_aside(&next), changes.len()), (1, 1), "{rules:?}");
    }
}

/// Files whose names begin with a dot, when a rule says `.*`: they are 100 % of this tree.
#[test]
fn a_tree_of_dot_files_under_a_rule_of_dots_is_captured() {
    let world = World::new();
    world.write(".gitignore", ".*\n");
    for n in 0..30 {
        world.write(format!(".config/{n}"), "x");
    }
    let baseline = world.manager().create_baseline().unwrap();
    assert_eq!((set_aside(&baseline), baseline.coverage.files), (1, 31));
}

/// At 5 % and above the rules hold.
#[test]
fn five_percent_is_enough() {
    for (kept, aside) in [(4, 1), (5, 0)] {
        let world = World::new();
        // The ignore file itself is one of the kept.
        world.write(".gitignore", "*.o\n");
        (1..kept).for_each(|n| drop(world.write(format!("{n}.c"), "c")));
        (0..100 - kept).for_each(|n| drop(world.write(format!("{n}.o"), "o")));
        let baseline = world.manager().create_baseline().unwrap();
        assert_eq!(set_aside(&baseline), aside, "{kept} of 100");
    }
}

/// The agent writes a `.gitignore` of `*` to hide from the next snapshot.
#[test]
fn an_ignore_file_of_everything_written_later_hides_nothing() {
    let world = World::new();
    for n in 0..40 {
        world.write(format!("{n}.txt"), "old");
    }
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("echo '*' > .gitignore; echo new > 1.txt; rm 2.txt");
    let (next, changes) = manager.create_incremental().unwrap();
    assert_eq!(set_aside(&next), 1);
    assert_eq!(changes.len(), 3, "{changes:?}");
}

/// Many directories side by side on every level of a deep tree: the count must not run out of descriptors.
#[test]
fn a_deep_and_wide_ignored_tree_is_counted() {
    as_user("laws::untouched::a_deep_and_wide_ignored_tree_is_counted", |place| {
        few_open_files();
        let world = World::on(place);
        world.write(".gitignore", "/a/\n");
        world.write("kept", "kept");
        deep_and_wide(&world.tree, 1800);
        let baseline = world.manager().create_baseline();
        super::deep::remove(&world.tree);
        assert_eq!(set_aside(&baseline.unwrap()), 1);
    });
}

/// A chain of directories `a`, each with others beside it; the files are at the bottom.
fn deep_and_wide(top: &std::path::Path, depth: usize) {
    use rustix::fs::{Mode, OFlags};
    let mode = Mode::from_raw_mode(0o755);
    let mut dir = rustix::fs::open(top, OFlags::PATH, mode).unwrap();
    for _ in 0..depth {
        for name in ["a", "b", "z"] {
            rustix::fs::mkdirat(&dir, name, mode).unwrap();
        }
        dir = rustix::fs::openat(&dir, "a", OFlags::PATH, mode).unwrap();
    }
    for n in 0..60 {
        let flags = OFlags::CREATE | OFlags::WRONLY;
        rustix::fs::openat(&dir, format!("{n}"), flags, Mode::RUSR).unwrap();
    }
}
