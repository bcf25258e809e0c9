//! Keys of the review.

use nono::snapshot::SnapshotId;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::app::{App, Focus, Mode, Purpose};
use super::tree::RowContent;

/// Columns that the diff moves sideways at a time.
const SIDEWAYS: usize = 8;

impl App {
    pub(super) fn key(&mut self, key: KeyEvent) {
        if key.kind == KeyEventKind::Release {
            return;
        }
        self.message = None;
        let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if has_control && key.code == KeyCode::Char('c') {
            self.is_left = true;
            return;
        }
        let code = match key.code {
            // As in pagers. Other keys with Control are ignored.
            KeyCode::Char('f') if has_control => KeyCode::PageDown,
            KeyCode::Char('b') if has_control => KeyCode::PageUp,
            KeyCode::Char(_) if has_control => return,
            code => code,
        };
        match &mut self.mode {
            Mode::Browse => self.browse(code),
            Mode::Input { .. } => self.input(code),
            // Ignored: the next question has to be visible first.
            Mode::Planning(_) | Mode::Restoring(_) => {}
            Mode::Plan { top, said, .. } => {
                if !scroll_text(top, said.len(), code) {
                    self.plan_key(code);
                }
            }
            Mode::Done { top, said } => {
                if !scroll_text(top, said.len(), code) {
                    self.done_key(code);
                }
            }
            Mode::Help { top } => {
                if !scroll_text(top, super::popup::HELP.lines().count(), code) {
                    self.mode = Mode::Browse;
                }
            }
            Mode::Timeline { .. } => self.timeline_key(code),
            Mode::Leave => match code {
                KeyCode::Char('y' | 'q') => self.is_left = true,
                KeyCode::Char('r') => {
                    self.mode = Mode::Browse;
                    self.ask_for_plan();
                }
                _ => self.mode = Mode::Browse,
            },
        }
    }

    fn browse(&mut self, code: KeyCode) {
        match code {
            KeyCode::Tab | KeyCode::BackTab => {
                self.focus = if self.focus == Focus::Tree { Focus::Diff } else { Focus::Tree };
            }
            KeyCode::Char('a') => self.mark_all(),
            KeyCode::Char('u') => self.marks.clear(),
            KeyCode::Char('/') => self.ask(Purpose::Search, String::new()),
            KeyCode::Char('f') => {
                let text = self.tree.filter_text().to_owned();
                self.ask(Purpose::Filter, text);
            }
            KeyCode::Char('n') => self.search_again(false),
            KeyCode::Char('N') => self.search_again(true),
            KeyCode::Char('t') => self.open_timeline(),
            KeyCode::Char('s') => self.wants_split = Some(!self.is_split),
            KeyCode::Char('r') => self.ask_for_plan(),
            KeyCode::Enter if !self.marks.is_empty() => self.ask_for_plan(),
            KeyCode::Char('?') | KeyCode::F(1) => self.mode = Mode::Help { top: 0 },
            KeyCode::Esc if self.tree.is_filtered() => self.apply_filter(""),
            KeyCode::Char('q') | KeyCode::Esc => {
                if self.marks.is_empty() {
                    self.is_left = true;
                } else {
                    self.mode = Mode::Leave;
                }
            }
            code => match self.focus {
                Focus::Tree => self.tree_key(code),
                Focus::Diff => self.diff_key(code),
            },
        }
    }

    fn tree_key(&mut self, code: KeyCode) {
        let at = self.list.at;
        if let Some(position) = moved(code, at, self.list.page()) {
            return self.select(position);
        }
        match code {
            KeyCode::Left | KeyCode::Char('h') => {
                if !self.tree.fold(at, false)
                    && let Some(parent) = self.tree.parent(at)
                {
                    self.select(parent);
                }
            }
            KeyCode::Right | KeyCode::Char('l') => {
                let has_opened = self.tree.fold(at, true);
                if !has_opened && self.item().is_some() {
                    self.focus = Focus::Diff;
                }
            }
            KeyCode::Enter => {
                if self.row().is_some_and(super::tree::Row::is_leaf) {
                    self.focus = Focus::Diff;
                } else if !self.tree.fold(at, true) {
                    self.tree.fold(at, false);
                }
            }
            KeyCode::Char(' ') => {
                self.mark_row();
                self.select(at + usize::from(self.row().is_some_and(super::tree::Row::is_leaf)));
            }
            _ => {}
        }
    }

    fn diff_key(&mut self, code: KeyCode) {
        if let Some(position) = moved(code, self.diff.at, self.diff.page()) {
            let length = self.places().len();
            return self.diff.go(position, length);
        }
        match code {
            KeyCode::Left | KeyCode::Char('h') => self.column = self.column.saturating_sub(SIDEWAYS),
            KeyCode::Right | KeyCode::Char('l') => self.column += SIDEWAYS,
            KeyCode::Char(']') => self.next_hunk(false),
            KeyCode::Char('[') => self.next_hunk(true),
            KeyCode::Char(' ') => self.mark_hunk(),
            _ => {}
        }
    }

    fn next_hunk(&mut self, back: bool) {
        let places = self.places();
        let is_start = |at: &usize| matches!(places[*at], super::view::ViewLine::Header(_));
        let found = if back {
            (0..self.diff.at.min(places.len())).rev().find(is_start)
        } else {
            (self.diff.at + 1..places.len()).find(is_start)
        };
        let length = places.len();
        if let Some(at) = found {
            self.diff.go(at, length);
        }
    }

    fn mark_row(&mut self) {
        let items = self.tree.items(self.list.at).collect();
        let Some(row) = self.tree.seen(self.list.at) else { return };
        let dir = match &row.what {
            // With a filter only the visible part of a directory is marked.
            RowContent::Dir { path, .. } if !self.tree.is_filtered() => Some(path.as_path()),
            _ => None,
        };
        self.marks.toggle(&items, dir);
    }

    fn mark_all(&mut self) {
        if self.tree.is_filtered() {
            self.marks.add(&self.tree.passing_items().collect());
        } else {
            self.marks.everything(self.set.items.len());
        }
    }

    fn mark_hunk(&mut self) {
        let Some((item, view)) = self.item().and_then(|item| Some((item, self.views.get(item)?))) else {
            return;
        };
        let hunk = self.places().get(self.diff.at).and_then(|place| place.hunk());
        match hunk {
            Some(hunk) if view.is_partial => {
                let count = view.hunks.len();
                self.marks.toggle_hunk(item, hunk, count);
            }
            None if view.is_partial && !view.hunks.is_empty() => {
                self.say("go to a hunk first: ] is the next one");
            }
            _ => {
                self.marks.toggle(&[item].into(), None);
                self.say("this change has no hunks: it is marked as a whole");
            }
        }
    }

    fn ask(&mut self, purpose: Purpose, text: String) {
        self.mode = Mode::Input { purpose, text };
    }

    fn input(&mut self, code: KeyCode) {
        let Mode::Input { purpose, text } = &mut self.mode else { return };
        match code {
            KeyCode::Char(c) => text.push(c),
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Esc => self.mode = Mode::Browse,
            KeyCode::Enter => {
                let (purpose, text) = (*purpose, std::mem::take(text));
                self.mode = Mode::Browse;
                match purpose {
                    Purpose::Filter => self.apply_filter(&text),
                    Purpose::Search => {
                        self.search = Some(text).filter(|text| !text.is_empty());
                        self.search_again(false);
                    }
                }
            }
            _ => {}
        }
    }

    fn apply_filter(&mut self, text: &str) {
        self.tree.set_filter(text, &self.set);
        self.select(0);
        if self.tree.len() == 0 && !self.set.items.is_empty() {
            self.say("nothing matches this filter: Esc removes it");
        }
    }

    fn search_again(&mut self, back: bool) {
        let Some(needle) = self.search.clone() else { return };
        let found = match self.focus {
            Focus::Tree => {
                let found = self.tree.search(&needle, self.list.at, back);
                found.inspect(|position| self.select(*position)).is_some()
            }
            Focus::Diff => self.search_diff(&needle.to_lowercase(), back),
        };
        if !found {
            self.say(format!("not found: {}", nono::diagnostic::escape(&needle)));
        }
    }

    fn search_diff(&mut self, needle: &str, back: bool) -> bool {
        let Some(view) = self.view() else { return false };
        let places = view.places(self.is_split);
        let length = places.len();
        let found = (1..=length)
            .map(|step| (self.diff.at + if back { length - step } else { step }) % length)
            .find(|at| view.contains(places[*at], needle));
        if let Some(at) = found {
            self.diff.go(at, length);
        }
        found.is_some()
    }

    fn plan_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('y' | 'Y') => {
                if let Mode::Plan { choice, .. } = std::mem::replace(&mut self.mode, Mode::Browse) {
                    self.mode = Mode::Restoring(choice);
                }
            }
            KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc => {
                self.mode = Mode::Browse;
                self.say("nothing was restored");
            }
            _ => {}
        }
    }

    fn done_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Char('q') | KeyCode::Esc | KeyCode::Enter => self.is_left = true,
            KeyCode::Char('b') => self.mode = Mode::Browse,
            _ => {}
        }
    }

    fn timeline_key(&mut self, code: KeyCode) {
        let Mode::Timeline { snapshots, scroll } = &mut self.mode else { return };
        if let Some(position) = moved(code, scroll.at, scroll.page()) {
            return scroll.go(position, snapshots.len());
        }
        match code {
            KeyCode::Enter => match snapshots.get(scroll.at) {
                Some(snapshot) if snapshot.thinned => {
                    let text = format!("snapshot {} was removed to make room", snapshot.id);
                    self.say(text);
                }
                Some(snapshot) => {
                    let id: SnapshotId = snapshot.id.clone();
                    self.mode = Mode::Browse;
                    self.compare_with(&id);
                }
                None => self.mode = Mode::Browse,
            },
            KeyCode::Esc | KeyCode::Char('q' | 't') => self.mode = Mode::Browse,
            _ => {}
        }
    }
}

/// Position in a list to which a key moves, if it is a key that moves.
fn moved(code: KeyCode, at: usize, page: usize) -> Option<usize> {
    Some(match code {
        KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => at + 1,
        KeyCode::PageUp => at.saturating_sub(page),
        KeyCode::PageDown => at + page,
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => usize::MAX,
        _ => return None,
    })
}

/// Scrolls a text; returns whether the key was one that scrolls.
fn scroll_text(top: &mut usize, length: usize, code: KeyCode) -> bool {
    let code = if code == KeyCode::Char(' ') { KeyCode::PageDown } else { code };
    let Some(position) = moved(code, *top, 10) else { return false };
    *top = position.min(length.saturating_sub(1));
    true
}
