//! Sweeps: removal of checkpoints by number, by age, of orphans, and by size.
//!
//! The removals are planned first, from the histories and from what each snapshot alone references in the store, and
//! can be shown. Then each project is locked in turn and loses exactly that, unless it was used meanwhile. A project is
//! removed by one rename, so that it exists as a whole or not at all; an interrupted removal is finished by the next
//! sweep. Snapshots are removed from the record before the history, which is matched to the record anyway.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use nono_history::clock::{Clock, mark_sweep};
use nono_history::lock::Lock;
use nono_history::quota::disk_bytes;
use nono_history::{has_journal, removal};
use nono_snapshot::file;
use nono_snapshot::store::Store;
use nono_snapshot::{SnapshotError, SnapshotId, freed, gc_compact, shares};
use nono_sys::{fs, time};

use crate::error::{CheckpointError, Result};
use crate::folder::Folder;
use crate::history::{Checkpoint, CheckpointId, History};
use crate::legacy::Legacy;
use crate::manager::open::{Bounds, Open};
use crate::manager::{CheckpointManager, Pruned, Retention};
use crate::pending_calls::PendingCalls;
use crate::project::{Project, projects_dir};
use crate::quota::{FreeingGoal, choose, going};
use crate::restores::ProjectRestores;
use crate::retention::excess;

/// Lock file in `projects/`, held during a sweep.
const LOCK: &str = ".sweep";
/// File in the state folder with the time of the last sweep.
const MARKER: &str = ".last_prune";
const DAY: u64 = 86_400;
const HOUR: u64 = 3600;
/// Maximum number of rounds to bring the size under the quota.
const ROUNDS: usize = 4;

/// Planned removals of a project.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    pub(crate) dir: PathBuf,
    pub(crate) project: Project,
    /// Checkpoints to remove, oldest first.
    pub(crate) checkpoints: Vec<Checkpoint>,
    pub(crate) gone: BTreeSet<CheckpointId>,
    /// Snapshots that were removed from the history before.
    given_up: Vec<u32>,
    /// Whether the safety snapshots of all restores but the last are removed.
    pub(crate) restores: bool,
    pub(crate) whole: bool,
}

impl Losses {
    fn of(dir: &Path) -> Result<Option<Losses>> {
        let Some(project) = Project::load(dir)? else { return Ok(None) };
        let history = History::load(dir)?;
        Ok(Some(Losses {
            dir: dir.to_owned(),
            project,
            checkpoints: history.checkpoints,
            gone: BTreeSet::new(),
            given_up: history.given_up,
            restores: false,
            whole: false,
        }))
    }

    fn by_rule(&mut self, retention: &Retention, by: &Clock) {
        let age = by.age(time::seconds(&self.project.last_touch));
        let orphan = retention.delete_orphans && age >= by.orphans_since && self.project.is_orphan();
        let stale = retention.retention_days > 0 && age >= u64::from(retention.retention_days) * DAY;
        if orphan || stale {
            let free = self.checkpoints.iter().filter(|one| !one.is_kept());
            self.gone = free.map(|one| one.id.clone()).collect();
            self.whole = self.gone.len() == self.checkpoints.len();
            self.restores = true;
        } else {
            self.gone = excess(&self.checkpoints, retention.max_snapshots).into_iter().collect();
        }
    }

    /// Snapshots to remove.
    pub(crate) fn snapshots(&self) -> BTreeSet<SnapshotId> {
        let mut ids: BTreeSet<SnapshotId> = self.removed().iter().map(Checkpoint::snapshot_id).collect();
        ids.extend(self.given_up.iter().map(|number| SnapshotId::Number(*number)));
        if self.restores {
            ids.extend(superseded(&self.dir));
        }
        ids
    }

    fn removed(&self) -> Vec<Checkpoint> {
        self.checkpoints.iter().filter(|one| self.gone.contains(&one.id)).cloned().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.given_up.is_empty() && !self.whole && !self.restores
    }
}

/// Planned removals of all projects.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    pub(crate) losses: Vec<Losses>,
    legacy: Vec<Legacy>,
    problems: Vec<CheckpointError>,
}

impl CheckpointManager {
    /// Limits from the settings.
    pub fn retention(&self) -> Retention {
        let config = self.config();
        Retention {
            max_snapshots: config.max_snapshots,
            max_bytes: config.max_total_size_mb.saturating_mul(1 << 20),
            retention_days: config.retention_days,
            delete_orphans: config.delete_orphans,
        }
    }

    /// Sweeps all projects. In a dry run the sizes are estimates.
    pub fn prune(&self, retention: &Retention, dry_run: bool) -> Result<Pruned> {
        if !projects_dir(self.host()).is_dir() && self.legacy()?.is_empty() {
            return Ok(Pruned::default());
        }
        let _one = if dry_run { None } else { self.sweeping(true)? };
        self.sweep(retention, &Clock::asked(), dry_run, FreeingGoal::Far)
    }

    /// Sweeps automatically; `None` if it is not due, or if another process sweeps. A folder may have been deleted by
    /// mistake, so its checkpoints are kept for a day.
    pub fn auto_prune(&self) -> Result<Option<Pruned>> {
        let marker = self.host().state_dir.join(MARKER);
        let interval = u64::from(self.config().min_interval_hours) * HOUR;
        let clock = || Clock::automatic(&marker, interval, DAY);
        let nothing =
            || Ok::<_, CheckpointError>(self.project_dirs()?.is_empty() && self.legacy()?.is_empty());
        if !self.config().auto_prune || nothing()? || clock().is_none() {
            return Ok(None);
        }
        let Some(_one) = self.sweeping(false)? else { return Ok(None) };
        let Some(clock) = clock() else { return Ok(None) };
        let pruned = self.sweep(&self.retention(), &clock, false, FreeingGoal::OrNothing)?;
        mark_sweep(&marker).map_err(CheckpointError::io(&marker))?;
        Ok(Some(pruned))
    }

    /// Frees space if checkpoints exceed the quota, as after it was lowered.
    pub fn free_room(&self) -> Result<Option<Pruned>> {
        let retention = Retention { retention_days: 0, delete_orphans: false, ..self.retention() };
        let within = || self.usage().known().is_none_or(|taken| taken.bytes <= retention.max_bytes);
        if retention.max_bytes == 0 || within() {
            return Ok(None);
        }
        let Some(_one) = self.sweeping(false)? else { return Ok(None) };
        if self.usage().count()? <= retention.max_bytes {
            return Ok(None);
        }
        self.sweep(&retention, &Clock::asked(), false, FreeingGoal::OrNothing).map(Some)
    }

    /// Takes the sweep lock; `None` while another process has it, unless `wait` is set.
    pub(crate) fn sweeping(&self, wait: bool) -> Result<Option<Lock>> {
        let dir = projects_dir(self.host());
        file::make_dirs(&dir).map_err(CheckpointError::io(&dir))?;
        let path = dir.join(LOCK);
        Ok(if wait { Some(Lock::wait(&path)?) } else { Lock::attempt(&path)? })
    }

    fn sweep(
        &self,
        retention: &Retention,
        clock: &Clock,
        dry_run: bool,
        reach: FreeingGoal,
    ) -> Result<Pruned> {
        let mut pruned = Pruned::default();
        if !dry_run {
            self.finish_removals(&mut pruned);
            // What cannot be repaired is reported by the sweep itself.
            let _ = self.repair(false);
            pruned.problems.extend(self.migrate().err());
        }
        // Without an exact size nothing is removed by size.
        let before = self.count_or(&mut pruned);
        pruned.bytes_before = before.unwrap_or(0);
        pruned.bytes_after = pruned.bytes_before;
        for round in 0..ROUNDS {
            let mut sweep = self.by_rules(retention, clock)?;
            if before.is_some() {
                let after = self.by_size(&mut sweep, retention.max_bytes, reach);
                match after {
                    Ok(after) if dry_run => pruned.bytes_after = after.min(pruned.bytes_before),
                    Ok(_) => {}
                    Err(error) => sweep.problems.push(error),
                }
            }
            if round == 0 {
                pruned.problems.append(&mut sweep.problems);
            }
            let nothing = sweep.losses.iter().all(Losses::is_empty) && sweep.legacy.is_empty();
            let removed =
                if dry_run { foreseen(&sweep, &mut pruned) } else { self.carry_out(sweep, &mut pruned) };
            let over = |pruned: &Pruned| retention.max_bytes > 0 && pruned.bytes_after > retention.max_bytes;
            if !dry_run && (removed || (round == 0 && over(&pruned))) {
                pruned.problems.extend(self.collect().err());
                pruned.bytes_after = self.count_or(&mut pruned).unwrap_or(pruned.bytes_before);
            }
            pruned.over_budget = over(&pruned);
            if dry_run || !pruned.over_budget || (nothing && round > 0) {
                break;
            }
        }
        Ok(pruned)
    }

    fn count_or(&self, pruned: &mut Pruned) -> Option<u64> {
        match self.usage().count() {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                pruned.problems.push(error);
                None
            }
        }
    }

    /// Removals by number, by age, and of leftovers.
    fn by_rules(&self, retention: &Retention, clock: &Clock) -> Result<Sweep> {
        let mut sweep = self.everything()?;
        sweep.losses.iter_mut().for_each(|losses| losses.by_rule(retention, clock));
        let days = u64::from(retention.retention_days);
        let old = |since: u64| days > 0 && clock.age(Some(since)) >= days * DAY;
        sweep.legacy = self.legacy()?.into_iter().filter(|one| old(one.since)).collect();
        Ok(sweep)
    }

    /// Adds removals until everything fits, and returns the size that would be left.
    fn by_size(&self, sweep: &mut Sweep, max: u64, reach: FreeingGoal) -> Result<u64> {
        let left = self.left(sweep)?;
        if max == 0 || left <= max || !self.store_dir().is_dir() {
            return Ok(left);
        }
        let store = Store::open(&self.store_dir()).map_err(SnapshotError::from)?;
        // Garbage and planned removals are not in `left`.
        let freed = freed(&store, &going(&sweep.losses)?)?;
        let sure = freed.garbage.saturating_add(freed.each.iter().sum());
        choose(&store, sweep, (left - max).saturating_add(sure), reach, &|_, _| false)?;
        self.left(sweep)
    }

    /// All projects, without removals.
    pub(crate) fn everything(&self) -> Result<Sweep> {
        let mut sweep = Sweep::default();
        for dir in self.project_dirs()? {
            match Losses::of(&dir) {
                Ok(losses) => sweep.losses.extend(losses),
                // Unreadable projects are left alone.
                Err(error) => sweep.problems.push(error),
            }
        }
        sweep.losses.sort_by(|a, b| a.project.workdir.cmp(&b.project.workdir));
        Ok(sweep)
    }

    /// Size that would be left after the planned removals.
    fn left(&self, sweep: &Sweep) -> Result<u64> {
        let mut beside = disk_bytes(&projects_dir(self.host()))?;
        let mut gone: BTreeMap<PathBuf, BTreeSet<SnapshotId>> = BTreeMap::new();
        let mut whole: BTreeSet<PathBuf> = sweep.legacy.iter().map(|one| one.path.clone()).collect();
        for losses in &sweep.losses {
            let dir = losses.dir.canonicalize().map_err(CheckpointError::io(&losses.dir))?;
            if losses.whole {
                beside = beside.saturating_sub(disk_bytes(&dir)?);
                whole.insert(dir);
                continue;
            }
            gone.insert(dir, losses.snapshots());
        }
        let store = self.store_dir();
        if !store.is_dir() {
            return Ok(beside);
        }
        let store = Store::open(&store).map_err(SnapshotError::from)?;
        let goes = |dir: &Path, id: &SnapshotId| {
            whole.iter().any(|whole| dir.starts_with(whole))
                || gone.get(dir).is_some_and(|ids| ids.contains(id))
        };
        let shares = shares(&store, &self.usage().is_mine(), &goes)?;
        Ok(beside.saturating_add(shares.live))
    }

    /// Carries out the plan. Returns whether anything was removed.
    pub(crate) fn carry_out(&self, sweep: Sweep, pruned: &mut Pruned) -> bool {
        let mut any = false;
        for losses in sweep.losses.into_iter().filter(|losses| !losses.is_empty()) {
            match self.lose(&losses) {
                Ok(None) => {}
                Ok(Some(removed)) => {
                    any = true;
                    note(pruned, &losses, removed);
                }
                Err(error) => pruned.problems.push(error),
            }
        }
        for legacy in sweep.legacy {
            any = true;
            match fs::remove_tree(&legacy.path) {
                Ok(()) => pruned.legacy.push(legacy),
                Err(error) => pruned.problems.push(CheckpointError::io(legacy.path)(error)),
            }
        }
        any
    }

    /// Removes the planned checkpoints of one project, and returns them; `None` if it was used meanwhile.
    fn lose(&self, losses: &Losses) -> Result<Option<Vec<Checkpoint>>> {
        let Some(folder) = Folder::at(&losses.dir)? else { return Ok(None) };
        if folder.project.last_touch != losses.project.last_touch {
            return Ok(None);
        }
        // An interrupted restore still has to be completed.
        if losses.whole && !has_journal(&folder.dir) {
            let history = History::load(&folder.dir)?;
            if history.checkpoints.len() == losses.checkpoints.len() {
                remove(&folder)?;
                return Ok(Some(losses.removed()));
            }
        }
        let mut open = self.open_folder(folder, Bounds::None)?;
        let given_up = !open.history.given_up.is_empty();
        let removed = open.give_up(&losses.gone)?;
        let fewer = losses.restores && open.forget_restores()?;
        Ok((fewer || given_up || !removed.is_empty()).then_some(removed))
    }

    /// Finishes interrupted removals.
    fn finish_removals(&self, pruned: &mut Pruned) {
        let entries = crate::legacy::entries(&projects_dir(self.host()));
        let aside =
            |path: &PathBuf| path.file_name().is_some_and(|name| removal::is_aside(name.as_encoded_bytes()));
        for path in entries.unwrap_or_default().into_iter().filter(aside) {
            pruned.problems.extend(removal::remove_tree(&path).map_err(CheckpointError::from).err());
        }
    }

    /// Frees everything unreferenced in the store.
    pub(crate) fn collect(&self) -> Result<()> {
        Ok(removal::collect(&self.store_dir(), gc_compact)?)
    }
}

/// Removes a locked project.
pub(crate) fn remove(folder: &Folder) -> Result<()> {
    let name = folder.dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let owners = folder.dir.parent().unwrap_or(&folder.dir);
    if let Some(aside) = removal::set_aside(&folder.dir, owners, &format!("{name}-{}", time::now_ms()))? {
        removal::remove_tree(&aside)?;
    }
    Ok(())
}

/// Safety snapshots of all restores but the last.
pub(crate) fn superseded(dir: &Path) -> Vec<SnapshotId> {
    ProjectRestores::load(dir).unwrap_or_default().superseded()
}

fn note(pruned: &mut Pruned, losses: &Losses, removed: Vec<Checkpoint>) {
    let workdir = losses.project.workdir.clone();
    if losses.whole && !losses.dir.exists() {
        pruned.projects_removed.push(workdir.clone());
    }
    match pruned.removed.iter_mut().find(|(known, _)| *known == workdir) {
        Some((_, known)) => known.extend(removed),
        None if removed.is_empty() => {}
        None => pruned.removed.push((workdir, removed)),
    }
}

fn foreseen(sweep: &Sweep, pruned: &mut Pruned) -> bool {
    for losses in sweep.losses.iter().filter(|losses| !losses.is_empty()) {
        note(pruned, losses, losses.removed());
        if losses.whole {
            pruned.projects_removed.push(losses.project.workdir.clone());
        }
    }
    pruned.legacy.extend(sweep.legacy.iter().cloned());
    false
}

impl Open {
    /// Removes checkpoints that still exist, and snapshots dropped from the history before. Returns the removed ones.
    pub(crate) fn give_up(&mut self, ids: &BTreeSet<CheckpointId>) -> Result<Vec<Checkpoint>> {
        let goes = |line: &&Checkpoint| ids.contains(&line.id) && !line.is_kept();
        let gone: Vec<Checkpoint> = self.history.checkpoints.iter().filter(goes).cloned().collect();
        let mut numbers: Vec<u32> = gone.iter().map(|line| line.snapshot).collect();
        self.history.checkpoints.retain(|line| !numbers.contains(&line.snapshot));
        numbers.append(&mut self.history.given_up);
        if numbers.is_empty() {
            return Ok(gone);
        }
        self.manager.thin(&numbers)?;
        self.history.forget_turns();
        self.save_history()?;
        // Marks of removed turns are not needed any more.
        PendingCalls::load(&self.folder)?.drop_old(&self.folder, &mut self.manager, &self.history)?;
        Ok(gone)
    }

    /// Drops all restores but the last, which can no longer be undone. Returns whether anything was removed.
    fn forget_restores(&mut self) -> Result<bool> {
        let mut log = ProjectRestores::load_or_begin(&self.folder.dir)?;
        let gone = log.superseded();
        if gone.is_empty() {
            return Ok(false);
        }
        log.keep_last();
        log.save(&self.folder.dir, None)?;
        self.manager.drop_asides(&gone)?;
        Ok(true)
    }
}
