//! Parser of points in time as users write them: a date, a date with a time, in the local or a given time zone, or an
//! age.

use nono_sys::time::seconds;

/// Milliseconds since 1970 of `2026-08-01`, `2026-08-01T10:15`, `2026-08-01 10:15:00` in the local time zone, of
/// `2026-08-01T10:15:00Z` and `2026-08-01 10:15:00 +02:00` in the given one, or of an age before `now_ms`: `90s`,
/// `30m`, `2h`, `3d`, `1w`; `10:15` is the last time the local clock showed it. None for anything else. `zone`: offset
/// of the local clock from UTC at a time, in seconds.
pub fn moment(text: &str, now_ms: u64, zone: impl Fn(u64) -> i64) -> Option<u64> {
    let text = text.trim();
    let at = absolute(text, &zone).or_else(|| clock(text, now_ms / 1000, &zone));
    at.and_then(|seconds| seconds.checked_mul(1000)).or_else(|| ago(text, now_ms))
}

/// Last time the local clock showed this.
fn clock(text: &str, now: u64, zone: impl Fn(u64) -> i64) -> Option<u64> {
    const DAY: u64 = 86_400;
    let time = matches!(text.len(), 5 | 8).then(|| as_utc(&format!("1970-01-01 {text}")))??;
    let today = now.saturating_add_signed(zone(now)) / DAY * DAY + time;
    // The offset may have changed since.
    let place = |local: u64| local.saturating_add_signed(-zone(local.saturating_add_signed(-zone(now))));
    Some(place(today)).filter(|at| *at <= now).or_else(|| Some(place(today.checked_sub(DAY)?)))
}

fn absolute(text: &str, zone: &impl Fn(u64) -> i64) -> Option<u64> {
    if let Some(moment) = text.strip_suffix('Z') {
        return as_utc(moment);
    }
    if let Some((moment, offset)) = with_offset(text) {
        return as_utc(moment)?.checked_add_signed(-offset);
    }
    // The offset at that time: the first guess is at most a day off, so its offset is the right one, unless clocks
    // change in that very hour.
    let clock = as_utc(text)?;
    let guess = clock.saturating_add_signed(-zone(clock));
    clock.checked_add_signed(-zone(guess))
}

/// Date, with or without a time, as if it were UTC.
fn as_utc(text: &str) -> Option<u64> {
    let whole = match text.len() {
        10 => format!("{text}T00:00:00Z"),
        16 => format!("{text}:00Z"),
        _ => format!("{text}Z"),
    };
    seconds(&whole.replacen(' ', "T", 1))
}

/// Split off an offset: `2026-08-01 10:15:00` and 7200 for the same with ` +02:00` appended.
fn with_offset(text: &str) -> Option<(&str, i64)> {
    let (moment, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let sign = match offset.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let (hours, minutes) = offset[1..].split_once(':')?;
    let (hours, minutes): (u32, u32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let sane = hours < 24 && minutes < 60 && moment.len() >= 16;
    sane.then(|| (moment.trim_end(), sign * i64::from(hours * 3600 + minutes * 60)))
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
            ("1970-01-01T02:00:02+02:00", 2000),
            ("1970-01-01 02:00:02 +02:00", 2000),
            ("1970-01-01 05:30 +05:30", 0),
            ("1970-01-01 00:00:02 -01:00", 3_602_000),
            ("2h", now - 7_200_000),
            ("3d", now - 259_200_000),
            ("1w", now - 604_800_000),
            ("999999999d", 0),
        ] {
            assert_eq!(moment(text, now, |_| 0), Some(found), "{text}");
        }
        // It is 01:46:40 there on the 13th day.
        let noon = 12 * 86_400_000 + 6_400_000;
        for (text, found) in [
            ("01:46", noon - 40_000),
            ("01:46:40", noon),
            ("01:47", noon + 20_000 - 86_400_000),
            ("00:00", noon - 6_400_000),
        ] {
            assert_eq!(moment(text, noon, |_| 0), Some(found), "{text}");
        }
        assert_eq!(moment("03:46", noon, |_| 7200), Some(noon - 40_000));
        assert_eq!(moment("20:46", noon, |_| -18_000), Some(noon - 40_000));
        let summer = |at: u64| if at < 1_000_000 { 3600 } else { 7200 };
        for (text, found) in [
            ("1970-01-02", 82_800_000),
            ("1970-01-02T00:00:00Z", 86_400_000),
            ("1970-01-02 00:00:00 +02:00", 79_200_000),
            ("1970-01-20 12:00", 1_677_600_000),
        ] {
            assert_eq!(moment(text, now, summer), Some(found), "{text}");
        }
        for text in [
            "1970-01-01 00:00:02 +24:00",
            "1970-01-01 00:00:02 +2:000",
            "1970-01-01 +02:00",
            "",
            "h",
            "2",
            "-2h",
            "2 h",
            "2y",
            "24:00",
            "1:5",
            "10:60",
            "yesterday",
            "2026-13-01",
            "\u{e9}",
            "99999999999999999999d",
        ] {
            assert_eq!(moment(text, now, |_| 0), None, "{text}");
        }
    }
}
