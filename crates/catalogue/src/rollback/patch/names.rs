//! File names in a patch, quoted as git does, and the names that git refuses.

use std::fmt::Write;

/// `a/name`, quoted where needed: git and patch accept any bytes this way.
pub(super) fn quoted(prefix: &str, name: &[u8]) -> Vec<u8> {
    // `patch` drops a blank at the end of a name that is not quoted.
    if name.iter().copied().all(plain) && name.last() != Some(&b' ') {
        return [prefix.as_bytes(), name].concat();
    }
    in_quotes(prefix, name)
}

/// Name in the first line of a file, where two names are on one line: `patch` needs quotes around a name with blanks.
pub(super) fn in_first_line(prefix: &str, name: &[u8]) -> Vec<u8> {
    if name.contains(&b' ') { in_quotes(prefix, name) } else { quoted(prefix, name) }
}

fn plain(byte: u8) -> bool {
    (b' '..0x7f).contains(&byte) && byte != b'"' && byte != b'\\'
}

fn in_quotes(prefix: &str, name: &[u8]) -> Vec<u8> {
    let mut text = format!("\"{prefix}");
    for byte in name {
        match byte {
            0x07 => text.push_str("\\a"),
            0x08 => text.push_str("\\b"),
            b'\t' => text.push_str("\\t"),
            b'\n' => text.push_str("\\n"),
            0x0b => text.push_str("\\v"),
            0x0c => text.push_str("\\f"),
            b'\r' => text.push_str("\\r"),
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            byte if plain(*byte) => text.push(char::from(*byte)),
            // Writing to a string cannot fail.
            byte => drop(write!(text, "\\{byte:03o}")),
        }
    }
    text.push('"');
    text.into_bytes()
}

/// Name in a `---` or `+++` line: one with blanks ends with a tab.
pub(super) fn in_header(prefix: &str, name: &[u8]) -> Vec<u8> {
    let mut text = quoted(prefix, name);
    if text.first() != Some(&b'"') && text.contains(&b' ') {
        text.push(b'\t');
    }
    text
}

/// Whether git refuses a patch with this name: a path of its own, in any spelling that some file system maps to it.
pub(super) fn refused_by_git(name: &[u8], is_link: bool) -> bool {
    let components = name.split(|byte| *byte == b'/');
    let mut parts = components.flat_map(|component| component.split(|byte| *byte == b'\\'));
    parts.any(is_dot_git) || (is_link && ends_with_name(name, b".gitmodules"))
}

fn ends_with_name(path: &[u8], name: &[u8]) -> bool {
    path.rsplit(|byte| *byte == b'/').next().is_some_and(|last| last.eq_ignore_ascii_case(name))
}

/// Whether this is `.git`, its 8.3 short name, or either with the blanks, dots and streams that some file systems drop.
fn is_dot_git(component: &[u8]) -> bool {
    let name = component.split(|byte| *byte == b':').next().unwrap_or_default();
    let end = name.iter().rposition(|byte| !matches!(byte, b' ' | b'.')).map_or(0, |last| last + 1);
    let name = &name[..end];
    name.eq_ignore_ascii_case(b".git") || name.eq_ignore_ascii_case(b"git~1")
}
