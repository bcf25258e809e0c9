//! A full disk, a broken disk and `kill -9` at every step of writing, settling, syncing and collecting: what was
//! published stays, the store verifies, and the next collection leaves no debris.
//!
//! A program of its own without a test harness, since it runs itself: `store_faults <work> <how> <step> <folder>` is the
//! child that fails or dies.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test program")]

use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};

use nono_snapshot::failpoint;
use nono_snapshot::hash::content_hash;
use nono_snapshot::store::{ObjectKey, Store, StoreError, WriteOptions};

const WORKS: [&str; 5] = ["write", "compress", "settle", "sync", "collect"];
const WAYS: [&str; 3] = ["full", "broken", "killed"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, work, how, step, folder] = arguments.as_slice() {
        return child(work, how, step.parse().unwrap(), Path::new(folder));
    }
    everything();
    ExitCode::SUCCESS
}

/// Try every work in every way, as many at once as there are processors.
fn everything() {
    let tries: Vec<(&str, &str)> = WORKS.iter().flat_map(|work| WAYS.map(|how| (*work, how))).collect();
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((work, how)) = tries.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let steps = at_every_step(work, how);
                    println!("{work}, {how}: {steps} steps");
                }
            });
        }
    });
}

/// Run the child; 0: done, 1: failed as requested.
fn child(work: &str, how: &str, step: u64, folder: &Path) -> ExitCode {
    let store = Store::open(&folder.join("store")).unwrap();
    let file = File::open(folder.join("in")).unwrap();
    match how {
        "full" => failpoint::fail_from(step, 28),
        "broken" => failpoint::fail_from(step, 5),
        _ => failpoint::abort_at(step),
    }
    let result = run(work, &store, &file);
    let failed = failpoint::steps() > step;
    failpoint::disarm();
    match result {
        Ok(()) if !failed => ExitCode::SUCCESS,
        // What failed was only cleaning up after the work.
        Ok(()) => ExitCode::from(1),
        Err(error) => {
            check(&store, &format!("the same process, {work}, {how}, step {step}: {error}"));
            ExitCode::from(1)
        }
    }
}

fn run(work: &str, store: &Store, file: &File) -> Result<(), StoreError> {
    match work {
        "write" => write(store, file, false),
        "compress" => write(store, file, true),
        "settle" => {
            store.settle(&|| false, &|_, _| {}).map(|settled| assert!(settled.durable && settled.packs > 0))
        }
        "sync" => store.sync().map(|synced| assert!(synced.fsyncs > 0)),
        _ => {
            let live: Vec<ObjectKey> = published().iter().map(|bytes| blob(bytes)).collect();
            let collected = store.gc(&|key| live.contains(&key))?;
            assert_eq!((collected.packs_rewritten, collected.large_dropped), (1, 1));
            // That of the dead file's chunks, too, where the filesystem does not share data.
            assert!((1..=2).contains(&collected.packs_dropped), "{collected:?}");
            Ok(())
        }
    }
}

fn write(store: &Store, file: &File, compress: bool) -> Result<(), StoreError> {
    let writer =
        store.writer(WriteOptions { compress, budget: None, spare: 0, ..WriteOptions::default() })?;
    let mut appender = writer.appender()?;
    for seed in 10..13 {
        let bytes = text(seed, 600_000);
        appender.put(blob(&bytes), &bytes)?;
    }
    appender.put_large(file.as_fd(), 9000, true)?.commit()?;
    appender.finish()?;
    drop(writer.publish()?);
    for seed in 10..13 {
        assert_eq!(store.read(blob(&text(seed, 600_000)))?, text(seed, 600_000));
    }
    assert_eq!(store.read(blob(&text(5, 9000)))?, text(5, 9000));
    Ok(())
}

/// Contents that must be there, whatever happens.
fn published() -> Vec<Vec<u8>> {
    let mut contents: Vec<_> = (1..=3).map(|seed| text(seed, 400)).collect();
    contents.push(text(4, 9000));
    contents
}

fn at_every_step(work: &str, how: &str) -> u64 {
    let mut step = 0;
    loop {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path());
        let child = Command::new(std::env::current_exe().unwrap())
            .args([work, how, &step.to_string()])
            .arg(dir.path())
            .output()
            .unwrap();
        let what = format!("{work}, {how}, step {step}");
        let expected = child.status.code().map_or(child.status.signal() == Some(9), |code| code < 2);
        assert!(expected, "{what}: {child:?}");
        let store = Store::open(&dir.path().join("store")).unwrap();
        check(&store, &what);
        let debris = store.verify(&|| false, &|_, _| {}).unwrap().debris;
        assert!(debris == 0 || !child.status.success(), "{what}: {debris}");
        drop(store.writer(WriteOptions::default()).unwrap());
        store.gc(&|_| true).unwrap();
        assert_eq!(std::fs::read_dir(dir.path().join("store/tmp")).unwrap().count(), 0, "{what}");
        assert_eq!(store.verify(&|| false, &|_, _| {}).unwrap().debris, 0, "{what}");
        let settled = store.settle(&|| false, &|_, _| {}).unwrap();
        assert!(settled.durable && settled.problems.is_empty(), "{what}");
        check(&store, &what);
        if child.status.success() {
            assert!(step > 3, "{what}");
            return step;
        }
        step += 1;
    }
}

fn prepare(folder: &Path) {
    let store = Store::open(&folder.join("store")).unwrap();
    put(&store, &[text(1, 400), text(2, 400), text(20, 400)]);
    store.settle(&|| false, &|_, _| {}).unwrap();
    put(&store, &[text(3, 400), b"small and dead".to_vec()]);
    put(&store, &[text(21, 400), text(22, 400)]);
    for seed in [23, 4] {
        std::fs::write(folder.join("in"), text(seed, 9000)).unwrap();
        let file = File::open(folder.join("in")).unwrap();
        let writer = store.writer(WriteOptions::default()).unwrap();
        let mut appender = writer.appender().unwrap();
        appender.put_large(file.as_fd(), 9000, false).unwrap().commit().unwrap();
        appender.finish().unwrap();
        drop(writer.publish().unwrap());
    }
    File::create(folder.join("in")).unwrap().write_all_at(&text(5, 9000), 0).unwrap();
}

fn put(store: &Store, contents: &[Vec<u8>]) {
    let writer = store.writer(WriteOptions::default()).unwrap();
    let mut appender = writer.appender().unwrap();
    for bytes in contents {
        appender.put(blob(bytes), bytes).unwrap();
    }
    appender.finish().unwrap();
    drop(writer.publish().unwrap());
}

fn check(store: &Store, what: &str) {
    for bytes in published() {
        let read = store.read(blob(&bytes));
        assert_eq!(read.as_ref().ok(), Some(&bytes), "{what}: {read:?}");
    }
    let found = store.verify(&|| false, &|_, _| {}).unwrap();
    assert_eq!(found.problems, [], "{what}");
}

fn blob(bytes: &[u8]) -> ObjectKey {
    content_hash(bytes).into()
}

fn text(seed: usize, len: usize) -> Vec<u8> {
    format!("line {seed} of a text that says little\n").into_bytes().into_iter().cycle().take(len).collect()
}
