//! Tests of hunks, word segments and diff bodies.

use std::fs;
use std::path::Path;

use super::oracle::{applied, git};
use super::random::Dice;
use crate::rollback::changes::testing::{Sample, TestNode, file, link, numbered, program, tree, write};
use crate::rollback::changes::{Item, ItemKind};
use crate::rollback::patch::{self, Body, Hunk, LineKind, PatchLine, Segment, hunks};

fn one(old: TestNode, new: TestNode) -> (Sample, Item) {
    let sample = Sample::new(&tree(&[("f", old)]), &tree(&[("f", new)]));
    let item = sample.changes().items.remove(0);
    (sample, item)
}

fn body(old: TestNode, new: TestNode) -> Body {
    let (sample, item) = one(old, new);
    patch::file_diff(&sample.manager, &item, 3).unwrap().body
}

fn text(line: &PatchLine) -> Vec<u8> {
    line.segments.iter().flat_map(|segment| segment.text.clone()).collect()
}

fn header(hunk: &Hunk) -> Header {
    (hunk.old_start, hunk.old_count, hunk.new_start, hunk.new_count)
}

/// Start and length of both sides.
type Header = (usize, usize, usize, usize);

/// Hunk headers of `git diff`, and its numbers of lines added and removed.
fn by_git(old: &[u8], new: &[u8]) -> (Vec<Header>, (usize, usize)) {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &tree(&[("old", file(old)), ("new", file(new))]));
    let args = [
        "diff",
        "--no-index",
        "--text",
        "-U3",
        "--diff-algorithm=myers",
        "--no-indent-heuristic",
        "old",
        "new",
    ];
    let output = git(dir.path(), &args).stdout;
    let mut counts = (0, 0);
    let mut headers = Vec::new();
    for line in output.split(|byte| *byte == b'\n').skip(4) {
        match line.first() {
            Some(b'@') => headers.push(parse(&String::from_utf8_lossy(line))),
            Some(b'+') => counts.0 += 1,
            Some(b'-') => counts.1 += 1,
            _ => {}
        }
    }
    (headers, counts)
}

fn parse(line: &str) -> Header {
    let range = |text: &str| -> (usize, usize) {
        let (start, count) = text[1..].split_once(',').unwrap_or((&text[1..], "1"));
        (start.parse().unwrap(), count.parse().unwrap())
    };
    let mut words = line.split(' ').skip(1);
    let (old, new) = (range(words.next().unwrap()), range(words.next().unwrap()));
    (old.0, old.1, new.0, new.1)
}

fn counts(hunks: &[Hunk]) -> (usize, usize) {
    let of = |kind| hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.kind == kind).count();
    (of(LineKind::Added), of(LineKind::Removed))
}

/// A long text of distinct lines with scattered edits: there is one best answer, and git finds it too.
#[test]
fn hunks_are_those_of_git() {
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let mut lines: Vec<String> = (0..120).map(|number| format!("line {number} of this file\n")).collect();
        let old = lines.concat();
        for edit in 0..=dice.below(8) {
            let at = dice.below(lines.len());
            match dice.below(3) {
                0 => drop(lines.remove(at)),
                1 => lines[at] = format!("edited {edit}\n"),
                _ => lines.insert(at, format!("inserted {edit}\n")),
            }
        }
        let new = lines.concat();
        let (headers, numbers) = by_git(old.as_bytes(), new.as_bytes());
        let ours = hunks::hunks(old.as_bytes(), new.as_bytes(), 3);
        assert_eq!(ours.iter().map(header).collect::<Vec<_>>(), headers, "seed {seed}");
        assert_eq!(counts(&ours), numbers, "seed {seed}");
    }
}

/// Repeated lines can be matched in several ways; the numbers of added and removed lines equal git's.
#[test]
fn no_more_lines_differ_than_git_says() {
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let old = dice.text();
        let new = dice.edit(&old);
        let (_, numbers) = by_git(&old, &new);
        assert_eq!(counts(&hunks::hunks(&old, &new, 3)), numbers, "seed {seed}");
    }
}

#[test]
fn lines_have_the_numbers_and_bytes_of_their_files() {
    for (seed, context) in (0..40).zip([0, 1, 3, usize::MAX].into_iter().cycle()) {
        let mut dice = Dice::new(seed);
        let old = dice.text();
        let new = dice.edit(&old);
        let lines = |text: &[u8]| -> Vec<Vec<u8>> {
            text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
        };
        let (old_lines, new_lines) = (lines(&old), lines(&new));
        for line in hunks::hunks(&old, &new, context).iter().flat_map(|hunk| &hunk.lines) {
            let mut bytes = text(line);
            if !line.unterminated {
                bytes.push(b'\n');
            }
            let (old_number, new_number) = (line.old_number, line.new_number);
            assert!(old_number.is_none_or(|number| old_lines[number - 1] == bytes), "seed {seed}");
            assert!(new_number.is_none_or(|number| new_lines[number - 1] == bytes), "seed {seed}");
            let kind = (old_number.is_some(), new_number.is_some());
            assert_eq!(kind, (line.kind != LineKind::Added, line.kind != LineKind::Removed));
        }
    }
}

#[test]
fn the_whole_file_is_one_hunk() {
    let old = numbered(0..50);
    let new = old.replace("number 10\n", "ten\n").replace("number 40\n", "forty\n");
    assert_eq!(hunks::hunks(old.as_bytes(), new.as_bytes(), 3).len(), 2);
    let whole = hunks::hunks(old.as_bytes(), new.as_bytes(), usize::MAX);
    assert_eq!(whole.iter().map(header).collect::<Vec<_>>(), [(1, 50, 1, 50)]);
    assert_eq!(hunks::hunks(old.as_bytes(), old.as_bytes(), usize::MAX), []);
}

/// Reverting all hunks gives the old text, reverting none the new one, and reverting one what git makes of it.
#[test]
fn hunks_can_be_taken_back() {
    for seed in 0..40 {
        let mut dice = Dice::new(seed);
        let old: Vec<u8> = (0..3).flat_map(|_| dice.text()).collect();
        let new = dice.edit(&old);
        if old == new {
            continue;
        }
        let (sample, item) = one(file(&old), file(&new));
        let without = |numbers: &[usize]| patch::without_hunks(&sample.manager, &item, 3, numbers).unwrap();
        let found = hunks::hunks(&old, &new, 3);
        let all: Vec<usize> = (0..found.len()).collect();
        assert_eq!(without(&all), old, "seed {seed}");
        assert_eq!(without(&[]), new, "seed {seed}");
        for (number, hunk) in found.iter().enumerate() {
            let mut alone = b"--- a/f\n+++ b/f\n".to_vec();
            patch::git::write_hunk(hunk, &mut alone).unwrap();
            let args = ["apply", "-R", "--whitespace=nowarn", "--unidiff-zero"];
            let back = applied("git", &args, &tree(&[("f", file(&new))]), &alone);
            assert_eq!(back, Ok(tree(&[("f", file(without(&[number])))])), "seed {seed}, hunk {number}");
        }
        assert!(patch::without_hunks(&sample.manager, &item, 3, &[found.len()]).is_err());
    }
}

#[test]
fn what_has_no_hunks_gives_none_back() {
    for (old, new) in [(file("\0"), file("\0\0")), (link("a"), link("b")), (file("a"), link("a"))] {
        let (sample, item) = one(old, new);
        let error = patch::without_hunks(&sample.manager, &item, 3, &[0]).unwrap_err().to_string();
        assert_eq!(error, format!("{}: it has no such hunks", item.path.display()));
    }
}

fn marked(old: &str, new: &str) -> Vec<String> {
    let hunks = hunks::hunks(old.as_bytes(), new.as_bytes(), 0);
    let show = |segment: &Segment| {
        let text = String::from_utf8(segment.text.clone()).unwrap();
        if segment.differs { format!("<{text}>") } else { text }
    };
    hunks.iter().flat_map(|hunk| &hunk.lines).map(|line| line.segments.iter().map(show).collect()).collect()
}

#[test]
fn words_that_differ_are_marked() {
    assert_eq!(
        marked("let total = count(a, b);\n", "let sum = count(a, c);\n"),
        ["let <total> = count(a, <b>);", "let <sum> = count(a, <c>);"],
    );
    assert_eq!(marked("one two three four\n", "one 2 3 four\n"), ["one <two three> four", "one <2 3> four"]);
    // One line became two.
    assert_eq!(
        marked("call(first, second);\n", "call(first,\n     second);\n"),
        ["call(first,< >second);", "call(first,", "<     >second);"],
    );
    // Multi-byte characters are never cut.
    assert_eq!(marked("a caf\u{e9} b c\n", "a caf\u{e8} b c\n"), ["a <caf\u{e9}> b c", "a <caf\u{e8}> b c"]);
    // An entirely different line has no marks, nor has an added or removed one.
    assert_eq!(marked("alpha beta\n", "gamma delta\n"), ["alpha beta", "gamma delta"]);
    assert_eq!(marked("a\n", "a\nb c\n"), ["b c"]);
}

#[test]
fn bodies() {
    let Body::Text(hunks) = body(file("a\n"), file("b\n")) else { panic!() };
    assert_eq!(hunks.len(), 1);
    assert!(
        matches!(body(file("a\0"), file("b")), Body::Binary { old: Some(old), new: Some(new) } if (old.size, new.size) == (2, 1))
    );
    assert_eq!(body(link("a"), link("b")), Body::Symlink { old: Some(b"a".into()), new: Some(b"b".into()) });
    assert_eq!(
        body(file("a"), link("b")),
        Body::Other("was a file of 1 bytes, is a symbolic link to b now".into())
    );
    assert_eq!(body(file("a"), program("a")), Body::Other("only its permissions changed".into()));
    let large = "x\n".repeat(60_000);
    assert!(matches!(body(file("a"), file(&large)), Body::Large { .. }), "many lines");
    let large = "x".repeat(3 << 20);
    assert!(matches!(body(file(&large), file("a")), Body::Large { .. }), "many bytes");
}

#[test]
fn modes_are_told_where_they_differ() {
    let modes = |old: TestNode, new: TestNode| {
        let (sample, item) = one(old, new);
        let diff = patch::file_diff(&sample.manager, &item, 3).unwrap();
        (diff.old_mode, diff.new_mode)
    };
    assert_eq!(modes(file("a"), program("b")), (Some(0o644), Some(0o755)));
    assert_eq!(modes(file("a"), file("b")), (None, None));
    let sample = Sample::new(&tree(&[]), &tree(&[("f", program("a"))]));
    let item = sample.changes().items.remove(0);
    assert_eq!(item.kind, ItemKind::Created);
    let diff = patch::file_diff(&sample.manager, &item, 3).unwrap();
    assert_eq!((diff.old_mode, diff.new_mode), (None, Some(0o755)));
}

#[test]
fn binary_is_what_git_calls_so() {
    for (content, expected) in
        [("text\n".to_owned(), false), ("a\0".to_owned(), true), ("x".repeat(8000) + "\0", false)]
    {
        let (sample, item) = one(file("a"), file(&content));
        assert_eq!(patch::is_binary(&sample.manager, &item).unwrap(), expected);
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("f"), &content).unwrap();
        fs::write(dir.path().join("e"), "a").unwrap();
        let said = git(Path::new(dir.path()), &["diff", "--no-index", "--numstat", "e", "f"]).stdout;
        assert_eq!(said.starts_with(b"-\t-"), expected);
    }
}
