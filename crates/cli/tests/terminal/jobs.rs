//! Keys that send signals, and job control.

use std::time::Duration;

use super::world::World;
use super::{Way, each, script, settings};
use nono_testkit::look::{eventually, read, running};
use nono_testkit::screen::Screen;

const STOPPED: i32 = 128 + 20;
const INTERRUPTED: i32 = 128 + 2;

#[test]
fn ctrl_c_ends_the_command_and_leaves_the_terminal_as_it_was() {
    each(&Way::ALL, |world, screen, way| {
        let before = settings(world, screen);
        screen.start(&script(world, way, "repeat"));
        screen.wait_line("up");
        screen.key("C-c");
        assert_eq!(screen.prompt(), INTERRUPTED);
        assert_eq!(settings(world, screen), before);
    });
}

#[test]
fn each_ctrl_c_arrives_once() {
    each(&Way::ALL, |world, screen, way| {
        screen.start(&script(world, way, "count"));
        screen.wait_line("up");
        for n in 1..=3 {
            screen.key("C-c");
            screen.wait_line(&format!("int {n}"));
        }
        assert_eq!(screen.prompt(), 0);
        screen.wait_line("total 3");
    });
}

#[test]
fn ctrl_c_ends_the_loop_around_it() {
    each(&Way::ALL, |world, screen, way| {
        screen.start(&format!("for i in 1 2 3; do {}; done", script(world, way, "repeat")));
        screen.wait_line("up");
        screen.key("C-c");
        assert_eq!(screen.prompt(), INTERRUPTED);
        assert_eq!(screen.text().matches("\nup").count(), 1, "{}", screen.text());
    });
}

#[test]
fn ctrl_backslash_quits() {
    each(&Way::ALL, |world, screen, way| {
        screen.run("ulimit -c 0");
        screen.start(&script(world, way, "repeat"));
        screen.wait_line("up");
        screen.key("C-\\");
        assert_eq!(screen.prompt(), 128 + 3);
    });
}

fn wait_state(world: &World, name: &str, stopped: bool) {
    let argument = format!("work/{name}");
    let seen = || running(world, &argument);
    let settled = || {
        let states = seen();
        (!states.is_empty() && states.iter().all(|(_, state)| (*state == 'T') == stopped)).then_some(())
    };
    eventually(|| format!("{name} is {:?}", seen()), settled);
}

#[test]
fn ctrl_z_stops_it_and_fg_brings_it_back() {
    each(&Way::ALL, |world, screen, way| {
        let before = settings(world, screen);
        screen.start(&script(world, way, "size"));
        screen.wait_line("size 30 100");
        for _ in 0..2 {
            screen.key("C-z");
            assert_eq!(screen.prompt(), STOPPED);
            wait_state(world, "size", true);
            assert_eq!(settings(world, screen), before);
            screen.start("fg");
            wait_state(world, "size", false);
        }
        screen.key("C-c");
        assert_eq!(screen.prompt(), INTERRUPTED);
        assert_eq!(settings(world, screen), before);
    });
}

/// Whether the file comes to keep its content for a while, or to change.
fn comes_to(rest: bool, world: &World, file: &str) {
    let unchanged = || {
        let before = read(world, file);
        std::thread::sleep(Duration::from_millis(300));
        read(world, file) == before
    };
    eventually(|| format!("{file} at rest: {}", !rest), || (unchanged() == rest).then_some(()));
}

/// A nono that is stopped watches nothing: no limit, no replaced file. So nothing may go on without it.
#[test]
fn all_of_the_command_stops_with_it() {
    each(&[Way::Pty, Way::Shared, Way::Monitor], |world, screen, way| {
        let line = "(while :; do date +%s%N >> tick; done) & until [ -s tick ]; do :; done; kill -STOP $$; echo on; wait";
        world.file("work/ticking", &format!("#!/bin/sh\n{line}\n"), 0o755);
        screen.start(&script(world, way, "ticking"));
        assert_eq!(screen.prompt(), STOPPED);
        comes_to(true, world, "work/tick");
        screen.start("fg");
        screen.wait_line("on");
        comes_to(false, world, "work/tick");
        screen.key("C-c");
        assert_eq!(screen.prompt(), INTERRUPTED);
    });
}

#[test]
fn what_is_typed_after_fg_arrives() {
    each(&Way::ALL, |world, screen, way| {
        screen.start(&script(world, way, "repeat"));
        screen.wait_line("up");
        screen.key("C-z");
        assert_eq!(screen.prompt(), STOPPED);
        screen.start("fg");
        screen.wait_for("fg\n");
        screen.enter("typed later");
        screen.look("typed later, twice", |text| (text.matches("\ntyped later").count() == 2).then_some(()));
        screen.key("C-d");
        assert_eq!(screen.prompt(), 0);
    });
}

#[test]
fn bg_lets_it_run_while_the_shell_has_the_terminal() {
    each(&Way::ALL, |world, screen, way| {
        let before = settings(world, screen);
        screen.start(&script(world, way, "size"));
        screen.wait_line("size 30 100");
        screen.key("C-z");
        assert_eq!(screen.prompt(), STOPPED);
        assert_eq!(screen.run("bg"), 0);
        wait_state(world, "size", false);
        assert_eq!(settings(world, screen), before);
        screen.clear();
        assert_eq!(screen.run("echo still $((40 + 2))"), 0);
        screen.wait_line("still 42");
        screen.start("fg");
        screen.wait_for("fg\n");
        screen.key("C-c");
        assert_eq!(screen.prompt(), INTERRUPTED);
        assert_eq!(settings(world, screen), before);
    });
}

#[test]
fn a_background_job_leaves_the_terminal_alone() {
    each(&Way::WITH_ITS_JOB, |_, screen, way| {
        let prefix = way.prefix();
        assert_eq!(screen.run(&format!("{prefix}sh -c 'echo up; sleep 0.3; echo done' & wait")), 0);
        screen.wait_line("done");
        assert_eq!(screen.run("jobs"), 0);
        assert!(!screen.text().contains("Stopped"), "{}", screen.text());
        // One that wants to read has to wait, like any other.
        screen.clear();
        assert_eq!(screen.run(&format!("{prefix}cat | cat &")), 0);
        let jobs = || {
            screen.run("jobs");
            screen.text().contains("Stopped").then_some(())
        };
        eventually(|| screen.text(), jobs);
        screen.start("fg");
        screen.wait_for("fg\n");
        screen.enter("now it reads");
        screen
            .look("now it reads, twice", |text| (text.matches("\nnow it reads").count() == 2).then_some(()));
        screen.key("C-d");
        assert_eq!(screen.prompt(), 0);
    });
}

/// The same session in a shell, inside and outside.
fn use_a_shell(screen: &Screen<'_>, shell: &str) {
    screen.start(shell);
    screen.enter("PS1='inside> '; clear");
    screen.wait_last("inside>");
    screen.enter("sh -c 'echo up; exec sleep 100'");
    screen.wait_line("up");
    screen.key("C-z");
    screen.wait_for("Stopped");
    screen.wait_last("inside>");
    screen.enter("clear; jobs");
    screen.wait_for("[1]+  Stopped");
    screen.enter("fg");
    screen.wait_line("sh -c 'echo up; exec sleep 100'");
    screen.key("C-c");
    screen.wait_last("inside>");
    screen.enter("echo was $?");
    screen.wait_line("was 130");
    screen.enter("kill -STOP $$; echo back");
    assert!([STOPPED, STOPPED - 1].contains(&screen.prompt()), "stopped, by SIGSTOP or SIGTSTP");
    screen.start("fg");
    screen.wait_line("back");
    screen.enter("exit 7");
    assert_eq!(screen.prompt(), 7);
}

#[test]
fn job_control_works_in_a_shell_inside() {
    each(&[Way::Bare, Way::Pty, Way::Shared], |_, screen, way| {
        let shell = match way {
            Way::Shared => "nono shell -p shared --allow-cwd --no-diagnostics",
            Way::Pty => "nono shell --allow-cwd --no-diagnostics",
            _ => "bash --norc",
        };
        use_a_shell(screen, shell);
    });
}
