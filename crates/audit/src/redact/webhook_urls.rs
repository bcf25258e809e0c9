//! Addresses that are secrets themselves: webhook URLs, to which any client that knows them may post.

use super::steps;
use super::tokens::head;

/// One part of a path, between `/`.
#[derive(Clone, Copy)]
enum PathPart {
    /// Id that begins with this letter.
    Id(u8),
    Number,
}

/// Beginnings of paths before the secret, starting with a `/`. The host is ignored: often only a path is known.
const HOOKS: &[(&str, &[PathPart])] = &[
    ("/services/", &[PathPart::Id(b'T'), PathPart::Id(b'B')]),
    ("/workflows/", &[PathPart::Id(b'T'), PathPart::Id(b'A'), PathPart::Number]),
    ("/triggers/", &[PathPart::Id(b'T'), PathPart::Number]),
    ("/api/webhooks/", &[PathPart::Number]),
    ("/hooks/catch/", &[PathPart::Number]),
    ("/IncomingWebhook/", &[]),
    ("/with/key/", &[]),
];
/// Maximum length of an id.
const ID: usize = 32;
/// Minimum length of a secret in a path.
const SECRET: usize = 6;
/// Minimum number of digits, and of characters after them, in a bot's token.
const BOT_DIGITS: usize = 3;
const BOT_SECRET: usize = 8;

/// Range of the secret in such an address, to the end of the path.
pub(super) fn hook(text: &str, at: usize) -> Option<(usize, usize)> {
    if text.as_bytes()[at] != b'/' {
        return None;
    }
    let rest = &text[at..];
    let found = HOOKS.iter().find_map(|(start, parts)| {
        let tail = parts.iter().try_fold(rest.strip_prefix(start)?, |tail, part| part.strip(tail))?;
        let length = tail.find(is_end).unwrap_or(tail.len());
        steps::count(length);
        (length >= SECRET).then(|| (text.len() - tail.len(), text.len() - tail.len() + length))
    });
    found.or_else(|| bot(text, at))
}

/// Range of the secret in `/bot12345:secret/method`.
fn bot(text: &str, at: usize) -> Option<(usize, usize)> {
    let tail = text[at..].strip_prefix("/bot")?;
    let digits = number(tail).filter(|digits| *digits >= BOT_DIGITS)?;
    let colon = [":", "%3A", "%3a"].iter().find_map(|colon| tail[digits..].strip_prefix(colon))?;
    let start = text.len() - colon.len();
    let length = colon.find(|c| c == '/' || is_end(c)).unwrap_or(colon.len());
    steps::count(length);
    (length >= BOT_SECRET).then_some((start, start + length))
}

impl PathPart {
    /// Text after this part and its `/`.
    fn strip(self, text: &str) -> Option<&str> {
        let length = head(text, ID + 1).find('/').filter(|length| *length > 0)?;
        let part = &text.as_bytes()[..length];
        let fits = match self {
            PathPart::Id(letter) => part[0] == letter && part.iter().all(u8::is_ascii_alphanumeric),
            PathPart::Number => part.iter().all(u8::is_ascii_digit),
        };
        fits.then(|| &text[length + 1..])
    }
}

/// Number of digits at the beginning of `text`.
fn number(text: &str) -> Option<usize> {
    head(text, ID).find(|c: char| !c.is_ascii_digit())
}

fn is_end(c: char) -> bool {
    c.is_whitespace() || matches!(c, '?' | '#' | '&' | '"' | '\'' | '`' | '<' | '>' | ')')
}
