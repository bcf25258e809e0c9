//! Repositories: their contents are in the checkpoint, and nothing is written into one that is there.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nono_checkpoint::{CheckpointChoice, CheckpointError};

use nono_testkit::sh;

use crate::common::{World, kept, taken, text};

/// Everything below a folder: bytes, and the moment of the last change of any kind.
fn state(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, i64, i64)> {
    let mut all = BTreeMap::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            if meta.is_dir() {
                waiting.push(path.clone());
            }
            let bytes = if meta.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            all.insert(path, (bytes, meta.ctime(), meta.ctime_nsec()));
        }
    }
    all
}

#[test]
fn a_repository_that_is_there_is_not_written_to() {
    let world = World::new();
    world.write("a", "1");
    world.sh("git init -q . && git add a && git commit -qm one");
    taken(
        world.call("t1", || world.sh("echo 2 > a; echo 2 > b; git add -A; git commit -qm two; git branch x")),
    );
    let before = state(&world.path(".git"));
    let outcome = world.restore("1");
    assert_eq!(state(&world.path(".git")), before);
    assert_eq!((world.read("a").as_str(), world.exists("b")), ("1", false));
    assert!(outcome.kept.is_empty(), "{outcome:?}");
    world.manager().undo(&world.tree).unwrap();
    assert_eq!(state(&world.path(".git")), before);
    // Asked for, it goes back with the rest.
    world.restore_with("1", &CheckpointChoice { with_git: true, ..CheckpointChoice::default() });
    world.sh("test $(git rev-list --count HEAD) = 1; ! git rev-parse -q --verify x; git diff --quiet HEAD");
    // Named alone it is told that it stays.
    world.sh("git branch y");
    let named = CheckpointChoice { paths: vec![world.path(".git")], ..CheckpointChoice::default() };
    assert_eq!(kept(&world.restore_with("1", &named)), [world.path(".git")]);
    // A part of it is never written.
    for with_git in [false, true] {
        let part = CheckpointChoice {
            paths: vec![world.path(".git/refs")],
            with_git,
            ..CheckpointChoice::default()
        };
        let refused = world.manager().restore(&world.tree, &text("1"), &part).unwrap_err();
        assert!(matches!(refused, CheckpointError::PartOfRepository { .. }), "{refused}");
    }
    world.sh("git rev-parse -q --verify y");
}

#[test]
fn a_repository_that_was_deleted_comes_back_whole() {
    let world = World::new();
    world.write("a", "1");
    world.sh("git init -q . && git add a && git commit -qm one && git tag t && git gc -q");
    world.write("sub/inner/x", "1");
    sh(&world.path("sub/inner"), "git init -q . && git add x && git commit -qm inner");
    taken(world.call("t1", || world.sh("rm -rf .git sub a")));
    world.restore("1");
    world.sh("git fsck --strict; git diff --quiet HEAD; test $(git log --format=%s t) = one");
    sh(&world.path("sub/inner"), "git fsck --strict; git diff --quiet HEAD");
}

#[test]
fn nested_repositories_are_left_alone_with_their_contents_captured() {
    let world = World::new();
    world.sh("git init -q .");
    world.write("vendor/lib/x", "1");
    sh(&world.path("vendor/lib"), "git init -q . && git add x && git commit -qm one");
    taken(world.call("t1", || {
        sh(&world.path("vendor/lib"), "echo 2 > x; git commit -qam two");
        world.sh(
            "mkdir fresh && cd fresh && git init -q . && echo 1 > y && git add y && git commit -qm fresh",
        );
    }));
    let before = (state(&world.path("vendor/lib/.git")), state(&world.path("fresh/.git")));
    let outcome = world.restore("1");
    assert_eq!(world.read("vendor/lib/x"), "1");
    assert!(!world.exists("fresh/y"));
    assert_eq!((state(&world.path("vendor/lib/.git")), state(&world.path("fresh/.git"))), before);
    assert_eq!(kept(&outcome), [world.path("fresh/.git")]);
}

#[test]
fn submodules_worktrees_and_repositories_without_commits() {
    let world = World::new();
    let library = world.host.home.join("library");
    std::fs::create_dir(&library).unwrap();
    sh(&library, "git init -q . && echo 1 > l && git add l && git commit -qm one");
    world.sh(&format!(
        "git init -q . && git -c protocol.file.allow=always submodule --quiet add {} sub && git commit -qm s",
        library.display()
    ));
    assert!(world.path("sub/.git").is_file());
    taken(world.call("t1", || world.sh("echo 2 > sub/l; rm sub/.git; git worktree add -q ../tree")));
    world.restore("1");
    assert_eq!(world.read("sub/l"), "1\n");
    sh(&world.path("sub"), "git diff --quiet HEAD");
    // A worktree is a project of its own.
    let worktree = world.host.home.join("work/tree");
    assert_eq!(world.manager().root_of(&worktree.join("sub")).unwrap().dir, worktree);
    let empty = world.host.home.join("work/empty");
    std::fs::create_dir(&empty).unwrap();
    sh(&empty, "git init -q . && echo 1 > untracked");
    let mut manager = world.manager();
    taken(manager.create(&empty, "r", &nono_checkpoint::Origin::default()));
    sh(&empty, "rm -rf untracked .git");
    manager.restore(&empty, &crate::common::text("1"), &CheckpointChoice::default()).unwrap();
    sh(&empty, "test -e untracked; git status >/dev/null");
}

#[test]
fn bytes_are_bytes_whatever_attributes_say() {
    let world = World::new();
    world.write(".gitattributes", "* text=auto eol=lf\n*.ident ident\n*.lfs filter=lfs\n");
    world.write("crlf.txt", "a\r\nb\r\n");
    world.write("x.ident", "$Id$\n");
    world.write("x.lfs", "not a pointer\r\n");
    world.sh("git init -q . && git add -A 2>/dev/null && git commit -qm one");
    world.write("crlf.txt", "a\r\nb\r\nc\r\n");
    taken(world.call("t1", || world.sh("for f in crlf.txt x.ident x.lfs; do printf 'lf\\n' > $f; done")));
    world.restore("1");
    assert_eq!(world.read("crlf.txt"), "a\r\nb\r\nc\r\n");
    assert_eq!(
        (world.read("x.ident").as_str(), world.read("x.lfs").as_str()),
        ("$Id$\n", "not a pointer\r\n")
    );
}
