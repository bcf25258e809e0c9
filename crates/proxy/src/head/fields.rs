//! Header fields.

use std::fmt;

use super::{Framing, Malformed, Version, is_token};

/// One header field, with its name as received.
#[derive(Clone, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub value: Vec<u8>,
}

/// Hides the value, which may be a credential.
impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: …", self.name)
    }
}

impl Field {
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// Hop-by-hop fields, which are not forwarded. `Content-Length` is here because the length is always written anew.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Header fields of a head, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<Field>);

impl Fields {
    pub(super) fn parse(lines: &[&[u8]]) -> Result<Fields, Malformed> {
        lines.iter().map(|line| parse(line)).collect::<Result<_, _>>().map(Fields)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Field> {
        self.0.iter()
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |field| field.is(name)).map(|field| field.value.as_slice())
    }

    /// Value of a field that occurs exactly once; `None` otherwise.
    pub fn only(&self, name: &str) -> Option<&[u8]> {
        let mut all = self.0.iter().filter(|field| field.is(name));
        let first = all.next()?;
        all.next().is_none().then_some(first.value.as_slice())
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|field| !field.is(name));
    }

    /// Replaces the value of every field; fields for which `value` returns `None` are removed.
    pub(crate) fn change(&mut self, value: impl Fn(&Field) -> Option<Vec<u8>>) {
        self.0.retain_mut(|field| value(field).map(|value| field.value = value).is_some());
    }

    /// Appends a field. Name and value are the caller's own and not checked.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) {
        self.0.push(Field { name: name.into(), value: value.into() });
    }

    /// Whether a comma-separated list has this word.
    pub fn lists(&self, name: &str, word: &str) -> bool {
        self.words(name).any(|listed| listed.eq_ignore_ascii_case(word.as_bytes()))
    }

    fn words<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.all(name).flat_map(|value| value.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii)
    }

    /// Fields without those for this hop only, by their name or by `Connection`.
    pub fn end_to_end(&self) -> impl Iterator<Item = &Field> {
        self.iter().filter(|field| {
            !HOP_BY_HOP.iter().any(|name| field.is(name))
                && !field.name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("proxy-"))
                && !self.lists("connection", &field.name)
        })
    }

    /// Framing of the body according to the fields; `None` if they have none.
    pub(super) fn framing(&self, version: Version) -> Result<Option<Framing>, Malformed> {
        let mut lengths = self.all("content-length");
        let mut encodings = self.all("transfer-encoding");
        match (lengths.next(), encodings.next()) {
            (None, None) => Ok(None),
            (Some(length), None) if lengths.next().is_none() => {
                decimal(length).map(|length| Some(Framing::Length(length))).ok_or(Malformed::Length)
            }
            (None, Some(encoding)) => {
                let chunked = encoding.eq_ignore_ascii_case(b"chunked")
                    && encodings.next().is_none()
                    && version == Version::Http11;
                if chunked { Ok(Some(Framing::Chunked)) } else { Err(Malformed::TransferEncoding) }
            }
            _ => Err(Malformed::AmbiguousLength),
        }
    }

    /// Whether the sender wants the connection to stay open.
    pub(super) fn stays(&self, version: Version) -> bool {
        let closes = self.lists("connection", "close") || self.lists("proxy-connection", "close");
        version == Version::Http11 && !closes
    }
}

fn parse(line: &[u8]) -> Result<Field, Malformed> {
    if line.first().is_some_and(|byte| *byte == b' ' || *byte == b'\t') {
        return Err(Malformed::Folded);
    }
    let colon = line.iter().position(|byte| *byte == b':').ok_or(Malformed::Field)?;
    let name = &line[..colon];
    if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
        return Err(Malformed::Field);
    }
    let name = str::from_utf8(name).map_err(|_| Malformed::Field)?.to_owned();
    Ok(Field { name, value: trim(&line[colon + 1..]).to_vec() })
}

/// Value without surrounding spaces and tabs.
fn trim(value: &[u8]) -> &[u8] {
    let blank = |byte: &u8| *byte != b' ' && *byte != b'\t';
    let start = value.iter().position(blank).unwrap_or(value.len());
    let end = value.iter().rposition(blank).map_or(start, |last| last + 1);
    &value[start..end]
}

/// Parses digits only, and few enough that no peer's integer overflows.
fn decimal(text: &[u8]) -> Option<u64> {
    let digits = (1..=18).contains(&text.len()) && text.iter().all(u8::is_ascii_digit);
    str::from_utf8(text).ok().filter(|_| digits)?.parse().ok()
}
