//! Counts of system calls, by strace.

use std::collections::BTreeMap;
use std::fs;

use super::ground::{Session, run};

/// System calls that make data durable.
pub(crate) const SYNCS: [&str; 5] = ["fsync", "fdatasync", "sync", "syncfs", "sync_file_range"];

/// Number of calls of each system call by one operation.
pub(crate) fn count(session: &Session<'_>, operation: &str, only: &[&str]) -> BTreeMap<String, u64> {
    let mut flags = vec!["-c".to_owned(), "-U".to_owned(), "calls,name".to_owned()];
    if !only.is_empty() {
        flags.push("--seccomp-bpf".to_owned());
        flags.push(format!("--trace={}", only.join(",")));
    }
    let text = trace(session, operation, &flags);
    let line = |line: &str| {
        let (calls, name) = line.trim().split_once(' ')?;
        Some((name.trim().to_owned(), calls.parse().ok()?))
    };
    text.lines().filter_map(line).filter(|(name, _)| name != "total").collect()
}

/// Number of opens of files in the tree that are not directories, and how many of these were ignore files.
pub(crate) fn opens(session: &Session<'_>, operation: &str) -> (usize, usize) {
    // Successful ones only: so each is one line.
    let flags = ["-y", "-z", "--seccomp-bpf", "--trace=open,openat,openat2"].map(str::to_owned);
    let text = trace(session, operation, &flags);
    let tree = session.tree.display().to_string();
    let is_open = |line: &&str| {
        line.contains(&tree) && ["O_DIRECTORY", "O_PATH"].iter().all(|word| !line.contains(word))
    };
    let opened = || text.lines().filter(is_open);
    (opened().count(), opened().filter(|line| line.contains("\".gitignore\"")).count())
}

/// Time of an operation, and the part of it spent waiting for the disk in calls that `counts` selects (by a line of
/// strace with the path in it); in milliseconds.
pub(crate) fn waits(session: &Session<'_>, operation: &str, counts: impl Fn(&str) -> bool) -> (f64, f64) {
    let syncs = format!("--trace={}", SYNCS.join(","));
    let flags = ["-y".to_owned(), "-T".to_owned(), "--seccomp-bpf".to_owned(), syncs];
    let ground = session.ground;
    let log = ground.path("strace.log");
    let mut command = ground.command("strace");
    command.arg("-f").args(flags).arg("-o").arg(&log).arg(ground.helper());
    let said = run(command.args(session.words(operation, 0)));
    let text = fs::read_to_string(&log).expect("strace wrote it");
    fs::remove_file(&log).expect("it is ours");
    let seconds = |line: &str| line.rsplit_once('<')?.1.strip_suffix('>')?.parse::<f64>().ok();
    let waited: f64 = text.lines().filter(|line| counts(line)).filter_map(seconds).sum();
    let total = said.lines().find_map(|line| line.strip_prefix("ms ")?.parse().ok());
    (total.expect("how long it took"), waited * 1000.0)
}

fn trace(session: &Session<'_>, operation: &str, flags: &[String]) -> String {
    let ground = session.ground;
    let log = ground.path("strace.log");
    let mut command = ground.command("strace");
    command.arg("-f").args(flags).arg("-o").arg(&log).arg(ground.helper());
    run(command.args(session.words(operation, 0)));
    let text = fs::read_to_string(&log).expect("strace wrote it");
    fs::remove_file(&log).expect("it is ours");
    text
}
