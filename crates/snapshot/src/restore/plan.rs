//! A plan: the directories to enter, each with the steps on its names. A value that can be shown, counted and applied.
//! Paths are built only on demand: in a deep tree all of them would not fit in memory.

use std::borrow::Borrow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::changes::Changes;
use super::steps::Steps;
use super::{PlanNote, Skipped};
use crate::diff::{Aspects, Change, ChangeType, EntryRef, Lost};
use crate::node::{Entry, Kind, Name};

/// Index of a directory in its plan.
pub(super) type DirIndex = usize;

#[derive(Debug, Default)]
pub struct RestorePlan<L = Arc<Layout>> {
    /// Shared with the list of changes.
    pub(super) layout: L,
    pub(super) skipped: Vec<Skipped>,
    pub(super) notes: Vec<PlanNote>,
    pub(super) lost: Vec<Lost>,
}

impl<L: Borrow<Layout>> std::ops::Deref for RestorePlan<L> {
    type Target = Layout;

    fn deref(&self) -> &Layout {
        self.layout.borrow()
    }
}

/// A plan being built.
pub(super) type Draft = RestorePlan<Layout>;

impl Draft {
    pub(super) fn finish(self) -> RestorePlan {
        let Draft { layout, skipped, notes, lost } = self;
        RestorePlan { layout: Arc::new(layout), skipped, notes, lost }
    }
}

impl std::ops::DerefMut for Draft {
    fn deref_mut(&mut self) -> &mut Layout {
        &mut self.layout
    }
}

/// Directories of a plan.
#[derive(Debug, Default)]
pub struct Layout {
    /// Directories, each before its content, and all of one root together.
    pub(super) dirs: Vec<PlanDir>,
    /// Parent directories of the roots, in rising order.
    pub(super) tops: Vec<DirIndex>,
}

#[derive(Debug)]
pub(super) struct PlanDir {
    /// Index of the parent; for the parent directory of a root, the index itself.
    pub(super) parent: DirIndex,
    pub(super) how: DirEntryMode,
    pub(super) steps: Steps,
    pub(super) children: Vec<DirIndex>,
    pub(super) leave: Leave,
}

/// Way to enter a directory.
#[derive(Debug)]
pub(super) enum DirEntryMode {
    /// Parent directory of a root: opened by its path, and never changed itself.
    Top(PathBuf),
    Enter(EntryRef),
    /// Created, after displacing the entry in its place.
    Make {
        new: EntryRef,
        over: Option<EntryRef>,
    },
    /// Emptied and removed; `then` takes its place.
    Remove {
        old: EntryRef,
        then: Option<EntryRef>,
    },
}

/// Final attributes of a directory, set when everything in it is done.
#[derive(Debug)]
pub(super) enum Leave {
    /// Attributes of `new`. `old` has the current ones; `None` for a new directory.
    Target {
        old: Option<EntryRef>,
        new: EntryRef,
    },
    /// Permissions and time as before, if the work in it changed them.
    AsFound(EntryRef),
    /// The time when it was entered: it belongs to another root, which is done with it.
    AsEntered,
    Alone,
}

/// Step on one name that is not a directory before or after.
#[derive(Clone, Debug)]
pub(super) enum NameStep {
    Create(EntryRef),
    Replace {
        old: EntryRef,
        new: EntryRef,
    },
    Delete(EntryRef),
    Meta {
        old: EntryRef,
        new: EntryRef,
    },
    /// As `Create`, after everything else: a directory is in its place until then.
    Late(EntryRef),
    /// Becomes another name of the file at `anchor`, after everything else.
    Link {
        old: Option<EntryRef>,
        new: EntryRef,
        anchor: Anchor,
    },
    /// Nothing is to be done.
    Keep,
}

/// File to link to: its path components from the parent directory of the root.
#[derive(Clone, Debug)]
pub(super) struct Anchor(pub(super) Box<[Name]>);

impl PlanDir {
    pub(super) fn name(&self) -> Option<&Name> {
        match &self.how {
            DirEntryMode::Top(_) => None,
            DirEntryMode::Enter(entry)
            | DirEntryMode::Make { new: entry, .. }
            | DirEntryMode::Remove { old: entry, .. } => Some(&entry.name),
        }
    }
}

impl NameStep {
    pub(super) fn is_late(&self) -> bool {
        matches!(self, NameStep::Late(_) | NameStep::Link { .. })
    }

    pub(super) fn sides(&self) -> (Option<&EntryRef>, Option<&EntryRef>) {
        match self {
            NameStep::Create(new) | NameStep::Late(new) => (None, Some(new)),
            NameStep::Delete(old) => (Some(old), None),
            NameStep::Replace { old, new } | NameStep::Meta { old, new } => (Some(old), Some(new)),
            NameStep::Link { old, new, .. } => (old.as_ref(), Some(new)),
            NameStep::Keep => (None, None),
        }
    }

    pub(super) fn name(&self) -> Option<&Name> {
        let (old, new) = self.sides();
        new.or(old).map(|entry| &entry.name)
    }

    /// Kind of change as shown to people.
    pub(super) fn change_type(&self) -> Option<ChangeType> {
        match self.sides() {
            (None, None) => None,
            (None, Some(_)) => Some(ChangeType::Created),
            (Some(_), None) => Some(ChangeType::Deleted),
            (Some(old), Some(new)) => Aspects::to_reach(old, new).change_type(),
        }
    }
}

/// A step, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedAction {
    pub path: PathBuf,
    pub kind: ActionKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    Create,
    Replace,
    Delete,
    /// Permissions, owner, attributes or time of a file or directory that stays.
    SetMetadata,
    /// Becomes another name of a file that exists or will exist.
    Link,
    MakeDirectory,
    RemoveDirectory,
}

impl RestorePlan {
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }

    pub fn notes(&self) -> &[PlanNote] {
        &self.notes
    }

    /// Selected entries that the target excluded and that are gone or changed: they are not restored.
    pub fn lost(&self) -> &[Lost] {
        &self.lost
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All steps, directory by directory.
    pub fn actions(&self) -> impl Iterator<Item = PlannedAction> + '_ {
        self.dirs.iter().enumerate().flat_map(move |(index, dir)| {
            let steps = dir.steps.iter().filter_map(move |step| {
                let kind = match step {
                    NameStep::Create(_) | NameStep::Late(_) => ActionKind::Create,
                    NameStep::Replace { .. } => ActionKind::Replace,
                    NameStep::Delete(_) => ActionKind::Delete,
                    NameStep::Meta { .. } => ActionKind::SetMetadata,
                    NameStep::Link { .. } => ActionKind::Link,
                    NameStep::Keep => return None,
                };
                Some(PlannedAction { path: self.path_of(index, step.name()), kind })
            });
            let own = self.own_kind(index);
            own.map(|kind| PlannedAction { path: self.path_of(index, None), kind }).into_iter().chain(steps)
        })
    }

    /// Number of actions.
    pub fn len(&self) -> usize {
        let steps = self.dirs.iter().flat_map(|dir| dir.steps.iter());
        let own = (0..self.dirs.len()).filter(|index| self.own_kind(*index).is_some());
        steps.filter(|step| !matches!(step, NameStep::Keep)).count() + own.count()
    }

    /// Changes that [`super::apply`] will make if nothing is in its way, sorted by path.
    pub fn changes(&self) -> Changes {
        Changes::planned(&self.layout)
    }
}

impl Layout {
    /// Action on a directory itself, apart from its content.
    pub(super) fn own_kind(&self, index: DirIndex) -> Option<ActionKind> {
        match (&self.dirs[index].how, &self.dirs[index].leave) {
            (DirEntryMode::Make { .. }, _) => Some(ActionKind::MakeDirectory),
            (DirEntryMode::Remove { .. }, _) => Some(ActionKind::RemoveDirectory),
            (DirEntryMode::Enter(_), Leave::Target { old: Some(old), new })
                if Aspects::to_reach(old, new).metadata() =>
            {
                Some(ActionKind::SetMetadata)
            }
            _ => None,
        }
    }

    pub(super) fn step_change(&self, index: DirIndex, step: &NameStep) -> Option<Change> {
        let (old, new) = step.sides();
        let change_type = step.change_type()?;
        let path = self.path_of(index, Some(step.name()?));
        Some(Change::between(path, change_type, old.map(|e| &**e), new.map(|e| &**e)))
    }

    /// Whether nothing is done in the directory.
    pub(super) fn is_alone(&self, index: DirIndex) -> bool {
        self.dirs[index].steps.is_empty() && self.dirs[index].children.is_empty()
    }

    /// Change of the directory itself; a created or removed one is listed only if nothing in it is.
    pub(super) fn dir_change(&self, index: DirIndex) -> Option<Change> {
        let dir = &self.dirs[index];
        let alone = self.is_alone(index);
        let change = |change_type, old: Option<&Entry>, new: Option<&Entry>| {
            Some(Change::between(self.path_of(index, None), change_type, old, new))
        };
        match (&dir.how, &dir.leave) {
            (DirEntryMode::Make { new, .. }, _) if alone => change(ChangeType::Created, None, Some(new)),
            (DirEntryMode::Remove { old, .. }, _) if alone => change(ChangeType::Deleted, Some(old), None),
            (DirEntryMode::Enter(_), Leave::Target { old: Some(old), new }) => {
                let change_type = Aspects::to_reach(old, new).change_type()?;
                change(change_type, Some(old), Some(new))
            }
            _ => None,
        }
    }

    /// Change of the entry that replaces a directory or is replaced by it.
    pub(super) fn swap_change(&self, index: DirIndex) -> Option<Change> {
        let path = || self.path_of(index, None);
        match &self.dirs[index].how {
            DirEntryMode::Make { over: Some(old), .. } => {
                Some(Change::between(path(), ChangeType::Deleted, Some(old), None))
            }
            DirEntryMode::Remove { then: Some(new), .. } => {
                Some(Change::between(path(), ChangeType::Created, None, Some(new)))
            }
            _ => None,
        }
    }

    /// Absolute path of a directory, or of a name in it.
    pub(super) fn path_of(&self, index: DirIndex, name: Option<&Name>) -> PathBuf {
        let (top, names) = self.names(index);
        let mut path = top.to_path_buf();
        path.extend(names.into_iter().chain(name));
        path
    }

    /// Parent directory of the root, and the components from there.
    pub(super) fn names(&self, mut index: DirIndex) -> (&Path, Vec<&Name>) {
        let mut names = Vec::new();
        while let Some(name) = self.dirs[index].name() {
            names.push(name);
            index = self.dirs[index].parent;
        }
        names.reverse();
        let top = match &self.dirs[index].how {
            DirEntryMode::Top(path) => path.as_path(),
            _ => Path::new("/"),
        };
        (top, names)
    }

    /// Index of the root's parent directory that contains a directory.
    pub(super) fn top(&self, index: DirIndex) -> DirIndex {
        let after = self.tops.partition_point(|top| *top <= index);
        self.tops.get(after.wrapping_sub(1)).copied().unwrap_or(0)
    }

    /// Whether work on its names changes the directory's time.
    pub(super) fn is_touched(&self, index: DirIndex) -> bool {
        let dir = &self.dirs[index];
        let stays =
            |child: &DirIndex| matches!(self.dirs[*child].how, DirEntryMode::Enter(_) | DirEntryMode::Top(_));
        dir.steps.any_moves() || !dir.children.iter().all(stays)
    }

    /// Number of steps and entered directories, for progress.
    pub(super) fn total(&self) -> u64 {
        self.dirs.iter().map(|dir| 1 + dir.steps.len() as u64).sum()
    }

    /// Bytes of new files, of removed files, and of the largest new file.
    pub(super) fn sizes(&self, top: DirIndex) -> (u64, u64, u64) {
        let size = |entry: &EntryRef| match entry.kind {
            Kind::File { size, sparse: false, .. } => size,
            _ => 0,
        };
        let (mut new_bytes, mut old_bytes, mut largest) = (0u64, 0u64, 0u64);
        let dirs = self.dirs.iter().enumerate().filter(|(index, _)| self.top(*index) == top);
        for step in dirs.flat_map(|(_, dir)| dir.steps.iter()) {
            if let NameStep::Create(new) | NameStep::Late(new) | NameStep::Replace { new, .. } = &step {
                new_bytes = new_bytes.saturating_add(size(new));
                largest = largest.max(size(new));
            }
            if let NameStep::Delete(old) | NameStep::Replace { old, .. } = &step {
                old_bytes = old_bytes.saturating_add(size(old));
            }
        }
        (new_bytes, old_bytes, largest)
    }
}
