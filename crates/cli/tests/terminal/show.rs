//! `nono rollback show` on a terminal: colours, a pager for what is long, and nothing that a file could do to the
//! terminal.

use super::world::World;
use nono_testkit::screen::Screen;

fn session(world: &World, screen: &Screen<'_>) {
    world.file("work/file", "let first = 1;\nsame\n", 0o644);
    world.file("work/long", "", 0o644);
    let line = "nono run -s --rollback --no-rollback-prompt --allow . -- \
                sh -c 'sed -i s/first/second/ file; seq 200 > long; printf \"\\033[2Jx\\n\" > hostile'";
    assert_eq!(screen.run(line), 0, "{}", screen.text());
    screen.clear();
}

/// What can be seen, with its colours.
fn coloured(screen: &Screen<'_>) -> String {
    screen.tmux(&["capture-pane", "-p", "-e"])
}

#[test]
fn a_short_answer_is_coloured_and_stays_on_the_screen() {
    let world = World::new();
    let screen = Screen::new(&world);
    session(&world, &screen);
    assert_eq!(screen.run("nono rollback show last --diff file hostile"), 0);
    let text = screen.text();
    assert!(text.contains("1   -let first = 1;\n  1 +let second = 1;\n2 2  same"), "{text}");
    assert!(text.contains("  1 +\\u{1b}[2Jx"), "{text}");
    assert!(coloured(&screen).contains("\u{1b}[7m"), "the word that differs stands out");
    screen.clear();
    assert_eq!(screen.run("NO_COLOR=1 nono rollback show last --side-by-side file"), 0);
    assert!(screen.text().contains("| 1+ let second = 1;"), "{}", screen.text());
    assert!(!coloured(&screen).contains("\u{1b}["), "{:?}", coloured(&screen));
}

#[test]
fn a_long_answer_goes_through_the_pager() {
    let world = World::new();
    let screen = Screen::new(&world);
    session(&world, &screen);
    screen.start("PAGER='less -R' nono rollback show last --diff long");
    screen.wait_last(":");
    // Ctrl-C is the pager's. It may throw away what is typed with it, so pages are turned until they turn.
    screen.key("C-c");
    screen.look("the end", |text| {
        screen.key("Space");
        text.ends_with("(END)").then_some(())
    });
    assert!(screen.text().contains("200 +200"), "{}", screen.text());
    screen.key("q");
    assert_eq!(screen.prompt(), 0);
    screen.clear();
    for no_pager in ["NO_PAGER=1", "TERM=dumb", "PAGER=cat", "PAGER="] {
        assert_eq!(screen.run(&format!("{no_pager} nono rollback show last --diff long")), 0, "{no_pager}");
        assert!(screen.text().contains("200 +200"), "{no_pager}: {}", screen.text());
        screen.clear();
    }
}
