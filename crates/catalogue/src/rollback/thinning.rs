//! Selection of the snapshots of a running session that may be removed: dense recently, sparse earlier.
//!
//! The newest are all kept. Of older ones the first and the last of each age class are kept, where each class is twice
//! as long as the one before, so a session of a week has some forty snapshots and not a hundred thousand. (The first
//! grows into the next class; the last becomes the first then.)

use std::time::{Duration, Instant};

/// Number of newest snapshots that are all kept.
const RECENT: usize = 16;
/// Length of the first age class.
const UNIT: Duration = Duration::from_secs(60);

/// A snapshot between the first and the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) number: u32,
    pub(crate) at: Instant,
}

/// Numbers of the snapshots that may be removed. `points` are in the order they were taken.
pub(crate) fn superfluous(points: &[Point], now: Instant) -> Vec<u32> {
    let older = &points[..points.len().saturating_sub(RECENT)];
    let ages = older.chunk_by(|a, b| age(since(a, now)) == age(since(b, now)));
    ages.filter_map(|same| same.get(1..same.len() - 1)).flatten().map(|point| point.number).collect()
}

fn since(point: &Point, now: Instant) -> Duration {
    now.saturating_duration_since(point.at)
}

/// Age class: 0 for the first minute, then one more each time the age doubles.
fn age(since: Duration) -> u32 {
    let units = since.as_secs() / UNIT.as_secs();
    u64::BITS - units.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session that takes a snapshot every `step` seconds and thins after each.
    fn after(count: u32, step: u64) -> (Vec<Point>, Instant) {
        let start = Instant::now();
        let mut points: Vec<Point> = Vec::new();
        let mut now = start;
        for number in 1..=count {
            now = start + Duration::from_secs(u64::from(number) * step);
            points.push(Point { number, at: now });
            let gone = superfluous(&points, now);
            points.retain(|point| !gone.contains(&point.number));
        }
        (points, now)
    }

    #[test]
    fn few_stay_however_long_it_takes() {
        for (count, step) in [(50, 2), (5000, 2), (20_000, 30)] {
            let (points, _) = after(count, step);
            assert!(points.len() <= 40, "{count} every {step} s: {} stay", points.len());
        }
    }

    #[test]
    fn the_newest_stay_and_something_of_each_age() {
        let (points, now) = after(5000, 2);
        let newest: Vec<u32> = points.iter().rev().take(RECENT).map(|point| point.number).collect();
        assert_eq!(newest, (5000 - 15..=5000).rev().collect::<Vec<_>>());
        let ages: Vec<u32> = points.iter().map(|point| age(now - point.at)).collect();
        for wanted in 1..=7 {
            assert!(ages.contains(&wanted), "nothing of age {wanted}: {ages:?}");
        }
    }

    #[test]
    fn few_are_never_thinned() {
        let (points, _) = after(u32::try_from(RECENT).unwrap(), 1000);
        assert_eq!(points.len(), RECENT);
    }
}
