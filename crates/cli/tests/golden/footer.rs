//! What is said when a command failed, and when nothing is.

use snapbox::str;

use super::world::{World, golden};
use nono_testkit::process::finish;

#[test]
fn a_failure_without_a_refusal_is_one_line() {
    let world = World::new();
    world.file("work/file", "");
    world.golden(
        &[
            "nono run -- sh -c 'exit 3'",
            "nono run --allow . --read ../home --write-file file -- sh -c 'exit 3'",
            "nono run --monitor --allow-net -- sh -c 'exit 3'",
            "nono run --no-diagnostics -- sh -c 'exit 3'",
            "nono run -s -- sh -c 'exit 3'",
            "nono wrap -- sh -c 'exit 3'",
        ],
        str![[r#"
$ nono run -- sh -c 'exit 3'
! [nono] exit 3; no refusal was seen (-v shows the policy)
= exit 3
$ nono run --allow . --read ../home --write-file file -- sh -c 'exit 3'
! [nono] exit 3; no refusal was seen (-v shows the policy)
= exit 3
$ nono run --monitor --allow-net -- sh -c 'exit 3'
! [nono] exit 3; no refusal was seen (-v shows the policy)
= exit 3
$ nono run --no-diagnostics -- sh -c 'exit 3'
= exit 3
$ nono run -s -- sh -c 'exit 3'
= exit 3
$ nono wrap -- sh -c 'exit 3'
= exit 3

"#]],
    );
}

#[test]
fn the_policy_is_shown_on_request() {
    let world = World::new();
    world.file("work/file", "");
    let line = "nono run -v --allow . --read ../home --write-file file -- sh -c 'exit 3'";
    let text = world.clean(&world.sh(line).err());
    let footer =
        text.lines().skip_while(|line| !line.contains("exited with")).map(|line| format!("{line}\n"));
    golden(
        footer.collect(),
        str![[r#"
[nono] The command exited with code 3; no refusal was seen.
[nono] Sandbox policy:
[nono]   [TMP]/work (read+write)
[nono]   [TMP]/home (read)
[nono]   [TMP]/work/file (write)
[nono]   and [N] system paths that programs need to start (--dry-run lists them)
[nono]   A granted file is the one that existed at the start: a file that replaces it is not granted.
[nono]   network: blocked
[nono] To open more, run it again with:
[nono]   --allow <path>   read and write a folder and everything in it
[nono]   --read <path>    read it only
[nono]   --write <path>   write it only
[nono]   --allow-net      use the network

"#]],
    );
}

#[test]
fn a_signal_is_not_explained() {
    let world = World::new();
    for line in ["kill -15 $$", "echo Permission denied >&2; kill -9 $$"] {
        let outcome = finish(&mut world.nono(&["run", "--", "sh", "-c", line]));
        assert!(!outcome.err().contains("[nono]"), "{outcome:?}");
    }
}

/// The denials of one run: the lines between "Denied:" and "Sandbox policy:".
fn denied(world: &World, line: &str) -> String {
    let text = world.clean(&world.sh(line).err());
    let lines = text
        .lines()
        .skip_while(|line| !line.ends_with("Denied:"))
        .take_while(|line| !line.ends_with("policy:"));
    format!("$ {line}\n") + &lines.map(|line| format!("! {line}\n")).collect::<String>()
}

#[test]
fn a_denial_names_path_operation_and_flag() {
    let world = World::new();
    world.file("home/a file", "");
    world.file("home/.ssh/id", "");
    world.file("work/here", "");
    world.file("work/closed", "");
    let lines = [
        "nono run -- cat '../home/a file'",
        "nono run -- ls ../home",
        "nono run -- cat here",
        "nono run --read . -- touch here",
        "nono run --read . -- touch new",
        "nono run --read . -- mkdir new",
        "nono run --read . -- rm here",
        "nono run --read . -- sh -c 'echo x > here'",
        "nono run --read . -- sh -c 'echo x >> new'",
        "nono run --read . -- mv here there",
        "nono run --allow . --deny closed -- cat closed",
        "nono run --read .. -- cat ../home/.ssh/id",
        "nono run --read .. -- cat ../state/kernel-check.json",
        "nono run -- python3 -c 'open(\"here\")'",
        "nono run --read . -- python3 -c 'open(\"new\", \"w\")'",
        "nono run --read . -- git init made",
        "nono run --allow . -- sh -c 'cat here ../home/x ../home/y; exit 1'",
    ];
    golden(
        lines.iter().map(|line| denied(&world, line)).collect(),
        str![[r#"
$ nono run -- cat '../home/a file'
! [nono] Denied:
! [nono]   read [TMP]/home/a file: not granted
! [nono]     open it with: --read-file '[TMP]/home/a file'
$ nono run -- ls ../home
! [nono] Denied:
! [nono]   read [TMP]/home: not granted
$ nono run -- cat here
! [nono] Denied:
! [nono]   read [TMP]/work/here: not granted
! [nono]     open it with: --read-file [TMP]/work/here
$ nono run --read . -- touch here
! [nono] Denied:
! [nono]   write [TMP]/work/here: granted for reading only
! [nono]     open it with: --write-file [TMP]/work/here
$ nono run --read . -- touch new
! [nono] Denied:
! [nono]   write [TMP]/work/new: granted for reading only
! [nono]     open it with: --write [TMP]/work
$ nono run --read . -- mkdir new
! [nono] Denied:
! [nono]   write [TMP]/work/new: granted for reading only
! [nono]     open it with: --write [TMP]/work
$ nono run --read . -- rm here
! [nono] Denied:
! [nono]   write [TMP]/work/here: granted for reading only
! [nono]     open it with: --write [TMP]/work
$ nono run --read . -- sh -c 'echo x > here'
! [nono] Denied:
! [nono]   write [TMP]/work/here: granted for reading only
! [nono]     open it with: --write-file [TMP]/work/here
$ nono run --read . -- sh -c 'echo x >> new'
! [nono] Denied:
! [nono]   write [TMP]/work/new: granted for reading only
! [nono]     open it with: --write [TMP]/work
$ nono run --read . -- mv here there
! [nono] Denied:
! [nono]   write [TMP]/work/here: granted for reading only
! [nono]     open it with: --write [TMP]/work
$ nono run --allow . --deny closed -- cat closed
! [nono] Denied:
! [nono]   read [TMP]/work/closed: closed by --deny
$ nono run --read .. -- cat ../home/.ssh/id
! [nono] Denied:
! [nono]   read [TMP]/home/.ssh/id: protected (ssh)
! [nono]     open it with: --bypass-protection [TMP]/home/.ssh/id --read-file [TMP]/home/.ssh/id
$ nono run --read .. -- cat ../state/kernel-check.json
! [nono] Denied:
! [nono]   read [TMP]/state/kernel-check.json: nono's own files are never open
$ nono run -- python3 -c 'open("here")'
! [nono] Denied:
! [nono]   read [TMP]/work/here: not granted
! [nono]     open it with: --read-file [TMP]/work/here
$ nono run --read . -- python3 -c 'open("new", "w")'
! [nono] Denied:
! [nono]   write [TMP]/work/new: granted for reading only
! [nono]     open it with: --write [TMP]/work
$ nono run --read . -- git init made
! [nono] Denied:
! [nono]   write [TMP]/work/made: granted for reading only
! [nono]     open it with: --write [TMP]/work
$ nono run --allow . -- sh -c 'cat here ../home/x ../home/y; exit 1'

"#]],
    );
}

#[test]
fn what_is_missing_or_forbidden_anyway_is_no_denial() {
    let world = World::new();
    let lines = [
        "nono run --allow . -- cat no-such-file",
        "nono run -- cat no-such-file",
        "nono run -- cat /no/such/file",
        "nono run -- ls /etc/no-such",
        "nono run --allow . -- sh -c 'echo all is well; exit 1'",
        "nono run --allow . -- sh -c 'echo nothing was: Permission denied >&2; exit 1'",
        "nono run -- cat /etc/shadow",
    ];
    for line in lines {
        let outcome = world.sh(line);
        assert!(!outcome.err().contains("Denied:"), "{line}: {}", outcome.err());
        assert!(outcome.err().contains("; no refusal was seen (-v shows the policy)"), "{line}");
    }
}

#[test]
fn a_closed_network_is_named() {
    let world = World::new();
    let lookup = "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 1)'";
    golden(
        denied(&world, &format!("nono run -- {lookup}")),
        str![[r#"
$ nono run -- python3 -c 'import socket; socket.create_connection(("192.0.2.1", 80), 1)'
! [nono] Denied:
! [nono]   network: it is blocked
! [nono]     open it with: --allow-net

"#]],
    );
}

/// What the command says reaches the terminal as it is, but what nono repeats of it is made harmless.
#[test]
fn names_cannot_play_with_the_terminal() {
    let world = World::new();
    world.file("home/a\u{1b}[31mb\u{202e}c", "");
    let text = denied(
        &world,
        "nono run -- sh -c 'cat ../home/a*; echo \"cat: $HOME/a\u{1b}[31mb\u{202e}c: Permission denied\" >&2; exit 1'",
    );
    let said: String = text.lines().skip(1).map(|line| format!("{line}\n")).collect();
    assert!(!said.contains(['\u{1b}', '\u{202e}']), "{said}");
}
