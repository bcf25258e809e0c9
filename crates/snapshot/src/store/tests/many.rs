//! Concurrency: writers, readers, settling and collecting, each with its own open store, as processes have.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

fn busy_is_fine<T>(result: Result<T, StoreError>) {
    match result {
        Ok(_) | Err(StoreError::Busy { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn nothing_live_is_lost_with_others_at_work() {
    let world = World::new();
    let over = AtomicBool::new(false);
    // Half of the objects are dead at once, so that collections have to rewrite packs.
    let trash = |round: usize| noise(round as u64 + 1, 14_000);
    let dead: HashSet<ObjectKey> = (0..30).map(|round| blob(&trash(round))).collect();
    std::thread::scope(|scope| {
        let maintenance = [
            scope.spawn(|| {
                let store = world.again();
                while !over.load(Ordering::SeqCst) {
                    busy_is_fine(store.settle(&|| false, &|_, _| {}));
                }
            }),
            scope.spawn(|| {
                let store = world.again();
                while !over.load(Ordering::SeqCst) {
                    busy_is_fine(store.gc(&|key| !dead.contains(&key)));
                }
            }),
        ];
        let writers = [0, 1].map(|part| {
            let world = &world;
            scope.spawn(move || {
                let store = world.again();
                for round in 0..30 {
                    let mine: Vec<Vec<u8>> =
                        (0..20).map(|n| text(round * 100 + n + part * 10, 300 + n * 40)).collect();
                    let trash = trash(round);
                    put_all(&store, &mine.iter().chain([&trash]).map(Vec::as_slice).collect::<Vec<_>>());
                    let file = world.scratch(&format!("in{part}"));
                    std::os::unix::fs::FileExt::write_all_at(&file, &text(round, 10_000), 0).unwrap();
                    let large = put_large(&store, &file, false, WriteOptions::default());
                    for bytes in &mine {
                        assert_eq!(store.read(blob(bytes)).unwrap(), *bytes);
                    }
                    assert_eq!(store.read(large.into()).unwrap(), text(round, 10_000));
                }
            })
        });
        let ended = writers.map(std::thread::ScopedJoinHandle::join);
        over.store(true, Ordering::SeqCst);
        for thread in maintenance {
            thread.join().unwrap();
        }
        for end in ended {
            end.unwrap();
        }
    });
    for seed in (0..30).map(|round| round * 100) {
        for (n, part) in (0..20).flat_map(|n| [(n, 0), (n, 1)]) {
            let bytes = text(seed + n + part * 10, 300 + n * 40);
            assert_eq!(world.store.read(blob(&bytes)).unwrap(), bytes);
        }
    }
    let found = verify(&world.store);
    assert_eq!((found.problems.len(), found.debris), (0, 0), "{found:?}");
}

#[test]
fn appenders_of_one_writer_share_what_they_took_on() {
    let world = World::new();
    let contents: Vec<Vec<u8>> = (0..500).map(|seed| text(seed, 200 + seed)).collect();
    let writer = world.store.writer(WriteOptions::default()).unwrap();
    let stored: usize = std::thread::scope(|scope| {
        let work = || {
            let mut appender = writer.appender().unwrap();
            let stored =
                contents.iter().filter(|bytes| appender.put(blob(bytes), bytes).unwrap() == Put::Stored);
            let stored = stored.count();
            appender.finish().unwrap();
            stored
        };
        let threads = [scope.spawn(work), scope.spawn(work), scope.spawn(work)];
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(stored, contents.len());
    let published = writer.publish().unwrap();
    assert_eq!(published.objects, contents.len() as u64);
    drop(published);
    for bytes in &contents {
        assert_eq!(world.store.read(blob(bytes)).unwrap(), *bytes);
    }
}

#[test]
fn a_reader_that_knows_old_packs_finds_the_new_ones() {
    let world = World::new();
    put_all(&world.store, &[&text(1, 900)]);
    let reader = world.again();
    assert!(reader.contains(blob(&text(1, 900))).unwrap());
    settle(&world.store);
    assert_eq!(reader.read(blob(&text(1, 900))).unwrap(), text(1, 900));
    world.store.gc(&|_| false).unwrap();
    assert!(!reader.contains(blob(&text(1, 900))).unwrap(), "what it knew is not what it says");
    assert!(matches!(reader.read(blob(&text(1, 900))), Err(StoreError::Missing { .. })));
}
