//! Moments as people read them: how long ago.

use std::time::{SystemTime, UNIX_EPOCH};

/// How long ago `2026-08-01T10:15:00Z` was: `just now`, `5m ago`, `3h ago`, `2d ago`; the day itself when it is long ago.
pub(crate) fn ago(moment: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    since(moment, now)
}

fn since(moment: &str, now: u64) -> String {
    let Some(then) = seconds(moment) else { return moment.to_owned() };
    match now.saturating_sub(then) {
        0..60 => "just now".to_owned(),
        passed @ 60..3600 => format!("{}m ago", passed / 60),
        passed @ 3600..86_400 => format!("{}h ago", passed / 3600),
        passed @ 86_400..5_184_000 => format!("{}d ago", passed / 86_400),
        _ => moment.chars().take(10).collect(),
    }
}

/// Seconds since 1970 of `YYYY-MM-DDTHH:MM:SSZ`. Days are counted from 1 March, so that a leap day is the last of its year.
fn seconds(moment: &str) -> Option<u64> {
    let (date, time) = moment.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let [hours, minutes, seconds] = numbers(time.split('.').next()?, ':')?;
    let sane = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !sane || hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some((days - 719_468) * 86_400 + hours * 3600 + minutes * 60 + seconds)
}

fn numbers(text: &str, between: char) -> Option<[u64; 3]> {
    let parts: Option<Vec<u64>> = text.split(between).map(|part| part.parse().ok()).collect();
    parts?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        for (moment, at) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T00:00:00Z", 951_782_400),
            ("2024-12-31T23:59:59Z", 1_735_689_599),
            ("2100-03-01T00:00:00Z", 4_107_542_400),
        ] {
            assert_eq!(seconds(moment), Some(at), "{moment}");
        }
        for bad in [
            "",
            "Z",
            "2024-12-31",
            "2024-12-31T23:59Z",
            "2024-13-01T00:00:00Z",
            "x-1-1T0:0:0Z",
            "0-1-1T0:0:0Z",
        ] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }

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
