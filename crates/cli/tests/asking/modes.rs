//! Terminals that a command has taught to send more than what is typed.

use std::collections::BTreeSet;

use super::raw::Raw;
use super::{secret, start, wait_for_question, world};
use nono_testkit::look::eventually;
use nono_testkit::screen::Screen;

/// (what the command writes, what the terminal sends then)
const MODES: &[(&str, &[u8])] = &[
    // A pointer at column 100: row 57 is a Y, row 80 a p, row 83 an s.
    (r"\033[?1003h\033[?1005h", b"\x1b[MC\xc2\x84Y"),
    (r"\033[?1003h\033[?1005h", b"\x1b[MC\xc2\x84p"),
    (r"\033[?1003h\033[?1005h", b"\x1b[MC\xc2\x84\x73"),
    (r"\033[?9h", b"\x1b[M yy"),
    (r"\033[?1000h", b"\x1b[M \xffy"),
    (r"\033[?1001h", b"\x1b[tyy"),
    (r"\033[?1001h", b"\x1b[Tyyyyyy"),
    (r"\033[?1002h\033[?1015h", b"\x1b[32;100;57M"),
    (r"\033[?1003h\033[?1006h", b"\x1b[<35;100;57M"),
    (r"\033[?1003h\033[?1016h", b"\x1b[<35;1000;570M"),
    (r"\033[?1004h", b"\x1b[I\x1b[O"),
    (r"\033=", b"\x1bOy"),
    (r"\033[?66h", b"\x1bOy"),
    (r"\033=\033 G", b"\x8fy"),
    (r"\033[?1003h\033 G", b"\x9bMC!y"),
    (r"\033[?1h", b"\x1bOA"),
    (r"\033[?2004h", b"\x1b[200~y\x1b[201~"),
    (r"\033[>4;2m", b"\x1b[27;1;121~"),
    (r"\033[>31u", b"\x1b[121u"),
    (r"\033]0;y\007\033[21t", b"\x1b]ly\x1b\\"),
    (r"\033[6n\005", b"y\x1b[1;1R"),
];

/// What a terminal was told about what it sends, without pasted text, which is marked during a question.
fn told(written: &[u8]) -> BTreeSet<String> {
    let mut modes = BTreeSet::new();
    let text = String::from_utf8_lossy(written);
    for sequence in text.split('\x1b').skip(1) {
        let end = sequence
            .find(|c: char| c.is_ascii_alphabetic() || "=>".contains(c) && !sequence.starts_with('['));
        let Some(end) = end else { continue };
        let (body, last) = sequence.split_at(end);
        match (body, &last[..1]) {
            ("", "=") | (" ", "G") => drop(modes.insert(body.to_owned())),
            ("", ">") => drop(modes.remove("")),
            (" ", "F") => drop(modes.remove(" ")),
            (_, "h") if body.starts_with("[?") => drop(modes.insert(body.to_owned())),
            (_, "l") if body.starts_with("[?") => drop(modes.remove(body)),
            ("[>4", "m") => modes.retain(|mode| !mode.starts_with("[>4;")),
            (_, "m") if body.starts_with("[>4;") => drop(modes.insert(body.to_owned())),
            (_, "u") if body.starts_with("[>") => drop(modes.insert("keys".to_owned() + &body[2..])),
            ("[<", "u") => drop(modes.remove("keys0")),
            _ => {}
        }
    }
    // On top of the others, while it is there.
    if modes.contains("keys0") {
        modes.retain(|mode| !mode.starts_with("keys"));
    }
    modes.retain(|mode| !["[?2004", "[?25", "[?7", "[?1049"].contains(&mode.as_str()));
    modes
}

#[test]
fn nothing_that_a_terminal_sends_by_itself_answers() {
    let world = world();
    let lines = MODES.iter().enumerate().map(|(number, (modes, _))| {
        world.file(&format!("other/notes/file{number}"), "it says hello\n", 0o644);
        let file = secret(&world, &format!("file{number}"));
        format!("printf '{modes}'; cat {file}; printf 'after {number}\\n\\033c'\n")
    });
    let script: String = lines.collect();
    world.file("work/modes", &script, 0o755);
    let mut raw = Raw::start(&world, &[], &["sh", "modes"]);
    for (number, (modes, report)) in MODES.iter().enumerate() {
        println!("{modes}");
        raw.wait_for(&format!("notes/file{number}"));
        raw.wait_for("? details)");
        // Since the command's last word, which resets everything.
        let begin = |raw: &Raw| raw.written().windows(2).rposition(|pair| pair == b"\x1bc").unwrap_or(0);
        let asked = &raw.written()[begin(&raw)..];
        assert_eq!(told(asked), BTreeSet::new(), "{modes}: {asked:?}");
        // A terminal that was slow to hear of it still sends these: whole, and byte by byte.
        raw.send(report);
        for byte in *report {
            raw.send(&[*byte]);
        }
        raw.press_until("n", "no\r\n");
        let begun = begin(&raw);
        raw.wait_for(&format!("after {number}\r\n"));
        assert!(!raw.text().contains("it says hello"), "{modes}: {}", raw.text());
        assert_eq!(told(&raw.written()[begun..]), told(&asked_for(modes)), "{modes}");
    }
    assert_eq!(raw.end(), 0, "{}", raw.text());
}

/// The supervisor may notice the end of one question and the next one at the same time.
#[test]
fn what_was_written_before_a_question_is_shown_before_it() {
    let world = world();
    for number in 0..3 {
        world.file(&format!("other/notes/file{number}"), "it says hello\n", 0o644);
    }
    let [first, second, third] = [0, 1, 2].map(|number| secret(&world, &format!("file{number}")));
    let script = format!("cat {first}; printf 'after 0\n'; cat {second}; printf 'after 1\n'; cat {third}\n");
    world.file("work/asks", &script, 0o755);
    // Slow in its loop, and only there: the command goes on meanwhile.
    let slow = ["strace", "-qq", "-o", "trace", "-e", "inject=poll,ppoll:delay_exit=300000"];
    let mut raw = Raw::start_by(&world, &slow, &[], &["sh", "asks"]);
    for number in 0..3 {
        raw.wait_for(&format!("notes/file{number}"));
        raw.wait_for("? details)");
        if number > 0 {
            assert!(raw.text().contains(&format!("after {}\r\n", number - 1)), "{}", raw.text());
        }
        raw.press_until("n", "no\r\n");
    }
    assert_eq!(raw.end(), 1, "{}", raw.text());
}

/// The bytes of a format for `printf`.
fn asked_for(format: &str) -> Vec<u8> {
    format.replace(r"\033", "\x1b").replace(r"\007", "\x07").replace(r"\005", "\x05").into_bytes()
}

/// What a terminal does with the pointer: tmux in tmux, where the outer one is the mouse.
#[test]
fn a_pointer_that_moves_in_tmux_answers_nothing() {
    let world = world();
    let path = secret(&world, "secret");
    world.file(
        "work/mouse",
        "stty -icanon -echo\nprintf '\\033[?1003h\\033[?1005hready\\n'\nread x < go\ncat $1\necho after\ndd bs=1 count=6 2>/dev/null | od -An -tx1",
        0o755,
    );
    let screen = Screen::new(&world);
    screen.tmux(&["resize-window", "-x", "200", "-y", "100"]);
    assert_eq!(screen.run("mkfifo go; unset TMUX"), 0);
    let inner = |args: &[&str]| {
        let output = world.command("tmux").args(["-L", "inner"]).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    screen.start(&format!(
        "tmux -L inner -f /dev/null new-session 'nono run --ask --allow-cwd -- sh mouse {path}; sleep 1000' \\; set -g mouse on"
    ));
    screen.wait_line("ready");
    let flags = || inner(&["display-message", "-p", "#{mouse_any_flag} #{mouse_utf8_flag}"]);
    eventually(flags, || (flags() == "1 1").then_some(()));
    std::fs::write(world.path("work/go"), "\n").unwrap();
    wait_for_question_above(&screen, &path);
    assert_eq!(flags(), "0 0", "the terminal still reports");
    // Row 57, column 100, and back.
    let moved = |column: u32| {
        let bytes: Vec<String> =
            format!("\x1b[<35;{column};57M").bytes().map(|byte| format!("{byte:x}")).collect();
        let keys: Vec<&str> =
            ["send-keys", "-H"].into_iter().chain(bytes.iter().map(String::as_str)).collect();
        screen.tmux(&keys);
    };
    (100..104).for_each(moved);
    screen.key("n");
    screen.wait_for("Permission denied");
    screen.wait_line("after");
    // Afterwards it is as the command had set it: a move arrives, and ends in a Y.
    eventually(flags, || (flags() == "1 1").then_some(()));
    (100..108).for_each(moved);
    screen.look("the report", |text| text.lines().any(|line| line.contains("1b 5b 4d 43 c2")).then_some(()));
    assert!(!screen.text().contains("it says hello"));
    inner(&["kill-server"]);
}

/// The same as [`wait_for_question`] in a terminal with a status line below.
fn wait_for_question_above(screen: &Screen<'_>, path: &str) {
    screen.look("a question", |text| {
        let (_, rest) = text.rsplit_once("wants to ")?;
        (rest.replace("\n[nono]   ", "").contains(path) && rest.contains("? details)")).then_some(())
    });
}

#[test]
fn tmux_is_in_the_modes_that_the_command_set_before_and_after() {
    let world = world();
    let screen = Screen::new(&world);
    let path = secret(&world, "secret");
    let flags = || {
        let names = ["mouse_any_flag", "mouse_utf8_flag", "keypad_flag", "keypad_cursor_flag"];
        screen
            .tmux(&["display-message", "-p", &names.map(|name| format!("#{{{name}}}")).join(" ")])
            .trim()
            .to_owned()
    };
    world.file(
        "work/set",
        "printf '\\033[?1003h\\033[?1005h\\033=\\033[?1hset\\n'; read x < go; cat $1; echo after; read x < go; printf '\\033c'",
        0o755,
    );
    assert_eq!(screen.run("mkfifo go"), 0);
    start(&screen, &format!("sh set {path}"));
    screen.wait_line("set");
    assert_eq!(flags(), "1 1 1 1");
    std::fs::write(world.path("work/go"), "\n").unwrap();
    wait_for_question(&screen, &path);
    assert_eq!(flags(), "0 0 0 0");
    screen.key("y");
    screen.wait_line("after");
    assert_eq!(flags(), "1 1 1 1");
    std::fs::write(world.path("work/go"), "\n").unwrap();
    assert_eq!(screen.prompt(), 0);
}
