//! Dialogs over the panes: plan, result, timeline, help, and the question on leaving.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

use nono::rollback::SnapshotInfo;
use nono::snapshot::SnapshotId;

use super::app::{App, Mode};
use crate::paint;

pub(super) const HELP: &str = include_str!("help.txt");

pub(super) fn draw(app: &mut App, frame: &mut Frame<'_>, area: Rect) {
    match &mut app.mode {
        Mode::Browse | Mode::Input { .. } => {}
        Mode::Planning(_) => {
            show(frame, area, "plan", "", &[Line::raw("working out what a restore would do ...")]);
        }
        Mode::Restoring(_) => show(frame, area, "restore", "", &[Line::raw("restoring ...")]),
        Mode::Plan { said, top, .. } => show_said(frame, area, "plan", "y restore   n back", said, *top),
        Mode::Done { said, top } => {
            show_said(frame, area, "restored", "q leave   b back to the review", said, *top);
        }
        Mode::Help { top } => {
            let lines: Vec<_> = HELP.lines().skip(*top).map(Line::raw).collect();
            show(frame, area, "help", "any key: back", &lines);
        }
        Mode::Leave => {
            let lines = [
                Line::raw("What is marked was not restored."),
                Line::raw("Leave, and keep everything as it is?"),
            ];
            show(frame, area, "leave", "y leave   r the plan   n back", &lines);
        }
        Mode::Timeline { snapshots, scroll } => {
            let height = usize::from(inner_height(area));
            scroll.fit(height, snapshots.len());
            let last = snapshots.len().saturating_sub(1);
            let row = |(at, snapshot): (usize, &SnapshotInfo)| {
                let strength = if at == scroll.at { Modifier::REVERSED } else { Modifier::empty() };
                let style = Style::new().add_modifier(strength);
                Line::styled(timeline_row(snapshot, at == last, snapshot.id == app.set.from), style)
            };
            let seen = snapshots.iter().enumerate().skip(scroll.top).take(height);
            let lines: Vec<_> = seen.map(row).collect();
            show(frame, area, "timeline", "enter compare with this   esc back", &lines);
        }
    }
}

fn timeline_row(snapshot: &SnapshotInfo, is_last: bool, is_now: bool) -> String {
    let mut words = Vec::new();
    if snapshot.id == SnapshotId::Number(0) {
        words.push("before the command");
    }
    if is_last {
        words.push("the end");
    }
    if snapshot.thinned {
        words.push("removed to make room");
    }
    let mark = if is_now { '>' } else { ' ' };
    let time = crate::age::local(&snapshot.timestamp);
    let id = snapshot.id.to_string();
    format!("{mark} {id:>4}  {time}  {}", words.join(", "))
}

fn show_said(frame: &mut Frame<'_>, area: Rect, title: &str, keys: &str, said: &[paint::Span], top: usize) {
    let style = |weight| match weight {
        paint::Style::Title => Style::new().add_modifier(Modifier::BOLD),
        paint::Style::Warning => Style::new().fg(Color::Yellow),
        _ => Style::new(),
    };
    // Wrapping never makes fewer lines, so no more than the screen's height are needed.
    let seen = said.iter().skip(top).take(usize::from(area.height));
    let lines: Vec<_> = seen.map(|said| Line::styled(said.text.as_str(), style(said.style))).collect();
    let more = said.len() - top > usize::from(inner_height(area));
    let keys = if more || top > 0 { format!("{keys}   arrows: more") } else { keys.to_owned() };
    show(frame, area, title, &keys, &lines);
}

fn inner_height(area: Rect) -> u16 {
    area.height.saturating_sub(4).max(1)
}

/// Draws a centred window, as large as needed.
fn show(frame: &mut Frame<'_>, area: Rect, title: &str, keys: &str, lines: &[Line<'_>]) {
    let widest = lines.iter().map(Line::width).max().unwrap_or(0).max(keys.len()).max(title.len());
    let width = u16::try_from(widest + 4).unwrap_or(u16::MAX).min(area.width.saturating_sub(2)).max(1);
    let body = Paragraph::new(lines.to_vec()).wrap(Wrap { trim: false });
    let inner = usize::from(width).saturating_sub(4).max(1);
    let wrapped: usize = lines.iter().map(|line| line.width().div_ceil(inner).max(1)).sum();
    let height = u16::try_from(wrapped + 2).unwrap_or(u16::MAX).min(area.height.saturating_sub(2)).max(1);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width: width.min(area.width),
        height: height.min(area.height),
    };
    frame.render_widget(Clear, place);
    if place.width < 8 || place.height < 3 {
        // No room for a frame: show the keys.
        return frame.render_widget(Paragraph::new(format!("{title}? {keys}")), place);
    }
    let block = Block::bordered().title(format!(" {title} ")).title_bottom(format!(" {keys} "));
    let inside = block.inner(place);
    frame.render_widget(block, place);
    let text = Rect { x: inside.x + 1, width: inside.width.saturating_sub(2), ..inside };
    frame.render_widget(body, text);
}
