//! `Sandbox::apply`, in a process of its own: it cannot be undone.

#![allow(clippy::unwrap_used, reason = "a failed step of a test ends it")]

use std::path::PathBuf;
use std::process::Command;

use nono::{AccessMode, ApplyError, CapabilitySet, Refusal, Sandbox};

/// Examples are built beside the tests.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples").join(name)
}

#[test]
fn a_process_confines_itself() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("granted");
    std::fs::create_dir(&folder).unwrap();
    let outside = dir.path().join("outside");
    std::fs::write(&outside, "secret").unwrap();
    let output = Command::new(example("confine")).arg(&folder).arg(&outside).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        said,
        "inside yes\noutside no\nnetwork no\nagain no\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(std::fs::read_to_string(folder.join("made-inside")).unwrap(), "hello");
}

#[test]
fn a_process_with_threads_is_refused() {
    // The test runner has threads. Where the kernel can confine them all at once this would confine the runner itself.
    if Sandbox::support().landlock.is_ok_and(|abi| abi >= 8) {
        return;
    }
    let caps = CapabilitySet::builder().allow_path("/usr", AccessMode::Read).unwrap().build().unwrap();
    let waiting = std::thread::spawn(std::thread::park);
    let refused = Sandbox::apply(&caps);
    waiting.thread().unpark();
    waiting.join().unwrap();
    assert!(
        matches!(refused, Err(ApplyError::Refused(Refusal::Threads { threads })) if threads > 1),
        "{refused:?}"
    );
    assert!(std::fs::read("/etc/passwd").is_ok(), "nothing was applied");
}

#[test]
fn a_deny_inside_needs_more_than_this_process_can_do() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("closed"), "x").unwrap();
    let caps = CapabilitySet::builder()
        .allow_path(dir.path(), AccessMode::Read)
        .unwrap()
        .deny(dir.path().join("closed"))
        .unwrap()
        .build()
        .unwrap();
    assert!(matches!(Sandbox::apply(&caps), Err(ApplyError::Refused(_))));
}
