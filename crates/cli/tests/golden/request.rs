//! `nono request`: asking for more, from inside alone.

use snapbox::str;

use super::world::World;

#[test]
fn outside_there_is_no_supervisor_to_ask() {
    World::new().golden(
        &[
            "nono request --read file --reason why",
            "nono request",
            "nono request --read a --write b",
            "nono request --read a --json -- true",
            "NONO_REQUEST_SOCK=/no/such nono request --read file",
            "nono run -s --monitor -- nono request --read file",
            "nono wrap -- nono request --read file",
        ],
        str![[r#"
$ nono request --read file --reason why
! [nono] error: request works only inside a supervised nono sandbox (NONO_REQUEST_SOCK names no socket)
! [nono] hint: `nono run` has a supervisor to ask; `nono wrap` and --monitor have none
= exit 125
$ nono request
! [nono] error: the following required arguments were not provided:
! [nono]   <--read <PATH>|--write <PATH>|--allow <PATH>>
! [nono]
! [nono] Usage: nono request <--read <PATH>|--write <PATH>|--allow <PATH>> [-- <COMMAND>...]
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono request --read a --write b
! [nono] error: the argument '--read <PATH>' cannot be used with '--write <PATH>'
! [nono]
! [nono] Usage: nono request <--read <PATH>|--write <PATH>|--allow <PATH>> [-- <COMMAND>...]
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono request --read a --json -- true
! [nono] error: the argument '--json' cannot be used with '[COMMAND]...'
! [nono]
! [nono] Usage: nono request --json <--read <PATH>|--write <PATH>|--allow <PATH>> [-- <COMMAND>...]
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ NONO_REQUEST_SOCK=/no/such nono request --read file
! [nono] error: /no/such does not answer: No such file or directory
= exit 125
$ nono run -s --monitor -- nono request --read file
! [nono] error: request works only inside a supervised nono sandbox (NONO_REQUEST_SOCK names no socket)
! [nono] hint: `nono run` has a supervisor to ask; `nono wrap` and --monitor have none
= exit 125
$ nono wrap -- nono request --read file
! [nono] error: request works only inside a supervised nono sandbox (NONO_REQUEST_SOCK names no socket)
! [nono] hint: `nono run` has a supervisor to ask; `nono wrap` and --monitor have none
= exit 125

"#]],
    );
}

/// Without an approver the answer is no.
#[test]
fn inside_the_answer_is_no() {
    let world = World::new();
    world.file("home/letter", "private\n");
    world.golden(
        &[
            "nono run -s --allow-cwd -- nono request --read ../home/letter --reason 'to see it'",
            "nono run -s --allow-cwd -- nono request --json --allow /etc/shadow",
            "nono run -s --allow-cwd -- nono request --write ../home/letter -- sh -c 'echo x >&3'",
            "nono run -s -- nono request --read \"$(printf 'x\\033[31m')\"",
            "nono run -s -- sh -c 'echo $NONO_REQUEST_SOCK; stat -c %a $NONO_REQUEST_SOCK'",
            "nono run -s -- sh -c 'rm -f $NONO_REQUEST_SOCK; test -S $NONO_REQUEST_SOCK && echo still there'",
            "cat ../home/letter",
        ],
        str![[r#"
$ nono run -s --allow-cwd -- nono request --read ../home/letter --reason 'to see it'
! [nono] denied: read [TMP]/work/../home/letter: the command was not started with --ask
= exit 1
$ nono run -s --allow-cwd -- nono request --json --allow /etc/shadow
{
  "path": "/etc/shadow",
  "access": "read+write",
  "granted": false,
  "already_open": false,
  "by": null,
  "reason": "you may not open it, even outside the sandbox"
}
= exit 1
$ nono run -s --allow-cwd -- nono request --write ../home/letter -- sh -c 'echo x >&3'
! [nono] denied: write [TMP]/work/../home/letter: the command was not started with --ask
= exit 1
$ nono run -s -- nono request --read "$(printf 'x\033[31m')"
! [nono] denied: read [TMP]/work/x\u{1b}[31m: it does not exist, or is a special file that nono cannot open for you
= exit 1
$ nono run -s -- sh -c 'echo $NONO_REQUEST_SOCK; stat -c %a $NONO_REQUEST_SOCK'
[TMP]/tmp/nono-[UID]/[SESSION]/request.sock
600
$ nono run -s -- sh -c 'rm -f $NONO_REQUEST_SOCK; test -S $NONO_REQUEST_SOCK && echo still there'
still there
! rm: cannot remove '[TMP]/tmp/nono-[UID]/[SESSION]/request.sock': Read-only file system
$ cat ../home/letter
private

"#]],
    );
}

/// The socket is the session's: neither another session nor a process outside can use it.
#[test]
fn it_is_for_the_session_alone() {
    let world = World::new();
    let args = ["run", "-s", "--", "sh", "-c", "echo ready; exec sleep 1000"];
    let running = nono_testkit::process::Running::start(&mut world.nono(&args));
    running.until("ready");
    let socket = world.sessions()[0].join("request.sock");
    let outcome = world.sh(&format!("NONO_REQUEST_SOCK={} nono request --read file", socket.display()));
    assert_eq!(outcome.code(), Some(125), "{outcome:?}");
    assert!(outcome.err().contains("this channel is only for processes inside the sandbox"), "{outcome:?}");
    running.signal(rustix::process::Signal::TERM);
    running.end();
    world.left_nothing();
}
