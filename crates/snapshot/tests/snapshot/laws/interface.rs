//! The public interface: manifests, changes, limits, metadata, resuming.

use nono_snapshot::{
    CaptureError, ChangeType, ExclusionConfig, Limits, MerkleRoot, Observer, SessionMetadata, SnapshotError,
    SnapshotId, SnapshotManager,
};

use crate::common::{World, by_hand, bytes, clean};
use nono_testkit::oracle::{look, same};

fn limited(world: &World, limits: Limits) -> SnapshotManager {
    SnapshotManager::with_options(
        &world.session,
        [&world.tree],
        ExclusionConfig::default(),
        limits,
        by_hand(),
    )
    .unwrap()
}

#[test]
fn a_touch_is_no_change_but_a_chmod_is() {
    let world = World::new();
    world.write("file", "f");
    world.write("dir/file", "f");
    let mut manager = world.manager();
    let first = manager.create_baseline().unwrap();
    world.sh("touch -d @1000 file dir dir/file");
    let (touched, changes) = manager.create_incremental().unwrap();
    assert!(changes.is_empty(), "{changes:?}");
    assert_eq!(touched.merkle_root, first.merkle_root);
    assert_ne!(touched.state_root, first.state_root, "the time is restored, so it is committed to");
    world.sh("chmod 600 file; chmod 700 dir");
    let (changed, changes) = manager.create_incremental().unwrap();
    let types: Vec<_> = changes.iter().map(|change| (change.change_type, change.size_delta)).collect();
    assert_eq!(types, [(ChangeType::PermissionsChanged, 0); 2]);
    assert_ne!(changed.merkle_root, touched.merkle_root);
    world.sh("chmod 644 file; chmod 755 dir");
    let (back, _) = manager.create_incremental().unwrap();
    assert_eq!(back.merkle_root, first.merkle_root, "the same content, the same root");
}

/// The Merkle root changes exactly when the path set, a kind, permission bits, content or a link's target does.
#[test]
fn the_merkle_root_commits_to_what_it_says() {
    let world = World::new();
    world.write("file", "f");
    world.write("other", "o");
    world.sh("ln -s a link; mkdir empty");
    let mut manager = world.manager();
    let mut roots: Vec<MerkleRoot> = vec![manager.create_baseline().unwrap().merkle_root];
    let changing = [
        "echo g > file",
        "mv file file2",
        "ln -sfn b link",
        "rmdir empty; echo > empty",
        "rm empty; mkfifo empty",
        "chmod u+s other",
        "mkdir new",
        "chmod 1777 new",
        "rm other",
    ];
    for script in changing {
        world.sh(script);
        let (next, changes) = manager.create_incremental().unwrap();
        assert!(!roots.contains(&next.merkle_root), "{script}");
        assert!(!changes.is_empty(), "{script}");
        roots.push(next.merkle_root);
    }
    for script in ["touch file2 new .", "touch -h link", "cp -p file2 t; mv t file2"] {
        world.sh(script);
        let (next, changes) = manager.create_incremental().unwrap();
        assert_eq!((Some(&next.merkle_root), changes.len()), (roots.last(), 0), "{script}");
    }
}

#[test]
fn changes_have_types_and_sizes() {
    let world = World::new();
    for name in ["modified", "deleted", "chmodded", "still"] {
        world.write(name, "12345");
    }
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("printf 12 > modified; rm deleted; chmod 600 chmodded; printf 123 > created; mkdir made; ln -s x linked");
    let (manifest, changes) = manager.create_incremental().unwrap();
    let all: Vec<_> = changes
        .iter()
        .map(|change| {
            (
                change.path.strip_prefix(&world.tree).unwrap().to_str().unwrap(),
                change.change_type,
                change.size_delta,
            )
        })
        .collect();
    let expected = [
        ("chmodded", ChangeType::PermissionsChanged, 0),
        ("created", ChangeType::Created, 3),
        ("deleted", ChangeType::Deleted, -5),
        ("linked", ChangeType::Created, 0),
        ("made", ChangeType::Created, 0),
        ("modified", ChangeType::Modified, -3),
    ];
    assert_eq!(all, expected);
    assert_eq!(manager.diff(&SnapshotId::Number(0), &manifest.id).unwrap(), changes);
    let json = serde_json::to_value(&changes).unwrap();
    assert_eq!(json[0]["change_type"], "permissions_changed");
    assert_eq!(json[2]["size_delta"], -5);
    let restored = manager.restore_to(0).unwrap();
    let types: Vec<_> =
        restored.changes.iter().map(|change| (change.change_type, change.size_delta)).collect();
    let expected = [
        (ChangeType::PermissionsChanged, 0),
        (ChangeType::Deleted, -3),
        (ChangeType::Created, 5),
        (ChangeType::Deleted, 0),
        (ChangeType::Deleted, 0),
        (ChangeType::Modified, 3),
    ];
    assert_eq!(types, expected);
}

/// Changes without taking a snapshot, under the rules of the compared one.
#[test]
fn what_changed_since_a_snapshot() {
    let world = World::new();
    world.write("modified", "12345");
    world.write("deleted", "123");
    let mut manager = world.manager();
    let baseline = manager.create_baseline().unwrap();
    assert_eq!(manager.compute_changes(&baseline.id).unwrap(), []);
    world.sh("printf 12 > modified; rm deleted; printf 1 > created; echo created > .gitignore");
    for _ in 0..2 {
        let changes = manager.compute_changes(&baseline.id).unwrap();
        let all: Vec<_> = changes.iter().map(|change| (change.change_type, change.size_delta)).collect();
        let expected = [
            (ChangeType::Created, 8),
            (ChangeType::Created, 1),
            (ChangeType::Deleted, -3),
            (ChangeType::Modified, -3),
        ];
        assert_eq!(all, expected);
    }
    assert_eq!(manager.snapshot_count().unwrap(), 1);
}

/// By components, roots and all kinds included: `a/b` before `a.txt`.
#[test]
fn entries_come_in_the_order_of_paths() {
    let world = World::new();
    for path in ["a/b", "a.txt", "a-", "z", "a/c/d"] {
        world.write(path, path);
    }
    world.sh("mkdir empty; ln -s z link");
    let baseline = world.manager().create_baseline().unwrap();
    let mut all = Vec::new();
    baseline.each_entry(|path, _| all.push(path.to_owned())).unwrap();
    let mut sorted = all.clone();
    sorted.sort();
    // The standard library sorts by components, too; a node's own order is that of bytes, the same within a folder.
    assert_eq!(all.len(), 10);
    assert_eq!(all[0], world.tree);
    assert_eq!(sorted, all);
    let files: Vec<_> = baseline.files().unwrap().into_keys().collect();
    all.retain(|path| path.symlink_metadata().unwrap().is_file());
    assert_eq!(files, all);
}

#[test]
fn manifests_have_numbers_times_and_parents() {
    let world = World::new();
    world.write("file", "12345");
    world.sh("chmod 4755 file; touch -d '2020-01-02 03:04:05.678901234Z' file");
    let mut manager = world.manager();
    assert_eq!(manager.snapshot_count().unwrap(), 0);
    let first = manager.create_baseline().unwrap();
    let (second, _) = manager.create_incremental().unwrap();
    assert_eq!((first.number, first.parent, second.number, second.parent), (0, None, 1, Some(0)));
    for manifest in [&first, &second] {
        let stamp = &manifest.timestamp;
        assert!(stamp.len() >= 20 && stamp.as_bytes()[10] == b'T' && stamp.ends_with('Z'), "{stamp}");
    }
    let state = first.files().unwrap()[&world.path("file")];
    assert_eq!((state.size, state.permissions), (5, 0o4755));
    assert_eq!((state.mtime.seconds, state.mtime.nanos), (1_577_934_245, 678_901_234));
    let sum = "5994471abb01112afcc18159f6cc74b4f511b99806da59b3caf5a9c173cacfc5";
    assert_eq!(state.hash.hex(), sum, "SHA-256 of the bytes");
    // Safety snapshots have ids, not numbers.
    let restored = manager.restore_to(0).unwrap();
    assert!(matches!(restored.safety, SnapshotId::Safety(_)));
    assert_eq!(manager.snapshot_count().unwrap(), 2);
    let (third, _) = manager.create_incremental().unwrap();
    assert_eq!((third.number, third.parent), (2, Some(1)));
    let loaded = manager.load_manifest(1).unwrap();
    assert_eq!((loaded.merkle_root, loaded.state_root), (second.merkle_root, second.state_root));
    assert!(manager.load_manifest(3).is_err());
}

#[test]
fn a_new_manager_resumes() {
    let world = World::new();
    world.write("file", "old");
    let first = world.manager().create_baseline().unwrap();
    world.write("file", "new!");
    let mut manager = world.manager();
    assert_eq!(manager.snapshot_count().unwrap(), 1);
    let (second, changes) = manager.create_incremental().unwrap();
    assert_eq!((second.parent, changes.len()), (Some(0), 1));
    drop(manager);
    // Without paths: those of the session.
    let none: [&str; 0] = [];
    let mut manager =
        SnapshotManager::new(&world.session, none, ExclusionConfig::default(), Limits::default()).unwrap();
    assert_eq!(manager.roots(), std::slice::from_ref(&world.tree));
    assert_eq!(manager.load_manifest(0).unwrap().merkle_root, first.merkle_root);
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("file"), "old");
    drop(manager);
    let other = SnapshotManager::new(&world.session, ["/etc"], ExclusionConfig::default(), Limits::default());
    assert!(matches!(other, Err(SnapshotError::OtherRoots { .. })));
}

/// The tracked path was given through a link, and is gone when the session is resumed.
#[test]
fn a_new_manager_resumes_when_the_root_is_gone() {
    let world = World::new();
    world.sh("mkdir -p real/project; echo old > real/project/file; ln -s real link");
    let given = world.path("link/project");
    let open = || {
        SnapshotManager::with_options(
            &world.session,
            [&given],
            ExclusionConfig::default(),
            Limits::NONE,
            by_hand(),
        )
    };
    open().unwrap().create_baseline().unwrap();
    world.sh("rm -rf real/project");
    let mut manager = open().unwrap();
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("real/project/file"), "old\n");
}

#[test]
fn incrementals_and_restores_need_a_baseline() {
    let world = World::new();
    let mut manager = world.manager();
    assert!(matches!(manager.create_incremental(), Err(SnapshotError::NoBaseline { .. })));
    assert!(matches!(manager.restore_to(0), Err(SnapshotError::NoBaseline { .. })));
    assert!(matches!(manager.compute_restore_diff(0), Err(SnapshotError::NoBaseline { .. })));
}

#[test]
fn restoring_a_snapshot_that_is_not_there_touches_nothing() {
    let world = World::new();
    world.write("file", "old");
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.write("file", "new");
    let before = look(&world.tree);
    assert!(manager.restore_to(7).is_err());
    same(&before, &look(&world.tree));
    assert_eq!(manager.snapshots().unwrap().len(), 1);
}

#[test]
fn default_limits_are_those_of_the_issue() {
    let limits = Limits::default();
    assert_eq!((limits.max_entries, limits.max_bytes), (300_000, 2 << 30));
}

#[test]
fn over_the_limit_nothing_is_published() {
    let world = World::new();
    for n in 0..10 {
        world.write(format!("{n}"), "12345");
    }
    let files = Limits { max_entries: 9, max_bytes: 0 };
    let error = limited(&world, files).create_baseline().unwrap_err();
    assert!(matches!(error, SnapshotError::Capture(CaptureError::TooManyFiles { limit: 9 })), "{error}");
    let bytes = Limits { max_entries: 0, max_bytes: 49 };
    let mut manager = limited(&world, bytes);
    let error = manager.create_baseline().unwrap_err();
    assert!(matches!(error, SnapshotError::Capture(CaptureError::TooManyBytes { limit: 49 })), "{error}");
    assert_eq!((manager.snapshot_count().unwrap(), manager.snapshots().unwrap().len()), (0, 0));
    assert!(manager.load_manifest(0).is_err());
    assert!(manager.verify().unwrap().is_clean());
    drop(manager);
    // Ten files and fifty bytes are allowed.
    limited(&world, Limits { max_entries: 0, max_bytes: 50 }).create_baseline().unwrap();
}

/// The limit counts files, not directories.
#[test]
fn directories_do_not_count_as_files() {
    let world = World::new();
    for n in 0..10 {
        world.write(format!("{n}/sub/file"), "12345");
    }
    limited(&world, Limits { max_entries: 10, max_bytes: 0 }).create_baseline().unwrap();
}

#[test]
fn an_incremental_over_the_limit_leaves_the_session_as_it_was() {
    let world = World::new();
    world.write("file", "old");
    let limits = Limits { max_entries: 10, max_bytes: 100 };
    let mut manager = limited(&world, limits);
    let first = manager.create_baseline().unwrap();
    world.write("large", vec![1; 101]);
    assert!(manager.create_incremental().is_err());
    assert_eq!(manager.snapshot_count().unwrap(), 1);
    // A limit on captures is no reason to refuse to go back, nor to say what that would do.
    let planned = manager.compute_restore_diff(0);
    assert_eq!(planned.map(|changes| changes.len()).map_err(|error| error.to_string()), Ok(1));
    clean(&manager.restore_to(0).unwrap());
    assert!(!world.exists("large"));
    assert_eq!(manager.load_manifest(0).unwrap().merkle_root, first.merkle_root);
    let (second, _) = manager.create_incremental().unwrap();
    assert_eq!(second.number, 1);
}

/// A failed baseline leaves existing snapshots.
#[test]
fn a_second_baseline_over_the_limit_keeps_the_first() {
    let world = World::new();
    world.write("file", "old");
    let mut manager = limited(&world, Limits { max_entries: 0, max_bytes: 100 });
    manager.create_baseline().unwrap();
    world.write("large", vec![1; 101]);
    assert!(manager.create_baseline().is_err());
    clean(&manager.restore_to(0).unwrap());
    assert!(!world.exists("large"));
    assert_eq!(world.read("file"), "old");
}

#[test]
fn metadata_round_trips_as_json() {
    let world = World::new();
    world.write("file", "f");
    let mut manager = world.manager();
    let first = manager.create_baseline().unwrap();
    let tracked = vec![world.tree.clone(), world.path(bytes(b"not \xff utf-8"))];
    let mut metadata = SessionMetadata::new("20260101-000000-1", vec!["cmd".into(), "a b".into()], tracked);
    metadata.snapshot_count = 1;
    metadata.exit_code = Some(-3);
    metadata.merkle_roots = vec![first.merkle_root];
    metadata.ended = Some("2026-01-01T00:00:01Z".into());
    metadata.network_events = vec![serde_json::json!({"host": "example.org", "n": 1})];
    manager.save_session_metadata(&metadata).unwrap();
    assert_eq!(SnapshotManager::load_session_metadata(&world.session).unwrap(), metadata);
    metadata.executable_identity = Some(nono_snapshot::ExecutableIdentity {
        resolved_path: world.path(bytes(b"\xff")),
        sha256: nono_snapshot::ContentHash::from_bytes([7; 32]),
    });
    metadata.audit_attestation = Some(nono_snapshot::AuditAttestation {
        predicate_type: "p".into(),
        key_id: "k".into(),
        public_key: "q".into(),
        bundle_filename: "b".into(),
    });
    manager.save_session_metadata(&metadata).unwrap();
    assert_eq!(SnapshotManager::load_session_metadata(&world.session).unwrap(), metadata);
    let text = std::fs::read_to_string(world.session.join("session.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let keys = [
        "session_id",
        "started",
        "command",
        "tracked_paths",
        "ended",
        "snapshot_count",
        "exit_code",
        "merkle_roots",
        "network_events",
    ];
    for key in keys {
        assert!(json.get(key).is_some(), "{key}");
    }
    assert_eq!(json["merkle_roots"][0], first.merkle_root.hex());
    assert_eq!(SessionMetadata::from_json(&metadata.to_json().unwrap()).unwrap(), metadata);
    assert!(SnapshotManager::load_session_metadata(world.path("none")).is_err());
}

struct Cancel;

impl Observer for Cancel {
    fn progress(&self, _: u64, _: u64) {}

    fn cancelled(&self) -> bool {
        true
    }
}

#[test]
fn a_cancelled_capture_publishes_nothing() {
    let world = World::new();
    world.write("file", "f");
    let mut manager = world.manager();
    manager.observe(Cancel);
    assert!(matches!(manager.create_baseline(), Err(SnapshotError::Capture(CaptureError::Cancelled))));
    assert_eq!(manager.snapshot_count().unwrap(), 0);
    let before = {
        manager.observe(());
        manager.create_baseline().unwrap();
        world.write("file", "changed");
        look(&world.tree)
    };
    manager.observe(Cancel);
    assert!(manager.restore_to(0).is_err());
    same(&before, &look(&world.tree));
    manager.observe(());
    clean(&manager.restore_to(0).unwrap());
    assert_eq!(world.read("file"), "f");
}

/// Two sessions on one store: objects that one drops stay for the other.
#[test]
fn a_store_can_be_shared() {
    let world = World::new();
    world.write("file", "shared content");
    let store = world.dir.path().join("store");
    let open = |name: &str| {
        let options = nono_snapshot::ManagerOptions { store: Some(store.clone()), ..by_hand() };
        let session = world.dir.path().join(name);
        SnapshotManager::with_options(
            session,
            [&world.tree],
            ExclusionConfig::default(),
            Limits::NONE,
            options,
        )
        .unwrap()
    };
    let (mut one, mut two) = (open("one"), open("two"));
    one.create_baseline().unwrap();
    two.create_baseline().unwrap();
    world.write("file", "changed");
    one.create_incremental().unwrap();
    drop(one);
    std::fs::remove_dir_all(world.dir.path().join("one")).unwrap();
    two.gc().unwrap();
    assert!(two.verify().unwrap().is_clean());
    clean(&two.restore_to(0).unwrap());
    assert_eq!(world.read("file"), "shared content");
}

/// With background settling, as a plain caller has it.
#[test]
fn the_plain_constructor_works_too() {
    let world = World::new();
    for n in 0..200 {
        world.write(format!("{n}"), format!("{n}").repeat(500));
    }
    let before = look(&world.tree);
    let mut manager =
        SnapshotManager::new(&world.session, [&world.tree], ExclusionConfig::default(), Limits::default())
            .unwrap();
    manager.create_baseline().unwrap();
    for round in 0..5 {
        world.sh(&format!("rm -f {round}*; echo x > 1{round}; mkdir -p j/{round}"));
        manager.create_incremental().unwrap();
        clean(&manager.restore_to(0).unwrap());
        same(&before, &look(&world.tree));
    }
    assert!(manager.verify().unwrap().is_clean());
    drop(manager);
    assert!(world.manager().verify().unwrap().is_clean());
}
