//! FIFOs, sockets and devices: recorded, never opened, created again if permitted.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use crate::common::user::{give, prepared_by_root};
use crate::common::{World, clean, go_back, is_root, skip};
use nono_testkit::oracle::{look, same};

/// A writer waits at each FIFO: it would continue if a process opened one for reading.
#[test]
fn a_fifo_is_never_opened() {
    let world = World::new();
    world.sh("mkfifo p sub; mkdir d; mkfifo d/p; echo f > f");
    world.sh("rm sub");
    let fifos = [world.path("p"), world.path("d/p")];
    let (opened, told) = mpsc::channel();
    for fifo in fifos.clone() {
        let opened = opened.clone();
        std::thread::spawn(move || {
            let file = rustix::fs::open(&fifo, OFlags::WRONLY, Mode::empty());
            opened.send(()).ok();
            drop(file);
        });
    }
    let before = look(&world.tree);
    let (done, end) = mpsc::channel();
    let (tree, session) = (world.tree.clone(), world.session.clone());
    std::thread::spawn(move || {
        let options = crate::common::by_hand();
        let mut manager = nono_snapshot::SnapshotManager::with_options(
            session,
            [&tree],
            nono_snapshot::ExclusionConfig::default(),
            nono_snapshot::Limits::NONE,
            options,
        )
        .unwrap();
        manager.create_baseline().unwrap();
        std::fs::write(tree.join("f"), "changed").unwrap();
        std::fs::write(tree.join("d/new"), "new").unwrap();
        manager.create_incremental().unwrap();
        clean(&manager.restore_to(0).unwrap());
        done.send(()).unwrap();
    });
    // Not a wait for something to happen: the limit after which it is stuck.
    end.recv_timeout(Duration::from_secs(60)).expect("it is stuck at a FIFO");
    assert!(told.try_recv().is_err(), "a FIFO was opened");
    same(&before, &look(&world.tree));
    // Let the writers go.
    for fifo in fifos {
        drop(rustix::fs::open(fifo, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap());
    }
}

/// A restore that has to remove FIFOs does not open them either.
#[test]
fn a_fifo_in_the_place_of_a_file_does_not_block() {
    let world = World::new();
    world.write("f", "f");
    world.write("d/f", "f");
    let before = look(&world.tree);
    let mut manager = world.manager();
    manager.create_baseline().unwrap();
    world.sh("rm -rf f d; mkfifo f d new");
    let changed = look(&world.tree);
    let restored = manager.restore_to(0).unwrap();
    clean(&restored);
    same(&before, &look(&world.tree));
    clean(&go_back(&mut manager, &restored.safety));
    same(&changed, &look(&world.tree));
}

#[test]
fn sockets_come_back() {
    let world = World::new();
    drop(UnixListener::bind(world.path("socket")).unwrap());
    world.sh("chmod 711 socket; touch -d @9.000000001 socket; echo x > f");
    let before = look(&world.tree);
    let mut manager = world.manager();
    let baseline = manager.create_baseline().unwrap();
    assert_eq!(baseline.coverage.others, 1);
    world.sh("rm socket; echo file > socket");
    let restored = manager.restore_to(0).unwrap();
    clean(&restored);
    same(&before, &look(&world.tree));
    assert!(world.path("socket").symlink_metadata().unwrap().file_type().is_socket());
}

/// A device that nothing drives: opening it would be an error.
#[test]
fn devices_come_back_with_their_numbers() {
    if !is_root() {
        return skip("making devices needs root");
    }
    let world = World::new();
    world.sh("mknod -m 0640 c c 240 77; mknod -m 0604 b b 241 300; mknod z c 0 0; chown 3:4 c; echo x > f");
    let before = look(&world.tree);
    let numbers =
        |world: &World| ["c", "b", "z"].map(|name| world.path(name).symlink_metadata().unwrap().rdev());
    let was = numbers(&world);
    let mut manager = world.manager();
    let baseline = manager.create_baseline().unwrap();
    assert_eq!((baseline.coverage.others, baseline.coverage.entries_left_out()), (3, 0));
    world.sh("rm c b z; mknod c c 240 78; echo x > b");
    let changed = look(&world.tree);
    let (_, changes) = manager.create_incremental().unwrap();
    assert_eq!(changes.len(), 3, "{changes:?}");
    let restored = manager.restore_to(0).unwrap();
    clean(&restored);
    same(&before, &look(&world.tree));
    assert_eq!(numbers(&world), was);
    clean(&go_back(&mut manager, &restored.safety));
    same(&changed, &look(&world.tree));
}

/// An ordinary user cannot create a device: it is reported, and the rest is restored.
#[test]
fn a_device_that_may_not_be_made_is_reported() {
    let prepare = |place: &std::path::Path| {
        crate::common::sh(
            place,
            "mkdir tree; mknod -m 0640 tree/dev c 240 77; echo a > tree/a; echo z > tree/z",
        );
        for name in ["tree", "tree/dev", "tree/a", "tree/z"] {
            give(&place.join(name));
        }
    };
    prepared_by_root("laws::special::a_device_that_may_not_be_made_is_reported", prepare, |place| {
        let tree = place.join("tree");
        let mut manager = nono_snapshot::SnapshotManager::with_options(
            place.join("session"),
            [&tree],
            nono_snapshot::ExclusionConfig::default(),
            nono_snapshot::Limits::NONE,
            crate::common::by_hand(),
        )
        .unwrap();
        let baseline = manager.create_baseline().unwrap();
        assert_eq!(baseline.coverage.others, 1);
        for name in ["a", "dev", "z"] {
            std::fs::remove_file(tree.join(name)).unwrap();
        }
        let restored = manager.restore_to(0).unwrap();
        let failed: Vec<_> = restored.failed.iter().map(|failed| failed.path.clone()).collect();
        assert_eq!(failed, [tree.join("dev")]);
        assert_eq!(std::fs::read(tree.join("z")).unwrap(), b"z\n");
        crate::common::no_debris(&tree);
    });
}
