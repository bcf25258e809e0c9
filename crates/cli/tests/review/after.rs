//! The review at the end of a run.

use std::fs;

use super::stage::{picture, pid_of_nono, restore, shell, size, world};
use super::world::World;
use nono_testkit::look::{eventually, read};
use nono_testkit::screen::Screen;

const RUN: &str = "nono run --rollback --allow . ";

#[test]
fn it_opens_by_itself_and_the_exit_code_is_the_command_s() {
    let world = world();
    let screen = Screen::new(&world);
    screen.start(&format!("{RUN} -- bash -c 'echo new > src/a.rs; exit 7'"));
    screen.wait_for("│");
    screen.wait_for("1 change (~1)");
    // A process that was a supervisor sees the window change, too.
    size(&screen, 200, 50);
    screen.enter("/a.rs");
    screen.look("side by side", |text| {
        text.lines().any(|line| line.contains("-fn a() {}") && line.contains("+new")).then_some(())
    });
    screen.key("q");
    assert_eq!(screen.prompt(), 7);
    assert_eq!(read(&world, "work/src/a.rs"), "new\n");
}

#[test]
fn marked_changes_are_restored_after_a_run() {
    let world = world();
    let before = picture(&world);
    let screen = Screen::new(&world);
    screen.start(&format!("{RUN} -- bash -c 'rm -r src docs; echo x > y'"));
    screen.wait_for("? help");
    screen.type_text("a");
    restore(&screen);
    assert_eq!(picture(&world), before);
}

#[test]
fn it_ends_with_its_terminal() {
    let world = world();
    let screen = Screen::new(&world);
    screen.start(&format!("{RUN} -- bash -c 'echo x > y'"));
    screen.wait_for("? help");
    let pid = pid_of_nono(&world);
    screen.tmux(&["kill-server"]);
    let is_there = || fs::exists(format!("/proc/{pid}")).unwrap();
    eventually(|| "the review goes on".to_owned(), || (!is_there()).then_some(()));
    assert_eq!(read(&world, "work/y"), "x\n");
}

#[test]
fn nothing_changed_nothing_asked() {
    let world = world();
    let screen = Screen::new(&world);
    assert_eq!(screen.run(&format!("{RUN} -- true")), 0);
}

#[test]
fn no_rollback_prompt_and_no_tui_reduce_the_review() {
    let world = world();
    let screen = Screen::new(&world);
    assert_eq!(screen.run(&format!("{RUN} --no-rollback-prompt -- bash -c 'echo 1 > y'")), 0);
    screen.start(&format!("{RUN} --no-tui -- bash -c 'echo 2 > y'"));
    screen.wait_last("[nono] Restore? [y/N/d/s]");
    screen.key("Enter");
    assert_eq!(screen.prompt(), 0);
    assert_eq!(read(&world, "work/y"), "2\n");
}

/// Numbered snapshots of the only session.
fn snapshots(world: &World) -> usize {
    let sessions = fs::read_dir(world.path("state/rollbacks")).into_iter().flatten().flatten();
    let folders = sessions.map(|entry| entry.path().join("snapshots"));
    folders.filter_map(|folder| fs::read_dir(folder).ok()).map(Iterator::count).sum()
}

/// A state in between is a point to go back to.
#[test]
fn the_timeline() {
    let world = world();
    let screen = Screen::new(&world);
    let script = "echo middle > src/a.rs; until [ -e go ]; do sleep 0.1; done; echo end > src/a.rs; rm go";
    screen.start(&format!("{RUN} -- bash -c '{script}'"));
    eventually(|| "no snapshot in between".to_owned(), || (snapshots(&world) >= 2).then_some(()));
    shell(&world, "touch go");
    screen.wait_for("? help");
    screen.key("t");
    screen.wait_for("before the command");
    screen.key("Down");
    screen.key("Enter");
    screen.wait_for("since snapshot 1");
    screen.type_text("a");
    screen.wait_for("marked");
    restore(&screen);
    assert_eq!(read(&world, "work/src/a.rs"), "middle\n");
}
