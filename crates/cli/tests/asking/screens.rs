//! Questions over programs that draw the whole screen.

use super::{secret, settings, start, wait_for_question, world};
use nono_testkit::look::eventually;
use nono_testkit::screen::Screen;

/// (command, what shows that it is there, what ends it)
const FULL: &[(&str, &str, &[&str])] = &[
    ("vim -u NONE -N -i NONE lines", "line 5", &[":", "q", "!", "Enter"]),
    ("LESSHISTFILE=- less lines", "line 5", &["q"]),
    ("python3 panel.py", "a panel", &["q"]),
];
const PANEL: &str = r#"
import curses, locale
locale.setlocale(locale.LC_ALL, "")
def main(screen):
    screen.border(); screen.addstr(2, 4, "a panel", curses.A_BOLD); screen.addstr(4, 4, "日本語"); screen.refresh()
    while screen.getch() != ord("q"): pass
curses.wrapper(main)
"#;

fn picture(screen: &Screen<'_>) -> String {
    let lines: Vec<String> = screen.text().lines().map(|line| line.trim_end().to_owned()).collect();
    let cursor = "#{cursor_x} #{cursor_y} #{cursor_flag} #{alternate_on}";
    lines.join("\n") + "\n" + &screen.tmux(&["display-message", "-p", cursor])
}

#[test]
fn a_screen_comes_back_as_it_was() {
    let world = world();
    world.file("work/lines", &(1..200).fold(String::new(), |all, n| format!("{all}line {n}\n")), 0o644);
    world.file("work/panel.py", PANEL, 0o644);
    let screen = Screen::new(&world);
    let path = secret(&world, "secret");
    let before = settings(&world, &screen);
    for (command, sign, end) in FULL {
        println!("{command}");
        assert_eq!(screen.run("rm -f go got; mkfifo go; clear"), 0);
        // Another process in the same sandbox asks while the screen is drawn on.
        world.file("work/both", &format!("(read x < go; cat {path} > got) &\n{command}\nwait"), 0o755);
        start(&screen, "sh both");
        screen.wait_for(sign);
        let drawn = eventually(
            || "it keeps changing".to_owned(),
            || Some(picture(&screen)).filter(|drawn| *drawn == picture(&screen)),
        );
        std::fs::write(world.path("work/go"), "\n").unwrap();
        wait_for_question(&screen, &path);
        assert!(!screen.text().contains(sign), "{}", screen.text());
        screen.key("y");
        eventually(
            || format!("{command}: {drawn}\n{}", picture(&screen)),
            || (picture(&screen) == drawn).then_some(()),
        );
        end.iter().for_each(|key| screen.key(key));
        assert_eq!(screen.prompt(), 0, "{command}: {}", screen.text());
        assert_eq!(nono_testkit::look::read(&world, "work/got"), "it says hello\n");
        assert_eq!(settings(&world, &screen), before);
    }
}

#[test]
fn a_question_survives_another_size_and_a_stop() {
    let world = world();
    let screen = Screen::new(&world);
    let path = secret(&world, "secret");
    start(&screen, &format!("cat {path}"));
    wait_for_question(&screen, &path);
    screen.tmux(&["resize-window", "-x", "70", "-y", "20"]);
    screen.look("the question again", |text| (text.matches("wants to read").count() > 1).then_some(()));
    wait_for_question(&screen, &path);
    screen.key("y");
    screen.wait_line("it says hello");
    assert_eq!(screen.prompt(), 0);
    // Stopped before, it asks when it goes on.
    screen.clear();
    start(&screen, &format!("sh -c 'echo up; read x; cat {path}'"));
    screen.wait_line("up");
    screen.key("C-z");
    assert_eq!(screen.prompt(), 148);
    screen.start("fg");
    screen.key("Enter");
    wait_for_question(&screen, &path);
    screen.key("y");
    screen.wait_line("it says hello");
    assert_eq!(screen.prompt(), 0);
}
