//! Moments as people write them: a day, a day with its time, or how long ago.

use nono_sys::time::seconds;

/// Milliseconds since 1970 of `2026-08-01`, `2026-08-01T10:15`, `2026-08-01T10:15:00Z` (all UTC), or of so long before
/// `now_ms`: `90s`, `30m`, `2h`, `3d`, `1w`. None for anything else.
pub fn moment(text: &str, now_ms: u64) -> Option<u64> {
    let text = text.trim();
    let whole = match text.len() {
        10 => format!("{text}T00:00:00Z"),
        16 => format!("{text}:00Z"),
        19 => format!("{text}Z"),
        _ => text.to_owned(),
    };
    let whole = whole.replacen(' ', "T", 1);
    seconds(&whole).and_then(|seconds| seconds.checked_mul(1000)).or_else(|| ago(text, now_ms))
}

fn ago(text: &str, now_ms: u64) -> Option<u64> {
    let unit = text.chars().next_back()?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        'w' => 7 * 86_400,
        _ => return None,
    };
    let number: u64 = text[..text.len() - 1].parse().ok()?;
    Some(now_ms.saturating_sub(number.checked_mul(seconds * 1000)?))
}

/// `2026-08-01T10:15:00.250Z`.
pub fn iso(time_ms: u64) -> String {
    nono_audit::export::moment(time_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        let now = 1_000_000_000_000;
        for (text, found) in [
            ("1970-01-02", 86_400_000),
            ("1970-01-01T00:01", 60_000),
            ("1970-01-01 00:01", 60_000),
            ("1970-01-01T00:00:02", 2000),
            ("1970-01-01T00:00:02Z", 2000),
            ("2h", now - 7_200_000),
            ("3d", now - 259_200_000),
            ("1w", now - 604_800_000),
            ("999999999d", 0),
        ] {
            assert_eq!(moment(text, now), Some(found), "{text}");
        }
        for text in
            ["", "h", "2", "-2h", "2 h", "2y", "yesterday", "2026-13-01", "\u{e9}", "99999999999999999999d"]
        {
            assert_eq!(moment(text, now), None, "{text}");
        }
        assert_eq!(iso(1_500), "1970-01-01T00:00:01.500Z");
    }
}
