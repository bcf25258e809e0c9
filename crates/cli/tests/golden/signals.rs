//! Signals reach the command once; nothing outlives nono or the command.

use rustix::process::Signal;

use super::world::World;
use nono_testkit::process::{Running, finish};

/// Says "ready", then the name of each signal it gets, until it gets USR1.
const COUNTING: &str = "
for s in INT TERM HUP QUIT; do trap \"echo $s\" $s; done
trap 'exit 9' USR1
echo ready
while :; do sleep 1000 & wait $!; done";

#[test]
fn signals_are_passed_on_once() {
    let world = World::new();
    for way in ["--supervised", "--monitor"] {
        let args = ["run", "-s", way, "--read", ".", "--", "sh", "-c", COUNTING];
        let running = Running::start(&mut world.nono(&args));
        running.until("ready");
        let signals =
            [(Signal::INT, "INT"), (Signal::TERM, "TERM"), (Signal::HUP, "HUP"), (Signal::QUIT, "QUIT")];
        for (signal, word) in signals {
            running.signal(signal);
            running.until(word);
        }
        running.signal(Signal::USR1);
        let outcome = running.end();
        assert_eq!(outcome.out(), "ready\nINT\nTERM\nHUP\nQUIT\n", "{way}");
        assert_eq!(outcome.code(), Some(9), "{way}");
    }
    world.left_nothing();
}

#[test]
fn the_whole_group_gets_it() {
    let world = World::new();
    let line = "trap 'wait; echo outer; exit 5' TERM
        (trap 'echo inner; exit' TERM; echo ready; while :; do sleep 1000 & wait $!; done) &
        while :; do wait; done";
    let running = Running::start(&mut world.nono(&["run", "-s", "--", "sh", "-c", line]));
    running.until("ready");
    running.signal(Signal::TERM);
    let outcome = running.end();
    assert_eq!((outcome.out().as_str(), outcome.code()), ("ready\ninner\nouter\n", Some(5)));
}

#[test]
fn a_command_that_does_not_care_ends_by_the_signal() {
    let world = World::new();
    for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15), (Signal::HUP, 1), (Signal::QUIT, 3)] {
        let running =
            Running::start(&mut world.nono(&["run", "--", "sh", "-c", "echo ready; exec sleep 1000"]));
        running.until("ready");
        running.signal(signal);
        running.end().quiet(128 + number);
    }
    world.left_nothing();
}

/// The grandchild holds stdout: the end of that stream is the end of the last of them.
const SURVIVOR: &str = "setsid sh -c 'trap \"\" HUP TERM INT; (echo ready; exec sleep 1000) & wait' & ";

#[test]
fn killing_nono_kills_the_tree() {
    let world = World::new();
    for way in ["--supervised", "--monitor"] {
        let line = format!("{SURVIVOR} wait");
        let running = Running::start(&mut world.nono(&["run", way, "--", "sh", "-c", &line]));
        running.until("ready");
        running.signal(Signal::KILL);
        assert_eq!(running.end().code(), None);
    }
}

#[test]
fn what_the_command_leaves_running_is_ended() {
    let world = World::new();
    for way in ["--supervised", "--monitor"] {
        let line =
            format!("mkfifo up; {} read x < up; exit 6", SURVIVOR.replace("ready;", "ready; echo > up;"));
        let outcome = finish(&mut world.nono(&["run", "-s", way, "--allow", ".", "--", "sh", "-c", &line]));
        assert_eq!((outcome.out().as_str(), outcome.code()), ("ready\n", Some(6)), "{way}");
        std::fs::remove_file(world.path("work/up")).unwrap();
    }
    world.left_nothing();
}

/// Without a terminal no shell would continue a stopped nono, so it does not stop; it passes SIGCONT on instead.
#[test]
fn a_command_that_stops_without_a_terminal_stops_itself_alone() {
    let world = World::new();
    for way in ["--supervised", "--monitor"] {
        let line = "echo ready; kill -STOP $$; echo on; exit 4";
        let running = Running::start(&mut world.nono(&["run", "-s", way, "--", "sh", "-c", line]));
        running.until("ready");
        while !running.says("on") {
            assert!(!running.is_stopped(), "{way}");
            running.signal(Signal::CONT);
        }
        let outcome = running.end();
        assert_eq!((outcome.out().as_str(), outcome.code()), ("ready\non\n", Some(4)), "{way}");
    }
}

/// Receives descriptors, and keeps them.
const HOLDER: &str = "
import socket, time
s = socket.socket(socket.AF_UNIX); s.bind('holder'); s.listen(); print('ready', flush=True)
c, _ = s.accept(); kept = socket.recv_fds(c, 9, 2)[1]; print(len(kept), flush=True); time.sleep(1000)";
const GIVER: &str = "
import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect('holder'); socket.send_fds(s, [b'x'], [2]); sys.exit(7)";

/// The pipe that nono reads the errors of the command from does not end with the command, then.
#[test]
fn an_outside_process_that_keeps_stderr_open_does_not_delay_the_end() {
    for way in ["--supervised", "--monitor"] {
        let world = World::new();
        let mut holder = Running::start(world.command("/usr/bin/python3").args(["-c", HOLDER]));
        holder.until("ready");
        let args = ["run", way, "--read", ".", "--allow-unix-socket", "holder", "--", "python3", "-c", GIVER];
        let outcome = finish(&mut world.nono(&args));
        holder.until("1");
        assert!(holder.child.try_wait().unwrap().is_none(), "nono ended only after the holder had");
        holder.signal(Signal::KILL);
        holder.end();
        assert_eq!(outcome.code(), Some(7), "{way}: {outcome:?}");
    }
}
