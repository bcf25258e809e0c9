//! Going back, parts of it, and taking that back.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use nono::rollback::live_lock::LiveLock;
use nono::rollback::{RestoreChoice, RollbackError};
use nono::snapshot::SnapshotId;

use super::world::{World, id, names, tree};

fn damage(world: &World) {
    world.write("new/deep/file", "made by the command");
    world.write("changed", "changed by the command");
    fs::remove_file(world.path("gone")).unwrap();
    fs::remove_dir_all(world.path("dir")).unwrap();
    symlink("/etc", world.path("dir")).unwrap();
    fs::set_permissions(world.path("tool"), fs::Permissions::from_mode(0o600)).unwrap();
    world.write("name\nwith \u{1b}[31m codes", "x");
}

fn project(world: &World) {
    world.write("changed", "as it was");
    world.write("gone", "will be deleted");
    world.write("dir/a", "a");
    world.write("dir/b/c", "c");
    world.write("tool", "#!/bin/sh\n");
    world.write("untouched", "nobody");
    fs::set_permissions(world.path("tool"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("changed", world.path("link")).unwrap();
}

#[test]
fn everything_comes_back_and_back_again() {
    let world = World::new();
    project(&world);
    let before = world.tree();
    let id = world.session(1, || damage(&world));
    let after = world.tree();
    let mut session = world.open(&id);

    let plan = session.plan(&RestoreChoice::everything()).unwrap();
    assert!(plan.kept.is_empty() && !plan.cannot_tell_conflicts, "{plan:?}");
    assert!(plan.changes.len() >= 7, "{plan:?}");
    assert_eq!(world.tree(), after, "a plan touches nothing");

    let done = session.restore(&RestoreChoice::everything()).unwrap();
    assert!(done.kept.is_empty() && done.failed.is_empty(), "{done:?}");
    assert_eq!(world.tree(), before);
    let restore = done.undo.unwrap();

    assert!(!session.plan_undo(None).unwrap().changes.is_empty());
    let undone = session.undo(None).unwrap();
    assert_eq!(world.tree(), after);
    let again = undone.undo.unwrap();
    assert_ne!(restore, again);

    // A second undo is no redo by accident; by its id it is one on purpose.
    assert!(matches!(session.undo(None), Err(RollbackError::NothingToUndo { .. })));
    assert!(matches!(session.undo(Some(&restore)), Err(RollbackError::UndoneAlready { .. })));
    session.undo(Some(&again)).unwrap();
    assert_eq!(world.tree(), before);
    // The restore counts again, so it can be undone again: after a new look at the folder, too.
    drop(session);
    let entry = world.catalogue.last_restored().unwrap();
    assert_eq!(entry.id, id);
    world.catalogue.open(entry).unwrap().undo(None).unwrap();
    assert_eq!(world.tree(), after);
    assert!(matches!(world.catalogue.last_restored(), Err(RollbackError::NoRestores)));
    assert!(matches!(world.open(&id).undo(Some("nothing.9")), Err(RollbackError::NoSuchRestore { .. })));
}

#[test]
fn a_root_that_was_removed_as_a_whole_comes_back() {
    let world = World::new();
    project(&world);
    let before = world.tree();
    let id = world.session(1, || fs::remove_dir_all(&world.project).unwrap());
    assert!(!world.project.exists());
    world.open(&id).restore(&RestoreChoice::everything()).unwrap();
    assert_eq!(world.tree(), before);
}

#[test]
fn nothing_to_do_is_nothing_to_undo() {
    let world = World::new();
    project(&world);
    let id = world.session(1, || {});
    let mut session = world.open(&id);
    let done = session.restore(&RestoreChoice::everything()).unwrap();
    assert_eq!(done.undo, None);
    assert!(matches!(session.undo(None), Err(RollbackError::NothingToUndo { .. })));
}

#[test]
fn to_the_baseline_and_to_the_last_is_no_conflict_with_ourselves() {
    let world = World::new();
    project(&world);
    let before = world.tree();
    let mut running = world.begin(1);
    world.write("changed", "half way");
    running.manager.create_incremental().unwrap();
    let half = world.tree();
    damage(&world);
    let id = running.end();
    let after = world.tree();
    let mut session = world.open(&id);
    let to = |snapshot: u32| RestoreChoice { snapshot: snapshot.into(), ..RestoreChoice::everything() };
    for (snapshot, expected) in [(0, &before), (2, &after), (1, &half), (0, &before), (1, &half), (2, &after)]
    {
        let done = session.restore(&to(snapshot)).unwrap();
        assert!(done.kept.is_empty(), "{snapshot}: {done:?}");
        assert_eq!(&world.tree(), expected, "{snapshot}");
    }
    // All the way back.
    for expected in [&half, &before, &half, &after, &before, &after] {
        let done = session.undo(None).unwrap();
        assert!(done.kept.is_empty(), "{done:?}");
        assert_eq!(&world.tree(), expected);
    }
    let missing = session.restore(&to(9));
    assert!(
        matches!(missing, Err(RollbackError::NoSnapshot { snapshot: SnapshotId::Number(9), .. })),
        "{missing:?}"
    );
}

#[test]
fn parts_are_restored_by_path_and_glob() {
    let world = World::new();
    project(&world);
    world.write("src/a.rs", "a");
    world.write("src/deep/b.rs", "b");
    world.write("src/c.txt", "c");
    world.write("*", "a strange name");
    let before = world.tree();
    let id = world.session(1, || {
        for name in ["src/a.rs", "src/deep/b.rs", "src/c.txt", "changed", "*"] {
            world.write(name, "command");
        }
        world.write("src/new.rs", "command");
    });
    let mut session = world.open(&id);
    let baseline = SnapshotId::Number(0);
    let resolve = |session: &nono::rollback::RollbackSession, typed: &[&str]| {
        let typed: Vec<OsString> = typed.iter().map(OsString::from).collect();
        session.resolve_paths(&baseline, &typed, &world.path("src")).map(|paths| names(&world, &paths))
    };
    for (typed, expected) in [
        (&["a.rs"][..], &["src/a.rs"][..]),
        (&["*.rs"], &["src/a.rs", "src/new.rs"]),
        (&["**/*.rs"], &["src/a.rs", "src/deep/b.rs", "src/new.rs"]),
        (&["{a,deep/b}.rs", "../changed"], &["changed", "src/a.rs", "src/deep/b.rs"]),
        (&["deep/", "deep/b.rs"], &["src/deep"]),
        (&["../*"], &["*"]),
        (&["..", "a.rs"], &[""]),
        (&["../.."], &[""]),
    ] {
        assert_eq!(resolve(&session, typed).unwrap(), expected, "{typed:?}");
    }
    for missing in ["nothing", "*.py", "/etc/passwd", "../../state"] {
        let found = resolve(&session, &[missing]);
        assert!(matches!(found, Err(RollbackError::NoSuchPath { .. })), "{missing}: {found:?}");
    }
    assert!(matches!(resolve(&session, &["[a"]), Err(RollbackError::Pattern { .. })));
    // By a link to the folder as well.
    symlink(&world.project, world.base.join("way")).unwrap();
    let by_link = session.resolve_paths(&baseline, &["a.rs".into()], &world.base.join("way/src")).unwrap();
    assert_eq!(names(&world, &by_link), ["src/a.rs"]);

    let choice = RestoreChoice {
        paths: vec![world.path("src")],
        except: vec![world.path("src/c.txt")],
        ..RestoreChoice::everything()
    };
    session.restore(&choice).unwrap();
    assert_eq!(world.read("src/a.rs"), "a");
    assert_eq!(world.read("src/deep/b.rs"), "b");
    assert!(!world.path("src/new.rs").exists());
    assert_eq!(world.read("src/c.txt"), "command");
    assert_eq!(world.read("changed"), "command");
    session.restore(&RestoreChoice::everything()).unwrap();
    assert_eq!(world.tree(), before);
}

#[test]
fn refused_while_a_session_is_live_on_the_roots() {
    let world = World::new();
    project(&world);
    let first = world.session(1, || damage(&world));
    let after = world.tree();
    let refused = |live: &str| {
        for result in [
            world.open(&first).restore(&RestoreChoice::everything()).map(|_| ()),
            world.open(&first).undo(None).map(|_| ()),
            world.open(&first).plan(&RestoreChoice::everything()).map(|_| ()),
        ] {
            match result {
                Err(RollbackError::Live { id, root }) => {
                    assert_eq!(id, live);
                    assert!(root.starts_with(&world.base), "{}", root.display());
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(world.tree(), after);
    };
    // On the same root, below it, above it.
    for (second, root) in [(2, world.project.clone()), (3, world.path("new")), (4, world.base.clone())] {
        let running = world.begin_on(second, &[&root]);
        refused(&id(second));
        running.end();
    }
    // One that has not said yet what it tracks, and this one itself.
    let (dir, live) = world.catalogue.begin_session(&id(5), &[]).unwrap();
    refused(&id(5));
    live.end(&dir).unwrap();
    let dir = world.catalogue.find(&first).unwrap().dir;
    let live = LiveLock::begin(&dir).unwrap();
    refused(&first);
    live.end(&dir).unwrap();
    // Other roots are not disturbed.
    let other = world.base.join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("file"), "x").unwrap();
    let running = world.begin_on(6, &[&other]);
    world.open(&first).restore(&RestoreChoice::everything()).unwrap();
    running.end();
    assert_eq!(tree(&other).len(), 2);
}

#[test]
fn two_sessions_on_one_tree_are_both_restorable() {
    let world = World::new();
    project(&world);
    let before = world.tree();
    let first = world.begin(1);
    world.write("changed", "by the first");
    let between = world.tree();
    let second = world.begin(2);
    world.write("untouched", "by the second");
    let (first, second) = (first.end(), second.end());
    let done = world.open(&second).restore(&RestoreChoice::everything()).unwrap();
    assert!(done.kept.is_empty(), "{done:?}");
    assert_eq!(world.tree(), between);
    // For the first session, what the second one took back is a change since it ended: forced.
    let force = RestoreChoice { conflicts: nono::rollback::Conflicts::Force, ..RestoreChoice::everything() };
    world.open(&first).restore(&force).unwrap();
    assert_eq!(world.tree(), before);
}
