//! Purging a path: afterwards its bytes are nowhere. And the division of a shared store's space.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nono_snapshot::hash::content_hash;
use nono_snapshot::node::Reason;
use nono_snapshot::store::ObjectKey;
use nono_snapshot::{
    Cause, ExclusionConfig, Limits, ManagerOptions, Protection, SnapshotError, SnapshotId, SnapshotManager,
    gc_compact, holders, shares,
};

use crate::common::{World, by_hand, clean, left_out, noise};

fn shared(session: &Path, store: &Path, tree: &Path) -> SnapshotManager {
    let options = ManagerOptions { store: Some(store.to_owned()), give_up_any: true, ..by_hand() };
    SnapshotManager::with_options(session, [tree], ExclusionConfig::default(), Limits::NONE, options).unwrap()
}

/// The files below a folder that have these bytes in them.
fn search(dir: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(search(&path, bytes));
        } else if std::fs::read(&path).unwrap().windows(bytes.len()).any(|part| part == bytes) {
            found.push(path);
        }
    }
    found
}

/// Small, compressible and large, in several snapshots and one of a restore, settled and not.
#[test]
fn what_was_purged_is_nowhere() {
    for settle in [false, true] {
        let world = World::new();
        let base = world.dir.path().canonicalize().unwrap();
        let store = base.join("store");
        let secret = noise(2000, 1);
        let large = noise(5 << 20, 2);
        world.write("dir/secret", &secret);
        world.write("dir/words", "the secret is out ".repeat(500));
        world.write("dir/large", &large);
        world.write("dir/other", "stays");
        let mut manager = shared(&base.join("one"), &store, &world.tree);
        manager.create_baseline().unwrap();
        world.write("dir/secret", [secret.as_slice(), b"more"].concat());
        manager.create_incremental().unwrap();
        clean(&manager.restore_to(0).unwrap());
        if settle {
            manager.settle().unwrap();
        }
        assert!(!search(&base, &secret[..64]).is_empty(), "the control");
        let words = content_hash("the secret is out ".repeat(500).as_bytes());
        let before: Vec<SnapshotId> = manager.snapshots().unwrap();

        world.sh("rm -r dir/secret dir/words dir/large");
        for name in ["dir/secret", "dir/words", "dir/large"] {
            let forgotten = manager.forget(&world.path(name)).unwrap();
            assert_eq!(forgotten.snapshots, 3, "{name}");
        }
        gc_compact(manager.store()).unwrap();
        assert_eq!(search(&store, &secret[..64]), Vec::<PathBuf>::new());
        assert_eq!(search(&store, &large[1 << 20..(1 << 20) + 64]), Vec::<PathBuf>::new());
        assert!(!manager.store().contains(ObjectKey::from(words)).unwrap());
        assert!(manager.verify().unwrap().is_clean());
        assert_eq!(manager.snapshots().unwrap(), before, "all of them are there still");

        let first = manager.load_manifest(0).unwrap();
        assert_eq!((first.coverage.files, left_out(&first, Cause::Forgotten)), (1, 3));
        let because = first.protection(&world.path("dir/secret")).unwrap();
        assert!(matches!(because, Protection::LeftOut { reason: Reason::Forgotten, .. }));
        // A restore leaves the path alone, whatever is there.
        world.write("dir/secret", "a new one");
        world.write("dir/other", "changed");
        manager.restore_to(0).unwrap();
        assert_eq!((world.read("dir/secret"), world.read("dir/other")), ("a new one".into(), "stays".into()));
        // And a new snapshot is as good as any.
        manager.create_incremental().unwrap();
        assert!(manager.verify().unwrap().is_clean());
    }
}

#[test]
fn a_directory_goes_with_all_that_is_in_it_and_others_are_named() {
    let world = World::new();
    let base = world.dir.path().canonicalize().unwrap();
    let store = base.join("store");
    world.write("keys/a", "key a");
    world.write("keys/deep/b", "key b");
    world.write("copy", "key b");
    let mut one = shared(&base.join("one"), &store, &world.tree);
    one.create_baseline().unwrap();
    shared(&base.join("two"), &store, &world.tree).create_baseline().unwrap();
    let forgotten = one.forget(&world.path("keys")).unwrap();
    assert_eq!((forgotten.snapshots, forgotten.contents.len()), (1, 2));
    gc_compact(one.store()).unwrap();
    let holders = holders(one.store(), &forgotten.contents).unwrap();
    let of = |names: &[&str]| names.iter().map(|name| world.path(name)).collect::<BTreeSet<_>>();
    let expected =
        [(base.join("one"), of(&["copy"])), (base.join("two"), of(&["copy", "keys/a", "keys/deep/b"]))];
    assert_eq!(holders, expected);
    assert_eq!(one.load_manifest(0).unwrap().coverage.files, 1);

    // What is not there is no error, and what is not below a root is one.
    assert_eq!(one.forget(&world.path("nothing")).unwrap().snapshots, 0);
    assert!(matches!(one.forget(Path::new("/etc/passwd")), Err(SnapshotError::NotTracked { .. })));
    assert!(matches!(one.forget(&world.tree), Err(SnapshotError::NotTracked { .. })));
}

/// Space that both need is not counted for the first one; unneeded space is.
#[test]
fn shared_room_is_counted_once() {
    let world = World::new();
    let base = world.dir.path().canonicalize().unwrap();
    let store = base.join("store");
    world.write("both", noise(1 << 20, 1));
    let mut other = shared(&base.join("rollbacks/one"), &store, &world.tree);
    other.create_baseline().unwrap();
    let mine = |dir: &Path| dir.starts_with(base.join("projects"));
    let empty = shares(other.store(), &mine, &|_, _| false).unwrap();
    // One megabyte is kept for restores on a full disk, and belongs to no session.
    let kept = 1 << 20;
    assert!(empty.others >= 1 << 20 && empty.mine < kept + (1 << 17), "{empty:?}");

    let mut project = shared(&base.join("projects/one"), &store, &world.tree);
    project.create_baseline().unwrap();
    let same = shares(project.store(), &mine, &|_, _| false).unwrap();
    assert!(same.mine < kept + (1 << 17), "what the other has costs nothing: {same:?}");
    world.write("mine", noise(2 << 20, 2));
    world.write("large", noise(6 << 20, 3));
    project.create_incremental().unwrap();
    let more = shares(project.store(), &mine, &|_, _| false).unwrap();
    assert!((kept + (8 << 20)..kept + (9 << 20)).contains(&more.mine), "{more:?}");
    assert_eq!(more.mine + more.others, project.store().usage().unwrap().total());

    // Without its second snapshot it would need nothing of its own.
    let less = shares(project.store(), &mine, &|_, id| *id == SnapshotId::Number(1)).unwrap();
    assert!(less.live < kept + (1 << 17) && more.live > 8 << 20, "{less:?} {more:?}");

    // The other one goes: what it alone had is collected, what both had is the project's.
    drop(other);
    std::fs::remove_dir_all(base.join("rollbacks/one")).unwrap();
    let alone = shares(project.store(), &mine, &|_, _| false).unwrap();
    assert_eq!(alone.others, 0);
    assert_eq!(alone.mine, project.store().usage().unwrap().total());
    assert!(alone.mine >= 9 << 20);
}
