//! Several at once. Real processes: this binary runs one test of its own again, told by the environment.

use std::path::Path;
use std::process::{Child, Command};

use nono_checkpoint::{CheckpointManager, Config, Ensured, Origin};

use crate::common::{World, origin};

const BASE: &str = "NONO_TOGETHER_BASE";
const WHO: &str = "NONO_TOGETHER_WHO";

/// One agent: many turns in the same project.
#[test]
fn agent() {
    let Some(base) = std::env::var_os(BASE) else { return };
    let who = std::env::var(WHO).unwrap();
    let world = World::at(Path::new(&base));
    for turn in 0..20 {
        let origin = origin(&who, &turn.to_string(), "c");
        let ensured = roomy(&world).ensure_checkpoint(&world.tree, "r", &origin);
        assert!(!matches!(ensured, Ensured::Failed { .. }), "{ensured:?}");
        world.write(&format!("{who}-{turn}"), &who);
        world.manager().agent_left(&world.tree, &origin).unwrap();
    }
}

/// All of them are to stay.
fn roomy(world: &World) -> CheckpointManager {
    world.manager_with(&Config { max_snapshots: 100, ..Config::default() })
}

fn start(world: &World, who: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "engine::together::agent", "--nocapture"])
        .env(BASE, &world.base)
        .env(WHO, who)
        .spawn()
        .unwrap()
}

#[test]
fn two_agents_in_one_project() {
    let world = World::new();
    world.write("a", "1");
    let first = world.create();
    let agents = [start(&world, "one"), start(&world, "two")];
    for mut agent in agents {
        assert!(agent.wait().unwrap().success());
    }
    let list = world.manager().list(&world.tree).unwrap();
    let mut numbers: Vec<u32> = list.iter().map(|line| line.snapshot).collect();
    let mut ids: Vec<_> = list.iter().map(|line| line.id.clone()).collect();
    assert!(list.iter().all(|line| line.reason != "recovered"));
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), list.len());
    numbers.reverse();
    assert!(numbers.iter().copied().eq(0..u32::try_from(list.len()).unwrap()), "{numbers:?}");
    // Each turn of each has its checkpoint, its own or one that shows the same.
    for who in ["one", "two"] {
        let again = roomy(&world).ensure_checkpoint(&world.tree, "r", &origin(who, "7", "c2"));
        assert!(matches!(again, Ensured::Skipped { .. }), "{again:?}");
    }
    world.manager().agent_left(&world.tree, &origin("one", "7", "c2")).unwrap();
    world.manager().agent_left(&world.tree, &origin("two", "7", "c2")).unwrap();
    let outcome = world.restore(first.id.as_str());
    assert_eq!((outcome.changes.len(), outcome.kept.len(), outcome.turns_undone.len()), (40, 0, 40));
    assert_eq!(std::fs::read_dir(&world.tree).unwrap().count(), 1);
}

/// A process that holds one project delays no other project: this one is held as long as the test runs.
#[test]
fn another_project_does_not_wait() {
    let world = World::new();
    world.write("a", "1");
    world.create();
    let folder = nono_checkpoint::project::folder_of(&world.host, &world.tree);
    for name in ["project.lock", "lock"] {
        let lock = std::fs::File::open(folder.join(name)).unwrap();
        lock.lock().unwrap();
        let other = world.host.home.join("work").join(name);
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join("x"), "x").unwrap();
        let ensured = world.manager().create(&other, "r", &Origin::default());
        assert!(matches!(ensured, Ensured::Taken { .. }), "{ensured:?}");
        lock.unlock().unwrap();
    }
}

/// Ends a restore as soon as it changes something, as a kill does.
struct CutOff(std::sync::atomic::AtomicBool);

impl nono_snapshot::Observer for CutOff {
    fn progress(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }

    fn changing(&self) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

/// A journal belongs to the folder: a checkpoint there completes the restore of a session first, and says so.
#[test]
fn a_restore_of_a_session_that_was_cut_off_is_completed_first() {
    let world = World::new();
    world.write("a", "before");
    world.create();
    let session = world.host.state_dir.join("rollbacks/20260101-000000-1");
    let options = nono_snapshot::ManagerOptions {
        store: Some(world.host.state_dir.join("store")),
        own: vec![world.host.state_dir.clone()],
        settle_by_hand: true,
        ..nono_snapshot::ManagerOptions::default()
    };
    let mut run = nono_snapshot::SnapshotManager::with_options(
        session.clone(),
        [world.tree.clone()],
        nono_snapshot::ExclusionConfig::default(),
        nono_snapshot::Limits::NONE,
        options,
    )
    .unwrap();
    run.create_baseline().unwrap();
    world.write("a", "after");
    world.write("new", "after");
    run.observe(CutOff(false.into()));
    assert!(run.restore_to(0).unwrap().cancelled);
    drop(run);
    assert!(session.join("restore.journal").exists() && world.exists("new"));
    world.write(".nono-0123456789abcdef-1", "of nobody");
    let mut manager = world.manager();
    manager.create(&world.tree, "asked", &Origin::default());
    assert!(!session.join("restore.journal").exists());
    assert_eq!((world.read("a").as_str(), world.exists("new")), ("before", false));
    let told = manager.take_completed_others();
    assert!(told.len() == 1 && told[0].starts_with("completed an interrupted restore of "), "{told:?}");
}

/// An undo that is cut off twice: the second time is not told as a completion, and the third completes it.
#[test]
fn a_restore_that_is_cut_off_again_says_so() {
    let world = World::new();
    for number in 0..4 {
        world.write(&format!("f{number}"), "before");
    }
    world.create();
    world.sh("rm f*");
    world.restore("1");
    let undo = |world: &World| {
        let mut manager = world.manager();
        manager.observe(CutOff(false.into()));
        manager.undo(&world.tree)
    };
    assert!(undo(&world).unwrap().interrupted);
    let mut manager = world.manager();
    manager.observe(CutOff(false.into()));
    let _ = manager.list(&world.tree);
    let again = manager.take_completed();
    assert!(again.iter().all(|again| again.done.interrupted && again.checkpoint.is_some()), "{again:?}");
    assert!(!again.is_empty());
    let recorded = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = recorded.clone();
    let manager = world.manager().recording(move |completed| {
        told.lock().unwrap().push(completed.done.interrupted);
        Some("no room".to_owned())
    });
    manager.list(&world.tree).unwrap();
    let completed = manager.take_completed();
    let [one] = completed.as_slice() else { panic!("{completed:?}") };
    // An undo is reverted by restoring again.
    assert!(!one.done.interrupted && one.done.undo.is_none() && one.done.is_whole(), "{one:?}");
    assert_eq!(one.done.unrecorded.as_deref(), Some("no room"));
    assert_eq!(*recorded.lock().unwrap(), [false]);
    assert!(!world.exists("f0") && !world.exists("f3"));
}
