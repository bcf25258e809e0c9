//! Redaction of secrets in recorded text.
//!
//! A redacted value becomes `[redacted:xxxxxxxxxxxxxxxx]`, the beginning of a keyed digest, which only reveals whether
//! two secrets are equal. In doubt a value counts as a secret: a record with too little is a nuisance, one with too
//! much is a leak. Any bytes are accepted; the result is text.
//!
//! Limit: a secret that has neither a telling name beside it nor a known shape cannot be recognised.

mod arguments;
#[cfg(test)]
mod cases;
mod json;
mod key;
mod names;
mod shell;
mod steps;
mod table;
#[cfg(test)]
mod tests;
mod token_patterns;
mod tokens;
mod url;
mod webhook_urls;

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

use ring::hmac;

pub use key::{KeyError, RedactionKey};
pub use table::{Changes, Table};

use arguments::Words;
use names::normal;
use tokens::head;

/// Maximum nesting of words and values that is parsed; deeper values are redacted as a whole.
const DEPTH: usize = 6;
/// Number of hexadecimal digits of the keyed digest that are kept.
const DIGITS: usize = 16;
const OPENING: &str = "[redacted:";
/// Maximum length of a text; the rest is dropped, since no record holds as much.
const LONGEST: usize = 64 << 10;
/// Maximum distance before that limit at which a text may be cut, so that no word is cut in two.
const LAST_WORD: usize = 4 << 10;
/// Mark for the dropped rest.
const CUT: &str = "…";

/// Authentication schemes at the beginning of a header's value, which are not secret.
const SCHEMES: &[&str] = &["bearer", "basic", "digest", "token", "apikey", "negotiate", "aws4-hmac-sha256"];

/// Redactor of command lines, addresses, headers and variables.
#[derive(Debug)]
pub struct Redactor {
    table: Table,
    key: hmac::Key,
}

impl Redactor {
    pub fn new(table: Table, key: &RedactionKey) -> Redactor {
        Redactor { table, key: hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()) }
    }

    /// Redacts a command line. Bytes that are not UTF-8 become `\xNN`.
    pub fn argv(&self, argv: &[OsString]) -> Vec<String> {
        let mut words = Words::default();
        argv.iter().map(|word| self.word(&mut words, &self.seen(&text_of(word)), DEPTH)).collect()
    }

    /// Redacts an address, valid or not.
    pub fn url(&self, url: &str) -> String {
        self.plain(&self.seen(url), DEPTH)
    }

    pub fn header(&self, name: &str, value: &str) -> String {
        if self.is_secret_name(name) { self.header_value(value) } else { self.text(value) }
    }

    pub fn env(&self, name: &OsStr, value: &OsStr) -> String {
        let value = text_of(value);
        if self.is_secret_name(&text_of(name)) { self.mark(&value) } else { self.text(&value) }
    }

    /// Redacts other text: a message, a reason, a shell command.
    pub fn text(&self, text: &str) -> String {
        self.line(&self.seen(text), DEPTH)
    }

    /// Text cut to the maximum length, without secrets of a known shape.
    fn seen(&self, text: &str) -> String {
        self.shapes(&cut(text))
    }

    /// Replacement for a secret. An empty value and an existing replacement stay unchanged.
    fn mark(&self, secret: &str) -> String {
        steps::count(secret.len());
        if secret.is_empty() || is_mark(secret) {
            return secret.to_owned();
        }
        let digest = hmac::sign(&self.key, secret.as_bytes());
        format!("{OPENING}{}]", nono_sys::hex::encode(&digest.as_ref()[..DIGITS / 2]))
    }

    /// Redacts a header's value without its scheme, so that the same secret has the same replacement elsewhere.
    fn header_value(&self, value: &str) -> String {
        let trimmed = value.trim_start();
        let scheme = trimmed.split_once(' ').filter(|(scheme, _)| SCHEMES.contains(&&*normal(scheme)));
        match scheme {
            Some((scheme, rest)) => format!("{scheme} {}", self.mark(rest.trim())),
            None => self.mark(trimmed.trim_end()),
        }
    }

    /// Whether the name is that of a secret, as a flag, a header or a variable.
    fn is_secret_name(&self, name: &str) -> bool {
        let name = normal(name);
        let tables = [&self.table.flags, &self.table.headers, &self.table.env];
        !name.is_empty() && tables.iter().any(|names| names.has(&name))
    }
}

/// Cuts a long text at the end of a word: half a secret would not be recognised.
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

/// UTF-8 as it is, other bytes as `\xNN`.
pub(crate) fn text_of(word: &OsStr) -> String {
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
