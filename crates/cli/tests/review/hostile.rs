//! Names and contents that mean harm to a terminal.

use super::stage::{find, restore, review, run, world};
use nono_testkit::look::read;

const HOSTILE: &str = r"printf 'x\033]0;owned\007y\n' > plain.txt
printf 'z' > $'evil\033[2Jname'
printf 'z' > $'two\nlines'
printf 'z' > $'not\xffutf8'
printf 'z' > $'\u202efdp.exe'";

#[test]
fn escapes_in_names_and_contents_are_shown_as_text() {
    let world = world();
    run(&world, HOSTILE);
    let screen = review(&world, 100, 30);
    for name in ["+ evil\\u{1b}[2Jname", "+ two\\u{a}lines", "+ not\\xffutf8", "+ \\u{202e}fdp.exe"] {
        screen.wait_for(name);
    }
    find(&screen, "plain", "+x\\u{1b}]0;owned\\u{7}y");
    let title = screen.tmux(&["display-message", "-p", "#{pane_title}"]);
    assert!(!title.contains("owned"), "{title}");
    // They can be chosen as any other.
    find(&screen, "lines", "│two\\u{a}lines");
    screen.key("Space");
    screen.wait_for("1 marked");
    screen.key("r");
    screen.wait_for("two\\u{a}lines");
    screen.key("n");
    restore(&screen);
    assert!(!world.path("work/two\nlines").exists());
    assert_eq!(read(&world, "work/evil\x1b[2Jname"), "z");
}
