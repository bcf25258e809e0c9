//! Restoring on a terminal: the plan first, then the question, and only a yes is a yes.

use super::world::World;
use nono_testkit::look::read;
use nono_testkit::screen::Screen;

/// A session that changed one file and made many.
fn session(world: &World, screen: &Screen<'_>) {
    world.file("work/file", "before\n", 0o644);
    let line = "nono run -s --rollback --no-rollback-prompt --allow . -- sh -c 'echo after > file; touch $(seq -f new-%03g 332)'";
    assert_eq!(screen.run(line), 0, "{}", screen.text());
    screen.clear();
}

#[test]
fn the_plan_is_shown_and_only_a_yes_restores() {
    let world = World::new();
    let screen = Screen::new(&world);
    session(&world, &screen);
    for answer in ["", "n", "no", "yep"] {
        screen.start("nono undo");
        screen.wait_last("[nono] Restore this? [y/N]");
        let text = screen.text();
        assert!(text.contains("[nono] change 1, remove 332"), "{text}");
        assert!(text.contains("[nono]   ~ file"), "{text}");
        assert!(text.contains("[nono]   ... and 313 more (--dry-run shows all)"), "{text}");
        screen.enter(answer);
        assert_eq!(screen.prompt(), 1);
        assert!(screen.text().contains("[nono] nothing was done"), "{}", screen.text());
        assert_eq!(read(&world, "work/file"), "after\n", "{answer:?}");
        screen.clear();
    }
    screen.start("nono undo");
    screen.wait_last("[nono] Restore this? [y/N]");
    screen.enter("y");
    assert_eq!(screen.prompt(), 0);
    assert!(screen.text().contains("[nono] undo this with: nono rollback undo "), "{}", screen.text());
    assert_eq!(read(&world, "work/file"), "before\n");
    screen.clear();
    screen.start("nono redo");
    screen.wait_last("[nono] Take the restore back? [y/N]");
    screen.enter("yes");
    assert_eq!(screen.prompt(), 0);
    assert_eq!(read(&world, "work/file"), "after\n");
}

#[test]
fn ctrl_c_at_the_question_does_nothing() {
    let world = World::new();
    let screen = Screen::new(&world);
    session(&world, &screen);
    screen.start("nono rollback restore last");
    screen.wait_last("[nono] Restore this? [y/N]");
    screen.key("C-c");
    assert_eq!(screen.prompt(), 130);
    assert_eq!(read(&world, "work/file"), "after\n");
}

#[test]
fn cleaning_up_asks_too() {
    let world = World::new();
    let screen = Screen::new(&world);
    session(&world, &screen);
    screen.start("nono rollback cleanup --all");
    screen.wait_last("[nono] Remove them? [y/N]");
    assert!(screen.text().contains("1 session would be removed"), "{}", screen.text());
    screen.enter("n");
    assert_eq!(screen.prompt(), 1);
    assert_eq!(screen.run("nono rollback list | grep '(1 session)'"), 0, "{}", screen.text());
    screen.start("nono rollback cleanup --all");
    screen.wait_last("[nono] Remove them? [y/N]");
    screen.enter("y");
    assert_eq!(screen.prompt(), 0);
    assert_eq!(screen.run("nono rollback list | grep 'no sessions'"), 0, "{}", screen.text());
}
