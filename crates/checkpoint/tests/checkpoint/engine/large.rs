//! Files beyond the limit, histories that were thinned out, projects that are months old.

use std::path::Path;

use nono_checkpoint::{CheckpointChoice, Config, Ensured, Origin};
use nono_snapshot::Cause;

use crate::common::{World, kept, text};

/// On a filesystem that cannot share data between files.
fn copies(world: &World) -> bool {
    world.write("probe", "x");
    let out = std::process::Command::new("cp")
        .args(["--reflink=always", "probe", "probe-2"])
        .current_dir(&world.tree)
        .output()
        .unwrap();
    world.sh("rm -f probe probe-2");
    !out.status.success()
}

#[test]
fn large_files_are_named_and_not_touched() {
    for megabytes in [1, 5] {
        let world = World::new();
        if !copies(&world) {
            eprintln!("skipped: this filesystem shares data");
            return;
        }
        let config = || Config { max_file_size_mb: megabytes, ..Config::default() };
        let size = usize::try_from(megabytes).unwrap() << 20;
        world.write("fits", vec![7; size]);
        world.write("large", vec![7; size + 1]);
        let ensured = world.manager_with(&config()).create(&world.tree, "r", &Origin::default());
        let Ensured::Taken { coverage, checkpoint, .. } = ensured else { panic!("{ensured:?}") };
        assert_eq!((checkpoint.files, checkpoint.left_out), (1, 1));
        let left_out = &coverage.left_out[0];
        assert_eq!((left_out.cause, left_out.entries), (Cause::TooLarge, 1));
        let reason = &left_out.examples[0].reason;
        assert!(reason.contains(&format!("larger than {size} bytes")), "{reason}");
        // Nothing is new about it the next time.
        let again = world.manager_with(&config()).create(&world.tree, "r", &Origin::default());
        assert!(matches!(again, Ensured::Skipped { .. }), "{again:?}");
        let origin = crate::common::origin("s", "t", "c");
        world.manager_with(&config()).ensure_checkpoint(&world.tree, "r", &origin);
        world.write("large", "short now");
        world.write("made", vec![8; size + 1]);
        world.write("fits", "2");
        world.manager_with(&config()).agent_left(&world.tree, &origin).unwrap();
        let outcome = world
            .manager_with(&config())
            .restore(&world.tree, &text("1"), &CheckpointChoice::default())
            .unwrap();
        assert_eq!(std::fs::metadata(world.path("fits")).unwrap().len(), size as u64);
        assert_eq!(world.read("large"), "short now", "what the checkpoint does not hold is not touched");
        // What was made since goes, with its bytes stored first.
        assert!(!world.exists("made"), "{outcome:?}");
        assert_eq!(kept(&outcome), [] as [std::path::PathBuf; 0]);
        world.manager_with(&config()).undo(&world.tree).unwrap();
        assert_eq!(std::fs::read(world.path("made")).unwrap(), vec![8; size + 1]);
    }
}

#[test]
fn any_number_can_be_thinned_out() {
    let world = World::new();
    let mut all = Vec::new();
    for number in 0..4 {
        world.write("a", format!("{number}\n"));
        all.push(world.create());
    }
    let before = world.manager().list(&world.tree).unwrap();
    let thin = |numbers: &[u32]| {
        let folder = nono_checkpoint::project::folder_of(&world.host, &world.tree);
        let options = nono_snapshot::ManagerOptions {
            store: Some(world.host.state_dir.join("store")),
            give_up_any: true,
            settle_by_hand: true,
            ..nono_snapshot::ManagerOptions::default()
        };
        let mut manager = nono_snapshot::SnapshotManager::resume(&folder, options).unwrap();
        manager.thin(numbers).unwrap();
        manager.gc().unwrap();
        assert!(manager.verify().unwrap().is_clean());
    };
    thin(&[0, 2]);
    let list = world.manager().list(&world.tree).unwrap();
    let of = |lines: &[nono_checkpoint::Checkpoint]| {
        lines.iter().map(|line| (line.id.clone(), line.snapshot, line.stats)).collect::<Vec<_>>()
    };
    // Those that are left are what they were, and their steps too.
    assert_eq!(of(&list), of(&[before[0].clone(), before[2].clone()]));
    world.restore(all[1].id.as_str());
    assert_eq!(world.read("a"), "1\n");
    assert!(world.manager().find(&world.tree, &text(all[0].id.as_str())).is_err());
    // Without the last one, the next is taken whatever it is like.
    thin(&[3]);
    let next = world.create();
    assert_eq!(next.snapshot, 4);
    world.write("a", "5\n");
    assert_eq!(world.create().snapshot, 5);
    world.restore("2");
    assert_eq!(world.read("a"), "1\n");
}

/// Let the clock of file times go on: that is what is tested.
fn pass(milliseconds: u64) {
    let start = std::time::Instant::now();
    while start.elapsed() < std::time::Duration::from_millis(milliseconds) {
        std::thread::yield_now();
    }
}

/// A file that was changed after the project's first checkpoint is not read for ever. (The clock cannot be turned: the
/// record is, which says when it began.) On the disk: in memory nothing tells of a write through a mapping.
#[test]
fn a_cost_that_follows_change_also_in_an_old_project() {
    let world = World::within(Path::new(env!("CARGO_TARGET_TMPDIR")));
    world.write("a", "1");
    world.create();
    let folder = nono_checkpoint::project::folder_of(&world.host, &world.tree);
    let read = |young: Option<u64>| {
        let capture = nono_snapshot::CaptureOptions {
            young: young.map(std::time::Duration::from_secs),
            ..nono_snapshot::CaptureOptions::default()
        };
        let options = nono_snapshot::ManagerOptions {
            store: Some(world.host.state_dir.join("store")),
            capture,
            settle_by_hand: true,
            ..nono_snapshot::ManagerOptions::default()
        };
        let mut manager = nono_snapshot::SnapshotManager::resume(&folder, options).unwrap();
        manager.create_incremental().unwrap().0.work.read
    };
    world.write("a", "2");
    pass(50);
    read(None);
    assert_eq!(read(None), 1, "changed since the session began: it is read each time");
    assert_eq!(read(Some(3600)), 1, "young");
    // Ages are counted in whole seconds: wait until it is older than none of them.
    pass(1100);
    assert_eq!(read(Some(0)), 0, "no process has it mapped, and it is not young");
}
