//! Output that the parser of the command's screen does not bear.

use super::raw::Raw;
use super::{answer, secret, settings, start, world};
use nono_testkit::screen::Screen;

/// Makes vt100 0.18 panic, on 24 by 80.
const FATAL: &str = r"\033[24;80H8\357\270\217\033[23;80Hx";

#[test]
fn output_that_the_parser_dies_of_ends_nothing() {
    let world = world();
    let path = secret(&world, "secret");
    // By line, on a screen of its own, and by single keys.
    for before in ["", "printf '\\033[?1049h'", "stty -icanon"] {
        println!("{before}");
        world.file(
            "work/fatal",
            &format!("{before}\ntrap 'echo drawn again' WINCH\nprintf '{FATAL}'\nsleep 0.1\ncat $1\necho after\necho made > made"),
            0o755,
        );
        let mut raw = Raw::start(&world, &["--rollback", "--no-rollback-prompt"], &["sh", "fatal", &path]);
        raw.wait_for("notes/secret");
        raw.wait_for("? details)");
        raw.send(b"y");
        raw.wait_for("it says hello");
        if !before.is_empty() {
            raw.wait_for("drawn again");
        }
        raw.wait_for("after");
        assert_eq!(raw.end(), 0, "{}", raw.text());
        let text = raw.text();
        assert!(!text.contains("panicked") && !text.contains("vt100"), "{text}");
        // The end of the session was reached: what changed is on record.
        let shown = world.command("nono").args(["rollback", "show"]).output().unwrap();
        let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert!(shown.contains("made"), "{shown}");
        assert!(world.command("nono").args(["undo", "--yes"]).status().unwrap().success());
    }
}

/// The same in tmux, at the size at which it is fatal.
#[test]
fn output_that_the_parser_dies_of_leaves_tmux_usable() {
    let world = world();
    let path = secret(&world, "secret");
    world.file("work/fatal", &format!("printf '{FATAL}'\nsleep 0.1\ncat $1\necho after"), 0o755);
    let screen = Screen::new(&world);
    screen.tmux(&["resize-window", "-x", "80", "-y", "24"]);
    let before = settings(&world, &screen);
    assert!(before.contains("rows 24; columns 80"), "{before}");
    start(&screen, &format!("sh fatal {path}"));
    answer(&screen, &path, "y");
    screen.wait_for("it says hello");
    assert_eq!(screen.prompt(), 0);
    assert_eq!(settings(&world, &screen), before);
    assert!(!screen.text().contains("panicked"), "{}", screen.text());
}

#[test]
fn a_flood_of_repetitions_does_not_keep_a_question_away() {
    let world = world();
    let path = secret(&world, "secret");
    world.file(
        "work/flood",
        "x=$(printf 'x\\033[65535b%.0s' $(seq 500)); while :; do printf %s \"$x\"; done",
        0o755,
    );
    world.file("work/both", "sh flood & cat $1 > got; kill $!; wait", 0o755);
    let mut raw = Raw::start(&world, &[], &["sh", "both", &path]);
    raw.wait_for("notes/secret");
    raw.wait_for("? details)");
    raw.send(b"y");
    raw.wait_for("yes\r\n");
    raw.end();
    assert_eq!(nono_testkit::look::read(&world, "work/got"), "it says hello\n");
}
