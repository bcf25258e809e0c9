//! Parsers of durations, sizes and counts on the command line.

use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

/// Parses a duration: `90`, `90s`, `10m`, `2h`, `500ms`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let number: f64 =
        number.parse().map_err(|_| format!("{text:?} is not a duration: write 30s, 10m or 2h"))?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "" | "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        "d" => number * 86400.0,
        _ => return Err(format!("{unit:?} is not a unit of time: use ms, s, m, h or d")),
    };
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(format!("{text:?} is zero, negative or too long for a duration")),
    }
}

/// Parses a size: `4096`, `512K`, `200M`, `2G`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let number: f64 =
        number.parse().map_err(|_| format!("{text:?} is not a size: write 512K, 200M or 2G"))?;
    let factor = match unit.trim_end_matches(['B', 'b']).trim_end_matches('i') {
        "" => 1u64,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        "t" | "T" => 1 << 40,
        _ => return Err(format!("{unit:?} is not a unit of size: use K, M, G or T")),
    };
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let bytes = (number * factor as f64) as u64;
    if number.is_finite() && bytes > 0 { Ok(bytes) } else { Err(format!("{text:?} is not a usable size")) }
}

/// Parses a whole number from 1 on.
pub(super) fn count<T>(text: &str) -> Result<T, &'static str>
where
    T: FromStr<Err = ParseIntError> + From<u8> + PartialOrd,
{
    let wanted = "write a whole number from 1 on";
    whole(text, wanted).and_then(|number: T| if number >= T::from(1) { Ok(number) } else { Err(wanted) })
}

/// Parses a whole number from 0 on.
pub(super) fn number<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, &'static str> {
    whole(text, "write a whole number from 0 on")
}

/// Parses a number of megabytes whose bytes fit into 64 bits.
pub(super) fn megabytes(text: &str) -> Result<u64, &'static str> {
    number(text).and_then(|number: u64| if number < 1 << 40 { Ok(number) } else { Err(TOO_LARGE) })
}

const TOO_LARGE: &str = "this number is too large";

fn whole<T: FromStr<Err = ParseIntError>>(text: &str, wanted: &'static str) -> Result<T, &'static str> {
    text.parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => TOO_LARGE,
        _ => wanted,
    })
}

fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for bad in ["", "s", "-1s", "0", "1y", "1e400"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("2G"), Ok(2 << 30));
        assert_eq!(size("1.5KiB"), Ok(1536));
        for bad in ["", "M", "0", "5X", "-1"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn counts() {
        assert_eq!(count("1"), Ok(1u32));
        assert_eq!(number("0"), Ok(0usize));
        for bad in ["", "none", "0", "-1", "1.5", "1k"] {
            assert_eq!(count::<u64>(bad), Err("write a whole number from 1 on"), "{bad}");
        }
        assert_eq!(number::<u32>("many"), Err("write a whole number from 0 on"));
        assert_eq!(number::<u32>("4294967296"), Err("this number is too large"));
        assert_eq!(megabytes("1099511627775"), Ok((1 << 40) - 1));
        assert_eq!(megabytes("1099511627776"), Err("this number is too large"));
    }
}
