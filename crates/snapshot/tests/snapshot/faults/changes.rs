//! Law 4: only changed files are read, and all changed files are.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nono_snapshot::hash::content_hash;
use nono_snapshot::{Change, ChangeType, Manifest};

use super::child;
use super::lab::{Lab, run, scratch, skip};
use super::trees::write;

/// Wait until the clock of this filesystem has moved on from the last change of `path`.
pub(crate) fn next_tick(path: &Path) {
    let probe = path.parent().unwrap().parent().unwrap().join("probe");
    let time = |path: &Path| fs::metadata(path).map(|meta| (meta.ctime(), meta.ctime_nsec())).unwrap();
    let (seconds, nanos) = time(path);
    loop {
        fs::write(&probe, "x").unwrap();
        let (now, now_nanos) = time(&probe);
        if (now - seconds) * 1_000_000_000 + now_nanos - nanos > 25_000_000 {
            return fs::remove_file(&probe).unwrap();
        }
    }
}

#[track_caller]
pub(crate) fn assert_seen(path: &Path, taken: &(Manifest, Vec<Change>), when: &str) {
    let (manifest, changes) = taken;
    let seen = changes.iter().any(|change| change.path == path && change.change_type == ChangeType::Modified);
    assert!(seen, "{when}: the change was missed");
    let files = manifest.files().unwrap();
    let state = files.iter().find(|(found, _)| found.as_path() == path).unwrap().1;
    assert_eq!(state.hash, content_hash(&fs::read(path).unwrap()), "{when}: other bytes were stored");
}

#[test]
fn only_what_changed_is_opened() {
    if !Path::new("/usr/bin/strace").exists() {
        return skip("no strace");
    }
    for base in [scratch(), tempfile::tempdir().unwrap()] {
        let lab = Lab::at(base.path());
        for at in 0..60 {
            write(&lab.tree().join(format!("dir-{}/unchanged-{at}", at % 6)), format!("{at}"));
        }
        let changed = lab.tree().join("dir-3/changed");
        write(&changed, "one");
        next_tick(&lab.tree().join("dir-3/changed"));
        lab.manager().unwrap().create_baseline().unwrap();
        write(&changed, "two");
        let log = lab.base.join("log");
        let arguments = [
            "-f",
            "-qq",
            "-o",
            log.to_str().unwrap(),
            "-e",
            "trace=open,openat,openat2,readlinkat,listxattr,llistxattr,getxattr",
        ];
        run(&mut child::under("strace", &arguments, &lab, "incremental"));
        let text = fs::read_to_string(&log).unwrap();
        assert!(text.contains("\"changed\""), "the trace shows no opening of the changed file:\n{text}");
        let opened: Vec<&str> = text.lines().filter(|line| line.contains("unchanged-")).collect();
        assert!(opened.is_empty(), "unchanged files were opened: {opened:#?}");
        let manager = lab.manager().unwrap();
        let two = manager.load_manifest(1).unwrap().files().unwrap();
        assert_eq!(two.len(), 61);
        // And with the manifest that shares almost everything, all can be had back.
        fs::remove_dir_all(lab.tree().join("dir-2")).unwrap();
        lab.manager().unwrap().restore_to(1).unwrap();
        assert_eq!(fs::read(lab.tree().join("dir-2/unchanged-2")).unwrap(), b"2");
    }
}

#[test]
fn same_size_and_time_is_seen() {
    for base in [scratch(), tempfile::tempdir().unwrap()] {
        let lab = Lab::at(base.path());
        let path = lab.tree().join("d/file");
        write(&path, "aaaa");
        let reference = lab.base.join("reference");
        run(std::process::Command::new("cp").arg("-p").arg(&path).arg(&reference));
        next_tick(&path);
        lab.manager().unwrap().create_baseline().unwrap();
        for (round, text) in ["bbbb", "cccc", "dddd"].iter().enumerate() {
            next_tick(&path);
            fs::OpenOptions::new().write(true).open(&path).unwrap().write_all(text.as_bytes()).unwrap();
            run(std::process::Command::new("touch").arg("-r").arg(&reference).arg(&path));
            assert_eq!(
                fs::metadata(&path).unwrap().mtime_nsec(),
                fs::metadata(&reference).unwrap().mtime_nsec()
            );
            let taken = lab.manager().unwrap().create_incremental().unwrap();
            assert_seen(&path, &taken, &format!("round {round}"));
        }
    }
}

/// Written, captured, and written again at once with the same size: in the same tick of the clock, often enough.
#[test]
fn edits_in_the_same_tick_are_seen() {
    for base in [scratch(), tempfile::tempdir().unwrap()] {
        let lab = Lab::at(base.path());
        let path = lab.tree().join("file");
        write(&path, "0000");
        lab.manager().unwrap().create_baseline().unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        for round in 1..200u32 {
            // A new manager each time: one that saw the file change would look again anyway.
            let mut manager = lab.manager().unwrap();
            file.write_all_at(format!("{round:04}").as_bytes(), 0).unwrap();
            let taken = if round % 2 == 0 {
                drop(manager);
                lab.manager().unwrap().create_incremental().unwrap()
            } else {
                manager.create_incremental().unwrap()
            };
            assert_seen(&path, &taken, &format!("round {round}"));
        }
    }
}

/// Two files that are rewritten as a whole all the time: what is stored existed at one time, or is excluded.
#[test]
fn nothing_torn_is_stored() {
    for base in [scratch(), tempfile::tempdir().unwrap()] {
        let lab = Lab::at(base.path());
        let contents = |size: usize| [vec![b'a'; size], vec![b'b'; size]];
        // One that is stored in a pack, one that is a large object.
        let all = [("small", contents(900_000)), ("large", contents((4 << 20) + 4096))];
        for (name, [first, _]) in &all {
            write(&lab.tree().join(name), first);
        }
        write(&lab.tree().join("still"), "so that there is always something");
        let (stop, writes) = (AtomicBool::new(false), AtomicU64::new(0));
        let (mut stored, mut left_out) = (0, 0);
        std::thread::scope(|scope| {
            for (name, contents) in &all {
                let (stop, writes, path) = (&stop, &writes, lab.tree().join(name));
                scope.spawn(move || {
                    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
                    for at in (0..2).cycle() {
                        if stop.load(Ordering::Relaxed) {
                            return;
                        }
                        file.write_all_at(&contents[at], 0).unwrap();
                        writes.fetch_add(1, Ordering::Relaxed);
                        // Now and then still for long enough to be read.
                        if writes.load(Ordering::Relaxed) % 16 == 0 {
                            for _ in 0..6 {
                                let _ = std::hint::black_box(content_hash(&contents[at]));
                            }
                        }
                    }
                });
            }
            let mut manager = lab.manager().unwrap();
            let mut check = |manifest: &Manifest| {
                let files = manifest.files().unwrap();
                for (name, contents) in &all {
                    let path = lab.tree().join(name);
                    let state = files.iter().find(|(found, _)| found.as_path() == path);
                    let Some((_, state)) = state else {
                        left_out += 1;
                        let left = manifest.left_out().unwrap();
                        assert!(left.iter().any(|(found, _)| *found == path), "{name} is nowhere");
                        continue;
                    };
                    stored += 1;
                    assert!(
                        contents.iter().any(|content| content_hash(content) == state.hash),
                        "{name} is torn"
                    );
                }
            };
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                check(&manager.create_baseline().unwrap());
                for _ in 0..25 {
                    check(&manager.create_incremental().unwrap().0);
                }
            }));
            stop.store(true, Ordering::Relaxed);
            result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        });
        println!("{} writes; {stored} stored, {left_out} left out as unstable", writes.into_inner());
        super::lab::assert_clean(&mut lab.manager().unwrap(), "at the end");
    }
}
