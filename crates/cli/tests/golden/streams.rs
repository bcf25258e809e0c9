//! What the command reads and says passes untouched: every byte, in order, on the stream it was meant for.

use std::os::fd::OwnedFd;

use super::world::World;
use nono_testkit::process::{finish, finish_with};

const WAYS: &[&[&str]] = &[&["run"], &["run", "--no-diagnostics"], &["run", "--monitor"], &["wrap"]];

fn args<'a>(way: &[&'a str], rest: &[&'a str]) -> Vec<&'a str> {
    way.iter().chain(&["--"]).chain(rest).copied().collect()
}

#[test]
fn the_streams_stay_apart() {
    let world = World::new();
    for way in WAYS {
        let outcome = finish(&mut world.nono(&args(way, &["sh", "-c", "echo out; echo err >&2"])));
        assert_eq!((outcome.out().as_str(), outcome.err().as_str()), ("out\n", "err\n"), "{way:?}");
    }
}

#[test]
fn every_byte_passes() {
    let world = World::new();
    let bytes: Vec<u8> = (0..=255u8).cycle().take(5_000_000).collect();
    for way in WAYS {
        let outcome = finish_with(&mut world.nono(&args(way, &["cat"])), bytes.clone());
        assert!(outcome.stdout == bytes && outcome.stderr.is_empty(), "{way:?} stdout");
        let outcome = finish_with(&mut world.nono(&args(way, &["sh", "-c", "cat >&2"])), bytes.clone());
        assert!(outcome.stderr == bytes && outcome.stdout.is_empty(), "{way:?} stderr");
    }
}

#[test]
fn one_pipe_for_both_keeps_their_order() {
    let world = World::new();
    let line = "i=0; while [ $i -lt 300 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done";
    let expected: String = (0..300).map(|i| format!("o{i}\ne{i}\n")).collect();
    for way in ["run", "run --monitor", "wrap"] {
        let outcome = world.sh(&format!("exec nono {way} -- sh -c '{line}' 2>&1"));
        assert!(outcome.out() == expected, "{way}: {}", outcome.out());
    }
}

#[test]
fn a_footer_comes_after_what_the_command_said() {
    let world = World::new();
    let outcome = world.sh("nono run -- sh -c 'head -c 200000 /dev/zero | tr \"\\0\" x >&2; exit 1' 2>&1");
    let footer = outcome.out().find("[nono]");
    // One more: the command's line had no end.
    assert_eq!(footer, Some(200_001));
}

#[test]
fn an_unfinished_line_of_the_command_does_not_run_into_the_footer() {
    let world = World::new();
    let outcome = world.sh("nono run -- sh -c 'printf unfinished >&2; exit 1'");
    assert!(outcome.err().starts_with("unfinished\n[nono] exit 1; "), "{}", outcome.err());
}

#[test]
fn closed_streams_stay_closed_and_do_no_harm() {
    let world = World::new();
    let which = "for fd in 0 1 2; do [ -e /proc/self/fd/$fd ] && printf $fd; done > \"$PWD/open\"";
    for (way, close) in [("run", "<&-"), ("run", ">&-"), ("run", "2>&-"), ("wrap", "<&-"), ("wrap", "2>&-")] {
        let outcome = world.sh(&format!("nono {way} --allow . -- sh -c '{which}' {close}"));
        assert_eq!(outcome.code(), Some(0), "{way} {close}: {outcome:?}");
    }
    let outcome = world.sh("nono run -- sh -c 'exit 3' <&- >&- 2>&-");
    assert_eq!(outcome.code(), Some(3));
    let outcome = world.sh("nono run -- cat <&-");
    assert_ne!(outcome.code(), Some(125), "{outcome:?}");
    world.left_nothing();
}

#[test]
fn a_reader_that_goes_away_ends_the_writer() {
    let world = World::new();
    let outcome = world.sh("nono run -- yes | head -1");
    assert_eq!(outcome.out(), "y\n");
    let outcome = world.sh("{ nono run -- sh -c 'yes >&2'; echo $? >&3; } 3>code 2>&1 | head -1; cat code");
    assert_eq!(outcome.out(), "y\n141\n");
    world.left_nothing();
}

#[test]
fn only_the_three_streams_are_inherited() {
    let world = World::new();
    let (_reader, writer) = std::io::pipe().unwrap();
    let held = OwnedFd::from(writer);
    for way in WAYS {
        let mut command = world.nono(&args(way, &["sh", "-c", "ls /proc/$$/fd"]));
        let outcome = finish(command.stdin(held.try_clone().unwrap()));
        assert_eq!(outcome.out().split_whitespace().filter(|fd| fd.len() == 1 && *fd < "3").count(), 3);
        let outcome = world.sh(&format!("nono {} -- sh -c 'echo leak >&9' 9>leaked", way.join(" ")));
        assert_ne!(outcome.code(), Some(0), "{way:?}");
    }
}
