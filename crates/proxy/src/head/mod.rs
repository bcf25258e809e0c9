//! Parsers of HTTP/1 heads: pure functions from bytes to values.
//!
//! A message that two parsers could read differently is refused: bare line ends, folded lines, spaces before a colon,
//! control bytes, lengths given twice or in two ways. Nothing is repaired; forwarded heads are written anew from the
//! values here, never copied.

mod fields;
mod request;
mod response;

use thiserror::Error;

pub use fields::{Field, Fields};
pub use request::{RequestHead, TargetForm, parse_request};
pub use response::{ResponseHead, parse_response};

use crate::config::Limits;

/// Result of parsing the bytes so far.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Empty,
    Length(u64),
    Chunked,
    /// Until the connection closes; responses only.
    UntilClose,
}

/// Reason why bytes are not a valid head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Malformed {
    #[error("the head exceeds the limit")]
    TooLarge,
    #[error("too many header fields")]
    TooManyFields,
    #[error("a line does not end in CR LF, or has a CR or LF inside")]
    LineEnd,
    #[error("the head has a control byte")]
    ControlByte,
    #[error("the request line is not METHOD TARGET HTTP/1.1")]
    RequestLine,
    #[error("the status line is not HTTP/1.1 NUMBER REASON")]
    StatusLine,
    #[error("the version is not HTTP/1.1 or HTTP/1.0")]
    Version,
    #[error("invalid characters in the method")]
    Method,
    #[error("the target is not a valid URL")]
    Target,
    #[error("the target has a user name or a fragment")]
    UserOrFragment,
    #[error("the host is missing or ambiguous")]
    Host,
    #[error("the port is not a number from 1 to 65535")]
    Port,
    #[error("a header field is folded over several lines")]
    Folded,
    #[error("a header field is not NAME: VALUE")]
    Field,
    #[error("more than one Host")]
    ManyHosts,
    #[error("no Host")]
    NoHost,
    #[error("the Host differs from the target")]
    OtherHost,
    #[error("the length is given more than once, or in two ways")]
    AmbiguousLength,
    #[error("the Content-Length is not a number")]
    Length,
    #[error("the Transfer-Encoding is not exactly chunked, or not possible here")]
    TransferEncoding,
}

/// Lines of a head without their ends, and its length in bytes.
type Lines<'a> = (Vec<&'a [u8]>, usize);

/// Splits a head into lines, without the last, empty one. `None` if it is incomplete.
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
        // The first line is not a field.
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

/// Whether a byte may be in a method or a field name.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Whether parsing again is worthwhile: the head seems complete, or something in it is wrong. This keeps a head that
/// comes byte by byte from being parsed anew for each of them. `seen` bytes were looked at before.
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
