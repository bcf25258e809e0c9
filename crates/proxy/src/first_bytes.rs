//! Check of the first bytes in a tunnel: they have to name the host that the tunnel was opened for.
//!
//! One address often serves many hosts, selected by the TLS ClientHello or the Host field. Other protocols have no such
//! name and pass, but are scanned for requests that follow (see `opaque`). What comes after a ClientHello is encrypted:
//! names inside are not seen. A plain request has to be strictly valid (see `line`). A request whose method has bytes
//! other than visible ASCII, or begins with a bracket, is not recognised: standard servers refuse it.

mod request_line;

use nono_policy::host_rule::Host;

use crate::client_hello::{self, MAX_HELLO, Opening, ServerName, Unread};
use crate::config::{Limits, RequestTarget};
use crate::event::Category;
use crate::head::{Parsed, RequestHead, TargetForm, parse_request};
use crate::refusal::Refusal;
use request_line::{FirstLine, first_line};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GreetingVerdict {
    /// More bytes are needed.
    Wait,
    Pass,
    Refuse(Refusal),
}

/// Checks the first bytes of a client; `ended`: no more will come.
pub(crate) fn judge(bytes: &[u8], target: &RequestTarget, ended: bool) -> GreetingVerdict {
    let verdict = match client_hello::opening(bytes) {
        Opening::Handshake => tls(bytes, target),
        Opening::Unusual => refuse("TLS does not start with a ClientHello in its usual form"),
        Opening::Partial => GreetingVerdict::Wait,
        Opening::Other => plain(bytes, target),
    };
    match verdict {
        // A client that only reads.
        GreetingVerdict::Wait if ended && bytes.is_empty() => GreetingVerdict::Pass,
        GreetingVerdict::Wait if ended || bytes.len() >= MAX_HELLO => {
            refuse("the first message in the tunnel is incomplete")
        }
        verdict => verdict,
    }
}

fn tls(bytes: &[u8], target: &RequestTarget) -> GreetingVerdict {
    match (client_hello::parse(bytes), &target.host) {
        (Err(Unread::Incomplete), _) => GreetingVerdict::Wait,
        (Err(Unread::Malformed), _) => refuse("malformed TLS ClientHello"),
        (Ok(Some(ServerName(name))), host) if name == *host => GreetingVerdict::Pass,
        (Ok(Some(_)), _) => refuse("the TLS ClientHello names another host than the tunnel was opened for"),
        (Ok(None), Host::Address(_)) => GreetingVerdict::Pass,
        (Ok(None), Host::Name(_)) => refuse("the TLS ClientHello names no host"),
    }
}

fn plain(bytes: &[u8], target: &RequestTarget) -> GreetingVerdict {
    match first_line(bytes) {
        FirstLine::Partial => GreetingVerdict::Wait,
        FirstLine::Other => GreetingVerdict::Pass,
        FirstLine::Nearly => GreetingVerdict::Refuse(Refusal::bad(
            "the first line in the tunnel is not METHOD TARGET HTTP/1.1, but a server could accept it as a request",
        )),
        FirstLine::Request => {
            let limits = Limits { head_bytes: MAX_HELLO, ..Limits::default() };
            match parse_request(bytes, &limits) {
                Ok(Parsed::Incomplete) => GreetingVerdict::Wait,
                Ok(Parsed::Complete { head, .. }) => {
                    check(&head, target).map_or_else(GreetingVerdict::Refuse, |()| GreetingVerdict::Pass)
                }
                Err(why) => GreetingVerdict::Refuse(Refusal::malformed(why)),
            }
        }
    }
}

/// Refuses a request in a tunnel that names another host than the tunnel's.
pub(crate) fn check(head: &RequestHead, target: &RequestTarget) -> Result<(), Refusal> {
    let named = match &head.form {
        TargetForm::Absolute { target, .. } | TargetForm::Tunnel(target) => Some(target.clone()),
        // A missing port is the tunnel's.
        TargetForm::Origin { .. } | TargetForm::Asterisk => {
            head.host(target.port).map_err(Refusal::malformed)?
        }
    };
    if named.as_ref() == Some(target) && !matches!(head.form, TargetForm::Tunnel(_)) {
        return Ok(());
    }
    Err(foreign_host())
}

pub(crate) fn foreign_host() -> Refusal {
    refusal("a request in the tunnel names another host than the tunnel was opened for")
}

/// Whether the bytes that passed are TLS: names inside are not seen.
pub(crate) fn is_tls(bytes: &[u8]) -> bool {
    matches!(client_hello::opening(bytes), Opening::Handshake)
}

/// Whether the bytes that passed are a plain request.
pub(crate) fn is_request(bytes: &[u8]) -> bool {
    matches!(first_line(bytes), FirstLine::Request)
}

fn refuse(why: &'static str) -> GreetingVerdict {
    GreetingVerdict::Refuse(refusal(why))
}

fn refusal(why: &'static str) -> Refusal {
    Refusal::new(403, Category::SniMismatch, "Tunnel refused", why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8], ended: bool) -> &'static str {
        let target = RequestTarget { host: "a.test".parse().unwrap(), port: 8080 };
        match judge(bytes, &target, ended) {
            GreetingVerdict::Wait => "wait",
            GreetingVerdict::Pass => "pass",
            GreetingVerdict::Refuse(_) => "refuse",
        }
    }

    #[test]
    fn first_bytes() {
        let long = [b"GET ".as_slice(), &vec![b'x'; MAX_HELLO]].concat();
        let table: &[(&[u8], &str, &str)] = &[
            (b"", "wait", "pass"),
            (b"\x16", "wait", "refuse"),
            (b"\x16\x03\x01", "wait", "refuse"),
            (b"\x16\x03\x01\x00\x05\x02", "refuse", "refuse"),
            (b"G", "wait", "refuse"),
            (b"GET /", "wait", "refuse"),
            (b"GET / HTTP/1.1\r\n", "wait", "refuse"),
            (b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", "pass", "pass"),
            (b"GET / HTTP/1.1\r\nHost: A.test.:8080\r\n\r\n", "pass", "pass"),
            (b"GET / HTTP/1.1\r\nHost: a.test:80\r\n\r\n", "refuse", "refuse"),
            (b"GET / HTTP/1.1\r\nHost: b.test\r\n\r\n", "refuse", "refuse"),
            (b"GET / HTTP/1.0\r\n\r\n", "refuse", "refuse"),
            (b"GET / HTTP/1.1\nHost: a.test\n\n", "refuse", "refuse"),
            (b"GET / http/1.1\r\nHost: a.test\r\n\r\n", "refuse", "refuse"),
            (b"GET http://b.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n", "refuse", "refuse"),
            (b"GET http://a.test:8080/ HTTP/1.1\r\nHost: a.test:8080\r\n\r\n", "pass", "pass"),
            (b"CONNECT b.test:80 HTTP/1.1\r\nHost: a.test\r\n\r\n", "refuse", "refuse"),
            (&long, "refuse", "refuse"),
            (b"SSH-2.0-x\r\n", "pass", "pass"),
            (b"\0\0\0\x08", "pass", "pass"),
            (b"EHLO a.test\r\n", "pass", "pass"),
            (b"PRI * HTTP/2.0\r\n\r\n", "refuse", "refuse"),
            (b"M-SEARCH / HTTP/1.1\r\nHost: b.test\r\n\r\n", "refuse", "refuse"),
            (b"M-SEARCH / HTTP/1.1\r\nHost: a.test\r\n\r\n", "pass", "pass"),
            (b"GET\t/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "refuse", "refuse"),
            (b"M!X / HTTP/1.1\r\nHost: a.test\r\n\r\n", "refuse", "refuse"),
            // Other TLS records before the ClientHello, and the ClientHello of SSL 2.
            (b"\x14\x03\x03\x00\x01\x01", "refuse", "refuse"),
            (b"\x15", "refuse", "refuse"),
            (b"\x17\x03\x03\x00\x00", "refuse", "refuse"),
            (b"\x18\x03", "refuse", "refuse"),
            (b"\x80\x2e", "wait", "refuse"),
            (b"\x80\x2e\x01\x03\x03", "refuse", "refuse"),
            (b"\x80\x2e\x02", "pass", "pass"),
            (b"\xff\xfd\x01", "pass", "pass"),
        ];
        for (bytes, more, ended) in table {
            assert_eq!(
                (of(bytes, false), of(bytes, true)),
                (*more, *ended),
                "{:?}",
                bytes.escape_ascii().to_string()
            );
        }
    }
}
