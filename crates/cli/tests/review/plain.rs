//! The prompt for a terminal that can do nothing else.

use std::fs;

use super::stage::{changed, output, picture, undo_id};
use super::world::World;
use nono_testkit::look::read;
use nono_testkit::screen::Screen;

const ASKS: &str = "[nono] Restore? [y/N/d/s]";
const DUMB: &str = "TERM=dumb nono rollback review last";

fn asked<'w>(world: &'w World, line: &str) -> Screen<'w> {
    let screen = Screen::new(world);
    screen.start(line);
    screen.wait_last(ASKS);
    screen
}

#[test]
fn the_first_line_has_the_numbers() {
    let (world, _) = changed();
    let screen = asked(&world, DUMB);
    screen.wait_line("[nono] 8 changes (+3 ~2 -1 M1 R1), 1 will execute later: .git/hooks/pre-commit");
    screen.key("C-c");
}

#[test]
fn keeping_is_the_default() {
    let (world, _) = changed();
    let after = picture(&world);
    for answer in ["Enter", "n", "C-d"] {
        let screen = asked(&world, DUMB);
        if answer == "n" {
            screen.enter(answer);
        } else {
            screen.key(answer);
        }
        assert_eq!(screen.prompt(), 0, "{answer}");
        screen.wait_for("[nono] everything kept");
        assert_eq!(picture(&world), after);
    }
}

#[test]
fn yes_shows_the_plan_and_asks_again() {
    let (world, before) = changed();
    let after = picture(&world);
    let screen = asked(&world, DUMB);
    screen.enter("y");
    screen.wait_last("[nono] Do this? [y/N]");
    screen.wait_for("remove      src/new.rs");
    screen.key("Enter");
    assert_eq!(screen.prompt(), 0);
    screen.wait_line("[nono] nothing was restored");
    assert_eq!(picture(&world), after);
    let screen = asked(&world, DUMB);
    screen.enter("y");
    screen.wait_last("[nono] Do this? [y/N]");
    screen.enter("y");
    assert_eq!(screen.prompt(), 0);
    undo_id(&screen);
    assert_eq!(picture(&world), before);
}

#[test]
fn a_diff_and_some_files() {
    let (world, _) = changed();
    let screen = asked(&world, DUMB);
    screen.enter("d");
    screen.wait_last("[nono] Which diff? (a number)");
    let number = |name: &str| {
        screen.look(name, |text| {
            let line =
                text.lines().find(|line| line.starts_with("[nono] ") && line.trim_end().ends_with(name))?;
            line.split_whitespace().nth(1)?.parse::<usize>().ok()
        })
    };
    let (changed, new) = (number("src/a.rs"), number("src/new.rs"));
    screen.enter(&changed.to_string());
    screen.wait_line("[nono] -fn a() {}");
    screen.wait_line("[nono] +changed");
    screen.wait_last(ASKS);
    screen.enter("s");
    screen.wait_last("[nono] Restore which? (2 5-7, or all; empty for none)");
    screen.enter("77");
    screen.wait_line("[nono] 77 is not in 1-8");
    screen.enter(&format!("{changed}, {new}"));
    screen.wait_last("[nono] Do this? [y/N]");
    screen.enter("y");
    assert_eq!(screen.prompt(), 0);
    assert_eq!(read(&world, "work/src/a.rs"), "fn a() {}\n");
    assert!(!world.path("work/src/new.rs").exists());
    assert!(world.path("work/docs/after.md").exists());
}

/// A yes that was typed before the question is no answer to it.
#[test]
fn what_was_typed_before_is_forgotten() {
    let (world, _) = changed();
    let after = picture(&world);
    let screen = Screen::new(&world);
    screen.start(&format!("echo up; until [ -e ../tmp/go ]; do :; done; {DUMB}"));
    screen.wait_line("up");
    screen.enter("y");
    screen.enter("y");
    screen.wait_line("y");
    fs::write(world.path("tmp/go"), "").unwrap();
    screen.wait_last(ASKS);
    screen.enter("n");
    assert_eq!(screen.prompt(), 0);
    screen.wait_for("[nono] everything kept");
    assert_eq!(picture(&world), after);
}

#[test]
fn no_question_without_a_terminal() {
    let (world, _) = changed();
    let said = output(&world, "nono rollback review last");
    assert_eq!(said.status.code(), Some(125));
    let text = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(text.contains("[nono] error: a review needs a terminal"), "{text}");
    assert!(text.contains("[nono] hint: nono rollback show "), "{text}");
}
