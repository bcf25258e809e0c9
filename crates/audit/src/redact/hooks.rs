//! Addresses that are secrets themselves: whoever knows them may post there.

use super::steps;
use super::tokens::head;

/// One part of a path, between `/`.
#[derive(Clone, Copy)]
enum Part {
    /// Begins with this letter.
    Id(u8),
    Number,
}

/// What a path has before its secret, beginning with a `/`. The host is not looked at: often only a path is known.
const HOOKS: &[(&str, &[Part])] = &[
    ("/services/", &[Part::Id(b'T'), Part::Id(b'B')]),
    ("/workflows/", &[Part::Id(b'T'), Part::Id(b'A'), Part::Number]),
    ("/triggers/", &[Part::Id(b'T'), Part::Number]),
    ("/api/webhooks/", &[Part::Number]),
    ("/hooks/catch/", &[Part::Number]),
    ("/IncomingWebhook/", &[]),
    ("/with/key/", &[]),
];
/// No id is longer.
const ID: usize = 32;
/// A secret in a path is not shorter.
const SECRET: usize = 6;
/// That of a bot has so many digits and so many characters more.
const BOT_DIGITS: usize = 3;
const BOT_SECRET: usize = 8;

/// The secret part of such an address, to the end of the path.
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

/// `/bot12345:secret/method`.
fn bot(text: &str, at: usize) -> Option<(usize, usize)> {
    let tail = text[at..].strip_prefix("/bot")?;
    let digits = number(tail).filter(|digits| *digits >= BOT_DIGITS)?;
    let colon = [":", "%3A", "%3a"].iter().find_map(|colon| tail[digits..].strip_prefix(colon))?;
    let start = text.len() - colon.len();
    let length = colon.find(|c| c == '/' || is_end(c)).unwrap_or(colon.len());
    steps::count(length);
    (length >= BOT_SECRET).then_some((start, start + length))
}

impl Part {
    /// What follows this part and its `/`.
    fn strip(self, text: &str) -> Option<&str> {
        let length = head(text, ID + 1).find('/').filter(|length| *length > 0)?;
        let part = &text.as_bytes()[..length];
        let fits = match self {
            Part::Id(letter) => part[0] == letter && part.iter().all(u8::is_ascii_alphanumeric),
            Part::Number => part.iter().all(u8::is_ascii_digit),
        };
        fits.then(|| &text[length + 1..])
    }
}

/// How many digits `text` begins with.
fn number(text: &str) -> Option<usize> {
    head(text, ID).find(|c: char| !c.is_ascii_digit())
}

fn is_end(c: char) -> bool {
    c.is_whitespace() || matches!(c, '?' | '#' | '&' | '"' | '\'' | '`' | '<' | '>' | ')')
}
