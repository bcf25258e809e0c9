//! Programs that save through a descriptor they opened before: what they wrote is in the tree, in the store, or named.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use nono_snapshot::restore::{KeptContent, RestoreOutcome, Selection, Why};

use crate::kit::World;

fn has_leases(world: &World) -> bool {
    use std::os::fd::AsFd;
    world.write("probe", "x");
    let file = File::open(world.at("probe")).unwrap();
    fs::remove_file(world.at("probe")).unwrap();
    let known = nono_sys::lease::writers(file.as_fd()) == nono_sys::lease::Writers::None;
    if !known {
        println!("skipped: the file system of the temporary folder knows no leases");
    }
    known
}

fn whys(outcome: &RestoreOutcome) -> Vec<(&Path, &Why)> {
    outcome.skipped.iter().map(|one| (one.path.as_path(), &one.why)).collect()
}

/// Also through a mapping whose descriptor is closed.
#[test]
fn a_file_open_for_writing_is_kept_and_named() {
    let world = World::new();
    if !has_leases(&world) {
        return;
    }
    world.write("replaced", "target");
    let target = world.snap();
    world.write("replaced", "current");
    world.write("deleted", "current");
    world.write("closed", "current");
    let current = world.snap();
    let open =
        ["replaced", "deleted"].map(|name| OpenOptions::new().write(true).open(world.at(name)).unwrap());
    let outcome = world.restore_with(&target, &current, &Selection::All);
    assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
    let (deleted, replaced) = (world.at("deleted"), world.at("replaced"));
    assert_eq!(
        whys(&outcome),
        [(deleted.as_path(), &Why::OpenForWriting), (replaced.as_path(), &Why::OpenForWriting)]
    );
    open.iter().for_each(|file| file.write_all_at(b"saved later", 0).unwrap());
    assert_eq!([world.read("replaced"), world.read("deleted")], ["saved later", "saved later"]);
    assert!(!world.at("closed").exists());
    drop(open);
    let outcome = world.restore(&target);
    assert!(outcome.skipped.is_empty() && outcome.failed.is_empty(), "{outcome:?}");
    assert_eq!(world.read("replaced"), "target");
}

/// A program that opens the file by its name, saves in place and closes it, again and again, while it is restored.
#[test]
fn saves_in_place_during_restores_are_never_lost() {
    let world = World::new();
    if !has_leases(&world) {
        return;
    }
    world.is_racing.set(true);
    world.write("file", &"t".repeat(64 << 10));
    let target = world.snap();
    let mut saves = 0;
    for round in 0..150 {
        let _ = fs::remove_file(world.at("file"));
        world.write("file", &format!("{round:>16}{}", "c".repeat(64 << 10)));
        let current = world.snap();
        let stop = AtomicBool::new(false);
        let path = world.at("file");
        let (last, outcome) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| save_until(&stop, &path));
            let outcome = world.restore_with(&target, &current, &Selection::All);
            stop.store(true, Ordering::SeqCst);
            (writer.join().unwrap(), outcome)
        });
        assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
        let there = contents(&world, &outcome);
        for (counter, count) in last.values() {
            saves += count;
            assert!(there.iter().any(|bytes| bytes.starts_with(counter)), "round {round}: {outcome:?}");
        }
        for entry in fs::read_dir(world.root()).unwrap() {
            let entry = entry.unwrap();
            if entry.file_name() != "file" {
                fs::remove_file(entry.path()).unwrap();
            }
        }
    }
    println!("{saves} saves");
    assert!(saves > 100, "hardly anything was saved meanwhile");
}

/// By inode: the last counter that was written to it, and how many were.
fn save_until(stop: &AtomicBool, path: &Path) -> HashMap<u64, (Vec<u8>, u64)> {
    let mut last: HashMap<u64, (Vec<u8>, u64)> = HashMap::new();
    let mut counter = 0u64;
    while !stop.load(Ordering::SeqCst) {
        let Ok(file) = OpenOptions::new().write(true).open(path) else { continue };
        let inode = file.metadata().unwrap().ino();
        for _ in 0..3 {
            counter += 1;
            let text = format!("{counter:016}").into_bytes();
            file.write_all_at(&text, 0).unwrap();
            let one = last.entry(inode).or_default();
            *one = (text, one.1 + 1);
        }
    }
    last
}

/// First bytes of everything in the tree or kept.
fn contents(world: &World, outcome: &RestoreOutcome) -> Vec<Vec<u8>> {
    let files = fs::read_dir(world.root()).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
    let kept = outcome.kept.iter().filter_map(|kept| match &kept.content {
        KeptContent::File { hash, .. } => world.objects.content(*hash),
        KeptContent::Symlink { .. } => None,
    });
    files.chain(kept).collect()
}

/// Large enough that comparing takes a while; the descriptor is opened when the restore has begun.
#[test]
fn a_save_while_a_large_file_is_compared_is_not_lost() {
    let world = World::new();
    if !has_leases(&world) {
        return;
    }
    world.is_racing.set(true);
    world.write("large", "target");
    let target = world.snap();
    let bytes = vec![7u8; 48 << 20];
    fs::write(world.at("large"), &bytes).unwrap();
    let current = world.snap();
    let stop = AtomicBool::new(false);
    let path = world.at("large");
    let (last, outcome) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            // It holds on to what it opened first, over the whole restore.
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            let mut counter = 0u64;
            while !stop.load(Ordering::SeqCst) {
                counter += 1;
                file.write_all_at(format!("{counter:016}").as_bytes(), 0).unwrap();
            }
            format!("{counter:016}").into_bytes()
        });
        let outcome = world.restore_with(&target, &current, &Selection::All);
        stop.store(true, Ordering::SeqCst);
        (writer.join().unwrap(), outcome)
    });
    assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
    let there = contents(&world, &outcome);
    assert!(there.iter().any(|bytes| bytes.starts_with(&last)), "{:?}", outcome.skipped);
}
