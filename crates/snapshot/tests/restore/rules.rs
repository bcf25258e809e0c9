//! Law 1, selections and conflicts.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nono_snapshot::node::{Errno, Reason};
use nono_snapshot::restore::{RestoreOutcome, RestoreRequest, Selection, Skipped, Why, plan};
use nono_snapshot::state::{RootContent, SnapshotState};

use crate::kit::{World, dump, inode, set_mtime};

fn skipped(world: &World, outcome: &[Skipped]) -> Vec<(String, Why)> {
    let root = world.root();
    let name = |path: &Path| path.strip_prefix(&root).unwrap().display().to_string();
    outcome.iter().map(|skipped| (name(&skipped.path), skipped.why.clone())).collect()
}

fn pattern() -> Reason {
    Reason::Pattern("ignored".into())
}

#[test]
fn what_the_target_left_out_is_never_touched() {
    let world = World::new();
    world.write("kept", "1");
    world.write("ignored/precious", "2");
    world.write("unreadable", "3");
    let omit = |path: &Path| {
        let reason = Reason::Unreadable(Errno(13));
        if path.ends_with("ignored") {
            Some(pattern())
        } else {
            path.ends_with("unreadable").then_some(reason)
        }
    };
    let target = world.snap_without(&omit);
    world.write("ignored/precious", "changed");
    world.write("ignored/new", "new");
    fs::remove_file(world.at("unreadable")).unwrap();
    world.write("unreadable/now", "a directory");
    world.write("kept", "changed");
    // Also when the safety snapshot did capture it.
    let outcome = world.restore(&target);
    assert!(outcome.skipped.is_empty() && outcome.failed.is_empty());
    assert_eq!(world.read("kept"), "1");
    assert_eq!(world.read("ignored/precious"), "changed");
    assert_eq!(world.read("ignored/new"), "new");
    assert_eq!(world.read("unreadable/now"), "a directory");
}

#[test]
fn what_is_not_stored_now_is_not_destroyed() {
    let world = World::new();
    world.write("changed", "1");
    world.write("dir/inner", "1");
    world.write("file-now-dir", "1");
    let target = world.snap();
    world.write("changed", "not stored");
    fs::remove_dir_all(world.at("dir")).unwrap();
    world.write("dir", "not stored either");
    fs::remove_file(world.at("file-now-dir")).unwrap();
    world.write("file-now-dir/secret", "not stored");
    world.write("file-now-dir/stored", "stored");
    world.write("new/unstable", "not stored");
    world.write("new/deep/unstable", "not stored");
    world.write("new/stored", "stored");
    let names = ["changed", "dir", "secret", "unstable"];
    let omit = |path: &Path| names.iter().any(|name| path.ends_with(name)).then_some(Reason::Unstable);
    let current = world.snap_without(&omit);
    let outcome = world.restore_with(&target, &current, &Selection::All);
    assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
    let not_stored = || Why::NotStored(Reason::Unstable);
    let expected = [
        ("changed", not_stored()),
        ("dir", not_stored()),
        ("file-now-dir", Why::HoldsOthers),
        ("file-now-dir", Why::InTheWay),
        ("file-now-dir/secret", not_stored()),
        ("new", Why::HoldsOthers),
        ("new/deep", Why::HoldsOthers),
        ("new/deep/unstable", not_stored()),
        ("new/unstable", not_stored()),
    ];
    let expected: Vec<(String, Why)> = expected.map(|(path, why)| (path.to_string(), why)).into();
    assert_eq!(skipped(&world, &outcome.skipped), expected);
    assert_eq!(world.read("changed"), "not stored");
    assert_eq!(world.read("dir"), "not stored either");
    assert_eq!(world.read("file-now-dir/secret"), "not stored");
    assert!(!world.at("file-now-dir/stored").exists() && !world.at("new/stored").exists());
    assert_eq!(world.read("new/deep/unstable"), "not stored");
}

#[test]
fn a_root_that_was_not_captured_is_not_touched() {
    let world = World::new();
    world.write("a", "1");
    let target = world.snap();
    world.write("a", "2");
    let current = world.snap();
    let mut failed = current.clone();
    failed.roots[0].content = RootContent::Failed(Reason::Unreadable(Errno(5)));
    let empty = SnapshotState::default();
    for (target, current) in [(&target, &failed), (&failed, &current), (&target, &empty)] {
        let outcome = world.restore_with(target, current, &Selection::All);
        assert_eq!((outcome.skipped.len(), outcome.done), (1, 0));
        assert_eq!(world.read("a"), "2");
    }
}

#[test]
fn only_what_was_chosen() {
    let world = World::new();
    for path in ["a/one", "a/two", "b/c/three", "b/c/four", "five"] {
        world.write(path, "old");
    }
    let target = world.snap();
    fs::remove_dir_all(world.at("b")).unwrap();
    for path in ["a/one", "a/two", "five", "a/new", "other"] {
        world.write(path, "new");
    }
    set_mtime(&world.at("a"), 1234, 5);
    let paths = ["a/one", "b/c/three", "a/new", "nowhere/at/all"].map(|path| world.at(path));
    let outcome = world.restore_with(&target, &world.snap(), &Selection::Paths(paths.into()));
    assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
    assert_eq!(skipped(&world, &outcome.skipped), [("nowhere/at/all".into(), Why::NotFound)]);
    assert_eq!((world.read("a/one").as_str(), world.read("a/two").as_str()), ("old", "new"));
    assert_eq!((world.read("five").as_str(), world.read("other").as_str()), ("new", "new"));
    assert_eq!(world.read("b/c/three"), "old");
    assert!(!world.at("b/c/four").exists() && !world.at("a/new").exists());
    // A directory that was only passed through is as it was.
    assert_eq!(fs::metadata(world.at("a")).unwrap().mtime(), 1234);
    // A whole directory, and one above the root.
    world.restore_with(&target, &world.snap(), &Selection::Paths(vec![world.at("b")]));
    assert!(world.at("b/c/four").exists() && world.at("other").exists());
    world.restore_with(
        &target,
        &world.snap(),
        &Selection::Paths(vec![world.base.path().canonicalize().unwrap()]),
    );
    assert_eq!(world.dump(), dump(&target, &world.objects));
}

#[test]
fn chosen_but_left_out_is_said() {
    let world = World::new();
    world.write("ignored", "1");
    let omit = |path: &Path| path.ends_with("ignored").then(pattern);
    let target = world.snap_without(&omit);
    world.write("ignored", "2");
    let chosen = Selection::Paths(vec![world.at("ignored")]);
    let outcome = world.restore_with(&target, &world.snap_without(&omit), &chosen);
    assert_eq!(skipped(&world, &outcome.skipped), [("ignored".into(), Why::NotCaptured(pattern()))]);
    assert_eq!(world.read("ignored"), "2");
}

fn restore_since(
    world: &World,
    target: &SnapshotState,
    since: &SnapshotState,
    force: bool,
) -> RestoreOutcome {
    let current = world.snap();
    let request = RestoreRequest {
        target,
        current: &current,
        selection: &Selection::All,
        except: &[],
        keep_changed_since: &[since],
        force,
        resumed: None,
    };
    world.apply(&plan(&request, &world.objects).unwrap(), &())
}

#[test]
fn what_was_changed_since_is_kept_unless_forced() {
    let world = World::new();
    for path in ["agent", "person", "deleted-by-person", "dir/agent", "touched"] {
        world.write(path, "start");
    }
    let target = world.snap();
    for path in ["agent", "person", "dir/agent", "touched", "new-by-agent/x"] {
        world.write(path, "agent");
    }
    let end = world.snap();
    world.write("person", "person");
    world.write("dir/person", "person");
    world.write("new-by-agent/person", "person");
    fs::remove_file(world.at("deleted-by-person")).unwrap();
    set_mtime(&world.at("touched"), 1, 1);
    let outcome = restore_since(&world, &target, &end, false);
    assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
    let expected = [
        ("deleted-by-person", Why::ChangedSince),
        ("dir/person", Why::ChangedSince),
        ("new-by-agent", Why::HoldsOthers),
        ("new-by-agent/person", Why::ChangedSince),
        ("person", Why::ChangedSince),
    ];
    let expected: Vec<(String, Why)> = expected.map(|(path, why)| (path.to_string(), why)).into();
    assert_eq!(skipped(&world, &outcome.skipped), expected);
    assert_eq!((world.read("agent").as_str(), world.read("dir/agent").as_str()), ("start", "start"));
    assert_eq!((world.read("person").as_str(), world.read("touched").as_str()), ("person", "start"));
    assert!(!world.at("new-by-agent/x").exists());
    let outcome = restore_since(&world, &target, &end, true);
    assert!(outcome.skipped.is_empty() && outcome.failed.is_empty());
    assert_eq!(world.dump(), dump(&target, &world.objects));
}

/// Directories that deny the work are made accessible meanwhile.
fn closed_directories() {
    let world = World::new();
    world.write("closed/a", "1");
    world.write("closed/below/b", "1");
    world.write("passed/through/c", "1");
    world.write("closed/secret", "s");
    let modes = [("closed/below", 0o500), ("closed", 0o555), ("passed/through", 0o755), ("passed", 0o111)];
    modes.iter().for_each(|(path, mode)| world.mode(path, *mode));
    world.mode("passed", 0o555);
    let target = world.snap();
    modes.iter().rev().for_each(|(path, _)| world.mode(path, 0o755));
    world.write("closed/a", "2");
    fs::remove_file(world.at("closed/below/b")).unwrap();
    world.write("closed/new", "n");
    world.write("passed/through/c", "2");
    modes.iter().for_each(|(path, mode)| world.mode(path, *mode | 0o444));
    let kept = inode(&world.at("closed/below"));
    let current = world.snap();
    world.mode("passed", 0);
    let outcome = world.restore_with(&target, &current, &Selection::All);
    assert!(outcome.failed.is_empty() && outcome.skipped.is_empty(), "{outcome:?}");
    world.mode("passed", 0o555);
    assert_eq!(world.dump(), dump(&target, &world.objects));
    assert_eq!(inode(&world.at("closed/below")), kept);
    modes.iter().rev().for_each(|(path, _)| world.mode(path, 0o755));
}

#[test]
fn directories_that_forbid_it_are_opened_up_for_a_while() {
    closed_directories();
}

/// The same without root's privileges.
#[test]
fn an_ordinary_user_can_do_it_too() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let this = std::env::current_exe().unwrap();
    let id = nono_testkit::user::TESTER.to_string();
    let status = std::process::Command::new("setpriv")
        .args(["--reuid", &id, "--regid", &id, "--clear-groups"])
        .arg(this)
        .args([
            "--exact",
            "rules::directories_that_forbid_it_are_opened_up_for_a_while",
            "round::swaps_in_every_direction",
        ])
        .env("TMPDIR", "/tmp")
        .status()
        .unwrap();
    assert!(status.success());
}

struct After(std::sync::atomic::AtomicU64, u64);

impl nono_snapshot::state::Observer for After {
    fn progress(&self, done: u64, total: u64) {
        assert!(done <= total);
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }

    fn cancelled(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::SeqCst) >= self.1
    }
}

#[test]
fn cancelled_in_the_middle_and_completed() {
    for after in 0..12 {
        let world = World::new();
        crate::round::furnish(&world);
        let target = world.snap();
        fs::remove_dir_all(world.at("a")).unwrap();
        fs::remove_dir_all(world.at("empty")).unwrap();
        world.write("new/file", "new");
        world.write("big", "small");
        let plan = world.plan(&target, &world.snap(), &Selection::All);
        let outcome = world.apply(&plan, &After(0.into(), after));
        assert!((outcome.cancelled || after > 5) && outcome.failed.is_empty(), "{outcome:?}");
        assert!(
            fs::read_dir(world.root())
                .unwrap()
                .all(|entry| { !entry.unwrap().file_name().to_string_lossy().starts_with(".nono-") })
        );
        world.check(&target);
    }
}

#[test]
fn a_journal_is_believed_whole_or_not_at_all() {
    use nono_snapshot::restore::{Journal, JournalError};
    let world = World::new();
    let path = world.journal_path();
    assert!(Journal::load(&path).unwrap().is_none());
    let record = world.begin().unwrap().record.clone();
    assert!(matches!(world.begin(), Err(JournalError::Unfinished { .. })));
    assert_eq!(Journal::load(&path).unwrap().unwrap().record, record);
    let bytes = fs::read(&path).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, flipped).unwrap();
        assert!(matches!(Journal::load(&path), Err(JournalError::Damaged { .. })), "bit {bit}");
    }
    for len in 0..bytes.len() {
        fs::write(&path, &bytes[..len]).unwrap();
        assert!(matches!(Journal::load(&path), Err(JournalError::Damaged { .. })), "length {len}");
    }
}
