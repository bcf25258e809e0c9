//! Choice of the checkpoints of a project to remove, so that at most a given number stays. Pure.

use nono_history::retention::{self, Keep, RetentionCandidate};
use nono_sys::time;

use crate::history::{Checkpoint, CheckpointId};

/// Checkpoints to remove of a history, oldest first; neither named and pinned ones, which do not count, nor the newest.
pub fn excess<'a>(checkpoints: &'a [Checkpoint], max: u32) -> Vec<CheckpointId> {
    let max = usize::try_from(max).unwrap_or(usize::MAX).max(1);
    let entry = |one: &'a Checkpoint| RetentionCandidate {
        at: moment(one),
        run: one.origin.run.as_deref(),
        protected: one.is_kept(),
    };
    let gone = retention::excess(&checkpoints.iter().map(entry).collect::<Vec<_>>(), max, Keep::Spread);
    gone.into_iter().filter_map(|place| checkpoints.get(place)).map(|one| one.id.clone()).collect()
}

/// Time in seconds since 1970; an unreadable one counts as the oldest.
pub(crate) fn moment(checkpoint: &Checkpoint) -> u64 {
    time::seconds(&checkpoint.time).unwrap_or(0)
}

impl Checkpoint {
    /// Whether it is named or pinned, and so protected from pruning.
    pub fn is_kept(&self) -> bool {
        self.pinned || self.name.is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::origin::Origin;

    fn checkpoint(number: u32, at: u64, kept: bool) -> Checkpoint {
        Checkpoint {
            id: CheckpointId(format!("a{number:011x}")),
            snapshot: number,
            time: time::iso_ms(at * 1000),
            reason: String::new(),
            origin: Origin::default(),
            name: None,
            pinned: kept,
            imported_from: None,
            begun: None,
            files: 0,
            left_out: 0,
            stats: None,
        }
    }

    /// Checkpoints in the order they were taken, the times some seconds apart.
    fn history() -> impl Strategy<Value = Vec<Checkpoint>> {
        let gap = prop_oneof![0u64..90, 600u64..5000, 20_000u64..200_000];
        proptest::collection::vec((gap, proptest::bool::weighted(0.1)), 1..80).prop_map(|steps| {
            let mut at = 1_700_000_000;
            let number = |(number, (gap, kept)): (usize, (u64, bool))| {
                at += gap;
                checkpoint(u32::try_from(number).unwrap(), at, kept)
            };
            steps.into_iter().enumerate().map(number).collect()
        })
    }

    proptest! {
        #[test]
        fn never_too_many_never_the_newest_never_what_is_kept(all in history(), max in 0u32..30) {
            let gone = excess(&all, max);
            let free: Vec<&Checkpoint> = all.iter().filter(|one| !one.is_kept()).collect();
            prop_assert_eq!(free.len() - gone.len(), free.len().min(max.max(1) as usize));
            prop_assert!(free.iter().filter(|one| gone.contains(&one.id)).count() == gone.len());
            prop_assert!(free.last().is_none_or(|newest| !gone.contains(&newest.id)));
        }

        #[test]
        fn what_was_chosen_stays_chosen(all in history(), max in 1u32..30, at in 0usize..80) {
            let before = excess(&all[..at.min(all.len())], max);
            let after = excess(&all, max);
            prop_assert!(before.iter().all(|id| after.contains(id)));
        }

        #[test]
        fn step_by_step_is_the_same_as_at_once(all in history(), max in 1u32..30) {
            let mut left: Vec<Checkpoint> = Vec::new();
            for checkpoint in &all {
                left.push(checkpoint.clone());
                let gone = excess(&left, max);
                left.retain(|one| !gone.contains(&one.id));
            }
            let gone = excess(&all, max);
            let at_once: Vec<Checkpoint> = all.into_iter().filter(|one| !gone.contains(&one.id)).collect();
            prop_assert_eq!(left, at_once);
        }
    }
}
