//! Which checkpoints of a project go, so that never too many remain. Pure.
//!
//! Half of the places are for the newest, some for the last one of each hour before them, the rest for the last one of
//! each day before those. The choice is defined by replaying the history: one checkpoint after the other joins, and
//! whenever there is one too many, one goes. So it is the same whether it was made at every step or once at the end, what
//! was chosen once stays chosen whatever is taken later, and no clock is asked.

use nono_sys::time;

use crate::history::{Checkpoint, CheckpointId};

const HOUR: u64 = 3600;
const DAY: u64 = 86_400;

/// The checkpoints that go, of a history from the oldest to the newest: by its own order, not by what the clock said when
/// each was taken. Those with a name and those that are pinned are neither chosen nor counted; the newest one
/// stays whatever `max` says.
pub fn excess(checkpoints: &[Checkpoint], max: u32) -> Vec<CheckpointId> {
    let max = usize::try_from(max).unwrap_or(usize::MAX).max(1);
    let mut kept: Vec<Point<'_>> = Vec::new();
    let mut gone = Vec::new();
    for checkpoint in checkpoints {
        if !checkpoint.is_kept() {
            let run = checkpoint.origin.run.as_deref();
            kept.push(Point { id: &checkpoint.id, at: moment(checkpoint), run });
        }
        if kept.len() > max {
            let goes = of_the_same_run(&kept).unwrap_or_else(|| least_needed(&kept, max));
            gone.push(kept.remove(goes).id.clone());
        }
    }
    gone
}

/// What a sandboxed command has taken displaces what it took before, and never what was there before it: neither what
/// others took nor the first one of its run. The oldest one goes.
fn of_the_same_run(kept: &[Point<'_>]) -> Option<usize> {
    let (last, before) = kept.split_last()?;
    let run = last.run?;
    let same = |(at, point): (usize, &Point<'_>)| (point.run == Some(run)).then_some(at);
    before.iter().enumerate().filter_map(same).nth(1)
}

/// Seconds since 1970; what cannot be read is as old as can be.
pub(crate) fn moment(checkpoint: &Checkpoint) -> u64 {
    time::seconds(&checkpoint.time).unwrap_or(0)
}

impl Checkpoint {
    /// Somebody said that it is to stay.
    pub fn is_kept(&self) -> bool {
        self.pinned || self.name.is_some()
    }
}

#[derive(Debug)]
struct Point<'a> {
    id: &'a CheckpointId,
    at: u64,
    /// The sandbox it was asked for from.
    run: Option<&'a str>,
}

/// Of one more than there may be, from the oldest to the newest: the place of the one that goes.
fn least_needed(points: &[Point<'_>], max: usize) -> usize {
    let newest = max.div_ceil(2);
    let hourly = (max - newest) * 3 / 5;
    let older = &points[..points.len() - newest];
    // One that has a later one in its hour, the oldest of them.
    let same = |unit: u64, place: usize| points[place].at / unit == points[place + 1].at / unit;
    if let Some(place) = (0..older.len()).find(|place| same(HOUR, *place)) {
        return place;
    }
    // All of different hours: so many of them stay, and before them one of each day.
    let daily = older.len().saturating_sub(hourly);
    (0..daily).find(|place| same(DAY, *place)).unwrap_or(0)
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

    /// One every ten minutes for a fortnight: the newest ten, six hours before them, four days before those.
    #[test]
    fn hours_and_days_remain() {
        let step = 600;
        let all: Vec<Checkpoint> =
            (0..14 * 144).map(|n| checkpoint(n, 1_700_000_000 + u64::from(n) * step, false)).collect();
        let gone = excess(&all, 20);
        let left: Vec<u64> = all.iter().filter(|one| !gone.contains(&one.id)).map(moment).collect();
        assert_eq!(left.len(), 20);
        let (older, newest) = left.split_at(10);
        assert!(newest.windows(2).all(|two| two[1] - two[0] == step));
        let (days, hours) = older.split_at(4);
        assert!(hours.windows(2).all(|two| two[1] - two[0] == HOUR), "{hours:?}");
        let days: Vec<u64> = days.iter().map(|at| at / DAY).collect();
        assert!(days.windows(2).all(|two| two[1] == two[0] + 1), "{days:?}");
    }
}
