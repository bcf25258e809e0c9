//! Parsing of `host:port` in a request.

use crate::config::RequestTarget;
use crate::head::Malformed;

/// Parses `host:port`; a missing port is `default`, or an error if there is none.
pub(crate) fn authority(text: &str, default: Option<u16>) -> Result<RequestTarget, Malformed> {
    if text.contains('@') {
        return Err(Malformed::UserOrFragment);
    }
    let end = if text.starts_with('[') {
        text.find(']').map(|at| at + 1).ok_or(Malformed::Host)?
    } else {
        text.find(':').unwrap_or(text.len())
    };
    let (host, rest) = text.split_at(end);
    let port = match rest.strip_prefix(':') {
        Some(digits) => port(digits).ok_or(Malformed::Port)?,
        None if rest.is_empty() => default.ok_or(Malformed::Port)?,
        None => return Err(Malformed::Host),
    };
    let host = host.parse().map_err(|_| Malformed::Host)?;
    Ok(RequestTarget { host, port })
}

fn port(digits: &str) -> Option<u16> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    digits.parse().ok().filter(|_| plain)
}

impl RequestTarget {
    /// Value of a Host field: the usual port is left out.
    pub fn host_field(&self, usual: u16) -> String {
        if self.port == usual { self.host.to_string() } else { self.to_string() }
    }
}

impl std::fmt::Display for RequestTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
