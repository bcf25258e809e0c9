//! Large objects: round trips, holes, changes while they are stored.

use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use super::*;

fn restored(world: &World, hash: ContentHash, size: u64, sparse: bool) -> File {
    let out = world.scratch("out");
    world.store.write_to(hash, size, sparse, out.as_fd()).unwrap();
    assert_eq!(out.metadata().unwrap().len(), size);
    out
}

fn content(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(file.metadata().unwrap().len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn large_files_come_back_plain_and_settled() {
    for compress in [false, true] {
        for bytes in [text(3, 5 << 20), noise(5, 3 << 20), Vec::new(), vec![0; 70_000]] {
            let world = World::new();
            let file = world.scratch("in");
            file.write_all_at(&bytes, 0).unwrap();
            let hash = put_large(
                &world.store,
                &file,
                false,
                WriteOptions { compress, budget: None, spare: 0, ..WriteOptions::default() },
            );
            assert_eq!(hash, content_hash(&bytes));
            assert!(world.again().contains(hash.into()).unwrap());
            for _ in 0..2 {
                assert_eq!(content(&restored(&world, hash, bytes.len() as u64, false)), bytes);
                assert_eq!(content(&restored(&world, hash, bytes.len() as u64, true)), bytes);
                assert_eq!(world.store.read(hash.into()).unwrap(), bytes);
                assert_clean(&world.store);
                assert!(settle(&world.store).durable);
            }
            assert_eq!(settle(&world.store).fsyncs, 0, "nothing is left to do");
        }
    }
}

#[test]
fn settled_text_is_small_and_noise_stays() {
    let world = World::new();
    if shares_data(&world) {
        println!("skipped: this filesystem shares data, nothing is settled");
        return;
    }
    for bytes in [text(3, 5 << 20), noise(5, 3 << 20)] {
        let file = world.scratch("in");
        file.write_all_at(&bytes, 0).unwrap();
        put_large(&world.store, &file, false, WriteOptions::default());
    }
    settle(&world.store);
    let usage = world.store.usage().unwrap();
    assert!(usage.packs < 4 << 20 && usage.large < 64 << 10, "{usage:?}");
    assert_clean(&world.store);
}

#[test]
fn a_hole_of_terabytes_costs_nothing() {
    let world = World::new();
    let file = world.scratch("in");
    let size = 8 << 40;
    if let Err(error) = file.set_len(size) {
        println!("skipped: this filesystem has no files of 8 TB: {error}");
        return;
    }
    file.write_all_at(b"somewhere", 5 << 40).unwrap();
    let mut hasher = ContentHasher::new(size);
    hasher.zeros(5 << 40);
    hasher.data(b"somewhere");
    hasher.zeros(size - (5 << 40) - 9);
    let expected = hasher.finish().unwrap();
    for compress in [false, true] {
        let world = World::new();
        let options = WriteOptions { compress, budget: Some(1 << 20), spare: 0, ..WriteOptions::default() };
        assert_eq!(put_large(&world.store, &file, true, options), expected);
        for _ in 0..2 {
            let out = restored(&world, expected, size, true);
            assert!(out.metadata().unwrap().blocks() * 512 <= 64 << 10);
            let mut bytes = [0; 11];
            out.read_exact_at(&mut bytes, (5 << 40) - 1).unwrap();
            assert_eq!(&bytes, b"\0somewhere\0");
            assert!(world.store.usage().unwrap().large <= 64 << 10);
            assert_clean(&world.store);
            settle(&world.store);
        }
    }
}

#[test]
fn blocks_of_zeros_become_holes_where_there_were_some() {
    let world = World::new();
    let mut bytes = text(1, 9000);
    bytes.resize(1 << 20, 0);
    bytes.extend_from_slice(b"end");
    put_all(&world.store, &[&bytes]);
    let dense = restored(&world, content_hash(&bytes), bytes.len() as u64, false);
    assert!(dense.metadata().unwrap().blocks() * 512 >= 1 << 20);
    assert_eq!(content(&dense), bytes);
    let sparse = restored(&world, content_hash(&bytes), bytes.len() as u64, true);
    assert!(sparse.metadata().unwrap().blocks() * 512 < 1 << 19);
    assert_eq!(content(&sparse), bytes);
}

#[test]
fn a_file_that_became_shorter_is_not_stored() {
    let world = World::new();
    let file = world.scratch("in");
    file.write_all_at(&text(1, 5000), 0).unwrap();
    let writer = world.store.writer(WriteOptions::default()).unwrap();
    let mut appender = writer.appender().unwrap();
    let changed = appender.put_large(file.as_fd(), 6000, false).unwrap_err();
    assert!(matches!(changed, StoreError::SourceChanged));
    assert_eq!(writer.spent(), 0);
    drop(appender.put_large(file.as_fd(), 5000, false).unwrap());
    assert_eq!(writer.spent(), 0, "what was not committed costs nothing");
    appender.finish().unwrap();
    drop(writer.publish().unwrap());
    assert!(!world.store.contains(blob(&text(1, 5000))).unwrap());
    assert_eq!(count(&world.store.dir().join("large"), ""), 0);
}

#[test]
fn the_same_large_file_is_stored_once() {
    let world = World::new();
    let file = world.scratch("in");
    file.write_all_at(&text(1, 50_000), 0).unwrap();
    let writer = world.store.writer(WriteOptions::default()).unwrap();
    let mut appender = writer.appender().unwrap();
    assert_eq!(appender.put_large(file.as_fd(), 50_000, false).unwrap().commit().unwrap(), Put::Stored);
    let spent = writer.spent();
    assert_eq!(appender.put_large(file.as_fd(), 50_000, false).unwrap().commit().unwrap(), Put::AlreadyThere);
    assert_eq!(writer.spent(), spent);
    appender.finish().unwrap();
    let published = writer.publish().unwrap();
    assert_eq!(published.large, 1);
    drop(published);
    settle(&world.store);
    put_large(&world.store, &file, false, WriteOptions::default());
    assert_eq!(count(&world.store.dir().join("large"), ""), 1);
    assert_eq!(world.store.gc(&|_| false).unwrap().large_dropped, 1);
    assert!(!world.store.contains(blob(&text(1, 50_000))).unwrap());
}

/// A file that is not kept leaves the pack as it was, whatever came before and after.
#[test]
fn a_file_that_is_not_kept_leaves_nothing_behind() {
    let world = World::new();
    let file = world.scratch("in");
    let writer = world.store.writer(WriteOptions::default()).unwrap();
    let mut appender = writer.appender().unwrap();
    let mut kept = Vec::new();
    for round in 0..6 {
        let bytes = noise(round + 20, 700_000 + 13 * usize::try_from(round).unwrap());
        file.set_len(0).unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        let before = writer.spent();
        let staged = appender.put_large(file.as_fd(), bytes.len() as u64, false).unwrap();
        if round % 2 == 0 {
            drop(staged);
            assert_eq!(writer.spent(), before);
        } else {
            assert_eq!(staged.commit().unwrap(), Put::Stored);
            kept.push(bytes);
        }
    }
    appender.finish().unwrap();
    drop(writer.publish().unwrap());
    for bytes in &kept {
        assert_eq!(world.again().read(blob(bytes)).unwrap(), *bytes);
    }
    assert!(!world.store.contains(blob(&noise(20, 700_000))).unwrap());
    let usage = world.store.usage().unwrap().total();
    assert!(usage < 3 << 20, "{usage}");
    assert_clean(&world.store);
}

/// Whether the filesystem shares data: then a large file costs nothing, and the cost of a copy cannot be measured.
fn shares_data(world: &World) -> bool {
    let (one, other) = (world.scratch("one"), world.scratch("other"));
    one.write_all_at(b"x", 0).unwrap();
    crate::store::large::clone(other.as_fd(), one.as_fd()).unwrap()
}

#[test]
fn a_few_changed_bytes_cost_a_few_chunks() {
    let world = World::new();
    if shares_data(&world) {
        println!("skipped: this filesystem shares data, nothing is copied");
        return;
    }
    let file = world.scratch("in");
    let mut bytes = noise(7, 48 << 20);
    file.write_all_at(&bytes, 0).unwrap();
    let first = put_large(&world.store, &file, false, WriteOptions::default());
    let before = world.store.usage().unwrap().total();
    // In the middle, and bytes inserted at the start: everything behind them moves.
    bytes[30_000_000..30_000_004].copy_from_slice(b"nono");
    bytes.splice(100..100, *b"in between");
    file.write_all_at(&bytes, 0).unwrap();
    let second = put_large(&world.store, &file, false, WriteOptions::default());
    let after = world.store.usage().unwrap().total();
    assert!(after - before < 9 << 20, "{} bytes for 14", after - before);
    assert_ne!(first, second);
    assert_eq!(content(&restored(&world, second, bytes.len() as u64, false)), bytes);
    assert_clean(&world.store);
    // Chunks that only the first needs are removed; the second is intact without them.
    let freed = world.store.gc(&|key| key == second.into()).unwrap();
    assert_eq!(freed.problems, []);
    assert!(!world.store.contains(first.into()).unwrap());
    assert_eq!(world.again().read(second.into()).unwrap(), bytes);
    assert!(
        world.store.gc_compact_with(|_| Ok::<_, StoreError>(|key| key == ObjectKey::from(second))).is_ok()
    );
    assert_eq!(world.again().read(second.into()).unwrap(), bytes);
    world.store.gc(&|_| false).unwrap();
    let left = world.store.usage().unwrap();
    assert_eq!(left.packs, 0, "{left:?}");
}

fn refused(store: &Store, file: &File, budget: u64) -> u64 {
    let writer = store
        .writer(WriteOptions { compress: true, budget: Some(budget), ..WriteOptions::default() })
        .unwrap();
    let mut appender = writer.appender().unwrap();
    let size = file.metadata().unwrap().len();
    let error = appender.put_large(file.as_fd(), size, false).unwrap_err();
    appender.finish().unwrap();
    drop(writer.publish().unwrap());
    match error {
        StoreError::OverBudget { needed, .. } => needed,
        other => panic!("{other}"),
    }
}

/// Regression: at the limit every snapshot read the same file again, only to find that it does not fit.
#[test]
fn a_file_that_cannot_fit_is_not_read_to_find_that_out() {
    let world = World::new();
    if shares_data(&world) {
        println!("skipped: this filesystem shares data, everything fits");
        return;
    }
    let file = world.scratch("in");
    file.write_all_at(&noise(3, 6 << 20), 0).unwrap();
    file.sync_all().unwrap();
    // Refused by its size alone, without reading a chunk.
    assert_eq!(refused(&world.store, &file, 1000), (6 << 20) / 32);
    // It is read once, up to where the room ends; then the refusal is remembered for the unchanged file.
    let first = refused(&world.store, &file, 3 << 20);
    assert!(first <= 2 << 20 | 4096, "the cost of one chunk: {first}");
    let second = refused(&world.again(), &file, 3 << 20);
    assert!(second > 3 << 20, "what is known of it: {second}");
    // With more room it is tried again.
    put_large(
        &world.store,
        &file,
        false,
        WriteOptions { compress: true, budget: Some(9 << 20), ..WriteOptions::default() },
    );
    file.write_all_at(b"another", 0).unwrap();
    put_large(
        &world.store,
        &file,
        false,
        WriteOptions { compress: true, budget: Some(3 << 20), ..WriteOptions::default() },
    );
    assert_clean(&world.store);
}
