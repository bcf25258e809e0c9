//! Counts of system calls, by strace.

use std::collections::BTreeMap;
use std::fs;

use super::ground::{Session, run};

/// What makes data durable.
pub(crate) const SYNCS: [&str; 5] = ["fsync", "fdatasync", "sync", "syncfs", "sync_file_range"];

/// How often each system call was made by one operation.
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

/// How often something in the tree that is no directory was opened; and how often of these it was an ignore file.
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
