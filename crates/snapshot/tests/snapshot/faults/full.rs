//! The command filled the disk: a restore must not need space that is not there.

use nono_testkit::noise;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use nono_snapshot::node::Reason;
use nono_snapshot::restore::Why;
use nono_snapshot::{ManagerOptions, Restored, SnapshotManager};

use super::lab::{Lab, assert_clean, skip};
use super::mounts::Mount;
use super::trees::{Listing, assert_same, list, write};

/// Files of all sizes, two of them large.
fn make(tree: &Path) -> Listing {
    write(&tree.join("small"), "as it was");
    write(&tree.join("sub/medium"), noise(200_000, 1));
    write(&tree.join("large"), noise(6 << 20, 2));
    write(&tree.join("sub/stays"), noise(5 << 20, 3));
    list(tree)
}

/// Simulate a command that fills the disk.
fn run_wild(tree: &Path, mut fill: impl FnMut(u64) -> Vec<u8>) {
    write(&tree.join("small"), "changed");
    write(&tree.join("sub/medium"), noise(100_000, 4));
    write(&tree.join("new/junk"), noise(7 << 20, 5));
    write(&tree.join("new/little"), noise(3000, 6));
    let mut file = File::create(tree.join("core")).unwrap();
    let mut number = 10;
    while file.write_all(&fill(number)).is_ok() {
        number += 1;
        assert!(number < 10_000, "the disk does not become full");
    }
    // To the last block.
    let mut one = File::create(tree.join("log")).unwrap();
    while one.write_all(&[7; 512]).is_ok() {}
    drop(one);
    rustix::fs::syncfs(File::open(tree).unwrap()).unwrap();
    let mut one = File::options().append(true).open(tree.join("log")).unwrap();
    while one.write_all(&[7; 512]).is_ok() {}
}

fn free(path: &Path) -> u64 {
    let stat = rustix::fs::statvfs(path).unwrap();
    stat.f_bavail * stat.f_frsize
}

fn lab(mount: &Mount) -> Lab {
    Lab::at(mount.path())
}

fn restore(manager: &mut SnapshotManager) -> Restored {
    let restored = manager.restore_to(0).unwrap_or_else(|error| panic!("{error}"));
    assert!(!restored.cancelled);
    restored
}

/// Compressing displaced files frees enough space for all restored ones.
#[test]
fn a_disk_full_of_zeros_on_the_stores_own_filesystem() {
    let Some(mount) = Mount::image("ext4", 80) else { return };
    let lab = lab(&mount);
    let old = make(&lab.tree());
    let mut manager = lab.manager().unwrap();
    manager.create_baseline().unwrap();
    write(&lab.tree().join("large"), noise(6 << 20, 7));
    run_wild(&lab.tree(), |_| vec![0; 1 << 20]);
    assert!(free(mount.path()) < 4096 * 4, "{} bytes are free", free(mount.path()));
    let restored = restore(&mut manager);
    assert!(restored.failed.is_empty() && restored.skipped.is_empty(), "{restored:?}");
    assert_same(&list(&lab.tree()), &old, "restored");
    assert_clean(&mut manager, "afterwards");
    let there = manager.load(&restored.safety).unwrap();
    let files = there.files().unwrap();
    for name in ["core", "log", "new/junk", "new/little", "small", "sub/medium", "large"] {
        assert!(files.contains_key(&lab.tree().join(name)), "{name} is not in the safety snapshot");
    }
}

/// Incompressible files are moved: everything that needs no more space than there is comes back.
#[test]
fn a_disk_full_of_noise_on_the_stores_own_filesystem() {
    let Some(mount) = Mount::image("ext4", 80) else { return };
    let lab = lab(&mount);
    let old = make(&lab.tree());
    let mut manager = lab.manager().unwrap();
    manager.create_baseline().unwrap();
    run_wild(&lab.tree(), |number| noise(1 << 20, number));
    assert!(free(mount.path()) < 4096 * 4, "{} bytes are free", free(mount.path()));
    let restored = restore(&mut manager);
    assert!(restored.failed.is_empty(), "{:?}", restored.failed);
    // `log` may be too small to be moved and too large to be stored.
    let log = lab.tree().join("log");
    assert!(restored.skipped.iter().all(|skipped| skipped.path == log), "{:?}", restored.skipped);
    let _ = fs::remove_file(&log);
    let mut now = list(&lab.tree());
    let mut old = old;
    if !restored.skipped.is_empty() {
        // The root keeps a name that was not there before.
        now.retain(|path, _| !path.as_os_str().is_empty());
        old.retain(|path, _| !path.as_os_str().is_empty());
    }
    assert_same(&now, &old, "restored");
    assert_clean(&mut manager, "afterwards");
    let there = manager.load(&restored.safety).unwrap();
    let files = there.files().unwrap();
    for name in ["core", "new/junk", "new/little", "small", "sub/medium"] {
        assert!(files.contains_key(&lab.tree().join(name)), "{name} is not in the safety snapshot");
    }
}

/// The store is on another, full filesystem: what can neither be stored nor moved stays, by name, and the rest is
/// restored.
#[test]
fn a_store_that_is_full_on_another_filesystem() {
    let (Some(store), Some(tree)) = (Mount::tmpfs(24), Mount::tmpfs(40)) else { return };
    let lab = lab(&tree);
    let old = make(&lab.tree());
    let options = ManagerOptions {
        store: Some(store.path().join("store")),
        settle_by_hand: true,
        ..ManagerOptions::default()
    };
    let limits = nono_snapshot::Limits::NONE;
    let session = store.path().join("session");
    let mut manager =
        SnapshotManager::with_options(session, [lab.tree()], super::lab::plain(), limits, options).unwrap();
    manager.create_baseline().unwrap();
    write(&lab.tree().join("small"), "changed");
    write(&lab.tree().join("new/junk"), noise(9 << 20, 5));
    write(&lab.tree().join("new/little"), noise(3000, 6));
    let mut filler = File::create(store.path().join("filler")).unwrap();
    while filler.write_all(&[1; 4096]).is_ok() {}
    if free(store.path()) > 4096 {
        return skip("the store's filesystem does not become full");
    }
    let restored = restore(&mut manager);
    assert!(restored.failed.is_empty(), "{:?}", restored.failed);
    let skipped: Vec<_> = restored.skipped.iter().map(|one| (one.path.clone(), one.why.clone())).collect();
    let (new, junk) = (lab.tree().join("new"), lab.tree().join("new/junk"));
    let size = 9 << 20;
    assert_eq!(skipped, [(new, Why::HoldsOthers), (junk, Why::NotStored(Reason::OverBudget { size }))]);
    assert_eq!(fs::read(lab.tree().join("small")).unwrap(), b"as it was");
    assert!(!lab.tree().join("new/little").exists());
    assert_eq!(fs::read(lab.tree().join("new/junk")).unwrap(), noise(9 << 20, 5));
    // With free space again, it is removed as well.
    drop(filler);
    fs::remove_file(store.path().join("filler")).unwrap();
    let restored = restore(&mut manager);
    assert!(restored.failed.is_empty() && restored.skipped.is_empty(), "{restored:?}");
    assert_same(&list(&lab.tree()), &old, "restored");
}
