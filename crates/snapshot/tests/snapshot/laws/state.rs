//! State of sessions and stores: collection, unreachable sessions, cancellation.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nono_snapshot::{
    Cause, ExclusionConfig, Limits, ManagerOptions, Observer, RestoreOptions, SnapshotError, SnapshotManager,
};

use crate::common::{World, by_hand, clean, left_out};

fn shared(session: &Path, store: &Path, tree: &Path) -> SnapshotManager {
    let options = ManagerOptions { store: Some(store.to_owned()), ..by_hand() };
    SnapshotManager::with_options(session, [tree], ExclusionConfig::default(), Limits::NONE, options).unwrap()
}

/// A session on an unmounted disk comes back; a removed one does not.
#[test]
fn a_collection_keeps_what_sessions_need_that_are_away() {
    let world = World::new();
    world.write("file", "content");
    let base = world.dir.path().canonicalize().unwrap();
    let (disk, away, store) = (base.join("disk"), base.join("away"), base.join("store"));
    std::fs::create_dir(&disk).unwrap();
    shared(&disk.join("one"), &store, &world.tree).create_baseline().unwrap();
    world.write("file", "other");
    let mut second = shared(&base.join("two"), &store, &world.tree);
    second.create_baseline().unwrap();

    std::fs::rename(&disk, &away).unwrap();
    assert_eq!(second.gc().unwrap().away, [disk.join("one")]);
    std::fs::rename(&away, &disk).unwrap();
    let mut first = shared(&disk.join("one"), &store, &world.tree);
    assert!(first.verify().unwrap().is_clean());
    clean(&first.restore_to(0).unwrap());
    assert_eq!(world.read("file"), "content");

    drop(first);
    std::fs::remove_dir_all(disk.join("one")).unwrap();
    let report = second.gc().unwrap();
    assert_eq!(report.forgotten, [disk.join("one")]);
    assert!(second.verify().unwrap().is_clean());
}

/// A dry run stores objects that no snapshot names. After collection the next snapshot must not take them for stored.
#[test]
fn what_was_collected_is_stored_again() {
    let world = World::new();
    world.write("large", vec![7; 5 << 20]);
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.write("large", vec![8; 5 << 20]);
    world.write("small", "s");
    manager.compute_restore_diff(0).unwrap();
    manager.settle().unwrap();
    manager.gc().unwrap();
    manager.create_incremental().unwrap();
    assert!(manager.verify().unwrap().is_clean());
    world.sh("rm large small");
    clean(&manager.restore_to(1).unwrap());
    assert_eq!((world.read("large").len(), world.read("small")), (5 << 20, "s".into()));
}

/// A session has one baseline: a second one is refused, and everything stays as it was.
#[test]
fn a_second_baseline_is_refused() {
    let world = World::new();
    world.write("file", "one");
    let mut manager = world.manager();
    let first = manager.create_baseline().unwrap();
    world.write("file", "two");
    manager.create_incremental().unwrap();
    let before = std::fs::read(world.session.join("record.json")).unwrap();
    for manager in [&mut manager, &mut world.manager()] {
        let error = manager.create_baseline().unwrap_err();
        assert!(matches!(&error, nono_snapshot::SnapshotError::HasSnapshots { .. }), "{error}");
    }
    assert_eq!(std::fs::read(world.session.join("record.json")).unwrap(), before);
    assert_eq!(manager.load_manifest(0).unwrap().state_root, first.state_root);
    assert_eq!(manager.snapshot_count().unwrap(), 2);
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("file"), "one");
}

/// Another process has the session: a waiting caller may give up.
#[test]
fn waiting_for_a_session_can_be_left() {
    struct Impatient;
    impl Observer for Impatient {
        fn progress(&self, _done: u64, _total: u64) {}

        fn cancelled(&self) -> bool {
            true
        }
    }
    let world = World::new();
    world.write("file", "f");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    let mut other = world.manager();
    other.observe(Impatient);
    let now = manager.look_now(nono_snapshot::Next::default()).unwrap();
    let cancelled = |error: &SnapshotError| {
        matches!(error, SnapshotError::Capture(nono_snapshot::CaptureError::Cancelled))
    };
    assert!(cancelled(&other.create_incremental().unwrap_err()));
    let (config, options) = (ExclusionConfig::default(), by_hand());
    let opened =
        SnapshotManager::observed(&world.session, [&world.tree], config, Limits::NONE, options, Impatient);
    assert!(cancelled(&opened.unwrap_err()));
    manager.publish_now(now).unwrap();
    other.observe(());
    assert_eq!(other.create_incremental().unwrap().0.number, 2);
}

/// The session folder is in the tree, and given by a link: it is still not captured, and a restore leaves it alone.
#[test]
fn a_session_in_the_tree_by_a_link() {
    let world = World::new();
    world.write("file", "old");
    std::fs::create_dir_all(world.path("state/session")).unwrap();
    std::os::unix::fs::symlink(world.path("state/session"), &world.session).unwrap();
    let mut manager = world.manager();
    let baseline = manager.create_baseline().unwrap();
    assert_eq!(left_out(&baseline, Cause::OwnState), 1);
    world.write("file", "new");
    manager.create_incremental().unwrap();
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("file"), "old");
    assert_eq!(manager.snapshot_count().unwrap(), 2);
    assert!(manager.verify().unwrap().is_clean());
}

#[test]
fn paths_with_detours_are_refused() {
    let world = World::new();
    world.write("a/file", "f");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    for path in [world.path("a/../a/file"), world.path("../outside"), world.path("./a")] {
        let options = RestoreOptions { paths: vec![path], ..RestoreOptions::default() };
        let refused = manager.restore(&0.into(), &options);
        assert!(matches!(refused, Err(SnapshotError::NotTracked { .. })), "{:?}", options.paths);
    }
}

/// Cancels at the n-th poll.
#[derive(Clone)]
struct Patience(Arc<AtomicU64>);

impl Observer for Patience {
    fn progress(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_err()
    }
}

/// Cancel a restore somewhere in the middle.
fn cut_off(world: &World) -> SnapshotManager {
    for n in 0..200 {
        world.write(format!("{n}/file"), format!("old {n}"));
    }
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    let patience = Patience(Arc::new(AtomicU64::new(u64::MAX)));
    manager.observe(patience.clone());
    for questions in (100..4000).step_by(50) {
        world.sh("for n in $(seq 0 199); do echo new > $n/file; done");
        patience.0.store(questions, Ordering::SeqCst);
        let cancelled = manager.restore_to(0).is_ok_and(|restored| restored.cancelled);
        patience.0.store(u64::MAX, Ordering::SeqCst);
        if cancelled {
            return manager;
        }
    }
    panic!("no restore was cut off");
}

#[test]
fn a_restore_that_was_cut_off_is_completed_and_told() {
    let world = World::new();
    let mut manager = cut_off(&world);
    drop(manager.create_incremental().unwrap());
    let recovered = manager.take_recovered().expect("the next operation completes it, and says so");
    assert!(!recovered.cancelled);
    assert!(manager.take_recovered().is_none());
    assert!((0..200).all(|n| world.read(format!("{n}/file")) == format!("old {n}")));
}

#[test]
fn a_restore_that_was_cut_off_can_be_given_up() {
    let world = World::new();
    let mut manager = cut_off(&world);
    assert!(manager.abandon_restore().unwrap());
    assert!(!manager.abandon_restore().unwrap());
    world.write("0/file", "mine");
    drop(manager.create_incremental().unwrap());
    assert!(manager.take_recovered().is_none());
    assert_eq!(world.read("0/file"), "mine");
}
