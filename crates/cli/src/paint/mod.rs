//! Diffs on a terminal, in colours: one column, two columns, or counts. Text from files is escaped on its way into a
//! [`Span`].

mod columns;
mod header;
mod stat;
mod unified;

use nono::rollback::{LineKind, PatchLine, Segment};

pub(crate) use columns::{broken, pairs, side_by_side};
pub(crate) use header::{header, mark, title};
pub(crate) use stat::{Stat, stat};
pub(crate) use unified::unified;

use crate::review::text;

/// Style of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Title,
    Faint,
    Warning,
    Removed,
    RemovedWord,
    Added,
    AddedWord,
}

/// Piece of escaped text in one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) style: Style,
}

impl Span {
    /// Creates a span; `text` must be escaped.
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Span {
        Span { text: text.into(), style }
    }

    pub(crate) fn plain(text: impl Into<String>) -> Span {
        Span::new(text, Style::Plain)
    }

    fn columns(&self) -> usize {
        text::columns(&self.text)
    }
}

/// Output width, and whether colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Canvas {
    pub(crate) colours: bool,
    pub(crate) width: usize,
}

impl Canvas {
    /// Line with its line end.
    pub(crate) fn line(self, spans: &[Span]) -> String {
        let mut line = String::new();
        for span in spans {
            match style_code(span.style).filter(|_| self.colours && !span.text.is_empty()) {
                Some(code) => line.extend(["\x1b[", code, "m", &span.text, "\x1b[0m"]),
                None => line.push_str(&span.text),
            }
        }
        // Spaces at the end only fill a column, but with colours they may be visible.
        if !self.colours {
            line.truncate(line.trim_end_matches(' ').len());
        }
        line + "\n"
    }
}

fn style_code(style: Style) -> Option<&'static str> {
    match style {
        Style::Plain => None,
        Style::Title => Some("1"),
        Style::Faint => Some("2"),
        Style::Warning => Some("33"),
        Style::Removed => Some("31"),
        Style::RemovedWord => Some("31;7"),
        Style::Added => Some("32"),
        Style::AddedWord => Some("32;7"),
    }
}

/// Content of a line, with the words that differ in a style of their own.
fn content(line: &PatchLine) -> Vec<Span> {
    let mut column = 0;
    let mut spans = Vec::new();
    for (at, segment) in line.segments.iter().enumerate() {
        let is_last = at + 1 == line.segments.len();
        let shown = text::content(without_return(segment, is_last), column);
        column += text::columns(&shown);
        spans.push(Span::new(shown, style(line.kind, segment.differs)));
    }
    if line.unterminated {
        spans.push(Span::new("  (no line end)", Style::Faint));
    }
    spans
}

/// Removes the carriage return of a line end, unless it is what differs.
fn without_return(segment: &Segment, is_last: bool) -> &[u8] {
    match segment.text.strip_suffix(b"\r") {
        Some(rest) if is_last && !segment.differs => rest,
        _ => &segment.text,
    }
}

fn style(kind: LineKind, differs: bool) -> Style {
    match (kind, differs) {
        (LineKind::Context, _) => Style::Plain,
        (LineKind::Removed, false) => Style::Removed,
        (LineKind::Removed, true) => Style::RemovedWord,
        (LineKind::Added, false) => Style::Added,
        (LineKind::Added, true) => Style::AddedWord,
    }
}

/// Number of digits of the largest line number.
fn digits<'a>(lines: impl Iterator<Item = &'a PatchLine>) -> usize {
    let largest = lines.filter_map(|line| line.old_number.max(line.new_number)).max().unwrap_or(0);
    largest.to_string().len()
}

#[cfg(test)]
mod tests;
