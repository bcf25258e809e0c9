//! Who changed what: the agent, or somebody else.
//!
//! The **mark** is the project as an agent's call found or left it. What differs from it when the next call begins was
//! changed by somebody else meanwhile, and these paths are *theirs* until an agent writes them again. What differs from
//! it when a call ends is the agent's. While a call is under way nobody can tell the two apart, and what changes is taken
//! as the agent's: its damage is undone, and what a restore removes is stored in any case. Inside a `.git` there are no
//! files of anybody's: it is one thing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nono_history::git_of;
use nono_snapshot::file::Sync;
use nono_snapshot::{Change, ContentHash, Now, SnapshotId, SnapshotManager};
use serde::{Deserialize, Serialize};

use crate::error::CheckpointError;
use crate::folder::Folder;
use crate::json;
use crate::origin::Origin;

const MARKS: &str = "marks.json";
const THEIRS: &str = "theirs.json";
/// What the names of their snapshots begin with.
const MARK: &str = "mark";
/// So many are given up at once: that has to reach the disk, which takes its time.
const OLD_MARKS: usize = 32;

/// A call that began and did not end yet, or whose end never came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(clippy::struct_field_names, reason = "the agents' own words")]
struct Call {
    agent: Option<String>,
    session: Option<String>,
    turn: Option<String>,
    call: Option<String>,
}

impl Call {
    fn of(origin: &Origin) -> Call {
        let Origin { agent, session, turn, call, .. } = origin.clone();
        Call { agent, session, turn, call }
    }

    fn is_same_conversation(&self, other: &Call) -> bool {
        self.agent == other.agent && self.session == other.session
    }

    /// Whether `end` is the end of this one. Not every agent names its calls.
    fn ends_with(&self, end: &Call) -> bool {
        self.is_same_conversation(end) && (self.call == end.call || self.call.is_none() || end.call.is_none())
    }
}

/// `marks.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marks {
    mark: Option<SnapshotId>,
    /// The last numbered snapshot when it was set.
    after: u32,
    open: Vec<Call>,
}

/// A path that somebody else changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Their {
    #[serde(with = "nono_sys::path_serde")]
    pub(crate) path: PathBuf,
    /// What the agent had left there.
    pub(crate) left: Option<ContentHash>,
}

/// `theirs.json`: by path, with what the agent had left there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Theirs(BTreeMap<PathBuf, Option<ContentHash>>);

impl Theirs {
    pub(crate) fn load(folder: &Folder) -> Result<Theirs, CheckpointError> {
        let all: Vec<Their> = json::load_or_default(&folder.file(THEIRS))?;
        Ok(Theirs(all.into_iter().map(|their| (their.path, their.left)).collect()))
    }

    pub(crate) fn save(&self, folder: &Folder) -> Result<(), CheckpointError> {
        let their =
            |(path, left): (&PathBuf, &Option<ContentHash>)| Their { path: path.clone(), left: *left };
        json::save(&folder.file(THEIRS), &self.0.iter().map(their).collect::<Vec<_>>(), Sync::No)
    }

    pub(crate) fn into_paths(self) -> BTreeMap<PathBuf, Option<ContentHash>> {
        self.0
    }

    pub(crate) fn left(&self, path: &Path) -> Option<ContentHash> {
        self.0.get(path).copied().flatten()
    }

    /// Somebody else changed it.
    pub(crate) fn add(&mut self, path: &Path, left: Option<ContentHash>) {
        self.0.entry(unit(path)).or_insert(left);
    }

    /// The same, with something else that it comes from.
    pub(crate) fn set(&mut self, path: &Path, left: Option<ContentHash>) {
        self.0.insert(unit(path), left);
    }

    /// It is the agent's, or ours.
    pub(crate) fn remove(&mut self, path: &Path) {
        self.0.remove(&unit(path));
    }

    fn take(&mut self, changes: &[Change], whose: Whose) {
        for change in changes {
            match whose {
                Whose::Theirs => self.add(&change.path, change.old.as_ref().and_then(|old| old.hash)),
                Whose::Agents => self.remove(&change.path),
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Theirs,
    Agents,
}

/// The path itself, or the `.git` that it is in.
fn unit(path: &Path) -> PathBuf {
    git_of(path).unwrap_or(path).to_owned()
}

/// The snapshots without a number whose names begin like this.
pub(crate) fn asides(manager: &SnapshotManager, prefix: &str) -> Result<Vec<SnapshotId>, CheckpointError> {
    let is_such = |id: &SnapshotId| match id {
        SnapshotId::Safety(name) => name.split('-').next() == Some(prefix),
        SnapshotId::Number(_) => false,
    };
    Ok(manager.snapshots()?.into_iter().filter(is_such).collect())
}

impl Marks {
    /// Whether a project's folder has any.
    pub(crate) fn are_in(dir: &Path) -> bool {
        dir.join(MARKS).is_file()
    }

    pub(crate) fn load(folder: &Folder) -> Result<Marks, CheckpointError> {
        json::load_or_default(&folder.file(MARKS))
    }

    fn save(&self, folder: &Folder) -> Result<(), CheckpointError> {
        // A call that changed nothing writes nothing.
        if folder.file(MARKS).is_file() && Marks::load(folder)? == *self {
            return Ok(());
        }
        json::save(&folder.file(MARKS), self, Sync::No)
    }

    /// The mark, if it tells anything about what happened since snapshot `target`.
    pub(crate) fn since(&self, target: u32) -> Option<&SnapshotId> {
        self.mark.as_ref().filter(|_| self.after >= target)
    }

    pub(crate) fn mark(&self) -> Option<&SnapshotId> {
        self.mark.as_ref()
    }

    pub(crate) fn has_open_calls(&self) -> bool {
        !self.open.is_empty()
    }

    pub(crate) fn has_open_calls_of(&self, origin: &Origin) -> bool {
        let end = Call::of(origin);
        self.open.iter().any(|open| open.is_same_conversation(&end))
    }

    /// The first call in a project that nobody knew.
    pub(crate) fn first(origin: &Origin) -> Marks {
        Marks { open: vec![Call::of(origin)], ..Marks::default() }
    }

    /// A call begins, and finds the project like this.
    pub(crate) fn begin(
        folder: &Folder,
        manager: &mut SnapshotManager,
        now: &Now,
        origin: &Origin,
    ) -> Result<Marks, CheckpointError> {
        let mut marks = Marks::load(folder)?;
        let call = Call::of(origin);
        // Calls of an earlier turn of this conversation are over, and whatever changed since they began is theirs.
        let was_open = marks.has_open_calls();
        marks.open.retain(|open| !(open.is_same_conversation(&call) && open.turn != call.turn));
        let whose = if was_open { Whose::Agents } else { Whose::Theirs };
        marks.attribute(folder, manager, now, whose)?;
        marks.open.retain(|open| *open != call);
        marks.open.push(call);
        Ok(marks)
    }

    /// A call ends, and leaves the project like this.
    pub(crate) fn end(
        folder: &Folder,
        manager: &mut SnapshotManager,
        now: &Now,
        origin: &Origin,
    ) -> Result<Marks, CheckpointError> {
        let mut marks = Marks::load(folder)?;
        let call = Call::of(origin);
        marks.attribute(folder, manager, now, Whose::Agents)?;
        marks.open.retain(|open| !open.ends_with(&call));
        Ok(marks)
    }

    /// What differs from the mark is somebody's.
    fn attribute(
        &self,
        folder: &Folder,
        manager: &SnapshotManager,
        now: &Now,
        whose: Whose,
    ) -> Result<(), CheckpointError> {
        let Some(mark) = &self.mark else { return Ok(()) };
        // One that was given up with an old checkpoint, or is damaged, tells nothing: no checkpoint must fail for it.
        let Ok(changes) = manager.changes_until(mark, now) else { return Ok(()) };
        if changes.is_empty() {
            return Ok(());
        }
        let mut theirs = Theirs::load(folder)?;
        let before = theirs.clone();
        theirs.take(&changes, whose);
        if theirs != before {
            theirs.save(folder)?;
        }
        Ok(())
    }

    /// The project is as in this numbered snapshot, which is the last one.
    pub(crate) fn set_number(mut self, folder: &Folder, number: u32) -> Result<(), CheckpointError> {
        self.mark = Some(SnapshotId::Number(number));
        self.after = number;
        self.save(folder)
    }

    /// The project is like this.
    pub(crate) fn set(
        mut self,
        folder: &Folder,
        manager: &mut SnapshotManager,
        now: Now,
    ) -> Result<(), CheckpointError> {
        let last = now.last();
        self.after = last;
        if self.mark.as_ref().is_some_and(|mark| manager.is_as_in(mark, &now)) {
            return self.save(folder);
        }
        if now.is_unchanged() {
            drop(now);
            return self.set_number(folder, last);
        }
        let manifest = manager.publish_aside(now, MARK)?;
        self.mark = Some(manifest.id);
        self.save(folder)?;
        if asides(manager, MARK)?.len() > OLD_MARKS { self.drop_old(manager) } else { Ok(()) }
    }

    /// Give up the marks before this one.
    pub(crate) fn drop_old(&self, manager: &mut SnapshotManager) -> Result<(), CheckpointError> {
        let mut old = asides(manager, MARK)?;
        old.retain(|id| Some(id) != self.mark.as_ref());
        if old.is_empty() { Ok(()) } else { Ok(manager.drop_asides(&old)?) }
    }
}
