//! Serialisation of forwarded heads.

use super::Forward;
use crate::config::Upstream;
use crate::head::{Field, Framing, RequestHead, ResponseHead, Version};

/// Head of the request for the server, or for the upstream proxy.
pub(super) fn request(forward: &Forward<'_>, upstream: Option<&Upstream>) -> Vec<u8> {
    let Forward { request, target, path, .. } = forward;
    let host = target.host_field(if forward.secure() { 443 } else { 80 });
    let place = if upstream.is_some() { format!("http://{host}{path}") } else { (*path).to_owned() };
    let mut head = format!("{} {place} HTTP/1.1\r\nHost: {host}\r\n", request.method).into_bytes();
    if let Some(secret) = upstream.and_then(|upstream| upstream.authorization.as_ref()) {
        line(&mut head, "Proxy-Authorization", secret.reveal().as_bytes());
    }
    fields(&mut head, request.fields.end_to_end());
    framing(&mut head, request.framing);
    if request.wants_websocket() {
        head.extend_from_slice(b"Connection: Upgrade\r\nUpgrade: websocket\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

pub(super) fn client_framing(response: &ResponseHead, request: &RequestHead) -> Framing {
    match response.framing(&request.method) {
        // Otherwise the client could not detect a truncated body.
        Framing::UntilClose if request.version == Version::Http11 => Framing::Chunked,
        Framing::Chunked if request.version == Version::Http10 => Framing::UntilClose,
        framing => framing,
    }
}

/// Head of the response for the client; `stays`: another request may follow.
pub(super) fn response(response: &ResponseHead, request: &RequestHead, stays: bool) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {:03} ", response.status).into_bytes();
    head.extend_from_slice(&response.reason);
    head.extend_from_slice(b"\r\n");
    fields(&mut head, response.fields.end_to_end());
    match (client_framing(response, request), response.said_length()) {
        // Length that the body would have had.
        (Framing::Empty, Some(length)) if request.method == "HEAD" || response.status == 304 => {
            framing(&mut head, Framing::Length(length));
        }
        (actual, _) => framing(&mut head, actual),
    }
    if response.status == 101 {
        head.extend_from_slice(b"Connection: Upgrade\r\nUpgrade: websocket\r\n");
    } else if !stays {
        head.extend_from_slice(b"Connection: close\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

fn fields<'a>(head: &mut Vec<u8>, fields: impl Iterator<Item = &'a Field>) {
    for field in fields {
        line(head, &field.name, &field.value);
    }
}

fn framing(head: &mut Vec<u8>, framing: Framing) {
    match framing {
        Framing::Length(length) => line(head, "Content-Length", length.to_string().as_bytes()),
        Framing::Chunked => line(head, "Transfer-Encoding", b"chunked"),
        Framing::Empty | Framing::UntilClose => {}
    }
}

fn line(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        head.extend_from_slice(part);
    }
}
