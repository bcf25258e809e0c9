//! Where user namespaces are forbidden: weaker, said so, and refused where nothing holds.

use std::process::Command;

use snapbox::str;

use rustix::process::Signal;

use super::world::{World, skip};
use nono_testkit::process::{Outcome, Running, finish};

/// A machine without user namespaces, simulated with bwrap if it is installed.
fn bare() -> Option<World> {
    if Command::new("bwrap").arg("--version").output().is_err() {
        skip("bwrap is not installed");
        return None;
    }
    Some(World::new())
}

fn without_namespaces(world: &World, line: &str) -> Command {
    let mut command = world.command("bwrap");
    command.args(["--unshare-user", "--disable-userns", "--dev-bind", "/", "/", "--", "/bin/sh", "-c", line]);
    command
}

fn run(world: &World, line: &str) -> Outcome {
    finish(&mut without_namespaces(world, line))
}

fn transcript(world: &World, lines: &[&str]) -> String {
    lines.iter().map(|line| format!("$ {line}\n{}", world.show(&run(world, line)))).collect()
}

#[test]
fn it_says_so_and_confines() {
    let Some(world) = bare() else { return };
    world.file("home/out", "outside\n");
    world.file("work/in", "inside\n");
    let text = transcript(
        &world,
        &[
            "nono run -- true",
            "nono run -s -- true",
            "nono run -s --read . -- cat in ../home/out",
            "nono run -s --read . -- sh -c 'echo x > in'",
            "nono run -s --monitor --read . -- cat in ../home/out",
            "nono wrap -s --read . -- cat in ../home/out",
            "nono run -s -- sh -c 'exit 5'",
            "nono run -s -- sh -c 'kill -9 $$'",
        ],
    );
    super::world::golden(
        text,
        str![[r#"
$ nono run -- true
! [nono] weaker protection: this machine allows no more user namespaces; `nono setup --check-only` lists what that changes
$ nono run -s -- true
$ nono run -s --read . -- cat in ../home/out
inside
! cat: ../home/out: Permission denied
= exit 1
$ nono run -s --read . -- sh -c 'echo x > in'
! sh: 1: cannot create in: Permission denied
= exit 2
$ nono run -s --monitor --read . -- cat in ../home/out
inside
! cat: ../home/out: Permission denied
= exit 1
$ nono wrap -s --read . -- cat in ../home/out
inside
! cat: ../home/out: Permission denied
= exit 1
$ nono run -s -- sh -c 'exit 5'
= exit 5
$ nono run -s -- sh -c 'kill -9 $$'
= exit 137

"#]],
    );
}

#[test]
fn what_needs_a_namespace_is_refused() {
    let Some(world) = bare() else { return };
    world.file("work/closed", "");
    world.file("home/.ssh/id", "key\n");
    let _socket = std::os::unix::net::UnixListener::bind(world.path("work/socket")).unwrap();
    let text = transcript(
        &world,
        &[
            "nono run --allow . --deny closed -- true",
            "nono run --max-procs 5 -- true",
            "nono run --allow-unix-socket socket -- true",
            "nono run -s --read ~ -- cat ../home/.ssh/id",
        ],
    );
    super::world::golden(
        text,
        str![[r#"
$ nono run --allow . --deny closed -- true
! [nono] error: cannot close [TMP]/work/closed inside [TMP]/work: that needs a mount namespace, and this machine allows no more user namespaces
! [nono] hint: grant only the parts of [TMP]/work that the command needs, without [TMP]/work/closed
= exit 125
$ nono run --max-procs 5 -- true
! [nono] error: cannot limit the number of processes: that needs a user namespace, and this machine allows no more user namespaces
! [nono] hint: leave --max-procs out
= exit 125
$ nono run --allow-unix-socket socket -- true
! [nono] weaker protection: this machine allows no more user namespaces; `nono setup --check-only` lists what that changes
$ nono run -s --read ~ -- cat ../home/.ssh/id
! cat: ../home/.ssh/id: Permission denied
= exit 1

"#]],
    );
    world.left_nothing();
}

#[test]
fn no_inet_socket_at_all() {
    let Some(world) = bare() else { return };
    let socket =
        |family: &str| format!("nono run -s -- python3 -c 'import socket; socket.socket(socket.{family})'");
    for family in ["AF_INET", "AF_INET6"] {
        let outcome = run(&world, &socket(family));
        assert_eq!(outcome.code(), Some(1), "{family}: {outcome:?}");
        assert!(
            outcome.err().contains("PermissionError") || outcome.err().contains("not supported"),
            "{outcome:?}"
        );
    }
    assert_eq!(run(&world, "nono run -s -- python3 -c 'import socket; socket.socketpair()'").code(), Some(0));
}

#[test]
fn survivors_are_swept() {
    let Some(world) = bare() else { return };
    let line = "exec nono run -s --allow . -- sh -c 'mkfifo up; setsid sh -c \"(echo ready; echo > up; exec sleep 1000) & wait\" & read x < up; exit 6'";
    let outcome = run(&world, line);
    assert_eq!((outcome.out().as_str(), outcome.code()), ("ready\n", Some(6)), "{outcome:?}");
    let running = Running::start(&mut without_namespaces(
        &world,
        "exec nono run -s -- sh -c 'echo ready; exec sleep 1000'",
    ));
    running.until("ready");
    running.signal_group(Signal::TERM);
    assert_ne!(running.end().code(), Some(0));
}

#[test]
fn setup_says_what_that_changes() {
    let Some(world) = bare() else { return };
    let outcome = run(&world, "nono setup --check-only");
    assert_eq!(outcome.code(), Some(0), "{outcome:?}");
    assert!(outcome.out().contains("namespaces: missing, "), "{}", outcome.out());
    assert!(outcome.out().contains("  refused a denied path inside a granted tree"), "{}", outcome.out());
    assert!(outcome.out().contains("could do neither"), "{}", outcome.out());
}
