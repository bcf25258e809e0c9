//! Parsing of RFC 3339 times with a UTC offset.

use nono_snapshot::time;

/// Seconds since 1970; `None` if the text is not such a time or names a day that does not exist.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let (local, offset) = split(text)?;
    let (date, _) = local.split_once('T')?;
    // A day that does not exist would count as one of the next month.
    let midnight = time::seconds(&format!("{date}T00:00:00Z"))?;
    if !time::iso(midnight).starts_with(date) {
        return None;
    }
    time::seconds(&format!("{local}Z"))?.checked_add_signed(-offset)
}

/// The time without its offset, and the offset in seconds.
fn split(text: &str) -> Option<(&str, i64)> {
    if let Some(local) = text.strip_suffix('Z') {
        return Some((local, 0));
    }
    let (local, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
    let sign = match offset.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = offset[1..].split_once(':')?;
    let (hours, minutes) = (two_digits(hours)?, two_digits(minutes)?);
    (hours < 24 && minutes < 60).then_some((local, sign * (hours * 3600 + minutes * 60)))
}

fn two_digits(text: &str) -> Option<i64> {
    let plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_count() {
        let noon = seconds("2026-08-01T12:00:00Z").unwrap();
        assert_eq!(noon, 1_785_585_600);
        assert_eq!(seconds("2026-08-01T14:00:00+02:00"), Some(noon));
        assert_eq!(seconds("2026-08-01T06:30:00-05:30"), Some(noon));
        assert_eq!(seconds("2026-08-01T12:00:00.5Z"), Some(noon));
        assert!(seconds("2028-02-29T00:00:00Z").is_some());
    }

    #[test]
    fn what_is_no_moment_is_none() {
        for wrong in [
            "",
            "tomorrow",
            "2026-08-01",
            "2026-08-01T12:00:00",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-08-01T25:00:00Z",
            "2026-08-01T12:00:00+2:00",
            "2026-08-01T12:00:00+99:00",
            "1970-01-01T00:00:00+01:00",
            "ééé:00",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
