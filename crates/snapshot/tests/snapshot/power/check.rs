//! Checks after the reboot, valid for any moment of the power loss.

use nono_snapshot::{Next, RestoreOptions, SnapshotId, SnapshotManager};

use super::kit::{Point, exists};
use crate::faults::lab::Lab;
use crate::faults::trees::{assert_same, list};

pub(crate) fn after(lab: &Lab, operation: &str, point: &Point) {
    let when = format!("{operation} at {point:?}");
    if operation == "restore" {
        restored(lab, &when, matches!(point, Point::End(_)));
    }
    let mut manager = lab.manager().unwrap_or_else(|error| panic!("{when}: open: {error}"));
    let count = manager.snapshot_count().unwrap_or_else(|error| panic!("{when}: count: {error}"));
    if operation.starts_with("baseline") {
        if count == 0 {
            manager.create_baseline().unwrap_or_else(|error| panic!("{when}: again: {error}"));
            goes_back(lab, &mut manager, 0, "new", &when);
        } else {
            is_whole_or_lost(lab, &mut manager, 0, "new", &when);
        }
        if operation.ends_with("background") && matches!(point, Point::End(_)) {
            assert!(manager.load_manifest(0).unwrap().durable, "{when}: settled, and not durable");
        }
    } else {
        goes_back(lab, &mut manager, 0, "old", &when);
        for number in 1..count {
            is_whole_or_lost(lab, &mut manager, number, "new", &when);
        }
        // The history goes on, whatever was lost.
        let now = manager.look_now(Next::default()).unwrap_or_else(|error| panic!("{when}: next: {error}"));
        manager.number_now(now).unwrap_or_else(|error| panic!("{when}: next: {error}"));
    }
    drop(manager);
    others_go_on(lab, &when);
}

/// The tree is as before or as the restore leaves it, now or after the next command.
fn restored(lab: &Lab, when: &str, ended: bool) {
    let unfinished = exists(&lab.session().join("restore.journal"));
    assert!(!(ended && unfinished), "{when}: it had ended, and there is a journal");
    let mut manager = lab.manager().unwrap_or_else(|error| panic!("{when}: open: {error}"));
    manager.recover().unwrap_or_else(|error| panic!("{when}: recover: {error}"));
    let (now, old) = (list(&lab.tree()), list(&lab.base.join("old")));
    if now == old {
        return;
    }
    assert!(!ended && !unfinished, "{when}: not completed: {}", difference(&now, &old));
    assert_same(&now, &list(&lab.base.join("new")), &format!("{when}: neither old nor new"));
}

fn difference(now: &crate::faults::trees::Listing, wanted: &crate::faults::trees::Listing) -> String {
    let differs = wanted.iter().filter(|(name, item)| now.get(*name) != Some(item));
    let named: Vec<String> = differs.map(|(name, item)| format!("{}: {item:?}", name.display())).collect();
    format!("{} differ, e.g. {:?}", named.len(), named.first())
}

fn goes_back(lab: &Lab, manager: &mut SnapshotManager, number: u32, like: &str, when: &str) {
    let restored =
        manager.restore_to(number).unwrap_or_else(|error| panic!("{when}: restore {number}: {error}"));
    assert!(restored.failed.is_empty(), "{when}: restore {number}: {:?}", restored.failed);
    assert_same(&list(&lab.tree()), &list(&lab.base.join(like)), &format!("{when}: back to {number}"));
}

/// A snapshot that is not durable may be lost; then the error says so, and nothing is touched.
fn is_whole_or_lost(lab: &Lab, manager: &mut SnapshotManager, number: u32, like: &str, when: &str) {
    let durable = |manager: &SnapshotManager| {
        let record = manager.session().record().unwrap().unwrap();
        let recorded = record.find(&SnapshotId::Number(number)).unwrap();
        (recorded.durable, recorded.thinned)
    };
    let (is_durable, thinned) = durable(manager);
    if thinned {
        return;
    }
    if is_durable {
        return goes_back(lab, manager, number, like, when);
    }
    let before = list(&lab.tree());
    match manager.restore(&SnapshotId::Number(number), &RestoreOptions::default()) {
        Ok(restored) if restored.failed.is_empty() => {
            assert_same(
                &list(&lab.tree()),
                &list(&lab.base.join(like)),
                &format!("{when}: back to {number}"),
            );
        }
        Ok(restored) => panic!("{when}: restore {number}: {:?}", restored.failed),
        Err(error) => {
            let said = matches!(error, nono_snapshot::SnapshotError::Lost { .. });
            assert!(said, "{when}: restore {number} does not say that it is lost: {error}");
            println!("{when}: lost: {error}");
            assert_same(&list(&lab.tree()), &before, &format!("{when}: untouched by the lost {number}"));
        }
    }
}

/// Another session in the same store: lost objects do not damage later snapshots.
fn others_go_on(lab: &Lab, when: &str) {
    let store = lab.session().join("store");
    let mut other = lab
        .manager_with(lab.base.join("now/other"), Some(store))
        .unwrap_or_else(|error| panic!("{when}: another session: {error}"));
    let before = list(&lab.tree());
    other.create_baseline().unwrap_or_else(|error| panic!("{when}: another baseline: {error}"));
    other.settle().unwrap_or_else(|error| panic!("{when}: another settling: {error}"));
    std::fs::remove_file(lab.tree().join("keep.txt")).unwrap();
    let restored = other.restore_to(0).unwrap_or_else(|error| panic!("{when}: another restore: {error}"));
    assert!(restored.failed.is_empty(), "{when}: another restore: {:?}", restored.failed);
    assert_same(&list(&lab.tree()), &before, &format!("{when}: another session"));
}
