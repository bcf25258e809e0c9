//! The disk fails, or the process is killed, at every single step: nothing is lost, and the next operation completes
//! it.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nono_snapshot::failpoint;
use nono_snapshot::node::{Entry, Node};
use nono_snapshot::restore::{
    Journal, JournalError, KeptContent, RestoreOutcome, RestoreRequest, Selection, apply, plan, sweep,
};
use nono_snapshot::state::{RootContent, RootState, SnapshotState};

use crate::kit::{Files, World, dump, scan};
use crate::round::furnish;

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

fn damage(world: &World) {
    world.mode("a/file", 0o644);
    world.write("a/file", "damaged");
    world.write("big", "small");
    world.mode("readonly", 0o755);
    world.write("readonly/inside", "damaged");
    world.mode("readonly", 0o555);
    world.mode("sticky", 0o700);
    fs::remove_file(world.at("fifo")).unwrap();
    fs::remove_file(world.at("link")).unwrap();
    world.write("link/is/now", "a directory");
    fs::remove_dir_all(world.at("empty")).unwrap();
    symlink("nowhere", world.at("empty")).unwrap();
    world.write("new/dir/file", "new");
    fs::remove_file(world.at("h2")).unwrap();
    fs::remove_file(world.at("h3")).unwrap();
    world.write("h3", "hard");
}

fn prepare(world: &World) -> (SnapshotState, SnapshotState) {
    furnish(world);
    world.write("h1", "hard");
    for name in ["h2", "h3"] {
        fs::hard_link(world.at("h1"), world.at(name)).unwrap();
    }
    let target = world.snap();
    damage(world);
    (target, world.snap())
}

fn request<'a>(
    target: &'a SnapshotState,
    current: &'a SnapshotState,
    resumed: Option<&'a SnapshotState>,
    since: &'a [&'a SnapshotState],
) -> RestoreRequest<'a> {
    RestoreRequest {
        target,
        current,
        selection: &Selection::All,
        except: &[],
        // Conflicts are always judged: what an interrupted restore did must not look like one.
        keep_changed_since: since,
        force: false,
        resumed,
    }
}

/// Recovery, as the next command does it.
fn recover(world: &World, target: &SnapshotState, safety: &SnapshotState) -> RestoreOutcome {
    let Some(journal) = Journal::load(&world.journal_path()).unwrap() else {
        return RestoreOutcome::default();
    };
    let old = plan(&request(target, safety, None, &[safety]), &world.objects).unwrap();
    let swept = sweep(&old, journal.record.id, &world.objects);
    assert!(swept.failed.is_empty(), "{:?}", swept.failed);
    for kept in &swept.kept {
        if let KeptContent::File { hash, .. } = &kept.content {
            assert!(world.objects.content(*hash).is_some());
        }
    }
    let current = world.snap();
    assert!(!dump(&current, &world.objects).contains(".nono-"));
    let plan = plan(&request(target, &current, Some(safety), &[safety]), &world.objects).unwrap();
    let outcome = apply(&plan, &world.objects, &journal, &());
    journal.finish().unwrap();
    outcome
}

fn assert_recovered(world: &World, target: &SnapshotState, safety: &SnapshotState, at: u64) {
    let begun = world.journal_path().exists();
    let outcome = recover(world, target, safety);
    assert!(outcome.failed.is_empty() && outcome.skipped.is_empty(), "step {at}: {outcome:#?}");
    let expected = if begun { target } else { safety };
    assert_eq!(dump(expected, &world.objects), world.dump(), "step {at}");
}

#[test]
fn a_disk_that_fails_at_every_step() {
    for errno in [ENOSPC, EIO] {
        for at in 0.. {
            let world = World::alone();
            let (target, safety) = prepare(&world);
            let plan = plan(&request(&target, &safety, None, &[&safety]), &world.objects).unwrap();
            failpoint::fail_from(at, errno);
            let outcome = world.begin().map(|journal| apply(&plan, &world.objects, &journal, &()));
            let steps = failpoint::steps();
            failpoint::disarm();
            match outcome {
                Ok(outcome) if at >= steps => {
                    assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
                    assert_eq!(dump(&target, &world.objects), world.dump());
                    break;
                }
                Ok(outcome) => assert!(!outcome.failed.is_empty(), "step {at} failed in silence"),
                Err(error) => assert!(matches!(error, JournalError::Io { .. }), "{error}"),
            }
            assert_recovered(&world, &target, &safety, at);
        }
    }
}

const CHILD: &str = "NONO_TEST_KILLED_CHILD";

fn save(state: &SnapshotState, path: &Path) {
    let RootContent::Captured(entry) = &state.roots[0].content else { panic!("captured") };
    fs::write(path, Node { entries: vec![entry.clone()], omitted: Vec::new() }.encode()).unwrap();
}

fn load(path: &Path, root: &Path) -> SnapshotState {
    let entry: Entry = Node::decode(&fs::read(path).unwrap()).unwrap().entries.remove(0);
    SnapshotState { roots: vec![RootState { path: root.into(), content: RootContent::Captured(entry) }] }
}

/// Not a test by itself: the process that is killed at the given step.
#[test]
fn killed_child() {
    let Ok(order) = std::env::var(CHILD) else { return };
    let (at, base) = order.split_once(' ').unwrap();
    let base = Path::new(base);
    let objects = Files(base.join("objects"));
    let root = base.join("root");
    let (target, safety) = (load(&base.join("target"), &root), load(&base.join("safety"), &root));
    let plan = plan(&request(&target, &safety, None, &[&safety]), &objects).unwrap();
    failpoint::abort_at(at.parse().unwrap());
    let record = nono_snapshot::restore::JournalRecord {
        id: nono_snapshot::restore::RestoreId::random().unwrap(),
        target: "target".into(),
        safety: "safety".into(),
        except: Vec::new(),
        keep_changed_since: Vec::new(),
        force: false,
        roots: vec![root.clone()],
        selection: Selection::All,
    };
    let journal = Journal::begin(&base.join("journal"), record).unwrap();
    let outcome = apply(&plan, &objects, &journal, &());
    assert!(outcome.failed.is_empty() && outcome.skipped.is_empty());
    journal.finish().unwrap();
    assert_eq!(dump(&scan(&root, &objects, &|_| None), &objects), dump(&target, &objects));
}

#[test]
fn killed_at_every_step() {
    for at in 0.. {
        let world = World::new();
        let (target, safety) = prepare(&world);
        let base = world.base.path().canonicalize().unwrap();
        save(&target, &base.join("target"));
        save(&safety, &base.join("safety"));
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "faults::killed_child"])
            .env(CHILD, format!("{at} {}", base.display()))
            .stdout(Stdio::null())
            .status()
            .unwrap();
        if status.success() {
            assert!(at > 50, "there are more steps than {at}");
            return;
        }
        assert_eq!(status.signal(), Some(9), "step {at}");
        if fs::symlink_metadata(world.journal_path()).is_err()
            && world.dump() == dump(&target, &world.objects)
        {
            // Killed when all was done.
            continue;
        }
        assert_recovered(&world, &target, &safety, at);
    }
}
