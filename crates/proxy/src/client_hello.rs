//! Server name (SNI) in a TLS ClientHello.
//!
//! A pure function over the bytes that a client has sent so far. The message may be split into any records and
//! segments. With ECH the outer name is the one seen here. A ClientHello longer than [`MAX_HELLO`] is malformed.

use nono_policy::host_rule::Host;
use thiserror::Error;

/// Maximum size of a ClientHello: enough for post-quantum key shares and several tickets.
pub const MAX_HELLO: usize = 16 << 10;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const MAX_RECORD: usize = 1 << 14;

/// Server name, in canonical spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerName(pub Host);

/// Reason why no name was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unread {
    #[error("incomplete TLS ClientHello")]
    Incomplete,
    #[error("malformed TLS ClientHello")]
    Malformed,
}

/// Class of the first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    Handshake,
    /// A server could read a ClientHello here that [`parse`] does not: another record comes first, or it is SSL 2.
    Unusual,
    /// More bytes are needed.
    Partial,
    Other,
}

pub fn opening(bytes: &[u8]) -> Opening {
    match bytes {
        [HANDSHAKE, ..] => Opening::Handshake,
        // The record types; or a short SSL 2 length and the message type. Telnet's 255 would be too long a length.
        [0x14..=0x18, ..] | [0x80..=0xfe, _, CLIENT_HELLO, ..] => Opening::Unusual,
        [0x80..=0xfe] | [0x80..=0xfe, _] => Opening::Partial,
        _ => Opening::Other,
    }
}

/// Reads the name; `None` for a ClientHello without one.
pub fn parse(bytes: &[u8]) -> Result<Option<ServerName>, Unread> {
    let message = message(bytes)?;
    hello(&message).ok_or(Unread::Malformed)?.map(name).transpose()
}

fn name(bytes: &[u8]) -> Result<ServerName, Unread> {
    let text = str::from_utf8(bytes).ok().filter(|text| text.is_ascii());
    text.and_then(|text| text.parse().ok()).map(ServerName).ok_or(Unread::Malformed)
}

/// Joins the handshake message from its records.
fn message(bytes: &[u8]) -> Result<Vec<u8>, Unread> {
    let mut message = Vec::new();
    let mut rest = bytes;
    loop {
        if let [kind, high, middle, low, body @ ..] = message.as_slice() {
            let length = usize::from(*high) << 16 | usize::from(*middle) << 8 | usize::from(*low);
            if *kind != CLIENT_HELLO || length > MAX_HELLO {
                return Err(Unread::Malformed);
            }
            if body.len() >= length {
                return Ok(body[..length].to_vec());
            }
        }
        let (header, after) = rest.split_at_checked(5).ok_or_else(|| incomplete_record(rest))?;
        let length = usize::from(header[3]) << 8 | usize::from(header[4]);
        if header[0] != HANDSHAKE || header[1] != 3 || length == 0 || length > MAX_RECORD {
            return Err(Unread::Malformed);
        }
        message.extend_from_slice(&after[..length.min(after.len())]);
        rest = after.get(length..).unwrap_or_default();
        if after.len() < length && !is_whole(&message) {
            return Err(if wrong_start(&message) { Unread::Malformed } else { Unread::Incomplete });
        }
    }
}

fn incomplete_record(rest: &[u8]) -> Unread {
    let wrong =
        rest.first().is_some_and(|kind| *kind != HANDSHAKE) || rest.get(1).is_some_and(|major| *major != 3);
    if wrong { Unread::Malformed } else { Unread::Incomplete }
}

fn wrong_start(message: &[u8]) -> bool {
    message.first().is_some_and(|kind| *kind != CLIENT_HELLO)
}

fn is_whole(message: &[u8]) -> bool {
    match message {
        [_, high, middle, low, body @ ..] => {
            body.len() >= usize::from(*high) << 16 | usize::from(*middle) << 8 | usize::from(*low)
        }
        _ => false,
    }
}

/// Reader that takes bytes from the front.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn short(&mut self) -> Option<usize> {
        self.take(1).map(|bytes| usize::from(bytes[0]))
    }

    fn long(&mut self) -> Option<usize> {
        self.take(2).map(|bytes| usize::from(bytes[0]) << 8 | usize::from(bytes[1]))
    }

    fn vector(&mut self) -> Option<Cursor<'a>> {
        let length = self.long()?;
        self.take(length).map(Cursor)
    }
}

/// Finds the name in a ClientHello. `None`: malformed; `Some(None)`: no name.
#[allow(clippy::option_option)]
fn hello(message: &[u8]) -> Option<Option<&[u8]>> {
    let mut hello = Cursor(message);
    hello.take(2 + 32)?;
    let session = hello.short().filter(|length| *length <= 32)?;
    hello.take(session)?;
    let ciphers = hello.vector()?;
    if ciphers.0.is_empty() || ciphers.0.len() % 2 != 0 {
        return None;
    }
    let compressions = hello.short().filter(|length| *length > 0)?;
    hello.take(compressions)?;
    if hello.0.is_empty() {
        return Some(None);
    }
    let mut extensions = hello.vector().filter(|_| hello.0.is_empty())?;
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.long()?;
        let body = extensions.vector()?;
        if kind == 0 {
            let name = server_name(body)?;
            if found.replace(name).is_some() {
                return None;
            }
        }
    }
    Some(found)
}

/// Reads the extension, which holds one name of type `host_name`.
fn server_name(mut body: Cursor<'_>) -> Option<&[u8]> {
    let mut list = body.vector().filter(|_| body.0.is_empty())?;
    list.short().filter(|kind| *kind == 0)?;
    let name = list.vector().filter(|_| list.0.is_empty())?;
    Some(name.0).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests;
