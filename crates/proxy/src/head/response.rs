//! Responses.

use super::{Fields, Framing, Malformed, Parsed, Version, lines};
use crate::config::Limits;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    pub version: Version,
    pub status: u16,
    pub reason: Vec<u8>,
    pub fields: Fields,
    /// Framing according to the fields; see [`ResponseHead::framing`].
    said: Option<Framing>,
}

impl ResponseHead {
    /// Framing of the body, in the response to a request with this method.
    pub fn framing(&self, method: &str) -> Framing {
        let bodiless = method == "HEAD" || self.status < 200 || self.status == 204 || self.status == 304;
        if bodiless { Framing::Empty } else { self.said.unwrap_or(Framing::UntilClose) }
    }

    /// Drops the length, because the body may change its length on the way.
    pub(crate) fn forget_length(&mut self) {
        if let Some(Framing::Length(1..)) = self.said {
            self.said = Some(Framing::Chunked);
        }
    }

    /// Length according to the fields, also where no body follows (HEAD, 304).
    pub fn said_length(&self) -> Option<u64> {
        match self.said {
            Some(Framing::Length(length)) => Some(length),
            _ => None,
        }
    }

    pub fn stays(&self) -> bool {
        self.fields.stays(self.version)
    }
}

pub fn parse_response(bytes: &[u8], limits: &Limits) -> Result<Parsed<ResponseHead>, Malformed> {
    let Some((lines, length)) = lines(bytes, limits)? else { return Ok(Parsed::Incomplete) };
    let (first, rest) = lines.split_first().ok_or(Malformed::StatusLine)?;
    let (version, status, reason) = status_line(first)?;
    let fields = Fields::parse(rest)?;
    let said = fields.framing(version)?;
    Ok(Parsed::Complete {
        head: ResponseHead { version, status, reason: reason.to_vec(), fields, said },
        length,
    })
}

fn status_line(line: &[u8]) -> Result<(Version, u16, &[u8]), Malformed> {
    let (version, rest) = line.split_at_checked(9).ok_or(Malformed::StatusLine)?;
    let version = match version {
        b"HTTP/1.1 " => Version::Http11,
        b"HTTP/1.0 " => Version::Http10,
        _ => return Err(Malformed::Version),
    };
    let (digits, rest) = rest.split_at_checked(3).ok_or(Malformed::StatusLine)?;
    let status = str::from_utf8(digits)
        .ok()
        .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|digits| digits.parse().ok())
        .filter(|status: &u16| *status >= 100)
        .ok_or(Malformed::StatusLine)?;
    // Servers that omit the reason often omit the space before it too.
    let reason = match rest {
        [] => rest,
        [b' ', reason @ ..] => reason,
        _ => return Err(Malformed::StatusLine),
    };
    Ok((version, status, reason))
}
