use nono::rollback::{Hunk, LineKind, PatchLine, Segment};

use super::{Canvas, Span, Style, side_by_side, unified};

fn line(kind: LineKind, old: Option<usize>, new: Option<usize>, parts: &[(&str, bool)]) -> PatchLine {
    let segment =
        |(text, differs): &(&str, bool)| Segment { text: text.as_bytes().to_vec(), differs: *differs };
    PatchLine {
        kind,
        old_number: old,
        new_number: new,
        segments: parts.iter().map(segment).collect(),
        unterminated: false,
    }
}

fn hunk() -> Hunk {
    let lines = vec![
        line(LineKind::Context, Some(9), Some(9), &[("same", false)]),
        line(LineKind::Removed, Some(10), None, &[("an ", false), ("old", true), (" line\r", false)]),
        line(LineKind::Added, None, Some(10), &[("a ", false), ("new", true), (" line\t\u{1b}[2J", false)]),
        line(LineKind::Added, None, Some(11), &[("more", false)]),
    ];
    Hunk { old_start: 9, old_count: 2, new_start: 9, new_count: 3, lines }
}

fn plain(lines: impl Iterator<Item = Vec<Span>>) -> String {
    let canvas = Canvas { colours: false, width: 40 };
    lines.map(|line| canvas.line(&line)).collect()
}

#[test]
fn one_column() {
    let expected = " 9  9  same\n10    -an old line\n   10 +a new line  \\u{1b}[2J\n   11 +more\n";
    assert_eq!(plain(unified(&[hunk()])), expected);
    let two = plain(unified(&[hunk(), hunk()]));
    assert_eq!(two, format!("{expected}  ...\n{expected}"));
}

#[test]
fn words_that_differ_stand_out_in_colour() {
    let canvas = Canvas { colours: true, width: 40 };
    let lines: Vec<String> = unified(&[hunk()]).map(|line| canvas.line(&line)).collect();
    assert_eq!(
        lines[1],
        "\u{1b}[2m10    \u{1b}[0m\u{1b}[31m-\u{1b}[0m\u{1b}[31man \u{1b}[0m\u{1b}[31;7mold\u{1b}[0m\u{1b}[31m line\u{1b}[0m\n",
    );
    assert!(lines[2].contains("\u{1b}[32;7mnew\u{1b}[0m"), "{}", lines[2]);
    // Only our own codes: what stood in the file is visible instead.
    assert!(lines[2].contains("\\u{1b}[2J") && !lines[2].contains("\u{1b}[2J"), "{}", lines[2]);
}

#[test]
fn two_columns_fit_their_width() {
    let shown = plain(side_by_side(&[hunk()], 40));
    assert_eq!(
        shown,
        " 9  same           |  9  same\n10- an old line    | 10+ a new line  \\u\n                   |     {1b}[2J\n                   | 11+ more\n",
    );
    for width in [30, 40, 41, 80, 200] {
        let canvas = Canvas { colours: false, width };
        let long = PatchLine {
            segments: vec![Segment { text: "日本語 wörter ".repeat(20).into(), differs: false }],
            ..hunk().lines[0].clone()
        };
        let hunk = Hunk { lines: vec![long], ..hunk() };
        for line in side_by_side(&[hunk], width) {
            let text = canvas.line(&line);
            let columns = crate::review::text::columns(text.trim_end_matches('\n'));
            assert!(columns <= width, "{columns} in {width}: {text}");
        }
    }
}

#[test]
fn a_line_end_of_two_bytes_is_shown_where_it_differs() {
    let differs = line(LineKind::Removed, Some(1), None, &[("a", false), ("\r", true)]);
    let hunk = Hunk { lines: vec![differs], ..hunk() };
    assert_eq!(plain(unified(&[hunk])), "1   -a\\u{d}\n");
}

#[test]
fn nothing_is_coloured_without_colours() {
    let canvas = Canvas { colours: false, width: 80 };
    let spans = [Span::new("a", Style::Warning), Span::plain("b  ")];
    assert_eq!(canvas.line(&spans), "ab\n");
    assert_eq!(Canvas { colours: true, ..canvas }.line(&spans), "\u{1b}[33ma\u{1b}[0mb  \n");
}
