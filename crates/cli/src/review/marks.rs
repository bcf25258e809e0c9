//! Marks for a restore, and the restore choice made from them.
//!
//! A directory that is marked as a whole stays one path in the choice, minus what was unmarked in it: so its own times
//! are restored too, and ten thousand files are one path.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use nono::rollback::{ChangeSet, Conflicts, Item, ItemKind, RestoreChoice};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marked {
    No,
    /// Some hunks, or some entries of a directory.
    Partly,
    Yes,
}

#[derive(Debug, Default)]
pub(super) struct MarkedItems {
    items: BTreeSet<usize>,
    hunks: BTreeMap<usize, BTreeSet<usize>>,
    /// Directories that were marked as a whole.
    dirs: BTreeSet<PathBuf>,
    /// Everything was marked as a whole.
    everything: bool,
}

impl MarkedItems {
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.hunks.is_empty()
    }

    /// Number of marked files, and of marked hunks in other files.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.items.len(), self.hunks.values().map(BTreeSet::len).sum())
    }

    pub(super) fn clear(&mut self) {
        *self = MarkedItems::default();
    }

    pub(super) fn item(&self, item: usize) -> Marked {
        if self.items.contains(&item) {
            Marked::Yes
        } else if self.hunks.contains_key(&item) {
            Marked::Partly
        } else {
            Marked::No
        }
    }

    pub(super) fn of(&self, items: impl Iterator<Item = usize>) -> Marked {
        let (mut some, mut all) = (false, true);
        for item in items {
            let marked = self.item(item);
            some |= marked != Marked::No;
            all &= marked == Marked::Yes;
        }
        match (some, all) {
            (true, true) => Marked::Yes,
            (true, false) => Marked::Partly,
            (false, _) => Marked::No,
        }
    }

    pub(super) fn has_hunk(&self, item: usize, hunk: usize) -> bool {
        self.items.contains(&item) || self.hunks.get(&item).is_some_and(|hunks| hunks.contains(&hunk))
    }

    /// Adds the marks of another set, for the items that `of` selects.
    pub(super) fn take_in(&mut self, other: &MarkedItems, of: impl Fn(usize) -> bool) {
        self.items.extend(other.items.iter().filter(|item| of(**item)));
        for (item, hunks) in other.hunks.iter().filter(|(item, _)| of(**item)) {
            self.hunks.entry(*item).or_default().extend(hunks);
        }
    }

    /// Marks these items, or unmarks them if all are marked.
    pub(super) fn toggle(&mut self, items: &BTreeSet<usize>, dir: Option<&Path>) {
        if self.of(items.iter().copied()) == Marked::Yes {
            self.items.retain(|item| !items.contains(item));
            if let Some(dir) = dir {
                self.dirs.retain(|marked| !marked.starts_with(dir));
            }
            self.forget_if_empty();
        } else {
            self.add(items);
            self.dirs.extend(dir.map(Path::to_owned));
        }
    }

    pub(super) fn add(&mut self, items: &BTreeSet<usize>) {
        self.hunks.retain(|item, _| !items.contains(item));
        self.items.extend(items);
    }

    pub(super) fn everything(&mut self, count: usize) {
        self.clear();
        self.items = (0..count).collect();
        self.everything = true;
    }

    /// Marks or unmarks one hunk. `count`: number of hunks of the file.
    pub(super) fn toggle_hunk(&mut self, item: usize, hunk: usize, count: usize) {
        let hunks = if self.items.remove(&item) {
            self.hunks.entry(item).or_insert_with(|| (0..count).collect())
        } else {
            self.hunks.entry(item).or_default()
        };
        if !hunks.remove(&hunk) {
            hunks.insert(hunk);
        }
        if hunks.is_empty() {
            self.hunks.remove(&item);
        }
        self.forget_if_empty();
    }

    fn forget_if_empty(&mut self) {
        if self.items.is_empty() {
            self.everything = false;
            self.dirs.clear();
        }
    }

    pub(super) fn choice(&self, set: &ChangeSet) -> RestoreChoice {
        let covered = |item: &Item| self.everything || item_paths(item).all(|path| self.is_in_dir(path));
        let marked = self.items.iter().map(|item| &set.items[*item]);
        let mut paths: BTreeSet<PathBuf> = if self.everything {
            // With hunks but without paths, only the hunks would be restored.
            set.roots.iter().filter(|_| !self.hunks.is_empty()).cloned().collect()
        } else {
            let single = marked.clone().filter(|item| !covered(item)).flat_map(item_paths);
            single.map(Path::to_owned).chain(self.used_dirs(set)).collect()
        };
        let is_below = |path: &PathBuf| path.ancestors().skip(1).any(|above| paths.contains(above));
        let nested: Vec<_> = paths.iter().filter(|path| is_below(path)).cloned().collect();
        paths.retain(|path| !nested.contains(path));
        // Unmarked entries of a chosen directory. A directory that contains marked entries cannot be excluded, because
        // they would be excluded with it.
        let above_marked: BTreeSet<&Path> =
            marked.flat_map(item_paths).flat_map(|path| path.ancestors().skip(1)).collect();
        let is_chosen = |path: &Path| self.everything || path.ancestors().any(|above| paths.contains(above));
        let is_left_out = |path: &&Path| is_chosen(path) && !above_marked.contains(path);
        let kept =
            (0..set.items.len()).filter(|item| !self.items.contains(item)).map(|item| &set.items[item]);
        let except = kept.flat_map(item_paths).filter(is_left_out).map(Path::to_owned).collect();
        let hunk = |(item, hunks): (&usize, &BTreeSet<usize>)| {
            (set.items[*item].clone(), hunks.iter().copied().collect())
        };
        RestoreChoice {
            snapshot: set.from.clone(),
            paths: paths.into_iter().collect(),
            except,
            hunks: self.hunks.iter().map(hunk).collect(),
            conflicts: Conflicts::Keep,
        }
    }

    fn is_in_dir(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.dirs.contains(above))
    }

    /// Marked directories that still contain marked items.
    fn used_dirs<'a>(&'a self, set: &'a ChangeSet) -> impl Iterator<Item = PathBuf> + 'a {
        let has_marked = |dir: &&PathBuf| {
            self.items.iter().any(|item| item_paths(&set.items[*item]).any(|path| path.starts_with(dir)))
        };
        self.dirs.iter().filter(has_marked).cloned()
    }
}

/// Path of an item, and its old path if it was renamed: undoing a rename needs both.
pub(super) fn item_paths(item: &Item) -> impl Iterator<Item = &Path> {
    let from = match &item.kind {
        ItemKind::Renamed { from } => Some(from.as_path()),
        _ => None,
    };
    std::iter::once(item.path.as_path()).chain(from)
}
