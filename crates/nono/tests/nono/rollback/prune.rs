//! Old sessions go, with what only they needed; nothing else does.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use nono::rollback::{Catalogue, Pruned, RestoreChoice, Retention, RollbackError};
use nono::snapshot::{ExclusionConfig, Limits, SessionMetadata, SnapshotManager};

use nono_testkit::noise;

use super::world::{World, id};

const BIG: usize = 1 << 20;

/// Each session has a megabyte that all of them have, and one of its own.
fn sessions(world: &World, count: u32) {
    world.write("shared", noise(BIG, 999));
    for second in 1..=count {
        world.write("own", noise(BIG, u64::from(second)));
        world.session(second, || world.write("result", format!("{second}")));
    }
}

fn left(world: &World) -> Vec<String> {
    let (sessions, problems) = world.catalogue.list().unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    sessions.into_iter().map(|entry| entry.id).collect()
}

fn prune(world: &World, retention: Retention) -> Pruned {
    let pruned = world.catalogue.prune(&retention, false).unwrap();
    assert!(pruned.problems.is_empty(), "{pruned:?}");
    assert_eq!(pruned.bytes_after, world.catalogue.usage().unwrap());
    pruned
}

fn removed(pruned: &Pruned) -> Vec<&str> {
    pruned.removed.iter().map(|entry| entry.id.as_str()).collect()
}

fn at_most(max: usize) -> Retention {
    Retention { max_sessions: Some(max), ..Retention::default() }
}

fn bytes(max: u64) -> Retention {
    Retention { max_bytes: Some(max), ..Retention::default() }
}

#[test]
fn the_oldest_go_and_what_only_they_needed_is_freed() {
    let world = World::new();
    assert_eq!(prune(&world, at_most(1)).bytes_before, 0);
    sessions(&world, 4);
    let before = world.catalogue.usage().unwrap();
    assert!(before > 5 * BIG as u64, "{before}");
    let pruned = prune(&world, at_most(2));
    assert_eq!(removed(&pruned), [id(1), id(2)]);
    assert_eq!(left(&world), [id(4), id(3)]);
    assert_eq!(pruned.bytes_before, before);
    let freed = before - pruned.bytes_after;
    assert!(
        (2 * BIG as u64..3 * BIG as u64).contains(&freed),
        "two megabytes of four, and not the shared one: {freed}"
    );
    // What is left is whole: all that it shared with the others too.
    for second in [3, 4] {
        let verified = world.open(&id(second)).verify().unwrap();
        assert!(verified.sealed && verified.problems.is_empty(), "{verified:?}");
    }
    fs::remove_dir_all(&world.project).unwrap();
    let force = RestoreChoice { conflicts: nono::rollback::Conflicts::Force, ..RestoreChoice::everything() };
    world.open(&id(3)).restore(&force).unwrap();
    assert_eq!(fs::read(world.path("shared")).unwrap(), noise(BIG, 999));
    assert_eq!(fs::read(world.path("own")).unwrap(), noise(BIG, 3));
}

#[test]
fn live_pinned_and_busy_sessions_stay() {
    let world = World::new();
    sessions(&world, 3);
    world.catalogue.pin(&world.catalogue.find(&id(1)).unwrap(), true).unwrap();
    let running = world.begin(4);
    // Another process is just restoring the second one.
    let lock = File::open(world.catalogue.sessions_dir().join(id(2)).join("lock")).unwrap();
    lock.lock().unwrap();
    let all = Retention { all: true, ..Retention::default() };
    assert_eq!(removed(&prune(&world, all)), [id(3)]);
    drop(lock);
    assert_eq!(removed(&prune(&world, all)), [id(2)]);
    assert_eq!(left(&world), [id(4), id(1)]);
    // A pinned one is not counted.
    assert!(prune(&world, at_most(1)).removed.is_empty());
    running.end();
    let pruned = prune(&world, bytes(1));
    assert_eq!(removed(&pruned), [id(4)]);
    assert!(pruned.over_budget, "the pinned one needs more");
    assert_eq!(left(&world), [id(1)]);
    assert!(world.open(&id(1)).verify().unwrap().problems.is_empty());
}

#[test]
fn by_size_only_as_many_as_needed() {
    let world = World::new();
    sessions(&world, 4);
    let usage = world.catalogue.usage().unwrap();
    assert!(prune(&world, bytes(usage)).removed.is_empty());
    let budget = bytes(usage - BIG as u64 - BIG as u64 / 2);
    let planned = world.catalogue.prune(&budget, true).unwrap();
    assert_eq!(removed(&planned), [id(1), id(2)]);
    assert_eq!(left(&world).len(), 4, "a dry run touches nothing");
    assert_eq!(world.catalogue.usage().unwrap(), usage);
    let pruned = prune(&world, budget);
    assert_eq!(removed(&pruned), [id(1), id(2)]);
    assert!(!pruned.over_budget);
    let off = planned.bytes_after.abs_diff(pruned.bytes_after);
    assert!(off < BIG as u64 / 2, "the estimate is near: {off}");
}

#[test]
fn by_age() {
    let world = World::new();
    sessions(&world, 2);
    let ages =
        |days: u64| Retention { older_than: Some(Duration::from_hours(24 * days)), ..Retention::default() };
    assert!(prune(&world, ages(365 * 1000)).removed.is_empty());
    assert_eq!(removed(&prune(&world, ages(0))), [id(1), id(2)]);
}

#[test]
fn what_a_killed_process_left_is_finished() {
    let world = World::new();
    sessions(&world, 2);
    let dir = world.catalogue.sessions_dir();
    fs::rename(dir.join(id(1)), dir.join(format!(".removing-{}", id(1)))).unwrap();
    fs::create_dir(dir.join("just-made")).unwrap();
    fs::write(dir.join("just-made/live"), "").unwrap();
    let (sessions, _) = world.catalogue.list().unwrap();
    assert_eq!(sessions.len(), 1);
    let pruned = prune(&world, Retention::default());
    assert!(pruned.removed.is_empty());
    assert!(pruned.bytes_after + (BIG as u64) < pruned.bytes_before + 4096, "{pruned:?}");
    let mut names: Vec<_> =
        fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, [".lock", &id(2), "seals.ndjson"]);
    assert!(world.open(&id(2)).verify().unwrap().sealed);
}

#[test]
fn unreadable_foreign_and_cut_off_ones_are_not_touched() {
    let world = World::new();
    sessions(&world, 3);
    let dir = world.catalogue.sessions_dir();
    for name in ["session.json", "record.json", "snapshots/000.json", "snapshots/001.json"] {
        fs::write(dir.join(id(1)).join(name), "{").unwrap();
    }
    fs::write(dir.join(id(2)).join("restore.journal"), "a restore was cut off").unwrap();
    fs::write(dir.join("stranger"), "").unwrap();
    let all = Retention { all: true, ..Retention::default() };
    assert_eq!(removed(&prune(&world, all)), [id(3)]);
    for name in [&id(1), &id(2), "stranger"] {
        assert!(dir.join(name).exists(), "{name}");
    }
}

/// A session of a later version keeps the store from being collected, because this version cannot know what it needs: that is said,
/// and no session is given up for room that would not be won.
#[test]
fn nothing_goes_by_size_where_nothing_can_be_freed() {
    let world = World::new();
    sessions(&world, 3);
    let later = r#"{"format": 99}"#;
    let record = |id: String| world.catalogue.sessions_dir().join(id).join("record.json");
    fs::write(record(id(1)), later).unwrap();
    let pruned = world.catalogue.prune(&bytes(1), false).unwrap();
    assert!(matches!(pruned.problems[..], [RollbackError::Snapshot(_)]), "{pruned:?}");
    assert!(pruned.removed.is_empty() && pruned.over_budget, "{pruned:?}");
    assert_eq!(left(&world).len(), 3);
    // Nor can it be foreseen what is freed while one stays that cannot be read; what goes by number can.
    let good = fs::read(record(id(3))).unwrap();
    fs::write(record(id(3)), later).unwrap();
    let planned = world.catalogue.prune(&at_most(2), true).unwrap();
    fs::write(record(id(3)), good).unwrap();
    assert!(matches!(planned.problems[..], [RollbackError::Snapshot(_)]), "{planned:?}");
    assert_eq!(removed(&planned), [id(1)]);
    // By number they go all the same, and with them the damaged one.
    assert_eq!(removed(&prune(&world, at_most(2))), [id(1)]);
    assert_eq!(removed(&prune(&world, bytes(1))), [id(2), id(3)]);
}

#[test]
fn prunes_and_new_sessions_do_not_hurt_each_other() {
    let world = World::new();
    sessions(&world, 2);
    let projects: Vec<_> = (0..3).map(|n| world.base.join(format!("project{n}"))).collect();
    for (n, project) in projects.iter().enumerate() {
        fs::create_dir(project).unwrap();
        fs::write(project.join("file"), noise(10_000, n as u64)).unwrap();
    }
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let catalogue = Catalogue::new(world.base.join("state"));
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let pruned = catalogue.prune(&at_most(2), false).unwrap();
                    assert!(pruned.problems.is_empty(), "{pruned:?}");
                }
            });
        }
        let work = |n: u32, project: &Path| {
            for round in 0..8 {
                let second = 100 + n * 100 + round;
                let running = world.begin_on(second, &[project]);
                fs::write(project.join("file"), noise(10_000, u64::from(second))).unwrap();
                // Live until here, so it is all there.
                assert!(world.catalogue.find(&id(second)).is_ok());
                running.end();
            }
        };
        let workers: Vec<_> =
            (0..3u32).zip(&projects).map(|(n, project)| scope.spawn(move || work(n, project))).collect();
        let results: Vec<_> = workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(results.iter().all(Result::is_ok));
    });
    prune(&world, at_most(2));
    let rest = left(&world);
    assert_eq!(rest.len(), 2);
    for id in rest {
        let verified = world.open(&id).verify().unwrap();
        assert!(verified.sealed && verified.problems.is_empty(), "{verified:?}");
    }
}

/// Each project has its own, and a session that changed nothing takes the place of none that did.
#[test]
fn of_each_project_so_many_with_changes() {
    let world = World::new();
    let other = world.base.join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("file"), "x").unwrap();
    world.write("file", "x");
    world.begin_on(1, &[&other]).end();
    for second in 2..=4 {
        world.session(second, || world.write("file", format!("{second}")));
    }
    for second in 5..=9 {
        let mut running = world.begin(second);
        running.metadata.changes = Some(nono::rollback::ChangeCounts::default());
        running.end();
    }
    let of_each = |max| Retention { max_per_project: Some(max), ..Retention::default() };
    assert_eq!(removed(&prune(&world, of_each(3))), [id(5), id(6)], "empty ones are counted by themselves");
    assert_eq!(removed(&prune(&world, of_each(2))), [id(2), id(7)]);
    assert!(left(&world).contains(&id(1)), "the only one of its project");
}

/// Sessions that the library or another program made are not removed, and are no damage.
#[test]
fn sessions_of_others_stay() {
    let world = World::new();
    world.write("file", "before");
    let place = world.catalogue.sessions_dir().join("session-001");
    fs::create_dir_all(&place).unwrap();
    let mut manager =
        SnapshotManager::new(&place, [&world.project], ExclusionConfig::default(), Limits::default())
            .unwrap();
    manager.create_baseline().unwrap();
    let mut metadata =
        SessionMetadata::new("an id of its own", vec!["make".to_owned()], manager.roots().to_vec());
    metadata.end(Some(0));
    manager.save_session_metadata(&metadata).unwrap();
    drop(manager);
    // Of another format: no record of snapshots.
    let old = world.catalogue.sessions_dir().join("20200101-000000-1");
    fs::create_dir_all(old.join("snapshots")).unwrap();
    let mut metadata = SessionMetadata::new("20200101-000000-1", Vec::new(), vec![world.project.clone()]);
    metadata.end(Some(0));
    fs::write(old.join("session.json"), serde_json::to_vec(&metadata).unwrap()).unwrap();
    for second in 1..=3 {
        world.session(second, || world.write("file", format!("{second}")));
    }
    let all = Retention { all: true, max_sessions: Some(1), max_bytes: Some(1), ..Retention::default() };
    assert_eq!(removed(&prune(&world, all)).len(), 3);
    assert_eq!(left(&world).len(), 2);
    let mut session = world.open("session-001");
    assert!(session.entry().foreign && session.verify().unwrap().problems.is_empty());
    session
        .restore(&RestoreChoice {
            conflicts: nono::rollback::Conflicts::Force,
            ..RestoreChoice::everything()
        })
        .unwrap();
    assert_eq!(world.read("file"), "before");
}
