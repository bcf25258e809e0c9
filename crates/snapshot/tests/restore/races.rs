//! Other processes work in the tree while it is restored.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use nono_snapshot::hash::content_hash;
use nono_snapshot::restore::{KeptContent, Selection, Why};

use crate::kit::World;

/// Everything here happens after the safety snapshot.
#[test]
fn what_was_written_meanwhile_is_kept() {
    let world = World::new();
    world.write("replaced", "target");
    world.write("swapped", "target");
    world.write("now-dir", "target");
    world.write("now-link", "target");
    world.write("created", "target");
    let target = world.snap();
    for path in ["replaced", "swapped", "now-dir", "now-link", "deleted", "removed/stored"] {
        world.write(path, "current");
    }
    fs::remove_file(world.at("created")).unwrap();
    let current = world.snap();
    world.write("replaced", "written meanwhile");
    world.write("deleted", "this too, meanwhile");
    world.write("created", "appeared");
    fs::remove_file(world.at("now-dir")).unwrap();
    world.write("now-dir/inside", "whole");
    fs::remove_file(world.at("now-link")).unwrap();
    symlink("somewhere", world.at("now-link")).unwrap();
    world.write("removed/appeared", "appeared");
    let outcome = world.restore_with(&target, &current, &Selection::All);
    assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
    let kept: Vec<_> = outcome.kept.iter().map(|kept| (kept.path.clone(), kept.content.clone())).collect();
    let file =
        |text: &str| KeptContent::File { hash: content_hash(text.as_bytes()), size: text.len() as u64 };
    let expected = [("deleted", "this too, meanwhile"), ("replaced", "written meanwhile")];
    assert_eq!(kept, expected.map(|(path, text)| (world.at(path), file(text))));
    assert!(expected.iter().all(|(_, text)| world.objects.content(content_hash(text.as_bytes())).is_some()));
    let skipped: Vec<_> = outcome.skipped.iter().map(|one| (one.path.clone(), one.why.clone())).collect();
    let expected = [
        ("created", Why::Appeared),
        ("now-dir", Why::ChangedMeanwhile),
        ("now-link", Why::ChangedMeanwhile),
        ("removed", Why::HoldsOthers),
    ];
    assert_eq!(skipped, expected.map(|(path, why)| (world.at(path), why)));
    assert_eq!((world.read("replaced").as_str(), world.read("swapped").as_str()), ("target", "target"));
    assert_eq!(
        (world.read("created").as_str(), world.read("now-dir/inside").as_str()),
        ("appeared", "whole")
    );
    assert_eq!(world.read("removed/appeared"), "appeared");
    assert!(fs::read_link(world.at("now-link")).is_ok());
}

/// A link put in the place of a directory at any moment is not followed; nothing outside is written or removed.
#[test]
fn a_directory_swapped_for_a_link() {
    let world = World::new();
    let outside = world.base.path().join("outside");
    fs::create_dir(&outside).unwrap();
    for n in 0..20 {
        world.write(&format!("d/sub/file{n}"), "target");
        fs::write(outside.join(format!("file{n}")), "precious").unwrap();
    }
    fs::create_dir(outside.join("sub")).unwrap();
    let look = || {
        let mut seen: Vec<_> = fs::read_dir(&outside)
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let meta = entry.metadata().unwrap();
                (entry.file_name(), meta.ino(), meta.ctime_nsec(), meta.mode(), meta.len())
            })
            .collect();
        seen.sort();
        let own = fs::metadata(&outside).unwrap();
        (seen, own.mtime_nsec(), own.mode(), fs::read_dir(outside.join("sub")).unwrap().count())
    };
    let before = look();
    let target = world.snap();
    for n in 0..10 {
        world.write(&format!("d/sub/file{n}"), "changed");
        world.write(&format!("d/sub/new{n}"), "new");
        fs::remove_file(world.at(&format!("d/sub/file{}", n + 10))).unwrap();
    }
    let current = world.snap();
    let plan = world.plan(&target, &current, &Selection::All);
    let stop = AtomicBool::new(false);
    world.is_racing.set(true);
    let (real, link) = (world.at("d/sub"), world.at("d/link"));
    symlink(&outside, &link).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            while !stop.load(Ordering::Relaxed) {
                // Either the directory or the link is under the name.
                let _ = renameat_with(CWD, &real, CWD, &link, RenameFlags::EXCHANGE);
                std::thread::yield_now();
            }
        });
        for _ in 0..60 {
            world.apply(&plan, &());
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(look(), before);
}
