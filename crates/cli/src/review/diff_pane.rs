//! Right pane of the review: the diff of the selected file, or a note on a directory.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use nono::rollback::LineKind;

use super::app::{App, Focus};
use super::draw::{check_box, put};
use super::marks::{Marked, MarkedItems};
use super::tree::RowContent;
use super::view::{Text, View, ViewLine};
use super::{labels, text};
use crate::syntax::{Tint, Tints};

/// Minimum width for two columns by default.
const WIDE: u16 = 100;
/// Minimum width for two columns and for line numbers.
const NARROW: u16 = 40;

pub(super) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    let was_split = app.is_split;
    app.is_split = area.width >= NARROW && app.wants_split.unwrap_or(area.width >= WIDE);
    if was_split != app.is_split {
        // Line positions differ now: stay in the same hunk.
        stay_in_hunk(app, was_split);
    }
    let length = app.places().len();
    app.diff.fit(usize::from(area.height), length);
    let Some(view) = app.view() else {
        return draw_no_file(app, frame, area);
    };
    let pen = Pen { app, view, width: usize::from(area.width), digits: digits(view, area.width) };
    let seen = view.places(app.is_split).iter().enumerate().skip(app.diff.top);
    for (y, (at, place)) in (area.top()..area.bottom()).zip(seen) {
        let is_at = app.focus == Focus::Diff && at == app.diff.at;
        put(frame, Rect { y, height: 1, ..area }, &Line::from(pen.line(*place, is_at)));
    }
}

fn stay_in_hunk(app: &mut App, was_split: bool) {
    let Some(view) = app.view() else { return };
    let hunk = view.places(was_split).get(app.diff.at).and_then(|place| place.hunk());
    let places = view.places(app.is_split);
    let at = hunk.and_then(|hunk| places.iter().position(|place| *place == ViewLine::Header(hunk)));
    let length = places.len();
    app.diff.go(at.unwrap_or(0), length);
}

/// Draws the pane without a diff: a directory, or a change that is being loaded.
fn draw_no_file(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let Some(row) = app.row() else { return };
    let mut lines = vec![row.label.clone()];
    match &row.what {
        RowContent::Later => lines.push("files that other programs run later, without asking".to_owned()),
        RowContent::Dir { .. } => lines.push(format!("{} in here", labels::counts(&row.counts))),
        RowContent::Item(_) => lines = vec!["...".to_owned()],
    }
    for (y, line) in (area.top()..area.bottom()).zip(&lines) {
        put(frame, Rect { y, height: 1, ..area }, &Line::raw(line));
    }
}

/// Number of columns for a line number; 0 if there is no room.
fn digits(view: &View, width: u16) -> usize {
    if width < NARROW {
        return 0;
    }
    let last = |lines: &Vec<Text>| {
        lines.iter().rev().take(2).filter_map(|line| line.new_number.max(line.old_number)).max()
    };
    let largest = view.hunks.last().and_then(last).unwrap_or(0);
    largest.to_string().len().max(3)
}

struct Pen<'a> {
    app: &'a App,
    view: &'a View,
    width: usize,
    digits: usize,
}

impl Pen<'_> {
    fn line(&self, place: ViewLine, is_at: bool) -> Vec<Span<'static>> {
        match place {
            ViewLine::Note(note) => {
                let words = &self.view.notes[note];
                let (weight, shown) = match note {
                    // The name.
                    0 => (Modifier::BOLD, text::keep_end(words, self.width)),
                    _ => (Modifier::empty(), text::from_column(words, self.app.column).0.to_owned()),
                };
                vec![Span::styled(shown, Style::new().add_modifier(weight | at(is_at)))]
            }
            ViewLine::Header(hunk) => self.header(hunk, is_at),
            ViewLine::One(hunk, line) => self.one(hunk, line, is_at),
            ViewLine::Two(hunk, old, new) => self.two(hunk, old, new, is_at),
        }
    }

    fn header(&self, hunk: usize, is_at: bool) -> Vec<Span<'static>> {
        let mut spans = Vec::new();
        if self.view.is_partial {
            let item = self.app.item();
            let is_in = |marks: &MarkedItems| {
                let has = item.is_some_and(|item| marks.has_hunk(item, hunk));
                if has { Marked::Yes } else { Marked::No }
            };
            spans.push(check_box(is_in(&self.app.marks), is_in(&self.app.restored)));
        }
        let style = Style::new().fg(Color::Cyan).add_modifier(at(is_at));
        spans.push(Span::styled(self.view.headers[hunk].clone(), style));
        spans
    }

    fn one(&self, hunk: usize, line: usize, is_at: bool) -> Vec<Span<'static>> {
        let text = &self.view.hunks[hunk][line];
        let numbers = if self.digits == 0 {
            String::new()
        } else {
            format!("{} {} ", self.number(text.old_number), self.number(text.new_number))
        };
        let room = self.width.saturating_sub(numbers.len() + 1);
        let mut spans = gutter(numbers, text.kind, is_at);
        spans.extend(self.content(hunk, line, room));
        spans
    }

    fn two(&self, hunk: usize, old: Option<usize>, new: Option<usize>, is_at: bool) -> Vec<Span<'static>> {
        let half = self.width.saturating_sub(1) / 2;
        let mut spans = self.half(hunk, old, half, is_at, |text| text.old_number);
        spans.push(Span::styled("│", Style::new().fg(Color::DarkGray)));
        spans.extend(self.half(hunk, new, half, is_at, |text| text.new_number));
        spans
    }

    fn half(
        &self,
        hunk: usize,
        line: Option<usize>,
        width: usize,
        is_at: bool,
        number: fn(&Text) -> Option<usize>,
    ) -> Vec<Span<'static>> {
        let Some(line) = line else { return vec![Span::raw(" ".repeat(width))] };
        let text = &self.view.hunks[hunk][line];
        let number = format!("{} ", self.number(number(text)));
        let room = width.saturating_sub(number.len() + 1);
        let mut spans = gutter(number, text.kind, is_at);
        spans.extend(self.content(hunk, line, room));
        let used: usize = spans.iter().map(|span| text::columns(&span.content)).sum();
        spans.push(Span::raw(" ".repeat(width.saturating_sub(used))));
        spans
    }

    fn number(&self, number: Option<usize>) -> String {
        let number = number.map_or(String::new(), |number| number.to_string());
        format!("{number:>width$}", width = self.digits)
    }

    fn content(&self, hunk: usize, line: usize, room: usize) -> Vec<Span<'static>> {
        let tints = self.view.tints[hunk].as_ref().and_then(|lines| lines.get(line));
        painted(&self.view.hunks[hunk][line], tints, self.app.column, room)
    }
}

fn at(is_at: bool) -> Modifier {
    if is_at { Modifier::REVERSED } else { Modifier::empty() }
}

fn gutter(numbers: String, kind: LineKind, is_at: bool) -> Vec<Span<'static>> {
    let quiet = Style::new().fg(Color::DarkGray).add_modifier(at(is_at));
    vec![
        Span::styled(numbers, quiet),
        Span::styled(kind.sign().to_string(), side(kind).add_modifier(Modifier::BOLD | at(is_at))),
    ]
}

fn side(kind: LineKind) -> Style {
    match kind {
        LineKind::Context => Style::new(),
        LineKind::Removed => Style::new().fg(Color::Red),
        LineKind::Added => Style::new().fg(Color::Green),
    }
}

/// Style of words that differ, readable on any background.
fn differing(kind: LineKind) -> Style {
    let ground = if kind == LineKind::Removed { Color::Red } else { Color::Green };
    Style::new().fg(Color::Black).bg(ground).add_modifier(Modifier::UNDERLINED)
}

fn tinted(tint: Tint, kind: LineKind) -> Style {
    match tint {
        Tint::Plain => side(kind),
        Tint::Comment => Style::new().fg(Color::DarkGray),
        Tint::Keyword => Style::new().fg(Color::Magenta),
        Tint::Text => Style::new().fg(Color::Yellow),
        Tint::Constant => Style::new().fg(Color::Cyan),
        Tint::Name | Tint::Type => Style::new().fg(Color::Blue),
    }
}

/// Part of a line from a column on, in its colours, at most `room` columns wide.
fn painted(line: &Text, tints: Option<&Tints>, column: usize, room: usize) -> Vec<Span<'static>> {
    let (rest, blanks) = text::from_column(&line.shown, column);
    let first = line.shown.len() - rest.len();
    let tints = tints.filter(|tints| !tints.is_empty());
    let mut spans = vec![Span::raw(" ".repeat(blanks))];
    let mut used = blanks;
    let mut from = first;
    for to in cuts(line, tints, first) {
        if used >= room {
            break;
        }
        let is_different = line.differs.iter().any(|range| range.contains(&from));
        let style = if is_different {
            differing(line.kind)
        } else {
            tinted(tints.map_or(Tint::Plain, |tints| tint_at(tints, from)), line.kind)
        };
        let (piece, width) = at_most(&line.shown[from..to], room - used);
        spans.push(Span::styled(piece.to_owned(), style));
        used += width;
        if piece.len() < to - from {
            break;
        }
        from = to;
    }
    spans
}

/// Positions after `first` at which the style may change, the end included.
fn cuts(line: &Text, tints: Option<&Tints>, first: usize) -> Vec<usize> {
    let mut end = 0;
    let tint_ends = tints.into_iter().flatten().map(|(length, _)| {
        end += length;
        end
    });
    let mut cuts: Vec<usize> = tint_ends.collect();
    cuts.extend(line.differs.iter().flat_map(|range| [range.start, range.end]));
    cuts.push(line.shown.len());
    cuts.retain(|cut| *cut > first && *cut <= line.shown.len() && line.shown.is_char_boundary(*cut));
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

fn tint_at(tints: &Tints, at: usize) -> Tint {
    let mut end = 0;
    let found = tints.iter().find(|(length, _)| {
        end += length;
        at < end
    });
    found.map_or(Tint::Plain, |(_, tint)| *tint)
}

/// Prefix that fits, and its width.
fn at_most(text: &str, room: usize) -> (&str, usize) {
    let mut used = 0;
    for (index, c) in text.char_indices() {
        let width = text::columns(c.encode_utf8(&mut [0; 4]));
        if used + width > room {
            return (&text[..index], used);
        }
        used += width;
    }
    (text, used)
}
