//! Sweeps.

use std::path::Path;

use nono_checkpoint::{CheckpointManager, Config, Origin, Project, Retention};
use nono_snapshot::store::Store;
use nono_snapshot::{ExclusionConfig, Limits, ManagerOptions, SnapshotManager};

use nono_testkit::noise;

use crate::common::{World, taken, text};

const MB: u64 = 1 << 20;

/// As the settings say by default, but without bounds of size.
fn retention() -> Retention {
    Retention { max_snapshots: 20, max_bytes: 0, retention_days: 7, delete_orphans: true }
}

fn create(manager: &mut CheckpointManager, dir: &Path, reason: &str) {
    taken(manager.create(dir, reason, &Origin::default()));
}

/// Many checkpoints of one file, whose text is the number.
fn many(world: &World, manager: &mut CheckpointManager, count: u32) {
    for number in 0..count {
        world.write("file", number.to_string());
        create(manager, &world.tree, &format!("number {number}"));
    }
}

fn project_folder(world: &World) -> std::path::PathBuf {
    let folder =
        std::fs::read_dir(world.host.state_dir.join("projects")).unwrap().map(|entry| entry.unwrap());
    folder.map(|entry| entry.path()).find(|path| path.join("project.json").is_file()).unwrap()
}

/// As if no agent had worked there for so many days.
fn untouched(world: &World, days: u64) {
    let path = project_folder(world).join("project.json");
    let mut project: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let then = nono_sys::time::now_ms() - days * 86_400_000;
    project["last_touch"] = nono_sys::time::iso_ms(then).into();
    std::fs::write(&path, project.to_string()).unwrap();
}

fn disk(world: &World) -> u64 {
    nono_sys::fs::disk_bytes(&world.host.state_dir).unwrap()
}

#[test]
fn there_are_never_too_many() {
    let world = World::new();
    let mut manager = world.manager_with(&Config { max_snapshots: 5, ..Config::default() });
    world.write("file", "first");
    create(&mut manager, &world.tree, "first");
    manager.set_name(&world.tree, &text("1"), "good").unwrap();
    world.write("file", "second");
    create(&mut manager, &world.tree, "second");
    manager.set_pinned(&world.tree, &text("1"), true).unwrap();
    let mut ids = Vec::new();
    for number in 0..12u32 {
        world.write("file", number.to_string());
        create(&mut manager, &world.tree, "more");
        let list = manager.list(&world.tree).unwrap();
        assert_eq!(list.len(), 2 + 5.min(number as usize + 1));
        ids.push(list[0].id.clone());
        assert!(list.iter().filter(|one| one.name.is_some() || one.pinned).count() == 2);
        // What is still there has the id it had.
        assert!(list.iter().filter(|one| !one.is_kept()).all(|one| ids.contains(&one.id)));
    }
    // The snapshots go with the next sweep, and everything is as before.
    let list = manager.list(&world.tree).unwrap();
    let pruned = manager.prune(&retention(), false).unwrap();
    assert!(pruned.problems.is_empty() && pruned.removed.is_empty(), "{pruned:?}");
    assert_eq!(manager.list(&world.tree).unwrap(), list);
    let snapshots = std::fs::read_dir(project_folder(&world).join("snapshots")).unwrap().count();
    assert_eq!(snapshots, 7);
    assert!(manager.verify(None).unwrap().is_good());
    world.restore("good");
    assert_eq!(world.read("file"), "first");
    world.restore(list[3].id.as_str());
    assert_eq!(world.read("file"), "8");

    // One more than the sweep knows of: the same with less.
    let fewer = Retention { max_snapshots: 2, ..retention() };
    let plan = manager.prune(&fewer, true).unwrap();
    assert_eq!(plan.removed[0].1.len(), 3);
    assert_eq!(manager.list(&world.tree).unwrap().len(), 7, "a dry run removes nothing");
    let pruned = manager.prune(&fewer, false).unwrap();
    assert_eq!(pruned.removed, plan.removed);
    assert_eq!(manager.list(&world.tree).unwrap().len(), 4);
}

#[test]
fn a_stale_project_loses_checkpoints_that_are_not_pinned() {
    let world = World::new();
    let mut manager = world.manager();
    many(&world, &mut manager, 3);
    manager.set_pinned(&world.tree, &text("3"), true).unwrap();
    untouched(&world, 6);
    assert!(manager.prune(&retention(), false).unwrap().removed.is_empty());
    untouched(&world, 8);
    assert!(
        manager.prune(&Retention { retention_days: 0, ..retention() }, false).unwrap().removed.is_empty()
    );
    let pruned = manager.prune(&retention(), false).unwrap();
    assert_eq!((pruned.removed[0].1.len(), pruned.projects_removed.len()), (2, 0), "{pruned:?}");
    let list = manager.list(&world.tree).unwrap();
    assert_eq!((list.len(), list[0].reason.as_str()), (1, "number 0"));
    // Work goes on: numbers and ids are new ones.
    create(&mut manager, &world.tree, "again");
    assert_eq!(manager.list(&world.tree).unwrap().len(), 2);
    assert!(manager.verify(None).unwrap().is_good());
    world.restore("2");
    assert_eq!(world.read("file"), "0");

    manager.set_pinned(&world.tree, &text("2"), false).unwrap();
    untouched(&world, 8);
    let pruned = manager.prune(&retention(), false).unwrap();
    assert_eq!(pruned.projects_removed, std::slice::from_ref(&world.tree));
    assert!(manager.status().unwrap().projects.is_empty());
    assert_eq!(Store::open(&world.host.state_dir.join("store")).unwrap().usage().unwrap().packs, 0);
    // And it can begin anew.
    create(&mut manager, &world.tree, "anew");
    assert_eq!(manager.list(&world.tree).unwrap().len(), 1);
}

#[test]
fn an_orphan_goes_and_a_disk_that_is_away_does_not() {
    let world = World::new();
    let mut manager = world.manager();
    many(&world, &mut manager, 2);
    let (work, away) = (world.tree.parent().unwrap().to_owned(), world.base.join("away"));
    // Another folder where the disk was mounted.
    std::fs::rename(&work, &away).unwrap();
    std::fs::create_dir(&work).unwrap();
    assert!(!manager.status().unwrap().projects[0].orphan);
    assert!(manager.prune(&retention(), false).unwrap().projects_removed.is_empty());
    std::fs::remove_dir(&work).unwrap();
    std::fs::rename(&away, &work).unwrap();

    std::fs::remove_dir_all(&world.tree).unwrap();
    assert!(manager.status().unwrap().projects[0].orphan);
    let keep = Retention { delete_orphans: false, ..retention() };
    assert!(manager.prune(&keep, false).unwrap().projects_removed.is_empty());
    // By itself not at once: it may have been a mistake, and this is the way back.
    assert!(manager.auto_prune().unwrap().unwrap().projects_removed.is_empty());
    let found = manager.list(&world.tree).unwrap();
    manager.restore(&world.tree, &text("1"), &nono_checkpoint::CheckpointChoice::default()).unwrap();
    assert_eq!((found.len(), world.read("file").as_str()), (2, "1"));
    std::fs::remove_dir_all(&world.tree).unwrap();
    let plan = manager.prune(&retention(), true).unwrap();
    let pruned = manager.prune(&retention(), false).unwrap();
    assert_eq!(
        (&pruned.projects_removed, &plan.projects_removed),
        (&vec![world.tree.clone()], &vec![world.tree.clone()])
    );
    assert!(!project_left(&world));
}

fn project_left(world: &World) -> bool {
    std::fs::read_dir(world.host.state_dir.join("projects"))
        .unwrap()
        .any(|entry| entry.unwrap().path().is_dir())
}

#[test]
fn by_itself_only_every_so_often() {
    let world = World::new();
    let off = world.manager_with(&Config { auto_prune: false, ..Config::default() });
    let mut manager = CheckpointManager::new(world.host.clone(), Config::default());
    assert!(manager.auto_prune().unwrap().is_none(), "there is nothing to sweep");
    many(&world, &mut manager, 2);
    untouched(&world, 9);
    assert!(off.auto_prune().unwrap().is_none());
    // Not enabled is no reason to keep what there is.
    assert!(!manager.config().enabled);
    let marker = world.host.state_dir.join(".last_prune");
    let hours = |hours: u64| nono_sys::time::iso_ms(nono_sys::time::now_ms() - hours * 3_600_000);
    std::fs::write(&marker, hours(23)).unwrap();
    assert!(manager.auto_prune().unwrap().is_none());
    std::fs::write(&marker, hours(25)).unwrap();
    let pruned = manager.auto_prune().unwrap().unwrap();
    assert_eq!(pruned.projects_removed, std::slice::from_ref(&world.tree));
    assert!(manager.auto_prune().unwrap().is_none());
    // A marker that says nothing, or comes from the future, is none.
    create(&mut manager, &world.tree, "again");
    for marker_text in ["nonsense", "2999-01-01T00:00:00Z"] {
        std::fs::write(&marker, marker_text).unwrap();
        assert!(manager.auto_prune().unwrap().is_some(), "{marker_text}");
    }
    // A full sweep does not ask for the marker.
    untouched(&world, 9);
    assert_eq!(manager.prune(&manager.retention(), false).unwrap().projects_removed.len(), 1);
}

/// Two projects that do not fit: the oldest of each goes, never the newest, never what has a name.
#[test]
fn the_oldest_of_each_go_until_it_fits() {
    let world = World::new();
    let other = world.base.join("home/work/other");
    std::fs::create_dir_all(&other).unwrap();
    let mut manager = world.manager();
    for number in 0..6u64 {
        world.write("file", noise(1 << 20, number));
        create(&mut manager, &world.tree, &format!("tree {number}"));
        if number == 0 {
            manager.set_name(&world.tree, &text("1"), "first").unwrap();
        }
        std::fs::write(other.join("file"), noise(1 << 20, 100 + number)).unwrap();
        create(&mut manager, &other, &format!("other {number}"));
    }
    // One megabyte of it is kept for restores on a full disk.
    let bound = Retention { max_bytes: 9 * MB, ..retention() };
    let plan = manager.prune(&bound, true).unwrap();
    assert!(plan.bytes_before > 13 * MB && plan.bytes_after <= 9 * MB && !plan.over_budget, "{plan:?}");
    let pruned = manager.prune(&bound, false).unwrap();
    assert!(pruned.problems.is_empty() && !pruned.over_budget, "{pruned:?}");
    assert_eq!(pruned.removed, plan.removed);
    assert!(disk(&world) <= 9 * MB, "{} of {}", disk(&world), 9 * MB);
    let reasons = |manager: &CheckpointManager, dir: &Path| -> Vec<String> {
        manager.list(dir).unwrap().into_iter().map(|one| one.reason).collect()
    };
    assert_eq!(reasons(&manager, &world.tree), ["tree 5", "tree 4", "tree 3", "tree 0"]);
    assert_eq!(reasons(&manager, &other), ["other 5", "other 4", "other 3"]);
    assert!(manager.verify(None).unwrap().is_good());

    // What cannot hold says so, and leaves the newest.
    let pruned = manager.prune(&Retention { max_bytes: MB / 2, ..retention() }, false).unwrap();
    assert!(pruned.over_budget);
    assert_eq!(reasons(&manager, &world.tree), ["tree 5", "tree 0"]);
    assert_eq!(reasons(&manager, &other), ["other 5"]);
}

/// What a session of a run needs is not the checkpoints', and clearing one side leaves the other whole.
#[test]
fn sessions_and_checkpoints_share_one_store() {
    let world = World::new();
    let mut manager = world.manager();
    world.write("file", noise(4 << 20, 1));
    let options = ManagerOptions {
        store: Some(world.host.state_dir.join("store")),
        settle_by_hand: true,
        ..ManagerOptions::default()
    };
    let session = world.host.state_dir.join("rollbacks/one");
    let mut run = SnapshotManager::with_options(
        session,
        [&world.tree],
        ExclusionConfig::default(),
        Limits::NONE,
        options,
    )
    .unwrap();
    run.create_baseline().unwrap();
    create(&mut manager, &world.tree, "same");
    let bound = Retention { max_bytes: 2 * MB, ..retention() };
    let pruned = manager.prune(&bound, false).unwrap();
    assert!(!pruned.over_budget && pruned.bytes_after < 2 * MB, "{pruned:?}");
    manager.clear(None, false).unwrap();
    assert!(run.verify().unwrap().is_clean());
    // The other way round.
    create(&mut manager, &world.tree, "same");
    drop(run);
    std::fs::remove_dir_all(world.host.state_dir.join("rollbacks/one")).unwrap();
    let pruned = manager.prune(&bound, false).unwrap();
    assert!(pruned.over_budget && pruned.bytes_after > 4 * MB, "{pruned:?}");
    assert!(manager.verify(None).unwrap().is_good());
    assert_eq!(manager.list(&world.tree).unwrap().len(), 1);
}

#[test]
fn superseded_formats_are_set_aside_and_swept() {
    let world = World::new();
    let mut manager = world.manager();
    many(&world, &mut manager, 2);
    let state = &world.host.state_dir;
    std::fs::create_dir(state.join("checkpoints")).unwrap();
    std::fs::write(state.join("checkpoints/old"), "old").unwrap();
    let folder = project_folder(&world);
    let workdir = Project::load(&folder).unwrap().unwrap().workdir;
    let history = folder.join("history.json");
    let mut old: serde_json::Value = serde_json::from_slice(&std::fs::read(&history).unwrap()).unwrap();
    old["format"] = 0.into();
    std::fs::write(&history, old.to_string()).unwrap();
    let place = manager.migrate().unwrap().unwrap();
    assert_eq!(manager.migrate().unwrap(), None);
    assert!(place.join("checkpoints/old").is_file() && !folder.exists());
    let status = manager.status().unwrap();
    assert_eq!((status.legacy.len(), status.projects.len()), (1, 0));
    assert!(status.legacy_bytes > 0 && status.legacy[0].0.starts_with("legacy-20"));
    // What it needs of the store stays.
    manager.prune(&retention(), false).unwrap();
    let moved = place.join(folder.file_name().unwrap());
    let options = ManagerOptions { store: Some(state.join("store")), ..ManagerOptions::default() };
    let mut session = SnapshotManager::resume(&moved, options).unwrap();
    assert_eq!(session.roots(), [workdir]);
    assert!(session.verify().unwrap().is_clean());
    drop(session);
    // Until the retention is over; one without a time is as old as its folder.
    let old = state.join("legacy-20200101-000000");
    std::fs::rename(&place, &old).unwrap();
    std::fs::create_dir(state.join("legacy-mine")).unwrap();
    manager.prune(&retention(), false).unwrap();
    assert!(!old.exists());
    let cleared = manager.clear_legacy(false).unwrap();
    assert_eq!(
        cleared.iter().map(nono_checkpoint::legacy::Legacy::name).collect::<Vec<_>>(),
        ["legacy-mine"]
    );
    assert!(manager.legacy().unwrap().is_empty());
}
