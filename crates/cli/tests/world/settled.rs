//! What a command leaves to a process of its own, which rewrites the store.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Nothing here takes that long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Processes that run this program.
fn processes(program: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    all.filter(|process| fs::read_link(process.join("exe")).is_ok_and(|exe| exe == program)).collect()
}

/// Wait for its end.
pub(crate) fn settled(program: &Path) {
    let begin = Instant::now();
    while !processes(program).is_empty() {
        assert!(begin.elapsed() < PATIENCE, "the upkeep process does not end");
        std::thread::sleep(Duration::from_millis(2));
    }
}
