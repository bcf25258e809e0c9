//! Which entries of a history go, so that never too many remain. Pure.
//!
//! The choice is defined by replaying the history: one entry after the other joins, and whenever there is one too many, one
//! goes. So it is the same whether it was made at every step or once at the end, what was chosen once stays chosen whatever
//! is taken later, and no clock is asked.

const HOUR: u64 = 3600;
const DAY: u64 = 86_400;

/// Entry that may go: a session, or a checkpoint. What is pinned or has a name is not among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Seconds since 1970.
    pub at: u64,
    /// Sandbox it was asked for from.
    pub run: Option<&'a str>,
}

/// Which of too many entries goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The oldest: each entry is the way back from the next one.
    Newest,
    /// One that others stand for: half of the places are for the newest, some for the last one of each hour before them,
    /// the rest for the last one of each day before those.
    Spread,
}

/// Places of the entries that go, of a history from the oldest to the newest: by its own order, not by what the clock said
/// when each was taken.
pub fn excess(entries: &[Entry<'_>], max: usize, keep: Keep) -> Vec<usize> {
    let mut kept: Vec<(usize, Entry<'_>)> = Vec::new();
    let mut gone = Vec::new();
    for (place, entry) in entries.iter().enumerate() {
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

/// What a sandboxed command has taken displaces what it took before, and never what was there before it: neither what
/// others took nor the first one of its run. The oldest one goes.
fn of_the_same_run(kept: &[(usize, Entry<'_>)]) -> Option<usize> {
    let ((_, last), before) = kept.split_last()?;
    let run = last.run?;
    let same = |(at, (_, entry)): (usize, &(usize, Entry<'_>))| (entry.run == Some(run)).then_some(at);
    before.iter().enumerate().filter_map(same).nth(1)
}

/// Of one more than there may be, from the oldest to the newest: the place of the one that goes.
fn least_needed(entries: &[(usize, Entry<'_>)], max: usize) -> usize {
    let newest = max.div_ceil(2);
    let hourly = (max - newest) * 3 / 5;
    let older = entries.len() - newest;
    // One that has a later one in its hour, the oldest of them.
    let at = |place: usize| entries.get(place).map(|(_, entry)| entry.at);
    let same = |unit: u64, place: usize| {
        at(place).zip(at(place + 1)).is_some_and(|(this, next)| this / unit == next / unit)
    };
    if let Some(place) = (0..older).find(|place| same(HOUR, *place)) {
        return place;
    }
    // All of different hours: so many of them stay, and before them one of each day.
    let daily = older.saturating_sub(hourly);
    (0..daily).find(|place| same(DAY, *place)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(times: impl Iterator<Item = u64>) -> Vec<Entry<'static>> {
        times.map(|at| Entry { at, run: None }).collect()
    }

    fn left(all: &[Entry<'_>], max: usize, keep: Keep) -> Vec<u64> {
        let gone = excess(all, max, keep);
        let stays = |(place, entry): (usize, &Entry<'_>)| (!gone.contains(&place)).then_some(entry.at);
        all.iter().enumerate().filter_map(stays).collect()
    }

    #[test]
    fn the_oldest_go_where_each_is_the_way_back_from_the_next() {
        // Whatever the clock said.
        let all = entries([50, 10, 40, 20].into_iter());
        assert_eq!(left(&all, 2, Keep::Newest), [40, 20]);
        assert_eq!(left(&all, 9, Keep::Newest).len(), 4);
        assert!(left(&all, 0, Keep::Newest).is_empty());
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
        all.extend((4..9).map(|n| Entry { at: n * DAY, run: Some("run") }));
        assert_eq!(excess(&all, 6, Keep::Spread), [5, 6, 7]);
    }
}
