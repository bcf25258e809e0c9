//! Characters that look like others, or that a person cannot see: prompts show them by number.
//!
//! Letters of other scripts stay as they are: names are written in them.

/// Whether a character in a question is shown by its number.
pub(super) fn misleads(c: char) -> bool {
    is_blank(c) || is_ignored(c) || looks_like_another(c)
}

/// Whitespace other than the ordinary space.
fn is_blank(c: char) -> bool {
    (c.is_whitespace() && c != ' ') || c == '\u{2800}'
}

/// Characters that terminals show nothing for (Unicode's default ignorable code points), that only set the text
/// direction, or that differ by font (private use).
fn is_ignored(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffc}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}'
    )
}

/// Characters that look like those used in paths and in nono's own lines.
fn looks_like_another(c: char) -> bool {
    matches!(
        c,
        // Slashes, and strokes through the character before.
        '\u{335}'..='\u{338}' | '\u{1735}' | '\u{2044}' | '\u{2215}' | '\u{2216}' | '\u{2571}' | '\u{2572}'
            | '\u{27cb}' | '\u{27cd}' | '\u{29f5}' | '\u{29f8}' | '\u{29f9}' | '\u{2cc6}' | '\u{3033}'
            | '\u{31d3}' | '\u{ff0f}' | '\u{ff3c}' | '\u{fe68}'
        // Dots.
            | '\u{660}' | '\u{6f0}' | '\u{701}' | '\u{702}' | '\u{2024}'..='\u{2026}' | '\u{a4f8}' | '\u{fe52}'
            | '\u{ff0e}'
        // Hyphens and tildes.
            | '\u{2dc}' | '\u{2010}'..='\u{2012}' | '\u{2053}' | '\u{2212}' | '\u{223c}' | '\u{fe58}' | '\u{fe63}'
            | '\u{ff0d}' | '\u{ff5e}'
        // Letters, digits and brackets in other shapes.
            | '\u{ff10}'..='\u{ff19}' | '\u{ff21}'..='\u{ff3b}' | '\u{ff3d}' | '\u{ff41}'..='\u{ff5a}'
            | '\u{1d400}'..='\u{1d7ff}'
    )
}
