//! The counter of the room: never too small, whatever happens to it, and to those who write.

use nono_checkpoint::usage::Usage;
use nono_checkpoint::{Config, Ensured, Origin};

use crate::common::{World, noise, taken};

const MB: u64 = 1 << 20;

fn real(world: &World) -> u64 {
    let state = &world.host.state_dir;
    nono_sys::fs::disk_bytes(&state.join("store")).unwrap()
        + nono_sys::fs::disk_bytes(&state.join("projects")).unwrap()
}

#[test]
fn it_is_never_too_small() {
    let world = World::new();
    let usage = Usage::new(&world.host);
    let mut manager = world.manager();
    for number in 0..4 {
        world.write("file", noise(300_000, number));
        taken(manager.create(&world.tree, "one", &Origin::default()));
        let known = usage.known().unwrap();
        assert!(known.bytes >= real(&world), "{known:?} {}", real(&world));
    }
    assert_eq!(usage.count().unwrap(), real(&world));
    assert!(manager.status().unwrap().exact);
    assert_eq!(manager.status().unwrap().store_bytes, real(&world));

    // Damaged, missing, or something else altogether: it is made anew.
    let file = world.host.state_dir.join("projects/usage.json");
    for damage in [Some(&b"{}"[..]), Some(b"\xff"), None] {
        match damage {
            Some(bytes) => std::fs::write(&file, bytes).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        assert_eq!(usage.known(), None);
        drop(usage.reserve(500 * MB).unwrap());
        assert!(usage.known().unwrap().bytes >= real(&world) - 4096);
    }
    // A number that somebody made smaller has not our checksum.
    let text = std::fs::read_to_string(&file).unwrap();
    let used = usage.known().unwrap().bytes.to_string();
    std::fs::write(&file, text.replace(&used, "1")).unwrap();
    assert_eq!(usage.known(), None);
}

#[test]
fn those_who_write_at_once_share_what_is_left() {
    let world = World::new();
    let usage = Usage::new(&world.host);
    let one = usage.reserve(100 * MB).unwrap();
    let two = usage.reserve(100 * MB).unwrap();
    let (first, second) = (one.budget.unwrap(), two.budget.unwrap());
    assert!(first > 90 * MB && second > 4 * MB && first + second <= 100 * MB, "{first} {second}");
    assert_eq!(usage.reserve(0).unwrap().budget, None);
    // One that was killed leaves what it reserved. While others write nobody knows that, then it is counted anew.
    let file = world.host.state_dir.join("projects/usage.json");
    let before = std::fs::read(&file).unwrap();
    drop(one);
    std::fs::write(&file, before).unwrap();
    let again = usage.reserve(100 * MB).unwrap();
    assert!(again.budget.unwrap() < 5 * MB);
    drop((two, again));
    let alone = usage.reserve(100 * MB).unwrap();
    assert!(alone.budget.unwrap() > 90 * MB);
}

/// What does not fit is left out by name, never silently; and the bound holds on the disk.
#[test]
fn the_bound_holds_on_the_disk() {
    let world = World::new();
    let config = Config { max_total_size_mb: 3, ..Config::default() };
    let mut manager = world.manager_with(&config);
    let mut left_out = 0;
    for number in 0..8u64 {
        for file in 0..4 {
            world.write(&format!("file{file}"), noise(200_000, number * 10 + file));
        }
        match manager.create(&world.tree, "one", &Origin::default()) {
            Ensured::Taken { coverage, .. } => left_out += coverage.entries_left_out(),
            Ensured::Failed { error, .. } => {
                left_out += 1;
                assert!(error.to_string().contains("budget") || error.to_string().contains("fit"), "{error}");
            }
            Ensured::Skipped { .. } => panic!("it was changed"),
        }
        assert!(real(&world) <= 3 * MB, "{} after {number}", real(&world));
    }
    assert!(left_out > 0, "it cannot have fit");
    // Room is made in the background, and then there is some again.
    let pruned = manager.free_room().unwrap().unwrap();
    assert!(!pruned.removed.is_empty() && pruned.problems.is_empty(), "{pruned:?}");
    assert!(real(&world) <= 3 * MB * 3 / 4);
    world.write("file0", noise(200_000, 99));
    let Ensured::Taken { coverage, .. } = manager.create(&world.tree, "again", &Origin::default()) else {
        panic!("there is room");
    };
    assert_eq!(coverage.entries_left_out(), 0);
    assert!(manager.verify(None).unwrap().is_clean());
    assert!(real(&world) <= 3 * MB);
}
