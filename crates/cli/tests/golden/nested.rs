//! nono inside nono: direct, confined by both, and it says so.

use snapbox::str;

use super::world::World;

#[test]
fn a_run_inside_a_run() {
    let world = World::new();
    world.file("work/a/file", "a\n");
    world.file("work/b/file", "b\n");
    world.golden(
        &[
            "nono run -s -- nono run -- echo ran",
            "nono run -s -- nono run -s -- echo ran",
            "nono wrap -- nono wrap -- echo ran",
            "nono run -s --monitor -- nono run --monitor -- echo ran",
            "nono run -s --read . -- nono run -s --read a -- cat a/file b/file",
            "nono run -s --read a -- nono run -s --read . -- cat a/file b/file",
            "nono run -s -- nono run -- sh -c 'exit 7'",
            "nono run -s -- nono run -- no-such-program",
        ],
        str![[r#"
$ nono run -s -- nono run -- echo ran
ran
! [nono] already inside a nono sandbox: the command runs directly, confined by both sandboxes
$ nono run -s -- nono run -s -- echo ran
ran
$ nono wrap -- nono wrap -- echo ran
ran
! [nono] already inside a nono sandbox: the command runs directly, confined by both sandboxes
$ nono run -s --monitor -- nono run --monitor -- echo ran
ran
! [nono] already inside a nono sandbox: the command runs directly, confined by both sandboxes
$ nono run -s --read . -- nono run -s --read a -- cat a/file b/file
a
! cat: b/file: Permission denied
= exit 1
$ nono run -s --read a -- nono run -s --read . -- cat a/file b/file
a
! cat: b/file: Permission denied
= exit 1
$ nono run -s -- nono run -- sh -c 'exit 7'
! [nono] already inside a nono sandbox: the command runs directly, confined by both sandboxes
= exit 7
$ nono run -s -- nono run -- no-such-program
! [nono] error: no-such-program: command not found
= exit 127

"#]],
    );
}

#[test]
fn what_needs_a_supervisor_is_refused_inside() {
    World::new().golden(
        &[
            "nono run -s -- nono run --max-time 1s -- true",
            "nono run -s -- nono run --max-memory 1G -- true",
            "nono run -s -- nono run --diagnostics-json -- true",
            "nono run -s -- nono run --max-procs 5 -- true",
        ],
        str![[r#"
$ nono run -s -- nono run --max-time 1s -- true
! [nono] error: --max-time needs a supervisor, and inside a nono sandbox the command runs directly
! [nono] hint: leave --max-time out, or give it to the outer nono
= exit 2
$ nono run -s -- nono run --max-memory 1G -- true
! [nono] error: --max-memory needs a supervisor, and inside a nono sandbox the command runs directly
! [nono] hint: leave --max-memory out, or give it to the outer nono
= exit 2
$ nono run -s -- nono run --diagnostics-json -- true
! [nono] error: --diagnostics-json needs a supervisor, and inside a nono sandbox the command runs directly
! [nono] hint: leave --diagnostics-json out, or give it to the outer nono
= exit 2
$ nono run -s -- nono run --max-procs 5 -- true
! [nono] error: cannot limit the number of processes: that needs a user namespace, and the outer nono sandbox allows none
! [nono] hint: leave --max-procs out, or give it to the outer nono
= exit 125

"#]],
    );
}

#[test]
fn what_cannot_be_closed_inside_is_refused() {
    let world = World::new();
    world.file("work/closed", "");
    world.golden(&["nono run -s --allow . -- nono run --allow . --deny closed -- true"], str![[r#"
$ nono run -s --allow . -- nono run --allow . --deny closed -- true
! [nono] error: cannot close [TMP]/work/closed inside [TMP]/work: that needs a mount namespace, and the outer nono sandbox allows none
! [nono] hint: grant only the parts of [TMP]/work that the command needs, without [TMP]/work/closed
= exit 125

"#]]);
}

/// A variable alone does not make a sandbox.
#[test]
fn the_variable_alone_does_not_make_a_run_nested() {
    let world = World::new();
    world.file("work/caps", "{}");
    world.file("home/out", "outside\n");
    world.golden(
        &["NONO_CAP_FILE=$PWD/caps nono run -s -- cat ../home/out"],
        str![[r#"
$ NONO_CAP_FILE=$PWD/caps nono run -s -- cat ../home/out
! cat: ../home/out: Permission denied
= exit 1

"#]],
    );
}

#[test]
fn other_commands_inside() {
    World::new().golden(
        &[
            "nono run -s -- nono setup --check-only | grep -E '^(canary|namespaces)'",
            "nono run -s -- nono profile list | head -1",
            "nono run -s -- nono why --path /usr",
        ],
        str![[r#"
$ nono run -s -- nono setup --check-only | grep -E '^(canary|namespaces)'
namespaces: missing, user namespaces do not work here: could not create the namespaces: Operation not permitted
canary: not tried: already inside a nono sandbox
$ nono run -s -- nono profile list | head -1
default        System programs only; no working directory, no network (built in)
$ nono run -s -- nono why --path /usr
ALLOWED: read /usr
granted by: /usr (read) [group:system]

"#]],
    );
}
