//! Ends from outside: the terminal goes away, or nono itself is killed.

use rustix::process::{Pid, Signal, kill_process};

use super::world::World;
use super::{Way, each, script};
use nono_testkit::look::{eventually, nono, running};

fn gone(world: &World, argument: &str) {
    let seen = || running(world, argument);
    eventually(|| format!("still there: {argument} {:?}", seen()), || seen().is_empty().then_some(()));
}

fn there(world: &World, argument: &str) {
    eventually(|| format!("not there: {argument}"), || (!running(world, argument).is_empty()).then_some(()));
}

const INSIDE: [Way; 3] = [Way::Pty, Way::Shared, Way::Monitor];

#[test]
fn nothing_outlives_the_terminal() {
    each(&Way::ALL, |world, screen, way| {
        screen.start(&script(world, way, "hold"));
        screen.wait_line("up");
        there(world, "work/hold-child");
        screen.tmux(&["kill-pane"]);
        gone(world, "work/hold");
        if way == Way::Bare {
            // What a session of its own is for; the control ends it by hand.
            for (pid, _) in running(world, "work/hold-child") {
                kill(pid, Signal::KILL);
            }
        }
        gone(world, "work/hold-child");
        eventually(|| "nono is still there".to_owned(), || nono(world, "work/hold").is_none().then_some(()));
    });
}

fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a pid"), signal).expect("kill");
}

#[test]
fn nothing_outlives_a_killed_nono() {
    each(&INSIDE, |world, screen, way| {
        screen.start(&script(world, way, "hold"));
        screen.wait_line("up");
        there(world, "work/hold-child");
        kill(nono(world, "work/hold").expect("nono"), Signal::KILL);
        gone(world, "work/hold");
        gone(world, "work/hold-child");
        // The terminal may be left raw: a killed nono cannot restore it. Interactive shells do that themselves.
        assert_eq!(screen.prompt(), 137);
        assert_eq!(screen.run("echo usable"), 0);
        screen.wait_line("usable");
    });
}

/// (signal, the status the shell sees)
const SIGNALS: &[(Signal, i32)] =
    &[(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129), (Signal::QUIT, 131)];

#[test]
fn signals_to_nono_reach_the_command() {
    each(&INSIDE, |world, screen, way| {
        screen.run("ulimit -c 0");
        for (signal, status) in SIGNALS {
            screen.clear();
            screen.start(&script(world, way, "repeat"));
            screen.wait_line("up");
            kill(nono(world, "work/repeat").expect("nono"), *signal);
            assert_eq!(screen.prompt(), *status, "{signal:?}");
        }
    });
}

#[test]
fn stop_and_continue_reach_the_command() {
    each(&INSIDE, |world, screen, way| {
        screen.start(&script(world, way, "size"));
        screen.wait_line("size 30 100");
        let nono = nono(world, "work/size").expect("nono");
        kill(nono, Signal::TSTP);
        assert_eq!(screen.prompt(), 148);
        screen.start("fg");
        screen.wait_for("fg\n");
        // SIGSTOP cannot be passed on, but the terminal must still be right afterwards.
        kill(nono, Signal::STOP);
        assert_eq!(screen.prompt(), 147);
        screen.clear();
        screen.start("fg");
        screen.wait_for("fg\n");
        screen.key("C-c");
        assert_eq!(screen.prompt(), 130);
    });
}
