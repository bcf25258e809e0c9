//! Redaction of `"name": "value"` anywhere in a text, also with escaped quotes.

use super::{Redactor, steps};

/// Range of a quoted name in the text, and its quotes.
struct Named {
    name: (usize, usize),
    quote: char,
    escapes: usize,
}

impl Redactor {
    pub(super) fn json(&self, text: &str) -> String {
        steps::count(text.len());
        let mut out = String::new();
        let (mut done, mut from) = (0, 0);
        while let Some(colon) = text[from..].find(':').map(|at| from + at) {
            from = colon + 1;
            let Some(named) = named(text, colon).filter(|named| named.name.0 >= done) else { continue };
            if self.is_secret_name(&text[named.name.0..named.name.1]) {
                let (start, end) = value(text, from, &named);
                out.push_str(&text[done..start]);
                out.push_str(&self.mark(&text[start..end]));
                done = end;
                from = from.max(done);
            }
        }
        out.push_str(&text[done..]);
        out
    }
}

/// Maximum length of a name.
const NAME: usize = 128;

fn named(text: &str, colon: usize) -> Option<Named> {
    let before = text[..colon].trim_end();
    steps::count(colon - before.len());
    let quote = before.chars().next_back().filter(|c| matches!(c, '"' | '\''))?;
    let end = before.len() - 1;
    let escapes = end - before[..end].trim_end_matches('\\').len();
    steps::count(escapes);
    let end = end - escapes;
    let mut start = end.saturating_sub(NAME);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let start = start + text[start..end].rfind(quote)? + 1;
    Some(Named { name: (start, end), quote, escapes })
}

/// Range of the value at or after `from`. It has the same quotes as its name, or none.
fn value(text: &str, from: usize, named: &Named) -> (usize, usize) {
    let &Named { quote, escapes, .. } = named;
    let at = text.len() - text[from..].trim_start().len();
    let opening = format!("{}{quote}", "\\".repeat(escapes));
    match text[at..].strip_prefix(&opening) {
        Some(inner) => (at + opening.len(), at + opening.len() + closing(inner, quote, escapes)),
        None => (at, at + bare(&text[at..])),
    }
}

/// Position of the closing quote, which has no more escapes before it than the opening one; the end if there is none.
fn closing(inner: &str, quote: char, escapes: usize) -> usize {
    for (at, _) in inner.match_indices(quote) {
        let before = &inner[..at];
        let found = before.len() - before.trim_end_matches('\\').len();
        steps::count(found);
        if found == escapes || (escapes == 0 && found.is_multiple_of(2)) {
            steps::count(at);
            return at - found.min(escapes);
        }
    }
    steps::count(inner.len());
    inner.len()
}

/// Length of a number or another unquoted value. Lists and objects are scanned inside, not redacted as a whole.
fn bare(text: &str) -> usize {
    if text.starts_with(['{', '[']) {
        return 0;
    }
    text.find(|c: char| c.is_whitespace() || matches!(c, ',' | '}' | ']' | '"' | '\'')).unwrap_or(text.len())
}
