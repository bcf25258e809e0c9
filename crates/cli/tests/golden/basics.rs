//! The ways to run a command, and the exit codes.

use snapbox::str;

use super::world::World;
use nono_testkit::process::{finish, finish_with};

#[test]
fn a_good_run_says_nothing() {
    let world = World::new();
    for line in [
        "nono run -- true",
        "nono run true",
        "nono run --supervised -- true",
        "nono run --monitor -- true",
        "nono run --exec -- true",
        "nono wrap -- true",
        "nono wrap true",
    ] {
        let outcome = world.sh(line);
        outcome.quiet(0);
        assert_eq!(outcome.out(), "", "{line}");
    }
}

#[test]
fn exit_codes_are_the_commands_own() {
    let world = World::new();
    for way in ["run -s", "run -s --monitor", "run -s --supervised", "wrap", "run --exec"] {
        for code in [1, 2, 42, 125, 255] {
            world.sh(&format!("nono {way} -- sh -c 'exit {code}'")).quiet(code);
        }
    }
}

#[test]
fn a_signal_is_128_and_its_number() {
    let world = World::new();
    for (way, signal) in [("--supervised", 15), ("--supervised", 9), ("--monitor", 15), ("--supervised", 1)] {
        let line = format!("kill -{signal} $$");
        finish(&mut world.nono(&["run", way, "--", "sh", "-c", &line])).quiet(128 + signal);
    }
    world.left_nothing();
}

#[test]
fn what_cannot_be_run() {
    let world = World::new();
    world.file("work/text", "no program");
    world.file("work/elsewhere.sh", "#!/no/such/interpreter\n");
    world.golden(
        &[
            "nono run -- no-such-program",
            "nono run -- ./no-such-program",
            "nono wrap -- no-such-program",
            "nono run -- ./text",
            "nono run -- /usr",
            "nono run -- ''",
            "chmod +x elsewhere.sh; nono run -- ./elsewhere.sh",
        ],
        str![[r#"
$ nono run -- no-such-program
! [nono] error: no-such-program: command not found
= exit 127
$ nono run -- ./no-such-program
! [nono] error: ./no-such-program: no such file
= exit 127
$ nono wrap -- no-such-program
! [nono] error: no-such-program: command not found
= exit 127
$ nono run -- ./text
! [nono] error: [TMP]/work/./text is not executable
= exit 126
$ nono run -- /usr
! [nono] error: /usr is a directory, not a program
= exit 126
$ nono run -- ''
! [nono] error: the command is empty
= exit 127
$ chmod +x elsewhere.sh; nono run -- ./elsewhere.sh
! [nono] error: [TMP]/work/./elsewhere.sh: could not execute the program: No such file or directory
! [nono] hint: its interpreter (the first line of a script) does not exist, or is not granted
= exit 127

"#]],
    );
}

/// A misspelt flag is not the name of the command, and not an argument to ignore either.
#[test]
fn an_unknown_flag_is_wrong_usage() {
    let world = World::new();
    for line in
        ["run --denny /x -- true", "wrap --bogus -- true", "run -Z true", "wrap --diagnostics-json -- true"]
    {
        let outcome = world.sh(&format!("nono {line}"));
        let flag = line.split(' ').nth(1).unwrap();
        assert_eq!(outcome.code(), Some(2), "{line}: {}", outcome.err());
        assert!(
            outcome.err().contains(&format!("unexpected argument '{flag}'")),
            "{line}: {}",
            outcome.err()
        );
    }
}

#[test]
fn wrong_usage() {
    let world = World::new();
    world.golden(
        &[
            "nono run",
            "nono wrap",
            "nono run --monitor --exec -- true",
            "nono run --allow-net --block-net -- true",
            "nono run --no-diagnostics --diagnostics-json -- true",
            "nono run -s -v -- true",
            "nono frob",
        ],
        str![[r#"
$ nono run
! [nono] error: the following required arguments were not provided:
! [nono]   <COMMAND>...
! [nono]
! [nono] Usage: nono run <COMMAND>...
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono wrap
! [nono] error: the following required arguments were not provided:
! [nono]   <COMMAND>...
! [nono]
! [nono] Usage: nono wrap <COMMAND>...
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono run --monitor --exec -- true
! [nono] error: the argument '--monitor' cannot be used with '--exec'
! [nono]
! [nono] Usage: nono run --monitor <COMMAND>...
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono run --allow-net --block-net -- true
! [nono] error: the argument '--allow-net' cannot be used with '--block-net'
! [nono]
! [nono] Usage: nono run --allow-net <COMMAND>...
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono run --no-diagnostics --diagnostics-json -- true
! [nono] error: the argument '--no-diagnostics' cannot be used with '--diagnostics-json'
! [nono]
! [nono] Usage: nono run --no-diagnostics <COMMAND>...
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono run -s -v -- true
! [nono] error: the argument '--silent' cannot be used with '--verbose'
! [nono]
! [nono] Usage: nono run --silent <COMMAND>...
! [nono]
! [nono] For more information, try '--help'.
= exit 2
$ nono frob
! [nono] error: unrecognized subcommand 'frob'
! [nono]
! [nono]   tip: a similar subcommand exists: 'rollback'
! [nono]
! [nono] Usage: nono <COMMAND>
! [nono]
! [nono] For more information, try '--help'.
= exit 2

"#]],
    );
}

#[test]
fn flags_that_need_a_parent_are_refused_without_one() {
    let world = World::new();
    world.golden(
        &[
            "nono wrap --max-time 1s -- true",
            "nono wrap --max-memory 1G -- true",
            "nono run --exec --max-time 1s -- true",
            "nono run --exec --diagnostics-json -- true",
        ],
        str![[r#"
$ nono wrap --max-time 1s -- true
! [nono] error: --max-time needs a supervisor, and `nono wrap` has none
! [nono] hint: use `nono run`, or leave --max-time out
= exit 2
$ nono wrap --max-memory 1G -- true
! [nono] error: --max-memory needs a supervisor, and `nono wrap` has none
! [nono] hint: use `nono run`, or leave --max-memory out
= exit 2
$ nono run --exec --max-time 1s -- true
! [nono] error: --max-time needs a supervisor, and --exec starts none
! [nono] hint: leave --exec or --max-time out
= exit 2
$ nono run --exec --diagnostics-json -- true
! [nono] error: --diagnostics-json needs a supervisor, and --exec starts none
! [nono] hint: leave --exec or --diagnostics-json out
= exit 2

"#]],
    );
}

#[test]
fn arguments_of_the_command_are_left_alone() {
    let world = World::new();
    let outcome = world.sh("nono run printf '%s|' --allow -a -- --help 'a b' '' '*'");
    outcome.quiet(0);
    assert_eq!(outcome.out(), "--allow|-a|--|--help|a b||*|");
}

#[test]
fn a_shell_is_yours_and_confined() {
    let world = World::new().with("SHELL", Some("/bin/sh"));
    world.file("home/out", "outside\n");
    let outcome = finish_with(&mut world.nono(&["shell", "-s"]), b"echo $0; cat ~/out; exit 7\n".to_vec());
    assert_eq!(outcome.code(), Some(7));
    assert_eq!(outcome.out(), "/bin/sh\n");
    assert!(outcome.err().contains("out: Permission denied"), "{outcome:?}");
    world.left_nothing();
}

#[test]
fn names_of_sessions() {
    let world = World::new();
    world.golden(
        &[
            "nono run --name my-run_1.2 -- true",
            "nono run --name 'a b' -- true",
            "nono run --name last -- true",
            "nono run --name '' -- true",
            "nono run --name ../x -- true",
        ],
        str![[r#"
$ nono run --name my-run_1.2 -- true
$ nono run --name 'a b' -- true
! [nono] error: --name "a b": use up to 64 letters, digits, '-', '_' and '.', but not "last"
= exit 2
$ nono run --name last -- true
! [nono] error: --name "last": use up to 64 letters, digits, '-', '_' and '.', but not "last"
= exit 2
$ nono run --name '' -- true
! [nono] error: --name "": use up to 64 letters, digits, '-', '_' and '.', but not "last"
= exit 2
$ nono run --name ../x -- true
! [nono] error: --name "../x": use up to 64 letters, digits, '-', '_' and '.', but not "last"
= exit 2

"#]],
    );
}

#[test]
fn more_words_when_asked() {
    let world = World::new();
    let outcome = world.sh("nono run -v --allow . -- true");
    assert!(outcome.err().starts_with("[nono] supervised: "), "{outcome:?}");
    assert!(outcome.err().ends_with("network blocked\n"), "{outcome:?}");
    let outcome = world.sh("nono run -v -- sh -c 'kill -15 $$'");
    assert!(outcome.err().ends_with("[nono] the command was ended by SIGTERM\n"), "{outcome:?}");
}
