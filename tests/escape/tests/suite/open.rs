//! Known to be open, and written down as open in SECURITY.md: metadata, what the user handed in, and what `wrap` cannot
//! close without a parent. Each is shown to be open, so that a change which closes one also changes the document.

use crate::harness::child::Verdict;
use crate::harness::fixture::helper;
use crate::harness::{Attack, Mode, attack, controls_only};

fn is_open(what: &str, attack: &Attack, modes: &[Mode]) {
    for mode in modes.iter().filter(|_| !controls_only()) {
        let outcome = attack.once(*mode);
        assert!(
            outcome.verdict() == Verdict::Escaped,
            "{what} is closed in {mode:?}; say so in SECURITY.md: {outcome}"
        );
    }
}

#[test]
fn metadata_outside() {
    is_open("stat of a file outside", &attack("stat {out}/secret"), Mode::ALL);
    is_open("inotify on a folder outside", &attack("inotify {out}"), Mode::ALL);
}

#[test]
fn what_was_handed_in() {
    is_open("chmod of a file given on stdin", &attack("stdin-meta").input("{out}/target"), Mode::ALL);
}

#[test]
fn other_processes_in_wrap() {
    let sees = attack("proc-grep {pid} cmdline {terces}").against(helper("victim {secret} {out} loud"));
    is_open("command lines of others", &sees, &[Mode::Wrap]);
}
