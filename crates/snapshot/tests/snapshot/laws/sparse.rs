//! Sparse and large files.

use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use nono_snapshot::HashKind;

use crate::common::{World, clean, go_back};
use nono_testkit::oracle::{look, same};

/// A file of `size` bytes with these pieces of data.
fn sparse(path: &Path, size: u64, data: &[(u64, &[u8])]) {
    let file = OpenOptions::new().create(true).truncate(true).write(true).open(path).unwrap();
    file.set_len(size).unwrap();
    for (at, bytes) in data {
        file.write_all_at(bytes, *at).unwrap();
    }
    file.sync_all().unwrap();
}

fn read(path: &Path, at: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    std::fs::File::open(path).unwrap().read_exact_at(&mut bytes, at).unwrap();
    bytes
}

fn kilobytes(path: &Path) -> u64 {
    path.metadata().unwrap().blocks() / 2
}

const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

#[test]
fn eight_terabytes_of_nothing() {
    let world = World::new();
    let path = world.path("huge");
    let end = 8 * TIB;
    let pieces: [(u64, &[u8]); 3] = [(0, b"start"), (3 * TIB + 12_345, b"middle"), (end - 3, b"end")];
    sparse(&path, end, &pieces);
    let before = look(&world.tree);
    let mut manager = world.manager();
    let baseline = manager.create_baseline().unwrap();
    let state = baseline.files().unwrap()[&path];
    assert_eq!((state.size, state.hash_kind), (end, HashKind::of(end)));
    assert_ne!(HashKind::of(end), HashKind::of(5));
    let stored = manager.store().usage().unwrap();
    assert!(kilobytes(&path) < 1000, "{stored:?}");
    // A byte in the middle of the hole.
    sparse(&path, end, &[(5 * TIB, b"x")]);
    let changed = look(&world.tree);
    let (_, changes) = manager.create_incremental().unwrap();
    assert_eq!(changes.len(), 1);
    let restored = manager.restore_to(0).unwrap();
    clean(&restored);
    same(&before, &look(&world.tree));
    for (at, bytes) in pieces {
        assert_eq!(read(&path, at, bytes.len()), bytes);
    }
    assert_eq!(read(&path, 5 * TIB, 1), [0]);
    assert!(kilobytes(&path) < 1000, "{} KB", kilobytes(&path));
    clean(&go_back(&mut manager, &restored.safety));
    same(&changed, &look(&world.tree));
    assert_eq!(read(&path, 5 * TIB, 1), b"x");
    world.sh("rm huge");
    clean(&manager.restore_to(0).unwrap());
    same(&before, &look(&world.tree));
    assert!(kilobytes(&path) < 1000);
    assert!(manager.verify().unwrap().is_clean());
}

/// A hole and written zeros are the same bytes, so they have the same hash, below and above a gigabyte.
#[test]
fn holes_and_written_zeros_have_one_hash() {
    let world = World::new();
    let zeros = vec![0; 3 << 20];
    let data: (u64, &[u8]) = (700_000, b"data");
    for size in [5 << 20, GIB + 12_345] {
        let (hole, written) = (world.path(format!("hole-{size}")), world.path(format!("written-{size}")));
        sparse(&hole, size, &[data]);
        sparse(&written, size, &[(1 << 20, &zeros), data, (0, &zeros[..100])]);
        assert!(kilobytes(&written) > kilobytes(&hole) + 2000);
    }
    let baseline = world.manager().create_baseline().unwrap();
    let files = baseline.files().unwrap();
    for size in [5 << 20, GIB + 12_345] {
        let one = files[&world.path(format!("hole-{size}"))];
        assert_eq!(one.hash, files[&world.path(format!("written-{size}"))].hash);
        assert_eq!(one.hash_kind, HashKind::of(size));
    }
    // The boundary: a gigabyte is addressed by plain SHA-256, one byte more is not.
    assert_eq!(HashKind::of(GIB), HashKind::of(0));
    assert_ne!(HashKind::of(GIB), HashKind::of(GIB + 1));
}

#[test]
fn holes_come_back_as_holes() {
    let world = World::new();
    let chunk = vec![7; 64 << 10];
    let shapes: [(&str, u64, Vec<u64>); 6] = [
        ("only-hole", 20 << 20, vec![]),
        ("at-end", 20 << 20, vec![0]),
        ("at-start", (20 << 20) + 5, vec![20 << 20]),
        ("stripes", 16 << 20, (0..8).map(|n| n * (2 << 20) + (1 << 20)).collect()),
        ("small", 256 << 10, vec![128 << 10]),
        ("above", GIB + 77, vec![0, GIB - 70_000]),
    ];
    for (name, size, places) in &shapes {
        let data: Vec<(u64, &[u8])> =
            places.iter().map(|at| (*at, &chunk[..(size - at).min(64 << 10) as usize])).collect();
        sparse(&world.path(name), *size, &data);
    }
    let before = look(&world.tree);
    let blocks = |name: &str| kilobytes(&world.path(name));
    let was: Vec<u64> = shapes.iter().map(|(name, ..)| blocks(name)).collect();
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("rm -f *; for i in only-hole stripes; do head -c 3000000 /dev/urandom > $i; done");
    clean(&manager.restore_to(0).unwrap());
    same(&before, &look(&world.tree));
    for ((name, ..), was) in shapes.iter().zip(was) {
        std::fs::File::open(world.path(name)).unwrap().sync_all().unwrap();
        assert!(blocks(name) <= was + 64, "{name}: {} KB, was {was} KB", blocks(name));
    }
    // The digest of bytes above a gigabyte is not compared by sha256sum above.
    assert_eq!(read(&world.path("above"), GIB - 70_000, 10), [7; 10]);
    assert_eq!(read(&world.path("above"), GIB - 80_000, 10), [0; 10]);
}

/// A file that was not sparse stays so: its blocks are allocated.
#[test]
fn written_zeros_come_back_as_zeros() {
    let world = World::new();
    world.write("zeros", vec![0; 5 << 20]);
    world.sh("sync zeros");
    let before = look(&world.tree);
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("rm zeros");
    clean(&manager.restore_to(0).unwrap());
    same(&before, &look(&world.tree));
}

#[test]
fn a_file_above_a_gigabyte_with_data_round_trips() {
    let world = World::new();
    let path = world.path("large");
    let piece: Vec<u8> = (0..5_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    sparse(&path, GIB + 999, &[(123, &piece), (GIB - 2_000_000, &piece[..2_000_999])]);
    let mut manager = world.manager();
    let first = manager.create_baseline().unwrap();
    sparse(&path, GIB + 999, &[(123, &piece)]);
    let (second, _) = manager.create_incremental().unwrap();
    assert_ne!(first.merkle_root, second.merkle_root);
    clean(&manager.restore_to(0).unwrap());
    assert!(read(&path, 123, piece.len()) == piece);
    assert!(read(&path, GIB - 2_000_000, 2_000_999) == piece[..2_000_999]);
    let (third, changes) = manager.create_incremental().unwrap();
    assert_eq!((third.merkle_root, changes.len()), (first.merkle_root, 1));
}
