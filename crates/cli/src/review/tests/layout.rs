//! Rendering of the review screen.

use std::time::Instant;

use nono::rollback::Body;
use ratatui::style::{Color, Modifier};

use super::fake::{Desk, hunks, set};

const ITEMS: &[&str] = &[
    "~src/main.rs",
    "+src/new.rs",
    "-old.txt",
    "Mrun.sh",
    "Ra.md>docs/b.md",
    "+logo.png",
    "!+.git/hooks/pre-commit",
];

#[test]
fn a_small_terminal() {
    let mut desk = Desk::new(ITEMS, 80, 24);
    let lines = desk.lines();
    assert!(lines[0].contains("7 changes (+3 ~1 -1 M1 R1), 1 will execute later"), "{}", lines[0]);
    assert!(lines[1].contains("▾ will execute later +1"), "{}", lines[1]);
    assert!(lines[2].contains("[ ]   +! .git/hooks/pre-commit"), "{}", lines[2]);
    for row in ["[ ] ▾ src/ +1 ~1", "[ ]   ~ main.rs", "[ ] - old.txt", "[ ] M run.sh", "[ ] +B logo.png"] {
        desk.sees(row);
    }
    desk.sees("[ ]   R b.md");
    assert!(lines[23].starts_with("space mark"), "{}", lines[23]);
    desk.keys("/main^");
    desk.sees("│src/main.rs");
    desk.sees("  2     -was old");
    desk.sees("      2 +is new");
}

#[test]
fn a_wide_terminal_is_side_by_side() {
    let mut desk = Desk::new(ITEMS, 200, 50);
    desk.keys("/main^");
    let both = |line: &&String| line.contains("-was old") && line.contains("+is new");
    assert_eq!(desk.lines().iter().filter(both).count(), 1, "{}", desk.screen());
    desk.keys("s");
    assert_eq!(desk.lines().iter().filter(both).count(), 0, "{}", desk.screen());
    desk.sees("-was old");
}

#[test]
fn a_tiny_terminal_shows_one_pane() {
    let mut desk = Desk::new(ITEMS, 20, 5);
    desk.sees("execute later");
    desk.misses("│");
    desk.keys("/main^");
    desk.sees("~ main.rs");
    desk.keys("\t");
    desk.misses("~ main.rs");
    desk.sees("src/main.rs");
    desk.keys("G");
    desk.sees("+is new");
}

/// Every size, in every state that has a picture of its own.
#[test]
fn no_size_is_too_small() {
    for keys in ["", "\t", "a", "ar", "ary", "t", "?", "/x", "fx", "aq", "ffilter^", "/old^\t]s"] {
        let mut desk = Desk::new(ITEMS, 80, 24);
        desk.keys(keys);
        for width in (1..12).chain([20, 39, 41, 59, 61, 200]) {
            for height in 1..8 {
                desk.resize(width, height);
            }
        }
        desk.resize(80, 24);
        assert!(desk.lines()[0].contains("7 changes"), "{keys:?}: {}", desk.screen());
    }
}

#[test]
fn names_and_contents_are_harmless() {
    let name = "evil\x1b[2J\u{202e}\nname.txt";
    let body = Body::Text(hunks("+\x1b]0;title\x07\u{202e}tab\there"));
    let mut desk = Desk::with(&[&format!("+{name}")], &[(name, body)], 120, 24);
    desk.sees("+ evil\\u{1b}[2J\\u{202e}\\u{a}name.txt");
    desk.sees("+\\u{1b}]0;title\\u{7}\\u{202e}tab  here");
    let is_risky = |c: char| c.is_control() || c == '\u{202e}';
    let cells = |desk: &Desk| desk.buffer().content.iter().any(|cell| cell.symbol().contains(is_risky));
    assert!(!cells(&desk));
    for keys in ["t", "\x1bar", "n", "/\u{202e}^", "f\u{202e}^"] {
        desk.keys(keys);
        assert!(!cells(&desk), "after {keys:?}");
    }
}

#[test]
fn words_that_differ_stand_out() {
    let mut desk = Desk::new(&["~a.txt"], 80, 24);
    desk.keys("j");
    let buffer = desk.buffer();
    let word = |text: &str| {
        let cells = buffer.content.windows(text.len());
        let is_it = |cells: &&[ratatui::buffer::Cell]| {
            cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>() == text
        };
        cells.filter(is_it).map(|cells| cells[0].style()).next().expect("on the screen")
    };
    assert_eq!(word("new").bg, Some(Color::Green));
    assert_eq!(word("old").bg, Some(Color::Red));
    assert!(word("new").add_modifier.contains(Modifier::UNDERLINED));
    assert_eq!(word("same").bg, Some(Color::Reset));
}

#[test]
fn colours_come_by_themselves() {
    let body = Body::Text(hunks(" fn same() {}\n+// words"));
    let mut desk = Desk::with(&["~a.rs"], &[("a.rs", body)], 80, 24);
    let colour = |desk: &Desk| {
        let at = desk
            .buffer()
            .content
            .windows(2)
            .position(|cells| cells[0].symbol() == "/" && cells[1].symbol() == "/");
        desk.buffer().content[at.expect("the comment")].fg
    };
    assert_eq!(colour(&desk), Color::Green);
    // The colouring thread is asked when there is nothing else to do, and gives its answer when it has one.
    assert!(desk.app.is_waiting());
    while desk.app.is_waiting() {
        std::thread::yield_now();
        desk.app.work();
    }
    desk.draw();
    assert_eq!(colour(&desk), Color::DarkGray);
}

#[test]
fn other_bodies_are_said_in_words() {
    let link = Body::Symlink { old: Some(b"here".to_vec()), new: Some(b"/etc/\x1b".to_vec()) };
    let bodies = [
        ("a", Body::Binary { old: None, new: None }),
        ("b", Body::Large { old: None, new: None }),
        ("c", link),
        ("d", Body::Other("an empty directory".to_owned())),
    ];
    let mut desk = Desk::with(&["~a", "~b", "~c", "~d"], &bodies, 80, 24);
    for words in ["binary", "too large to compare", "link to here -> /etc/\\u{1b}", "an empty directory"] {
        desk.sees(words);
        desk.keys("j");
    }
}

#[test]
fn what_is_not_seen_is_not_looked_at() {
    let names: Vec<String> = (0..300).map(|number| format!("~{number:04}.txt")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut desk = Desk::new(&names, 80, 24);
    assert_eq!(desk.asked.borrow().diffs, 1);
    assert_eq!(desk.asked.borrow().binary, 22);
    desk.keys("jk");
    assert_eq!(desk.asked.borrow().diffs, 2);
}

#[test]
#[ignore = "prints times"]
fn ten_thousand_changes() {
    let names: Vec<String> =
        (0..10_000).map(|number| format!("~src/{}/{}/{number:05}.rs", number % 10, number % 100)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let set = set(&names);
    let start = Instant::now();
    let mut desk = Desk::of(set, &[], 120, 40);
    println!("open: {:?}", start.elapsed());
    for keys in ["j", "l", "a", "r", "n", "f00^", "\x1b", "/09999^", "G", "g"] {
        let start = Instant::now();
        desk.keys(keys);
        println!("{keys:?}: {:?}", start.elapsed());
    }
}
