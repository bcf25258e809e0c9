//! What comes back is what was there; what is not covered is named, and not touched.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use nono_checkpoint::{Config, Ensured, Ignored, Origin};
use nono_snapshot::{Cause, Loss};

use nono_testkit::as_user;

use crate::common::{World, taken, text};

fn mode(world: &World, name: &str) -> u32 {
    world.path(name).symlink_metadata().unwrap().permissions().mode() & 0o7777
}

#[test]
fn links_modes_and_empty_folders() {
    let world = World::new();
    world.write("run.sh", "#!/bin/sh");
    world.write("hard-1", "one file");
    world.sh("chmod 751 run.sh; ln hard-1 hard-2; mkdir -p empty/deep; chmod 2770 empty/deep");
    symlink("run.sh", world.path("link")).unwrap();
    symlink("/nowhere/at all", world.path("dangling")).unwrap();
    let odd = std::ffi::OsStr::from_bytes(b"odd\xff\nname");
    std::fs::write(world.tree.join(odd), "x").unwrap();
    world.create();
    world.sh("chmod 600 run.sh; rm -r link dangling empty hard-2 odd*; ln -s other link; mkdir dangling");
    let outcome = world.restore("1");
    assert!(outcome.kept.is_empty(), "{outcome:?}");
    assert_eq!((mode(&world, "run.sh"), mode(&world, "empty/deep")), (0o751, 0o2770));
    let link = |name: &str| std::fs::read_link(world.path(name)).unwrap();
    assert_eq!((link("link").to_str(), link("dangling").to_str()), (Some("run.sh"), Some("/nowhere/at all")));
    world.sh("test hard-1 -ef hard-2");
    assert_eq!(std::fs::read(world.tree.join(odd)).unwrap(), b"x");
}

fn with_ignored() -> World {
    let world = World::new();
    world.write(".gitignore", "*.log\nbuild/\n");
    world.write("a", "1");
    world.write("run.log", "1");
    world.write("build/out", "1");
    world.write("package-lock.json", "{}");
    for number in 0..300 {
        world.write(&format!("node_modules/p{number}/index.js"), "x");
    }
    world.sh("git init -q .");
    world
}

/// The causes of what a checkpoint left out, each with how many names.
fn left_out(ensured: Ensured) -> Vec<(Cause, u64)> {
    let Ensured::Taken { coverage, .. } = ensured else { panic!("{ensured:?}") };
    coverage.left_out.iter().map(|one| (one.cause, one.entries)).collect()
}

#[test]
fn what_is_ignored_is_captured_and_output_is_not() {
    let world = with_ignored();
    let ensured = world.manager().create(&world.tree, "r", &Origin::default());
    assert_eq!(left_out(ensured), [(Cause::Artifact, 1)]);
    world.sh("echo 2 > a; echo 2 > run.log; rm -r build; rm -r node_modules; rm .gitignore");
    let outcome = world.restore("1");
    assert_eq!((world.read("a").as_str(), world.read("run.log").as_str()), ("1", "1"));
    assert!(world.exists("build/out") && world.exists(".gitignore"));
    let lost: Vec<_> = outcome.lost.iter().map(|lost| (lost.path.clone(), lost.how)).collect();
    assert_eq!(lost, [(world.path("node_modules"), Loss::Gone)]);
    assert!(!outcome.is_whole());
}

#[test]
fn a_large_ignored_folder_is_left_out_by_name() {
    let world = with_ignored();
    world.sh("head -c 2000000 /dev/zero | tr '\\0' x > build/large");
    let config = Config { max_ignored_folder_mb: 1, ..Config::default() };
    let mut manager = world.manager_with(&config);
    let ensured = manager.create(&world.tree, "r", &Origin::default());
    assert_eq!(left_out(ensured), [(Cause::TooLarge, 1), (Cause::Artifact, 1)]);
    world.sh("rm build/out");
    let outcome = world.restore("1");
    let lost: Vec<_> = outcome.lost.iter().map(|lost| (lost.path.clone(), lost.how)).collect();
    assert_eq!(lost, [(world.path("build"), Loss::Changed)]);
}

/// The way of before, by a setting.
#[test]
fn what_is_ignored_is_named_and_stays() {
    let world = with_ignored();
    let config = Config { ignored: Ignored::LeaveOut, ..Config::default() };
    let ensured = world.manager_with(&config).create(&world.tree, "r", &Origin::default());
    assert_eq!(left_out(ensured), [(Cause::Ignored, 2), (Cause::Artifact, 1)]);
    world.sh("echo 2 > a; echo 2 > run.log; rm -r build; echo 2 > node_modules/p1/index.js; rm .gitignore");
    let outcome = world.restore("1");
    assert_eq!((world.read("a").as_str(), world.read("run.log").as_str()), ("1", "2\n"));
    assert!(!world.exists("build") && world.exists(".gitignore"));
    assert_eq!(outcome.lost.iter().map(|lost| lost.how).collect::<Vec<_>>(), [Loss::Gone, Loss::Changed]);
    assert_eq!(world.read("node_modules/p1/index.js"), "2\n");
}

#[test]
fn what_cannot_be_read_is_named_and_stays() {
    as_user("engine::fidelity::what_cannot_be_read_is_named_and_stays", |place| {
        let world = World::at(place);
        world.write("a", "1");
        world.write("closed", "secret");
        world.write("shut/x", "1");
        world.sh("chmod 000 closed; chmod 000 shut");
        let ensured = world.manager().create(&world.tree, "r", &Origin::default());
        let Ensured::Taken { coverage, .. } = ensured else { panic!("{ensured:?}") };
        assert_eq!((coverage.left_out.len(), coverage.entries_left_out()), (1, 2), "{coverage:?}");
        assert_eq!(coverage.left_out[0].cause, Cause::Unreadable);
        world.sh("echo 2 > a; chmod 600 closed; echo other > closed; chmod 700 shut; echo 2 > shut/x");
        world.restore("1");
        assert_eq!((world.read("a").as_str(), world.read("closed").as_str()), ("1", "other\n"));
        assert_eq!(world.read("shut/x"), "2\n");
    });
}

/// What the agent left cannot be looked into then, and is the agent's all the same.
#[test]
fn what_the_agent_closed_is_opened_again() {
    as_user("engine::fidelity::what_the_agent_closed_is_opened_again", |place| {
        let world = World::at(place);
        world.write("dir/a", "1");
        world.write("file", "1");
        taken(world.call("t1", || world.sh("chmod 000 file dir")));
        let outcome = world.restore("1");
        assert!(outcome.kept.is_empty(), "{outcome:?}");
        assert_eq!((world.read("dir/a").as_str(), world.read("file").as_str()), ("1", "1"));
    });
}

/// A store that lost a piece serves the rest, and says what is lost.
#[test]
fn a_damaged_history_gives_back_the_same_checkpoints() {
    let world = World::new();
    world.write("a", "1");
    let first = world.create();
    world.write("a", "2");
    let second = world.create();
    let folder = nono_checkpoint::project::folder_of(&world.host, &world.tree);
    for damage in ["", "{", "[]"] {
        std::fs::write(folder.join("history.json"), damage).unwrap();
        std::fs::write(folder.join("marks.json"), damage).unwrap();
        let list = world.manager().list(&world.tree).unwrap();
        let ids: Vec<_> = list.iter().map(|line| (&line.id, line.reason.as_str(), line.files)).collect();
        assert_eq!(ids, [(&second.id, "recovered", 1), (&first.id, "recovered", 1)]);
    }
    world
        .manager()
        .restore(&world.tree, &text(first.id.as_str()), &nono_checkpoint::CheckpointChoice::default())
        .unwrap();
    assert_eq!(world.read("a"), "1");
}

/// It knows only what it holds: whatever else is there may have been there then.
#[test]
fn an_imported_checkpoint_removes_nothing() {
    let world = World::new();
    world.write("a", "1");
    world.write("dir/b", "1");
    world.create();
    let path = nono_checkpoint::project::folder_of(&world.host, &world.tree).join("history.json");
    let history = std::fs::read_to_string(&path).unwrap();
    let imported = history.replace("\"pinned\":false", "\"pinned\":false,\"imported_from\":\"elsewhere\"");
    assert_ne!(history, imported);
    std::fs::write(path, imported).unwrap();
    world.sh("echo 2 > a; rm -r dir; echo 2 > new; mkdir -p more/deep; echo 2 > more/deep/c; mkdir empty");
    let compared = world.manager().compare(&world.tree, &text("1")).unwrap();
    assert_eq!(compared.changes.len(), 2, "{:?}", compared.changes);
    compared.close().unwrap();
    let outcome = world.restore("1");
    assert_eq!(outcome.changes.len(), 2, "{outcome:?}");
    assert_eq!((world.read("a").as_str(), world.read("dir/b").as_str()), ("1", "1"));
    world.sh("test -e new; test -e more/deep/c; test -d empty");
    world.manager().undo(&world.tree).unwrap();
    assert_eq!((world.read("a").as_str(), world.exists("dir")), ("2\n", false));
    world.sh("test -e new; test -e more/deep/c; test -d empty");
}

#[test]
fn a_store_that_lost_something_serves_the_rest() {
    let world = World::new();
    world.write("a", "1\n");
    let first = world.create();
    world.sh("echo 2 > a; echo 2 > b; mkdir d; echo 2 > d/c");
    let second = world.create();
    let store = world.host.state_dir.join("store/packs");
    let mut packs: Vec<_> = std::fs::read_dir(&store).unwrap().map(|entry| entry.unwrap().path()).collect();
    packs.retain(|path| path.extension().is_some_and(|extension| extension != "idx"));
    packs.sort_by_key(|path| path.metadata().unwrap().modified().unwrap());
    std::fs::write(packs.last().unwrap(), "nothing").unwrap();
    let list = world.manager().list(&world.tree).unwrap();
    let ids: Vec<_> = list.iter().map(|line| &line.id).collect();
    assert_eq!(ids, [&second.id, &first.id]);
    let choice = nono_checkpoint::CheckpointChoice::default();
    world.sh("echo 3 > a; rm -r b d");
    let lost = world.manager().restore(&world.tree, &text(second.id.as_str()), &choice);
    assert!(lost.as_ref().map_or(true, |outcome| !outcome.failed.is_empty()), "there is damage: {lost:?}");
    let ensured = world.manager().ensure_checkpoint(&world.tree, "r", &crate::common::origin("s", "t", "c"));
    assert!(matches!(ensured, Ensured::Taken { .. }), "{ensured:?}");
}
