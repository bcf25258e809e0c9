//! What the user sees and what the command gets.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::time::Instant;

use crate::world::{World, world};
use nono_testkit::look::{eventually, read};
use nono_testkit::screen::Screen;

pub(crate) const ALL: &[(&str, fn())] = &[
    ("a_line_goes_on_where_it_was", a_line_goes_on_where_it_was),
    ("what_is_typed_belongs_to_one_or_the_other", what_is_typed_belongs_to_one_or_the_other),
    ("full_screens_come_back_as_they_were", full_screens_come_back_as_they_were),
    ("another_window_size_is_told_afterwards", another_window_size_is_told_afterwards),
    ("the_end_of_the_run_ends_the_lease", the_end_of_the_run_ends_the_lease),
    ("a_flood_waits_and_loses_nothing", a_flood_waits_and_loses_nothing),
    ("a_stopped_job_asks_again", a_stopped_job_asks_again),
    ("a_job_in_the_background_has_no_terminal", a_job_in_the_background_has_no_terminal),
    ("redirected_streams_stay_what_they_are", redirected_streams_stay_what_they_are),
    ("a_hostile_screen_does_not_hide_a_question", a_hostile_screen_does_not_hide_a_question),
    ("many_megabytes_arrive_whole", many_megabytes_arrive_whole),
];

/// Makes the player prompt.
fn ask(world: &World, line: &str) {
    // Waits until the player reads.
    let mut fifo = OpenOptions::new().write(true).open(world.path("tmp/ask")).unwrap();
    writeln!(fifo, "{line}").unwrap();
}

fn answered(world: &World, line: &str, answer: &str) {
    let wanted = format!("{line}: {answer}\n");
    let answers = || read(world, "tmp/answers");
    eventually(|| format!("{wanted:?} in {:?}", answers()), || answers().contains(&wanted).then_some(()));
}

/// Waits until the command has started.
fn wait_for_file(world: &World, below: &str) {
    eventually(|| format!("no {below}"), || world.path(below).exists().then_some(()));
}

fn settings(world: &World, screen: &Screen<'_>) -> String {
    assert_eq!(screen.run("stty -a > settings"), 0);
    read(world, "work/settings")
}

/// Visible text with colours, however they were set, and the cursor.
fn picture(screen: &Screen<'_>) -> String {
    let seen = screen.tmux(&["capture-pane", "-p", "-e"]).trim_end_matches('\n').replace('\n', "\r\n");
    let mut parser = vt100::Parser::new(30.try_into().unwrap(), 100.try_into().unwrap(), 0);
    parser.process(seen.as_bytes());
    let seen: Vec<String> = parser.screen().rows_formatted(0, 100).collect();
    let cursor =
        screen.tmux(&["display-message", "-p", "#{cursor_x} #{cursor_y} #{cursor_flag} #{alternate_on}"]);
    seen.join("\n") + "\n" + &cursor
}

fn a_line_goes_on_where_it_was() {
    let world = world();
    let screen = Screen::new(&world);
    let before = settings(&world, &screen);
    screen.clear();
    screen.start("player sh -c 'printf \"name: \"; read x; echo hello $x'");
    screen.wait_last("name:");
    ask(&world, "one");
    screen.wait_for("[stage] one line 30x100?");
    screen.key("y");
    answered(&world, "one", "y");
    screen.look("the line again", |text| (text.lines().last()?.trim_end() == "name:").then_some(()));
    screen.enter("ada");
    assert_eq!(screen.prompt(), 0);
    let text = screen.text();
    // The prompt's lines stay between what was before and what comes after.
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let at = lines.iter().position(|line| *line == "name:").unwrap();
    assert_eq!(lines[at + 1..at + 4], ["[stage] one line 30x100? y", "name: ada", "hello ada"], "{text}");
    assert_eq!(settings(&world, &screen), before);
}

fn what_is_typed_belongs_to_one_or_the_other() {
    let world = world();
    world.file("work/slow", "printf 'up\\n'; read x < go; read x; echo got $x", 0o755);
    let screen = Screen::new(&world);
    assert_eq!(screen.run("mkfifo go"), 0);
    screen.start("player sh slow");
    screen.wait_line("up");
    // For the command, which does not read yet; its terminal keeps it, and shows it.
    screen.type_text("early");
    screen.wait_line("early");
    ask(&world, "one");
    screen.wait_for("[stage] one line");
    screen.key("k");
    answered(&world, "one", "k");
    // A key for the prompt does not reach the command.
    screen.key("Enter");
    drop(OpenOptions::new().write(true).open(world.path("work/go")).unwrap());
    screen.wait_line("got early");
    assert_eq!(screen.prompt(), 0);
    screen.clear();
    // Ctrl-C at a prompt is one of its keys, and does not reach the command.
    screen.start("player sh -c 'echo up; trap \"echo hit\" INT; read x; echo got $x'");
    screen.wait_line("up");
    ask(&world, "two");
    screen.wait_for("[stage] two line");
    screen.key("C-c");
    answered(&world, "two", "\\u{3}");
    screen.enter("end");
    screen.wait_line("got end");
    assert_eq!(screen.prompt(), 0);
    assert!(!screen.text().lines().any(|line| line.trim_end() == "hit"), "{}", screen.text());
}

const CURSES: &str = r#"
import curses, locale
locale.setlocale(locale.LC_ALL, "")
def main(screen):
    curses.start_color(); curses.use_default_colors()
    curses.init_pair(1, curses.COLOR_RED, curses.COLOR_BLUE)
    def draw():
        screen.erase(); screen.border()
        screen.addstr(2, 4, "curses is here", curses.color_pair(1) | curses.A_BOLD)
        screen.addstr(4, 4, "日本語 naïve", curses.A_UNDERLINE)
        screen.addstr(6, 4, "%d %d" % screen.getmaxyx())
        screen.move(2, 7); screen.refresh()
    draw()
    while True:
        key = screen.getch()
        if key == ord("q"): return
        if key == curses.KEY_RESIZE: draw()
curses.wrapper(main)
"#;
const RAW: &str = r#"
import os, sys, termios, tty
old = termios.tcgetattr(0)
tty.setraw(0)
sys.stdout.write("first\r\nsecond \x1b[35mline\x1b[m\r\n> "); sys.stdout.flush()
while os.read(0, 1) != b"q": pass
termios.tcsetattr(0, termios.TCSADRAIN, old)
"#;
/// Full-screen programs: (command, text that shows it has started, keys that change something, keys that end it).
const FULL: &[(&str, &str, &[&str], &[&str])] = &[
    ("vim -u NONE -N -i NONE lines", "line 5", &["j", "j", "i"], &["Escape", ":", "q", "!", "Enter"]),
    (
        "vim -u NONE -N -i NONE -c 'syntax on' -c 'set hlsearch number' code.c",
        "return",
        &["l"],
        &[":", "q", "Enter"],
    ),
    ("less lines", "line 5", &["/", "1", "2", "Enter"], &["q"]),
    ("python3 curses_program.py", "curses is here", &[], &["q"]),
    ("python3 raw.py", "second line", &[], &["q"]),
    ("top -d 100", "PID", &[], &["q"]),
];

fn full_screens_come_back_as_they_were() {
    let world = world();
    world.file("work/lines", &(1..200).fold(String::new(), |all, n| format!("{all}line {n}\n")), 0o644);
    world.file("work/code.c", "/* a comment */\nint main(void)\n{\n    return 1 + 2;\n}\n", 0o644);
    world.file("work/curses_program.py", CURSES, 0o644);
    world.file("work/raw.py", RAW, 0o644);
    let screen = Screen::new(&world);
    let before = settings(&world, &screen);
    for (command, sign, keys, end) in FULL {
        println!("  {command}");
        screen.clear();
        screen.start(&format!("player {command}"));
        screen.wait_for(sign);
        keys.iter().for_each(|key| screen.key(key));
        let drawn = settled(&screen);
        ask(&world, command);
        screen.look("the question alone", |text| {
            text.starts_with(&format!("[stage] {command} full")).then_some(())
        });
        screen.key("y");
        answered(&world, command, "y");
        eventually(
            || format!("{command}: not as before:\n{drawn}\n{}", picture(&screen)),
            || (picture(&screen) == drawn).then_some(()),
        );
        end.iter().for_each(|key| screen.key(key));
        assert_eq!(screen.prompt(), 0, "{command}: {}", screen.text());
        assert_eq!(settings(&world, &screen), before, "{command}");
    }
}

/// The screen, once two looks in a row see the same.
fn settled(screen: &Screen<'_>) -> String {
    let last = std::cell::RefCell::new(String::new());
    eventually(
        || "it keeps changing".to_owned(),
        || {
            let now = picture(screen);
            let same = *last.borrow() == now;
            last.borrow_mut().clone_from(&now);
            same.then_some(now)
        },
    )
}

fn another_window_size_is_told_afterwards() {
    let world = world();
    world.file("work/curses_program.py", CURSES, 0o644);
    let screen = Screen::new(&world);
    screen.start("player python3 curses_program.py");
    screen.wait_for("30 100");
    ask(&world, "one");
    screen.wait_for("[stage] one full 30x100?");
    screen.tmux(&["resize-window", "-x", "90", "-y", "25"]);
    screen.wait_for("[stage] one full 25x90?");
    screen.key("y");
    screen.wait_for("25 90");
    screen.key("q");
    assert_eq!(screen.prompt(), 0);
}

fn the_end_of_the_run_ends_the_lease() {
    let world = world();
    let screen = Screen::new(&world);
    let before = settings(&world, &screen);
    for (line, redirected) in [("with", ""), ("without", " < /dev/null > out 2> err")] {
        assert_eq!(screen.run("rm -f go up; mkfifo go"), 0);
        screen.start(&format!("player sh -c 'touch up; read x < go; exit 3' {redirected}"));
        wait_for_file(&world, "work/up");
        ask(&world, line);
        screen.wait_for(&format!("[stage] {line} line"));
        drop(File::create(world.path("work/go")).unwrap());
        assert_eq!(screen.prompt(), 3);
        answered(&world, line, "ended");
        assert_eq!(settings(&world, &screen), before);
    }
}

fn a_flood_waits_and_loses_nothing() {
    let world = world();
    let screen = Screen::new(&world);
    let caught = world.path("tmp/caught");
    screen.tmux(&["pipe-pane", "-o", &format!("cat > {}", caught.display())]);
    screen.start("player sh -c 'printf \"be%s\\n\" gin; seq 300000; printf \"e%s\\n\" nd'");
    eventually(|| "no begin".to_owned(), || read(&world, "tmp/caught").contains("begin\r\n").then_some(()));
    for round in ["one", "two", "three"] {
        ask(&world, round);
        screen.wait_for(&format!("[stage] {round} line"));
        // The command draws nothing while the prompt is shown.
        let drawn = settled(&screen);
        assert!(drawn.contains(&format!("[stage] {round} line")));
        screen.key("y");
        answered(&world, round, "y");
    }
    let whole = eventually(
        || format!("only {} bytes", read(&world, "tmp/caught").len()),
        || Some(read(&world, "tmp/caught")).filter(|text| text.contains("\nend\r\n")),
    );
    assert_eq!(screen.prompt(), 0);
    let (_, rest) = whole.split_once("begin\r\n").unwrap();
    let (numbers, _) = rest.split_once("\r\nend\r\n").unwrap();
    let (mut expected, mut broken) = (1, 0);
    for line in numbers.split("\r\n") {
        match line.parse::<u32>() {
            Ok(number) if number == expected => expected += 1,
            // The line that a prompt was drawn over was begun again after it.
            Ok(number) if (1..=3).contains(&number.wrapping_sub(expected)) => {
                (expected, broken) = (number + 1, broken + number - expected);
            }
            _ => {}
        }
    }
    assert_eq!((expected, broken <= 6), (300_001, true), "{broken}");
}

fn a_stopped_job_asks_again() {
    let world = world();
    let screen = Screen::new(&world);
    let before = settings(&world, &screen);
    screen.start("player sh -c 'echo up; read x; echo got $x'");
    screen.wait_line("up");
    screen.key("C-z");
    assert_eq!(screen.prompt(), 148);
    screen.start("fg");
    ask(&world, "one");
    screen.wait_for("[stage] one line");
    screen.key("y");
    answered(&world, "one", "y");
    ask(&world, "two");
    screen.wait_for("[stage] two line");
    // From outside: at a prompt Ctrl-Z is a key like any other.
    assert!(world.command("pkill").args(["-TSTP", "-x", "-o", "player"]).status().unwrap().success());
    assert_eq!(screen.prompt(), 148);
    assert_eq!(settings(&world, &screen), before);
    screen.clear();
    screen.start("fg");
    screen.wait_for("[stage] two line");
    screen.key("n");
    answered(&world, "two", "n");
    screen.enter("end");
    screen.wait_line("got end");
    assert_eq!(screen.prompt(), 0);
    assert_eq!(settings(&world, &screen), before);
}

fn a_job_in_the_background_has_no_terminal() {
    let world = world();
    let screen = Screen::new(&world);
    assert_eq!(screen.run("mkfifo go"), 0);
    assert_eq!(screen.run("player sh -c 'touch up; read x < go' &"), 0);
    wait_for_file(&world, "work/up");
    ask(&world, "one");
    answered(&world, "one", "none");
    drop(File::create(world.path("work/go")).unwrap());
    assert_eq!(screen.run("wait"), 0);
}

/// Redirections: (command line, `@` for the player; keys to type; lines that must appear).
const REDIRECTED: &[(&str, &[&str], &[&str])] = &[
    ("echo hi | @cat", &[], &["hi"]),
    ("@sh -c 'read x; echo got $x' | cat", &["this"], &["got this"]),
    ("@sh -c 'read x; echo got $x' > out; cat out", &["this"], &["got this"]),
    ("@sh -c 'echo oops >&2; echo fine' 2> errors; sed s/^/kept:/ errors", &[], &["fine", "kept:oops"]),
    ("@sh -c 'echo 1; echo 2 >&2; echo 3' > both 2>&1; echo all: $(cat both)", &[], &["all: 1 2 3"]),
    ("@sh -c 'test -t 0 && test -t 1 && test -t 2 && echo three'", &[], &["three"]),
    ("@sh -c 'test -t 0 || echo none' < /dev/null", &[], &["none"]),
    ("@sh -c 'echo to tty > /dev/tty' > /dev/null", &[], &["to tty"]),
    ("@sh -c 'read x < /dev/tty; echo got $x' < /dev/null", &["this"], &["got this"]),
    ("x=$(@sh -c 'read x; echo $x'); echo caught $x", &["this"], &["caught this"]),
    ("@sh -c '(echo > /dev/tty) 2>&1 || echo no tty' < /dev/null 2>&1 | grep 'no tty'", &[], &["no tty"]),
];

fn redirected_streams_stay_what_they_are() {
    let world = world();
    let screen = Screen::new(&world);
    let before = settings(&world, &screen);
    for (line, typed, lines) in REDIRECTED {
        println!("  {line}");
        screen.clear();
        screen.start(&format!("echo ready; {}", line.replace('@', "player ")));
        screen.wait_line("ready");
        for text in *typed {
            screen.enter(text);
        }
        assert_eq!(screen.prompt(), 0, "{line}: {}", screen.text());
        for line in *lines {
            // Typed text is echoed through the player, so other output may overtake its line end.
            screen.look(line, |text| text.lines().any(|seen| seen.trim_end().ends_with(line)).then_some(()));
        }
    }
    // A pager on the right keeps its keys.
    screen.start("player seq 1000 | less");
    screen.wait_line("5");
    screen.key("G");
    screen.wait_line("1000");
    screen.key("q");
    assert_eq!(screen.prompt(), 0);
    assert_eq!(settings(&world, &screen), before);
}

/// Whatever is done to the terminal, a prompt on it is readable.
const HOSTILE: &[&str] = &[
    r"\033[3;4r\033[3;1H",
    r"\033(0",
    r"\016\033)0",
    r"\033[8m\033[30;40m",
    r"\033[?25l\033[?6h\033[2;3r",
    r"\033[4h\033[?7l",
    r"\033]0;half a title",
    r"\033[38;5",
    r"\033P+q",
    r"\346\227",
    r"\033[?69h\033[5;6s",
];

fn a_hostile_screen_does_not_hide_a_question() {
    let world = world();
    let screen = Screen::new(&world);
    for (index, evil) in HOSTILE.iter().enumerate() {
        println!("  {evil}");
        assert_eq!(screen.run("rm -f go; mkfifo go; clear"), 0);
        world.file(
            "work/evil",
            &format!("printf '{evil}'; touch done; read x < go; printf '\\033\\\\\\007\\033c'"),
            0o755,
        );
        assert_eq!(screen.run("rm -f done"), 0);
        screen.start("player sh evil");
        wait_for_file(&world, "work/done");
        let line = format!("question-{index}-stands");
        ask(&world, &line);
        screen.wait_for(&format!("[stage] {line} line 30x100?"));
        let shown = screen.tmux(&["capture-pane", "-p", "-e"]);
        let question = shown.lines().find(|seen| seen.contains("[stage]")).unwrap().trim_end();
        assert!(
            question.starts_with("[stage]") || question.starts_with("\x1b[0m[stage]"),
            "{evil}: {question:?}"
        );
        screen.key("y");
        answered(&world, &line, "y");
        drop(File::create(world.path("work/go")).unwrap());
        assert_eq!(screen.prompt(), 0);
        screen.run("tput reset");
    }
}

fn many_megabytes_arrive_whole() {
    let world = world();
    // With the line ends a terminal wants, and no terminal on the way that adds them.
    world.file("work/pour", "stty -opost; yes $'0123456789abcdef日本語\\r' | head -c 30000000", 0o755);
    let sum = |line: &str| {
        let output = world.command("bash").args(["-c", &format!("{line} | sha256sum")]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    // Here `script` is the terminal: it changes nothing.
    let start = Instant::now();
    let arrived = sum("script -qfec 'stty -opost -echo; player bash pour' /dev/null < /dev/null");
    println!("  {:.0} MB/s", 30.0 / start.elapsed().as_secs_f64());
    assert_eq!(arrived, sum("yes $'0123456789abcdef日本語\\r' | head -c 30000000"));
}
