//! On btrfs and xfs a large file is captured and restored by sharing its data: no data is copied.

use nono_testkit::noise;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

use super::lab::{Lab, run};
use super::mounts::{Mount, sync};
use super::trees::write;

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
    let part = noise(SIZE / 8, 9);
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
    super::lab::assert_clean(&mut manager, kind);
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

const MIB: u64 = 1 << 20;

/// A file over 1 GiB, most of it a hole, changed by four bytes: what is read and what is stored follows the change, where
/// the filesystem can tell. `reads`: at most so many bytes are read then.
fn four_bytes(kind: &str, options: Option<&str>, data: &[u8], reads: u64) {
    let Some(mount) = Mount::image(kind, 640) else { return };
    if let Some(options) = options {
        run(Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(mount.path()));
    }
    let lab = Lab::at(mount.path());
    let big = lab.tree().join("big");
    write(&big, data);
    let file = fs::File::options().write(true).open(&big).unwrap();
    file.set_len(1100 * MIB).unwrap();
    file.sync_all().unwrap();
    let before = fs::read(&big).unwrap();
    let mut manager = lab.manager().unwrap();
    manager.create_baseline().unwrap();
    let stored = manager.store().usage().unwrap().total();
    assert!(stored < 4 * MIB, "{kind}: what is shared takes no room, but {stored} bytes count");
    file.write_all_at(b"nono", 20 * MIB + 7).unwrap();
    file.write_all_at(b"far", 900 * MIB).unwrap();
    file.sync_all().unwrap();
    let (manifest, changes) = manager.create_incremental().unwrap();
    assert_eq!(changes.len(), 1, "{kind}");
    assert!(manifest.work.read_bytes <= reads, "{kind}: {} bytes were read", manifest.work.read_bytes);
    let grown = manager.store().usage().unwrap().total() - stored;
    assert!(grown < 10 * MIB, "{kind}: {grown} bytes for seven");
    let after = fs::read(&big).unwrap();
    assert!(after != before);
    // Without the user's file, what was shared with it alone is the store's own.
    fs::remove_file(&big).unwrap();
    sync(mount.path());
    for (number, expected) in [(0, &before), (1, &after)] {
        let restored = manager.restore_to(number).unwrap();
        assert!(restored.failed.is_empty(), "{kind}: {restored:?}");
        assert!(fs::read(&big).unwrap() == *expected, "{kind}: other bytes in snapshot {number}");
    }
    super::lab::assert_clean(&mut manager, kind);
    manager.gc().unwrap();
    super::lab::assert_clean(&mut manager, kind);
}

#[test]
fn four_bytes_of_a_large_file_on_btrfs() {
    four_bytes("btrfs", None, &noise(64 << 20, 3), 4 * MIB);
}

#[test]
fn four_bytes_of_a_large_file_on_xfs() {
    four_bytes("xfs", None, &noise(64 << 20, 3), 4 * MIB);
}

/// The address of compressed data says nothing about the bytes: what is compressed is read.
#[test]
fn four_bytes_of_a_compressed_file_on_btrfs() {
    let text = b"a line that says the same again and again\n".repeat((64 << 20) / 42);
    four_bytes("btrfs", Some("compress-force=zstd"), &text, 80 * MIB);
}
