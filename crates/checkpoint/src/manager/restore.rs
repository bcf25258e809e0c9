//! Going back to a checkpoint.
//!
//! Plan, then restore: the first plan tells which repositories would be touched, which of somebody else's changes are in
//! the way, and what an imported checkpoint does not know; these stay as they are. The restore itself is the engine's, with
//! its safety snapshot and its journal.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nono_snapshot::restore::{ActionKind, RestorePlan, Skipped, Why};
use nono_snapshot::{Changes, Lost, RestoreOptions, Restored, SnapshotId};

use super::merging::Merging;
use super::open::{Bounds, Open};
use super::{CheckpointManager, Choice, Conflicts, Outcome, Plan, Target};
use crate::error::CheckpointError;
use crate::history::{Checkpoint, TurnLink};
use crate::marks::{Marks, Their, Theirs, git_of};
use crate::project;
use crate::restores::{Restore, Scope, one_by_one};

/// What is to be done, and what not.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) line: Checkpoint,
    pub(super) options: RestoreOptions,
    pub(super) changes: Changes,
    pub(super) kept: Vec<Skipped>,
    lost: Vec<Lost>,
    pub(super) merging: Merging,
    /// Changed by somebody else, and restored all the same.
    forced: Vec<PathBuf>,
    turns: Vec<TurnLink>,
    unattributed: bool,
    repositories: Vec<PathBuf>,
}

impl CheckpointManager {
    /// What a restore would do; nothing is touched.
    pub fn plan(&mut self, dir: &Path, target: &Target, choice: &Choice) -> Result<Plan, CheckpointError> {
        let mut open = self.open(dir, Bounds::None)?;
        let line = self.find_in(&open, target)?;
        let prepared = open.prepare(line, choice)?;
        let kept = prepared.merging.without_merged(prepared.kept);
        Ok(Plan {
            project: open.workdir().to_owned(),
            changes: prepared.changes,
            kept,
            merges: prepared.merging.paths(),
            turns_undone: names(&prepared.turns),
            unattributed: prepared.unattributed,
            repositories: prepared.repositories,
            not_covered: prepared.line.left_out,
            lost: prepared.lost,
        })
    }

    /// Put a checkpoint back. What is there now is captured first: [`CheckpointManager::undo`] goes back to that.
    pub fn restore(
        &mut self,
        dir: &Path,
        target: &Target,
        choice: &Choice,
    ) -> Result<Outcome, CheckpointError> {
        let mut open = self.open(dir, Bounds::None)?;
        let line = self.find_in(&open, target)?;
        let prepared = open.prepare(line, choice)?;
        let restore = self.begin(&open, &prepared)?;
        let restored = open.carry_out(&prepared.line.snapshot_id(), &prepared.options)?;
        let (restored, merged) = open.merge(restored, &prepared)?;
        let mut outcome = outcome(&open, &prepared, restored, merged);
        open.complete(restore, &mut outcome)?;
        self.tell(&open, &outcome, &prepared.turns);
        Ok(outcome)
    }

    /// Write down what is about to be done.
    fn begin(&self, open: &Open, prepared: &Prepared) -> Result<Restore, CheckpointError> {
        let marks = Marks::load(&open.folder)?;
        let restore = Restore {
            id: random_id()?,
            time: nono_sys::time::now_iso(),
            checkpoint: prepared.line.clone(),
            who: self.who.clone(),
            safety: None,
            made: vec![prepared.line.snapshot_id()],
            scope: Scope {
                paths: one_by_one(&prepared.options.paths),
                except: one_by_one(&prepared.options.except),
            },
            forced: open.whose(prepared)?,
            merged: one_by_one(&prepared.merging.paths()),
            turns: prepared.turns.clone(),
            marked: marks.since(prepared.line.snapshot).is_some(),
            recorded: open.record()?.snapshots.len(),
            undone: false,
            undoes: None,
        };
        restore.begin(&open.folder)?;
        Ok(restore)
    }
}

impl Open {
    /// What going back to a checkpoint comes to.
    pub(super) fn prepare(&mut self, line: Checkpoint, choice: &Choice) -> Result<Prepared, CheckpointError> {
        let target = line.snapshot_id();
        let paths = self.chosen(&choice.paths)?;
        let marks = Marks::load(&self.folder)?;
        let force = choice.conflicts == Conflicts::Force;
        // What is there of the mark; it may have gone with an old checkpoint.
        let record = self.record()?;
        let mark = marks.since(line.snapshot);
        let mark = mark.filter(|id| record.find(id).is_some_and(|recorded| !recorded.thinned));
        // One that was lost with the power tells nothing, and stops nothing.
        let mark = mark.filter(|id| self.manager.can_compare(id));
        let theirs = if mark.is_some() { Theirs::load(&self.folder)? } else { Theirs::default() };
        let attributed = mark.is_some() && !marks.has_open_calls();
        let since: Vec<SnapshotId> = mark.filter(|_| attributed).cloned().into_iter().collect();
        let mut options = RestoreOptions { paths, except: Vec::new(), keep_changed_since: since, force };
        let first = self.manager.plan_restore(&target, &options)?;
        let mut kept = Vec::new();
        let mut left_alone = Vec::new();
        if !choice.with_git {
            let repositories = repositories(&first, &options.paths);
            kept.extend(repositories.told);
            left_alone.extend(repositories.there.iter().cloned());
            options.except.extend(repositories.there);
        }
        let changed: BTreeSet<PathBuf> = first.changes().iter().map(|change| change.path).collect();
        if line.imported_from.is_some() {
            let removed = removed(&first);
            self.only_contents(&mut options, &changed, &removed);
        }
        let mut in_the_way = Vec::new();
        for path in theirs.paths().filter(|path| changed.iter().any(|changed| changed.starts_with(path))) {
            // A folder that is one in the checkpoint, too: what is in it decides.
            if !(path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) && self.is_dir_in(&target, path)?) {
                in_the_way.push(path.clone());
            }
        }
        let mut forced = Vec::new();
        if force {
            forced = in_the_way;
            forced.extend(self.conflicts(&target, &options, mark)?);
        } else {
            let conflict = |path: &PathBuf| Skipped { path: path.clone(), why: Why::ChangedSince };
            let git = |path: &PathBuf| !choice.with_git && git_of(path).is_some();
            kept.extend(in_the_way.iter().filter(|path| !git(path)).map(conflict));
            options.except.extend(in_the_way);
        }
        options.except.sort();
        options.except.dedup();
        let plan = self.manager.plan_restore(&target, &options)?;
        kept.extend_from_slice(plan.skipped());
        kept.sort_by(|a, b| a.path.cmp(&b.path));
        kept.dedup();
        let merging = match choice.conflicts {
            Conflicts::Merge { markers } => self.merging(&line, mark, &theirs, &kept, markers)?,
            _ => Merging::default(),
        };
        // A part of the project is no turn, and where nothing goes back none is undone.
        let whole = choice.paths.is_empty() && !plan.changes().is_empty();
        let turns = self.history.turns_after(&line).filter(|_| whole).cloned().collect();
        Ok(Prepared {
            options,
            changes: plan.changes(),
            kept,
            lost: plan.lost().to_vec(),
            merging,
            forced,
            turns,
            unattributed: !attributed,
            repositories: left_alone,
            line,
        })
    }

    /// Of a checkpoint of another tool: contents, links and modes. What else it has was made up when it was imported, and
    /// what it does not hold is not known to it.
    fn only_contents(&self, options: &mut RestoreOptions, changed: &BTreeSet<PathBuf>, removed: &[PathBuf]) {
        options.except.extend(removed.iter().cloned());
        let kept = changed.iter().filter(|path| !removed.contains(path));
        options.paths = kept.map(|path| first_missing(path, self.workdir())).collect();
        options.paths.dedup();
        if options.paths.is_empty() {
            // No path would mean all of them.
            options.except.push(self.workdir().to_owned());
        }
    }

    fn is_dir_in(&self, target: &SnapshotId, path: &Path) -> Result<bool, CheckpointError> {
        Ok(self.manager.entry(target, path)?.is_some_and(|entry| entry.is_dir()))
    }

    /// What would be kept if it were not forced.
    fn conflicts(
        &mut self,
        target: &SnapshotId,
        options: &RestoreOptions,
        mark: Option<&SnapshotId>,
    ) -> Result<Vec<PathBuf>, CheckpointError> {
        let Some(mark) = mark.filter(|_| !options.keep_changed_since.is_empty()) else {
            return Ok(Vec::new());
        };
        let kept = RestoreOptions { keep_changed_since: vec![mark.clone()], force: false, ..options.clone() };
        let plan = self.manager.plan_restore(target, &kept)?;
        let skipped = plan.skipped().iter().filter(|skipped| skipped.why == Why::ChangedSince);
        Ok(skipped.map(|skipped| skipped.path.clone()).collect())
    }

    /// What a restore takes from somebody else, with what the agent had left there.
    fn whose(&self, prepared: &Prepared) -> Result<Vec<Their>, CheckpointError> {
        let theirs = Theirs::load(&self.folder)?;
        let marks = Marks::load(&self.folder)?;
        let mut all = Vec::new();
        for path in prepared.forced.iter().cloned().chain(prepared.merging.paths()) {
            let left = match theirs.left(&path) {
                Some(left) => Some(left),
                None => self.content_at(marks.since(prepared.line.snapshot), &path)?,
            };
            all.push(Their { path, left });
        }
        Ok(all)
    }

    /// Absolute paths below the project, without links on the way.
    fn chosen(&self, paths: &[PathBuf]) -> Result<Vec<PathBuf>, CheckpointError> {
        let mut chosen = Vec::new();
        for path in paths {
            let place = project::place(path)?;
            if !place.starts_with(self.workdir()) {
                let project = self.workdir().to_owned();
                return Err(CheckpointError::Outside { path: path.clone(), project });
            }
            if let Some(git) = nono_snapshot::repository_of(&place) {
                return Err(CheckpointError::PartOfRepository { path: place, git });
            }
            chosen.push(place);
        }
        // The project itself is everything in it.
        if chosen.iter().any(|path| path == self.workdir()) {
            chosen.clear();
        }
        Ok(chosen)
    }

    /// The engine's part. What could not begin is not under way.
    pub(super) fn carry_out(
        &mut self,
        target: &SnapshotId,
        options: &RestoreOptions,
    ) -> Result<Restored, CheckpointError> {
        let restored = self.manager.restore(target, options);
        if restored.is_err() && !self.folder.file(JOURNAL).exists() {
            Restore::over(&self.folder)?;
        }
        Ok(restored?)
    }
}

/// The engine's, while a restore is not complete.
pub(super) const JOURNAL: &str = "restore.journal";

/// Repositories that are there.
struct Repositories {
    there: BTreeSet<PathBuf>,
    /// Those of them that somebody asked for, or that the checkpoint does not know.
    told: Vec<Skipped>,
}

/// The repositories that a plan would touch and that are there. One that is gone is restored with the rest.
fn repositories(plan: &RestorePlan, chosen: &[PathBuf]) -> Repositories {
    let mut there = BTreeSet::new();
    let mut fresh = BTreeSet::new();
    for action in plan.actions() {
        let Some(git) = git_of(&action.path).filter(|git| git.symlink_metadata().is_ok()) else { continue };
        there.insert(git.to_owned());
        if action.path == git && is_removal(action.kind) {
            fresh.insert(git.to_owned());
        }
    }
    let skipped = plan.skipped().iter().filter_map(|skipped| git_of(&skipped.path));
    there.extend(skipped.filter(|git| git.symlink_metadata().is_ok()).map(Path::to_owned));
    let asked = chosen.iter().filter(|path| git_of(path).is_some_and(|git| there.contains(git)));
    let told = asked.chain(&fresh).map(|path| Skipped { path: path.clone(), why: Why::Repository });
    Repositories { told: told.collect(), there }
}

fn is_removal(kind: ActionKind) -> bool {
    matches!(kind, ActionKind::Delete | ActionKind::RemoveDirectory)
}

/// The folder that has to be made for a path, so that an undo removes it too; the path itself where there is none.
fn first_missing(path: &Path, workdir: &Path) -> PathBuf {
    let above = path.ancestors().take_while(|above| *above != workdir);
    above.filter(|above| above.symlink_metadata().is_err()).last().unwrap_or(path).to_owned()
}

/// What a plan would remove.
fn removed(plan: &RestorePlan) -> Vec<PathBuf> {
    plan.actions().filter(|action| is_removal(action.kind)).map(|action| action.path).collect()
}

pub(super) fn names(turns: &[TurnLink]) -> Vec<String> {
    turns.iter().map(|link| link.turn.clone()).collect()
}

fn outcome(open: &Open, prepared: &Prepared, restored: Restored, merged: Vec<PathBuf>) -> Outcome {
    let mut outcome = Outcome {
        project: open.workdir().to_owned(),
        checkpoint: prepared.line.clone(),
        changes: Changes::default(),
        kept: prepared.merging.kept_after(&prepared.kept, &merged),
        failed: Vec::new(),
        lost: Vec::new(),
        merged,
        turns_undone: names(&prepared.turns),
        unattributed: prepared.unattributed,
        repositories: prepared.repositories.clone(),
        undo: String::new(),
        safety: Some(restored.safety.clone()),
        interrupted: false,
    };
    outcome.absorb(restored);
    outcome
}

impl Outcome {
    /// Everything is as it was: nothing was kept, lost or failed.
    pub fn is_whole(&self) -> bool {
        self.kept.is_empty() && self.lost.is_empty() && self.failed.is_empty() && !self.interrupted
    }

    pub(super) fn absorb(&mut self, restored: Restored) {
        let done = restored.outcome;
        self.interrupted |= done.cancelled;
        let news = done.lost.into_iter().filter(|lost| !self.lost.iter().any(|one| one.path == lost.path));
        let news: Vec<Lost> = news.collect();
        self.lost.extend(news);
        self.changes.extend(done.changes);
        let news = done.skipped.into_iter().filter(|skipped| !self.merged.contains(&skipped.path));
        self.kept.extend(news);
        self.kept.sort_by(|a, b| a.path.cmp(&b.path));
        self.kept.dedup();
        self.failed.extend(done.failed.into_iter().map(|failed| (failed.path, failed.error.to_string())));
    }
}

pub(super) fn random_id() -> Result<String, CheckpointError> {
    let mut bytes = [0; 6];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| CheckpointError::io("/dev/urandom")(errno.into()))?;
    Ok(project::hex(&bytes))
}
