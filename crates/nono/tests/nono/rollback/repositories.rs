//! A real repository after a session: looked at, it is still what the session left; worked in, it is the person's.

use std::fs;

use nono::rollback::{Conflicts, Plan, RestoreChoice};
use nono_testkit::sh;

use super::world::{World, names};

fn repository() -> World {
    let world = World::new();
    world.write("src/main.rs", "fn main() {}\n");
    world.write("readme", "read me\n");
    sh(&world.project, "git init -q .; git add -A; git commit -qm one");
    world
}

/// What the command does: it plants a hook, and more.
fn plant(world: &World) {
    let script = "mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; \
touch notes; rm src/main.rs; echo more >> readme; git add readme";
    sh(&world.project, script);
}

/// Make git look again, and write down that it did: the same file at another place on the disk.
#[track_caller]
fn look(world: &World, index: &str) {
    let before = fs::read(world.path(index)).unwrap();
    // Git goes by inodes and whole seconds: a copy that happens to get the number it knew looks unchanged.
    for _ in 0..50 {
        sh(
            &world.project,
            "cp -p readme again; mv again readme; git status; git -C . submodule -q foreach git status",
        );
        if before != fs::read(world.path(index)).unwrap() {
            return;
        }
    }
    panic!("git did not write {index}");
}

fn kept(world: &World, plan: &Plan) -> Vec<String> {
    names(world, plan.kept.iter().map(|skipped| &skipped.path))
}

#[test]
fn reading_a_repository_does_not_make_it_a_conflict() {
    let world = repository();
    let before = world.tree();
    let id = world.session(1, || plant(&world));
    look(&world, ".git/index");
    let after = world.tree();
    let mut session = world.open(&id);
    let plan = session.plan(&RestoreChoice::everything()).unwrap();
    assert!(plan.kept.is_empty() && plan.still_executes.is_empty(), "{plan:?}");
    let mut changed = names(&world, plan.changes.to_vec().iter().map(|change| &change.path));
    changed.retain(|path| !path.contains("objects"));
    changed.sort();
    assert_eq!(changed, [".git/hooks/pre-commit", ".git/index", "notes", "readme", "src/main.rs"]);

    let done = session.restore(&RestoreChoice::everything()).unwrap();
    assert!(done.kept.is_empty() && done.failed.is_empty(), "{done:?}");
    assert_eq!(world.tree(), before);
    sh(&world.project, "git fsck --strict; test -z \"$(git status --porcelain)\"");

    // That was another look. There and back, with one at every turn.
    for turn in 0..2 {
        look(&world, ".git/index");
        let plan = session.plan_undo(None).unwrap();
        assert!(plan.kept.is_empty(), "{turn}: {plan:?}");
        let undone = session.undo(None).unwrap();
        assert!(undone.kept.is_empty() && undone.failed.is_empty(), "{turn}: {undone:?}");
        if turn == 0 {
            assert_eq!(world.tree(), after);
        }
        assert!(world.path(".git/hooks/pre-commit").exists());
        look(&world, ".git/index");
        let done = session.restore(&RestoreChoice::everything()).unwrap();
        assert!(done.kept.is_empty() && done.failed.is_empty(), "{turn}: {done:?}");
        assert_eq!(world.tree(), before);
    }
    // The undo of an undo.
    let undone = session.undo(None).unwrap();
    look(&world, ".git/index");
    let done = session.undo(undone.undo.as_deref()).unwrap();
    assert!(done.kept.is_empty() && done.failed.is_empty(), "{done:?}");
    assert_eq!(world.tree(), before);
}

#[test]
fn work_in_a_repository_is_kept_whole_and_what_runs_is_said() {
    let hooked = "chmod -x .git/hooks/pre-commit; git commit -qam two";
    for work in [
        hooked,
        "git add notes",
        "git config a.b c",
        "git branch new",
        "git update-index --skip-worktree readme",
    ] {
        let world = repository();
        let before = world.tree();
        let id = world.session(1, || plant(&world));
        sh(&world.project, work);
        let edited = world.tree();
        let mut session = world.open(&id);
        let plan = session.plan(&RestoreChoice::everything()).unwrap();
        assert_eq!(kept(&world, &plan), [".git"], "{work}");
        let done = session.restore(&RestoreChoice::everything()).unwrap();
        assert_eq!(done.still_executes, plan.still_executes);
        let [(path, later)] = done.still_executes.as_slice() else { panic!("{work}: {done:?}") };
        assert_eq!((path, later.what), (&world.path(".git/hooks/pre-commit"), "git hook"));
        let repository = |tree: &super::world::Tree| {
            let mut tree = tree.clone();
            tree.retain(|path, _| path.starts_with(world.path(".git")));
            tree
        };
        assert_eq!(repository(&world.tree()), repository(&edited), "{work}");
        assert_eq!(world.read("src/main.rs"), "fn main() {}\n");
        sh(&world.project, "git fsck --strict");

        // A look by the person does not bring an undo into their work, and takes nothing from it.
        let undone = session.undo(None).unwrap();
        assert!(undone.kept.is_empty(), "{work}: {undone:?}");
        assert_eq!(world.tree(), edited);
        let choice = RestoreChoice { conflicts: Conflicts::Force, ..RestoreChoice::everything() };
        let done = session.restore(&choice).unwrap();
        assert!(done.still_executes.is_empty(), "{done:?}");
        assert_eq!(world.tree(), before);
    }
}

/// What was removed since does not run.
#[test]
fn a_hook_that_is_gone_is_not_said_to_run() {
    let world = repository();
    let id = world.session(1, || plant(&world));
    sh(&world.project, "rm .git/hooks/pre-commit; git config a.b c");
    let plan = world.open(&id).plan(&RestoreChoice::everything()).unwrap();
    assert_eq!(kept(&world, &plan), [".git"]);
    assert!(plan.still_executes.is_empty(), "{plan:?}");
}

#[test]
fn of_a_repository_that_was_looked_at_only_what_is_chosen_is_restored() {
    let world = repository();
    let id = world.session(1, || {
        plant(&world);
        sh(&world.project, "git config core.pager evil");
    });
    look(&world, ".git/index");
    let after = world.tree();
    let mut session = world.open(&id);
    let hook = world.path(".git/hooks/pre-commit");
    let except = RestoreChoice { except: vec![hook.clone()], ..RestoreChoice::everything() };
    session.restore(&except).unwrap();
    assert!(hook.exists() && !world.read(".git/config").contains("evil"));
    session.undo(None).unwrap();
    assert_eq!(world.tree(), after);

    let only = RestoreChoice { paths: vec![hook.clone()], ..RestoreChoice::everything() };
    let plan = session.plan(&only).unwrap();
    assert_eq!(
        names(&world, plan.changes.to_vec().iter().map(|change| &change.path)),
        [".git/hooks/pre-commit"]
    );
    let done = session.restore(&only).unwrap();
    assert!(done.kept.is_empty(), "{done:?}");
    assert!(!hook.exists() && world.read(".git/config").contains("evil"));
    session.undo(None).unwrap();
    assert_eq!(world.tree(), after);
}

#[test]
fn worktrees_and_submodules_have_an_index_each() {
    let world = repository();
    let other = world.base.join("other");
    let script = format!(
        "git init -q {other}; cd {other}; echo one > one; git add one; git commit -qm one; cd {project}; \
git -c protocol.file.allow=always submodule -q add {other} sub; git commit -qm sub; git worktree add -q tree -b b",
        other = other.display(),
        project = world.project.display()
    );
    sh(&world.project, &script);
    let before = world.tree();
    let id = world.session(1, || plant(&world));
    let indexes = [".git/modules/sub/index", ".git/worktrees/tree/index"];
    let read = || indexes.map(|index| fs::read(world.path(index)).unwrap());
    let were = read();
    sh(
        &world.project,
        "for at in sub/one tree/readme; do cp -p $at again; mv again $at; git -C $(dirname $at) status; done",
    );
    for (index, (were, are)) in indexes.iter().zip(were.iter().zip(read())) {
        assert_ne!(were, &are, "git did not write {index}");
    }
    let mut session = world.open(&id);
    let done = session.restore(&RestoreChoice::everything()).unwrap();
    assert!(done.kept.is_empty() && done.failed.is_empty(), "{done:?}");
    assert_eq!(world.tree(), before);

    sh(&world.project, "echo two > sub/two; git -C sub add two");
    session.undo(None).unwrap();
    let plan = session.plan(&RestoreChoice::everything()).unwrap();
    assert!(kept(&world, &plan).contains(&".git".to_owned()), "{plan:?}");
}
