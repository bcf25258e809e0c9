//! A process that swaps directories for links to the outside while a restore works there: nothing outside is written.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::lab::{Lab, scratch};
use super::trees::{list, write};

fn fill(dir: &Path, text: &str) {
    for name in ["a", "b", "sub/c", "sub/deep/d"] {
        write(&dir.join(name), format!("{text} {name}"));
    }
}

fn exchange(one: &Path, other: &Path) -> bool {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok()
}

/// Swap `pairs` as fast as possible while `work` runs; how often that worked.
fn swapping(pairs: &[(PathBuf, PathBuf)], work: impl FnOnce()) -> u64 {
    let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let start = Arc::new(Barrier::new(2));
    let racer = {
        let (stop, count, start, pairs) = (stop.clone(), count.clone(), start.clone(), pairs.to_vec());
        std::thread::spawn(move || {
            start.wait();
            while !stop.load(Ordering::Relaxed) {
                for (one, other) in &pairs {
                    count.fetch_add(u64::from(exchange(one, other)), Ordering::Relaxed);
                }
            }
        })
    };
    start.wait();
    work();
    stop.store(true, Ordering::Relaxed);
    racer.join().unwrap();
    count.load(Ordering::Relaxed)
}

/// `inside` names what is swapped, below the tree; empty: the tree itself.
fn race(inside: &[&str]) {
    let dir = scratch();
    let lab = Lab::at(dir.path());
    let outside = lab.base.join("outside");
    fill(&outside, "precious");
    fill(&outside.join("d"), "precious");
    let untouched = list(&outside);
    fill(&lab.tree().join("d"), "first");
    lab.manager().unwrap().create_baseline().unwrap();
    let parked = lab.base.join("parked");
    let (mut rounds, mut swaps, mut done) = (0u64, 0, 0);
    let until = Instant::now() + Duration::from_secs(3);
    while rounds < 5 || (rounds < 300 && Instant::now() < until) {
        // From scratch each time: what the last round left may lie anywhere.
        for path in [&parked, &lab.tree()] {
            match fs::symlink_metadata(path) {
                Ok(meta) if meta.is_dir() => fs::remove_dir_all(path).unwrap(),
                Ok(_) => fs::remove_file(path).unwrap(),
                Err(_) => {}
            }
        }
        fs::create_dir(&parked).unwrap();
        fill(&lab.tree().join("d"), &format!("changed {rounds}"));
        write(&lab.tree().join("d/extra/e"), "to be removed");
        let mut pairs = Vec::new();
        for (at, name) in inside.iter().enumerate() {
            let other = parked.join(format!("{at}"));
            symlink(&outside, &other).unwrap();
            let one = if name.is_empty() { lab.tree() } else { lab.tree().join(name) };
            pairs.push((one, other));
        }
        swaps += swapping(&pairs, || {
            let restored = lab.manager().and_then(|mut manager| manager.restore_to(0));
            done += u64::from(restored.is_ok_and(|restored| restored.done > 0));
        });
        assert_eq!(list(&outside), untouched, "round {rounds}: written outside");
        // A restore that could not be finished must not stand in the way of the next round.
        let _ = fs::remove_file(lab.session().join("restore.journal"));
        rounds += 1;
    }
    println!("{inside:?}: {rounds} rounds, {swaps} swaps, {done} restores that did something");
    assert!(swaps > rounds, "{rounds} rounds, {swaps} swaps: no race");
    assert!(done > 0, "no restore did anything");
}

#[test]
fn directories_swapped_for_links() {
    race(&["d"]);
}

#[test]
fn lower_directories_swapped_for_links() {
    race(&["d/sub", "d/extra"]);
}

#[test]
fn deep_directory_swapped_for_a_link() {
    race(&["d/sub/deep"]);
}

#[test]
fn root_swapped_for_a_link() {
    race(&[""]);
}
