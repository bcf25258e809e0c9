//! Numbers, texts and tables for display.

use std::time::Duration;

/// Number with thousands separators: `78,622`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Size: `1.3 GB`.
pub(crate) fn bytes(bytes: u64) -> String {
    let units = ["kB", "MB", "GB", "TB", "PB"];
    #[allow(clippy::cast_precision_loss, reason = "it is rounded anyway")]
    let mut number = bytes as f64;
    if number < 999.5 {
        return format!("{bytes} bytes");
    }
    let mut unit = "";
    for larger in units {
        if number >= 999.5 {
            number /= 1000.0;
            unit = larger;
        }
    }
    format!("{number:.1} {unit}")
}

/// Duration: `0.2 s`.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Number with a noun: `1 file`, `2,000 files`; none for 0.
pub(crate) fn count(number: u64, one: &str, many: &str) -> Option<String> {
    match number {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{} {many}", grouped(number))),
    }
}

/// Number with a noun: `1 session`, `0 sessions`, `1,200 sessions`.
pub(crate) fn some(number: impl TryInto<u64>, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Number of files.
pub(crate) fn files(number: u64) -> String {
    count(number, "file", "files").unwrap_or_else(|| "no files".to_owned())
}

/// First names, and the number of the others: `a, b and 3 more`.
pub(crate) fn few(names: &[String], most: usize) -> String {
    let named = names[..most.min(names.len())].join(", ");
    match names.len().saturating_sub(most) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Cuts text to this many characters.
pub(crate) fn shortened(text: String, most: usize) -> String {
    if text.chars().count() <= most {
        return text;
    }
    text.chars().take(most.saturating_sub(3)).chain("...".chars()).collect()
}

/// Rows in aligned columns, one line each.
pub(crate) fn table<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(
            [0, 999, 1000, 78_622, 1_234_567].map(grouped),
            ["0", "999", "1,000", "78,622", "1,234,567"]
        );
        let sizes = [0, 999, 1000, 999_960, 1_300_000_000].map(bytes);
        assert_eq!(sizes, ["0 bytes", "999 bytes", "1.0 kB", "1.0 MB", "1.3 GB"]);
    }
}
