//! Sessions in the order they began, whatever the clock said; and what is damaged of them.

use std::fs;
use std::path::Path;

use nono::rollback::{Catalogue, Retention, RollbackError};
use nono::snapshot::SessionMetadata;

use super::world::{World, id};

/// Give a session its place, and the time that a clock said.
fn describe(world: &World, id: &str, change: impl Fn(&mut SessionMetadata)) {
    let path = world.catalogue.sessions_dir().join(id).join("session.json");
    let mut metadata = SessionMetadata::from_json(&fs::read_to_string(&path).unwrap()).unwrap();
    change(&mut metadata);
    fs::write(&path, metadata.to_json().unwrap()).unwrap();
}

fn ids(catalogue: &Catalogue) -> Vec<String> {
    catalogue.list().unwrap().0.into_iter().map(|entry| entry.id).collect()
}

/// The clock was ahead for the second session.
#[test]
fn a_clock_that_was_ahead_once_changes_nothing() {
    let world = World::new();
    for second in 1..=4 {
        world.write("file", second.to_string());
        world.session(second, || world.write("file", format!("by {second}")));
    }
    for second in 2..=4 {
        describe(&world, &id(second), |metadata| metadata.sequence = Some(u64::from(second)));
    }
    describe(&world, &id(2), |metadata| {
        metadata.started = "2099-01-01T00:00:00Z".to_owned();
        metadata.ended = Some("2099-01-01T00:00:01Z".to_owned());
    });
    // One of before there were numbers is older than all that have one.
    assert_eq!(ids(&world.catalogue), [id(4), id(3), id(2), id(1)]);
    assert_eq!(world.catalogue.find("last").unwrap().id, id(4));
    let keep = Retention { max_sessions: Some(2), ..Retention::default() };
    let removed = world.catalogue.prune(&keep, false).unwrap().removed;
    assert_eq!(removed.iter().map(|entry| &entry.id).collect::<Vec<_>>(), [&id(1), &id(2)]);
    // A time in the future is now: nothing is old because of it.
    describe(&world, &id(4), |metadata| metadata.ended = Some("2099-01-01T00:00:01Z".to_owned()));
    let old = Retention { older_than: Some(std::time::Duration::from_secs(1)), ..Retention::default() };
    let removed = world.catalogue.prune(&old, false).unwrap().removed;
    assert_eq!(removed.iter().map(|entry| &entry.id).collect::<Vec<_>>(), [&id(3)]);
}

/// The last restore is the one that was made last, and its number is found again when the counter is lost.
#[test]
fn restores_are_in_order_too() {
    let world = World::new();
    world.write("file", "0");
    for second in 1..=2 {
        world.session(second, || world.write("file", format!("by {second}")));
    }
    let counter = world.catalogue.sessions_dir().join(".sequence");
    let everything = nono::rollback::RestoreChoice::everything();
    world.open(&id(2)).restore(&everything).unwrap();
    world.open(&id(1)).restore(&everything).unwrap();
    assert_eq!(world.catalogue.last_restored().unwrap().id, id(1));
    for text in ["", "nonsense\n", "\0\0"] {
        fs::write(&counter, text).unwrap();
        world.write("file", "changed again");
        world
            .open(&id(2))
            .restore(&nono::rollback::RestoreChoice {
                conflicts: nono::rollback::Conflicts::Force,
                ..everything.clone()
            })
            .unwrap();
        assert_eq!(world.catalogue.last_restored().unwrap().id, id(2));
    }
    assert_eq!(fs::read_to_string(&counter).unwrap().trim_start_matches('0'), "5\n");
}

fn assert_aside(dir: &Path, name: &str) {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.filter(|one| one.starts_with(&format!("{name}.damaged-"))).collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

/// One damaged session stops nothing: it lists, restores, goes; and so do the others.
#[test]
fn one_damaged_session_stops_no_other() {
    for name in ["record.json", "session.json", "restores.json"] {
        for text in ["", "{", "\0\0\0"] {
            let world = World::new();
            world.write("file", "before");
            for second in 1..=3 {
                world.session(second, || world.write("file", format!("by {second}")));
            }
            let dir = world.catalogue.sessions_dir().join(id(2));
            fs::write(dir.join(name), text).unwrap();
            let (sessions, problems) = world.catalogue.list().unwrap();
            assert!(sessions.len() == 3 && problems.is_empty(), "{name} {text:?}: {problems:?}");
            let verified = world.open(&id(2)).verify().unwrap();
            assert_eq!(
                verified.problems.is_empty(),
                name == "restores.json",
                "{name} {text:?}: {verified:?}"
            );
            world.open(&id(2)).restore(&nono::rollback::RestoreChoice::everything()).unwrap();
            if name != "session.json" {
                assert_aside(&dir, name);
            }
            let all = Retention { all: true, ..Retention::default() };
            let pruned = world.catalogue.prune(&all, false).unwrap();
            assert!(pruned.problems.is_empty() && pruned.removed.len() == 3, "{name} {text:?}: {pruned:?}");
        }
    }
}

/// The manifest of the final snapshot is damaged: the baseline comes back all the same.
#[test]
fn the_baseline_needs_no_other_snapshot() {
    let world = World::new();
    world.write("file", "before");
    let before = world.tree();
    world.session(1, || world.write("file", "after"));
    fs::write(world.catalogue.sessions_dir().join(id(1)).join("snapshots/001.json"), "").unwrap();
    let mut session = world.open(&id(1));
    let plan = session.plan(&nono::rollback::RestoreChoice::everything()).unwrap();
    assert!(plan.cannot_tell_conflicts);
    session.restore(&nono::rollback::RestoreChoice::everything()).unwrap();
    assert_eq!(world.tree(), before);
    assert_eq!(session.verify().unwrap().problems.len(), 1);
}

/// Killed before its baseline, or between its end and its seal: interrupted, and not damaged.
#[test]
fn killed_sessions_are_interrupted_not_bad() {
    let world = World::new();
    world.write("file", "x");
    let running = world.begin(1);
    let dir = running.dir.clone();
    drop(running.killed());
    let verified = world.open(&id(1)).verify().unwrap();
    assert!(verified.interrupted && verified.problems.is_empty(), "{verified:?}");
    // Its end was written, its seal was not.
    describe(&world, &id(1), |metadata| metadata.ended = Some(metadata.started.clone()));
    assert!(dir.join("live").exists());
    let verified = world.open(&id(1)).verify().unwrap();
    assert!(verified.interrupted && verified.problems.is_empty(), "{verified:?}");
    // Nothing but its place was made.
    drop(world.catalogue.begin_session(&id(2), &[]).unwrap());
    let (sessions, problems) = world.catalogue.list().unwrap();
    assert!(sessions.len() == 1 && problems.is_empty(), "{problems:?}");
}

#[test]
fn a_session_that_is_removed_meanwhile_is_not_bad_and_not_made_again() {
    let world = World::new();
    world.write("file", "x");
    world.session(1, || world.write("file", "y"));
    let mut open = world.open(&id(1));
    let entry = open.entry().clone();
    fs::rename(&entry.dir, world.base.join("gone")).unwrap();
    let verified = open.verify().unwrap();
    assert!(verified.removed && verified.problems.is_empty(), "{verified:?}");
    assert!(matches!(world.catalogue.open(entry.clone()), Err(RollbackError::Snapshot(_))));
    assert!(!entry.dir.exists());
}

#[test]
fn repair_puts_sessions_in_order() {
    let world = World::new();
    world.write("file", "before");
    for second in 1..=2 {
        world.session(second, || world.write("file", format!("by {second}")));
    }
    let dir = |second| world.catalogue.sessions_dir().join(id(second));
    fs::write(dir(1).join("record.json"), "").unwrap();
    fs::write(dir(2).join("session.json"), "").unwrap();
    fs::write(dir(2).join("restores.json"), "").unwrap();
    let foreseen = world.catalogue.repair(true).unwrap();
    let done = world.catalogue.repair(false).unwrap();
    assert_eq!((&foreseen.stores, &foreseen.files), (&done.stores, &done.files));
    assert!(done.problems.is_empty(), "{done:?}");
    assert_eq!(done.files, [dir(2).join("session.json"), dir(2).join("restores.json")]);
    let [(_, store)] = &done.stores[..] else { panic!("{done:?}") };
    assert!(store.records.len() == 1 && store.lost.is_empty(), "{done:?}");
    let again = world.catalogue.repair(false).unwrap();
    assert!(again.stores.is_empty() && again.files.is_empty() && again.problems.is_empty(), "{again:?}");
    assert!(world.open(&id(1)).verify().unwrap().sealed, "every manifest was there");
}
