//! kill -9 at every step of every operation. Afterwards the store verifies, the next command recovers by itself, the
//! tree is old or new as a whole, nothing that was in it is lost, and no debris is left.

use nono_testkit::noise;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use nono_snapshot::{RestoreOptions, SnapshotId, SnapshotManager};

use super::child;
use super::closed::{is_left_open, killed_at, program_for_users};
use super::lab::{Lab, assert_clean, run, scratch};
use super::trees::{self, Listing, assert_same, list, make_new, make_old, make_small_old};

/// Kill an operation at every step, restoring the state `start` before each. Returns the number of steps.
pub(crate) fn every_step(lab: &Lab, operation: &str, check: impl Fn(&str, u64)) -> u64 {
    let mut wrong = Vec::new();
    let mut check = |when: &str, at: u64| {
        // All of them are wanted, not only the first.
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(when, at)));
        wrong.extend(checked.is_err().then_some(at));
    };
    // With the large file each step hashes it a dozen times, so not every one is tried in each run. Three, because what is
    // done next goes by the remainder by four.
    let large = lab.tree().join("big.bin").exists() && std::env::var_os("NONO_EVERY_STEP").is_none();
    for at in (0..5000).step_by(if large { 3 } else { 1 }) {
        lab.reset("start");
        let output = child::killed_at(lab, operation, at);
        let when = format!("{operation} killed at step {at}");
        if output.status.success() {
            println!("{operation}: {at} steps");
            assert!(at > 3, "{operation} announces no steps");
            check(&format!("{operation} not killed"), at);
            assert!(wrong.is_empty(), "{operation}: wrong after a kill at each of the steps {wrong:?}");
            return at;
        }
        let text = || String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = || String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.signal(), Some(9), "{when}: {}{}", text(), errors());
        check(&when, at);
    }
    panic!("{operation} never ends");
}

/// Collect garbage; then there must be no debris, and everything must verify.
pub(crate) fn assert_tidy(lab: &Lab, manager: &mut SnapshotManager, when: &str) {
    manager.gc().unwrap_or_else(|error| panic!("{when}: gc: {error}"));
    assert_clean(manager, &format!("{when}, after gc"));
    let debris = lab.debris();
    assert!(debris.is_empty(), "{when}: left behind: {debris:?}");
}

/// Two states of the tree: the current one, and the one made from it.
fn old_then_new(lab: &Lab, make: fn(&Path), between: impl FnOnce()) -> (Listing, Listing) {
    make(&lab.tree());
    let old = list(&lab.tree());
    between();
    make_new(&lab.tree());
    (old, list(&lab.tree()))
}

#[test]
fn baseline() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    make_old(&lab.tree());
    let tree = list(&lab.tree());
    lab.save("start");
    every_step(&lab, "baseline", |when, _| {
        assert_same(&list(&lab.tree()), &tree, &format!("{when}: the tree"));
        let mut manager = lab.manager().unwrap();
        assert_clean(&mut manager, when);
        if manager.snapshot_count().unwrap() == 0 {
            manager.create_baseline().unwrap_or_else(|error| panic!("{when}, again: {error}"));
        }
        assert_tidy(&lab, &mut manager, when);
        make_new(&lab.tree());
        manager.restore_to(0).unwrap();
        assert_same(&list(&lab.tree()), &tree, &format!("{when}: restored"));
    });
}

#[test]
fn incremental() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    let (old, new) =
        old_then_new(&lab, make_small_old, || lab.manager().unwrap().create_baseline().map(drop).unwrap());
    lab.save("start");
    every_step(&lab, "incremental", |when, at| {
        assert_same(&list(&lab.tree()), &new, &format!("{when}: the tree"));
        let mut manager = lab.manager().unwrap();
        assert_clean(&mut manager, when);
        let count = manager.snapshot_count().unwrap();
        assert!(count == 1 || count == 2, "{when}: {count} snapshots");
        if count == 1 || at % 2 == 0 {
            manager.create_incremental().unwrap_or_else(|error| panic!("{when}, again: {error}"));
        }
        assert_tidy(&lab, &mut manager, when);
        manager.restore_to(0).unwrap();
        assert_same(&list(&lab.tree()), &old, &format!("{when}: back to 0"));
        manager.restore_to(1).unwrap();
        assert_same(&list(&lab.tree()), &new, &format!("{when}: back to 1"));
    });
}

/// Thinning: at any moment, each snapshot is intact or dropped.
#[test]
fn thin() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    let mut manager = lab.manager().unwrap();
    let mut states = Vec::new();
    for at in 0..4 {
        trees::write(&lab.tree().join("file"), format!("{at}"));
        trees::write(&lab.tree().join(format!("only-{at}")), noise(5000, at));
        if at == 0 {
            manager.create_baseline().map(drop).unwrap();
        } else {
            manager.create_incremental().map(drop).unwrap();
        }
        states.push(list(&lab.tree()));
    }
    manager.settle().unwrap();
    drop(manager);
    lab.save("start");
    every_step(&lab, "thin", |when, at| {
        let mut manager = lab.manager().unwrap();
        assert_clean(&mut manager, when);
        let there = |manager: &SnapshotManager, number| manager.load_manifest(number).is_ok();
        let both = (there(&manager, 1), there(&manager, 2));
        assert!(both == (true, true) || both == (false, false), "{when}: {both:?}");
        if both.0 && at % 2 == 0 {
            manager.restore_to(1).unwrap();
            assert_same(&list(&lab.tree()), &states[1], &format!("{when}: back to 1"));
        }
        child::one(&mut manager, "thin").unwrap_or_else(|error| panic!("{when}, again: {error}"));
        assert_eq!(
            (there(&manager, 1), there(&manager, 2), manager.snapshot_count().unwrap()),
            (false, false, 4)
        );
        assert_tidy(&lab, &mut manager, when);
        for number in [0, 3] {
            manager.restore_to(number).unwrap();
            let state = &states[usize::try_from(number).unwrap()];
            assert_same(&list(&lab.tree()), state, &format!("{when}: back to {number}"));
        }
    });
}

#[test]
fn settle() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    let (old, new) =
        old_then_new(&lab, make_old, || lab.manager().unwrap().create_baseline().map(drop).unwrap());
    lab.manager().unwrap().create_incremental().unwrap();
    lab.save("start");
    every_step(&lab, "settle", |when, at| {
        let mut manager = lab.manager().unwrap();
        assert_clean(&mut manager, when);
        if at % 2 == 0 {
            let report = manager.settle().unwrap_or_else(|error| panic!("{when}, again: {error}"));
            assert!(report.store.problems.is_empty(), "{when}: {report:?}");
            assert!(report.store.durable, "{when}: {report:?}");
            assert!(manager.load_manifest(1).unwrap().durable, "{when}");
        }
        assert_tidy(&lab, &mut manager, when);
        manager.restore_to(0).unwrap();
        assert_same(&list(&lab.tree()), &old, &format!("{when}: back to 0"));
        manager.restore_to(1).unwrap();
        assert_same(&list(&lab.tree()), &new, &format!("{when}: back to 1"));
    });
}

/// A shared store with much garbage of a removed session.
#[test]
fn gc() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    fs::create_dir(lab.shared()).unwrap();
    let gone = lab.base.join("now/gone");
    let extra = lab.tree().join("extra");
    trees::write(&extra.join("a"), noise(20_000, 7));
    trees::write(&extra.join("big"), noise(5 << 20, 8));
    let mut other = lab.manager_with(gone.clone(), Some(lab.shared())).unwrap();
    other.create_baseline().unwrap();
    other.settle().unwrap();
    drop(other);
    fs::remove_dir_all(&extra).unwrap();
    make_small_old(&lab.tree());
    let mut other = lab.manager_with(gone.clone(), Some(lab.shared())).unwrap();
    trees::write(&lab.tree().join("mixed"), "in the same pack as what is needed");
    other.create_incremental().unwrap();
    other.settle().unwrap();
    drop(other);
    fs::remove_file(lab.tree().join("mixed")).unwrap();
    fs::remove_dir_all(&gone).unwrap();
    lab.manager().unwrap().create_baseline().unwrap();
    let old = list(&lab.tree());
    make_new(&lab.tree());
    lab.save("start");
    let before = size(&lab);
    every_step(&lab, "gc", |when, _| {
        let mut manager = lab.manager().unwrap();
        assert_clean(&mut manager, when);
        assert_tidy(&lab, &mut manager, when);
        assert!(size(&lab) + (5 << 20) <= before, "{when}: nothing was collected");
        let sessions = nono_snapshot::session_dirs(manager.store()).unwrap();
        assert_eq!(sessions.len(), 1, "{when}: {sessions:?}");
        manager.restore_to(0).unwrap();
        assert_same(&list(&lab.tree()), &old, &format!("{when}: restored"));
    });
}

fn size(lab: &Lab) -> u64 {
    super::lab::files(&lab.shared()).iter().map(|path| fs::metadata(path).unwrap().len()).sum()
}

fn safeties(manager: &SnapshotManager) -> Vec<SnapshotId> {
    let all = manager.snapshots().unwrap();
    all.into_iter().filter(|id| matches!(id, SnapshotId::Safety(_))).collect()
}

/// After a kill of a restore from `new` to `old`: whichever command comes next completes it, and what was there before
/// can be had back.
fn assert_restored_or_untouched(lab: &Lab, when: &str, at: u64, old: &Listing, new: &Listing) {
    let under_way = lab.session().join("restore.journal").exists();
    let mut manager = lab.manager().unwrap();
    assert_clean(&mut manager, when);
    let next = ["recover", "incremental", "gc", "restore"][usize::try_from(at % 4).unwrap()];
    let when = format!("{when}, then {next}");
    child::one(&mut manager, next).unwrap_or_else(|error| panic!("{when}: {error}"));
    let is = list(&lab.tree());
    if under_way || next == "restore" {
        assert_same(&is, old, &format!("{when}: completed"));
    } else if is != *old {
        assert_same(&is, new, &format!("{when}: neither restored nor untouched"));
    }
    assert_tidy(lab, &mut manager, &when);
    if let Some(safety) = safeties(&manager).first() {
        let restored = manager.restore(safety, &RestoreOptions::default()).unwrap();
        assert!(restored.failed.is_empty() && restored.skipped.is_empty(), "{when}: {restored:?}");
        assert_same(&list(&lab.tree()), new, &format!("{when}: what was there before"));
    } else {
        assert_same(&is, new, &format!("{when}: changed without a safety snapshot"));
    }
    manager.restore_to(0).unwrap();
    assert_same(&list(&lab.tree()), old, &format!("{when}: restored after all"));
}

#[test]
fn restore() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    let (old, new) =
        old_then_new(&lab, make_old, || lab.manager().unwrap().create_baseline().map(drop).unwrap());
    lab.save("start");
    every_step(&lab, "restore", |when, at| assert_restored_or_untouched(&lab, when, at, &old, &new));
}

/// New bytes for files: old or new, and completed by the next operation.
#[test]
fn edit() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    make_old(&lab.tree());
    lab.manager().unwrap().create_baseline().unwrap();
    trees::write(&lab.tree().join("keep.txt"), "changed since the snapshot");
    let before = list(&lab.tree());
    lab.save("start");
    child::operate(&lab, "edit").unwrap();
    // The time of an edit is its own.
    let edited = |name: &Path| child::EDITED.contains(&name.to_str().unwrap()) || name.ends_with("hard-2");
    let timeless = |listing: Listing| -> Listing {
        let item = |name: &Path, item: trees::Item| if edited(name) { item.timeless() } else { item };
        listing.into_iter().map(|(name, one)| (name.clone(), item(&name, one))).collect()
    };
    let after = timeless(list(&lab.tree()));
    assert_eq!(trees::differences(&after, &timeless(before.clone())).len(), 5);
    every_step(&lab, "edit", |when, at| {
        let under_way = lab.session().join("restore.journal").exists();
        let mut manager = lab.manager().unwrap();
        assert_clean(&mut manager, when);
        let next = ["recover", "incremental", "gc", "edit"][usize::try_from(at % 4).unwrap()];
        let when = format!("{when}, then {next}");
        child::one(&mut manager, next).unwrap_or_else(|error| panic!("{when}: {error}"));
        let is = list(&lab.tree());
        if under_way || next == "edit" || is != before {
            assert_same(&timeless(is), &after, &format!("{when}: completed"));
        }
        assert_tidy(&lab, &mut manager, &when);
        if let Some(safety) = safeties(&manager).first() {
            let restored = manager.restore(safety, &RestoreOptions::default()).unwrap();
            assert!(restored.failed.is_empty() && restored.skipped.is_empty(), "{when}: {restored:?}");
        }
        assert_same(&list(&lab.tree()), &before, &format!("{when}: undone"));
    });
}

/// A restore of a part, with changes by others: completing it leaves the same paths alone.
#[test]
fn restore_some() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    make_small_old(&lab.tree());
    for name in ["HEAD", "index", "objects/1"] {
        trees::write(&lab.tree().join("sub/.git").join(name), format!("old {name}"));
        trees::write(&lab.tree().join("kept/.git").join(name), format!("old {name}"));
    }
    lab.manager().unwrap().create_baseline().unwrap();
    make_new(&lab.tree());
    lab.manager().unwrap().create_incremental().unwrap();
    for name in ["HEAD", "objects/2"] {
        trees::write(&lab.tree().join("sub/.git").join(name), format!("new {name}"));
        trees::write(&lab.tree().join("kept/.git").join(name), format!("new {name}"));
    }
    lab.manager().unwrap().create_incremental().unwrap();
    trees::write(&lab.tree().join("kept/.git/index"), "by others");
    trees::write(&lab.tree().join("new.txt"), "by others");
    trees::write(&lab.tree().join("newdir/mine"), "by others");
    let before = list(&lab.tree());
    lab.save("start");
    child::operate(&lab, "restore-some").unwrap();
    let after = list(&lab.tree());
    let text = |name: &str| fs::read_to_string(lab.tree().join(name)).unwrap();
    assert_eq!((text("sub/.git/HEAD"), text("kept/.git/HEAD")), ("old HEAD".into(), "new HEAD".into()));
    assert_eq!((text("new.txt"), text("newdir/a")), ("by others".into(), "a".into()));
    assert!(text("replace.txt").starts_with("new content") && lab.tree().join("gone.txt").exists());
    every_step(&lab, "restore-some", |when, at| {
        let under_way = lab.session().join("restore.journal").exists();
        let mut manager = lab.manager().unwrap();
        assert_clean(&mut manager, when);
        let next = ["recover", "incremental", "gc", "restore-some"][usize::try_from(at % 4).unwrap()];
        let when = format!("{when}, then {next}");
        child::one(&mut manager, next).unwrap_or_else(|error| panic!("{when}: {error}"));
        let is = list(&lab.tree());
        if under_way || next == "restore-some" || is != before {
            assert_same(&is, &after, &format!("{when}: completed"));
        }
        assert_tidy(&lab, &mut manager, &when);
        if let Some(safety) = safeties(&manager).first() {
            manager.restore(safety, &RestoreOptions::default()).unwrap();
        }
        assert_same(&list(&lab.tree()), &before, &format!("{when}: undone"));
    });
}

/// The completion of a restore is killed too.
#[test]
fn recovery() {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    let (old, new) =
        old_then_new(&lab, make_small_old, || lab.manager().unwrap().create_baseline().map(drop).unwrap());
    lab.save("before");
    // In the middle of the work on the tree: the journal is there, some names are new, some are old.
    let middle = (0..5000).step_by(5).find(|at| {
        lab.reset("before");
        child::killed_at(&lab, "restore", *at);
        let is = list(&lab.tree());
        let changed = trees::differences(&is, &new).len();
        lab.session().join("restore.journal").exists() && changed > 12 && is != old
    });
    assert!(middle.is_some(), "no step in the middle of a restore");
    lab.save("start");
    every_step(&lab, "recover", |when, at| assert_restored_or_untouched(&lab, when, at, &old, &new));
}

/// The same as an ordinary user, for whom closed files and directories are closed: they are made readable for a moment,
/// and a kill at that moment must not change what is restored. More of this is in `closed.rs`.
#[test]
fn restore_as_a_user() {
    if !rustix::process::geteuid().is_root() {
        return super::lab::skip("becoming another user needs root");
    }
    let dir = scratch();
    let lab = Lab::at(dir.path());
    make_small_old(&lab.tree());
    trees::write(&lab.tree().join("closed/in"), "in a closed directory");
    trees::mode(&lab.tree().join("closed"), 0o000);
    run(Command::new("chown").args(["-R", "65534:65534"]).arg(&lab.base));
    let old = list(&lab.tree());
    lab.manager().unwrap().create_baseline().unwrap();
    make_new(&lab.tree());
    trees::write(&lab.tree().join("secret-2"), "new, and closed");
    trees::mode(&lab.tree().join("secret-2"), 0o000);
    trees::write(&lab.tree().join("closed/in"), "changed in a closed directory");
    trees::write(&lab.tree().join("closed/deep/secret"), "closed in a closed directory in another");
    trees::mode(&lab.tree().join("closed/deep/secret"), 0o000);
    trees::mode(&lab.tree().join("closed/deep"), 0o200);
    trees::mode(&lab.tree(), 0o311);
    run(Command::new("chown").args(["-R", "65534:65534"]).arg(&lab.base));
    let new = list(&lab.tree());
    lab.save("start");
    let program = program_for_users(&lab);
    let (mut wrong, mut left_open) = (Vec::new(), 0);
    for at in 0..5000 {
        lab.reset("start");
        let done = killed_at(&lab, &program, "restore", at);
        let when = format!("restore as a user killed at step {at}");
        left_open += u64::from(is_left_open(&lab, &new));
        let check = || assert_restored_or_untouched(&lab, &when, at, &old, &new);
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
        wrong.extend(checked.is_err().then_some(at));
        if done {
            println!("restore as a user: {at} steps; opened up after {left_open} of the kills");
            assert!(wrong.is_empty(), "wrong after a kill at each of the steps {wrong:?}");
            assert!(left_open > 8, "no kill while something was opened up");
            return;
        }
    }
    panic!("restore never ends");
}
