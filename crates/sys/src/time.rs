//! Points in time, ISO 8601 in UTC, and the offset of the user's clock from it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Current time as `YYYY-MM-DDTHH:MM:SSZ`.
pub fn now_iso() -> String {
    iso_ms(now_ms())
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_millis());
    u64::try_from(now).unwrap_or(u64::MAX)
}

/// Time `YYYY-MM-DDTHH:MM:SSZ` of milliseconds since 1970.
pub fn iso_ms(milliseconds: u64) -> String {
    iso(milliseconds / 1000)
}

/// Time of seconds since 1970. Days are counted from 1 March, so that a leap day is the last of its year.
pub fn iso(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let from_march = days + 719_468;
    let (era, day) = (from_march / 146_097, from_march % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + next;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest % 3600 / 60, rest % 60)
}

/// `20260506-050616` of `2026-05-06T05:06:16Z`.
pub fn stamp(moment: &str) -> String {
    let digits: String = moment.chars().filter(char::is_ascii_digit).collect();
    let (date, clock) = digits.split_at(digits.len().min(8));
    format!("{date}-{clock}")
}

/// Seconds since 1970 of `YYYY-MM-DDTHH:MM:SSZ`, perhaps with a fraction; `None` if the text is not such a time.
pub fn seconds(moment: &str) -> Option<u64> {
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

unsafe extern "C" {
    /// Reads the zone of `TZ`, or of the machine where it is not set. The `libc` crate does not have it.
    fn tzset();
}

/// Seconds that the user's clock is ahead of UTC then, by `TZ` or the machine's zone. UTC if libc cannot tell.
pub fn utc_offset(seconds: u64) -> i64 {
    let Ok(moment) = libc::time_t::try_from(seconds) else { return 0 };
    // SAFETY: both read `TZ`, as getenv does, and std's functions that change the environment are unsafe: their callers
    // answer for readers like these. The moment and the result live across the call; all zeros is a valid `tm`.
    unsafe {
        tzset();
        let mut local: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&raw const moment, &raw mut local).is_null() {
            0
        } else {
            local.tm_gmtoff as i64
        }
    }
}

fn numbers(text: &str, between: char) -> Option<[u64; 3]> {
    let parts: Option<Vec<u64>> = text.split(between).map(|part| part.parse().ok()).collect();
    parts?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Prints the offsets of the zone it is run in; called by the next test, in processes of their own.
    #[test]
    #[ignore = "the other half of `offsets_of_zones`"]
    #[allow(clippy::print_stdout, reason = "read by the test that starts it")]
    fn print_offsets() {
        println!("offsets {} {}", utc_offset(WINTER), utc_offset(SUMMER));
    }

    /// 2024-01-15T12:00:00Z.
    const WINTER: u64 = 1_705_320_000;
    /// 2024-07-15T12:00:00Z.
    const SUMMER: u64 = 1_721_044_800;

    #[test]
    fn offsets_of_zones() {
        for (zone, winter, summer) in [
            ("UTC", 0, 0),
            ("UTC0", 0, 0),
            ("XYZ-05:30", 19_800, 19_800),
            ("XYZ+03:30", -12_600, -12_600),
            ("CET-1CEST,M3.5.0,M10.5.0/3", 3600, 7200),
            ("AEST-10AEDT,M10.1.0,M4.1.0/3", 39_600, 36_000),
            ("no such zone", 0, 0),
        ] {
            let binary = std::env::current_exe().unwrap();
            let args = ["--exact", "time::tests::print_offsets", "--ignored", "--nocapture"];
            let out = Command::new(binary).args(args).env("TZ", zone).output().unwrap();
            let text = String::from_utf8_lossy(&out.stdout);
            assert!(text.contains(&format!("offsets {winter} {summer}\n")), "{zone}: {text}");
        }
        assert_eq!(utc_offset(u64::MAX), 0);
    }

    #[test]
    fn known_moments() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(iso(seconds), text);
            assert_eq!(super::seconds(text), Some(seconds));
        }
        assert_eq!(super::seconds("1970-01-01T00:01:00.5Z"), Some(60));
        for wrong in
            ["", "Z", "2024-12-31", "2024-12-31T23:59Z", "1969-12-31T23:59:59Z", "2024-13-01T00:00:00Z"]
        {
            assert_eq!(super::seconds(wrong), None, "{wrong}");
        }
    }
}
