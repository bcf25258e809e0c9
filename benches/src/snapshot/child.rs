//! One operation of the snapshot engine, in a process of its own.
//!
//! A separate process makes peak memory and system calls belong to this operation, and the time is what a user pays:
//! opening the manager, which takes up from disk what the last process left, and the operation. What came of it is
//! printed, a name and a number on each line.

use std::path::{Path, PathBuf};
use std::time::Instant;

use nono_snapshot::{
    ExclusionConfig, Limits, ManagerOptions, Manifest, SnapshotError, SnapshotId, SnapshotManager,
};

/// `OPERATION TREE STORE SESSION [NUMBER]`
pub(crate) fn run(args: &[PathBuf]) {
    let [operation, tree, store, session, numbers @ ..] = args else { panic!("too few words: {args:?}") };
    let number = numbers.first().and_then(|text| text.to_str()?.parse().ok()).unwrap_or(0);
    let operation = operation.to_string_lossy();
    if let Err(error) = perform(&operation, number, &|| open(tree, store, session)) {
        eprintln!("{operation}: {error}");
        std::process::exit(1);
    }
    say("peak", peak_memory());
}

type Open<'a> = &'a dyn Fn() -> Result<SnapshotManager, SnapshotError>;

fn open(tree: &Path, store: &Path, session: &Path) -> Result<SnapshotManager, SnapshotError> {
    let options =
        ManagerOptions { store: Some(store.to_owned()), settle_by_hand: true, ..ManagerOptions::default() };
    SnapshotManager::with_options(session, [tree], ExclusionConfig::default(), Limits::NONE, options)
}

fn perform(operation: &str, number: u32, open: Open<'_>) -> Result<(), SnapshotError> {
    match operation {
        "baseline" => say_manifest(&timed(|| open()?.create_baseline())?),
        "incremental" => {
            let (manifest, changes) = timed(|| open()?.create_incremental())?;
            say_manifest(&manifest);
            say("changes", changes.len());
        }
        "settle" => {
            let report = timed(|| open()?.settle())?;
            assert!(report.store.durable && report.store.problems.is_empty(), "{report:?}");
        }
        "restore" => {
            let restored = timed(|| open()?.restore_to(number))?;
            assert!(restored.failed.is_empty(), "not restored: {:?}", restored.failed.first());
            assert!(restored.skipped.is_empty(), "skipped: {:?}", restored.skipped.first());
            say("changes", restored.changes.len());
        }
        "compare" => compare(number, &open()?)?,
        "verify" => {
            let report = timed(|| open()?.verify())?;
            assert!(report.is_clean(), "{report:?}");
        }
        "gc" => {
            timed(|| open()?.gc())?;
        }
        _ => panic!("{operation}: unknown"),
    }
    Ok(())
}

/// Of snapshot 0 with another, once both are loaded: for the first time in this process, which is when the store's
/// indexes are read, and again.
fn compare(number: u32, manager: &SnapshotManager) -> Result<(), SnapshotError> {
    manager.load_manifest(0)?;
    manager.load_manifest(number)?;
    let compare = || manager.diff(&SnapshotId::Number(0), &SnapshotId::Number(number));
    say("changes", timed(compare)?.len());
    let mut again = Vec::new();
    for _ in 0..9 {
        let begin = Instant::now();
        compare()?;
        again.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    say("again", crate::measure::median(again));
    Ok(())
}

fn timed<T>(work: impl FnOnce() -> Result<T, SnapshotError>) -> Result<T, SnapshotError> {
    let begin = Instant::now();
    let result = work()?;
    say("ms", begin.elapsed().as_secs_f64() * 1e3);
    Ok(result)
}

fn say_manifest(manifest: &Manifest) {
    say("number", manifest.number);
    say("files", manifest.coverage.files);
    say("bytes", manifest.coverage.bytes);
    say("directories", manifest.coverage.directories);
}

fn say(name: &str, value: impl std::fmt::Display) {
    println!("{name} {value}");
}

/// Peak memory of this process, in bytes.
fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a kernel that counts it");
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().expect("a number") * 1024.0
}
