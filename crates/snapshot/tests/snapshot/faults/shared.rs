//! Two managers and a collector at once on one store, as threads and as processes: nothing is lost.

use nono_testkit::noise;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use nono_snapshot::store::StoreError;
use nono_snapshot::{Limits, ManagerOptions, SnapshotError, SnapshotManager};

use super::child;
use super::lab::{Lab, assert_clean, plain, scratch};
use super::trees::write;

const ROUNDS: u32 = 14;

fn tree(lab: &Lab, who: u32) -> PathBuf {
    lab.base.join(format!("tree-{who}"))
}

fn manager(lab: &Lab, who: u32) -> SnapshotManager {
    let options = ManagerOptions { store: Some(lab.base.join("shared")), ..ManagerOptions::default() };
    let session = lab.base.join(format!("session-{who}"));
    SnapshotManager::with_options(session, [tree(lab, who)], plain(), Limits::NONE, options).unwrap()
}

/// The state of a tree in one round. Much of it is the same for both, some of it comes back after rounds without it.
fn content(who: u32, round: u32) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> =
        (0..12u32).map(|at| (format!("same-{at}"), noise(3000, u64::from(at)))).collect();
    all.push((format!("own-{who}"), noise(5000, u64::from(1000 * who + round))));
    all.push((format!("d/back-{}", round % 3), noise(9000, u64::from(round % 3 + 50))));
    all.push(("d/both".to_owned(), noise(7000, u64::from(round / 2 + 70))));
    if round.is_multiple_of(4) {
        all.push(("large".to_owned(), noise((4 << 20) + 1, u64::from(round % 8 + 90))));
    }
    all
}

fn make(root: &Path, content: &[(String, Vec<u8>)]) {
    if root.exists() {
        fs::remove_dir_all(root).unwrap();
    }
    for (name, bytes) in content {
        write(&root.join(name), bytes);
    }
}

#[track_caller]
fn assert_is(root: &Path, content: &[(String, Vec<u8>)], when: &str) {
    for (name, bytes) in content {
        let is = fs::read(root.join(name)).unwrap_or_else(|error| panic!("{when}: {name}: {error}"));
        assert!(is == *bytes, "{when}: {name} has other bytes");
    }
    assert_eq!(super::lab::files(root).len(), content.len(), "{when}: more or fewer files");
}

/// Take snapshots, restore now and then, settle in the background; a new manager every few rounds.
pub(crate) fn churn(lab: &Lab, who: u32) {
    let root = tree(lab, who);
    make(&root, &content(who, 0));
    let mut open = manager(lab, who);
    open.create_baseline().unwrap();
    for round in 1..ROUNDS {
        make(&root, &content(who, round));
        open.create_incremental().unwrap();
        if round % 5 == 0 {
            open = manager(lab, who);
        }
        if round % 4 == 3 {
            let to = round / 2;
            open.restore_to(to).unwrap();
            assert_is(&root, &content(who, to), &format!("{who} back to {to} in round {round}"));
        }
    }
}

/// Collect again and again, until all managers are done.
pub(crate) fn collect(lab: &Lab, done: &dyn Fn() -> bool) {
    let mut rounds = 0;
    while !done() {
        let mut open = manager(lab, 9);
        for result in
            [open.gc().map(drop), open.verify().map(|report| assert!(report.is_clean(), "{report:?}"))]
        {
            match result {
                Ok(()) | Err(SnapshotError::Store(StoreError::Busy { .. })) => {}
                Err(error) => panic!("collecting: {error}"),
            }
        }
        rounds += 1;
    }
    println!("{rounds} collections");
    assert!(rounds > 1, "nothing was collected meanwhile");
}

fn assert_nothing_lost(lab: &Lab) {
    for who in 0..2 {
        let mut open = manager(lab, who);
        open.settle().unwrap();
        assert_clean(&mut open, &format!("{who} at the end"));
        open.gc().unwrap();
        assert_clean(&mut open, &format!("{who} after gc"));
        assert_eq!(open.snapshot_count().unwrap(), ROUNDS);
        for round in (0..ROUNDS).rev() {
            let restored = open.restore_to(round).unwrap();
            assert!(
                restored.failed.is_empty() && restored.skipped.is_empty(),
                "{who}, {round}: {restored:?}"
            );
            assert_is(&tree(lab, who), &content(who, round), &format!("{who} back to {round}"));
        }
    }
}

fn prepare() -> (tempfile::TempDir, Lab) {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    write(&tree(&lab, 9).join("x"), "the collector's own");
    manager(&lab, 9).create_baseline().unwrap();
    (dir, lab)
}

#[test]
fn threads() {
    let (_dir, lab) = prepare();
    let left = AtomicUsize::new(2);
    std::thread::scope(|scope| {
        for who in 0..2 {
            let (lab, left) = (&lab, &left);
            scope.spawn(move || {
                let result = std::panic::catch_unwind(|| churn(lab, who));
                left.fetch_sub(1, Ordering::SeqCst);
                result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            });
        }
        collect(&lab, &|| left.load(Ordering::SeqCst) == 0);
    });
    assert_nothing_lost(&lab);
}

#[test]
fn processes() {
    let (_dir, lab) = prepare();
    let spawn = |scenario: &str| child::command(&lab, scenario).spawn().unwrap();
    let mut churning = [spawn("churn:0"), spawn("churn:1")];
    let mut collecting = spawn("collect");
    let statuses = churning.each_mut().map(|child| child.wait().unwrap());
    fs::write(lab.base.join("done"), "").unwrap();
    assert!(collecting.wait().unwrap().success(), "the collector failed");
    assert!(statuses.iter().all(std::process::ExitStatus::success), "{statuses:?}");
    assert_nothing_lost(&lab);
}
