//! Sealed sessions, and forged ones.

use std::fs;
use std::path::{Path, PathBuf};

use nono::rollback::{RestoreChoice, SessionVerified};
use nono::snapshot::{ExclusionConfig, Limits, ManagerOptions, SessionMetadata, SnapshotManager};

use super::world::{World, id};

fn verify(world: &World, id: &str) -> SessionVerified {
    world.open(id).verify().unwrap()
}

fn seals(world: &World) -> PathBuf {
    world.catalogue.sessions_dir().join("seals.ndjson")
}

fn three(world: &World) {
    world.write("file", "at first");
    for second in 1..=3 {
        world.session(second, || world.write("file", format!("by {second}")));
    }
}

#[test]
fn a_session_is_sealed_and_stays_so_after_restores() {
    let world = World::new();
    world.write("file", "at first");
    let mut running = world.begin(1);
    for n in 0..3 {
        world.write("file", format!("by the command {n}"));
        running.manager.create_incremental().unwrap();
    }
    running.manager.thin(&[2]).unwrap();
    let id = running.end();
    let verified = verify(&world, &id);
    assert!(verified.sealed && verified.problems.is_empty(), "{verified:?}");
    assert_eq!(verified.snapshots, 4);
    assert!(verified.objects > 0 && verified.bytes > 0);
    let mut session = world.open(&id);
    session.restore(&RestoreChoice::everything()).unwrap();
    session.undo(None).unwrap();
    let verified = session.verify().unwrap();
    assert!(verified.sealed && verified.problems.is_empty(), "{verified:?}");
}

#[test]
fn an_interrupted_session_has_no_seal_and_no_problem() {
    let world = World::new();
    world.write("file", "x");
    let id = world.begin(1).killed();
    let verified = verify(&world, &id);
    assert!(!verified.sealed && verified.problems.is_empty(), "{verified:?}");
}

/// Make the folder of a session anew, as if it had been so from the start: every digest in it fits.
fn forge(world: &World, id: &str, metadata: &SessionMetadata) {
    let dir = world.catalogue.sessions_dir().join(id);
    fs::remove_dir_all(&dir).unwrap();
    let options = ManagerOptions {
        store: Some(world.catalogue.store_dir()),
        settle_by_hand: true,
        ..ManagerOptions::default()
    };
    let make = |dir: &Path| {
        let (exclusion, limits) = (ExclusionConfig::default(), Limits::default());
        SnapshotManager::with_options(dir, [&world.project], exclusion, limits, options)
    };
    world.write("file", "a baseline with something nasty in it");
    let mut manager = make(&dir).unwrap();
    let mut metadata = metadata.clone();
    metadata.merkle_roots = vec![manager.create_baseline().unwrap().merkle_root];
    world.write("file", "by 2");
    metadata.merkle_roots.push(manager.create_incremental().unwrap().0.merkle_root);
    manager.save_session_metadata(&metadata).unwrap();
}

#[test]
fn a_forged_session_is_told_by_its_seal() {
    let world = World::new();
    three(&world);
    let entry = world.catalogue.find(&id(2)).unwrap();
    forge(&world, &id(2), &entry.metadata);
    let verified = verify(&world, &id(2));
    assert!(!verified.sealed);
    assert_eq!(verified.problems.len(), 2, "{verified:?}");
    assert!(verified.problems.iter().any(|text| text.contains("session.json")), "{verified:?}");
    assert!(verified.problems.iter().any(|text| text.contains("snapshots of session")), "{verified:?}");
    // The others are what they were.
    for second in [1, 3] {
        assert!(verify(&world, &id(second)).sealed);
    }
    // It does not help to take the end away, as if it had been killed.
    forge(&world, &id(2), &SessionMetadata { ended: None, ..entry.metadata });
    assert!(!verify(&world, &id(2)).problems.is_empty());
}

#[test]
fn a_changed_description_is_told() {
    let world = World::new();
    three(&world);
    let path = world.catalogue.sessions_dir().join(id(1)).join("session.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"make\"", "\"true\"")).unwrap();
    let verified = verify(&world, &id(1));
    assert!(verified.seal_broken && !verified.repairable && !verified.sealed, "{verified:?}");
    assert_eq!(verified.problems, [format!("{} was changed after the session was sealed", path.display())]);
    let mut metadata = SessionMetadata::from_json(&text).unwrap();
    metadata.merkle_roots.swap(0, 1);
    fs::write(&path, metadata.to_json().unwrap()).unwrap();
    assert_eq!(verify(&world, &id(1)).problems.len(), 3);
    fs::remove_file(&path).unwrap();
    assert!(!verify(&world, &id(1)).problems.is_empty());
    fs::write(&path, text).unwrap();
    assert!(verify(&world, &id(1)).sealed);
}

#[test]
fn a_broken_chain_is_named() {
    let world = World::new();
    three(&world);
    let whole = fs::read_to_string(seals(&world)).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let forged = lines[1].replace("\"sequence\":1", "\"sequence\":7");
    assert_ne!(forged, lines[1]);
    for (broken, named) in [
        ([lines[0], &forged, lines[2]].join("\n") + "\n", "line 2"),
        ([lines[0], lines[2]].join("\n") + "\n", "line 2"),
        ([lines[1], lines[0], lines[2]].join("\n") + "\n", "line 1"),
        ([lines[0], "nonsense", lines[2]].join("\n") + "\n", "line 2"),
    ] {
        fs::write(seals(&world), &broken).unwrap();
        let verified = verify(&world, &id(1));
        assert!(verified.problems.iter().any(|text| text.contains(named)), "{broken}{verified:?}");
    }
    // A seal that is gone with the end of the ledger: the session says that it ended.
    fs::write(seals(&world), format!("{}\n", lines[0])).unwrap();
    assert!(verify(&world, &id(1)).sealed);
    let verified = verify(&world, &id(3));
    assert!(!verified.sealed && !verified.seal_broken && verified.problems.len() == 1, "{verified:?}");
    fs::write(seals(&world), whole).unwrap();
    for second in 1..=3 {
        assert!(verify(&world, &id(second)).problems.is_empty());
    }
}

#[test]
fn a_line_that_was_not_finished_is_cut_off() {
    let world = World::new();
    three(&world);
    let whole = fs::read_to_string(seals(&world)).unwrap();
    fs::write(seals(&world), format!("{whole}{}", &whole[..40])).unwrap();
    assert!(verify(&world, &id(3)).sealed, "a torn tail is no broken chain");
    world.session(4, || {});
    let now = fs::read_to_string(seals(&world)).unwrap();
    assert!(now.starts_with(&whole) && now.lines().count() == 4, "{now}");
    for second in 1..=4 {
        let verified = verify(&world, &id(second));
        assert!(verified.sealed && verified.problems.is_empty(), "{verified:?}");
    }
}

#[test]
fn damage_in_the_store_is_named() {
    let world = World::new();
    three(&world);
    let packs = world.catalogue.store_dir().join("packs");
    let pack = fs::read_dir(packs).unwrap().map(|entry| entry.unwrap().path());
    let pack = pack.into_iter().find(|path| path.extension().is_some_and(|end| end == "pack")).unwrap();
    let mut bytes = fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::remove_file(&pack).unwrap();
    fs::write(&pack, bytes).unwrap();
    let verified = verify(&world, &id(1));
    let name = pack.file_name().unwrap().to_str().unwrap();
    assert!(verified.problems.iter().any(|text| text.contains(name)), "{verified:?}");
    assert!(!verified.is_good());
}

#[test]
fn lost_paths_are_named_and_all_sessions_are_checked_at_once() {
    let world = World::new();
    let text = nono_testkit::noise(5000, 3);
    world.write("lost", &text);
    world.write("kept", "x");
    let first = world.session(1, || fs::write(world.path("lost"), "other").unwrap());
    let second = world.session(2, || world.write("kept", "y"));
    let running = world.begin(3);
    let observer: std::sync::Arc<dyn nono::snapshot::Observer + Send> = std::sync::Arc::new(());
    let all = world.catalogue.verify_all(&observer).unwrap();
    assert!(all.is_good() && all.running == [running.id.as_str()], "{all:?}");
    let packs = fs::read_dir(world.catalogue.store_dir().join("packs")).unwrap();
    for pack in packs.map(|entry| entry.unwrap().path()) {
        let mut bytes = fs::read(&pack).unwrap();
        if let Some(at) = bytes.windows(50).position(|part| part == &text[..50]) {
            bytes[at + 100] ^= 1;
            fs::remove_file(&pack).unwrap();
            fs::write(&pack, bytes).unwrap();
        }
    }
    let all = world.catalogue.verify_all(&observer).unwrap();
    let ids: Vec<&String> = all.sessions.iter().map(|(id, _)| id).collect();
    assert!(!all.is_good() && ids == [&second, &first], "{all:?}");
    let lost: Vec<usize> = all.sessions.iter().map(|(_, found)| found.lost.len()).collect();
    assert_eq!(lost, [0, 1], "{all:?}");
    assert_eq!(all.sessions[1].1.lost, [(0.into(), vec![world.path("lost")])]);
}
