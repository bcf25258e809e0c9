//! Damaged files of projects: one of them stops no other project, and its own project begins anew with what is
//! left. And a clock that is not to be trusted.

use std::fs;
use std::path::{Path, PathBuf};

use nono_checkpoint::{CheckpointChoice, CheckpointManager, Config, Conflicts, Origin, Retention};

use crate::common::{World, taken, text};

fn create(manager: &mut CheckpointManager, dir: &Path, reason: &str) {
    taken(manager.create(dir, reason, &Origin::default()));
}

fn retention() -> Retention {
    Retention { max_snapshots: 20, max_bytes: 0, retention_days: 7, delete_orphans: true }
}

/// The folder of a project's history.
fn folder(world: &World, workdir: &Path) -> PathBuf {
    let hash = nono_checkpoint::ProjectHash::of(&workdir.canonicalize().unwrap());
    world.host.state_dir.join("projects").join(hash.as_str())
}

/// Two projects with two checkpoints each, and a restore of the first.
fn two(world: &World, manager: &mut CheckpointManager) -> PathBuf {
    let other = world.tree.with_file_name("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("Makefile"), "").unwrap();
    for dir in [&world.tree, &other] {
        for state in ["one", "two"] {
            fs::write(dir.join("file"), state).unwrap();
            create(manager, dir, state);
        }
        fs::write(dir.join("file"), "three").unwrap();
    }
    manager
        .restore(
            &world.tree,
            &text("1"),
            &CheckpointChoice { conflicts: Conflicts::Force, ..CheckpointChoice::default() },
        )
        .unwrap();
    other
}

#[test]
fn a_damaged_file_stops_neither_its_project_nor_others() {
    for name in ["project.json", "record.json", "history.json", "restores.json", "marks.json", "theirs.json"]
    {
        for damage in ["", "{", "\0\0"] {
            let world = World::new();
            let mut manager = world.manager();
            let other = two(&world, &mut manager);
            let file = folder(&world, &world.tree).join(name);
            fs::write(&file, damage).unwrap();
            let when = format!("{name} {damage:?}");
            // Everybody else's work first.
            let pruned = manager.prune(&retention(), false).unwrap();
            assert!(pruned.problems.is_empty(), "{when}: {pruned:?}");
            let verified = manager.verify(Some(&other)).unwrap();
            assert!(verified.is_good(), "{when}: {verified:?}");
            // Its own goes on, and what it had is there.
            fs::write(world.tree.join("file"), "four").unwrap();
            create(&mut manager, &world.tree, "four");
            let list = manager.list(&world.tree).unwrap();
            assert_eq!(list.len(), 3, "{when}: {list:?}");
            let choice = CheckpointChoice { conflicts: Conflicts::Force, ..CheckpointChoice::default() };
            manager.restore(&world.tree, &text("3"), &choice).unwrap();
            assert_eq!(fs::read_to_string(world.tree.join("file")).unwrap(), "one", "{when}");
            let verified = manager.verify(None).unwrap();
            assert!(verified.is_good(), "{when}: {verified:?}");
            manager.forget(&world.tree.join("file")).unwrap();
            let cleared = manager.clear(None, false).unwrap();
            assert!(
                cleared.problems.is_empty() && cleared.projects_removed.len() == 2,
                "{when}: {cleared:?}"
            );
        }
    }
}

/// Nothing is left of one: it begins anew, and the others do not know of it.
#[test]
fn a_project_of_which_nothing_is_left_begins_anew() {
    let world = World::new();
    let mut manager = world.manager();
    two(&world, &mut manager);
    let folder = folder(&world, &world.tree);
    let mut files: Vec<PathBuf> = vec![folder.join("record.json"), folder.join("project.json")];
    for part in ["snapshots", "safety"] {
        files.extend(fs::read_dir(folder.join(part)).unwrap().map(|entry| entry.unwrap().path()));
    }
    for file in files {
        fs::write(file, "").unwrap();
    }
    let pruned = manager.prune(&retention(), false).unwrap();
    assert!(pruned.problems.is_empty(), "{pruned:?}");
    create(&mut manager, &world.tree, "anew");
    let list = manager.list(&world.tree).unwrap();
    assert_eq!(list.len(), 1, "{list:?}");
}

#[test]
fn a_lost_manifest_is_one_lost_checkpoint() {
    let world = World::new();
    let mut manager = world.manager();
    two(&world, &mut manager);
    fs::write(folder(&world, &world.tree).join("snapshots/001.json"), "").unwrap();
    let verified = manager.verify(None).unwrap();
    assert_eq!(verified.lost.len(), 1, "{verified:?}");
    assert_eq!(verified.lost[0].checkpoint.reason, "two");
    fs::write(world.tree.join("file"), "four").unwrap();
    create(&mut manager, &world.tree, "four");
    let choice = CheckpointChoice { conflicts: Conflicts::Force, ..CheckpointChoice::default() };
    assert!(manager.restore(&world.tree, &text("2"), &choice).is_err());
    manager.restore(&world.tree, &text("3"), &choice).unwrap();
    assert_eq!(fs::read_to_string(world.tree.join("file")).unwrap(), "one");
}

#[test]
fn repair_says_which_files() {
    let world = World::new();
    let mut manager = world.manager();
    two(&world, &mut manager);
    let folder = folder(&world, &world.tree);
    let files = [folder.join("project.json"), folder.join("history.json")];
    for file in &files {
        fs::write(file, "").unwrap();
    }
    assert_eq!(manager.repair(true).unwrap().files, files);
    let done = manager.repair(false).unwrap();
    assert!(done.files == files && done.problems.is_empty(), "{done:?}");
    let again = manager.repair(false).unwrap();
    assert!(again.files.is_empty() && again.problems.is_empty(), "{again:?}");
}

/// Rewrite the times in a project's files.
fn moment(path: &Path, key: &str, days: i64) {
    let mut value: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let then = nono_sys::time::now_ms().saturating_add_signed(days * 86_400_000);
    value[key] = nono_sys::time::iso_ms(then).into();
    fs::write(path, value.to_string()).unwrap();
}

/// The clock is ahead now: by it everybody else's work is old. Nothing goes before the clock says so a second time.
#[test]
fn a_clock_that_is_ahead_removes_nothing() {
    let world = World::new();
    let mut manager = world.manager();
    two(&world, &mut manager);
    let marker = world.host.state_dir.join(".last_prune");
    let at = |days: i64| {
        let then = nono_sys::time::now_ms().saturating_add_signed(days * 86_400_000);
        format!("{}\n", nono_sys::time::iso_ms(then))
    };
    // As if it were twenty days later than when the last sweep was made, and than the last work.
    for workdir in [&world.tree, &world.tree.with_file_name("other")] {
        moment(&folder(&world, workdir).join("project.json"), "last_touch", -20);
    }
    fs::write(&marker, at(-20)).unwrap();
    let pruned = manager.auto_prune().unwrap().unwrap();
    assert!(pruned.removed.is_empty() && pruned.projects_removed.is_empty(), "{pruned:?}");
    // Set right again, the marker is of the future, and tells nothing.
    fs::write(&marker, at(20)).unwrap();
    let pruned = manager.auto_prune().unwrap().unwrap();
    assert!(pruned.removed.is_empty() && pruned.projects_removed.is_empty(), "{pruned:?}");
    // Old at the last sweep as well.
    fs::write(&marker, at(-2)).unwrap();
    let pruned = manager.auto_prune().unwrap().unwrap();
    assert_eq!(pruned.projects_removed.len(), 2, "{pruned:?}");
}

/// A checkpoint of the future is neither the newest for ever, nor does it take the place of new ones.
#[test]
fn checkpoints_go_in_the_order_they_were_taken() {
    let world = World::new();
    let mut manager = world.manager_with(&Config { max_snapshots: 3, ..Config::default() });
    for number in 0..2 {
        fs::write(world.tree.join("file"), number.to_string()).unwrap();
        create(&mut manager, &world.tree, &number.to_string());
    }
    let history = folder(&world, &world.tree).join("history.json");
    let text = fs::read_to_string(&history).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["checkpoints"][1]["time"] = "2099-01-01T00:00:00Z".into();
    fs::write(&history, value.to_string()).unwrap();
    for number in 2..8 {
        fs::write(world.tree.join("file"), number.to_string()).unwrap();
        create(&mut manager, &world.tree, &number.to_string());
        let list = manager.list(&world.tree).unwrap();
        assert_eq!(list[0].reason, number.to_string(), "the newest is the first of the list");
    }
    manager.prune(&Retention { max_snapshots: 3, ..retention() }, false).unwrap();
    let list = manager.list(&world.tree).unwrap();
    let reasons: Vec<&str> = list.iter().map(|one| one.reason.as_str()).collect();
    assert!(reasons.len() == 3 && reasons[..2] == ["7", "6"], "{reasons:?}");
}
