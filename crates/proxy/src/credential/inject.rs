//! Insertion of the secret in place of the placeholder. Pure: it returns the change, the caller applies it.

use base64::Engine;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::HeaderLine;
use crate::access;
use crate::config::{Inject, Route, Secret};

/// Base64 decoder that accepts missing padding, which is common.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Headers removed from every request to a service, so that its responses can be scanned (see `answer`).
pub const LEFT_OUT: &[&str] = &["accept-encoding", "range", "if-range", "sec-websocket-extensions"];
/// Header added instead.
pub const ADDED: (&str, &str) = ("accept-encoding", "identity");

/// Change to a request that inserts the secret.
#[derive(Debug, PartialEq, Eq)]
pub enum HeaderInjection {
    /// Replaces every header of this name by this one.
    Header { name: String, value: Secret },
    /// Replaces the target (path and query).
    Target(Secret),
}

/// Credential to insert into a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Injection<'a> {
    /// The route's name.
    pub credential: &'a str,
    pub change: HeaderInjection,
}

/// Whether a request has the route's placeholder where the secret would go.
pub fn shows(route: &Route, target: &str, headers: &[HeaderLine<'_>]) -> bool {
    change(route, "", target, headers).is_some()
}

/// Whether a header consists of the placeholder only, so that only this proxy has a use for it.
pub fn is_placeholder(route: &Route, value: &[u8]) -> bool {
    carries(value, &route.placeholder)
}

/// Credential that a route inserts into a request with its placeholder; `None` if the request stays as it is.
pub fn injection<'a>(route: &'a Route, target: &str, headers: &[HeaderLine<'_>]) -> Option<Injection<'a>> {
    let change = change(route, route.secret()?.reveal(), target, headers)?;
    Some(Injection { credential: &route.name, change })
}

/// Change that replaces the placeholder by the secret; `None` if the request has no placeholder.
fn change(route: &Route, secret: &str, target: &str, headers: &[HeaderLine<'_>]) -> Option<HeaderInjection> {
    let shown = |name: &str| {
        let same = |(other, _): &&HeaderLine<'_>| other.eq_ignore_ascii_case(name);
        headers.iter().filter(same).any(|(_, value)| carries(value, &route.placeholder))
    };
    let header = |name: &str, value: String| HeaderInjection::Header {
        name: name.to_owned(),
        value: Secret::new(value),
    };
    match &route.inject {
        Inject::Header { name, format } => {
            shown(name).then(|| header(name, format.replacen("{}", secret, 1)))
        }
        Inject::Basic { user } => shown("authorization").then(|| {
            header("Authorization", format!("Basic {}", STANDARD.encode(format!("{user}:{secret}"))))
        }),
        Inject::Query { name } => {
            query(target, name, &route.placeholder, secret).map(Secret::new).map(HeaderInjection::Target)
        }
        Inject::Path { pattern, replacement } => {
            path(target, (pattern, replacement), &route.placeholder, secret)
                .map(Secret::new)
                .map(HeaderInjection::Target)
        }
    }
}

/// Target with the pattern replaced; `None` if the pattern with the placeholder does not occur.
fn path(
    target: &str,
    (pattern, replacement): (&str, &str),
    placeholder: &str,
    secret: &str,
) -> Option<String> {
    let end = target.find('?').unwrap_or(target.len());
    let (path, query) = target.split_at(end);
    let shown = pattern.replacen("{}", placeholder, 1);
    // A longer word that begins with the placeholder is not the placeholder.
    let ends = |after: &str| !pattern.ends_with("{}") || after.is_empty() || after.starts_with('/');
    let found = path.match_indices(&shown).find(|(at, _)| ends(&path[at + shown.len()..]));
    let (at, _) = found?;
    let put = replacement.replacen("{}", &encoded_in(secret, b"-._~!$&'()*+,=:@"), 1);
    Some(format!("{}{put}{}{query}", &path[..at], &path[at + shown.len()..]))
}

/// Whether a header's value is the placeholder: alone, after a scheme (`Bearer`, `token`), or in a basic pair.
fn carries(value: &[u8], placeholder: &str) -> bool {
    let Ok(value) = std::str::from_utf8(value) else { return false };
    let words: Vec<&str> = value.split_ascii_whitespace().collect();
    match words[..] {
        [scheme, pair] if scheme.eq_ignore_ascii_case("basic") => LENIENT
            .decode(pair)
            .ok()
            .and_then(|pair| String::from_utf8(pair).ok())
            .and_then(|pair| {
                pair.split_once(':').map(|(user, word)| same(user, placeholder) || same(word, placeholder))
            })
            .unwrap_or(false),
        [word] | [_, word] => same(word, placeholder),
        _ => false,
    }
}

fn same(word: &str, placeholder: &str) -> bool {
    access::same(word.as_bytes(), placeholder.as_bytes())
}

/// Target with the secret as the only parameter of that name; `None` if its value is not the placeholder.
fn query(target: &str, name: &str, placeholder: &str, secret: &str) -> Option<String> {
    let (path, query) = target.split_once('?')?;
    let named = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(key) == name.as_bytes()).then(|| decoded(value))
    };
    if !query.split('&').any(|pair| named(pair).is_some_and(|value| value == placeholder.as_bytes())) {
        return None;
    }
    let mut put = false;
    let mut pairs = Vec::new();
    for pair in query.split('&') {
        if named(pair).is_none() {
            pairs.push(pair.to_owned());
        } else if !put {
            put = true;
            pairs.push(format!("{name}={}", encoded(secret)));
        }
    }
    Some(format!("{path}?{}", pairs.join("&")))
}

fn encoded(text: &str) -> String {
    encoded_in(text, b"-._~")
}

/// Percent-encodes everything but letters, digits and the bytes in `plain`.
fn encoded_in(text: &str, plain: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || plain.contains(&byte);
    let written = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(written).collect::<Vec<_>>().concat()
}

fn decoded(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = |at: usize| after.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        let byte = hex(0).zip(hex(1)).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                rest = &after[2..];
            }
            (b'+', _) => {
                decoded.push(b' ');
                rest = after;
            }
            (other, _) => {
                decoded.push(*other);
                rest = after;
            }
        }
    }
    decoded
}
