//! Law 2: coverage is never silent.

use std::path::Path;

use nono_snapshot::node::Reason;
use nono_snapshot::{CaptureError, Cause, CoverageNote, ExclusionConfig, Protection, SnapshotError};

use crate::common::{World, bytes, git, left_out};

fn everything_out() -> ExclusionConfig {
    ExclusionConfig { exclude_globs: vec!["*".into()], ..Default::default() }
}

#[test]
fn protection_answers_for_every_path() {
    let world = World::new();
    world.write(".gitignore", "*.log\n/ignored/\n");
    world.write("file", "f");
    world.write(bytes(b"\xff\n"), "f");
    world.write("a.log", "l");
    world.write("ignored/deep/er", "i");
    world.write("patterned/x", "p");
    world.write("globbed.tmp", "g");
    world.sh("mkdir empty; ln -s nowhere link; ln -s /etc etc");
    let config = ExclusionConfig {
        exclude_patterns: vec!["patterned".into()],
        exclude_globs: vec!["*.tmp".into()],
        ..Default::default()
    };
    let mut manager = world.manager_with(config);
    let baseline = manager.create_baseline().unwrap();
    let ask = |path: &Path| baseline.protection(path).unwrap();
    for captured in ["", "file", ".gitignore", "empty", "link", "etc"] {
        assert_eq!(ask(&world.tree.join(captured)), Protection::Captured, "{captured}");
    }
    assert_eq!(ask(&world.path(bytes(b"\xff\n"))), Protection::Captured);
    let because = |path: &str| match ask(&world.path(path)) {
        Protection::LeftOut { because_of, reason } => (because_of, reason),
        other => panic!("{path}: {other:?}"),
    };
    let ignored = |rule: &str| Reason::Ignored { rule: rule.into(), file: ".gitignore".into() };
    assert_eq!(because("a.log"), (world.path("a.log"), ignored("*.log")));
    assert_eq!(because("ignored/deep/er"), (world.path("ignored"), ignored("/ignored/")));
    assert_eq!(because("patterned/x"), (world.path("patterned"), Reason::Pattern("patterned".into())));
    assert_eq!(because("globbed.tmp"), (world.path("globbed.tmp"), Reason::Glob("*.tmp".into())));
    for absent in ["none", "file/below", "empty/none", "etc/passwd"] {
        assert_eq!(ask(&world.path(absent)), Protection::NotThere, "{absent}");
    }
    assert_eq!(ask(Path::new("/etc/passwd")), Protection::Outside);
    assert_eq!(ask(&world.tree.with_file_name("tree-not")), Protection::Outside);
    // What came later was not there.
    world.write("later", "l");
    assert_eq!(ask(&world.path("later")), Protection::NotThere);
    // The same from the disk.
    let loaded = world.manager().load_manifest(0).unwrap();
    assert_eq!(loaded.coverage, baseline.coverage);
    assert_eq!(loaded.protection(&world.path("a.log")).unwrap(), ask(&world.path("a.log")));
}

#[test]
fn counts_and_reasons_are_exact() {
    let world = World::new();
    world.write(".gitignore", "*.log\nignored/\n");
    for n in 0..20 {
        world.write(format!("{n}.log"), "12345");
        world.write(format!("{n}.txt"), "12345");
    }
    world.write("ignored/1", "x");
    world.write("ignored/2", "x");
    world.sh("mkdir -p d/e; ln -s x l; mkfifo p");
    let mut manager = world.manager();
    let baseline = manager.create_baseline().unwrap();
    let coverage = &baseline.coverage;
    assert_eq!((coverage.files, coverage.bytes, coverage.others), (21, 20 * 5 + 15, 2));
    // With the root, or without it.
    assert!((2..=3).contains(&coverage.directories), "{}", coverage.directories);
    let ignored = coverage.left_out.iter().find(|left_out| left_out.cause == Cause::Ignored).unwrap();
    assert_eq!((ignored.entries, ignored.directories), (21, 1));
    assert!(!ignored.examples.is_empty());
    let all = baseline.left_out().unwrap();
    assert_eq!(all.len(), 21);
    assert!(
        all.iter().all(|(path, reason)| path.starts_with(&world.tree) && reason.cause() == Cause::Ignored)
    );
    assert_eq!(baseline.files().unwrap().len(), 21);
    // They stay exact when nothing is read again, and when things change.
    let (again, changes) = manager.create_incremental().unwrap();
    assert_eq!((&again.coverage, changes.len()), (coverage, 0));
    world.sh("rm 1.log 2.log; echo 123 > 3.txt; rm 4.txt");
    let (third, _) = manager.create_incremental().unwrap();
    assert_eq!(left_out(&third, Cause::Ignored), 19);
    assert_eq!((third.coverage.files, third.coverage.bytes), (20, 18 * 5 + 4 + 15));
}

#[test]
fn an_empty_snapshot_of_a_tree_with_files_is_an_error() {
    let world = World::new();
    world.write("file", "f");
    let mut manager = world.manager_with(everything_out());
    let error = manager.create_baseline().unwrap_err();
    assert!(matches!(&error, SnapshotError::Capture(CaptureError::Nothing { .. })), "{error}");
    assert!(error.to_string().contains("file"), "it says what: {error}");
    assert_eq!(manager.snapshot_count().unwrap(), 0);
}

#[test]
fn an_empty_incremental_of_a_tree_with_files_is_an_error() {
    let world = World::new();
    world.write("file", "f");
    world.manager().create_baseline().unwrap();
    let mut manager = world.manager_with(everything_out());
    assert!(manager.create_incremental().is_err());
    assert_eq!(manager.snapshot_count().unwrap(), 1);
}

#[test]
fn an_empty_tree_is_no_error() {
    let world = World::new();
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.write("new/file", "n");
    assert!(manager.restore_to(0).unwrap().failed.is_empty());
    assert!(!world.exists("new"));
}

#[test]
fn an_unreadable_ignore_file_and_a_damaged_index_are_told() {
    let world = World::new();
    git(&world.tree, &["init", "-q"]);
    world.write(".gitignore", "*.log\n");
    world.write("a.log", "l");
    world.write("file", "f");
    std::fs::write(world.path(".git/index"), b"DIRCthis is no index").unwrap();
    let baseline = world.manager().create_baseline().unwrap();
    assert!(baseline.coverage.notes.iter().any(|note| matches!(note, CoverageNote::Rules { .. })));
    assert_eq!(baseline.protection(&world.path("a.log")).unwrap(), Protection::Captured, "more, never less");
}

#[test]
fn large_packs_of_git_are_named() {
    let world = World::new();
    git(&world.tree, &["init", "-q"]);
    world.write("file", "f");
    world.sh("mkdir -p .git/objects/pack; head -c 70000000 /dev/zero | tr '\\0' x > .git/objects/pack/pack-1.pack; echo small > .git/objects/pack/pack-2.pack");
    let mut manager = world.manager();
    let baseline = manager.create_baseline().unwrap();
    let protection = baseline.protection(&world.path(".git/objects/pack/pack-1.pack")).unwrap();
    if protection == Protection::Captured {
        // A filesystem with reflinks.
        assert_eq!(left_out(&baseline, Cause::LargePack), 0);
    } else {
        assert_eq!(left_out(&baseline, Cause::LargePack), 1);
    }
    for path in [".git/HEAD", ".git/config", ".git/objects/pack/pack-2.pack"] {
        assert_eq!(baseline.protection(&world.path(path)).unwrap(), Protection::Captured, "{path}");
    }
    let take =
        ExclusionConfig { large_git_packs: nono_snapshot::exclusion::LargePacks::Take, ..Default::default() };
    let (baseline, _) = world.manager_with(take).create_incremental().unwrap();
    assert_eq!(left_out(&baseline, Cause::LargePack), 0);
}

/// A log that is appended to all the time is captured at one size, and a note says so.
#[test]
fn a_log_that_grows_is_taken_at_a_size() {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicBool, Ordering};
    let world = World::new();
    for (name, size) in [("small.log", 1000), ("large.log", 5 << 20)] {
        world.write(name, vec![b'x'; size]);
        let done = AtomicBool::new(false);
        let mut manager = world.manager_with(ExclusionConfig::default());
        let baseline = std::thread::scope(|scope| {
            let mut log = std::fs::OpenOptions::new().append(true).open(world.path(name)).unwrap();
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    log.write_all(b"one more line\n").unwrap();
                }
            });
            // It has begun.
            while std::fs::metadata(world.path(name)).unwrap().len() == size as u64 {
                std::thread::yield_now();
            }
            let baseline = if manager.snapshot_count().unwrap() == 0 {
                manager.create_baseline().unwrap()
            } else {
                manager.create_incremental().unwrap().0
            };
            done.store(true, Ordering::Relaxed);
            baseline
        });
        assert_eq!(baseline.coverage.entries_left_out(), 0, "{:?}", baseline.coverage);
        let taken = baseline.coverage.notes.iter().find_map(|note| match note {
            CoverageNote::Growing { path, size } if *path == world.path(name) => Some(*size),
            _ => None,
        });
        let files = baseline.files().unwrap();
        let held = &files[&world.path(name)];
        // Where nothing was appended in that moment, it is like any other file.
        assert!(taken.is_none_or(|taken| taken == held.size), "{name}: {taken:?}, {held:?}");
        let now = std::fs::read(world.path(name)).unwrap();
        let start = &now[..usize::try_from(held.size).unwrap()];
        assert_eq!(manager.content(held.hash, u64::MAX).unwrap().unwrap(), start, "{name}");
        std::fs::remove_file(world.path(name)).unwrap();
    }
}
