//! Restoring what a session changed: the session's side of a [`History`].
//!
//! A path is a conflict when it differs from what the session left there, and from what an earlier restore put there.
//! Conflicts are kept unless forced or merged; a restore prints the id that undoes it.

use std::path::{Path, PathBuf};

use nono_checkpoint::{CheckpointManager, Completed, Config, Host, RunGone};
use nono_history::lock::Lock;
use nono_history::{
    Begin, Edit, History, HistoryError, Labels, OwnerRules, SnapshotChoice, file_content, refuse_parts,
};
use nono_snapshot::SnapshotId;
use nono_snapshot::store::UpkeepPause;

pub use nono_history::{Conflicts, Done, Merge, Plan};

use super::catalogue::RollbackSession;
use super::changes::Item;
use super::error::RollbackError;
use super::live_lock::is_live;
use super::patch;
use crate::checkpoints;

/// Restores of a session; a session stores no details of its own about them.
pub(super) type SessionRestores = nono_history::RestoreHistory<()>;

/// Selection of what to restore.
#[derive(Clone, Debug)]
pub struct RestoreChoice {
    pub snapshot: SnapshotId,
    /// Absolute paths; a directory includes its content. Everything if empty, unless there are `hunks`: then only
    /// those.
    pub paths: Vec<PathBuf>,
    /// Paths to leave as they are.
    pub except: Vec<PathBuf>,
    /// Hunks to revert, by item: the item must be from the change set from `snapshot` to the session's last snapshot,
    /// hunk numbers are those of `file_diff(item, CONTEXT)`.
    pub hunks: Vec<(Item, Vec<usize>)>,
    pub conflicts: Conflicts,
}

/// Number of context lines that hunk numbers in a [`RestoreChoice`] refer to.
pub const CONTEXT: usize = 3;

impl RestoreChoice {
    /// Everything, to the baseline.
    pub fn everything() -> RestoreChoice {
        RestoreChoice {
            snapshot: SnapshotId::Number(0),
            paths: Vec::new(),
            except: Vec::new(),
            hunks: Vec::new(),
            conflicts: Conflicts::Keep,
        }
    }

    /// Refuse paths inside a repository: it is restored or kept as a whole.
    fn refuse_parts(&self) -> Result<(), RollbackError> {
        let hunks = self.hunks.iter().map(|(item, _)| &item.path);
        Ok(refuse_parts(self.paths.iter().chain(&self.except).chain(hunks))?)
    }
}

impl RollbackSession {
    /// Plan a restore. Nothing is changed, except that an interrupted restore is completed first.
    pub fn plan(&mut self, choice: &RestoreChoice) -> Result<Plan, RollbackError> {
        choice.refuse_parts()?;
        let _paused = self.ready(&choice.snapshot)?;
        let (wanted, rule) = (self.wanted(choice)?, self.rule(choice)?);
        let mut plan = self.history().plan::<()>(&wanted, &rule)?;
        plan.still_executes = self.still_executing(&choice.snapshot, &plan.kept)?;
        plan.may_be_others = self.entry.metadata.others.is_none() && !self.entry.foreign;
        Ok(plan)
    }

    /// Restore. Refused while a session is live on one of these roots.
    pub fn restore(&mut self, choice: &RestoreChoice) -> Result<Done, RollbackError> {
        choice.refuse_parts()?;
        let _paused = self.ready(&choice.snapshot)?;
        let done = self.recorded(self.chosen(choice), |session| session.put_back(choice))?;
        let whole = choice.paths.is_empty() && choice.except.is_empty() && choice.hunks.is_empty();
        let gone = whole && choice.snapshot == SnapshotId::Number(0);
        Ok(self.tell_projects(done, gone.then_some(false)))
    }

    /// Inform the checkpoints of projects in the same folders that these changes are a restore, not the user's.
    /// `came_back`: all of the run's work was removed (false) or brought back (true).
    pub(super) fn tell_projects(&self, mut done: Done, came_back: Option<bool>) -> Done {
        let host = Host { state_dir: self.catalogue.state_dir.clone(), home: PathBuf::new() };
        let gone = came_back.map(|came_back| RunGone { run: &self.entry.id, came_back });
        let mut manager = CheckpointManager::new(host, Config::default());
        if let Some(author) = &self.catalogue.author {
            manager = checkpoints::recording(manager, author.clone());
        }
        let told = manager.restored_beside(&done.changes, gone);
        let note = |error| format!("checkpoints may treat this restore as your own change: {error}");
        done.notes.extend(told.err().map(note));
        let completed = manager.take_completed().into_iter().filter(|completed| !completed.done.interrupted);
        let note = |completed: Completed| {
            format!("completed an interrupted restore of {}", completed.project.display())
        };
        done.notes.extend(completed.map(note));
        done
    }

    fn put_back(&mut self, choice: &RestoreChoice) -> Result<Done, RollbackError> {
        let _lock = self.lock()?;
        let (wanted, rule) = (self.wanted(choice)?, self.rule(choice)?);
        let begin = self.begin()?;
        let mut history = self.history();
        let prepared = history.prepare(&wanted, &rule)?;
        let (mut under, mut done) = history.restore(&wanted, &rule, prepared, begin)?;
        history.finish(&mut under, &mut done)?;
        self.warn(&choice.snapshot, &mut done);
        Ok(done)
    }

    pub(super) fn history(&mut self) -> History<'_> {
        History::new(&self.entry.dir, &mut self.manager)
    }

    /// Header of the next log entry.
    pub(super) fn begin(&self) -> Result<Begin<()>, RollbackError> {
        let sequence = self.catalogue.next_sequence()?;
        Ok(Begin { prefix: self.entry.id.clone(), sequence, details: None })
    }

    /// The selection, with the resulting content of files whose hunks are reverted.
    fn wanted(&self, choice: &RestoreChoice) -> Result<SnapshotChoice, RollbackError> {
        let mut edits = Vec::new();
        for (item, hunks) in &choice.hunks {
            let left = file_content(item.new.as_ref());
            let bytes = match left {
                Some(_) => patch::without_hunks(&self.manager, item, CONTEXT, hunks)?,
                None => Vec::new(),
            };
            edits.push(Edit { path: item.path.clone(), left, bytes });
        }
        Ok(SnapshotChoice {
            target: choice.snapshot.clone(),
            paths: choice.paths.clone(),
            except: choice.except.clone(),
            edits,
            conflicts: choice.conflicts,
        })
    }

    /// Rule that tells the session's changes from later ones: its final snapshot, and the targets of restores.
    fn rule(&mut self, choice: &RestoreChoice) -> Result<OwnerRules, RollbackError> {
        let left = self.final_snapshot()?;
        let targets = self.history().targets::<()>()?;
        let since = left.clone().map(|left| {
            let mut since = vec![left];
            since.extend(targets);
            since.dedup();
            since
        });
        let target = format!("snapshot {}", choice.snapshot);
        let labels = Labels { base: "what the session left".to_owned(), target };
        let others =
            self.entry.metadata.others.iter().flatten().map(|other| (other.path.clone(), other.left));
        Ok(OwnerRules { since, left, others: others.collect(), labels, ..OwnerRules::default() })
    }

    /// Report kept files that run later. If that fails, the restore is still reported.
    fn warn(&self, target: &SnapshotId, done: &mut Done) {
        match self.still_executing(target, &done.kept) {
            Ok(still) => done.still_executes = still,
            Err(error) => {
                let what = format!("cannot check whether kept files run later: {error}");
                done.failed.push((self.entry.dir.clone(), what));
            }
        }
    }

    /// Before any restore: no session is live on these roots, no restore is incomplete, and upkeep stays away.
    pub(super) fn ready(&mut self, target: &SnapshotId) -> Result<UpkeepPause, RollbackError> {
        self.refuse_live()?;
        let paused = self.manager.make_room_to_restore()?;
        self.recovered = self.recover()?;
        let known = self.record()?.find(target).is_some();
        let missing = || RollbackError::NoSnapshot { id: self.entry.id.clone(), snapshot: target.clone() };
        if known { Ok(paused) } else { Err(missing()) }
    }

    pub(super) fn refuse_live(&self) -> Result<(), RollbackError> {
        let roots = self.manager.roots();
        if !self.running && is_live(&self.entry.dir) {
            let root = roots.first().cloned().unwrap_or_default();
            return Err(RollbackError::Live { id: self.entry.id.clone(), root });
        }
        match self.catalogue.live_on(roots, self.running.then_some(&*self.entry.dir))? {
            Some((id, root)) => Err(RollbackError::Live { id, root }),
            None => Ok(()),
        }
    }

    /// Final snapshot, if it was taken. A run records which one it is; for a foreign session it is the last one, if the
    /// description has its root.
    pub fn final_snapshot(&self) -> Result<Option<SnapshotId>, RollbackError> {
        let record = self.record()?;
        let metadata = &self.entry.metadata;
        let last = if self.entry.foreign { record.last_number() } else { metadata.final_snapshot };
        let Some(last) = last.filter(|_| metadata.ended.is_some()) else { return Ok(None) };
        let id = SnapshotId::Number(last);
        let root = record.find(&id).map(|recorded| recorded.merkle_root);
        let named = usize::try_from(last).ok().and_then(|last| metadata.merkle_roots.get(last)).copied();
        let is_it = named.is_some() && named == root;
        // An unreadable one, as after a power loss, is ignored; restores work without it.
        Ok((is_it && self.manager.can_compare(&id)).then_some(id))
    }

    /// Take the lock: one restore of a session at a time.
    pub(super) fn lock(&self) -> Result<Lock, RollbackError> {
        let lock = Lock::take(&self.entry.dir)?;
        // Checked with the lock held: a session that begins now sees the lock, and one that began before is seen here.
        self.refuse_live()?;
        self.catalogue.refuse_restoring(self.manager.roots(), &self.entry.dir)?;
        Ok(lock)
    }

    /// Map an error of the history to the session's own error.
    pub(super) fn said(&self, error: HistoryError) -> RollbackError {
        match error {
            HistoryError::NothingToUndo => RollbackError::NothingToUndo { id: self.entry.id.clone() },
            other => other.into(),
        }
    }
}

/// Whether a killed capture of this session left permissions changed: it makes files readable that their owner cannot
/// read.
pub(super) fn left_open(session: &Path) -> bool {
    session.join("unlocked").symlink_metadata().is_ok()
}
