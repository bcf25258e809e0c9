//! One column: both line numbers, a mark, the line.

use nono::rollback::{Hunk, PatchLine};

use super::{Span, Style, content, digits, style};

/// Lines of the hunks, with a separator between hunks.
pub(crate) fn unified(hunks: &[Hunk]) -> impl Iterator<Item = Vec<Span>> + '_ {
    let width = digits(hunks.iter().flat_map(|hunk| &hunk.lines));
    hunks.iter().enumerate().flat_map(move |(at, hunk)| {
        let gap = (at > 0).then(|| vec![Span::new("  ...", Style::Faint)]);
        gap.into_iter().chain(hunk.lines.iter().map(move |one| line(one, width)))
    })
}

fn line(line: &PatchLine, width: usize) -> Vec<Span> {
    let number = |number: Option<usize>| number.map(|number| number.to_string()).unwrap_or_default();
    let (old, new) = (number(line.old_number), number(line.new_number));
    let mut spans = vec![
        Span::new(format!("{old:>width$} {new:>width$} "), Style::Faint),
        Span::new(line.kind.sign(), style(line.kind, false)),
    ];
    spans.extend(content(line));
    spans
}
