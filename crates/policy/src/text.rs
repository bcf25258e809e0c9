//! Untrusted text for a terminal, and words for a shell.

use std::path::Path;

/// A path with everything escaped that a terminal would act on.
pub fn shown(path: &Path) -> String {
    escape(&path.to_string_lossy())
}

/// Make control characters and characters that reorder text visible.
pub fn escape(text: &str) -> String {
    let risky = |c: char| {
        c.is_control()
            || matches!(
                c,
                '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                    | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
            )
    };
    text.chars().map(|c| if risky(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

/// A count behind a fact, ` (3 times)`; nothing for one.
pub fn times(count: u64) -> String {
    if count > 1 { format!(" ({count} times)") } else { String::new() }
}

pub fn quote_all(words: &[String]) -> String {
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@%,".contains(c);
    let word = escape(word);
    if !word.is_empty() && word.chars().all(plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_acts_on_gets_through() {
        assert_eq!(escape("a\x1b[31mb\u{202e}c\n"), "a\\u{1b}[31mb\\u{202e}c\\u{a}");
        assert_eq!(quote_all(&["--read".into(), "/a b".into()]), "--read '/a b'");
        assert_eq!(quote("it's"), "'it'\\''s'");
    }
}
