//! Tree of changes. All rows are built once, in order, and each directory knows the end of its rows. Folding and
//! filtering only choose which rows are visible.

use std::path::{Path, PathBuf};

use nono::rollback::{ChangeCounts, ChangeSet, Item, ItemKind};

use super::text;
use crate::paint;

/// Number of rows above which directories start folded.
const MANY: usize = 400;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum RowContent {
    /// Group of autorun items above the tree; they are in the tree as well.
    Later,
    /// Directory that contains changes, and its own change if there is one.
    Dir {
        path: PathBuf,
        own: Option<usize>,
    },
    Item(usize),
}

#[derive(Debug)]
pub(super) struct Row {
    pub(super) what: RowContent,
    /// Escaped.
    pub(super) label: String,
    pub(super) depth: usize,
    /// Index after the last row below this one.
    pub(super) end: usize,
    pub(super) open: bool,
    /// Counts of the changes below, itself included.
    pub(super) counts: ChangeCounts,
}

#[derive(Debug)]
pub(super) struct ChangeTree {
    rows: Vec<Row>,
    /// Indices of the visible rows.
    seen: Vec<usize>,
    filter: Filter,
    /// Whether each item passes the filter.
    passing: Vec<bool>,
    /// Renamed items, with their old paths.
    renamed: Vec<(usize, PathBuf)>,
}

impl ChangeTree {
    pub(super) fn new(set: &ChangeSet) -> ChangeTree {
        let mut rows = later_rows(set);
        let first = rows.len();
        Builder { set, rows: &mut rows, open: Vec::new() }.build();
        let is_small = rows.len() <= MANY;
        let count = rows.len();
        for (number, row) in rows.iter_mut().enumerate() {
            // A single directory at the top stays open, since folded it would hide everything.
            row.open = is_small || number < first || (number == first && row.end == count);
        }
        let origin = |(number, item): (usize, &Item)| match &item.kind {
            ItemKind::Renamed { from } => Some((number, from.clone())),
            _ => None,
        };
        let renamed = set.items.iter().enumerate().filter_map(origin).collect();
        let mut tree = ChangeTree {
            rows,
            seen: Vec::new(),
            filter: Filter::default(),
            passing: vec![true; set.items.len()],
            renamed,
        };
        tree.look_again();
        tree
    }

    /// Number of visible rows.
    pub(super) fn len(&self) -> usize {
        self.seen.len()
    }

    pub(super) fn seen(&self, position: usize) -> Option<&Row> {
        self.seen.get(position).map(|number| &self.rows[*number])
    }

    /// Items of a visible row: its own, or all below it that pass the filter. Items that were moved out of a directory
    /// are included, since a restore moves them back.
    pub(super) fn items(&self, position: usize) -> impl Iterator<Item = usize> {
        let number = self.seen.get(position).copied();
        let rows = number.map_or(&[][..], |number| &self.rows[number..self.rows[number].end]);
        let dir = match rows.first().map(|row| &row.what) {
            Some(RowContent::Dir { path, .. }) => Some(path),
            _ => None,
        };
        let moved = self.renamed.iter().filter(move |(_, from)| dir.is_some_and(|dir| from.starts_with(dir)));
        let all = rows.iter().filter_map(Row::item).chain(moved.map(|(item, _)| *item));
        all.filter(|item| self.passes(*item))
    }

    /// All items that pass the filter.
    pub(super) fn passing_items(&self) -> impl Iterator<Item = usize> {
        (0..self.passing.len()).filter(|item| self.passing[*item])
    }

    /// Whether there is a filter.
    pub(super) fn is_filtered(&self) -> bool {
        !self.filter.text.is_empty()
    }

    pub(super) fn filter_text(&self) -> &str {
        &self.filter.text
    }

    /// Folds or unfolds a row; returns whether that changed anything.
    pub(super) fn fold(&mut self, position: usize, open: bool) -> bool {
        let Some(&number) = self.seen.get(position) else { return false };
        let row = &mut self.rows[number];
        if row.is_leaf() || row.open == open {
            return false;
        }
        row.open = open;
        self.look_again();
        true
    }

    /// Position of the directory that contains a visible row.
    pub(super) fn parent(&self, position: usize) -> Option<usize> {
        let depth = self.seen(position)?.depth;
        (0..position).rev().find(|above| self.seen(*above).is_some_and(|row| row.depth < depth))
    }

    pub(super) fn set_filter(&mut self, text: &str, set: &ChangeSet) {
        self.filter = Filter::parse(text);
        self.passing = set.items.iter().map(|item| self.filter.passes(set, item)).collect();
        if self.is_filtered() {
            for row in &mut self.rows {
                row.open = true;
            }
        }
        self.look_again();
    }

    /// Finds the next row whose name contains the text, wrapping around, and unfolds its directories.
    pub(super) fn search(&mut self, needle: &str, from: usize, back: bool) -> Option<usize> {
        let here = self.seen.get(from).copied().unwrap_or(0);
        let count = self.rows.len();
        let needle = needle.to_lowercase();
        let number = (1..=count)
            .map(|step| if back { (here + count - step) % count } else { (here + step) % count })
            .find(|number| self.matches(*number, &needle))?;
        for above in self.rows[..number].iter_mut().filter(|row| row.end > number) {
            above.open = true;
        }
        self.look_again();
        self.seen.iter().position(|seen| *seen == number)
    }

    fn passes(&self, item: usize) -> bool {
        self.passing.get(item).copied().unwrap_or(false)
    }

    fn matches(&self, number: usize, needle: &str) -> bool {
        let row = &self.rows[number];
        let passes = row.item().is_none_or(|item| self.passes(item));
        passes && row.what != RowContent::Later && row.label.to_lowercase().contains(needle)
    }

    fn look_again(&mut self) {
        let passes = self.passing_rows();
        self.seen.clear();
        let mut number = 0;
        while number < self.rows.len() {
            let row = &self.rows[number];
            if passes.as_ref().is_none_or(|passes| passes[number]) {
                self.seen.push(number);
            }
            number = if row.open { number + 1 } else { row.end };
        }
    }

    /// Whether each row passes the filter: items that pass, and their directories. None: all rows.
    fn passing_rows(&self) -> Option<Vec<bool>> {
        if !self.is_filtered() {
            return None;
        }
        let mut passes = vec![false; self.rows.len()];
        let mut last_passing = usize::MAX;
        for (number, row) in self.rows.iter().enumerate().rev() {
            let own = row.item().is_some_and(|item| self.passes(item));
            passes[number] = own || last_passing < row.end;
            if passes[number] {
                last_passing = number;
            }
        }
        Some(passes)
    }
}

impl Row {
    /// The row's own change.
    pub(super) fn item(&self) -> Option<usize> {
        match self.what {
            RowContent::Item(item) => Some(item),
            RowContent::Dir { own, .. } => own,
            RowContent::Later => None,
        }
    }

    pub(super) fn is_leaf(&self) -> bool {
        matches!(self.what, RowContent::Item(_))
    }
}

fn later_rows(set: &ChangeSet) -> Vec<Row> {
    let later = || (0..set.items.len()).filter(|item| set.items[*item].executes_later.is_some());
    let mut rows = Vec::new();
    let leaves = later().enumerate().map(|(below, item)| Row {
        what: RowContent::Item(item),
        label: text::name(&set.shown(&set.items[item].path)),
        depth: 1,
        end: below + 2,
        open: true,
        counts: ChangeCounts::default(),
    });
    let leaves: Vec<_> = leaves.collect();
    if !leaves.is_empty() {
        let mut counts = ChangeCounts::default();
        later().for_each(|item| set.items[item].kind.count_in(&mut counts));
        rows.push(Row {
            what: RowContent::Later,
            label: "will execute later".to_owned(),
            depth: 0,
            end: leaves.len() + 1,
            open: true,
            counts,
        });
        rows.extend(leaves);
    }
    rows
}

struct Builder<'a> {
    set: &'a ChangeSet,
    rows: &'a mut Vec<Row>,
    /// Directories that may contain the next row: displayed path, and row.
    open: Vec<(PathBuf, usize)>,
}

impl Builder<'_> {
    fn build(mut self) {
        let shown = |item: &Item| self.set.shown(&item.path);
        let mut order: Vec<(PathBuf, usize)> =
            self.set.items.iter().map(shown).enumerate().map(|(item, path)| (path, item)).collect();
        order.sort();
        for (at, (path, item)) in order.iter().enumerate() {
            self.close(path);
            let has_more = order.get(at + 1).is_some_and(|(next, _)| next != path && next.starts_with(path));
            self.directories(path, *item);
            if has_more {
                self.directory(path, self.set.items[*item].path.clone(), Some(*item));
            } else {
                self.row(path, RowContent::Item(*item));
            }
            self.count(*item);
        }
        self.close(Path::new(""));
    }

    /// Ends the directories that do not contain this path.
    fn close(&mut self, path: &Path) {
        while let Some((_, row)) = self.open.pop_if(|(dir, _)| !path.starts_with(dir)) {
            self.rows[row].end = self.rows.len();
        }
    }

    /// Adds the directories of a path that have no row yet.
    fn directories(&mut self, path: &Path, item: usize) {
        let known = self.open.last().map_or(0, |(dir, _)| dir.components().count());
        let total = path.components().count();
        for length in known + 1..total {
            let dir: PathBuf = path.components().take(length).collect();
            let absolute = self.set.items[item].path.ancestors().nth(total - length);
            self.directory(&dir, absolute.unwrap_or(Path::new("/")).to_owned(), None);
        }
    }

    fn directory(&mut self, dir: &Path, path: PathBuf, own: Option<usize>) {
        let row = self.rows.len();
        self.row(dir, RowContent::Dir { path, own });
        self.open.push((dir.to_owned(), row));
    }

    fn row(&mut self, path: &Path, what: RowContent) {
        let name = path.file_name().map_or(path, Path::new);
        let slash = if matches!(what, RowContent::Dir { .. }) { "/" } else { "" };
        self.rows.push(Row {
            what,
            label: format!("{}{slash}", text::name(name)),
            depth: self.open.len(),
            end: self.rows.len() + 1,
            open: true,
            counts: ChangeCounts::default(),
        });
    }

    fn count(&mut self, item: usize) {
        for (_, row) in &self.open {
            self.set.items[item].kind.count_in(&mut self.rows[*row].counts);
        }
    }
}

/// Filter on items: those of these kinds whose path contains all of these words.
#[derive(Debug, Default)]
struct Filter {
    text: String,
    marks: Vec<char>,
    words: Vec<String>,
}

impl Filter {
    /// Parses a filter: marks (`+ ~ - M R !`) or their names select kinds, everything else is part of the path.
    fn parse(text: &str) -> Filter {
        let mut filter = Filter { text: text.trim().to_owned(), ..Filter::default() };
        for word in text.split_whitespace() {
            let mark = match word {
                "created" | "new" | "+" => '+',
                "modified" | "changed" | "~" => '~',
                "deleted" | "-" => '-',
                "mode" | "M" => 'M',
                "renamed" | "rename" | "R" => 'R',
                "later" | "!" => '!',
                _ => {
                    filter.words.push(word.to_lowercase());
                    continue;
                }
            };
            filter.marks.push(mark);
        }
        filter
    }

    fn passes(&self, set: &ChangeSet, item: &Item) -> bool {
        let is_kind = |mark: &char| match mark {
            '!' => item.executes_later.is_some(),
            mark => *mark == paint::mark(&item.kind),
        };
        if !self.marks.is_empty() && !self.marks.iter().any(is_kind) {
            return false;
        }
        if self.words.is_empty() {
            return true;
        }
        let path = set.shown(&item.path).to_string_lossy().to_lowercase();
        self.words.iter().all(|word| path.contains(word))
    }
}
