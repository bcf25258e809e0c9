//! Damage: every changed bit is found, forged objects are refused, planted links are not followed.

use std::os::unix::fs::{FileExt as _, PermissionsExt as _};

use super::*;

/// A store with a raw pack, a settled pack, and large objects in every form.
fn varied() -> World {
    let world = World::new();
    let file = world.scratch("in");
    file.write_all_at(&text(9, 500), 8192).unwrap();
    put_large(
        &world.store,
        &file,
        true,
        WriteOptions { compress: true, budget: None, spare: 0, ..WriteOptions::default() },
    );
    put_all(&world.store, &[&text(1, 300), b"short", b""]);
    put_copy(&world.store, &text(10, 700));
    settle(&world.store);
    put_copy(&world.store, b"a copy of version 1");
    let small = world.scratch("small");
    small.write_all_at(b"a plain large object", 0).unwrap();
    put_large(&world.store, &small, false, WriteOptions::default());
    put_all(&world.store, &[b"a raw one", b"and another"]);
    world
}

/// Files whose bytes matter.
fn meaningful(world: &World) -> Vec<PathBuf> {
    let mut files = files(world.store.dir());
    let locks = ["lock", "maintenance", "wanted", "gate"];
    files.retain(|file| !locks.iter().any(|lock| file.ends_with(lock)));
    for file in &files {
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    files
}

#[track_caller]
fn assert_named(world: &World, file: &Path, what: &str) {
    let found = verify(&world.store);
    let id = file.file_stem();
    // If an index and its pack disagree, either may be at fault.
    let named = found.problems.iter().any(|problem| problem.file == file || problem.file.file_stem() == id);
    assert!(named, "{what} of {}: {:?}", file.display(), found.problems);
}

#[test]
fn every_flipped_bit_is_found_and_named() {
    let world = varied();
    assert_clean(&world.store);
    let files = meaningful(&world);
    // If the filesystem shares data, the second pack of chunks is a clone.
    assert!((9..=11).contains(&files.len()), "FORMAT, packs with indexes, four large objects: {files:?}");
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        let open = File::options().write(true).open(&file).unwrap();
        for place in 0..bytes.len() {
            for bit in 0..8 {
                open.write_all_at(&[bytes[place] ^ 1 << bit], place as u64).unwrap();
                let found = verify(&world.store);
                let named = found.problems.iter().any(|problem| problem.file == file);
                assert!(named, "bit {bit} of byte {place} of {}: {:?}", file.display(), found.problems);
                open.write_all_at(&bytes[place..=place], place as u64).unwrap();
            }
        }
    }
    assert_clean(&world.store);
}

#[test]
fn every_cut_and_every_tail_is_found() {
    let world = varied();
    for file in meaningful(&world) {
        let bytes = std::fs::read(&file).unwrap();
        for len in (0..bytes.len()).step_by(1 + bytes.len() / 50) {
            std::fs::write(&file, &bytes[..len]).unwrap();
            assert_named(&world, &file, "a cut");
        }
        for tail in [&[0][..], &[1; 100], &bytes] {
            if tail.is_empty() {
                continue;
            }
            std::fs::write(&file, [&bytes[..], tail].concat()).unwrap();
            assert_named(&world, &file, "a tail");
        }
        std::fs::write(&file, &bytes).unwrap();
    }
    assert_clean(&world.store);
}

#[test]
fn damaged_objects_are_named_by_their_address() {
    let world = World::new();
    let contents = [text(1, 500), text(2, 500), text(3, 500)];
    put_all(&world.store, &contents.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let pack =
        files(world.store.dir()).into_iter().find(|file| file.extension().is_some_and(|end| end == "pack"));
    let pack = pack.unwrap();
    let good = std::fs::read(&pack).unwrap();
    for (place, bytes) in contents.iter().enumerate() {
        // The head, then the payload.
        for at in [20, 200] {
            let mut bad = good.clone();
            bad[16 + place * 564 + at] ^= 1;
            std::fs::write(&pack, &bad).unwrap();
            let found = verify(&world.store);
            assert_eq!(found.problems.len(), 1, "{:?}", found.problems);
            assert_eq!(found.problems[0].object, Some(blob(bytes)));
            assert!(matches!(world.store.read(blob(bytes)), Err(StoreError::Damaged { .. })));
            let others = contents.iter().filter(|other| *other != bytes);
            others.for_each(|other| assert_eq!(world.store.read(blob(other)).unwrap(), *other));
        }
    }
}

#[test]
fn a_damaged_index_hides_nothing_and_settling_heals_it() {
    let world = World::new();
    put_all(&world.store, &[b"one", b"two"]);
    let index =
        files(world.store.dir()).into_iter().find(|file| file.extension().is_some_and(|end| end == "idx"));
    std::fs::write(index.unwrap(), b"nothing of use").unwrap();
    let other = world.again();
    assert_eq!(other.read(blob(b"two")).unwrap(), b"two");
    assert_eq!(verify(&other).problems.len(), 1);
    assert!(settle(&other).durable);
    assert_clean(&other);
    assert_eq!(other.read(blob(b"one")).unwrap(), b"one");
}

#[test]
fn settling_and_collecting_keep_damaged_packs() {
    let world = World::new();
    put_all(&world.store, &[&text(1, 500), &text(2, 500)]);
    let pack =
        files(world.store.dir()).into_iter().find(|file| file.extension().is_some_and(|end| end == "pack"));
    let mut bytes = std::fs::read(pack.as_ref().unwrap()).unwrap();
    bytes[16 + 100] ^= 1;
    std::fs::write(pack.as_ref().unwrap(), &bytes).unwrap();
    let settled = settle(&world.store);
    assert_eq!((settled.problems.len(), settled.packs), (1, 0));
    world.store.gc(&|_| true).unwrap();
    settle(&world.store);
    assert!(pack.unwrap().exists());
    assert_eq!(world.store.read(blob(&text(2, 500))).unwrap(), text(2, 500));
    assert_eq!(count(world.store.dir(), ".pack"), 2, "and do not copy the rest again and again");
}

#[test]
fn another_copy_serves_when_one_is_damaged() {
    let world = World::new();
    put_all(&world.store, &[&text(1, 500)]);
    let (pack, index) = (files(world.store.dir()), "f".repeat(32));
    for file in pack.iter().filter(|file| file.parent().unwrap().ends_with("packs")) {
        let end = file.extension().unwrap().to_str().unwrap();
        std::fs::copy(file, world.store.dir().join(format!("packs/{index}.{end}"))).unwrap();
    }
    for (bad, good) in [(0, 1), (1, 0)] {
        let packs: Vec<_> = files(world.store.dir())
            .into_iter()
            .filter(|file| file.extension().is_some_and(|end| end == "pack"))
            .collect();
        let kept = std::fs::read(&packs[good]).unwrap();
        let mut bytes = kept.clone();
        bytes[200] ^= 4;
        std::fs::write(&packs[bad], &bytes).unwrap();
        assert_eq!(world.again().read(blob(&text(1, 500))).unwrap(), text(1, 500));
        std::fs::write(&packs[bad], &kept).unwrap();
    }
    settle(&world.store);
    assert_eq!(count(world.store.dir(), ".pack"), 1);
    assert_eq!(world.store.read(blob(&text(1, 500))).unwrap(), text(1, 500));
}

#[test]
fn forged_objects_are_refused() {
    let world = World::new();
    let honest = content_hash(b"what was asked for");
    let writer = world.store.writer(WriteOptions::default()).unwrap();
    let mut appender = writer.appender().unwrap();
    appender.put(honest.into(), b"something else....").unwrap();
    appender.finish().unwrap();
    drop(writer.publish().unwrap());
    assert!(matches!(world.store.read(honest.into()), Err(StoreError::Damaged { .. })));
    let out = world.scratch("out");
    assert!(matches!(world.store.write_to(honest, 18, false, out.as_fd()), Err(StoreError::Damaged { .. })));
    let large = content_hash(&text(1, 5000));
    let folder = world.store.dir().join("large").join(&large.hex()[..2]);
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join(large.hex()), text(2, 5000)).unwrap();
    assert!(matches!(world.store.write_to(large, 5000, false, out.as_fd()), Err(StoreError::Damaged { .. })));
    assert!(matches!(world.store.write_to(large, 4999, false, out.as_fd()), Err(StoreError::Damaged { .. })));
    assert_eq!(verify(&world.store).problems.len(), 2);
}

#[test]
fn planted_links_are_not_followed() {
    let world = World::new();
    put_all(&world.store, &[b"one"]);
    let outside = world.dir.path().join("outside");
    for file in files(world.store.dir()).iter().filter(|file| file.parent().unwrap().ends_with("packs")) {
        let moved = outside.with_extension(file.extension().unwrap());
        std::fs::rename(file, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, file).unwrap();
    }
    let large = content_hash(b"by a link");
    std::fs::write(&outside, b"by a link").unwrap();
    let folder = world.store.dir().join("large").join(&large.hex()[..2]);
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(&outside, folder.join(large.hex())).unwrap();
    let other = world.again();
    assert!(other.read(blob(b"one")).is_err());
    assert!(other.read(large.into()).is_err());
    assert!(verify(&other).problems.len() >= 2);
    other.gc(&|_| false).unwrap();
    assert_eq!(std::fs::read(&outside).unwrap(), b"by a link");
    let link = world.dir.path().join("link");
    std::os::unix::fs::symlink(world.store.dir(), &link).unwrap();
    assert!(Store::open(&link).is_err());
}

#[test]
fn a_damaged_format_file_locks_no_one_out() {
    let world = World::new();
    put_all(&world.store, &[b"one"]);
    std::fs::write(world.store.dir().join("FORMAT"), b"nono stoqe 1").unwrap();
    let other = world.again();
    assert_eq!(other.read(blob(b"one")).unwrap(), b"one");
    assert_eq!(verify(&other).problems[0].what, Damage::Format);
}

/// The damaged file is reported as lost; others do not need that chunk.
#[test]
fn a_file_with_a_damaged_or_missing_chunk_is_named() {
    let world = World::new();
    let file = world.scratch("in");
    file.write_all_at(&noise(3, 300_000), 0).unwrap();
    let lost = put_large(&world.store, &file, false, WriteOptions::default());
    if count(&world.store.dir().join("large"), ".chunks") == 0 {
        println!("skipped: this filesystem shares data, there are no chunks");
        return;
    }
    file.write_all_at(&noise(5, 300_000), 0).unwrap();
    let fine = put_large(&world.store, &file, false, WriteOptions::default());
    let packs = files(&world.store.dir().join("packs"));
    let pack = packs.iter().find(|file| file.extension().is_some_and(|end| end == "pack")).unwrap();
    let mut bytes = std::fs::read(pack).unwrap();
    bytes[1000] ^= 1;
    std::fs::write(pack, &bytes).unwrap();
    let named =
        |store: &Store| verify(store).problems.iter().any(|problem| problem.object == Some(lost.into()));
    assert!(named(&world.store));
    assert!(matches!(world.store.read(lost.into()), Err(StoreError::Damaged { .. })));
    assert_eq!(world.store.read(fine.into()).unwrap(), noise(5, 300_000));
    std::fs::remove_file(pack).unwrap();
    std::fs::remove_file(pack.with_extension("idx")).unwrap();
    assert!(named(&world.again()));
    assert!(matches!(world.again().read(lost.into()), Err(StoreError::Damaged { .. })));
    assert_eq!(world.again().read(fine.into()).unwrap(), noise(5, 300_000));
}

/// Chunks that a damaged list still names are kept, and the damage is reported.
#[test]
fn a_damaged_list_does_not_stop_a_collection() {
    let world = World::new();
    let file = world.scratch("in");
    file.write_all_at(&noise(3, 600_000), 0).unwrap();
    put_large(&world.store, &file, false, WriteOptions::default());
    let lists = files(&world.store.dir().join("large"));
    let Some(list) = lists.iter().find(|file| file.extension().is_some_and(|end| end == "chunks")) else {
        println!("skipped: this filesystem shares data, there are no chunks");
        return;
    };
    let mut bytes = std::fs::read(list).unwrap();
    bytes[9] ^= 1;
    std::fs::write(list, &bytes).unwrap();
    put_all(&world.store, &[b"dead"]);
    let collected = world.store.gc(&|key| key != blob(b"dead")).unwrap();
    assert_eq!(collected.problems.len(), 1);
    assert_eq!(collected.problems[0].what, Damage::List);
    assert!(!world.store.contains(blob(b"dead")).unwrap());
    bytes[9] ^= 1;
    std::fs::write(list, &bytes).unwrap();
    assert_clean(&world.store);
}

/// Written before a crash of the machine and not known to be durable: readable, but not relied on.
#[test]
fn what_a_crash_may_have_spoiled_is_stored_again() {
    let world = World::new();
    put_all(&world.store, &[b"one"]);
    let mut later = world.again();
    later.boot = [9; 16];
    assert_eq!(later.read(blob(b"one")).unwrap(), b"one");
    assert!(!later.contains(blob(b"one")).unwrap());
    assert_eq!(later.sync().unwrap().files, 0, "a sync does not make it trustworthy");
    put_all(&later, &[b"one"]);
    assert!(later.contains(blob(b"one")).unwrap());
    assert!(settle(&later).durable);
    assert_eq!(count(later.dir(), ".pack"), 1);
    assert_clean(&later);
}
