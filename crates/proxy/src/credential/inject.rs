//! Puts the secret where the dummy stands. Pure: it says what to change, the caller changes it.

use base64::Engine;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::Line;
use crate::config::{Inject, Route, Secret};

/// Padding is often left out.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What is left out of every request to a service, so that its answers can be read (see `answer`).
pub const LEFT_OUT: &[&str] = &["accept-encoding", "range", "if-range", "sec-websocket-extensions"];
/// What is added in its place.
pub const ADDED: (&str, &str) = ("accept-encoding", "identity");

/// What a request needs so that it carries the secret.
#[derive(Debug, PartialEq, Eq)]
pub enum Change {
    /// Every header of this name is removed, and this one is put.
    Header { name: String, value: Secret },
    /// The target (path and query) becomes this one.
    Target(Secret),
}

/// A credential that belongs into a request.
#[derive(Debug, PartialEq, Eq)]
pub struct Injection<'a> {
    /// The route's name.
    pub credential: &'a str,
    pub change: Change,
}

/// Whether a request has the route's dummy where the secret would go.
pub fn shows(route: &Route, target: &str, headers: &[Line<'_>]) -> bool {
    change(route, "", target, headers).is_some()
}

/// Whether a header is nothing but the dummy, so that nobody but this proxy has a use for it.
pub fn is_dummy(route: &Route, value: &[u8]) -> bool {
    carries(value, &route.dummy)
}

/// What a route adds to a request that shows its dummy; none: it goes on as it is.
pub fn injection<'a>(route: &'a Route, target: &str, headers: &[Line<'_>]) -> Option<Injection<'a>> {
    let change = change(route, route.secret()?.reveal(), target, headers)?;
    Some(Injection { credential: &route.name, change })
}

/// What puts the secret where the dummy stands; none where it stands nowhere.
fn change(route: &Route, secret: &str, target: &str, headers: &[Line<'_>]) -> Option<Change> {
    let shown = |name: &str| {
        let same = |(other, _): &&Line<'_>| other.eq_ignore_ascii_case(name);
        headers.iter().filter(same).any(|(_, value)| carries(value, &route.dummy))
    };
    let header =
        |name: &str, value: String| Change::Header { name: name.to_owned(), value: Secret::new(value) };
    match &route.inject {
        Inject::Header { name, format } => {
            shown(name).then(|| header(name, format.replacen("{}", secret, 1)))
        }
        Inject::Basic { user } => shown("authorization").then(|| {
            header("Authorization", format!("Basic {}", STANDARD.encode(format!("{user}:{secret}"))))
        }),
        Inject::Query { name } => {
            query(target, name, &route.dummy, secret).map(Secret::new).map(Change::Target)
        }
        Inject::Path { pattern, replacement } => {
            path(target, (pattern, replacement), &route.dummy, secret).map(Secret::new).map(Change::Target)
        }
    }
}

/// The target with the replacement where the pattern is; none where it is not, or the dummy not in it.
fn path(target: &str, (pattern, replacement): (&str, &str), dummy: &str, secret: &str) -> Option<String> {
    let end = target.find('?').unwrap_or(target.len());
    let (path, query) = target.split_at(end);
    let shown = pattern.replacen("{}", dummy, 1);
    // A longer word that begins like the dummy is not the dummy.
    let ends = |after: &str| !pattern.ends_with("{}") || after.is_empty() || after.starts_with('/');
    let found = path.match_indices(&shown).find(|(at, _)| ends(&path[at + shown.len()..]));
    let (at, _) = found?;
    let put = replacement.replacen("{}", &encoded_in(secret, b"-._~!$&'()*+,=:@"), 1);
    Some(format!("{}{put}{}{query}", &path[..at], &path[at + shown.len()..]))
}

/// Whether a header's value is the dummy: alone, after a scheme (`Bearer`, `token`), or in a basic pair.
fn carries(value: &[u8], dummy: &str) -> bool {
    let Ok(value) = std::str::from_utf8(value) else { return false };
    let words: Vec<&str> = value.split_ascii_whitespace().collect();
    match words[..] {
        [scheme, pair] if scheme.eq_ignore_ascii_case("basic") => LENIENT
            .decode(pair)
            .ok()
            .and_then(|pair| String::from_utf8(pair).ok())
            .and_then(|pair| pair.split_once(':').map(|(user, word)| same(user, dummy) || same(word, dummy)))
            .unwrap_or(false),
        [word] | [_, word] => same(word, dummy),
        _ => false,
    }
}

/// Takes the same time wherever the two differ.
fn same(word: &str, dummy: &str) -> bool {
    word.len() == dummy.len()
        && word.bytes().zip(dummy.bytes()).fold(0, |differ, (one, other)| differ | (one ^ other)) == 0
}

/// The target with the secret as the one parameter of that name; none where the dummy is not its value.
fn query(target: &str, name: &str, dummy: &str, secret: &str) -> Option<String> {
    let (path, query) = target.split_once('?')?;
    let named = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(key) == name.as_bytes()).then(|| decoded(value))
    };
    if !query.split('&').any(|pair| named(pair).is_some_and(|value| value == dummy.as_bytes())) {
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

/// With percent signs for everything but letters, digits and what is `plain` there.
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
