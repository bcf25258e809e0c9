//! Secrets recognised by their shape, anywhere in a text.
//!
//! Every position of a text is tried, so each attempt is bounded: a match is skipped as a whole, and a failure is
//! decided by a bounded number of characters. Otherwise a long text would take quadratic time.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::Redactor;
use super::steps;
use super::tokens::{head, is_start, token};
use super::webhook_urls::hook;

/// Maximum number of characters that decide whether a text is a token.
const LOOK: usize = 256;
const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const PRIVATE: &str = "PRIVATE KEY";
const PUTTY: &str = "PuTTY-User-Key-File-";

impl Redactor {
    pub(super) fn shapes(&self, text: &str) -> String {
        let text = self.each(text, private_key);
        let text =
            self.each(&text, |text, at| token(text, at).or_else(|| jwt(text, at)).or_else(|| hook(text, at)));
        self.each(&text, scheme)
    }

    /// Redacts every secret that `found` reports at a position, as the range of the secret.
    fn each(&self, text: &str, found: impl Fn(&str, usize) -> Option<(usize, usize)>) -> String {
        let mut out = String::new();
        let (mut done, mut at) = (0, 0);
        while at < text.len() {
            steps::count(1);
            match found(text, at) {
                Some((start, end)) if end > at => {
                    out.push_str(&text[done..start]);
                    out.push_str(&self.mark(&text[start..end]));
                    (done, at) = (end, end);
                }
                _ => at += text[at..].chars().next().map_or(1, char::len_utf8),
            }
        }
        out.push_str(&text[done..]);
        out
    }
}

/// Number of bytes at the beginning of `text` that can be part of a token.
fn run(text: &str, more: &[u8]) -> usize {
    let is_part =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || more.contains(&byte);
    let length = text.bytes().position(|byte| !is_part(byte)).unwrap_or(text.len());
    steps::count(length);
    length
}

/// Range of a JWT: three parts between dots, the first of which is a JSON object.
fn jwt(text: &str, at: usize) -> Option<(usize, usize)> {
    let rest = &text[at..];
    if !rest.starts_with("eyJ") || !is_start(text, at) {
        return None;
    }
    // A text this long is a token, whatever follows.
    let first = run(head(rest, LOOK), &[]);
    let second = rest[first..].strip_prefix('.').map_or(0, |second| run(head(second, 2), &[]));
    (first == LOOK || (first >= 8 && second >= 2)).then(|| (at, at + run(rest, b".=")))
}

/// Range of a PEM private key; to the end of the text if the block does not end.
fn private_key(text: &str, at: usize) -> Option<(usize, usize)> {
    if text[at..].starts_with(PUTTY) {
        return Some((at, text.len()));
    }
    let rest = text[at..].strip_prefix(BEGIN)?;
    let name = rest.split("-----").next().unwrap_or_default();
    steps::count(name.len());
    if !name.contains(PRIVATE) {
        return None;
    }
    let after = BEGIN.len() + name.len();
    let end = text[at + after..].find(END).map(|end| at + after + end);
    let end = end.map_or(text.len(), |end| {
        let tail = &text[end + END.len()..];
        tail.find("-----").map_or(text.len(), |close| end + END.len() + close + 5)
    });
    steps::count(end - at);
    Some((at, end))
}

/// Range of the secret in `Bearer xyz`, or in `Basic` with base64 of `user:password`.
fn scheme(text: &str, at: usize) -> Option<(usize, usize)> {
    if !matches!(text.as_bytes()[at], b'b' | b'B') || !is_start(text, at) {
        return None;
    }
    let rest = &text[at..];
    let word = head(rest, "bearer".len() + 1).find(|c: char| !c.is_ascii_alphabetic())?;
    let scheme = rest[..word].to_ascii_lowercase();
    if !matches!(&*scheme, "bearer" | "basic") {
        return None;
    }
    let start = at + word + blanks(&rest[word..])?;
    let more = b".~+/=:";
    let seen = run(head(&text[start..], LOOK), more);
    let told = if scheme == "bearer" { seen >= 4 } else { is_login(&text[start..start + seen]) };
    told.then(|| (start, start + run(&text[start..], more)))
}

/// Length of blanks, literal or as encoded in an address or a form.
fn blanks(text: &str) -> Option<usize> {
    let mut rest = text;
    loop {
        let next = ["%20", "+", " ", "\t"].iter().find_map(|blank| rest.strip_prefix(blank));
        match next {
            Some(next) => rest = next,
            None => break,
        }
    }
    Some(text.len() - rest.len()).filter(|length| *length > 0)
}

fn is_login(text: &str) -> bool {
    let text = text.trim_end_matches('=');
    let decoded = STANDARD_NO_PAD.decode(text).or_else(|_| URL_SAFE_NO_PAD.decode(text));
    text.len() >= 4 && decoded.is_ok_and(|bytes| bytes.contains(&b':'))
}
