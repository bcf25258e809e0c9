//! Marks, and the choice that comes of them.

use std::path::PathBuf;

use nono::rollback::Body;
use nono::snapshot::SnapshotId;

use super::fake::{Desk, ROOT, at, hunks};

const ITEMS: &[&str] = &["~src/a.rs", "+src/b.rs", "-src/deep/c.rs", "~top.txt"];

fn paths(below: &[&str]) -> Vec<PathBuf> {
    below.iter().map(|path| at(path)).collect()
}

#[test]
fn a_file() {
    let mut desk = Desk::new(ITEMS, 80, 24);
    desk.keys("/top^ ");
    desk.sees("[x] ~ top.txt");
    desk.sees("1 marked");
    let choice = desk.choice();
    assert_eq!((choice.paths, choice.except), (paths(&["top.txt"]), Vec::new()));
    assert_eq!(choice.snapshot, SnapshotId::Number(0));
    desk.keys("/top^ ");
    desk.sees("[ ] ~ top.txt");
}

#[test]
fn a_directory_and_one_file_less() {
    let mut desk = Desk::new(ITEMS, 80, 24);
    desk.keys("g ");
    desk.sees("[x] ▾ src/");
    desk.sees("[x]   + b.rs");
    desk.sees("[x]     - c.rs");
    desk.sees("[ ] ~ top.txt");
    assert_eq!(desk.choice().paths, paths(&["src"]));
    desk.keys("/b.rs^ ");
    desk.sees("[-] ▾ src/");
    let choice = desk.choice();
    assert_eq!((choice.paths, choice.except), (paths(&["src"]), paths(&["src/b.rs"])));
    desk.keys("g g ");
    desk.keys("u");
    desk.misses("[x]");
}

#[test]
fn everything_and_one_file_less() {
    let mut desk = Desk::new(ITEMS, 80, 24);
    desk.keys("a");
    desk.sees("4 marked");
    let choice = desk.choice();
    assert_eq!((choice.paths, choice.except), (Vec::new(), Vec::new()));
    desk.keys("/top^ ");
    let choice = desk.choice();
    assert_eq!((choice.paths, choice.except), (Vec::new(), paths(&["top.txt"])));
}

#[test]
fn all_marks_taken_away_one_by_one_choose_nothing() {
    let mut desk = Desk::new(&["~a", "~b"], 80, 24);
    desk.keys("ag  r");
    desk.sees("nothing is marked");
    assert!(desk.asked.borrow().planned.is_empty());
    desk.keys("g ");
    assert_eq!(desk.choice().paths, paths(&["a"]));
}

#[test]
fn under_a_filter_only_what_is_seen_is_marked() {
    let mut desk = Desk::new(ITEMS, 80, 24);
    desk.keys("f+^a");
    desk.keys("\x1b");
    assert_eq!(desk.choice().paths, paths(&["src/b.rs"]));
    desk.keys("uf-^g \x1b");
    let choice = desk.choice();
    assert_eq!((choice.paths, choice.except), (paths(&["src/deep/c.rs"]), Vec::new()));
}

#[test]
fn a_rename_goes_back_at_both_ends() {
    let items = ["Rold/a.txt>new/a.txt", "~old/b.txt"];
    let mut desk = Desk::new(&items, 80, 24);
    desk.keys("/a.txt^ ");
    assert_eq!(desk.choice().paths, paths(&["new/a.txt", "old/a.txt"]));
    // What was moved out of a directory belongs to it.
    desk.keys("u/old/^ ");
    desk.sees("[x]   R a.txt");
    assert_eq!(desk.choice().paths, paths(&["new/a.txt", "old"]));
    assert_eq!(desk.choice().except, Vec::<PathBuf>::new());
}

#[test]
fn a_change_of_the_root_itself_does_not_take_the_rest_along() {
    let mut desk = Desk::new(&["M", "~a.txt", "+b/c.txt"], 80, 24);
    desk.keys("/project^ ");
    let choice = desk.choice();
    assert_eq!(choice.paths, [PathBuf::from(ROOT)]);
    assert_eq!(choice.except, paths(&["a.txt", "b/c.txt"]));
}

fn two_hunks() -> Desk {
    let body = Body::Text(hunks(" x\n-one\n+eins\n\n y\n-two\n+zwei"));
    Desk::with(&["~a.txt", "~b.txt", "+c.txt"], &[("a.txt", body)], 80, 24)
}

#[test]
fn single_hunks() {
    let mut desk = two_hunks();
    desk.keys("g\t]] ");
    desk.sees("[ ] @@ -1,2 +1,2 @@");
    desk.sees("[x] @@ -103,2 +103,2 @@");
    desk.sees("[-] ~ a.txt");
    desk.sees("1 hunk marked");
    let choice = desk.choice();
    assert!(choice.except.is_empty());
    let chosen: Vec<_> =
        choice.hunks.iter().map(|(item, hunks)| (item.path.clone(), hunks.clone())).collect();
    assert_eq!(chosen, [(at("a.txt"), vec![1])]);
    desk.keys(" ");
    desk.keys("r");
    desk.sees("nothing is marked");
}

#[test]
fn a_restored_hunk_looks_restored() {
    let mut desk = two_hunks();
    desk.keys("g\t]] ");
    desk.keys("ry");
    assert_eq!(desk.asked.borrow().restored.len(), 1);
    desk.keys("b");
    desk.sees("[ ] @@ -1,2 +1,2 @@");
    desk.sees(" ok @@ -103,2 +103,2 @@");
    desk.sees(" ok-~ a.txt");
}

#[test]
fn a_hunk_taken_out_of_a_marked_file_leaves_the_others() {
    let mut desk = two_hunks();
    desk.keys("g \tk");
    desk.keys("\tg\t] ");
    let choice = desk.choice();
    assert!(choice.paths.is_empty(), "{:?}", choice.paths);
    assert_eq!(choice.hunks[0].1, [1]);
}

/// Everything else goes back whole; the file with the hunk does not.
#[test]
fn a_hunk_beside_everything() {
    let mut desk = two_hunks();
    desk.keys("ag\t] ");
    let choice = desk.choice();
    assert_eq!(choice.paths, [PathBuf::from(ROOT)]);
    assert_eq!(choice.except, paths(&["a.txt"]));
    assert_eq!(choice.hunks[0].1, [1]);
}

#[test]
fn what_was_created_has_no_hunks_to_choose() {
    let mut desk = two_hunks();
    desk.keys("/c.txt^\t] ");
    desk.sees("marked as a whole");
    assert_eq!(desk.choice().paths, paths(&["c.txt"]));
}

#[test]
fn nothing_happens_before_a_yes() {
    let mut desk = Desk::new(ITEMS, 80, 24);
    desk.keys("ar");
    desk.sees("Restore to snapshot 0, before the command");
    for keys in ["n", "r\x1b", "rq", "r^n"] {
        desk.keys(keys);
        assert!(desk.asked.borrow().restored.is_empty(), "{keys:?}");
    }
    desk.keys("ry");
    assert_eq!(desk.asked.borrow().restored.len(), 1);
    desk.sees("undo this with: nono rollback undo undo-1");
    desk.keys("b");
    desk.sees(" ok ~ top.txt");
    assert!(!desk.app.is_left);
    desk.keys("q");
    assert!(desk.app.is_left);
}

#[test]
fn what_is_damaged_is_said_and_ends_nothing() {
    let mut desk = Desk::new(&["~a.txt", "~b.broken"], 120, 24);
    desk.keys("/broken^");
    desk.sees("cannot show it:");
    desk.keys("\tlll");
    desk.sees("\\u{1b}[2Jbits are missing");
    desk.keys("\t");
    desk.keys(" r");
    desk.sees("error:");
    assert!(desk.asked.borrow().restored.is_empty());
    desk.keys("u/a.txt^ ry");
    assert_eq!(desk.asked.borrow().restored.len(), 1);
}

/// A key that comes while the plan is being made is no answer to it.
#[test]
fn a_yes_typed_ahead_is_none() {
    use ratatui::crossterm::event::{KeyCode, KeyEvent};
    let mut desk = Desk::new(ITEMS, 80, 24);
    desk.keys("a");
    for key in ['r', 'y', 'y'] {
        desk.app.key(KeyEvent::from(KeyCode::Char(key)));
    }
    desk.settle();
    desk.sees("y restore");
    assert!(desk.asked.borrow().restored.is_empty());
}

#[test]
fn leaving_with_marks_asks() {
    let mut desk = Desk::new(ITEMS, 80, 24);
    desk.keys("aq");
    desk.sees("What is marked was not restored");
    assert!(!desk.app.is_left);
    desk.keys("n");
    assert!(!desk.app.is_left);
    desk.keys("qr");
    desk.sees("Restore to");
    desk.keys("nqy");
    assert!(desk.app.is_left);
    assert!(desk.asked.borrow().restored.is_empty());
}

#[test]
fn control_c_leaves_at_once() {
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    for keys in ["", "a", "ar", "t", "/x", "?"] {
        let mut desk = Desk::new(ITEMS, 80, 24);
        desk.keys(keys);
        desk.app.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert!(desk.app.is_left, "{keys:?}");
        assert!(desk.asked.borrow().restored.is_empty());
    }
}
