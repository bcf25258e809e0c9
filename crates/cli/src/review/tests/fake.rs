//! A session that was made up, and a terminal that is a grid of cells.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nono::rollback::{
    Body, ChangeSet, Done, FileDiff, Hunk, Item, ItemKind, Later, LineKind, PatchLine, Plan, RestoreChoice,
    RollbackError, Segment, SnapshotInfo,
};
use nono::snapshot::diff::Version;
use nono::snapshot::{Change, ChangeType, Coverage, SnapshotId};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::review::app::{App, StepResult};
use crate::review::draw;
use crate::review::source::ReviewSource;

pub(super) const ROOT: &str = "/home/me/project";

pub(super) fn at(below: &str) -> PathBuf {
    Path::new(ROOT).join(below)
}

/// `+path`, `~path`, `-path`, `Mpath`; with a `!` before it that will execute later; `R` takes `from>to`.
pub(super) fn item(text: &str) -> Item {
    let (later, text) = text.strip_prefix('!').map_or((None, text), |text| {
        (Some(Later { what: "git hook", why: "git runs it at every commit" }), text)
    });
    let (mark, path) = text.split_at(1);
    let file: Version = serde_json::from_str(r#"{ "kind": "file", "mode": 420 }"#).expect("a version");
    let (kind, path) = match mark {
        "+" => (ItemKind::Created, path),
        "~" => (ItemKind::Modified, path),
        "-" => (ItemKind::Deleted, path),
        "M" => (ItemKind::PermissionsChanged, path),
        "R" => {
            let (from, to) = path.split_once('>').expect("from>to");
            (ItemKind::Renamed { from: at(from) }, to)
        }
        other => panic!("{other}"),
    };
    Item {
        path: at(path),
        old: (mark != "+").then(|| file.clone()),
        new: (mark != "-").then_some(file),
        kind,
        size_delta: 0,
        executes_later: later,
        history: None,
    }
}

pub(super) fn set(items: &[&str]) -> ChangeSet {
    let mut items: Vec<_> = items.iter().map(|text| item(text)).collect();
    items.sort_by_key(|item| (item.executes_later.is_none(), item.path.clone()));
    ChangeSet { from: SnapshotId::Number(0), to: SnapshotId::Number(3), roots: vec![ROOT.into()], items }
}

/// Hunks between empty lines; each line with its sign, words that differ in braces.
pub(super) fn hunks(text: &str) -> Vec<Hunk> {
    let mut next = 1;
    text.split("\n\n").map(|hunk| one_hunk(hunk, &mut next)).collect()
}

fn one_hunk(text: &str, next: &mut usize) -> Hunk {
    let start = *next;
    let lines: Vec<_> = text.lines().map(|line| one_line(line, next)).collect();
    *next += 100;
    let count = |kind| lines.iter().filter(|line| line.kind != kind).count();
    Hunk {
        old_start: start,
        old_count: count(LineKind::Added),
        new_start: start,
        new_count: count(LineKind::Removed),
        lines,
    }
}

fn one_line(line: &str, next: &mut usize) -> PatchLine {
    let (sign, text) = line.split_at(1);
    let kind = match sign {
        " " => LineKind::Context,
        "-" => LineKind::Removed,
        "+" => LineKind::Added,
        other => panic!("{other}"),
    };
    let number = *next;
    *next += usize::from(kind != LineKind::Removed);
    let segment =
        |(index, text): (usize, &str)| Segment { text: text.as_bytes().to_vec(), differs: index % 2 == 1 };
    PatchLine {
        kind,
        old_number: (kind != LineKind::Added).then_some(number),
        new_number: (kind != LineKind::Removed).then_some(number),
        segments: text.split(['{', '}']).enumerate().map(segment).collect(),
        unterminated: false,
    }
}

/// What was asked of the session.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) diffs: usize,
    pub(super) binary: usize,
    pub(super) planned: Vec<RestoreChoice>,
    pub(super) restored: Vec<RestoreChoice>,
}

pub(super) struct Fake {
    pub(super) set: ChangeSet,
    pub(super) bodies: BTreeMap<PathBuf, Body>,
    pub(super) asked: Rc<RefCell<Asked>>,
}

/// Nothing can be read of such a file.
fn is_broken(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "broken")
}

fn damaged(path: &Path) -> RollbackError {
    RollbackError::Damaged { path: path.to_owned(), what: "\x1b[2Jbits are missing".to_owned() }
}

impl ReviewSource for Fake {
    fn id(&self) -> String {
        "20260101-120000-77".to_owned()
    }

    fn timeline(&self) -> Result<Vec<SnapshotInfo>, RollbackError> {
        let info = |number: u32| SnapshotInfo {
            id: SnapshotId::Number(number),
            timestamp: format!("2026-01-01T12:00:0{number}Z"),
            thinned: number == 1,
            durable: true,
        };
        Ok((0..4).map(info).collect())
    }

    fn changes(&self, from: &SnapshotId) -> Result<ChangeSet, RollbackError> {
        let items = self.set.items[..1].to_vec();
        Ok(ChangeSet { from: from.clone(), items, ..self.set.clone() })
    }

    fn diff(&self, item: &Item) -> Result<FileDiff, RollbackError> {
        self.asked.borrow_mut().diffs += 1;
        if is_broken(&item.path) {
            return Err(damaged(&item.path));
        }
        let body = self.bodies.get(&item.path).cloned();
        let body = body.unwrap_or_else(|| Body::Text(hunks(" same\n-was {old}\n+is {new}")));
        Ok(FileDiff { old_mode: Some(0o644), new_mode: Some(0o644), body })
    }

    fn is_binary(&self, item: &Item) -> Result<bool, RollbackError> {
        self.asked.borrow_mut().binary += 1;
        Ok(item.path.extension().is_some_and(|extension| extension == "png"))
    }

    fn coverage(&self, _id: &SnapshotId) -> Result<Coverage, RollbackError> {
        Ok(Coverage::default())
    }

    fn plan(&mut self, choice: &RestoreChoice) -> Result<Plan, RollbackError> {
        self.asked.borrow_mut().planned.push(choice.clone());
        if let Some(path) = choice.paths.iter().find(|path| is_broken(path)) {
            return Err(damaged(path));
        }
        let change = |path: &PathBuf| Change {
            path: path.clone(),
            change_type: ChangeType::Modified,
            size_delta: 0,
            old: None,
            new: None,
        };
        Ok(Plan { changes: choice.paths.iter().map(change).collect(), ..Plan::default() })
    }

    fn restore(&mut self, choice: &RestoreChoice) -> Result<Done, RollbackError> {
        self.asked.borrow_mut().restored.push(choice.clone());
        Ok(Done { undo: Some("undo-1".to_owned()), ..Done::default() })
    }
}

/// A review on a grid of cells.
pub(super) struct Desk {
    pub(super) app: App,
    pub(super) asked: Rc<RefCell<Asked>>,
    terminal: Terminal<TestBackend>,
}

impl Desk {
    pub(super) fn new(items: &[&str], width: u16, height: u16) -> Desk {
        Desk::with(items, &[], width, height)
    }

    pub(super) fn with(items: &[&str], bodies: &[(&str, Body)], width: u16, height: u16) -> Desk {
        Desk::of(set(items), bodies, width, height)
    }

    pub(super) fn of(set: ChangeSet, bodies: &[(&str, Body)], width: u16, height: u16) -> Desk {
        let asked = Rc::<RefCell<Asked>>::default();
        let bodies = bodies.iter().map(|(path, body)| (at(path), body.clone())).collect();
        let fake = Fake { set: set.clone(), bodies, asked: asked.clone() };
        let terminal = Terminal::new(TestBackend::new(width, height)).expect("a grid");
        let mut desk = Desk { app: App::new(Box::new(fake), set), asked, terminal };
        desk.settle();
        desk
    }

    pub(super) fn resize(&mut self, width: u16, height: u16) {
        self.terminal.backend_mut().resize(width, height);
        self.settle();
    }

    pub(super) fn draw(&mut self) {
        let app = &mut self.app;
        self.terminal.draw(|frame| draw::draw(app, frame)).expect("drawn");
    }

    /// Draw and work until nothing is left to do but colours.
    pub(super) fn settle(&mut self) {
        self.draw();
        while self.app.work() != StepResult::Nothing {
            self.draw();
        }
    }

    /// Keys as they are typed, each seen before the next; `^` is Enter, `\t` Tab, `\x1b` Escape.
    pub(super) fn keys(&mut self, keys: &str) {
        for c in keys.chars() {
            let code = match c {
                '^' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '\x1b' => KeyCode::Esc,
                c => KeyCode::Char(c),
            };
            self.app.key(KeyEvent::new(code, KeyModifiers::NONE));
            self.settle();
        }
    }

    pub(super) fn buffer(&self) -> &Buffer {
        self.terminal.backend().buffer()
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let buffer = self.buffer();
        let row = |y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..buffer.area.height).map(|y| row(y).trim_end().to_owned()).collect()
    }

    pub(super) fn screen(&self) -> String {
        self.lines().join("\n")
    }

    pub(super) fn sees(&self, part: &str) {
        assert!(self.screen().contains(part), "`{part}` is not on\n{}", self.screen());
    }

    pub(super) fn misses(&self, part: &str) {
        assert!(!self.screen().contains(part), "`{part}` is on\n{}", self.screen());
    }

    /// The choice that is being planned by `r`, which is then left again.
    pub(super) fn choice(&mut self) -> RestoreChoice {
        self.keys("r");
        self.sees("y restore");
        self.keys("n");
        let planned = self.asked.borrow().planned.last().cloned();
        planned.expect("a plan")
    }
}
