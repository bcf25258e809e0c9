//! A filesystem without rename flags that sets times only in pairs, like many FUSE filesystems.

use nono_snapshot::{RestoreOptions, SnapshotId};

use super::lab::{Lab, assert_clean};
use super::mounts::Mount;
use super::trees::{assert_same, list, make_new, make_old};

#[test]
fn there_and_back() {
    let Some(mount) = Mount::fuse() else { return };
    let lab = Lab::at(mount.path());
    make_old(&lab.tree());
    let old = list(&lab.tree());
    let mut manager = lab.manager().unwrap();
    manager.create_baseline().unwrap();
    make_new(&lab.tree());
    let new = list(&lab.tree());
    let back = manager.restore_to(0).unwrap();
    assert!(back.failed.is_empty() && back.skipped.is_empty(), "{back:?}");
    assert_same(&list(&lab.tree()), &old, "restored");
    let all = manager.snapshots().unwrap();
    let safety = all.iter().find(|id| matches!(id, SnapshotId::Safety(_))).unwrap();
    let there = manager.restore(safety, &RestoreOptions::default()).unwrap();
    assert!(there.failed.is_empty() && there.skipped.is_empty(), "{there:?}");
    assert_same(&list(&lab.tree()), &new, "the restore undone");
    assert_clean(&mut manager, "after both");
}
