//! Known to be open, and documented as open in SECURITY.md: metadata, what the user handed in, and what `wrap` cannot
//! close without a parent. Each is shown to be open, so that a change which closes one also changes the document.

use crate::harness::child::Verdict;
use crate::harness::fixture::helper;
use crate::harness::{Attack, Mode, attack, controls_only};
use crate::mediated::{after_binding, is_reached};

/// Modes without a mediator.
const UNMEDIATED: &[Mode] = &[Mode::Wrap, Mode::Monitor];

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
    is_open("inotify on a folder outside", &attack("inotify {out}"), UNMEDIATED);
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

#[test]
fn sockets_bound_later_without_a_supervisor() {
    for mode in UNMEDIATED.iter().filter(|_| !controls_only()) {
        let (outcome, came) = after_binding("pause , dial stream {prj}/door", "{prj}/door", Some(*mode));
        assert!(came, "a socket bound later is closed in {mode:?}; say so in SECURITY.md: {outcome}");
    }
}

#[test]
fn ports_without_a_supervisor() {
    if crate::harness::world::is_root() {
        let other = attack("tcp-at 192.0.2.1 4711").addressed("192.0.2.1 4711");
        is_open("another address", &other.flags("--allow-connect-port 4711"), UNMEDIATED);
    }
    for mode in UNMEDIATED.iter().filter(|_| !controls_only()) {
        let (reached, outcome) = is_reached("serve unbound", "--listen-port 4711", Some(*mode));
        assert!(reached, "listening unbound is closed in {mode:?}; say so in SECURITY.md: {outcome}");
    }
}

/// A socket that reveals them is closed, but `/proc` is not.
#[test]
fn addresses_of_the_host_without_namespaces() {
    is_open("addresses in /proc", &attack("read /proc/net/fib_trie").bare(), Mode::ALL);
}

#[test]
fn metadata_without_a_supervisor_or_namespaces() {
    is_open("chmod outside", &attack("meta chmod path {out}/target").bare(), UNMEDIATED);
}
