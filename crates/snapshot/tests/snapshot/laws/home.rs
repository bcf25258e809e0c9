//! A store and its sessions as one folder: moved, copied, damaged. Nothing that can be read is lost, and damage to one
//! session does not affect others.

use std::fs;
use std::path::{Path, PathBuf};

use nono_snapshot::session::Session;
use nono_snapshot::store::Store;
use nono_snapshot::{
    ExclusionConfig, Limits, ManagerOptions, SnapshotId, SnapshotManager, gc, repair, session_dirs,
};

use crate::common::{World, by_hand, clean, sh};

fn manager(session: &Path, store: &Path, tree: &Path) -> SnapshotManager {
    let options = ManagerOptions { store: Some(store.to_owned()), ..by_hand() };
    SnapshotManager::with_options(session, [tree], ExclusionConfig::default(), Limits::NONE, options).unwrap()
}

fn resume(home: &Path, session: &str) -> SnapshotManager {
    let options = ManagerOptions { store: Some(home.join("store")), ..by_hand() };
    SnapshotManager::resume(home.join(session), options).unwrap()
}

/// A home with a session in each of the places where there may be one.
const PLACES: [&str; 4] = ["rollbacks/one", "projects/two", "legacy-20260101-000000/three", "four"];

struct Scene {
    world: World,
    base: PathBuf,
    home: PathBuf,
}

fn home() -> Scene {
    let world = World::new();
    let base = world.dir.path().canonicalize().unwrap();
    let home = base.join("home");
    for place in PLACES {
        fs::create_dir_all(home.join(place).parent().unwrap()).unwrap();
        world.write("file", format!("before {place}"));
        let mut manager = manager(&home.join(place), &home.join("store"), &world.tree);
        manager.create_baseline().unwrap();
        world.write("file", format!("after {place}"));
        manager.create_incremental().unwrap();
    }
    Scene { world, base, home }
}

impl Scene {
    /// Collect, and go back with every session.
    #[track_caller]
    fn assert_whole(&self, home: &Path) {
        let store = Store::open(&home.join("store")).unwrap();
        let report = gc(&store).unwrap();
        assert!(report.damaged.is_empty() && report.forgotten.is_empty(), "{report:?}");
        for place in PLACES {
            let mut manager = resume(home, place);
            assert!(manager.verify().unwrap().is_clean(), "{place}");
            clean(&manager.restore_to(0).unwrap());
            assert_eq!(self.world.read("file"), format!("before {place}"));
        }
    }
}

/// Notes as they were before the store listed its home: every session by its absolute path.
fn write_old_notes(home: &Path, at: &Path) {
    for place in PLACES {
        let dir = at.join(place);
        let fsid = rustix::fs::statvfs(home).unwrap().f_fsid;
        let text = format!("{fsid:016x} {}", dir.display());
        let name = nono_snapshot::hash::content_hash(dir.as_os_str().as_encoded_bytes()).hex();
        let note = format!("{} {text}", nono_snapshot::hash::content_hash(text.as_bytes()).hex());
        fs::write(home.join("store/sessions").join(name), note).unwrap();
    }
}

#[test]
fn a_home_that_was_moved_keeps_everything() {
    for old_notes in [false, true] {
        let home = home();
        if old_notes {
            write_old_notes(&home.home, &home.home);
        }
        let moved = home.base.join("elsewhere/deep");
        fs::create_dir(home.base.join("elsewhere")).unwrap();
        fs::rename(&home.home, &moved).unwrap();
        // Another one begins where it stood.
        let mut new = manager(&home.home.join("rollbacks/new"), &home.home.join("store"), &home.world.tree);
        new.create_baseline().unwrap();
        home.assert_whole(&moved);
        new.gc().unwrap();
        assert!(new.verify().unwrap().is_clean());
        assert_eq!(fs::read_dir(moved.join("store/sessions")).unwrap().count(), 0, "old notes: {old_notes}");
    }
}

#[test]
fn a_copy_and_the_original_do_not_know_each_other() {
    for old_notes in [false, true] {
        let home = home();
        if old_notes {
            write_old_notes(&home.home, &home.home);
        }
        sh(&home.base, "cp -a home copy");
        let copy = home.base.join("copy");
        // Each loses what the other keeps.
        for (of, gone) in [(&copy, "projects/two"), (&home.home, "rollbacks/one")] {
            fs::remove_dir_all(of.join(gone)).unwrap();
            let store = Store::open(&of.join("store")).unwrap();
            let before = store.usage().unwrap().total();
            gc(&store).unwrap();
            assert!(store.usage().unwrap().total() < before, "{gone} of {}", of.display());
            assert_eq!(session_dirs(&store).unwrap().len(), 3);
            for place in PLACES.iter().filter(|place| **place != gone) {
                assert!(resume(of, place).verify().unwrap().is_clean(), "{place} of {}", of.display());
            }
        }
        let ids = [&copy, &home.home].map(|home| Store::open(&home.join("store")).unwrap().id().unwrap());
        assert!(ids[0].is_some() && ids[0] == ids[1]);
    }
}

/// A session outside of the home is gone when its folder was removed; when the store or its disk moved, it is not.
#[test]
fn a_session_outside_is_kept_by_its_note() {
    let world = World::new();
    let base = world.dir.path().canonicalize().unwrap();
    let (home, outside) = (base.join("home"), base.join("outside/deep/session"));
    fs::create_dir_all(&outside).unwrap();
    fs::create_dir(&home).unwrap();
    world.write("dir/file", "what only the session outside needs");
    manager(&outside, &home.join("store"), &world.tree).create_baseline().unwrap();
    world.sh("rm -r dir; echo other > other");
    let mut inside = manager(&home.join("rollbacks/one"), &home.join("store"), &world.tree);
    inside.create_baseline().unwrap();
    drop(inside);

    // The session is out of reach, and the store moved.
    let (away, moved) = (base.join("away"), base.join("moved"));
    fs::rename(base.join("outside"), &away).unwrap();
    let collect = |home: &Path| gc(&Store::open(&home.join("store")).unwrap()).unwrap();
    let report = collect(&home);
    assert_eq!(report.away, std::slice::from_ref(&outside), "its disk is not there: {report:?}");
    fs::create_dir_all(outside.parent().unwrap()).unwrap();
    fs::rename(&home, &moved).unwrap();
    let report = collect(&moved);
    assert_eq!(
        report.away,
        std::slice::from_ref(&outside),
        "the store does not stand where it stood: {report:?}"
    );
    fs::rename(&moved, &home).unwrap();
    fs::remove_dir_all(base.join("outside")).unwrap();
    fs::rename(&away, base.join("outside")).unwrap();
    let mut outer =
        SnapshotManager::resume(&outside, ManagerOptions { store: Some(home.join("store")), ..by_hand() })
            .unwrap();
    assert!(outer.verify().unwrap().is_clean());
    clean(&outer.restore_to(0).unwrap());
    assert_eq!(world.read("dir/file"), "what only the session outside needs");
    drop(outer);
    fs::remove_dir_all(&outside).unwrap();
    assert_eq!(collect(&home).forgotten, [outside]);
}

/// The n-th session of a home, with its record damaged.
fn damaged(home: &Scene, place: &str, text: &[u8]) -> PathBuf {
    let record = home.home.join(place).join("record.json");
    fs::write(&record, text).unwrap();
    record
}

#[test]
fn a_damaged_record_is_rebuilt_and_stops_no_snapshot() {
    let whole = fs::read(home().home.join("four/record.json")).unwrap();
    let torn = whole[..whole.len() / 2].to_vec();
    let mut flipped = whole.clone();
    let at = whole.windows(9).position(|part| part == b"snapshots").unwrap();
    flipped[at + 40] ^= 1;
    for text in [b"".to_vec(), b"{}".to_vec(), vec![0; 4096], torn, flipped] {
        let home = home();
        let store = Store::open(&home.home.join("store")).unwrap();
        let record = damaged(&home, "rollbacks/one", &text);
        let report = gc(&store).unwrap();
        assert!(report.damaged.is_empty(), "every manifest can be read: {report:?}");
        let mut one = resume(&home.home, "rollbacks/one");
        // It is told as long as it is damaged, and readable all the same.
        let told = one.verify().unwrap();
        assert!(told.snapshots.iter().any(|problem| problem.what.contains("record.json")), "{told:?}");
        assert_eq!(one.snapshots().unwrap().len(), 2);
        clean(&one.restore_to(0).unwrap());
        assert_eq!(home.world.read("file"), "before rollbacks/one");
        assert!(one.verify().unwrap().is_clean());
        let aside = fs::read_dir(record.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
        let aside: Vec<PathBuf> =
            aside.filter(|path| path.display().to_string().contains("record.json.damaged-")).collect();
        assert_eq!(aside.len(), 1, "{aside:?}");
        assert_eq!(fs::read(&aside[0]).unwrap(), text);
        // And it goes on.
        home.world.write("file", "later");
        assert_eq!(one.create_incremental().unwrap().0.number, 2);
        home.assert_whole(&home.home);
    }
}

#[test]
fn a_damaged_manifest_is_one_lost_snapshot() {
    for text in ["", "{"] {
        let home = home();
        let dir = home.home.join("projects/two");
        fs::write(dir.join("snapshots/001.json"), text).unwrap();
        let report = gc(&Store::open(&home.home.join("store")).unwrap()).unwrap();
        assert!(report.damaged.len() == 1 && report.damaged[0].contains("001.json"), "{report:?}");
        let mut two = resume(&home.home, "projects/two");
        let problems = two.verify().unwrap().snapshots;
        assert!(problems.iter().all(|problem| problem.id == Some(SnapshotId::Number(1))), "{problems:?}");
        assert!(two.load_manifest(1).is_err());
        clean(&two.restore_to(0).unwrap());
        assert_eq!(home.world.read("file"), "before projects/two");
        // The next one does not need it, and its number stays.
        home.world.write("file", "next");
        assert_eq!(two.create_incremental().unwrap().0.number, 2);
        assert!(two.is_tracked(&home.world.path("file")).unwrap());
        assert_eq!(
            two.forget(&home.world.path("file")).unwrap().snapshots,
            3,
            "0, 2 and the safety snapshot"
        );
        let told = repair(two.store(), true).unwrap();
        assert_eq!(told.lost.len(), 1, "{told:?}");
        assert_eq!(told.lost[0].manifest, dir.join("snapshots/001.json"));
    }
}

/// Nothing of it can be read: other sessions are not affected, and the next one begins anew in its folder.
#[test]
fn a_session_of_which_nothing_is_left() {
    let home = home();
    let dir = home.home.join("projects/two");
    for name in ["record.json", "snapshots/000.json", "snapshots/001.json"] {
        fs::write(dir.join(name), "").unwrap();
    }
    let report = gc(&Store::open(&home.home.join("store")).unwrap()).unwrap();
    assert!(report.damaged.iter().any(|what| what.contains("record.json")), "{report:?}");
    assert!(Session::new(&dir).record().is_err());
    let mut new = manager(&dir, &home.home.join("store"), &home.world.tree);
    new.create_baseline().unwrap();
    assert!(new.verify().unwrap().is_clean());
    assert_eq!(new.snapshots().unwrap().len(), 1);
}

/// A directory of one session is damaged in the store: the others are collected all the same.
#[test]
fn a_damaged_tree_stops_no_collection() {
    let world = World::new();
    let home = world.dir.path().canonicalize().unwrap();
    world.write("file", "one");
    let mut one = manager(&home.join("one"), &home.join("store"), &world.tree);
    one.create_baseline().unwrap();
    let packs = || fs::read_dir(home.join("store/packs")).unwrap().map(|entry| entry.unwrap().path());
    for pack in packs() {
        fs::remove_file(pack).unwrap();
    }
    world.write("file", "two");
    let mut two = manager(&home.join("two"), &home.join("store"), &world.tree);
    two.create_baseline().unwrap();
    let report = gc(two.store()).unwrap();
    assert!(report.damaged.iter().any(|what| what.contains("/one: ")), "{report:?}");
    assert!(!one.verify().unwrap().is_clean());
    assert!(two.verify().unwrap().snapshots.is_empty());
}

#[test]
fn repair_says_what_it_did_and_does_nothing_twice() {
    let home = home();
    let store = Store::open(&home.home.join("store")).unwrap();
    damaged(&home, "rollbacks/one", b"");
    fs::write(home.home.join("four/snapshots/001.json"), "").unwrap();
    fs::write(home.home.join("four/record.json"), "").unwrap();
    fs::write(home.home.join("store/sessions/0123"), "no note").unwrap();
    fs::write(home.home.join("store/ID"), "").unwrap();
    fs::create_dir(home.home.join("store/tmp/w-left")).unwrap();
    write_old_notes(&home.home, &home.home);
    assert!(gc(&store).is_err(), "the note's session is unknown");

    let foreseen = repair(&store, true).unwrap();
    assert_eq!(fs::read(home.home.join("rollbacks/one/record.json")).unwrap(), b"");
    let done = repair(&store, false).unwrap();
    assert_eq!(foreseen, done);
    let records: Vec<(&Path, usize)> = done
        .records
        .iter()
        .map(|one| (one.session.strip_prefix(&home.home).unwrap(), one.snapshots))
        .collect();
    assert_eq!(records, [(Path::new("four"), 1), (Path::new("rollbacks/one"), 2)]);
    assert_eq!(done.lost.len(), 1);
    assert_eq!((done.notes_removed.len(), done.notes_aside.len()), (4, 1), "{done:?}");
    assert!(done.id && done.debris == 1 && done.problems.is_empty(), "{done:?}");
    assert!(store.id().unwrap().is_some());
    assert!(repair(&store, false).unwrap().is_nothing());
    gc(&store).unwrap();
    assert!(resume(&home.home, "rollbacks/one").verify().unwrap().is_clean());
    clean(&resume(&home.home, "four").restore_to(0).unwrap());
}

/// A record of a later version is whole, and not ours to judge.
#[test]
fn a_record_of_a_later_version_is_left_alone() {
    let home = home();
    let record = damaged(&home, "four", br#"{"format": 99, "snapshots": []}"#);
    let error = gc(&Store::open(&home.home.join("store")).unwrap()).unwrap_err().to_string();
    assert!(error.contains("format 99"), "{error}");
    assert!(fs::read_to_string(&record).unwrap().contains("99"));
}

/// Several sessions of one store, checked in one go: what they share is read once.
#[test]
fn checks_of_several_sessions_share_their_work() {
    let home = home();
    let mut checks = nono_snapshot::Checks::default();
    let reports = PLACES.map(|place| resume(&home.home, place).verify_with(&mut checks).unwrap());
    assert!(reports.iter().all(nono_snapshot::VerifyReport::is_clean));
    assert!(reports.iter().all(|report| report.store.objects == reports[0].store.objects));
    // Damage that two sessions have in common is told of both.
    let mut one = resume(&home.home, "rollbacks/one");
    let root = one.load_manifest(0).unwrap().state;
    drop(root);
    for pack in fs::read_dir(home.home.join("store/packs")).unwrap() {
        fs::remove_file(pack.unwrap().path()).unwrap();
    }
    let mut checks = nono_snapshot::Checks::default();
    for place in PLACES {
        let report = resume(&home.home, place).verify_with(&mut checks).unwrap();
        assert!(!report.snapshots.is_empty(), "{place}");
    }
    assert!(!one.verify().unwrap().is_clean());
}
