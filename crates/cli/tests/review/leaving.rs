//! Leaving keeps everything, and gives the terminal back as it was.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use super::stage::{changed, fact, given_back, picture, pid_of_nono, review, settings, size};
use nono_testkit::look::{eventually, read};
use nono_testkit::screen::Screen;

/// Opens the review, does something in it, and sees that nothing happened to files or terminal.
fn leave(status: i32, how: impl Fn(&Screen<'_>)) {
    let (world, _) = changed();
    let after = picture(&world);
    let screen = Screen::new(&world);
    size(&screen, 80, 24);
    let before = settings(&screen, &world);
    assert_eq!(screen.run("echo seen before"), 0);
    screen.start("nono rollback review last");
    screen.wait_for("? help");
    assert_eq!(fact(&screen, "alternate_on"), "1");
    how(&screen);
    assert_eq!(screen.prompt(), status);
    screen.wait_line("seen before");
    given_back(&screen, &world, &before);
    assert_eq!(picture(&world), after);
}

#[test]
fn by_q() {
    leave(0, |screen| {
        screen.key("q");
        screen.wait_for("[nono] everything kept; look again with: nono rollback review ");
    });
}

#[test]
fn by_escape() {
    leave(0, |screen| screen.key("Escape"));
}

#[test]
fn with_marks_after_a_question() {
    leave(0, |screen| {
        screen.type_text("aq");
        screen.wait_for("What is marked was not restored.");
        screen.type_text("y");
    });
}

#[test]
fn by_control_c() {
    leave(0, |screen| screen.key("C-c"));
}

#[test]
fn by_control_c_before_a_plan() {
    leave(0, |screen| {
        screen.type_text("ar");
        screen.wait_for("y restore");
        screen.key("C-c");
    });
}

#[test]
fn by_control_c_while_typing() {
    leave(0, |screen| {
        screen.type_text("/some");
        screen.wait_for("/some");
        screen.key("C-c");
    });
}

#[test]
fn by_a_signal() {
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let (world, _) = changed();
        let after = picture(&world);
        let screen = Screen::new(&world);
        let before = settings(&screen, &world);
        screen.start("nono rollback review last");
        screen.wait_for("? help");
        let pid = Pid::from_raw(pid_of_nono(&world)).unwrap();
        kill_process(pid, signal).unwrap();
        assert_eq!(screen.prompt(), status);
        given_back(&screen, &world, &before);
        assert_eq!(picture(&world), after);
    }
}

#[test]
fn by_a_terminal_that_goes_away() {
    let (world, _) = changed();
    let screen = review(&world, 80, 24);
    let pid = pid_of_nono(&world);
    screen.tmux(&["kill-server"]);
    let is_there = || fs::exists(format!("/proc/{pid}")).unwrap();
    eventually(|| "the review goes on".to_owned(), || (!is_there()).then_some(()));
}

/// What was typed before there was a review is nothing that it was told.
#[test]
fn what_was_typed_before_is_forgotten() {
    let (world, _) = changed();
    let screen = Screen::new(&world);
    screen.start("echo up; until [ -e ../tmp/go ]; do :; done; nono rollback review last");
    screen.wait_line("up");
    screen.type_text("qary");
    screen.wait_line("qary");
    fs::write(world.path("tmp/go"), "").unwrap();
    screen.wait_for("? help");
    screen.type_text("t");
    screen.wait_for("before the command");
    screen.wait_for("[ ] M tool.sh");
    screen.key("C-c");
    assert_eq!(screen.prompt(), 0);
}

#[test]
fn sizes_come_and_go() {
    let (world, _) = changed();
    let screen = review(&world, 80, 24);
    screen.enter("/a.rs");
    screen.wait_for("│src/a.rs");
    // Side by side: the new line beside the old one.
    size(&screen, 200, 50);
    screen.look("side by side", |text| {
        text.lines().any(|line| line.contains("-fn a() {}") && line.contains("+changed")).then_some(())
    });
    // One pane only.
    size(&screen, 40, 10);
    screen.look("one pane", |text| (!text.contains('│') && text.contains("~ a.rs")).then_some(()));
    for (width, height) in [(10, 3), (3, 1), (1, 1)] {
        size(&screen, width, height);
    }
    size(&screen, 80, 24);
    screen.wait_for("│src/a.rs");
    screen.key("q");
    assert_eq!(screen.prompt(), 0);
}

#[test]
fn the_output_may_go_elsewhere() {
    let (world, _) = changed();
    let screen = Screen::new(&world);
    screen.start("nono rollback review last > ../tmp/out");
    screen.wait_for("? help");
    screen.key("q");
    assert_eq!(screen.prompt(), 0);
    assert_eq!(read(&world, "tmp/out"), "");
}
