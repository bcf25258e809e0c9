//! A full disk (ENOSPC) and a broken one (EIO) from every step on, and really full ones.

use nono_testkit::noise;
use std::fs;
use std::path::Path;

use nono_snapshot::{RestoreOptions, SnapshotId, failpoint};

use super::child;
use super::lab::{Lab, assert_clean, scratch, skip};
use super::mounts::Mount;
use super::trees::{self, Listing, assert_same, list, make_new, make_old, make_small_old};

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// Runs in the child, since the failpoint is one for the whole process. The states are prepared here too.
pub(crate) fn every_step(lab: &Lab, operation: &str, errno: i32) {
    match errno {
        ENOSPC => make_old(&lab.tree()),
        _ if operation == "edit" => make_old(&lab.tree()),
        _ => make_small_old(&lab.tree()),
    }
    if operation == "gc" {
        leave_garbage(lab);
    }
    let old = list(&lab.tree());
    if operation != "baseline" {
        lab.manager().unwrap().create_baseline().unwrap();
        make_new(&lab.tree());
    }
    if operation == "settle" || operation == "gc" {
        lab.manager().unwrap().create_incremental().unwrap();
    }
    if operation == "thin" {
        (0..3).for_each(|_| drop(lab.manager().unwrap().create_incremental().unwrap()));
    }
    let before = list(&lab.tree());
    lab.save("start");
    let mut quiet = Vec::new();
    let mut wrong = Vec::new();
    // Each step is a restore and a check of everything, so not every one of them is tried in each run of the tests.
    let all = std::env::var_os("NONO_EVERY_STEP").is_some();
    let stride = match operation {
        _ if all => 1,
        // On a full disk it is tried in several ways, each of them a capture.
        "restore" if errno == ENOSPC => 17,
        "restore" | "edit" => 9,
        _ => 5,
    };
    for at in (0..5000).step_by(stride) {
        lab.reset("start");
        failpoint::fail_from(at, errno);
        let result = child::operate(lab, operation);
        let reached = failpoint::steps() > at;
        failpoint::disarm();
        let when = format!("{operation} with error {errno} from step {at} ({:?})", result.as_ref().err());
        if !reached {
            result.unwrap_or_else(|error| panic!("{when}: {error}"));
            println!("{operation} with error {errno}: {at} steps; no error from steps {quiet:?}");
            assert!(wrong.is_empty(), "{operation}: wrong after an error at each of the steps {wrong:?}");
            return;
        }
        if result.is_ok() {
            quiet.push(at);
        }
        let check = || match operation {
            "edit" => check_edit(lab, &when, result.is_ok(), &before),
            _ => check(lab, operation, &when, result.is_ok(), &old, &before),
        };
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
        wrong.extend(checked.is_err().then_some(at));
    }
    panic!("{operation} never ends");
}

/// Create garbage: contents of a dropped baseline that the next one does not have, in packs with live objects and as a
/// large object.
fn leave_garbage(lab: &Lab) {
    let extra = lab.tree().join("extra");
    trees::write(&extra.join("small"), noise(30_000, 5));
    trees::write(&extra.join("large"), noise(5 << 20, 6));
    let mut manager = lab.manager().unwrap();
    manager.create_baseline().unwrap();
    manager.settle().unwrap();
    drop(manager);
    // The next operation removes manifests that no record names.
    fs::remove_file(lab.session().join("record.json")).unwrap();
    fs::remove_dir_all(&extra).unwrap();
}

fn check(lab: &Lab, operation: &str, when: &str, ok: bool, old: &Listing, before: &Listing) {
    if operation == "restore" {
        let is = list(&lab.tree());
        let mut manager = lab.manager().unwrap();
        assert_clean(&mut manager, when);
        let under_way = lab.session().join("restore.journal").exists();
        // The last steps only remove the journal: then it is done, and only that could not be made durable.
        let done = !under_way && is == *old;
        if !under_way && !done {
            assert_same(&is, before, &format!("{when}: no journal, and neither done nor as before"));
        }
        let recovered = manager.recover().unwrap_or_else(|error| panic!("{when}: recover: {error}"));
        assert_eq!(recovered.is_some(), under_way, "{when}");
        let is = list(&lab.tree());
        assert_same(&is, if under_way || done { old } else { before }, &format!("{when}: recovered"));
        if let Some(restored) = recovered {
            assert!(restored.failed.is_empty(), "{when}: {restored:?}");
        }
    } else {
        assert_same(&list(&lab.tree()), before, &format!("{when}: the tree"));
    }
    let mut manager = lab.manager().unwrap();
    assert_clean(&mut manager, when);
    let count = manager.snapshot_count().unwrap();
    let published = match operation {
        "baseline" => count == 1,
        "incremental" => count == 2,
        _ => true,
    };
    assert!(!ok || published, "{when}: neither an error nor a snapshot");
    if operation == "baseline" && count == 0 {
        manager.create_baseline().unwrap_or_else(|error| panic!("{when}, again: {error}"));
    }
    manager.gc().unwrap_or_else(|error| panic!("{when}: gc: {error}"));
    assert_clean(&mut manager, &format!("{when}, after gc"));
    assert_eq!(lab.debris(), Vec::<std::path::PathBuf>::new(), "{when}: left behind");
    let restored = manager.restore_to(0).unwrap();
    assert!(restored.failed.is_empty(), "{when}: {restored:?}");
    assert_same(&list(&lab.tree()), old, &format!("{when}: the first snapshot"));
    let there = |id: &SnapshotId| *id != SnapshotId::Number(0) && manager.load(id).is_ok();
    let last = manager.snapshots().unwrap().into_iter().find(there);
    if let Some(last) = last {
        manager.restore(&last, &RestoreOptions::default()).unwrap();
        assert_same(&list(&lab.tree()), before, &format!("{when}: what was there"));
    }
}

/// All of the files have the new bytes, or none, after the next operation; and it can be undone.
fn check_edit(lab: &Lab, when: &str, ok: bool, before: &Listing) {
    let under_way = lab.session().join("restore.journal").exists();
    let mut manager = lab.manager().unwrap();
    assert_clean(&mut manager, when);
    manager.recover().unwrap_or_else(|error| panic!("{when}: recover: {error}"));
    let is = list(&lab.tree());
    let changed = is.iter().filter(|(name, item)| before.get(*name) != Some(item)).map(|(name, _)| name);
    let changed: Vec<_> = changed.map(|name| name.to_str().unwrap()).collect();
    let mut edited = child::EDITED.to_vec();
    edited.sort_unstable();
    assert!(changed == edited || (changed.is_empty() && !ok && !under_way), "{when}: {changed:?}");
    assert_eq!(is.len(), before.len(), "{when}");
    manager.gc().unwrap_or_else(|error| panic!("{when}: gc: {error}"));
    assert_clean(&mut manager, &format!("{when}, after gc"));
    assert_eq!(lab.debris(), Vec::<std::path::PathBuf>::new(), "{when}: left behind");
    let safety = manager.snapshots().unwrap().into_iter().find(|id| *id != SnapshotId::Number(0));
    if let Some(safety) = safety {
        manager.restore(&safety, &RestoreOptions::default()).unwrap();
    }
    assert_same(&list(&lab.tree()), before, &format!("{when}: undone"));
}

fn in_a_child(operation: &str, errno: i32) {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    let output = child::command(&lab, &format!("errors:{operation}:{errno}")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn full_disk_in_baseline() {
    in_a_child("baseline", ENOSPC);
}

#[test]
fn full_disk_in_incremental() {
    in_a_child("incremental", ENOSPC);
}

#[test]
fn full_disk_in_restore() {
    in_a_child("restore", ENOSPC);
}

#[test]
fn full_disk_in_settle() {
    in_a_child("settle", ENOSPC);
}

#[test]
fn full_disk_in_gc() {
    in_a_child("gc", ENOSPC);
}

#[test]
fn full_disk_in_thin() {
    in_a_child("thin", ENOSPC);
}

#[test]
fn full_disk_in_edit() {
    in_a_child("edit", ENOSPC);
}

#[test]
fn broken_disk_in_thin() {
    in_a_child("thin", EIO);
}

#[test]
fn broken_disk_in_edit() {
    in_a_child("edit", EIO);
}

#[test]
fn broken_disk_in_baseline() {
    in_a_child("baseline", EIO);
}

#[test]
fn broken_disk_in_incremental() {
    in_a_child("incremental", EIO);
}

#[test]
fn broken_disk_in_restore() {
    in_a_child("restore", EIO);
}

#[test]
fn broken_disk_in_settle() {
    in_a_child("settle", EIO);
}

#[test]
fn broken_disk_in_gc() {
    in_a_child("gc", EIO);
}

/// One call fails, and the next does not: strace makes the n-th call of a kind fail. The journal can be finished then,
/// so no later operation tidies up: the restore itself must not leave anything behind.
#[test]
fn one_failing_call_in_restore() {
    if !Path::new("/usr/bin/strace").exists() {
        return skip("no strace");
    }
    let dir = scratch();
    let lab = Lab::at(dir.path());
    make_small_old(&lab.tree());
    let old = list(&lab.tree());
    lab.manager().unwrap().create_baseline().unwrap();
    make_new(&lab.tree());
    let new = list(&lab.tree());
    lab.save("start");
    let log = dir.path().join("log");
    for call in [
        "renameat2",
        "renameat",
        "unlinkat",
        "mkdirat",
        "symlinkat",
        "linkat",
        "utimensat",
        "fchmod",
        "fchmodat",
        "pwrite64",
    ] {
        for at in 1..200 {
            lab.reset("start");
            let arguments = [
                "-f",
                "-qq",
                "-o",
                log.to_str().unwrap(),
                "-e",
                &format!("trace={call}"),
                "-e",
                &format!("inject={call}:error=EIO:when={at}"),
            ];
            let output = child::under("strace", &arguments, &lab, "restore").output().unwrap();
            let when = format!("restore with a failing {call} number {at}");
            if !fs::read_to_string(&log).unwrap().contains("INJECTED") {
                println!("{call}: {} calls", at - 1);
                break;
            }
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let said = !output.status.success() || text.contains("failed: ");
            let is = list(&lab.tree());
            let mut manager = lab.manager().unwrap();
            assert_clean(&mut manager, &when);
            let under_way = lab.session().join("restore.journal").exists();
            let ours = lab.debris().into_iter().filter(|path| path.starts_with(lab.tree()));
            let ours: Vec<_> = ours.collect();
            assert!(
                ours.is_empty() || under_way,
                "{when}: left in the tree, and no later operation removes it: {ours:?}\n{text}"
            );
            assert!(
                said || is == old || under_way,
                "{when}: not restored, and not said: {:?}",
                trees::differences(&is, &old)
            );
            manager.recover().unwrap_or_else(|error| panic!("{when}: {error}"));
            let safety = manager.snapshots().unwrap().into_iter().find(|id| *id != SnapshotId::Number(0));
            match safety {
                Some(safety) => drop(manager.restore(&safety, &RestoreOptions::default()).unwrap()),
                None => assert_same(&list(&lab.tree()), &new, &format!("{when}: no safety snapshot")),
            }
            assert_same(&list(&lab.tree()), &new, &format!("{when}: what was there before"));
            manager.restore_to(0).unwrap();
            assert_same(&list(&lab.tree()), &old, &format!("{when}: the first snapshot"));
        }
    }
}

/// A disk that is really full: the store on a filesystem that holds the first snapshot and not the second.
fn really_full(mount: &Mount) {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    let store = mount.path().join("store");
    trees::write(&lab.tree().join("a"), noise(200_000, 1));
    trees::write(&lab.tree().join("b"), "small");
    let old = list(&lab.tree());
    let open = || lab.manager_with(lab.session(), Some(store.clone())).unwrap();
    let mut manager = open();
    manager.create_baseline().unwrap();
    manager.settle().unwrap();
    drop(manager);
    for round in 0..12u64 {
        // Many small ones or one large one, each time of another size, so that it ends at different places.
        let size = usize::try_from(700_000 * (round + 4)).unwrap();
        trees::write(&lab.tree().join("c"), noise(size, round + 2));
        for at in 0..30 {
            trees::write(&lab.tree().join(format!("d/{at}")), noise(size / 20, round * 100 + at));
        }
        let new = list(&lab.tree());
        let result = open().create_incremental();
        let when = format!("round {round}: {result:?}");
        assert_eq!(result.is_err(), size > 4_500_000 || result.is_err(), "{when}");
        assert_same(&list(&lab.tree()), &new, &when);
        let mut manager = open();
        assert_clean(&mut manager, &when);
        if let Err(error) = result {
            assert!(error.to_string().contains("space"), "{when}");
            manager.gc().unwrap_or_else(|error| panic!("{when}: gc: {error}"));
        }
        assert_clean(&mut manager, &when);
        // Files that cannot be stored stay and are named; the rest is restored.
        match manager.restore_to(0) {
            Ok(restored) => {
                let named = |path: &Path| {
                    let path = lab.tree().join(path);
                    restored
                        .skipped
                        .iter()
                        .any(|one| path.starts_with(&one.path) || one.path.starts_with(&path))
                        || restored.failed.iter().any(|one| path.starts_with(&one.path))
                };
                let is = list(&lab.tree());
                let differs = is.iter().filter(|(name, item)| old.get(*name) != Some(item));
                let unnamed: Vec<_> =
                    differs.map(|(name, _)| name).filter(|name| !named(Path::new(name))).collect();
                let gone = old.keys().find(|name| !is.contains_key(*name));
                assert!(unnamed.is_empty() && gone.is_none(), "{when}: {unnamed:?} {gone:?}");
            }
            Err(_) => assert_same(&list(&lab.tree()), &new, &when),
        }
        fs::remove_file(lab.tree().join("c")).ok();
        fs::remove_dir_all(lab.tree().join("d")).ok();
    }
    drop(open());
    let last = open().create_incremental();
    println!("{}: the last one: {:?}", mount.path().display(), last.map(drop));
    trees::write(&lab.tree().join("a"), "changed");
    let mut manager = open();
    manager.restore_to(0).unwrap();
    assert_eq!(list(&lab.tree()).get(Path::new("a")), old.get(Path::new("a")));
}

#[test]
fn really_full_memory() {
    if let Some(mount) = Mount::tmpfs(8) {
        really_full(&mount);
    }
}

#[test]
fn really_full_ext4() {
    if let Some(mount) = Mount::image("ext4", 16) {
        really_full(&mount);
    }
}
