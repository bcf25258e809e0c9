//! Which folder a path belongs to.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nono_checkpoint::project::Why;
use nono_checkpoint::{CheckpointError, Ensured, Origin};

use nono_testkit::sh;

use crate::common::{World, origin, taken};

fn root(world: &World, path: impl AsRef<Path>) -> (PathBuf, Why) {
    let root = world.manager().root_of(path.as_ref()).unwrap();
    (root.dir, root.why)
}

#[test]
fn the_nearest_marker_else_the_folder_itself() {
    let world = World::new();
    let home = &world.host.home;
    assert_eq!(root(&world, world.path("a/b")), (world.tree.clone(), Why::Itself));
    for marker in nono_checkpoint::project::MARKERS {
        let dir = home.join("by-marker").join(marker);
        std::fs::create_dir_all(dir.join("src/deep")).unwrap();
        std::fs::write(dir.join(marker), "").unwrap();
        for path in [dir.join("src/deep"), dir.join("src/deep/not/there/yet"), dir.clone()] {
            assert_eq!(root(&world, path), (dir.clone(), Why::Marker(marker)));
        }
    }
    let crates = world.path("crates/a");
    std::fs::create_dir_all(crates.join("src")).unwrap();
    world.write("Cargo.toml", "");
    world.write("crates/a/Cargo.toml", "");
    assert_eq!(root(&world, crates.join("src/x.rs")), (crates.clone(), Why::Marker("Cargo.toml")));
    // What has a history counts before a marker below it.
    world.create();
    assert_eq!(root(&world, crates.join("src/x.rs")), (world.tree.clone(), Why::Registered));
    // A folder without any marker in which a file was edited does not take the projects below it.
    let loose = home.join("loose");
    std::fs::create_dir_all(loose.join("project/.git")).unwrap();
    std::fs::write(loose.join("note"), "x").unwrap();
    taken(world.manager().create(&loose.join("note"), "r", &Origin::default()));
    assert_eq!(root(&world, loose.join("project/x")), (loose.join("project"), Why::Marker(".git")));
    assert_eq!(root(&world, loose.join("sub/x")), (loose.clone(), Why::Registered));
}

#[test]
fn worktrees_are_their_own_also_inside() {
    let world = World::new();
    world
        .sh("git init -q . && echo 1 > a && git add a && git commit -qm one && git worktree add -q .trees/x");
    world.create();
    assert_eq!(root(&world, world.path(".trees/x/a")), (world.path(".trees/x"), Why::Marker(".git")));
    assert_eq!(root(&world, world.path(".git/config")).0, world.tree);
}

#[test]
fn too_broad_is_refused() {
    let world = World::new();
    let home = world.host.home.clone();
    sh(&home, "git init -q .");
    let above = home.parent().unwrap().to_owned();
    let broad = [
        PathBuf::from("/"),
        PathBuf::from("/x"),
        "/tmp/not-there-at-all".into(),
        "/etc/passwd".into(),
        "/home/somebody/x".into(),
        "/proc/self/status".into(),
        "/dev/null".into(),
        home.clone(),
        home.join("notes.txt"),
        above,
    ];
    for path in broad {
        let error = world.manager().root_of(&path).unwrap_err();
        assert!(matches!(error, CheckpointError::TooBroad { .. }), "{}: {error}", path.display());
        let ensured = world.manager().create(&path, "r", &Origin::default());
        assert!(matches!(ensured, Ensured::Failed { .. }), "{ensured:?}");
    }
    // The home folder's own repository is not that of what is in it.
    assert_eq!(root(&world, world.path("x")), (world.tree.clone(), Why::Itself));
    assert!(world.manager().root_of(&world.host.state_dir.join("store/x")).is_err());
    assert!(!nono_checkpoint::unprotected::without_project(&world.host).is_empty());
}

#[test]
fn links_lead_to_the_project_that_is_written_to() {
    let world = World::new();
    let other = world.host.home.join("work/other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("target"), "x").unwrap();
    world.write("Makefile", "");
    symlink(other.join("target"), world.path("file")).unwrap();
    symlink(&other, world.path("dir")).unwrap();
    symlink("../other/not-there", world.path("dangling")).unwrap();
    symlink("loop", world.path("loop")).unwrap();
    for path in ["file", "dir/x", "dir", "dangling", "dir/../other/x"] {
        assert_eq!(root(&world, world.path(path)).0, other, "{path}");
    }
    assert_eq!(root(&world, world.path("loop-not/../x")).0, world.tree);
    assert!(world.manager().root_of(&world.path("loop")).is_err());
    let odd = std::ffi::OsStr::from_encoded(b"odd\xff");
    assert_eq!(root(&world, world.tree.join(odd).join("x")).0, world.tree);
}

/// A name that is no text.
trait FromEncoded {
    fn from_encoded(bytes: &[u8]) -> &Self;
}

impl FromEncoded for std::ffi::OsStr {
    fn from_encoded(bytes: &[u8]) -> &std::ffi::OsStr {
        std::os::unix::ffi::OsStrExt::from_bytes(bytes)
    }
}

#[test]
fn a_target_elsewhere_is_the_project_there() {
    let world = World::new();
    let other = world.host.home.join("work/other");
    std::fs::create_dir_all(other.join("src")).unwrap();
    std::fs::write(other.join("go.mod"), "").unwrap();
    let ensured = world.manager().create(&other.join("src/new.go"), "r", &Origin::default());
    let Ensured::Taken { project, .. } = ensured else { panic!("{ensured:?}") };
    assert_eq!(project, other);
}

/// From inside a sandbox: what the command takes displaces what it took itself.
#[test]
fn a_flood_from_a_sandbox_leaves_what_was_there_before() {
    let world = World::new();
    world.write("precious", "1");
    let by_hand = world.create();
    let inside = |turn: usize| nono_checkpoint::Origin {
        run: Some("run".to_owned()),
        ..origin("s", &turn.to_string(), "c")
    };
    world.write("precious", "2");
    let first = taken(world.manager().begin_run(&world.tree, "before run", &inside(0)));
    std::fs::remove_file(world.path("precious")).unwrap();
    for turn in 1..40 {
        world.write("flood", turn.to_string());
        taken(world.manager().ensure_checkpoint(&world.tree, "flood", &inside(turn)));
    }
    let list = world.manager().list(&world.tree).unwrap();
    assert_eq!(list.len(), 20);
    for id in [by_hand.id, first.id] {
        assert!(list.iter().any(|line| line.id == id), "{id}");
    }
}

/// A process in a sandbox cannot use up a turn of a conversation outside.
#[test]
fn turns_belong_to_the_sandbox_they_were_told_from() {
    let world = World::new();
    world.write("a", "1");
    let outside = origin("s", "4", "c");
    let forged = nono_checkpoint::Origin { run: Some("run".to_owned()), ..outside.clone() };
    taken(world.manager().ensure_checkpoint(&world.tree, "forged", &forged));
    world.write("a", "a person's edit");
    taken(world.manager().ensure_checkpoint(&world.tree, "before edit", &outside));
}
