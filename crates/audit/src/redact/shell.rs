//! Redaction of text with several words, with the quoting of a shell.

use super::arguments::{Words, is_name_part};
use super::{Redactor, steps};

struct QuotedWord<'a> {
    raw: &'a str,
    /// Word without its quotes.
    value: String,
    quoted: bool,
}

impl Redactor {
    /// Redacts a line of words, from which known shapes were removed already.
    pub(super) fn line(&self, text: &str, depth: usize) -> String {
        steps::count(text.len());
        if depth == 0 {
            return self.mark(text);
        }
        let text = self.json(text);
        let mut words = Words::default();
        let mut out = String::new();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let blank = rest.len() - rest.trim_start_matches(is_between).len();
            out.push_str(&rest[..blank]);
            if rest[..blank].contains([';', '|', '(', ')', '\n']) {
                words.next_command();
            }
            rest = &rest[blank..];
            if let Some((header, after)) = self.header_line(rest) {
                out.push_str(&header);
                rest = after;
                continue;
            }
            let piece = next(rest);
            rest = &rest[piece.raw.len()..];
            out.push_str(&self.piece(&mut words, &piece, depth));
        }
        out
    }

    fn piece(&self, words: &mut Words, piece: &QuotedWord<'_>, depth: usize) -> String {
        if let Some(told) = self.told(words, &piece.value, depth) {
            if told == piece.value {
                return piece.raw.to_owned();
            }
            let quote = piece.raw.chars().next().filter(|c| is_quote(*c));
            let quote = quote.map(String::from).unwrap_or_default();
            return format!("{quote}{told}{quote}");
        }
        if !piece.quoted {
            return self.plain(piece.raw, depth);
        }
        self.quoted(piece.raw, depth)
    }

    /// Redacts the text between quotes on its own. If something was redacted, its escapes are lost.
    fn quoted(&self, raw: &str, depth: usize) -> String {
        steps::count(raw.len());
        let mut out = String::new();
        let mut rest = raw;
        while let Some(at) = rest.find(is_quote) {
            out.push_str(&self.plain(&rest[..at], depth));
            let quote = &rest[at..=at];
            let (inner, length) = inside(&rest[at + 1..], quote);
            let seen = self.line(&inner, depth - 1);
            let end = at + 1 + length;
            if seen == inner {
                out.push_str(&rest[at..end]);
            } else {
                out.extend([quote, &seen, quote]);
            }
            rest = &rest[end..];
        }
        out + &self.plain(rest, depth)
    }

    /// Redacts an unquoted header such as `Authorization: Basic xyz`, whose value goes to the end of the line.
    fn header_line<'a>(&self, rest: &'a str) -> Option<(String, &'a str)> {
        // Fast path: most words are not a name, and the line is read only behind one.
        let name = rest.find(|c| !is_name_part(c));
        steps::count(name.unwrap_or(rest.len()));
        let name = name.filter(|name| *name > 0)?;
        let end = name + (rest.len() - name - rest[name..].trim_start_matches([' ', '\t']).len());
        let (name, after) = (&rest[..end], rest[end..].strip_prefix(':')?);
        let told = after.starts_with([' ', '\t']) && self.is_secret_name(name);
        told.then(|| {
            let value = after.split(['\n', '\r']).next().unwrap_or_default();
            let line = &rest[..end + 1 + value.len()];
            let blanks = &value[..value.len() - value.trim_start().len()];
            (format!("{name}:{blanks}{}", self.header_value(value)), &rest[line.len()..])
        })
    }
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`')
}

fn is_between(c: char) -> bool {
    c.is_whitespace() || matches!(c, ';' | '|' | '<' | '>' | '(' | ')')
}

/// Text before the closing quote, without escapes, and its length with the quote.
fn inside(text: &str, quote: &str) -> (String, usize) {
    let (mut value, mut escaped) = (String::new(), false);
    for (at, c) in text.char_indices() {
        if escaped {
            escaped = false;
            value.push(c);
        } else if c == '\\' && quote != "'" {
            escaped = true;
        } else if quote.starts_with(c) {
            steps::count(at);
            return (value, at + 1);
        } else {
            value.push(c);
        }
    }
    steps::count(text.len());
    (value, text.len())
}

/// Word at the beginning of `text`; an unclosed quote takes the rest.
fn next(text: &str) -> QuotedWord<'_> {
    let (mut value, mut open, mut quoted, mut escaped) = (String::new(), None, false, false);
    let mut end = text.len();
    for (at, c) in text.char_indices() {
        if escaped {
            escaped = false;
            value.push(c);
        } else if c == '\\' && open != Some('\'') {
            escaped = true;
        } else if open == Some(c) {
            open = None;
        } else if open.is_none() && is_quote(c) {
            (open, quoted) = (Some(c), true);
        } else if open.is_none() && is_between(c) {
            end = at;
            break;
        } else {
            value.push(c);
        }
    }
    steps::count(end);
    QuotedWord { raw: &text[..end], value, quoted }
}
