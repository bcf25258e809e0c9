//! Text from files and file names, escaped and cut to columns.

use std::path::Path;

use nono::diagnostic::escape;
use unicode_width::UnicodeWidthChar;

/// Columns between tab stops.
const TAB: usize = 4;

/// Whether a character that is no control character reorders or hides text.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

/// Escaped name, on one line.
pub(crate) fn name(path: &Path) -> String {
    bytes(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()), None)
}

/// Number of columns of a text.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Escaped part of a line. `column`: its first column, for tab stops.
pub(crate) fn content(text: &[u8], column: usize) -> String {
    bytes(text, Some(column))
}

fn bytes(text: &[u8], column: Option<usize>) -> String {
    let mut shown = String::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            match column {
                Some(start) if c == '\t' => {
                    let at = start + columns(&shown);
                    shown.extend(std::iter::repeat_n(' ', TAB - at % TAB));
                }
                _ if is_hidden(c) => shown.extend(c.escape_unicode()),
                _ if c.is_ascii_graphic() || c == ' ' || c.is_alphanumeric() => shown.push(c),
                _ => shown.push_str(&escape(c.encode_utf8(&mut [0; 4]))),
            }
        }
        for byte in chunk.invalid() {
            shown.push_str("\\x");
            shown.extend(
                [byte >> 4, byte & 15].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])),
            );
        }
    }
    shown
}

/// Part of a text from a column on, and the number of spaces for a wide character that is cut.
pub(super) fn from_column(text: &str, column: usize) -> (&str, usize) {
    let mut at = 0;
    for (index, c) in text.char_indices() {
        if at >= column {
            return (&text[index..], at - column);
        }
        at += c.width().unwrap_or(0);
    }
    ("", 0)
}

/// Cuts text to this width and keeps its end, because names differ there.
pub(crate) fn keep_end(text: &str, width: usize) -> String {
    let total = columns(text);
    if total <= width {
        return text.to_owned();
    }
    if width == 0 {
        return String::new();
    }
    let (rest, _) = from_column(text, total + 1 - width);
    format!("…{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_acts_on_gets_through() {
        assert_eq!(content(b"a\x1b[31mb\xff\r", 0), "a\\u{1b}[31mb\\xff\\u{d}");
        assert_eq!(name(Path::new("a\nb\u{202e}c\u{61c}\t")), "a\\u{a}b\\u{202e}c\\u{61c}\\u{9}");
        assert_eq!(content("日本é".as_bytes(), 0), "日本é");
    }

    #[test]
    fn tabs_go_to_their_stops() {
        assert_eq!(content(b"\tx\ty", 0), "    x   y");
        assert_eq!(content(b"\tx", 3), " x");
        assert_eq!(content("日\tx".as_bytes(), 0), "日  x");
    }

    #[test]
    fn cuts_are_by_column() {
        assert_eq!(from_column("日本", 1), ("本", 1));
        assert_eq!(from_column("abc", 1), ("bc", 0));
        assert_eq!(from_column("abc", 9), ("", 0));
        assert_eq!(keep_end("abcdef", 4), "…def");
        assert_eq!(keep_end("abc", 3), "abc");
        assert_eq!(columns(&keep_end("日本語", 4)), 3);
        assert_eq!(keep_end("abc", 0), "");
    }
}
