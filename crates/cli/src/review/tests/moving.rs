//! Moving, folding, filter, search, timeline.

use nono::rollback::Body;

use super::fake::{Desk, hunks};

const ITEMS: &[&str] = &["~src/a.rs", "+src/b.rs", "-src/deep/c.rs", "~top.txt"];

/// The name in the row that the tree's cursor is on.
fn here(desk: &Desk) -> String {
    desk.app.row().map(|row| row.label.clone()).unwrap_or_default()
}

#[test]
fn up_down_and_the_ends() {
    let mut desk = Desk::new(ITEMS, 80, 24);
    assert_eq!(here(&desk), "src/");
    desk.keys("jj");
    assert_eq!(here(&desk), "b.rs");
    desk.keys("kkkk");
    assert_eq!(here(&desk), "src/");
    desk.keys("G");
    assert_eq!(here(&desk), "top.txt");
    desk.keys("j");
    assert_eq!(here(&desk), "top.txt");
}

#[test]
fn folding() {
    let mut desk = Desk::new(ITEMS, 80, 24);
    desk.keys("h");
    desk.sees("▸ src/ +1 ~1 -1");
    desk.misses("a.rs");
    desk.keys("l");
    desk.sees("~ a.rs");
    desk.keys("/c.rs^h");
    assert_eq!(here(&desk), "deep/");
    desk.keys("^");
    desk.misses("c.rs");
    desk.keys("^");
    desk.sees("c.rs");
}

#[test]
fn many_changes_begin_folded() {
    let names: Vec<String> = (0..600).map(|number| format!("~d{}/{number}.txt", number % 3)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut desk = Desk::new(&names, 80, 24);
    desk.sees("▸ d1/ ~200");
    desk.sees("▸ d2/ ~200");
    desk.keys("/599.txt^");
    assert_eq!(here(&desk), "599.txt");
    desk.keys("h");
    desk.sees("▾ d2/");
}

#[test]
fn filters() {
    let mut desk = Desk::new(ITEMS, 80, 24);
    for (filter, seen, hidden) in [
        ("+", &["b.rs", "src/"][..], &["a.rs", "c.rs", "top"][..]),
        ("deleted", &["c.rs", "deep/"], &["b.rs", "a.rs", "top"]),
        ("~ TOP", &["top.txt"], &["src/", "a.rs"]),
        ("+ -", &["b.rs", "c.rs"], &["a.rs", "top"]),
    ] {
        desk.keys(&format!("f{filter}^"));
        for part in seen {
            desk.sees(part);
        }
        let tree: Vec<String> = desk.lines().iter().map(|line| line.chars().take(30).collect()).collect();
        for part in hidden {
            assert!(!tree[1..].join("\n").contains(part), "{filter}: {part}");
        }
        desk.keys("\x1b");
        assert!(!desk.app.is_left);
    }
    desk.keys("fnowhere^");
    desk.sees("nothing matches");
    desk.keys("\x1b");
    desk.sees("top.txt");
}

#[test]
fn search_goes_around() {
    let mut desk = Desk::new(ITEMS, 80, 24);
    desk.keys("h/.RS^");
    assert_eq!(here(&desk), "a.rs");
    for (key, name) in [("n", "b.rs"), ("n", "c.rs"), ("n", "a.rs"), ("N", "c.rs"), ("N", "b.rs")] {
        desk.keys(key);
        assert_eq!(here(&desk), name);
    }
    desk.keys("/nowhere^");
    desk.sees("not found: nowhere");
}

#[test]
fn search_in_the_diff() {
    let body = Body::Text(hunks(" first\n-needle\n+thread\n\n other\n-x\n+Needle"));
    let mut desk = Desk::with(&["~a.txt"], &[("a.txt", body)], 80, 24);
    desk.keys("\t/needle^");
    let at = |desk: &Desk| desk.app.diff.at;
    let first = at(&desk);
    desk.keys("n");
    assert!(at(&desk) > first);
    desk.keys("n");
    assert_eq!(at(&desk), first);
}

#[test]
fn long_diffs_scroll_and_wide_ones_move() {
    let text: Vec<_> = (0..100).map(|line| format!("+line {line} {}end{line}", "x".repeat(100))).collect();
    let body = Body::Text(hunks(&text.join("\n")));
    let mut desk = Desk::with(&["+a.txt"], &[("a.txt", body)], 80, 24);
    desk.sees("line 0 ");
    desk.keys("\tG");
    desk.sees("line 99 ");
    desk.misses("line 0 ");
    desk.misses("end99");
    desk.keys(&"l".repeat(12));
    desk.sees("end99");
    desk.keys("\tj");
}

#[test]
fn the_timeline() {
    let mut desk = Desk::new(ITEMS, 80, 24);
    desk.keys("t");
    desk.sees(">    0  2026-01-01 12:00:00 +00:00  before the command");
    desk.sees("     1  2026-01-01 12:00:01 +00:00  removed to make room");
    desk.sees("     3  2026-01-01 12:00:03 +00:00  the end");
    desk.keys("j^");
    desk.sees("snapshot 1 was removed to make room");
    desk.keys("j^");
    desk.sees("compared with snapshot 2");
    desk.sees("1 change (");
    desk.keys("a");
    assert_eq!(desk.choice().snapshot, nono::snapshot::SnapshotId::Number(2));
}

#[test]
fn the_hunk_is_kept_when_the_layout_changes() {
    let body = Body::Text(hunks("-a\n-b\n+c\n+d\n\n-e\n+f"));
    let mut desk = Desk::with(&["~a.txt"], &[("a.txt", body)], 120, 24);
    desk.keys("\t]]jj");
    let hunk = |desk: &Desk| desk.app.places()[desk.app.diff.at].hunk();
    assert_eq!(hunk(&desk), Some(1));
    desk.keys("s");
    assert_eq!(hunk(&desk), Some(1));
    assert!(desk.app.is_split);
}
