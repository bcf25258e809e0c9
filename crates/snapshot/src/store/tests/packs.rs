//! Packs: round trips, sharing, budgets, merging.

use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use super::super::index::{ObjectIndex, ObjectLocation, PackProperties, encode};
use super::super::pack_record::{Codec, HEAD, Head};
use super::*;

#[test]
fn every_kind_comes_back() {
    let world = World::new();
    let tree = ObjectKey::from(tree_id(b"a node"));
    let rules = ObjectKey::rules(content_hash(b"some rules"));
    let writer = world.store.writer(WriteOptions::default()).unwrap();
    let mut appender = writer.appender().unwrap();
    assert_eq!(appender.put(blob(b""), b"").unwrap(), Put::Stored);
    assert_eq!(appender.put(blob(b"some rules"), b"some rules").unwrap(), Put::Stored);
    assert_eq!(appender.put(rules, b"some rules").unwrap(), Put::Stored);
    assert_eq!(appender.put(tree, b"a node").unwrap(), Put::Stored);
    assert_eq!(appender.put(tree, b"a node").unwrap(), Put::AlreadyThere);
    appender.finish().unwrap();
    assert!(!world.again().contains(tree).unwrap(), "nothing is visible before it is published");
    let published = writer.publish().unwrap();
    assert_eq!((published.objects, published.packs), (4, 1));
    drop(published);
    for store in [&world.store, &world.again()] {
        assert_eq!(store.read(tree).unwrap(), b"a node");
        assert_eq!(store.read(rules).unwrap(), b"some rules");
        assert_eq!(store.read(blob(b"")).unwrap(), b"");
        assert!(matches!(store.read(blob(b"other")), Err(StoreError::Missing { .. })));
    }
    assert_clean(&world.store);
}

#[test]
fn what_is_there_is_not_stored_again() {
    let world = World::new();
    put_all(&world.store, &[b"one", b"two"]);
    let other = world.again();
    let writer = other.writer(WriteOptions::default()).unwrap();
    let (mut first, mut second) = (writer.appender().unwrap(), writer.appender().unwrap());
    assert_eq!(first.put(blob(b"one"), b"one").unwrap(), Put::AlreadyThere);
    assert_eq!(first.put(blob(b"three"), b"three").unwrap(), Put::Stored);
    assert_eq!(second.put(blob(b"three"), b"three").unwrap(), Put::AlreadyThere);
    first.finish().unwrap();
    second.finish().unwrap();
    drop(writer.publish().unwrap());
    assert_eq!(count(world.store.dir(), ".pack"), 2, "an appender without objects leaves no pack");
    // Published by another store: found without notification.
    assert_eq!(world.store.read(blob(b"three")).unwrap(), b"three");
    assert!(world.store.contains(blob(b"three")).unwrap());
}

#[test]
fn an_unpublished_writer_leaves_nothing() {
    let world = World::new();
    let before = files(world.store.dir());
    let writer = world.store.writer(WriteOptions::default()).unwrap();
    let mut appender = writer.appender().unwrap();
    // More than is buffered in memory.
    for at in 0..48_u8 {
        let bytes = vec![at; 64 << 10];
        appender.put(blob(&bytes), &bytes).unwrap();
    }
    assert!(world.store.usage().unwrap().temporary > 1 << 20);
    drop(appender);
    assert!(matches!(writer.publish(), Err(StoreError::Incomplete { .. })));
    let after: Vec<_> = files(world.store.dir()).into_iter().filter(|file| !file.ends_with("lock")).collect();
    assert_eq!(after, before);
    assert_eq!(std::fs::read_dir(world.store.dir().join("tmp")).unwrap().count(), 0);
}

#[test]
fn the_budget_holds_and_the_writer_goes_on() {
    for compress in [false, true] {
        let world = World::new();
        let writer = world
            .store
            .writer(WriteOptions { compress, budget: Some(4000), spare: 0, ..WriteOptions::default() })
            .unwrap();
        let mut appender = writer.appender().unwrap();
        let (big, small) = (noise(1, 10_000), noise(2, 2000));
        let refused = appender.put(blob(&big), &big).unwrap_err();
        assert!(matches!(refused, StoreError::OverBudget { left: 4000, .. }), "{refused}");
        assert_eq!(appender.put(blob(&small), &small).unwrap(), Put::Stored);
        let wordy = text(1, 10_000);
        assert_eq!(appender.put(blob(&wordy), &wordy).is_ok(), compress);
        let file = world.scratch("large");
        std::os::unix::fs::FileExt::write_all_at(&file, &big, 0).unwrap();
        let refused = appender.put_large(file.as_fd(), 10_000, false).unwrap_err();
        assert!(matches!(refused, StoreError::OverBudget { .. }), "{refused}");
        appender.finish().unwrap();
        assert!(writer.spent() <= 4000);
        let published = writer.publish().unwrap();
        assert!(published.bytes <= 4000 + 200, "{published:?}");
        drop(published);
        assert_eq!(world.store.read(blob(&small)).unwrap(), small);
        assert!(!world.store.contains(blob(&big)).unwrap());
        assert_clean(&world.store);
    }
}

#[test]
fn settling_waits_until_a_restore_has_ended() {
    let world = World::new();
    let text = text(1, 3000);
    put_all(&world.store, &[&text]);
    let paused = world.store.pause_upkeep().unwrap();
    let settled = settle(&world.again());
    assert!(
        settled.cancelled && settled.durable,
        "it makes durable what is there, and writes nothing: {settled:?}"
    );
    assert_eq!(settled.packs, 0);
    drop(paused);
    assert_eq!(settle(&world.again()).packs, 1);
    assert_eq!(world.store.read(blob(&text)).unwrap(), text);
}

#[test]
fn settling_makes_it_small_durable_and_one() {
    let world = World::new();
    let contents: Vec<Vec<u8>> = (0..40).map(|seed| text(seed, 3000)).chain([noise(7, 3000)]).collect();
    for part in contents.chunks(10) {
        put_all(&world.store, &part.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
    let before = world.store.usage().unwrap();
    let settled = settle(&world.store);
    assert!(settled.durable && !settled.cancelled && settled.problems.is_empty(), "{settled:?}");
    assert_eq!(settled.packs, 5);
    assert!(settled.fsyncs >= 4);
    let after = world.store.usage().unwrap();
    assert!(after.packs < before.packs / 3, "{before:?} {after:?}");
    assert_eq!(count(world.store.dir(), ".pack"), 1);
    let other = world.again();
    for bytes in &contents {
        assert_eq!(world.store.read(blob(bytes)).unwrap(), *bytes);
        assert_eq!(other.read(blob(bytes)).unwrap(), *bytes);
    }
    assert_clean(&world.store);
    let again = settle(&other);
    assert_eq!((again.packs, again.fsyncs, again.durable), (0, 0, true), "nothing is left to do");
}

#[test]
fn small_settled_packs_are_merged() {
    let world = World::new();
    for seed in 0..9 {
        put_all(&world.store, &[&text(seed, 500)]);
        settle(&world.store);
    }
    assert!(count(world.store.dir(), ".pack") < 9);
    for seed in 0..9 {
        assert_eq!(world.store.read(blob(&text(seed, 500))).unwrap(), text(seed, 500));
    }
    assert_clean(&world.store);
}

#[test]
fn stopped_settling_changes_nothing() {
    let world = World::new();
    put_all(&world.store, &[&text(1, 5000), &text(2, 5000)]);
    let settled = world.store.settle(&|| true, &|_, _| {}).unwrap();
    assert!(settled.cancelled && settled.durable);
    assert_eq!(count(world.store.dir(), ".pack"), 1);
    assert_eq!(std::fs::read_dir(world.store.dir().join("tmp")).unwrap().count(), 0);
    assert_clean(&world.store);
}

#[test]
fn syncing_is_done_once() {
    let world = World::new();
    put_all(&world.store, &[b"one"]);
    let synced = world.store.sync().unwrap();
    assert_eq!(synced, Synced { files: 2, fsyncs: 5, durable: true }, "pack, index, folder, format, root");
    assert_eq!(world.store.sync().unwrap(), Synced { durable: true, ..Synced::default() });
    assert_eq!(
        world.again().sync().unwrap(),
        Synced { durable: true, ..Synced::default() },
        "another process knows"
    );
}

#[test]
fn collecting_keeps_the_live_and_removes_the_dead() {
    let world = World::new();
    let contents: Vec<Vec<u8>> = (0..30).map(|seed| text(seed, 4000)).collect();
    put_all(&world.store, &contents[..10].iter().map(Vec::as_slice).collect::<Vec<_>>());
    put_all(&world.store, &contents[10..20].iter().map(Vec::as_slice).collect::<Vec<_>>());
    put_all(&world.store, &contents[20..].iter().map(Vec::as_slice).collect::<Vec<_>>());
    let live: Vec<ObjectKey> =
        contents[..10].iter().chain(&contents[28..]).map(|bytes| blob(bytes)).collect();
    let collected = world.store.gc(&|key| live.contains(&key)).unwrap();
    assert_eq!((collected.packs_dropped, collected.packs_rewritten), (1, 1));
    assert!(collected.bytes_after < collected.bytes_before);
    let other = world.again();
    for bytes in &contents {
        assert_eq!(other.contains(blob(bytes)).unwrap(), live.contains(&blob(bytes)));
        assert_eq!(world.store.read(blob(bytes)).is_ok(), live.contains(&blob(bytes)));
    }
    assert_clean(&world.store);
}

#[test]
fn collecting_removes_what_dead_writers_left() {
    let world = World::new();
    put_all(&world.store, &[b"live"]);
    let plant = || {
        let debris = world.store.dir().join("tmp/w-0123");
        std::fs::create_dir(&debris).unwrap();
        std::fs::write(debris.join("x.pack"), b"half a pack").unwrap();
        std::fs::write(world.store.dir().join(format!("packs/{}.pack", "0".repeat(32))), b"orphan").unwrap();
    };
    plant();
    let found = verify(&world.store);
    assert_eq!((found.problems.len(), found.debris), (0, 2));
    assert!(world.store.gc(&|_| true).unwrap().debris > 0);
    assert_eq!(verify(&world.store).debris, 0);
    plant();
    let alive = world.store.writer(WriteOptions::default()).unwrap();
    assert_eq!(verify(&world.store).debris, 0, "a writer cleans up when it begins");
    plant();
    assert_eq!(verify(&world.store).debris, 0, "while a writer lives, no file counts as debris");
    drop(world.again().writer(WriteOptions::default()).unwrap());
    assert!(world.store.dir().join("tmp/w-0123").exists());
    drop(alive);
    assert_eq!(world.store.read(blob(b"live")).unwrap(), b"live");
}

#[test]
fn without_waiting_a_collection_is_busy() {
    let world = World::new();
    let other = world.again();
    let writer = world.store.writer(WriteOptions::default()).unwrap();
    let busy = other.gc_with(false, |_| Ok::<_, StoreError>(|_| false)).unwrap_err();
    assert!(matches!(busy, StoreError::Busy { .. }));
    let published = writer.publish().unwrap();
    let busy = other.gc_with(false, |_| Ok::<_, StoreError>(|_| false)).unwrap_err();
    assert!(matches!(busy, StoreError::Busy { .. }), "until what refers to it is written down");
    drop(published);
    other.gc_with(false, |_| Ok::<_, StoreError>(|_| false)).unwrap();
}

/// Each writer begins before the previous one ends, so that the lock is always held.
#[test]
fn a_collection_gets_its_turn_in_a_stream_of_writers() {
    let world = World::new();
    let (over, stores) = (AtomicBool::new(false), [world.again(), world.again(), world.again()]);
    let (collected, done) = std::sync::mpsc::channel();
    let collector = world.again();
    std::thread::scope(|scope| {
        for store in &stores {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    let writer = store.writer(WriteOptions::default()).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    drop(writer.publish().unwrap());
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..3 {
                collector.gc(&|_| true).unwrap();
            }
            collected.send(()).unwrap();
        });
        let done = done.recv_timeout(std::time::Duration::from_secs(60));
        over.store(true, Ordering::SeqCst);
        assert!(done.is_ok(), "it never gets the lock");
    });
}

#[test]
fn another_version_is_refused() {
    let world = World::new();
    std::fs::write(world.store.dir().join("FORMAT"), format_text("nono store 3")).unwrap();
    assert!(matches!(Store::open(world.store.dir()), Err(StoreError::Version { .. })));
}

/// After the first write, a program that does not know of chunks must not collect here.
#[test]
fn a_store_of_version_1_is_read_and_becomes_one_of_version_2_by_writing() {
    let world = World::new();
    put_all(&world.store, &[b"one"]);
    let copy = put_copy(&world.store, &text(4, 60_000));
    let format = world.store.dir().join("FORMAT");
    std::fs::remove_file(&format).unwrap();
    std::fs::write(&format, format_text(WITHOUT_CHUNKS)).unwrap();
    let store = world.again();
    assert_eq!(store.read(copy.into()).unwrap(), text(4, 60_000));
    assert_clean(&store);
    assert_eq!(std::fs::read_to_string(&format).unwrap(), format_text(WITHOUT_CHUNKS));
    put_all(&store, &[b"two"]);
    assert_eq!(std::fs::read_to_string(&format).unwrap(), format_text(VERSION));
    assert_eq!(settle(&store).large, 1, "a copy is still compressed");
    assert_eq!(store.read(copy.into()).unwrap(), text(4, 60_000));
    assert_clean(&store);
}

#[test]
fn the_folder_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    put_all(&world.store, &[b"one"]);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode();
    assert_eq!(mode(world.store.dir()) & 0o777, 0o700);
    for file in files(world.store.dir()) {
        assert_eq!(mode(&file) & 0o077, 0, "{}", file.display());
    }
}

fn any_key() -> impl Strategy<Value = ObjectKey> {
    let kind = prop_oneof![
        Just(ObjectKind::Blob),
        Just(ObjectKind::Tree),
        Just(ObjectKind::Rules),
        Just(ObjectKind::Chunk)
    ];
    (kind, any::<[u8; 32]>()).prop_map(|(kind, hash)| ObjectKey { kind, hash })
}

proptest! {
    #[test]
    fn heads_go_there_and_back(key in any_key(), raw: u32, stored: u32, sum: u64, zstd: bool, bit in 0..HEAD * 8) {
        let codec = if zstd { Codec::Zstd } else { Codec::Raw };
        let head = Head { key, codec, raw, stored: if zstd { stored } else { raw }, sum };
        let mut bytes = head.encode();
        prop_assert_eq!(Head::decode(&bytes), Some(head));
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(Head::decode(&bytes), None);
    }

    #[test]
    fn indexes_find_what_they_hold(keys in proptest::collection::btree_set(any_key(), 0..200), other in any_key()) {
        let entry = |(place, key): (usize, &ObjectKey)| ObjectLocation {
            key: *key, codec: Codec::Zstd, raw: 7, stored: 5, offset: place as u64 * 100,
        };
        let mut entries: Vec<ObjectLocation> = keys.iter().enumerate().map(entry).collect();
        let about = PackProperties { pack_len: 12345, boot: [7; 16], settled: true };
        let bytes = encode(&mut entries.clone(), &about);
        let index = ObjectIndex::decode(bytes.clone()).unwrap();
        prop_assert_eq!(&index.about, &about);
        for entry in &entries {
            prop_assert_eq!(index.find(&entry.key), Some(*entry));
        }
        prop_assert_eq!(index.find(&other).is_some(), keys.contains(&other));
        entries.sort_by_key(|entry| (entry.key.hash, entry.key.kind.byte()));
        prop_assert_eq!(index.entries().collect::<Vec<_>>(), entries);
        prop_assert!(ObjectIndex::decode(bytes[..bytes.len() - 1].to_vec()).is_none());
    }

    #[test]
    fn hostile_bytes_are_no_index(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(ObjectIndex::decode(bytes).is_none());
    }

    #[test]
    fn contents_come_back_raw_compressed_and_settled(
        contents in proptest::collection::vec(proptest::collection::vec(0u8..4, 0..3000), 1..12),
        compress: bool,
    ) {
        let world = World::new();
        let writer = world.store.writer(WriteOptions { compress, budget: None, spare: 0, ..WriteOptions::default() }).unwrap();
        let mut appender = writer.appender().unwrap();
        for bytes in &contents {
            appender.put(blob(bytes), bytes).unwrap();
        }
        appender.finish().unwrap();
        drop(writer.publish().unwrap());
        for settled in [false, true] {
            if settled {
                settle(&world.store);
            }
            for bytes in &contents {
                prop_assert_eq!(&world.store.read(blob(bytes)).unwrap(), bytes);
                let out = world.scratch("out");
                world.store.write_to(content_hash(bytes), bytes.len() as u64, settled, out.as_fd()).unwrap();
                prop_assert_eq!(&std::fs::read(world.dir.path().join("out")).unwrap(), bytes);
            }
            assert_clean(&world.store);
        }
    }
}
