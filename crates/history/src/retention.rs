//! Selection of the entries of a history to remove, so that no more than a given number remain. Pure functions.
//!
//! The selection is defined by replaying the history: entries are added one after the other, and whenever there is one
//! too many, one is removed. So the result is the same whether it is applied at every step or once at the end, a
//! removed entry stays removed whatever is added later, and no clock is read.

const HOUR: u64 = 3600;
const DAY: u64 = 86_400;

/// Entry of a history: a session or a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionCandidate<'a> {
    /// Seconds since 1970.
    pub at: u64,
    /// Sandboxed run that requested it.
    pub run: Option<&'a str>,
    /// Never removed, and not counted: pinned, named or in use.
    pub protected: bool,
}

/// Order of removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Remove the oldest: each entry is the way back from the next one.
    Newest,
    /// Thin out: half are the newest, some the last of each hour before them, the rest the last of each day before.
    Spread,
}

/// Indexes of the entries to remove from a history in its own order, oldest first, not by the recorded times.
pub fn excess(entries: &[RetentionCandidate<'_>], max: usize, keep: Keep) -> Vec<usize> {
    let mut kept: Vec<(usize, RetentionCandidate<'_>)> = Vec::new();
    let mut gone = Vec::new();
    for (place, entry) in entries.iter().enumerate().filter(|(_, entry)| !entry.protected) {
        kept.push((place, *entry));
        if kept.len() > max {
            let goes = match keep {
                Keep::Newest => 0,
                Keep::Spread => of_the_same_run(&kept).unwrap_or_else(|| least_needed(&kept, max)),
            };
            gone.push(kept.remove(goes).0);
        }
    }
    gone
}

/// Oldest entry but the first of the last one's sandboxed run: a command displaces only its own earlier entries.
fn of_the_same_run(kept: &[(usize, RetentionCandidate<'_>)]) -> Option<usize> {
    let ((_, last), before) = kept.split_last()?;
    let run = last.run?;
    let same =
        |(at, (_, entry)): (usize, &(usize, RetentionCandidate<'_>))| (entry.run == Some(run)).then_some(at);
    before.iter().enumerate().filter_map(same).nth(1)
}

/// Index of the entry to remove from one more than allowed, sorted from the oldest to the newest.
fn least_needed(entries: &[(usize, RetentionCandidate<'_>)], max: usize) -> usize {
    let newest = max.div_ceil(2);
    let hourly = (max - newest) * 3 / 5;
    let older = entries.len() - newest;
    // The oldest entry with a later one in the same hour.
    let at = |place: usize| entries.get(place).map(|(_, entry)| entry.at);
    let same = |unit: u64, place: usize| {
        at(place).zip(at(place + 1)).is_some_and(|(this, next)| this / unit == next / unit)
    };
    if let Some(place) = (0..older).find(|place| same(HOUR, *place)) {
        return place;
    }
    // All in different hours: keep `hourly` of them, and before those one of each day.
    let daily = older.saturating_sub(hourly);
    (0..daily).find(|place| same(DAY, *place)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(times: impl Iterator<Item = u64>) -> Vec<RetentionCandidate<'static>> {
        times.map(|at| RetentionCandidate { at, run: None, protected: false }).collect()
    }

    fn left(all: &[RetentionCandidate<'_>], max: usize, keep: Keep) -> Vec<u64> {
        let gone = excess(all, max, keep);
        let stays =
            |(place, entry): (usize, &RetentionCandidate<'_>)| (!gone.contains(&place)).then_some(entry.at);
        all.iter().enumerate().filter_map(stays).collect()
    }

    #[test]
    fn the_oldest_go_where_each_is_the_way_back_from_the_next() {
        // Independent of the recorded times.
        let all = entries([50, 10, 40, 20].into_iter());
        assert_eq!(left(&all, 2, Keep::Newest), [40, 20]);
        assert_eq!(left(&all, 9, Keep::Newest).len(), 4);
        assert!(left(&all, 0, Keep::Newest).is_empty());
        let all: Vec<_> =
            all.into_iter().map(|one| RetentionCandidate { protected: one.at == 50, ..one }).collect();
        assert_eq!(left(&all, 2, Keep::Newest), [50, 40, 20]);
        assert_eq!(left(&all, 0, Keep::Newest), [50]);
    }

    /// One every ten minutes for a fortnight: the newest ten, six hours before them, four days before those.
    #[test]
    fn hours_and_days_remain() {
        let step = 600;
        let all = entries((0..14 * 144).map(|n| 1_700_000_000 + n * step));
        let left = left(&all, 20, Keep::Spread);
        assert_eq!(left.len(), 20);
        let (older, newest) = left.split_at(10);
        assert!(newest.windows(2).all(|two| two[1] - two[0] == step));
        let (days, hours) = older.split_at(4);
        assert!(hours.windows(2).all(|two| two[1] - two[0] == HOUR), "{hours:?}");
        let days: Vec<u64> = days.iter().map(|at| at / DAY).collect();
        assert!(days.windows(2).all(|two| two[1] == two[0] + 1), "{days:?}");
    }

    #[test]
    fn a_sandbox_displaces_only_its_own() {
        let mut all = entries((0..4).map(|n| n * DAY));
        all.extend((4..9).map(|n| RetentionCandidate { at: n * DAY, run: Some("run"), protected: false }));
        assert_eq!(excess(&all, 6, Keep::Spread), [5, 6, 7]);
    }
}
