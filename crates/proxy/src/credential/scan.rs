//! Scanner that finds a secret in a server's response, however it is split, and replaces it by the placeholder.
//!
//! A server that shows a request (an error page, a redirect, an echo) shows it in the spelling of its page: as it is,
//! with percent signs, in JSON or HTML escapes, or inside a base64 text, and any mixture of these. A secret is
//! therefore kept as a sequence of bytes each of which has several spellings, and all sequences are matched in one
//! pass. The shortest match at the first position where one begins is replaced, so the result does not depend on how
//! the stream was split.
//!
//! Not found: what the server has transformed in other ways (hashed, reversed, cut into pieces with text between). A
//! server that works together with the command can do that; a credential goes only to a server the user trusts with it.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Minimum length from which a part of the secret at the very end of a body counts as the secret.
const TELLING: usize = 8;

/// Forms of the secrets to hide, and their replacements.
pub struct Forms {
    all: Vec<SecretForm>,
    /// Bytes and pairs of bytes that can begin a form: most of a text is skipped by these alone.
    begins: [bool; 256],
    pairs: Vec<bool>,
    spellings: Vec<Vec<Vec<u8>>>,
}

/// A secret, and its placeholder.
#[derive(Clone, Copy)]
pub struct Hidden<'a> {
    pub secret: &'a str,
    pub placeholder: &'a str,
    /// User name of basic authentication, if the secret is sent that way.
    pub user: Option<&'a str>,
}

impl fmt::Debug for Hidden<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hidden(…)")
    }
}

struct SecretForm {
    bytes: Vec<u8>,
    replacement: Vec<u8>,
}

impl fmt::Debug for Forms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Forms(…)")
    }
}

impl Hidden<'_> {
    fn forms(&self) -> Vec<SecretForm> {
        let form = |bytes: String, replacement: String| SecretForm {
            bytes: bytes.into_bytes(),
            replacement: replacement.into_bytes(),
        };
        let mut forms = vec![form(self.secret.to_owned(), self.placeholder.to_owned())];
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            if let Some(user) = self.user {
                let pair = |word: &str| engine.encode(format!("{user}:{word}"));
                forms.push(form(pair(self.secret), pair(self.placeholder)));
            }
            for before in 0..3 {
                forms.push(form(inside_base64(&engine, self.secret, before), self.placeholder.to_owned()));
            }
        }
        forms
    }
}

impl Forms {
    pub fn new(hidden: &[Hidden<'_>]) -> Forms {
        let mut unique: Vec<SecretForm> = Vec::new();
        for form in hidden.iter().flat_map(Hidden::forms) {
            let again = unique.iter().any(|known| known.bytes == form.bytes);
            if form.bytes.len() >= TELLING && !again {
                unique.push(form);
            }
        }
        let spellings: Vec<_> = (0..=u8::MAX).map(spellings).collect();
        let mut forms = Forms { all: unique, begins: [false; 256], pairs: vec![false; 1 << 16], spellings };
        forms.note_beginnings();
        forms
    }

    fn note_beginnings(&mut self) {
        for form in &self.all {
            for first in &self.spellings[usize::from(form.bytes[0])] {
                self.begins[usize::from(first[0])] = true;
                let seconds: Vec<u8> = if let Some(byte) = first.get(1) {
                    vec![byte.to_ascii_lowercase(), byte.to_ascii_uppercase()]
                } else {
                    let next = form.bytes.get(1).map(|byte| &self.spellings[usize::from(*byte)]);
                    next.into_iter().flatten().map(|spelling| spelling[0]).collect()
                };
                for second in seconds {
                    self.pairs[pair(first[0], second)] = true;
                }
            }
        }
    }

    /// First position where a form could begin.
    fn candidate(&self, text: &[u8]) -> Option<usize> {
        let within = text.windows(2).position(|two| self.pairs[pair(two[0], two[1])]);
        let last = || text.len().checked_sub(1).filter(|last| self.begins[usize::from(text[*last])]);
        within.or_else(last)
    }

    /// The text without the secret.
    pub fn scrub(self: &Arc<Forms>, text: &[u8]) -> Vec<u8> {
        let mut clean = Vec::with_capacity(text.len());
        let mut scanner = Scanner::new(self.clone());
        scanner.push(text, &mut clean);
        scanner.finish(&mut clean);
        clean
    }

    /// Matches the forms at the beginning of `text`, which is not empty.
    fn look(&self, text: &[u8], paths: &mut Paths) -> Seen<'_> {
        paths.now.clear();
        paths.now.extend((0..self.all.len()).map(|form| MatchPosition {
            form,
            byte: 0,
            spelling: None,
            at: 0,
        }));
        for (index, &said) in text.iter().enumerate() {
            paths.next.clear();
            for place in &paths.now {
                if let Some(form) = self.step(*place, said, &mut paths.next) {
                    return Seen::Whole(form, index + 1);
                }
            }
            if paths.next.is_empty() {
                return Seen::Nothing;
            }
            std::mem::swap(&mut paths.now, &mut paths.next);
        }
        let deepest = paths.now.iter().rev().max_by_key(|place| place.byte);
        let telling = deepest.filter(|place| place.byte >= TELLING);
        Seen::Beginning(telling.map(|place| &self.all[place.form]))
    }

    /// Advances one position by one byte. Returns the form that it completes, if any.
    fn step(&self, place: MatchPosition, said: u8, next: &mut Vec<MatchPosition>) -> Option<&SecretForm> {
        let form = &self.all[place.form];
        let spellings = &self.spellings[usize::from(form.bytes[place.byte])];
        for (index, spelling) in spellings.iter().enumerate() {
            if place.spelling.is_some_and(|only| only != index) {
                continue;
            }
            let same = if spelling.len() == 1 {
                spelling[0] == said
            } else {
                spelling[place.at].eq_ignore_ascii_case(&said)
            };
            if !same {
                continue;
            }
            let done = place.at + 1 == spelling.len();
            if done && place.byte + 1 == form.bytes.len() {
                return Some(form);
            }
            let further = if done {
                MatchPosition { byte: place.byte + 1, spelling: None, at: 0, ..place }
            } else {
                MatchPosition { spelling: Some(index), at: place.at + 1, ..place }
            };
            if !next.contains(&further) {
                next.push(further);
            }
        }
        None
    }
}

fn pair(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

/// Characters of a base64 text that depend on the secret alone, when `before` bytes precede it in its group.
fn inside_base64(engine: &impl Engine, secret: &str, before: usize) -> String {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(secret.as_bytes());
    let text = engine.encode(&bytes);
    let first = (before * 8).div_ceil(6);
    let whole = bytes.len() * 8 / 6;
    text[first.min(whole)..whole].to_owned()
}

/// Spellings of a byte: literal, in a URL, in JSON, in HTML. Longer ones are compared without case.
fn spellings(byte: u8) -> Vec<Vec<u8>> {
    let mut all = vec![
        vec![byte],
        format!("%{byte:02x}").into_bytes(),
        format!("\\u{byte:04x}").into_bytes(),
        format!("\\x{byte:02x}").into_bytes(),
        format!("&#{byte};").into_bytes(),
        format!("&#x{byte:x};").into_bytes(),
    ];
    let named: &[&str] = match byte {
        b' ' => &["+"],
        b'"' => &["\\\"", "&quot;"],
        b'\'' => &["\\'", "&apos;"],
        b'\\' => &["\\\\"],
        b'/' => &["\\/"],
        b'&' => &["&amp;"],
        b'<' => &["&lt;"],
        b'>' => &["&gt;"],
        _ => &[],
    };
    all.extend(named.iter().map(|name| name.as_bytes().to_vec()));
    all
}

enum Seen<'a> {
    Nothing,
    /// The text may be the beginning of a form; the form is given if enough of it is there to count as the secret.
    Beginning(Option<&'a SecretForm>),
    /// A complete form, and its length in bytes.
    Whole(&'a SecretForm, usize),
}

/// Position within one form.
#[derive(Clone, Copy, PartialEq)]
struct MatchPosition {
    form: usize,
    byte: usize,
    spelling: Option<usize>,
    at: usize,
}

#[derive(Default)]
struct Paths {
    now: Vec<MatchPosition>,
    next: Vec<MatchPosition>,
}

pub struct Scanner {
    forms: Arc<Forms>,
    /// Held-back bytes that could be the beginning of a form.
    held: Vec<u8>,
    paths: Paths,
    found: usize,
}

impl fmt::Debug for Scanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scanner").field("found", &self.found).finish_non_exhaustive()
    }
}

impl Scanner {
    pub fn new(forms: Arc<Forms>) -> Scanner {
        Scanner { forms, held: Vec::new(), paths: Paths::default(), found: 0 }
    }

    /// Number of times the secret was in the stream so far.
    pub fn found(&self) -> usize {
        self.found
    }

    /// Appends to `clean` the bytes that may be forwarded now.
    pub fn push(&mut self, input: &[u8], clean: &mut Vec<u8>) {
        let joined;
        let text = if self.held.is_empty() {
            input
        } else {
            joined = [std::mem::take(&mut self.held).as_slice(), input].concat();
            &joined
        };
        let kept = self.walk(text, clean, false);
        self.held.extend_from_slice(&text[kept..]);
    }

    /// Appends the rest at the end of the stream. For a stream that broke off, drop the scanner instead.
    pub fn finish(mut self, clean: &mut Vec<u8>) -> usize {
        let held = std::mem::take(&mut self.held);
        self.walk(&held, clean, true);
        self.found
    }

    /// Processes `text` and returns the start of the part that is held back.
    fn walk(&mut self, text: &[u8], clean: &mut Vec<u8>, over: bool) -> usize {
        let forms = self.forms.clone();
        let mut at = 0;
        while let Some(plain) = forms.candidate(&text[at..]) {
            clean.extend_from_slice(&text[at..at + plain]);
            at += plain;
            match forms.look(&text[at..], &mut self.paths) {
                Seen::Whole(form, length) => {
                    clean.extend_from_slice(&form.replacement);
                    self.found += 1;
                    at += length;
                }
                Seen::Beginning(_) if !over => return at,
                Seen::Beginning(Some(form)) => {
                    clean.extend_from_slice(&form.replacement);
                    self.found += 1;
                    return text.len();
                }
                Seen::Beginning(None) | Seen::Nothing => {
                    clean.push(text[at]);
                    at += 1;
                }
            }
        }
        clean.extend_from_slice(&text[at..]);
        text.len()
    }
}

#[cfg(test)]
mod tests;
