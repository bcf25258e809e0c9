//! Moments as people read them: how long ago.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nono::snapshot::time::seconds;

/// From here on the day says more.
const LONG_AGO: Duration = Duration::from_secs(60 * 86_400);

/// How long ago `2026-08-01T10:15:00Z` was: `just now`, `5m ago`, `3h ago`, `2d ago`; the day itself when it is long ago.
pub(crate) fn ago(moment: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    since(moment, now)
}

fn since(moment: &str, now: u64) -> String {
    let Some(then) = seconds(moment) else { return moment.to_owned() };
    let passed = Duration::from_secs(now.saturating_sub(then));
    if passed < LONG_AGO { self::passed(passed) } else { moment.chars().take(10).collect() }
}

/// The same for a time that has passed.
pub(crate) fn passed(time: Duration) -> String {
    match time.as_secs() {
        0..60 => "just now".to_owned(),
        passed @ 60..3600 => format!("{}m ago", passed / 60),
        passed @ 3600..86_400 => format!("{}h ago", passed / 3600),
        passed => format!("{}d ago", passed / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        let moment = "2024-12-31T23:59:59Z";
        for (passed, text) in [
            (0, "just now"),
            (59, "just now"),
            (60, "1m ago"),
            (7199, "1h ago"),
            (200_000, "2d ago"),
            (10_000_000, "2024-12-31"),
        ] {
            assert_eq!(since(moment, 1_735_689_599 + passed), text);
        }
        assert_eq!(since(moment, 0), "just now", "a clock that was set back");
        assert_eq!(since("yesterday", 0), "yesterday");
    }
}
