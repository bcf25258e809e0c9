//! Finding sessions, whatever else stands in their folder.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use nono::rollback::{Catalogue, RestoreChoice, RollbackError, SessionEntry, Status};
use nono::snapshot::{ExclusionConfig, Limits, SnapshotId, SnapshotManager};

use super::world::{World, id};

fn ids(sessions: &[SessionEntry]) -> Vec<&str> {
    sessions.iter().map(|entry| entry.id.as_str()).collect()
}

#[test]
fn sessions_are_listed_newest_first_with_their_states() {
    let world = World::new();
    assert!(world.catalogue.list().unwrap().0.is_empty());
    assert!(matches!(world.catalogue.find("last"), Err(RollbackError::NoSessions)));
    world.write("file", "x");
    world.session(1, || {});
    world.begin(2).killed();
    let running = world.begin(3);
    let (sessions, problems) = world.catalogue.list().unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(ids(&sessions), [id(3), id(2), id(1)]);
    let states: Vec<Status> = sessions.iter().map(|entry| entry.status).collect();
    assert_eq!(states, [Status::Live, Status::Interrupted, Status::Finished]);
    assert!(sessions.iter().all(|entry| entry.project == world.project && !entry.foreign && !entry.pinned));
    running.end();

    let session = world.open(&id(1));
    let snapshots: Vec<SnapshotId> = session.snapshots().unwrap().into_iter().map(|one| one.id).collect();
    assert_eq!(snapshots, [SnapshotId::Number(0), SnapshotId::Number(1)]);
    assert_eq!(session.last().unwrap(), SnapshotId::Number(1));
    assert_eq!(session.coverage(&SnapshotId::Number(0)).unwrap().files, 1);
    let missing = session.coverage(&SnapshotId::Number(7));
    assert!(matches!(missing, Err(RollbackError::NoSnapshot { .. })), "{missing:?}");
}

#[test]
fn sessions_are_found_by_id_beginning_name_and_last() {
    let world = World::new();
    world.write("file", "x");
    world.session(1, || {});
    for second in [2, 3] {
        let mut running = world.begin(second);
        running.metadata.name = Some("nightly".to_owned());
        running.end();
    }
    world.session(61, || {});
    let find = |text: &str| world.catalogue.find(text).map(|entry| entry.id);
    assert_eq!(find(&id(1)).unwrap(), id(1));
    assert_eq!(find("20260101-000001").unwrap(), id(1));
    assert_eq!(find("20260101-0001").unwrap(), id(61));
    assert_eq!(find("nightly").unwrap(), id(3), "the newest of that name");
    assert_eq!(find("last").unwrap(), id(61));
    match find("2026") {
        Err(RollbackError::Ambiguous { ids, .. }) => assert_eq!(ids, [id(61), id(3), id(2), id(1)]),
        other => panic!("{other:?}"),
    }
    for missing in ["2027", "", ".", "..", "nothing"] {
        assert!(matches!(find(missing), Err(RollbackError::NotFound { .. })), "{missing}");
    }
    assert!(matches!(find("/no/where"), Err(RollbackError::Io { .. })));
    let dir = world.catalogue.sessions_dir().join(id(2));
    let entry = world.catalogue.find(dir.to_str().unwrap()).unwrap();
    assert!(entry.id == id(2) && !entry.foreign);
}

#[test]
fn the_last_session_around_a_folder() {
    let world = World::new();
    let other = world.base.join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("file"), "x").unwrap();
    world.write("deep/file", "x");
    world.session(1, || {});
    world.begin_on(2, &[&other]).end();
    let last = |dir: &Path| world.catalogue.last_here(dir).unwrap().id;
    assert_eq!(last(&world.project), id(1));
    assert_eq!(last(&world.path("deep")), id(1));
    assert_eq!(last(&other), id(2));
    assert_eq!(last(&world.base), id(2), "both are below it");
    match world.catalogue.last_here(Path::new("/usr")) {
        Err(RollbackError::NoSessionHere { last: Some(last), .. }) => assert_eq!(last.id, id(2)),
        near => panic!("none is near: {near:?}"),
    }
}

#[test]
fn what_is_damaged_is_named_and_the_rest_is_listed() {
    let world = World::new();
    world.write("file", "x");
    for second in 1..=6 {
        world.session(second, || {});
    }
    let dir = world.catalogue.sessions_dir();
    fs::write(dir.join(id(2)).join("session.json"), "{").unwrap();
    fs::write(dir.join(id(3)).join("record.json"), "{}").unwrap();
    fs::remove_file(dir.join(id(4)).join("session.json")).unwrap();
    fs::rename(dir.join(id(5)), dir.join("renamed")).unwrap();
    fs::write(dir.join("a file"), "").unwrap();
    fs::create_dir(dir.join("empty")).unwrap();
    fs::create_dir(dir.join(std::ffi::OsStr::from_bytes(b"\xff"))).unwrap();
    std::os::unix::fs::symlink(dir.join(id(1)), dir.join("link")).unwrap();
    let (sessions, problems) = world.catalogue.list().unwrap();
    // A session without its description, or with a damaged one, is told by its record; one with a damaged record by its
    // manifests. A place in which nothing is yet is no session.
    let mut listed = ids(&sessions);
    listed.sort_unstable();
    assert_eq!(listed, [id(1), id(2), id(3), id(4), id(6)]);
    let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
    for name in ["renamed", "a file", "link"] {
        assert!(said.iter().any(|text| text.contains(name)), "{name}: {said:?}");
    }
    assert_eq!(problems.len(), 3, "{said:?}");
    // Asked for by its name, the reason is the answer.
    assert!(matches!(world.catalogue.find("renamed"), Err(RollbackError::Damaged { .. })));
    for second in 2..=4 {
        world.open(&id(second)).plan(&RestoreChoice::everything()).unwrap();
    }
    // Nothing of it can be read.
    for name in ["record.json", "session.json", "snapshots/000.json", "snapshots/001.json"] {
        fs::write(dir.join(id(3)).join(name), "").unwrap();
    }
    assert!(matches!(world.catalogue.find(&id(3)), Err(RollbackError::Damaged { .. })));
}

#[test]
fn pinned_and_not() {
    let world = World::new();
    world.write("file", "x");
    let id = world.session(1, || {});
    for pinned in [true, true, false, false] {
        let entry = world.catalogue.find(&id).unwrap();
        world.catalogue.pin(&entry, pinned).unwrap();
        assert_eq!(world.catalogue.find(&id).unwrap().pinned, pinned);
    }
}

#[test]
fn a_session_elsewhere_is_followed_and_a_missing_place_named() {
    let world = World::new();
    world.write("file", "at first");
    // As a run with a destination leaves it: the session and its store there, a note here.
    let dest = world.base.join("disk");
    let away = Catalogue::new(world.base.join("away"));
    let mut other = World::at(&world.base);
    other.catalogue = away.clone();
    fs::create_dir(world.base.join("away")).unwrap();
    let id = other.session(1, || world.write("file", "by the command"));
    fs::create_dir(&dest).unwrap();
    fs::rename(away.sessions_dir().join(&id), dest.join(&id)).unwrap();
    fs::rename(away.store_dir(), dest.join("store")).unwrap();
    let (place, live) = world.catalogue.begin_session(&id, &[]).unwrap();
    fs::write(place.join("elsewhere"), dest.join(&id).as_os_str().as_bytes()).unwrap();
    live.end(&place).unwrap();

    let entry = world.catalogue.find("last").unwrap();
    assert_eq!((entry.dir.clone(), entry.foreign), (dest.join(&id), false));
    let by_path = world.catalogue.find(dest.join(&id).to_str().unwrap()).unwrap();
    assert_eq!((by_path.id, by_path.foreign), (id.clone(), false));
    world.catalogue.open(entry).unwrap().restore(&RestoreChoice::everything()).unwrap();
    assert_eq!(world.read("file"), "at first");

    fs::rename(&dest, world.base.join("unplugged")).unwrap();
    let (sessions, problems) = world.catalogue.list().unwrap();
    assert!(sessions.is_empty());
    assert!(problems[0].to_string().contains(dest.join(&id).to_str().unwrap()), "{problems:?}");
}

#[test]
fn a_folder_of_the_library_is_read_too() {
    let world = World::new();
    world.write("file", "at first");
    let dir = world.base.join("by-hand");
    let make = || SnapshotManager::new(&dir, [&world.project], ExclusionConfig::default(), Limits::default());
    let mut manager = make().unwrap();
    manager.create_baseline().unwrap();
    let text = dir.to_str().unwrap();
    // With a baseline alone it is unknown whose changes there are.
    let entry = world.catalogue.find(text).unwrap();
    assert_eq!((entry.foreign, entry.status, entry.id.as_str()), (true, Status::Interrupted, "by-hand"));
    world.write("file", "by the command");
    manager.create_incremental().unwrap();
    drop(manager);
    world.write("mine", "by the person");
    let entry = world.catalogue.find(text).unwrap();
    assert_eq!(entry.status, Status::Finished);
    assert_eq!(entry.metadata.tracked_paths, std::slice::from_ref(&world.project));
    let mut session = world.catalogue.open(entry).unwrap();
    let done = session.restore(&RestoreChoice::everything()).unwrap();
    assert_eq!(done.kept.len(), 1, "{done:?}");
    assert_eq!(world.read("file"), "at first");
    assert_eq!(world.read("mine"), "by the person");
    session.undo(None).unwrap();
    assert_eq!(world.read("file"), "by the command");
    let verified = session.verify().unwrap();
    assert!(verified.problems.is_empty() && !verified.sealed, "{verified:?}");
    assert!(!world.base.join("state/store").exists(), "its objects are its own");
    assert!(world.catalogue.list().unwrap().0.is_empty());
    let none = world.catalogue.find(world.project.to_str().unwrap());
    assert!(matches!(none, Err(RollbackError::NoSession { .. })), "{none:?}");
}
