//! Restores that were cut off.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nono::rollback::{Conflicts, RestoreChoice, RollbackError, RollbackSession};
use nono::snapshot::Observer;

use super::world::{Tree, World};

/// Ends the work when this file is gone.
struct WhenGone(PathBuf);

impl Observer for WhenGone {
    fn progress(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        !self.0.exists()
    }
}

/// A session, and what was there before it.
fn prepared(world: &World) -> (String, Tree) {
    for n in 0..200 {
        world.write(&format!("dir{}/file{n}", n % 7), format!("at first {n}"));
    }
    let before = world.tree();
    let id = world.session(1, || {
        for n in 0..200 {
            world.write(&format!("dir{}/file{n}", n % 7), format!("by the command {n}"));
        }
        world.write("aaa", "by the command");
    });
    (id, before)
}

#[test]
fn a_restore_that_was_ended_is_completed_by_the_next_command() {
    let world = World::new();
    let (id, before) = prepared(&world);
    let after = world.tree();
    let mut session = world.open(&id);
    session.manager().observe(WhenGone(world.path("aaa")));
    let done = session.restore(&RestoreChoice::everything()).unwrap();
    assert!(done.interrupted, "{done:?}");
    assert_ne!(world.tree(), before, "it was ended too late to prove anything");
    drop(session);
    let mut session = world.open(&id);
    let plan = session.plan(&RestoreChoice::everything()).unwrap();
    assert!(plan.changes.is_empty(), "{plan:?}");
    let recovered = session.take_recovered().unwrap();
    assert_eq!(recovered.undo, done.undo);
    assert!(session.take_recovered().is_none());
    assert_eq!(world.tree(), before);
    session.undo(None).unwrap();
    assert_eq!(world.tree(), after);
}

const INNER: &str = "NONO_ROLLBACK_INNER";

/// Run the test of this name again in a process of its own, which is to die.
fn die(world: &World, name: &str) {
    let out = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(INNER, &world.base)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.signal(), Some(6), "it did not die: {text}");
}

/// In that process: the outer one's world.
fn inner() -> Option<World> {
    std::env::var_os(INNER).map(|base| World::at(Path::new(&base)))
}

/// The session, in the hands of a process that dies as soon as this holds.
fn dying(world: &World, when: impl Fn() -> bool + Send + Sync + 'static) -> RollbackSession {
    let mut session = world.open("20260101-000001");
    session.manager().observe(Dies(when));
    session
}

struct Dies<When>(When);

impl<When: Fn() -> bool + Sync> Observer for Dies<When> {
    fn progress(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        if self.0() {
            // No destructor runs, as after a kill.
            std::process::abort();
        }
        false
    }
}

#[test]
fn a_killed_restore_is_recovered() {
    if let Some(world) = inner() {
        let file = world.path("aaa");
        dying(&world, move || !file.exists()).restore(&RestoreChoice::everything()).unwrap();
        return;
    }
    let world = World::new();
    let (id, before) = prepared(&world);
    let after = world.tree();
    die(&world, "rollback::recover::a_killed_restore_is_recovered");
    let half = world.tree();
    assert!(half != after && half != before);

    // A session that begins there completes it; while that one is live, what is to be written down about it waits.
    let running = world.begin(2);
    assert_eq!(world.tree(), before);
    assert!(matches!(world.open(&id).recover(), Err(RollbackError::Live { .. })));
    running.end();

    let done = world.open(&id).recover().unwrap().unwrap();
    assert!(done.failed.is_empty() && !done.interrupted, "{done:?}");
    assert_eq!(world.tree(), before);
    assert!(world.open(&id).recover().unwrap().is_none());
    world.open(&id).undo(done.undo.as_deref()).unwrap();
    assert_eq!(world.tree(), after);
}

#[test]
fn a_killed_undo_is_recovered() {
    if let Some(world) = inner() {
        let file = world.path("aaa");
        dying(&world, move || file.exists()).undo(None).unwrap();
        return;
    }
    let world = World::new();
    let (id, before) = prepared(&world);
    let after = world.tree();
    world.open(&id).restore(&RestoreChoice::everything()).unwrap();
    die(&world, "rollback::recover::a_killed_undo_is_recovered");
    assert_ne!(world.tree(), after);
    let done = world.open(&id).recover().unwrap().unwrap();
    assert!(done.failed.is_empty(), "{done:?}");
    assert_eq!(world.tree(), after);
    assert!(matches!(world.open(&id).undo(None), Err(RollbackError::NothingToUndo { .. })));
    // The undo has an id as well, and the way back is there.
    world.open(&id).undo(done.undo.as_deref()).unwrap();
    assert_eq!(world.tree(), before);
}

/// Dies before anything is changed; the journal goes too, as if it had died just before writing that.
fn die_before_the_journal(world: &World, id: &str, name: &str) {
    let before = world.tree();
    die(world, name);
    assert_eq!(world.tree(), before, "it died too late to prove anything");
    fs::remove_file(world.open(id).entry().dir.join("restore.journal")).unwrap();
}

fn journal(world: &World) -> PathBuf {
    world.open("20260101-000001").entry().dir.join("restore.journal")
}

#[test]
fn a_restore_that_was_killed_before_its_first_change_is_none() {
    if let Some(world) = inner() {
        let journal = journal(&world);
        dying(&world, move || journal.exists()).restore(&RestoreChoice::everything()).unwrap();
        return;
    }
    let world = World::new();
    let (id, before) = prepared(&world);
    let name = "rollback::recover::a_restore_that_was_killed_before_its_first_change_is_none";
    die_before_the_journal(&world, &id, name);
    assert!(world.open(&id).recover().unwrap().is_none(), "nothing was completed");
    assert!(matches!(world.open(&id).undo(None), Err(RollbackError::NothingToUndo { .. })));
    world.open(&id).restore(&RestoreChoice::everything()).unwrap();
    assert_eq!(world.tree(), before);
}

#[test]
fn an_undo_that_was_killed_before_its_first_change_is_completed() {
    if let Some(world) = inner() {
        let journal = journal(&world);
        dying(&world, move || journal.exists()).undo(None).unwrap();
        return;
    }
    let world = World::new();
    let (id, before) = prepared(&world);
    let after = world.tree();
    world.open(&id).restore(&RestoreChoice::everything()).unwrap();
    let name = "rollback::recover::an_undo_that_was_killed_before_its_first_change_is_completed";
    die_before_the_journal(&world, &id, name);
    let done = world.open(&id).recover().unwrap().unwrap();
    assert!(done.failed.is_empty() && done.kept.is_empty(), "{done:?}");
    assert_eq!(world.tree(), after);
    world.open(&id).undo(done.undo.as_deref()).unwrap();
    assert_eq!(world.tree(), before);
}

/// Killed in its second step, the first being done: that is completed, and both are undone together. An undo that is
/// killed in its first step, which is the second one of the merge, goes on with the other.
#[test]
fn a_merge_that_was_killed_is_recovered() {
    if let Some(world) = inner() {
        let first = world.path("dir/file00");
        let begins = move |with: &str| fs::read_to_string(&first).is_ok_and(|text| text.starts_with(with));
        let merge = Conflicts::Merge { markers: false };
        if begins("command") {
            let choice = RestoreChoice { conflicts: merge, ..RestoreChoice::everything() };
            dying(&world, move || begins("1")).restore(&choice).unwrap();
        } else {
            dying(&world, move || begins("command")).undo(None).unwrap();
        }
        return;
    }
    let world = World::new();
    let name = "rollback::recover::a_merge_that_was_killed_is_recovered";
    let text = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n{last}\n");
    let files: Vec<String> = (0..40).map(|n| format!("dir/file{n:02}")).collect();
    let write = |first: &str, last: &str| files.iter().for_each(|file| world.write(file, text(first, last)));
    write("1", "8");
    let id = world.session(1, || {
        write("command", "8");
        world.write("made", "by the command");
    });
    write("command", "person");
    let edited = world.tree();
    die(&world, name);
    assert!(!world.path("made").exists());
    let done = world.open(&id).recover().unwrap().unwrap();
    assert!(done.failed.is_empty(), "{done:?}");
    for file in &files {
        assert_eq!(world.read(file), text("1", "person"), "{file}");
    }
    let merged = world.tree();
    die(&world, name);
    assert!(!world.path("made").exists(), "the other step was not undone yet");
    let undone = world.open(&id).recover().unwrap().unwrap();
    assert!(undone.kept.is_empty() && undone.failed.is_empty(), "{undone:?}");
    assert_eq!(world.tree(), edited);
    world.open(&id).undo(undone.undo.as_deref()).unwrap();
    assert_eq!(world.tree(), merged);
}

#[test]
fn a_damaged_history_is_named() {
    let world = World::new();
    let (id, _) = prepared(&world);
    let mut session = world.open(&id);
    session.restore(&RestoreChoice::everything()).unwrap();
    let file = session.entry().dir.join("restores.json");
    let text = fs::read_to_string(&file).unwrap();
    for wrong in [text.replace("safety-", "safety-0"), text[..text.len() / 2].to_owned(), String::new()] {
        fs::write(&file, wrong).unwrap();
        let error = session.undo(None).unwrap_err();
        assert!(matches!(&error, RollbackError::Damaged { path, .. } if *path == file), "{error}");
    }
    fs::write(&file, text).unwrap();
    session.undo(None).unwrap();
}
