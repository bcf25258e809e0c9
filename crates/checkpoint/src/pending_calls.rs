//! Attribution of changes to the agent or to others.
//!
//! The **mark** is the state of the project at the start or end of an agent's call. Differences from it when the next
//! call begins are attributed to others, and these paths are *theirs* until an agent writes them again. Differences
//! when a call ends are attributed to the agent. Changes by others during a call cannot be distinguished, and count as
//! the agent's: its damage is undone, and what a restore removes is stored in any case. A `.git` is attributed as a
//! whole.
//!
//! The changes of calls are recorded in [`crate::call_log`], with the marks around them, kept while undo needs them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nono_history::git_of;
use nono_snapshot::file::Sync;
use nono_snapshot::{Change, ContentHash, Now, SnapshotId, SnapshotManager};
use serde::{Deserialize, Serialize};

use crate::call_log::{self, CallRecord, TurnKey};
use crate::error::Result;
use crate::folder::Folder;
use crate::history::History;
use crate::json;
use crate::origin::Origin;

const MARKS: &str = "marks.json";
const THEIRS: &str = "theirs.json";
/// Name prefix of the snapshots of marks.
const MARK: &str = "mark";
/// Number of old marks that are removed at once, because each removal waits for the disk.
const OLD_MARKS: usize = 32;

/// A call that began and has not ended, or whose end was never reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PendingCall {
    #[serde(flatten)]
    turn: TurnKey,
    call: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// Reason of its checkpoint: `before terminal: rm -r src`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl PendingCall {
    fn of(origin: &Origin) -> PendingCall {
        let Origin { agent, session, turn, call, run, tool, .. } = origin.clone();
        PendingCall { turn: TurnKey { agent, session, turn, run }, call, tool, reason: None }
    }

    fn is_same_conversation(&self, other: &PendingCall) -> bool {
        (&self.turn.agent, &self.turn.session) == (&other.turn.agent, &other.turn.session)
    }

    /// Whether `end` ends this call. Not every agent names its calls.
    fn ends_with(&self, end: &PendingCall) -> bool {
        self.is_same_conversation(end) && (self.call == end.call || self.call.is_none() || end.call.is_none())
    }
}

/// Content of `marks.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PendingCalls {
    mark: Option<SnapshotId>,
    /// Number of the last numbered snapshot when the mark was set.
    after: u32,
    open: Vec<PendingCall>,
    /// Number of older marks needed to undo turns, at the last count.
    #[serde(default, skip_serializing_if = "is_zero")]
    kept: usize,
    /// Changes attributed to a call, until the mark after it is set.
    #[serde(skip)]
    done: Option<Box<CallChanges>>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct CallChanges {
    call: PendingCall,
    /// Number of concurrent calls, any of which may be the author.
    at_once: usize,
    from: SnapshotId,
    changes: Vec<Change>,
}

/// A path that others changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Their {
    #[serde(with = "nono_sys::path_serde")]
    pub(crate) path: PathBuf,
    /// Content that the agent had left.
    pub(crate) left: Option<ContentHash>,
}

/// Content of `theirs.json`: paths that others changed, with the content the agent had left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Theirs(BTreeMap<PathBuf, Option<ContentHash>>);

impl Theirs {
    pub(crate) fn load(folder: &Folder) -> Result<Theirs> {
        let all: Vec<Their> = json::load_or_default(&folder.file(THEIRS))?;
        Ok(Theirs(all.into_iter().map(|their| (their.path, their.left)).collect()))
    }

    pub(crate) fn save(&self, folder: &Folder) -> Result<()> {
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

    /// Attributes a path to others; the first content the agent had left is kept.
    pub(crate) fn add(&mut self, path: &Path, left: Option<ContentHash>) {
        self.0.entry(unit(path)).or_insert(left);
    }

    /// Attributes a path to others, with another base content.
    pub(crate) fn set(&mut self, path: &Path, left: Option<ContentHash>) {
        self.0.insert(unit(path), left);
    }

    /// Attributes a path to the agent or to nono.
    pub(crate) fn remove(&mut self, path: &Path) {
        self.0.remove(&unit(path));
    }

    pub(crate) fn take(&mut self, changes: &[Change], whose: Whose) {
        for change in changes {
            match whose {
                Whose::Theirs => self.add(&change.path, change.old.as_ref().and_then(|old| old.hash)),
                Whose::Agents => self.remove(&change.path),
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Theirs,
    Agents,
}

/// Unit of attribution: the path itself, or the `.git` that it is in.
fn unit(path: &Path) -> PathBuf {
    git_of(path).unwrap_or(path).to_owned()
}

/// Unnumbered snapshots whose names have this prefix.
pub(crate) fn asides(manager: &SnapshotManager, prefix: &str) -> Result<Vec<SnapshotId>> {
    let is_such = |id: &SnapshotId| match id {
        SnapshotId::Safety(name) => name.split('-').next() == Some(prefix),
        SnapshotId::Number(_) => false,
    };
    Ok(manager.snapshots()?.into_iter().filter(is_such).collect())
}

impl PendingCalls {
    /// Whether a project's folder has marks.
    pub(crate) fn are_in(dir: &Path) -> bool {
        dir.join(MARKS).is_file()
    }

    pub(crate) fn load(folder: &Folder) -> Result<PendingCalls> {
        json::load_or_default(&folder.file(MARKS))
    }

    fn save(&self, folder: &Folder) -> Result<()> {
        // Avoid a write if nothing changed.
        if folder.file(MARKS).is_file() && PendingCalls::load(folder)? == *self {
            return Ok(());
        }
        json::save(&folder.file(MARKS), self, Sync::No)
    }

    /// The mark, if it covers the time since snapshot `target`.
    pub(crate) fn since(&self, target: u32) -> Option<&SnapshotId> {
        self.mark.as_ref().filter(|_| self.after >= target)
    }

    pub(crate) fn mark(&self) -> Option<&SnapshotId> {
        self.mark.as_ref()
    }

    /// The mark, unless a call is under way: then differences from it are not settled.
    pub(crate) fn settled_mark(&self) -> Option<&SnapshotId> {
        self.mark.as_ref().filter(|_| !self.has_open_calls())
    }

    pub(crate) fn has_open_calls(&self) -> bool {
        !self.open.is_empty()
    }

    pub(crate) fn has_open_calls_of(&self, origin: &Origin) -> bool {
        let end = PendingCall::of(origin);
        self.open.iter().any(|open| open.is_same_conversation(&end))
    }

    /// Marks for the first call in a new project.
    pub(crate) fn first(origin: &Origin, reason: &str) -> PendingCalls {
        let call = PendingCall { reason: Some(crate::origin::bounded(reason)), ..PendingCall::of(origin) };
        PendingCalls { open: vec![call], ..PendingCalls::default() }
    }

    /// Begins a call with the project in this state. `reason`: of its checkpoint, if it needs one.
    pub(crate) fn begin(
        folder: &Folder,
        manager: &mut SnapshotManager,
        now: &Now,
        origin: &Origin,
        reason: Option<&str>,
    ) -> Result<PendingCalls> {
        let mut marks = PendingCalls::load(folder)?;
        let call = PendingCall { reason: reason.map(crate::origin::bounded), ..PendingCall::of(origin) };
        // Calls of an earlier turn of this conversation have ended; changes since are attributed to them.
        let last = marks.open.last().cloned();
        let at_once = marks.open.len();
        marks.open.retain(|open| !(open.is_same_conversation(&call) && open.turn.turn != call.turn.turn));
        let whose = if last.is_some() { Whose::Agents } else { Whose::Theirs };
        let changes = marks.attribute(folder, manager, now, whose)?;
        if let Some(last) = last {
            marks.note(last, at_once, changes);
        }
        marks.open.retain(|open| !(open.is_same_conversation(&call) && open.call == call.call));
        marks.open.push(call);
        Ok(marks)
    }

    /// Ends a call with the project in this state.
    pub(crate) fn end(
        folder: &Folder,
        manager: &mut SnapshotManager,
        now: &Now,
        origin: &Origin,
    ) -> Result<PendingCalls> {
        let mut marks = PendingCalls::load(folder)?;
        let call = PendingCall::of(origin);
        let changes = marks.attribute(folder, manager, now, Whose::Agents)?;
        let at_once = marks.open.len();
        // The end of a call whose beginning was not reported counts all the same.
        let ended = marks.open.iter().find(|open| open.ends_with(&call)).cloned();
        marks.note(ended.unwrap_or_else(|| call.clone()), at_once, changes);
        marks.open.retain(|open| !open.ends_with(&call));
        Ok(marks)
    }

    /// Keeps a call's changes until the mark after it is set.
    fn note(&mut self, call: PendingCall, at_once: usize, changes: Vec<Change>) {
        if let Some(from) = self.mark.clone().filter(|_| !changes.is_empty()) {
            self.done = Some(Box::new(CallChanges { call, at_once: at_once.max(1), from, changes }));
        }
    }

    /// Attributes the differences from the mark, and returns them.
    fn attribute(
        &self,
        folder: &Folder,
        manager: &SnapshotManager,
        now: &Now,
        whose: Whose,
    ) -> Result<Vec<Change>> {
        let Some(mark) = &self.mark else { return Ok(Vec::new()) };
        // A mark that is missing or damaged counts as no difference: no checkpoint must fail because of it.
        let Ok(changes) = manager.changes_until(mark, now) else { return Ok(Vec::new()) };
        if changes.is_empty() {
            return Ok(changes);
        }
        let mut theirs = Theirs::load(folder)?;
        let before = theirs.clone();
        theirs.take(&changes, whose);
        if theirs != before {
            theirs.save(folder)?;
        }
        Ok(changes)
    }

    /// Records a call's changes, once the state after it has a name, and saves the mark.
    fn finish(mut self, folder: &Folder) -> Result<PendingCalls> {
        if let (Some(done), Some(to)) = (self.done.take(), &self.mark) {
            let CallChanges { call, at_once, from, changes } = *done;
            let line =
                CallRecord::new(call.turn, call.tool, call.reason, at_once, (from, to.clone()), &changes);
            call_log::add(folder, &line)?;
        }
        self.save(folder)?;
        Ok(self)
    }

    /// Sets the mark to this numbered snapshot, which is the last one.
    pub(crate) fn set_number(mut self, folder: &Folder, number: u32) -> Result<()> {
        self.mark = Some(SnapshotId::Number(number));
        self.after = number;
        self.finish(folder).map(|_| ())
    }

    /// Sets the mark to this state.
    pub(crate) fn set(mut self, folder: &Folder, manager: &mut SnapshotManager, now: Now) -> Result<()> {
        let last = now.last();
        self.after = last;
        if self.mark.as_ref().is_some_and(|mark| manager.is_as_in(mark, &now)) {
            return self.finish(folder).map(|_| ());
        }
        if now.is_unchanged() {
            drop(now);
            return self.set_number(folder, last);
        }
        let manifest = manager.publish_aside(now, MARK)?;
        self.mark = Some(manifest.id);
        let marks = self.finish(folder)?;
        if asides(manager, MARK)?.len() > OLD_MARKS + marks.kept {
            let history = History::load(&folder.dir)?;
            marks.drop_old(folder, manager, &history)?;
        }
        Ok(())
    }

    /// Removes older marks that no turn needs, and work that is older than the history.
    pub(crate) fn drop_old(
        mut self,
        folder: &Folder,
        manager: &mut SnapshotManager,
        history: &History,
    ) -> Result<()> {
        let needed = call_log::compact(folder, history)?;
        let mut old = asides(manager, MARK)?;
        let all = old.len();
        old.retain(|id| Some(id) != self.mark.as_ref() && !needed.contains(id));
        self.kept = all - old.len();
        self.save(folder)?;
        if old.is_empty() { Ok(()) } else { Ok(manager.drop_asides(&old)?) }
    }
}
