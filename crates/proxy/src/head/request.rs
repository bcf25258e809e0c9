//! Requests.

use super::{Fields, Framing, Malformed, Parsed, Version, is_token, lines};
use crate::config::{Limits, RequestTarget};
use crate::target;

const MAX_METHOD: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    pub method: String,
    pub form: TargetForm,
    pub version: Version,
    pub fields: Fields,
    pub framing: Framing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetForm {
    /// `CONNECT host:port`.
    Tunnel(RequestTarget),
    /// `http://host/path`; the Host field is the same. `path` starts with `/` and may have a query.
    Absolute { https: bool, target: RequestTarget, path: String },
    /// `/path`: a request to the proxy itself, or inside a tunnel.
    Origin { path: String },
    /// `OPTIONS *`.
    Asterisk,
}

impl RequestHead {
    /// Whether another request may follow.
    pub fn stays(&self) -> bool {
        self.fields.stays(self.version)
    }

    /// Whether a WebSocket is requested. Other upgrades are not forwarded: after `h2c` the proxy could not see
    /// requests.
    pub fn wants_websocket(&self) -> bool {
        self.version == Version::Http11
            && self.framing == Framing::Empty
            && self.fields.lists("connection", "upgrade")
            && self.fields.only("upgrade").is_some_and(|value| value.eq_ignore_ascii_case(b"websocket"))
    }

    /// Target of the Host field; `default` is the port if it has none.
    pub fn host(&self, default: u16) -> Result<Option<RequestTarget>, Malformed> {
        let mut hosts = self.fields.all("host");
        let Some(host) = hosts.next() else { return Ok(None) };
        if hosts.next().is_some() {
            return Err(Malformed::ManyHosts);
        }
        let host = str::from_utf8(host).map_err(|_| Malformed::Host)?;
        target::authority(host, Some(default)).map(Some)
    }
}

pub fn parse_request(bytes: &[u8], limits: &Limits) -> Result<Parsed<RequestHead>, Malformed> {
    if bytes.first().is_some_and(|byte| !is_token(*byte)) {
        return Err(Malformed::RequestLine);
    }
    let Some((lines, length)) = lines(bytes, limits)? else { return Ok(Parsed::Incomplete) };
    let (first, rest) = lines.split_first().ok_or(Malformed::RequestLine)?;
    let (method, target, version) = request_line(first)?;
    let fields = Fields::parse(rest)?;
    let framing = fields.framing(version)?.unwrap_or(Framing::Empty);
    let form = form(method, target)?;
    let head = RequestHead { method: method.to_owned(), form, version, fields, framing };
    check_host(&head)?;
    check_tunnel(&head)?;
    Ok(Parsed::Complete { head, length })
}

fn request_line(line: &[u8]) -> Result<(&str, &str, Version), Malformed> {
    let mut parts = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Malformed::RequestLine);
    };
    let version = match version {
        b"HTTP/1.1" => Version::Http11,
        b"HTTP/1.0" => Version::Http10,
        _ => return Err(Malformed::Version),
    };
    let letters = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'-' || *byte == b'_';
    if method.is_empty() || method.len() > MAX_METHOD || !method.iter().all(letters) {
        return Err(Malformed::Method);
    }
    if target.is_empty() || !target.iter().all(u8::is_ascii_graphic) {
        return Err(Malformed::Target);
    }
    if target.contains(&b'#') {
        return Err(Malformed::UserOrFragment);
    }
    let method = str::from_utf8(method).map_err(|_| Malformed::Method)?;
    let target = str::from_utf8(target).map_err(|_| Malformed::Target)?;
    Ok((method, target, version))
}

fn form(method: &str, text: &str) -> Result<TargetForm, Malformed> {
    if method == "CONNECT" {
        return target::authority(text, None).map(TargetForm::Tunnel);
    }
    if text.starts_with('/') {
        return Ok(TargetForm::Origin { path: text.to_owned() });
    }
    if text == "*" {
        return if method == "OPTIONS" { Ok(TargetForm::Asterisk) } else { Err(Malformed::Target) };
    }
    let (scheme, rest) = text.split_once("://").ok_or(Malformed::Target)?;
    let https = scheme.eq_ignore_ascii_case("https");
    if !https && !scheme.eq_ignore_ascii_case("http") {
        return Err(Malformed::Target);
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let target = target::authority(authority, Some(if https { 443 } else { 80 }))?;
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok(TargetForm::Absolute { https, target, path })
}

/// Checks that there is one Host field, equal to the target. For `CONNECT` it is ignored: it is not forwarded, and many
/// programs send a wrong one.
fn check_host(head: &RequestHead) -> Result<(), Malformed> {
    if matches!(head.form, TargetForm::Tunnel(_)) {
        return if head.fields.all("host").count() > 1 { Err(Malformed::ManyHosts) } else { Ok(()) };
    }
    let default = if matches!(head.form, TargetForm::Absolute { https: true, .. }) { 443 } else { 80 };
    match (head.host(default)?, &head.form) {
        (None, _) if head.version == Version::Http11 => Err(Malformed::NoHost),
        (Some(host), TargetForm::Absolute { target, .. }) if host != *target => Err(Malformed::OtherHost),
        _ => Ok(()),
    }
}

/// Refuses a body of `CONNECT`: what follows is the tunnel.
fn check_tunnel(head: &RequestHead) -> Result<(), Malformed> {
    let bodiless = matches!(head.framing, Framing::Empty | Framing::Length(0));
    if matches!(head.form, TargetForm::Tunnel(_)) && !bodiless {
        return Err(Malformed::AmbiguousLength);
    }
    Ok(())
}
