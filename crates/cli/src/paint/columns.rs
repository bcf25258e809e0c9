//! Two columns: old lines on the left, new ones on the right. Long lines are wrapped, never cut.

use nono::rollback::{Hunk, LineKind, PatchLine};
use unicode_width::UnicodeWidthChar;

use super::{Span, Style, content, digits};

/// Minimum width of a column.
const LEAST: usize = 8;
const BETWEEN: &str = " | ";

/// Lines of the hunks side by side in this width, with a separator between hunks.
pub(crate) fn side_by_side(hunks: &[Hunk], width: usize) -> impl Iterator<Item = Vec<Span>> + '_ {
    let digits = digits(hunks.iter().flat_map(|hunk| &hunk.lines));
    let text = (width.saturating_sub(BETWEEN.len()) / 2).saturating_sub(digits + 2).max(LEAST);
    let layout = Layout { digits, text };
    hunks.iter().enumerate().flat_map(move |(at, hunk)| {
        let gap = (at > 0).then(|| vec![Span::new("  ...", Style::Faint)]);
        let line = |at: Option<usize>| at.map(|at| &hunk.lines[at]);
        let rows = pairs(hunk.lines.iter().map(|line| line.kind)).into_iter();
        let rows = rows.flat_map(move |(old, new)| layout.rows(line(old), line(new)));
        gap.into_iter().chain(rows)
    })
}

#[derive(Clone, Copy)]
struct Layout {
    digits: usize,
    text: usize,
}

impl Layout {
    /// Rows of a pair of lines, as many as the longer one needs.
    fn rows(self, old: Option<&PatchLine>, new: Option<&PatchLine>) -> Vec<Vec<Span>> {
        let (left, right) = (self.half(old, true), self.half(new, false));
        let rows = left.len().max(right.len());
        let blank = || vec![Span::plain(" ".repeat(self.digits + 2 + self.text))];
        let at = |half: &[Vec<Span>], row: usize| half.get(row).cloned().unwrap_or_else(blank);
        let between = || Span::new(BETWEEN, Style::Faint);
        (0..rows).map(|row| [at(&left, row), vec![between()], at(&right, row)].concat()).collect()
    }

    fn half(self, line: Option<&PatchLine>, is_old: bool) -> Vec<Vec<Span>> {
        let Some(line) = line else { return Vec::new() };
        let number = if is_old { line.old_number } else { line.new_number };
        let number = number.map(|number| number.to_string()).unwrap_or_default();
        let sign = line.kind.sign();
        let width = self.digits;
        let broken = broken(content(line), self.text);
        let row = |(at, spans): (usize, Vec<Span>)| {
            let gutter = if at == 0 { format!("{number:>width$}{sign} ") } else { " ".repeat(width + 2) };
            let filled = self.text.saturating_sub(spans.iter().map(Span::columns).sum());
            let end = Span::plain(" ".repeat(filled));
            [vec![Span::new(gutter, Style::Faint)], spans, vec![end]].concat()
        };
        broken.into_iter().enumerate().map(row).collect()
    }
}

/// Pairs of lines by position: context with itself, removed lines with the added ones that follow.
pub(crate) fn pairs(kinds: impl Iterator<Item = LineKind>) -> Vec<(Option<usize>, Option<usize>)> {
    let kinds: Vec<LineKind> = kinds.collect();
    let run =
        |kind: LineKind, from: usize| from + kinds[from..].iter().take_while(|one| **one == kind).count();
    let mut pairs = Vec::with_capacity(kinds.len());
    let mut at = 0;
    while at < kinds.len() {
        if kinds[at] == LineKind::Context {
            pairs.push((Some(at), Some(at)));
            at += 1;
            continue;
        }
        let removed = run(LineKind::Removed, at);
        let added = run(LineKind::Added, removed);
        let (mut old, mut new) = (at..removed, removed..added);
        while !(old.is_empty() && new.is_empty()) {
            pairs.push((old.next(), new.next()));
        }
        at = added;
    }
    pairs
}

/// Wraps a line at this width; returns at least one row.
pub(crate) fn broken(spans: Vec<Span>, width: usize) -> Vec<Vec<Span>> {
    let mut rows = vec![Vec::new()];
    let mut used = 0;
    for span in spans {
        let mut piece = String::new();
        for c in span.text.chars() {
            let columns = c.width().unwrap_or(0);
            if used + columns > width {
                push(&mut rows, std::mem::take(&mut piece), span.style);
                rows.push(Vec::new());
                used = 0;
            }
            piece.push(c);
            used += columns;
        }
        push(&mut rows, piece, span.style);
    }
    rows
}

fn push(rows: &mut [Vec<Span>], piece: String, style: Style) {
    if let Some(row) = rows.last_mut().filter(|_| !piece.is_empty()) {
        row.push(Span::new(piece, style));
    }
}
