//! The sandbox must let ordinary work through: else "blocked" could mean a sandbox that blocks everything.

use crate::harness::child::Verdict;
use crate::harness::world::World;
use crate::harness::{Attack, Mode, attack, controls_only};

/// Steps that print `ESCAPED` where they are allowed to succeed.
fn succeeds(attack: &Attack) {
    for mode in std::iter::once(None).chain(Mode::ALL.iter().copied().map(Some)) {
        if mode.is_some() && controls_only() {
            continue;
        }
        let world = World::new("/var/tmp", false);
        attack.prepare(&world);
        let outcome = attack.running(&world, mode).finish();
        assert!(outcome.verdict() == Verdict::Escaped, "{mode:?}: {outcome}");
    }
}

#[test]
fn granted_files_can_be_used() {
    succeeds(&attack("read {ro}/file"));
    succeeds(&attack("write {prj}/own"));
    succeeds(&attack("create {prj}/sub/new , rename {prj}/sub/new {prj}/new , unlink {prj}/new"));
    succeeds(&attack("meta chmod path {prj}/own"));
    succeeds(&attack("meta utimes path {prj}/own"));
    succeeds(&attack("symlink {ro}/file {prj}/link , read {prj}/link"));
}

#[test]
fn metadata_of_granted_files_can_be_changed_without_namespaces() {
    for call in ["chmod", "chown", "utimes", "setxattr"] {
        for route in ["path", "fd"] {
            let steps: &'static str = Box::leak(format!("meta {call} {route} {{prj}}/own").into_boxed_str());
            succeeds(&attack(steps).bare());
        }
    }
}

#[test]
fn own_programs_can_be_run() {
    succeeds(&attack("memfd read {ro}/file"));
    succeeds(&attack("loader {prj}/copy read {ro}/file"));
}

#[test]
fn own_children_can_be_traced_and_limited() {
    attack("own-child").works();
}

#[test]
fn own_terminals_can_be_made() {
    attack("own-tty").works();
}

/// Else "closed inside a broad grant" could be a grant that does not work at all.
#[test]
fn the_rest_of_a_broad_grant_can_be_used() {
    let home =
        || attack("write {home}/work/file").before("plant {home}/work/file x , plant {home}/.ssh/id_rsa x");
    succeeds(&home().flags("--allow {home}"));
    let project = || attack("write {prj}/own").before("plant {prj}/no/key x");
    succeeds(&project().flags("--deny {prj}/no"));
}

#[test]
fn own_loopback_works_with_the_network_blocked() {
    attack("own-tcp 4").works();
    attack("own-tcp 6").works();
    attack("own-udp 4").works();
}

#[test]
fn granted_folders_can_be_watched() {
    attack("watch-own {prj} {prj}").works();
    attack("watch-own . {prj}").works();
    attack("symlink {prj}/sub {prj}/link , watch-own {prj}/link {prj}/sub").works();
    attack("watch-own /dev/shm /dev/shm").works();
    attack("watch-own {prj} {prj}").bare().works();
    succeeds(&attack("inotify {ro}"));
    succeeds(&attack("inotify {ro}/file"));
    succeeds(&attack("inotify-fd {ro}"));
}

#[test]
fn own_unix_sockets_work() {
    attack("own-unix stream {prj}/own.sock").works();
    attack("own-unix seqpacket {prj}/own.sock").works();
    attack("own-unix stream @nono-escape-own-{terces}").works();
    attack("own-pair stream").works();
    attack("own-pair seqpacket").works();
    attack("own-pair dgram").works();
    attack("own-pair dgram").bare().modes(&[Mode::Run]).works();
}
