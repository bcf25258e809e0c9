//! Paths that a session tracks only since some moment of it: all that is done with a session is done with them, too.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use nono::rollback::{ItemKind, RestoreChoice, Status};
use nono::snapshot::SnapshotId;
use nono::snapshot::restore::Why;

use super::world::{Running, Tree, World, tree};

/// A session on the project that runs, and what stands beside it and joined.
struct Late {
    world: World,
    names: &'static [&'static str],
    running: Running,
    /// What undoing the session brings back.
    before: Vec<Tree>,
}

/// `make` makes what is to join, beside the project; then they join, after the command changed something already.
fn begin(names: &'static [&'static str], make: impl FnOnce(&World)) -> Late {
    let world = World::new();
    world.write("f", "first");
    make(&world);
    let before = there(&world, names);
    let mut running = world.begin(1);
    world.write("f", "second");
    running.manager.create_incremental().unwrap();
    for name in names {
        let path = world.base.join(name);
        assert!(running.manager.add_root(&path).unwrap().is_some(), "{name}");
    }
    running.metadata.tracked_paths = running.manager.roots().to_vec();
    running.manager.save_session_metadata(&running.metadata).unwrap();
    Late { world, names, running, before }
}

fn there(world: &World, names: &[&str]) -> Vec<Tree> {
    let all = names.iter().map(|name| world.base.join(name)).chain([world.project.clone()]);
    all.filter(|path| path.symlink_metadata().is_ok()).map(|path| tree(&path)).collect()
}

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

impl Late {
    /// The command does something and ends; then the session is undone, and that is undone, and that again.
    fn undone(self, work: impl FnOnce(&World)) -> (World, String) {
        let Late { world, names, running, before } = self;
        work(&world);
        let id = running.end();
        check(&world, &id, names, &before);
        (world, id)
    }
}

fn check(world: &World, id: &str, names: &[&str], before: &[Tree]) {
    let after = there(world, names);
    assert_ne!(after, before);
    assert_eq!(world.catalogue.find(id).unwrap().metadata.tracked_paths.len(), names.len() + 1);
    let done = world.open(id).restore(&RestoreChoice::everything()).unwrap();
    assert!(done.kept.is_empty() && done.failed.is_empty(), "{done:?}");
    assert_eq!(there(world, names), before);
    let redone = world.open(id).undo(done.undo.as_deref()).unwrap();
    assert!(redone.kept.is_empty() && redone.failed.is_empty(), "{redone:?}");
    assert_eq!(there(world, names), after);
    let again = world.open(id).undo(redone.undo.as_deref()).unwrap();
    assert!(again.kept.is_empty() && again.failed.is_empty(), "{again:?}");
    assert_eq!(there(world, names), before);
    let verified = world.open(id).verify().unwrap();
    assert!(verified.problems.is_empty(), "{verified:?}");
}

#[test]
fn a_file_is_undone_and_shown() {
    let late = begin(&["late"], |world| write(world.base.join("late"), "before"));
    let (world, id) = late.undone(|world| write(world.base.join("late"), "by the command"));
    let session = world.open(&id);
    let changes = session.changes(&SnapshotId::Number(0), &session.last().unwrap()).unwrap();
    let items: Vec<_> = changes.items.into_iter().map(|item| (item.path, item.kind)).collect();
    assert_eq!(items, [(world.base.join("late"), ItemKind::Modified), (world.path("f"), ItemKind::Modified)]);
    assert_eq!(session.coverage(&SnapshotId::Number(0)).unwrap().files, 2);
    let chosen = session.resolve_paths(&SnapshotId::Number(0), &["late".into()], &world.base).unwrap();
    assert_eq!(chosen, [world.base.join("late")]);
}

#[test]
fn what_was_not_there_goes_again() {
    let late = begin(&["late"], |_| ());
    let (world, id) = late.undone(|world| write(world.base.join("late"), "by the command"));
    assert!(!world.base.join("late").exists());
    let session = world.open(&id);
    let changes = session.changes(&SnapshotId::Number(0), &session.last().unwrap()).unwrap();
    assert_eq!((changes.counts().created, changes.counts().modified), (1, 1));
}

#[test]
fn a_directory_with_a_link_in_it_is_undone() {
    let late = begin(&["late"], |world| {
        write(world.base.join("late/dir/f"), "before");
        write(world.base.join("outside/f"), "somebody else's");
    });
    let outside = tree(&late.world.base.join("outside"));
    let (world, _) = late.undone(|world| {
        fs::remove_dir_all(world.base.join("late/dir")).unwrap();
        symlink(world.base.join("outside"), world.base.join("late/dir")).unwrap();
        symlink("/etc/passwd", world.base.join("late/planted")).unwrap();
    });
    assert_eq!(tree(&world.base.join("outside")), outside);
}

/// Two around each other, one in the project where it is ignored.
#[test]
fn roots_in_roots_are_undone() {
    let names = &["around/in", "around", "project/.env", "project/.new.env"];
    let late = begin(names, |world| {
        fs::create_dir(world.path(".git")).unwrap();
        world.write(".gitignore", "*.env\n");
        world.write(".env", "before");
        write(world.base.join("around/in/f"), "before");
        write(world.base.join("around/f"), "before");
    });
    let (world, _) = late.undone(|world| {
        world.write(".env", "by the command");
        world.write(".new.env", "by the command");
        fs::remove_dir_all(world.base.join("around")).unwrap();
    });
    assert!(!world.path(".new.env").exists());
}

#[test]
fn a_killed_session_is_undone() {
    let Late { world, names, running, before } = begin(&["late", "new"], |world| {
        write(world.base.join("late/f"), "before");
    });
    write(world.base.join("late/f"), "by the command");
    write(world.base.join("new"), "by the command");
    let id = running.killed();
    assert_eq!(world.catalogue.find(&id).unwrap().status, Status::Interrupted);
    check(&world, &id, names, &before);
}

/// What was changed after the session is kept, as everywhere.
#[test]
fn changes_since_the_session_are_kept() {
    let Late { world, running, .. } = begin(&["late"], |world| {
        write(world.base.join("late/a"), "before");
        write(world.base.join("late/b"), "before");
    });
    for name in ["a", "b"] {
        write(world.base.join("late").join(name), "by the command");
    }
    let id = running.end();
    write(world.base.join("late/a"), "by somebody else");
    let done = world.open(&id).restore(&RestoreChoice::everything()).unwrap();
    let kept: Vec<_> = done.kept.iter().map(|kept| (kept.path.clone(), kept.why.clone())).collect();
    assert_eq!(kept, [(world.base.join("late/a"), Why::ChangedSince)]);
    let read = |name: &str| fs::read_to_string(world.base.join("late").join(name)).unwrap();
    assert_eq!(
        (read("a"), read("b"), world.read("f")),
        ("by somebody else".into(), "before".into(), "first".into())
    );
}

/// A session that runs keeps restores of others away from what joined it.
#[test]
fn others_do_not_restore_what_joined() {
    let world = World::new();
    let other = world.base.join("other");
    write(other.join("f"), "first");
    let first = world.begin_on(1, &[&other]);
    write(other.join("f"), "second");
    let first = first.end();
    let mut running = world.begin(2);
    running.manager.add_root(&other).unwrap().unwrap();
    running.metadata.tracked_paths = running.manager.roots().to_vec();
    running.manager.save_session_metadata(&running.metadata).unwrap();
    let refused = world.open(&first).restore(&RestoreChoice::everything());
    assert!(matches!(refused, Err(nono::rollback::RollbackError::Live { .. })), "{refused:?}");
    running.end();
    world.open(&first).restore(&RestoreChoice::everything()).unwrap();
    assert_eq!(fs::read_to_string(other.join("f")).unwrap(), "first");
}

/// One bit of what only the first state of a late root has.
#[test]
fn damage_is_found() {
    let Late { world, running, .. } = begin(&["late"], |world| {
        write(world.base.join("late"), "a content that is nowhere else");
    });
    write(world.base.join("late"), "by the command");
    let id = running.end();
    assert!(world.open(&id).verify().unwrap().problems.is_empty());
    let packs = fs::read_dir(world.catalogue.store_dir().join("packs")).unwrap();
    let mut damaged = 0;
    for path in packs.map(|entry| entry.unwrap().path()) {
        let mut bytes = fs::read(&path).unwrap();
        let content = b"a content that is nowhere else";
        if let Some(at) = bytes.windows(content.len()).position(|window| window == content) {
            bytes[at + 5] ^= 1;
            fs::write(&path, bytes).unwrap();
            damaged += 1;
        }
    }
    assert_eq!(damaged, 1, "it is stored once, as it is");
    let verified = world.open(&id).verify().unwrap();
    assert!(!verified.problems.is_empty());
}
