//! Times for display: how long ago, or local time with its zone. JSON and files use UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nono::diagnostic::escape;
use nono::snapshot::time::{iso_ms, seconds, utc_offset};

/// Age from which the date is shown instead of "N days ago".
const LONG_AGO: Duration = Duration::from_secs(60 * 86_400);

/// Age of a time such as `2026-08-01T10:15:00Z`: `just now`, `5m ago`, `3h ago`, `2d ago`; the date from `LONG_AGO` on.
pub(crate) fn ago(moment: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    since(moment, now)
}

fn since(moment: &str, now: u64) -> String {
    let Some(then) = seconds(moment) else { return escape(moment) };
    let passed = Duration::from_secs(now.saturating_sub(then));
    if passed < LONG_AGO { self::passed(passed) } else { Local::of(then * 1000, ZONE).day }
}

/// Age for a duration that has passed.
pub(crate) fn passed(time: Duration) -> String {
    match time.as_secs() {
        0..60 => "just now".to_owned(),
        passed @ 60..3600 => format!("{}m ago", passed / 60),
        passed @ 3600..86_400 => format!("{}h ago", passed / 3600),
        passed => format!("{}d ago", passed / 86_400),
    }
}

/// Converts `2026-08-01T10:15:00Z` to the user's zone: `2026-08-01 12:15:00 +02:00`. Escapes text that is no time.
pub(crate) fn local(moment: &str) -> String {
    seconds(moment).map_or_else(|| escape(moment), |then| Local::of(then * 1000, ZONE).to_string())
}

/// Offset of the user's zone at a time, in seconds east of UTC. Zero in unit tests.
pub(crate) const ZONE: fn(u64) -> i64 = if cfg!(test) { |_| 0 } else { utc_offset };

/// Local time, in parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    /// `2026-08-01`
    pub(crate) day: String,
    /// `12:15:00`
    pub(crate) clock: String,
    /// `+02:00`
    pub(crate) zone: String,
}

impl Local {
    /// Converts from milliseconds since 1970.
    pub(crate) fn of(time_ms: u64, zone: fn(u64) -> i64) -> Local {
        let offset = zone(time_ms / 1000);
        let text = iso_ms(time_ms.saturating_add_signed(offset.saturating_mul(1000)));
        let (day, clock) = text.trim_end_matches('Z').split_once('T').unwrap_or_default();
        let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.unsigned_abs() / 60);
        let zone = format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60);
        Local { day: day.to_owned(), clock: clock.to_owned(), zone }
    }
}

impl std::fmt::Display for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.day, self.clock, self.zone)
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

    #[test]
    fn a_moment_has_its_zone() {
        let then = 1_735_689_599_000;
        for (zone, text) in [
            ((|_| 0) as fn(u64) -> i64, "2024-12-31 23:59:59 +00:00"),
            (|_| 19_800, "2025-01-01 05:29:59 +05:30"),
            (|_| -12_600, "2024-12-31 20:29:59 -03:30"),
            (|at| if at < 1_735_689_600 { 3600 } else { 7200 }, "2025-01-01 00:59:59 +01:00"),
        ] {
            assert_eq!(Local::of(then, zone).to_string(), text);
        }
        assert_eq!(Local::of(0, |_| -3600).to_string(), "1970-01-01 00:00:00 -01:00");
        assert_eq!(local("2024-12-31T23:59:59Z"), "2024-12-31 23:59:59 +00:00");
        assert_eq!(local("\u{1b}[2J"), "\\u{1b}[2J");
    }
}
