//! Odd ways to be called.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use snapbox::str;

use super::world::{World, golden};
use nono_testkit::process::finish;

#[test]
fn bytes_that_are_no_text() {
    let world = World::new();
    let odd = OsStr::from_bytes(b"odd\xff\x1b[31m");
    std::fs::create_dir(world.path("work").join(odd)).unwrap();
    let mut said = String::new();
    let missing = OsStr::from_bytes(b"no\xffsuch\x1b[31m");
    for (flags, last) in [
        (&["run", "--read"][..], odd),
        (&["run", "--read"], missing),
        (&["run", "--profile"], missing),
        (&["run", "--name"], missing),
        (&["run", "--env"], missing),
        (&["run", "--workdir"], missing),
    ] {
        let outcome = finish(world.nono(flags).arg(last).args(["--", "true"]));
        said += &format!("# {}\n{}", flags.join(" "), world.show(&outcome));
    }
    for flags in
        [&["run", "--"][..], &["why", "--path"], &["run", "--dry-run", "--"], &["profile", "show"], &["man"]]
    {
        let outcome = finish(world.nono(flags).arg(missing));
        let shown: String = world
            .show(&outcome)
            .lines()
            .filter(|line| !line.starts_with("  "))
            .map(|line| format!("{line}\n"))
            .collect();
        said += &format!("# {}\n{shown}", flags.join(" "));
    }
    assert!(!said.contains('\u{1b}'), "{said}");
    golden(
        said,
        str![[r#"
# run --read
# run --read
! [nono] error: [TMP]/work/no�such\u{1b}[31m does not exist (granted by you)
= exit 125
# run --profile
! [nono] error: the profile's name is not valid UTF-8
= exit 2
# run --name
! [nono] error: invalid UTF-8 was detected in one or more arguments
! [nono]
! [nono] Usage: nono run [OPTIONS] <COMMAND>...
! [nono]
! [nono] For more information, try '--help'.
= exit 2
# run --env
! [nono] error: invalid UTF-8 was detected in one or more arguments
! [nono]
! [nono] Usage: nono run [OPTIONS] <COMMAND>...
! [nono]
! [nono] For more information, try '--help'.
= exit 2
# run --workdir
! [nono] error: --workdir [TMP]/work/no�such\u{1b}[31m: No such file or directory
= exit 125
# run --
! [nono] error: no�such\u{1b}[31m: command not found
= exit 127
# why --path
DENIED: read no�such\u{1b}[31m
reason: not granted
note: it does not exist
# run --dry-run --
! [nono] error: no�such\u{1b}[31m: command not found
= exit 127
# profile show
! [nono] error: invalid UTF-8 was detected in one or more arguments
! [nono]
! [nono] Usage: nono profile show [OPTIONS] <PROFILE>
! [nono]
! [nono] For more information, try '--help'.
= exit 2
# man
! [nono] error: invalid UTF-8 was detected in one or more arguments
! [nono]
! [nono] Usage: nono man [OPTIONS] [COMMAND]
! [nono]
! [nono] For more information, try '--help'.
= exit 2

"#]],
    );
    world.left_nothing();
}

#[test]
fn a_hundred_thousand_arguments() {
    let world = World::new();
    for way in ["run", "wrap"] {
        let mut command = world.nono(&[way, "--", "sh", "-c", "echo $#"]);
        let outcome = finish(command.args((0..=100_000).map(|n| n.to_string())));
        assert_eq!(outcome.out(), "100000\n", "{way}: {}", outcome.err());
        outcome.quiet(0);
    }
}

#[test]
fn no_terminal_means_no() {
    let world = World::new();
    let outcome = world.sh("setsid -w nono run -s -- ls < /dev/null");
    assert_ne!(outcome.code(), Some(0), "the working directory is not open");
    assert!(!outcome.err().contains("[y/N]"), "{outcome:?}");
}

#[test]
fn a_working_directory_that_is_gone() {
    let world = World::new();
    world.golden(
        &["mkdir gone; cd gone; rmdir ../gone; nono run -- true"],
        str![[r#"
$ mkdir gone; cd gone; rmdir ../gone; nono run -- true
! [nono] error: cannot find the current directory: No such file or directory
! [nono] hint: cd to one that exists
= exit 125

"#]],
    );
}

#[test]
fn an_empty_or_odd_search_path() {
    let world = World::new();
    world.file("work/a/tool", "text");
    world.file("work/b/tool", "#!/bin/sh\necho the second\n");
    world.sh("chmod +x b/tool").quiet(0);
    world.golden(
        &[
            "PATH= ../bin/nono run -- true",
            "PATH=/no/such:/usr/bin ../bin/nono run -- true",
            "env -u PATH ../bin/nono run -- true",
            "PATH=a:b ../bin/nono run --allow-cwd -- tool",
            "PATH=a ../bin/nono run -- tool",
        ],
        str![[r#"
$ PATH= ../bin/nono run -- true
! [nono] error: true: command not found
= exit 127
$ PATH=/no/such:/usr/bin ../bin/nono run -- true
$ env -u PATH ../bin/nono run -- true
! [nono] error: true: command not found
= exit 127
$ PATH=a:b ../bin/nono run --allow-cwd -- tool
the second
$ PATH=a ../bin/nono run -- tool
! [nono] error: [TMP]/work/a/tool is not executable
= exit 126

"#]],
    );
}

#[test]
fn a_closed_stdout_of_an_answer_is_an_error_but_a_closed_pipe_is_not() {
    let world = World::new();
    world.sh("nono profile schema | head -1 > /dev/null").quiet(0);
    world.golden(
        &["nono profile list > /dev/full", "nono --help > /dev/full"],
        str![[r#"
$ nono profile list > /dev/full
! [nono] error: cannot write to stdout: No space left on device
= exit 125
$ nono --help > /dev/full

"#]],
    );
}
