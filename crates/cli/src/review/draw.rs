//! Drawing of the screen: headline, tree, diff, help line. Only visible rows are laid out.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::app::{App, Focus, Mode, Purpose};
use super::marks::Marked;
use super::tree::{Row, RowContent};
use super::{diff_pane, labels, popup, text};
use crate::paint;

/// Minimum width for two panes.
const TWO_PANES: u16 = 60;
const BOX_WIDTH: usize = 4;

/// Help for the last line, shortest last.
const TREE_HELP: &[&str] = &[
    "space mark  a all  u none  r restore marked  q keep all  tab diff  / search  f filter  t timeline  ? help",
    "space mark  a all  r restore marked  q keep all  tab diff  f filter  ? help",
    "space mark  a all  r restore  q keep  ? help",
    "q keep  ? help",
    "?",
];
const DIFF_HELP: &[&str] = &[
    "space mark hunk  ] [ next, previous hunk  s side by side  r restore marked  q keep all  tab tree  ? help",
    "space mark hunk  ] [ hunks  s split  r restore marked  q keep all  ? help",
    "space mark hunk  r restore  q keep  ? help",
    "q keep  ? help",
    "?",
];

pub(super) fn draw(app: &mut App, frame: &mut Frame<'_>) {
    let area = frame.area();
    if area.width == 0 || area.height == 0 {
        return;
    }
    let (head, body, foot) = rows(area);
    if let Some(head) = head {
        let style = Style::new().add_modifier(Modifier::REVERSED);
        frame.buffer_mut().set_style(head, style);
        put(frame, head, &Line::styled(headline(app, usize::from(head.width)), style));
    }
    let (left, right) = panes(body, app.focus);
    if let Some(left) = left {
        draw_tree(app, frame, left);
    }
    if let (Some(left), Some(_)) = (left, right) {
        let x = left.right();
        for y in body.top()..body.bottom() {
            frame.buffer_mut().set_string(x, y, "│", Style::new().fg(Color::DarkGray));
        }
    }
    if let Some(right) = right {
        diff_pane::draw(app, frame, right);
    }
    if let Some(foot) = foot {
        draw_foot(app, frame, foot);
    }
    popup::draw(app, frame, area);
}

pub(super) fn put(frame: &mut Frame<'_>, area: Rect, line: &Line<'_>) {
    frame.buffer_mut().set_line(area.x, area.y, line, area.width);
}

fn rows(area: Rect) -> (Option<Rect>, Rect, Option<Rect>) {
    let row = |y| Rect { y, height: 1, ..area };
    match area.height {
        0..=1 => (None, area, None),
        2 => (None, Rect { height: 1, ..area }, Some(row(area.y + 1))),
        height => {
            let body = Rect { y: area.y + 1, height: height - 2, ..area };
            (Some(row(area.y)), body, Some(row(area.bottom() - 1)))
        }
    }
}

fn panes(body: Rect, focus: Focus) -> (Option<Rect>, Option<Rect>) {
    if body.width < TWO_PANES {
        return match focus {
            Focus::Tree => (Some(body), None),
            Focus::Diff => (None, Some(body)),
        };
    }
    let width = (body.width * 2 / 5).clamp(28, 48);
    let left = Rect { width, ..body };
    let right = Rect { x: left.right() + 1, width: body.width - width - 1, ..body };
    (Some(left), Some(right))
}

fn headline(app: &App, width: usize) -> String {
    let mut parts = vec![labels::summary(&app.set)];
    let (files, hunks) = app.marks.counts();
    if files > 0 {
        parts.push(format!("{files} marked"));
    }
    if hunks > 0 {
        parts.push(format!("{} marked", labels::several(hunks, "hunk")));
    }
    if app.tree.is_filtered() {
        parts.push(format!("filter: {}", nono::diagnostic::escape(app.tree.filter_text())));
    }
    parts.push(format!("since {}", labels::point(&app.set.from)));
    parts.push(app.source.id());
    // Drops the last parts until the rest fits.
    while parts.len() > 1 && text::columns(&parts.join(" · ")) + 1 > width {
        parts.pop();
    }
    format!(" {}", parts.join(" · "))
}

fn draw_tree(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    app.list.fit(usize::from(area.height), app.tree.len());
    if app.tree.len() == 0 {
        let words = if app.tree.is_filtered() { "nothing matches the filter" } else { "no changes" };
        put(frame, area, &Line::raw(words));
    }
    for (y, position) in (area.top()..area.bottom()).zip(app.list.top..app.tree.len()) {
        let Some(row) = app.tree.seen(position) else { break };
        let marked = app.marks.of(app.tree.items(position));
        let restored = app.restored.of(app.tree.items(position));
        let line = tree_line(app, row, check_box(marked, restored), usize::from(area.width));
        let place = Rect { y, height: 1, ..area };
        put(frame, place, &line);
        if position == app.list.at {
            let strength = if app.focus == Focus::Tree { Modifier::REVERSED } else { Modifier::UNDERLINED };
            frame.buffer_mut().set_style(place, Style::new().add_modifier(strength));
        }
    }
}

fn tree_line(app: &App, row: &Row, check: Span<'static>, width: usize) -> Line<'static> {
    let mut spans = vec![check, Span::raw(" ".repeat(row.depth * 2))];
    let mut used = BOX_WIDTH + row.depth * 2;
    let mut push = |span: Span<'static>| {
        used += text::columns(&span.content);
        spans.push(span);
    };
    if !row.is_leaf() {
        push(Span::raw(if row.open { "▾ " } else { "▸ " }));
    }
    if let Some(item) = row.item() {
        signs(app, item).into_iter().for_each(&mut push);
    }
    let counts = if row.is_leaf() { String::new() } else { format!(" {}", labels::counts(&row.counts)) };
    let room = width.saturating_sub(used);
    let counts = if text::columns(&row.label) + counts.len() <= room { counts } else { String::new() };
    let style = match row.what {
        RowContent::Later => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        RowContent::Dir { .. } => Style::new().fg(Color::Blue),
        RowContent::Item(_) => Style::new(),
    };
    spans.push(Span::styled(text::keep_end(&row.label, room - counts.len()), style));
    spans.push(Span::styled(counts, Style::new().fg(Color::DarkGray)));
    Line::from(spans)
}

pub(super) fn check_box(marked: Marked, restored: Marked) -> Span<'static> {
    let done = Style::new().fg(Color::Green);
    let style = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);
    match marked {
        Marked::Yes => Span::styled("[x] ", style),
        Marked::Partly => Span::styled("[-] ", style),
        Marked::No if restored == Marked::Yes => Span::styled(" ok ", done),
        Marked::No if restored == Marked::Partly => Span::styled(" ok-", done),
        Marked::No => Span::styled("[ ] ", Style::new().fg(Color::DarkGray)),
    }
}

/// Marks of an item, followed by a space.
fn signs(app: &App, item: usize) -> Vec<Span<'static>> {
    let Some(change) = app.set.items.get(item) else { return Vec::new() };
    let mark = paint::mark(&change.kind);
    let colour = match mark {
        '+' => Color::Green,
        '-' => Color::Red,
        '~' => Color::Yellow,
        'M' => Color::Magenta,
        _ => Color::Cyan,
    };
    let mut spans = vec![Span::styled(mark.to_string(), Style::new().fg(colour))];
    if app.binary.get(&item) == Some(&true) {
        spans.push(Span::styled("B", Style::new().fg(Color::Blue)));
    }
    if change.executes_later.is_some() {
        spans.push(Span::styled("!", Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)));
    }
    spans.push(Span::raw(" "));
    spans
}

fn draw_foot(app: &App, frame: &mut Frame<'_>, area: Rect) {
    let width = usize::from(area.width);
    if let Mode::Input { purpose, text } = &app.mode {
        let prompt = match purpose {
            Purpose::Search => "/",
            Purpose::Filter => "filter (+ ~ - M R ! or part of a path): ",
        };
        let shown =
            text::keep_end(&format!("{prompt}{}", nono::diagnostic::escape(text)), width.saturating_sub(1));
        put(frame, area, &Line::raw(&shown));
        let x = u16::try_from(text::columns(&shown)).unwrap_or(area.width).min(area.width - 1);
        frame.set_cursor_position((area.x + x, area.y));
        return;
    }
    if let Some(message) = &app.message {
        let style = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);
        put(frame, area, &Line::styled(message.as_str(), style));
        return;
    }
    let all = if app.focus == Focus::Tree { TREE_HELP } else { DIFF_HELP };
    let help = all.iter().find(|help| help.len() <= width).unwrap_or(&"");
    put(frame, area, &Line::styled(*help, Style::new().fg(Color::DarkGray)));
}
