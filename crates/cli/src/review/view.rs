//! Layout of one item's diff in lines, as one column and side by side.

use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;

use nono::rollback::patch::Blob;
use nono::rollback::{Body, ChangeSet, FileDiff, Hunk, Item, ItemKind, LineKind, PatchLine, RollbackError};
use nono::snapshot::diff::FileKind;

use super::text;
use crate::paint;
use crate::syntax::{DiffSide, Job, Tints};

/// Maximum number of bytes of a line; drawing longer ones takes time.
const LONGEST: usize = 4000;
/// Maximum number of lines of a hunk that gets syntax colours.
const TOO_BIG_TO_COLOUR: usize = 5000;

#[derive(Debug)]
pub(super) struct Text {
    pub(super) kind: LineKind,
    pub(super) old_number: Option<usize>,
    pub(super) new_number: Option<usize>,
    /// Escaped.
    pub(super) shown: String,
    /// Ranges that differ from the other side.
    pub(super) differs: Vec<Range<usize>>,
}

/// Line of the pane; hunks and their lines by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ViewLine {
    Note(usize),
    Header(usize),
    One(usize, usize),
    Two(usize, Option<usize>, Option<usize>),
}

impl ViewLine {
    pub(super) fn hunk(self) -> Option<usize> {
        match self {
            ViewLine::Note(_) => None,
            ViewLine::Header(hunk) | ViewLine::One(hunk, _) | ViewLine::Two(hunk, ..) => Some(hunk),
        }
    }
}

#[derive(Debug)]
pub(super) struct View {
    pub(super) notes: Vec<String>,
    pub(super) headers: Vec<String>,
    pub(super) hunks: Vec<Vec<Text>>,
    /// Syntax colours of each hunk, once computed.
    pub(super) tints: Vec<Option<Vec<Tints>>>,
    /// Whether hunks can be restored one by one.
    pub(super) is_partial: bool,
    unified: Vec<ViewLine>,
    split: Vec<ViewLine>,
    name: String,
}

impl View {
    pub(super) fn new(set: &ChangeSet, item: &Item, diff: Result<FileDiff, RollbackError>) -> View {
        let mut view = View {
            notes: notes(set, item),
            headers: Vec::new(),
            hunks: Vec::new(),
            tints: Vec::new(),
            is_partial: false,
            unified: Vec::new(),
            split: Vec::new(),
            name: text::name(item.path.file_name().map_or(&item.path, Path::new)),
        };
        match diff {
            Err(error) => {
                view.notes.push(format!("cannot show it: {}", nono::diagnostic::escape(&error.to_string())));
            }
            Ok(diff) => view.fill(item, &diff),
        }
        view.lay_out();
        view
    }

    pub(super) fn places(&self, is_split: bool) -> &[ViewLine] {
        if is_split { &self.split } else { &self.unified }
    }

    fn fill(&mut self, item: &Item, diff: &FileDiff) {
        match (diff.old_mode, diff.new_mode) {
            (Some(old), Some(new)) if old != new => {
                self.notes.push(format!("mode {:04o} -> {:04o}", old & 0o7777, new & 0o7777));
            }
            (None, Some(new)) => self.notes.push(format!("created, mode {:04o}", new & 0o7777)),
            (Some(old), None) => self.notes.push(format!("deleted, mode {:04o}", old & 0o7777)),
            _ => {}
        }
        match &diff.body {
            Body::Text(hunks) => {
                self.is_partial = item.kind == ItemKind::Modified && is_file(item);
                self.headers = hunks.iter().map(Hunk::header).collect();
                self.hunks = hunks.iter().map(|hunk| hunk.lines.iter().map(Text::new).collect()).collect();
                self.tints = hunks.iter().map(|_| None).collect();
                if hunks.is_empty() && diff.old_mode == diff.new_mode {
                    self.notes.push("no difference in the content".to_owned());
                }
            }
            Body::Binary { old, new } => self.blobs("binary", *old, *new),
            Body::Large { old, new } => self.blobs("too large to compare", *old, *new),
            Body::Symlink { old, new } => {
                let target = |target: &Option<Vec<u8>>| {
                    target.as_ref().map_or("nothing".to_owned(), |target| text::content(target, 0))
                };
                self.notes.push(format!("link to {} -> {}", target(old), target(new)));
            }
            Body::Other(words) => self.notes.push(nono::diagnostic::escape(words)),
        }
    }

    fn blobs(&mut self, what: &str, old: Option<Blob>, new: Option<Blob>) {
        self.notes.push(what.to_owned());
        for (mark, blob) in [('-', old), ('+', new)] {
            if let Some(blob) = blob {
                self.notes.push(format!("{mark} {} bytes, {}", blob.size, blob.hash));
            }
        }
    }

    fn lay_out(&mut self) {
        let notes = (0..self.notes.len()).map(ViewLine::Note);
        self.unified.extend(notes.clone());
        self.split.extend(notes);
        for (hunk, lines) in self.hunks.iter().enumerate() {
            self.unified.push(ViewLine::Header(hunk));
            self.unified.extend((0..lines.len()).map(|line| ViewLine::One(hunk, line)));
            self.split.push(ViewLine::Header(hunk));
            let pairs = paint::pairs(lines.iter().map(|line| line.kind)).into_iter();
            self.split.extend(pairs.map(|(old, new)| ViewLine::Two(hunk, old, new)));
        }
    }

    /// Next visible hunk to colour, if there is one.
    pub(super) fn job<K>(&self, visible: &[ViewLine], key: impl Fn(usize) -> K) -> Option<Job<K>> {
        let wanted =
            |hunk: &usize| self.tints[*hunk].is_none() && self.hunks[*hunk].len() <= TOO_BIG_TO_COLOUR;
        let hunk = visible.iter().filter_map(|place| place.hunk()).find(wanted)?;
        let side = |kind| match kind {
            LineKind::Removed => DiffSide::Old,
            LineKind::Added => DiffSide::New,
            LineKind::Context => DiffSide::Both,
        };
        let lines = self.hunks[hunk].iter().map(|line| (side(line.kind), line.shown.clone())).collect();
        Some(Job { key: key(hunk), name: self.name.clone(), lines })
    }

    /// Whether a line contains the text of a search.
    pub(super) fn contains(&self, place: ViewLine, needle: &str) -> bool {
        let has = |hunk: usize, line: usize| self.hunks[hunk][line].shown.to_lowercase().contains(needle);
        match place {
            ViewLine::Note(note) => self.notes[note].to_lowercase().contains(needle),
            ViewLine::Header(_) => false,
            ViewLine::One(hunk, line) => has(hunk, line),
            ViewLine::Two(hunk, old, new) => [old, new].into_iter().flatten().any(|line| has(hunk, line)),
        }
    }
}

fn is_file(item: &Item) -> bool {
    [&item.old, &item.new].iter().all(|side| side.as_ref().is_some_and(|side| side.kind == FileKind::File))
}

fn notes(set: &ChangeSet, item: &Item) -> Vec<String> {
    let mut notes = vec![text::name(&set.shown(&item.path))];
    if let ItemKind::Renamed { from } = &item.kind {
        notes.push(format!("renamed from {}", text::name(&set.shown(from))));
    }
    notes.extend(item.history.iter().flatten().map(|line| nono::diagnostic::escape(line)));
    if let Some(later) = &item.executes_later {
        notes.push(format!("! {}: {}", later.what, later.why));
    }
    notes
}

impl Text {
    fn new(line: &PatchLine) -> Text {
        let mut shown = String::new();
        let mut differs = Vec::new();
        let mut left = LONGEST;
        for segment in &line.segments {
            let taken = &segment.text[..segment.text.len().min(left)];
            left -= taken.len();
            let from = shown.len();
            shown.push_str(&text::content(taken, text::columns(&shown)));
            if segment.differs {
                differs.push(from..shown.len());
            }
            if taken.len() < segment.text.len() {
                shown.push('…');
                break;
            }
        }
        if line.unterminated {
            shown.push_str(" (no line end)");
        }
        let PatchLine { kind, old_number, new_number, .. } = *line;
        Text { kind, old_number, new_number, shown, differs }
    }
}

/// Cache of the views of the last few items.
#[derive(Debug, Default)]
pub(super) struct Views(VecDeque<(usize, View)>);

impl Views {
    const KEPT: usize = 8;

    pub(super) fn get(&self, item: usize) -> Option<&View> {
        self.0.iter().find(|(known, _)| *known == item).map(|(_, view)| view)
    }

    pub(super) fn get_mut(&mut self, item: usize) -> Option<&mut View> {
        self.0.iter_mut().find(|(known, _)| *known == item).map(|(_, view)| view)
    }

    pub(super) fn put(&mut self, item: usize, view: View) {
        self.0.truncate(Self::KEPT - 1);
        self.0.push_front((item, view));
    }
}
