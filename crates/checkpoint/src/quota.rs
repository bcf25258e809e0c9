//! Choice of the checkpoints to remove to free space, planned before any removal.
//!
//! First the safety snapshots of older restores, then the oldest checkpoint of the project that has the most left, and
//! so on: one with few loses none while another has many. Never a project's newest, a named or a pinned one.

use std::collections::BTreeSet;
use std::path::Path;

use nono_history::quota::{self, Victims};
use nono_snapshot::store::Store;
use nono_snapshot::{Candidate, SnapshotError, SnapshotId};

use crate::error::{CheckpointError, Result};
use crate::history::{Checkpoint, CheckpointId};
use crate::manager::{CheckpointManager, Pruned};
use crate::prune::{Losses, Sweep, superseded};

/// Next candidate for removal.
#[derive(Debug)]
struct Victim {
    /// Index of its project among the losses.
    project: usize,
    /// Checkpoint to remove; `None` for the safety snapshots of older restores.
    checkpoint: Option<CheckpointId>,
    snapshots: BTreeSet<SnapshotId>,
}

/// Whether a partial result is acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreeingGoal {
    /// Free as much as possible.
    Far,
    /// Remove nothing unless it is enough.
    OrNothing,
}

impl CheckpointManager {
    /// Removes checkpoints until `needed` more bytes fit for one of `project`, or none: `false` if that is impossible.
    pub(crate) fn make_room(&self, project: &Path, needed: u64) -> Result<bool> {
        let max = self.retention().max_bytes;
        let Some(_one) = self.sweeping(true)? else { return Ok(false) };
        self.usage().count()?;
        let store = self.usage().open(max)?;
        let room = store.room().map_err(SnapshotError::from)?;
        if room >= needed {
            return Ok(true);
        }
        let mut sweep = self.everything()?;
        // A sandboxed command chooses how much it writes, so only its own project loses checkpoints for it.
        let confined = self.is_confined();
        let spares = |losses: &Losses, one: &Checkpoint| {
            losses.project.workdir != project && (confined || quota::is_recent(&one.time))
        };
        if !choose(&store, &mut sweep, needed - room, FreeingGoal::OrNothing, &spares)? {
            return Ok(false);
        }
        let mut pruned = Pruned::default();
        self.carry_out(sweep, &mut pruned);
        self.collect()?;
        self.usage().count()?;
        self.note_pruned(pruned);
        Ok(true)
    }
}

/// Adds removals until `missing` bytes are freed. Returns whether they are.
pub(crate) fn choose(
    store: &Store,
    sweep: &mut Sweep,
    missing: u64,
    reach: FreeingGoal,
    spares: &dyn Fn(&Losses, &Checkpoint) -> bool,
) -> Result<bool> {
    let victims = order(&sweep.losses, spares);
    let mut candidates = Vec::new();
    for victim in &victims {
        let Some(losses) = sweep.losses.get(victim.project) else { continue };
        let dir = losses.dir.canonicalize().map_err(CheckpointError::io(&losses.dir))?;
        candidates.push(Candidate { dir, snapshots: Some(victim.snapshots.clone()) });
    }
    let Victims { count, enough, .. } = quota::victims(store, going(&sweep.losses)?, candidates, missing)?;
    if enough || reach == FreeingGoal::Far {
        for victim in victims.into_iter().take(count) {
            let Some(losses) = sweep.losses.get_mut(victim.project) else { continue };
            match victim.checkpoint {
                Some(id) => drop(losses.gone.insert(id)),
                None => losses.restores = true,
            }
        }
    }
    Ok(enough)
}

/// Planned removals as candidates of the store.
pub(crate) fn going(losses: &[Losses]) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    for one in losses.iter().filter(|one| !one.is_empty()) {
        let dir = one.dir.canonicalize().map_err(CheckpointError::io(&one.dir))?;
        let snapshots = (!one.whole).then(|| one.snapshots());
        candidates.push(Candidate { dir, snapshots });
    }
    Ok(candidates)
}

fn order(losses: &[Losses], spares: &dyn Fn(&Losses, &Checkpoint) -> bool) -> Vec<Victim> {
    let mut victims = Vec::new();
    let mut queues = Vec::new();
    for (project, one) in losses.iter().enumerate().filter(|(_, one)| !one.whole) {
        let snapshots: BTreeSet<SnapshotId> = superseded(&one.dir).into_iter().collect();
        if !one.restores && !snapshots.is_empty() {
            victims.push(Victim { project, checkpoint: None, snapshots });
        }
        let left: Vec<&Checkpoint> =
            one.checkpoints.iter().filter(|line| !one.gone.contains(&line.id)).collect();
        let older = left.split_last().map(|(_, older)| older).unwrap_or_default();
        // Newest first; the oldest is taken from the end.
        let queue: Vec<&Checkpoint> =
            older.iter().rev().copied().filter(|line| !line.is_kept() && !spares(one, line)).collect();
        queues.push((project, left.len(), queue));
    }
    while let Some((project, left, queue)) = queues
        .iter_mut()
        .filter(|(_, _, queue)| !queue.is_empty())
        .max_by_key(|(project, left, _)| (*left, std::cmp::Reverse(*project)))
    {
        let Some(line) = queue.pop() else { break };
        *left -= 1;
        let snapshots = BTreeSet::from([line.snapshot_id()]);
        victims.push(Victim { project: *project, checkpoint: Some(line.id.clone()), snapshots });
    }
    victims
}
