//! On btrfs and xfs a large file is captured and restored by sharing its data: no data is copied.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::lab::{Lab, run};
use crate::mounts::{Mount, sync};
use crate::trees::{noise, write};

const SIZE: usize = 96 << 20;

fn used(path: &Path) -> u64 {
    sync(path);
    let stat = rustix::fs::statvfs(path).unwrap();
    (stat.f_blocks - stat.f_bfree) * stat.f_frsize
}

/// Whether every extent of the file is shared with another file.
#[track_caller]
fn assert_shared(path: &Path, when: &str) {
    let text = run(Command::new("filefrag").arg("-v").arg(path));
    let is_extent =
        |line: &&str| line.trim_start().split(':').next().is_some_and(|first| first.parse::<u32>().is_ok());
    let extents: Vec<&str> = text.lines().filter(is_extent).collect();
    assert!(!extents.is_empty(), "{when}: {text}");
    assert!(extents.iter().all(|line| line.contains("shared")), "{when}: {text}");
}

fn by_reflink(kind: &str) {
    let Some(mount) = Mount::image(kind, 640) else { return };
    let lab = Lab::at(mount.path());
    let big = lab.tree().join("big");
    let part = noise(9, SIZE / 8);
    write(&big, part.repeat(8));
    let limit = (SIZE / 8) as u64;
    let before = used(mount.path());
    let mut manager = lab.manager().unwrap();
    manager.create_baseline().unwrap();
    manager.settle().unwrap();
    let captured = used(mount.path());
    assert!(captured < before + limit, "{kind}: capturing took {} bytes", captured - before);
    assert_shared(&big, &format!("{kind}, captured"));
    fs::remove_file(&big).unwrap();
    let restored = manager.restore_to(0).unwrap();
    assert!(restored.failed.is_empty(), "{restored:?}");
    let after = used(mount.path());
    assert!(after < before + limit, "{kind}: restoring took {} bytes", after - captured);
    assert_shared(&big, &format!("{kind}, restored"));
    assert!(fs::read(&big).unwrap().chunks(part.len()).all(|piece| piece == part), "{kind}: other bytes");
    // The store's object is its own: what is written into the file does not reach it.
    write(&big, "overwritten");
    crate::lab::assert_clean(&mut manager, kind);
    drop(manager);
}

#[test]
fn on_btrfs() {
    by_reflink("btrfs");
}

#[test]
fn on_xfs() {
    by_reflink("xfs");
}
