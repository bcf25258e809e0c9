//! Redaction of addresses and forms: passwords before an `@`, and values of secret keys.

use super::arguments::is_name_part;
use super::{Redactor, names::normal, steps};

/// Length from which a user name is probably a token.
const LONG_USER: usize = 20;
/// Schemes in which a user name without a password is an ordinary login name.
const NAMED: &[&str] = &["ssh", "git", "git+ssh", "ssh+git", "sftp", "rsync", "svn+ssh", "scp"];

impl Redactor {
    /// Redacts a word without a name. Known shapes were removed already.
    pub(super) fn plain(&self, word: &str, depth: usize) -> String {
        steps::count(word.len());
        if depth == 0 {
            return self.mark(word);
        }
        let word = self.json(word);
        self.pairs(&self.listed(&self.users(&word)), depth)
    }

    /// Redacts `scheme://user:password@host` everywhere in the word, and `user:password@host`.
    fn users(&self, word: &str) -> String {
        if !word.contains("://") {
            return self.bare_user(word);
        }
        let mut out = String::new();
        let mut rest = word;
        // Searched once: it is the same for every `://` before it.
        let last = word.rfind('@');
        while let Some(at) = rest.find("://") {
            let (scheme, after) = rest.split_at(at + 3);
            out.push_str(scheme);
            rest = after;
            let last = last.and_then(|last| last.checked_sub(word.len() - after.len()));
            let Some(end) = user_end(after, last) else { continue };
            let name: String = scheme[..at].chars().rev().take_while(|c| is_scheme(*c)).collect();
            let name: String = name.chars().rev().collect::<String>().to_ascii_lowercase();
            out.push_str(&self.userinfo(&after[..end], NAMED.contains(&&*name)));
            rest = &after[end..];
        }
        out + rest
    }

    fn userinfo(&self, userinfo: &str, named: bool) -> String {
        match userinfo.split_once(':') {
            None if named => userinfo.to_owned(),
            None => self.mark(userinfo),
            Some((user, password @ ("" | "x-oauth-basic"))) => format!("{}:{password}", self.mark(user)),
            Some((user, password)) if user.len() >= LONG_USER => {
                format!("{}:{}", self.mark(user), self.mark(&decoded(password)))
            }
            Some((user, password)) => format!("{user}:{}", self.mark(&decoded(password))),
        }
    }

    fn bare_user(&self, word: &str) -> String {
        let told = || {
            let (user, rest) = word.split_once(':')?;
            let (password, host) = rest.rsplit_once('@')?;
            let plain = |text: &str| !text.is_empty() && !text.contains(['/', '@', '?', '=']);
            (plain(user) && plain(host) && !password.is_empty())
                .then(|| format!("{user}:{}@{host}", self.mark(password)))
        };
        told().unwrap_or_else(|| word.to_owned())
    }

    /// Redacts `key=value` after `?` or `#` and between `&`, also without any `?`.
    fn pairs(&self, word: &str, depth: usize) -> String {
        match word.find(['?', '&', '#']) {
            None => word.to_owned(),
            Some(at) if word[at..].starts_with('&') => self.query(word, depth),
            Some(at) => format!("{}{}", &word[..=at], self.query(&word[at + 1..], depth)),
        }
    }

    fn query(&self, query: &str, depth: usize) -> String {
        let pairs = query.split('&').map(|pair| self.pair(pair, depth));
        pairs.collect::<Vec<_>>().join("&")
    }

    /// Redacts the text between two `&`, with parts between `#` and `;`.
    fn pair(&self, pair: &str, depth: usize) -> String {
        let mut out = String::new();
        let mut rest = pair;
        loop {
            let end = rest.find(['#', ';']);
            let part = &rest[..end.unwrap_or(rest.len())];
            steps::count(part.len());
            match part.split_once('=') {
                // Text after a `#` or `;` in a secret may belong to it.
                Some((key, _)) if self.is_secret_key(key) => {
                    let value = &rest[key.len() + 1..];
                    return out + key + "=" + &self.mark(&decoded(value));
                }
                Some((key, value)) => out.extend([key, "=", &self.inner(value, depth)]),
                None => out.push_str(part),
            }
            let Some(end) = end else { return out };
            out.push_str(&rest[end..=end]);
            rest = &rest[end + 1..];
        }
    }

    /// Redacts lists before any query, as for databases and mounts: `a=b;password=c`, `a=b,password=c` and
    /// `/a;password=c`. A value extends to the next name.
    fn listed(&self, word: &str) -> String {
        let query = word.find(['?', '&', '#']).unwrap_or(word.len());
        let mut out = String::new();
        let (mut done, mut from) = (0, 0);
        while let Some(equals) = word.get(from..query).and_then(|rest| rest.find('=')).map(|at| from + at) {
            let name = &word[from..equals];
            steps::count(name.len());
            let name = name.rsplit(|c| !is_name_part(c)).next().unwrap_or_default();
            let last = name.rsplit(['.', '[']).next().unwrap_or_default();
            from = equals + 1;
            if self.is_secret_name(name) || self.is_secret_name(last.trim_end_matches(']')) {
                let end = from + value_end(&word[from..]);
                out.push_str(&word[done..from]);
                out.push_str(&self.mark(&word[from..end]));
                (done, from) = (end, end);
            }
        }
        out.push_str(&word[done..]);
        out
    }

    /// Redacts a value that may be an address itself, plain or percent-encoded.
    fn inner(&self, value: &str, depth: usize) -> String {
        let clear = decoded(value);
        if clear == value || clear == self.plain(&self.shapes(&clear), depth - 1) {
            self.plain(value, depth - 1)
        } else {
            self.mark(&clear)
        }
    }

    fn is_secret_key(&self, key: &str) -> bool {
        // `filter[token]`, `a.b.token`, `/path/token`: the last name is what counts, or the whole.
        let key = normal(&decoded(key));
        let last = key.trim_end_matches(']').rsplit(['[', '.', '/', '?']).next().unwrap_or_default();
        [&*key, last].iter().any(|name| {
            self.table.query_keys.has(name) || self.table.flags.has(name) || self.table.env.has(name)
        })
    }
}

/// Position of the `@` of an authority. A `/`, `?` or `#` ends it, unless the text before cannot be a host with a port:
/// then it is part of a password, and the last `@` of the word counts.
fn user_end(after: &str, last: Option<usize>) -> Option<usize> {
    let end = after.find(|c: char| matches!(c, '/' | '?' | '#' | '\\') || c.is_whitespace());
    let authority = &after[..end.unwrap_or(after.len())];
    steps::count(authority.len());
    if let Some(at) = authority.rfind('@') {
        return Some(at);
    }
    let port = authority.rsplit_once(':').filter(|(host, _)| !host.starts_with('['))?.1;
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    if is_port { None } else { last }
}

/// Position of a `;` or `,` that is followed by a name and a `=`.
fn value_end(text: &str) -> usize {
    let is_next = |at: &usize| {
        let rest = &text[at + 1..];
        let name = rest.find(|c| !is_name_part(c));
        steps::count(name.unwrap_or(rest.len()));
        name.is_some_and(|name| name > 0 && rest[name..].starts_with('='))
    };
    let end = text.match_indices([';', ',']).map(|(at, _)| at).find(is_next).unwrap_or(text.len());
    steps::count(end);
    end
}

fn is_scheme(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')
}

/// Percent-decoded text; unchanged if the result is not UTF-8.
fn decoded(text: &str) -> String {
    steps::count(text.len());
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes
            .get(at + 1..at + 3)
            .filter(|hex| bytes[at] == b'%' && hex.iter().all(u8::is_ascii_hexdigit));
        let byte = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        out.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}
