//! The heads of HTTP/1 messages: pure functions from bytes to values.
//!
//! What two readers could take for two different messages is no message: bare line ends, folded lines, spaces before a
//! colon, control bytes, lengths said twice or in two ways. Nothing is repaired; what is passed on is written anew from
//! the values here, never copied.

mod fields;
mod request;
mod response;

use thiserror::Error;

pub use fields::{Field, Fields};
pub use request::{Form, Request, parse_request};
pub use response::{Response, parse_response};

use crate::config::Limits;

/// How far the bytes went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed<T> {
    /// `length` bytes are the head; what follows is not.
    Complete {
        head: T,
        length: usize,
    },
    Incomplete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Http10,
    Http11,
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Empty,
    Length(u64),
    Chunked,
    /// Responses only.
    UntilClose,
}

/// Why bytes are no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    #[error("the head is larger than the limit")]
    TooLarge,
    #[error("there are more header fields than the limit")]
    TooManyFields,
    #[error("a line does not end in CR LF, or has a CR or LF inside")]
    LineEnd,
    #[error("there is a control byte in it")]
    ControlByte,
    #[error("the request line is not METHOD TARGET HTTP/1.1")]
    RequestLine,
    #[error("the status line is not HTTP/1.1 NUMBER REASON")]
    StatusLine,
    #[error("the version is not HTTP/1.1 or HTTP/1.0")]
    Version,
    #[error("the method has characters that no method has")]
    Method,
    #[error("the target is no URL, or has characters that no URL has")]
    Target,
    #[error("a target does not carry a user name or a fragment")]
    UserOrFragment,
    #[error("the host is none, or written in a way that could mean another one")]
    Host,
    #[error("the port is not a number from 1 to 65535")]
    Port,
    #[error("a header field is folded over several lines")]
    Folded,
    #[error("a header field is not NAME: VALUE")]
    Field,
    #[error("there is more than one Host")]
    ManyHosts,
    #[error("there is no Host")]
    NoHost,
    #[error("the Host is not the one of the target")]
    OtherHost,
    #[error("the length is said more than once, or in two ways")]
    AmbiguousLength,
    #[error("the Content-Length is not a number")]
    Length,
    #[error("the Transfer-Encoding is not exactly chunked, or not possible here")]
    TransferEncoding,
}

/// The lines of a head without their ends, and how many bytes it has; none: more is to come.
type Lines<'a> = (Vec<&'a [u8]>, usize);

/// Cut a head into lines; the last, empty one is left out.
fn lines<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Option<Lines<'a>>, Malformed> {
    let within = &bytes[..bytes.len().min(limits.head_bytes)];
    let mut lines = Vec::new();
    let mut start = 0;
    while let Some(length) = within[start..].iter().position(|byte| *byte == b'\n') {
        let line = within[start..start + length].strip_suffix(b"\r").ok_or(Malformed::LineEnd)?;
        check_bytes(line)?;
        start += length + 1;
        if line.is_empty() {
            return if lines.is_empty() { Err(Malformed::LineEnd) } else { Ok(Some((lines, start))) };
        }
        // The first line is no field.
        if lines.len() > limits.headers {
            return Err(Malformed::TooManyFields);
        }
        lines.push(line);
    }
    let rest = &within[start..];
    check_bytes(rest.strip_suffix(b"\r").unwrap_or(rest))?;
    if bytes.len() > limits.head_bytes { Err(Malformed::TooLarge) } else { Ok(None) }
}

fn check_bytes(line: &[u8]) -> Result<(), Malformed> {
    match line.iter().find(|byte| is_control(**byte)) {
        Some(b'\r' | b'\n') => Err(Malformed::LineEnd),
        Some(_) => Err(Malformed::ControlByte),
        None => Ok(()),
    }
}

fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}

/// What a method or the name of a field may have.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether it is worth looking at the bytes again: the head seems to be through, or something in it is wrong. It keeps a
/// head that comes byte by byte from being read anew for each of them. `seen` bytes were looked at before.
pub(crate) fn worth_parsing(bytes: &[u8], seen: usize) -> bool {
    (seen..bytes.len()).any(|at| {
        let byte = bytes[at];
        let before = at.checked_sub(1).map(|at| bytes[at]);
        (at == 0 && !is_token(byte))
            || (is_control(byte) && byte != b'\r' && byte != b'\n')
            || ((byte == b'\n') != (before == Some(b'\r')))
            || (byte == b'\n' && at >= 3 && &bytes[at - 3..at] == b"\r\n\r")
    })
}

#[cfg(test)]
mod tests;
