//! Secrets taken out of what is recorded.
//!
//! A redacted value becomes `[redacted:xxxxxxxxxxxxxxxx]`, the beginning of a keyed digest: two equal secrets can be seen
//! to be equal, and nothing else is told. In doubt a value is taken for a secret: a record that says too little is a
//! nuisance, one that says too much is a leak. Any bytes go in, text comes out.
//!
//! Limit: a secret that has neither a telling name beside it nor a known shape cannot be recognised.

#[cfg(test)]
mod cases;
mod hooks;
mod json;
mod key;
mod names;
mod shapes;
mod shell;
mod steps;
mod table;
#[cfg(test)]
mod tests;
mod tokens;
mod url;
mod words;

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

use ring::hmac;

pub use key::{Key, KeyError};
pub use table::{Changes, Table};

use names::normal;
use tokens::head;
use words::Words;

/// So deep are words within words, values within values looked at; what lies deeper is redacted whole.
const DEPTH: usize = 6;
/// So many hexadecimal digits of the keyed digest are kept.
const DIGITS: usize = 16;
const OPENING: &str = "[redacted:";
/// Of a longer text only so much is looked at, and the rest is left out: no record holds as much.
const LONGEST: usize = 64 << 10;
/// So far before that a text may end, so that nothing is cut in two.
const LAST_WORD: usize = 4 << 10;
/// What stands for the rest.
const CUT: &str = "…";

/// What a header's value may begin with that is no secret.
const SCHEMES: &[&str] = &["bearer", "basic", "digest", "token", "apikey", "negotiate", "aws4-hmac-sha256"];

/// Takes secrets out of words, addresses, headers and variables.
#[derive(Debug)]
pub struct Redactor {
    table: Table,
    key: hmac::Key,
}

impl Redactor {
    pub fn new(table: Table, key: &Key) -> Redactor {
        Redactor { table, key: hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()) }
    }

    /// The words of a command. Bytes that are no text become `\xNN`.
    pub fn argv(&self, argv: &[OsString]) -> Vec<String> {
        let mut words = Words::default();
        argv.iter().map(|word| self.word(&mut words, &self.seen(&text_of(word)), DEPTH)).collect()
    }

    /// An address, or whatever was given for one.
    pub fn url(&self, url: &str) -> String {
        self.plain(&self.seen(url), DEPTH)
    }

    /// The value of a header.
    pub fn header(&self, name: &str, value: &str) -> String {
        if self.is_secret_name(name) { self.header_value(value) } else { self.text(value) }
    }

    /// The value of a variable.
    pub fn env(&self, name: &OsStr, value: &OsStr) -> String {
        let value = text_of(value);
        if self.is_secret_name(&text_of(name)) { self.mark(&value) } else { self.text(&value) }
    }

    /// Anything else: a message, a reason, a line for a shell.
    pub fn text(&self, text: &str) -> String {
        self.line(&self.seen(text), DEPTH)
    }

    /// As much as is recorded, without known shapes.
    fn seen(&self, text: &str) -> String {
        self.shapes(&cut(text))
    }

    /// What stands for a secret. Nothing stays nothing, and what stands for one already stays as it is.
    fn mark(&self, secret: &str) -> String {
        steps::count(secret.len());
        if secret.is_empty() || is_mark(secret) {
            return secret.to_owned();
        }
        let mut text = OPENING.to_owned();
        for byte in &hmac::sign(&self.key, secret.as_bytes()).as_ref()[..DIGITS / 2] {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text + "]"
    }

    /// The scheme stays, so that the same secret is the same in a header and elsewhere.
    fn header_value(&self, value: &str) -> String {
        let trimmed = value.trim_start();
        let scheme = trimmed.split_once(' ').filter(|(scheme, _)| SCHEMES.contains(&&*normal(scheme)));
        match scheme {
            Some((scheme, rest)) => format!("{scheme} {}", self.mark(rest.trim())),
            None => self.mark(trimmed.trim_end()),
        }
    }

    /// Whether what goes by this name is a secret: as a flag, a header or a variable, whichever it may be.
    fn is_secret_name(&self, name: &str) -> bool {
        let name = normal(name);
        let tables = [&self.table.flags, &self.table.headers, &self.table.env];
        !name.is_empty() && tables.iter().any(|names| names.has(&name))
    }
}

/// Half a secret would not be known for one: a long text ends where a word does.
fn cut(text: &str) -> Cow<'_, str> {
    if text.len() <= LONGEST {
        return Cow::Borrowed(text);
    }
    let start = head(text, LONGEST - LAST_WORD).len();
    let last = &head(text, LONGEST)[start..];
    let is_between =
        |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '&' | '#' | ';' | ',' | '"' | '\'');
    let end = start + last.rfind(is_between).unwrap_or(last.len());
    Cow::Owned(format!("{}{CUT}", &text[..end]))
}

fn is_mark(text: &str) -> bool {
    let digits = text.strip_prefix(OPENING).and_then(|rest| rest.strip_suffix(']'));
    digits.is_some_and(|digits| digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Text as it is; every byte that is none as `\xNN`.
fn text_of(word: &OsStr) -> String {
    let mut text = String::new();
    for chunk in word.as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}
