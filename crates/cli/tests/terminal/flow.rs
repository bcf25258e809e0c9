//! What flows through the terminal: sizes, full screens, characters, a lot of output, pipelines.

use std::time::{Duration, Instant};

use super::world::World;
use super::{Way, each, script, settings};
use nono_testkit::look::{eventually, read};
use nono_testkit::screen::Screen;

#[test]
fn the_window_size_follows() {
    each(&Way::ALL, |world, screen, way| {
        screen.start(&script(world, way, "size"));
        screen.wait_line("size 30 100");
        screen.tmux(&["resize-window", "-x", "90", "-y", "25"]);
        screen.wait_line("told 25 90");
        // A stopped job is not told, and has to see it when it goes on.
        screen.key("C-z");
        screen.prompt();
        screen.tmux(&["resize-window", "-x", "80", "-y", "20"]);
        screen.start("fg");
        screen.wait_line("size 20 80");
        screen.key("C-c");
        screen.prompt();
    });
}

/// (command, what shows that it is there, keys that end it)
const FULL_SCREEN: &[(&str, &str, &[&str])] = &[
    ("less lines", "line 5", &["G", "q"]),
    ("top -d 1", "PID", &["q"]),
    ("vim -u NONE -N -i NONE new", "~", &["i", "h", "i", "Escape", ":", "w", "q", "Enter"]),
    ("env -u TMUX tmux -f /dev/null -L inner new less lines", "line 5", &["C-b", "d"]),
    ("env -u TMUX tmux -f /dev/null -L last new less lines", "line 5", &["q"]),
];

#[test]
fn full_screen_programs_work() {
    each(&[Way::Bare, Way::Pty, Way::Monitor], |world, screen, way| {
        world.file("work/lines", &(1..200).fold(String::new(), |all, n| format!("{all}line {n}\n")), 0o644);
        let before = settings(world, screen);
        for (command, sign, keys) in FULL_SCREEN {
            screen.clear();
            screen.start(&format!("{}{command}", way.prefix()));
            screen.wait_for(sign);
            for key in *keys {
                screen.key(key);
            }
            assert_eq!(screen.prompt(), 0, "{command}: {}", screen.text());
            assert_eq!(settings(world, screen), before, "{command}");
        }
        assert_eq!(read(world, "work/new"), "hi\n");
        screen.run("env -u TMUX tmux -L inner kill-server");
    });
}

#[test]
fn a_full_screen_program_can_be_suspended() {
    each(&Way::ALL, |world, screen, way| {
        world.file("work/lines", "line 1\nline 2\n", 0o644);
        let before = settings(world, screen);
        screen.start(&format!("{}vim -u NONE -N -i NONE lines", way.prefix()));
        screen.wait_line("line 2");
        screen.key("C-z");
        assert_eq!(screen.prompt(), 148);
        assert_eq!(settings(world, screen), before);
        screen.clear();
        screen.start("fg");
        screen.wait_line("line 2");
        screen.type_text(":q");
        screen.key("Enter");
        assert_eq!(screen.prompt(), 0);
        assert_eq!(settings(world, screen), before);
    });
}

#[test]
fn characters_pass_untouched() {
    const LINE: &str = "naïve 日本語 🦀 e\u{301} ~`!@#$%^&*()\\|'\"";
    each(&Way::ALL, |world, screen, way| {
        screen.start(&format!("{}sh -c 'echo up; head -n 1 | tee typed'", way.prefix()));
        screen.wait_line("up");
        screen.enter(LINE);
        assert_eq!(screen.prompt(), 0);
        assert_eq!(read(world, "work/typed"), format!("{LINE}\n"));
        assert_eq!(screen.text().matches("日本語 🦀").count(), 2, "{}", screen.text());
    });
}

/// Ten megabytes, numbered.
const LINES: u32 = 1_420_000;

/// Sends them through, checks that all arrive, and says how long it took.
fn pour(world: &World, screen: &Screen<'_>, way: Way) -> Duration {
    let caught = world.path("work/caught");
    screen.tmux(&["pipe-pane", "-o", &format!("cat > {}", caught.display())]);
    let start = Instant::now();
    screen
        .start(&format!("{}sh -c 'printf \"be%s\\n\" gin; seq {LINES}; printf \"e%s\\n\" nd'", way.prefix()));
    let whole = eventually(
        || format!("only {} bytes", read(world, "work/caught").len()),
        || Some(read(world, "work/caught")).filter(|text| text.contains("\nend\r\n")),
    );
    let took = start.elapsed();
    assert_eq!(screen.prompt(), 0);
    let (_, rest) = whole.split_once("begin\r\n").expect("the beginning");
    let (numbers, _) = rest.split_once("end\r\n").expect("the end");
    let wrong = numbers.split("\r\n").zip(1..=LINES).find(|(line, n)| *line != n.to_string());
    assert_eq!(wrong, None);
    assert_eq!(numbers.matches("\r\n").count(), LINES as usize);
    took
}

#[test]
fn ten_megabytes_arrive_whole_and_in_time() {
    let times = std::cell::RefCell::new(Vec::new());
    each(&[Way::Bare, Way::Pty, Way::Monitor], |world, screen, way| {
        times.borrow_mut().push(pour(world, screen, way));
    });
    let times = times.into_inner();
    println!("bare, pty, monitor: {times:?}");
    let most = times[0] * 4 + Duration::from_secs(2);
    assert!(times.iter().all(|time| *time < most), "{times:?}");
}

/// (line, `@` where the command is started; what is typed; lines that must appear)
const PIPELINES: &[(&str, &[&str], &[&str])] = &[
    ("echo hi | @cat", &[], &["hi"]),
    ("@sh -c 'read x; echo got $x' | cat", &["this"], &["got this"]),
    ("@sh -c 'read x; read y; echo got $x $y' | cat", &["this", "that"], &["got this that"]),
    ("@sh -c 'stty -echo; read x; stty echo; echo; echo got $x' | cat", &["secret"], &["got secret"]),
    ("@yes 2>&1 | head -n 1", &[], &["y"]),
    ("@yes | head -n 1", &[], &["y"]),
    ("@sh -c 'echo oops >&2; echo fine' 2> errors; sed s/^/kept:/ errors", &[], &["fine", "kept:oops"]),
    ("@sh -c 'echo oops >&2; echo fine' > output; sed s/^/kept:/ output", &[], &["oops", "kept:fine"]),
    ("@sh -c 'echo 1; echo 2 >&2; echo 3' > both 2>&1; echo all: $(cat both)", &[], &["all: 1 2 3"]),
    ("@sh -c 'test -t 0 && test -t 1 && test -t 2 && echo three'", &[], &["three"]),
    ("@sh -c 'test -t 0 || echo none' < /dev/null", &[], &["none"]),
    ("@sh -c 'cat <&-; echo closed' <&-", &[], &["closed"]),
    ("x=$(@sh -c 'read x; echo $x'); echo caught $x", &["this"], &["caught this"]),
    ("@sh -c 'echo to tty > /dev/tty' > /dev/null", &[], &["to tty"]),
];

#[test]
fn pipelines_work() {
    each(&Way::ALL, |world, screen, way| {
        let before = settings(world, screen);
        for (line, typed, lines) in PIPELINES {
            screen.clear();
            // Typed before any process reads, as fast typists do; the terminal keeps it.
            screen.start(&format!("echo ready; {}", line.replace('@', way.prefix())));
            screen.wait_line("ready");
            for text in *typed {
                screen.enter(text);
            }
            assert_eq!(screen.prompt(), 0, "{line}: {}", screen.text());
            for line in *lines {
                screen.wait_line(line);
            }
            assert!(!screen.text().contains("Stopped"), "{}", screen.text());
        }
        assert_eq!(settings(world, screen), before);
    });
}

#[test]
fn a_pager_on_the_right_has_the_keys() {
    each(&Way::WITH_ITS_JOB, |world, screen, way| {
        let before = settings(world, screen);
        screen.start(&format!("{}seq 1000 | less", way.prefix()));
        screen.wait_line("5");
        screen.key("G");
        screen.wait_line("1000");
        screen.key("C-z");
        screen.prompt();
        screen.clear();
        screen.start("fg");
        screen.wait_line("1000");
        screen.key("q");
        assert_eq!(screen.prompt(), 0);
        // It gets them even after the command on the left read from the terminal.
        let script = "echo ready >&2; read x; echo $x; sleep 0.2; exec seq 1000";
        // Without a screen of its own, which would hide what was said before it came.
        screen.start(&format!("{}sh -c '{script}' | less -X", way.prefix()));
        // A pager that waits for its first line reads the keyboard, too: the first reader gets what is typed.
        screen.wait_line("ready");
        screen.enter("first");
        screen.wait_line("5");
        screen.key("G");
        screen.wait_line("1000");
        screen.key("q");
        assert_eq!(screen.prompt(), 0);
        assert_eq!(settings(world, screen), before);
    });
}

/// Keeps the parent half a second between the command's end and its own next step, as a loaded machine does.
const SLOW_END: &str = "strace -o /dev/null -e trace=waitid -e inject=waitid:delay_enter=500000 ";

#[test]
fn who_reads_as_the_command_ends_is_not_left_stopped() {
    each(&[Way::Shared], |world, screen, way| {
        let before = settings(world, screen);
        let left = format!("{SLOW_END}{}sh -c 'read x; echo $x'", way.prefix());
        screen.start(&format!("{left} | sh -c 'read x; sleep 0.2; read y < /dev/tty; echo $x-$y'"));
        screen.enter("left");
        screen.enter("right");
        assert_eq!(screen.prompt(), 0, "{}", screen.text());
        screen.wait_line("left-right");
        assert_eq!(settings(world, screen), before);
    });
}
