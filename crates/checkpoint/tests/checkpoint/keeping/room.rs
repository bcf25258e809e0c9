//! The room of checkpoints: never counted too small, shared by all who write at once, and made where it is short.

use nono_checkpoint::usage::Usage;
use nono_checkpoint::{CheckpointManager, Config, Ensured, Origin};

use nono_testkit::noise;

use crate::common::{World, taken};

const MB: u64 = 1 << 20;

fn real(world: &World) -> u64 {
    let state = &world.host.state_dir;
    nono_sys::fs::disk_bytes(&state.join("store")).unwrap()
        + nono_sys::fs::disk_bytes(&state.join("projects")).unwrap()
}

#[test]
fn known_disk_usage_is_never_below_the_real_one() {
    let world = World::new();
    let usage = Usage::new(&world.host);
    let mut manager = world.manager();
    for number in 0..4 {
        world.write("file", noise(300_000, number));
        taken(manager.create(&world.tree, "one", &Origin::default()));
        let known = usage.known().unwrap();
        assert!(known.bytes >= real(&world), "{known:?} {}", real(&world));
    }
    let counted = usage.count().unwrap();
    assert!(counted.abs_diff(real(&world)) <= 8192, "{counted} {}", real(&world));
    assert!(manager.status().unwrap().exact);
    assert_eq!(manager.status().unwrap().store_bytes, counted);

    // Damaged, missing, or something else altogether: it is counted again.
    let file = world.host.state_dir.join("store/ledger/books");
    for damage in [Some(&b"{}"[..]), Some(b"\xff"), None] {
        match damage {
            Some(bytes) => std::fs::write(&file, bytes).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        assert_eq!(usage.known(), None);
        world.write("file", noise(1000, 100));
        taken(manager.create(&world.tree, "again", &Origin::default()));
        world.write("file", noise(1000, 101));
        taken(manager.create(&world.tree, "again", &Origin::default()));
        assert!(usage.known().unwrap().bytes >= real(&world) - 8192);
    }
    // A number that was made smaller by hand has not our checksum.
    let text = std::fs::read_to_string(&file).unwrap();
    let used = usage.known().unwrap().bytes.to_string();
    std::fs::write(&file, text.replace(&used, "1")).unwrap();
    assert_eq!(usage.known(), None);
}

/// Projects beside the world's own, each with a file of its own.
fn projects(world: &World, count: u64, size: usize) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for number in 0..count {
        let dir = world.base.join(format!("home/work/project{number}"));
        std::fs::create_dir_all(dir.join(".git")).unwrap();
        std::fs::write(dir.join("file"), noise(size, 1000 + number)).unwrap();
        all.push(dir);
    }
    all
}

/// Checkpoints of many projects at once: with room for all of them all are taken, and none goes for another.
#[test]
fn those_who_write_at_once_are_not_refused_while_there_is_room() {
    let world = World::new();
    let dirs = projects(&world, 32, 300_000);
    for round in 0..3u64 {
        std::thread::scope(|scope| {
            for dir in &dirs {
                scope.spawn(|| {
                    let mut manager = CheckpointManager::new(
                        world.host.clone(),
                        Config { max_total_size_mb: 100, ..Config::default() },
                    );
                    taken(manager.create(dir, "at once", &Origin::default()));
                });
            }
        });
        for (number, dir) in dirs.iter().enumerate() {
            assert_eq!(world.manager().list(dir).unwrap().len() as u64, round + 1);
            std::fs::write(dir.join("file"), noise(300_000, 10_000 * (round + 1) + number as u64)).unwrap();
        }
    }
    assert!(world.manager().verify(None).unwrap().is_good());
}

/// A project that cannot fit takes nothing from its neighbours, and is refused by name.
#[test]
fn what_cannot_fit_is_refused_by_name_and_removes_nothing() {
    let world = World::new();
    let config = Config { max_total_size_mb: 8, max_file_size_mb: 0, ..Config::default() };
    let mut manager = world.manager_with(&config);
    let neighbour = projects(&world, 1, 1000).remove(0);
    for number in 0..15u64 {
        std::fs::write(neighbour.join("file"), noise(100_000, number)).unwrap();
        taken(manager.create(&neighbour, "one", &Origin::default()));
    }
    world.write("small", "text");
    world.write("huge", noise(20 << 20, 7));
    let Ensured::Failed { error, .. } = manager.create(&world.tree, "huge", &Origin::default()) else {
        panic!("it cannot fit");
    };
    assert!(error.to_string().contains("huge"), "{error}");
    assert_eq!(manager.list(&neighbour).unwrap().len(), 15);
    // Before an agent's call a checkpoint with gaps is more than none, and the gaps are named.
    let origin = Origin { agent: Some("agent".into()), ..Origin::default() };
    let config = Config { enabled: true, ..config };
    let mut manager = world.manager_with(&config);
    let ensured = manager.ensure_checkpoint(&world.tree, "call", &origin);
    let Ensured::Taken { coverage, .. } = ensured else { panic!("it is taken with gaps: {ensured:?}") };
    assert_eq!(coverage.entries_left_out(), 1);
    assert_eq!(manager.list(&neighbour).unwrap().len(), 15);
}

/// The bound holds on the disk, and the newest checkpoint wins over the oldest ones of its project.
#[test]
fn the_bound_holds_on_the_disk_and_the_newest_wins() {
    let world = World::new();
    let config = Config { max_total_size_mb: 3, ..Config::default() };
    let mut manager = world.manager_with(&config);
    for number in 0..12u64 {
        for file in 0..4 {
            world.write(&format!("file{file}"), noise(200_000, number * 10 + file));
        }
        let Ensured::Taken { coverage, .. } = manager.create(&world.tree, "one", &Origin::default()) else {
            panic!("there is room when the oldest go");
        };
        assert_eq!(coverage.entries_left_out(), 0);
        assert!(real(&world) <= 3 * MB, "{} after {number}", real(&world));
    }
    let gone: usize =
        manager.take_pruned().iter().flat_map(|pruned| &pruned.removed).map(|(_, gone)| gone.len()).sum();
    assert!(gone >= 9 && manager.list(&world.tree).unwrap().len() == 12 - gone, "{gone}");
    assert!(manager.verify(None).unwrap().is_good());
    world.restore("1");
    assert_eq!(std::fs::read(world.tree.join("file0")).unwrap(), noise(200_000, 110));
}
