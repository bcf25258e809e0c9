//! Fuzzing with packets that are almost messages.

use super::frame::{decode, encode};
use super::message::{ChannelRequest, CheckedRequest, ControlRequest};
use crate::fuzzed::{Random, rounds};

const NAMES: &[&str] = &[
    "type",
    "id",
    "path",
    "access",
    "reason",
    "paths",
    "snapshot",
    "url",
    "action",
    "version",
    "project",
    "checkpoint",
    "kind",
    "limit",
];
const VALUES: &[&str] = &[
    "capability_request",
    "checkpoint_request",
    "restore_request",
    "url_request",
    "history_request",
    "refusal_request",
    "status",
    "stop",
    "list",
    "restore",
    "x",
    "",
    "/etc/passwd",
    "/a/../b",
    "\\u0000",
    "\\ud800",
    "read",
    "write",
    "read_write",
    "https://a/",
];

fn value(random: &mut Random, depth: usize, text: &mut String) {
    match random.below(if depth > 6 { 4 } else { 7 }) {
        0 | 1 => text.extend(["\"", random.one(VALUES), "\""]),
        2 => text.push_str(random.one(&[
            "0",
            "-1",
            "18446744073709551615",
            "1e999",
            "1.5",
            "99999999999999999999",
        ])),
        3 => text.push_str(random.one(&["null", "true", "\"", "{", "]", "\u{fe0f}"])),
        4 => object(random, depth + 1, text),
        _ => {
            text.push('[');
            for at in 0..random.below(4) {
                if at > 0 {
                    text.push(',');
                }
                value(random, depth + 1, text);
            }
            text.push(']');
        }
    }
}

fn object(random: &mut Random, depth: usize, text: &mut String) {
    text.push('{');
    for at in 0..random.below(6) {
        if at > 0 {
            text.push(',');
        }
        text.extend(["\"", random.one(NAMES), "\":"]);
        value(random, depth, text);
    }
    text.push('}');
}

#[test]
fn no_packet_ends_its_reader() {
    rounds(|random| {
        let mut text = "{\"version\":1,\"type\":\"".to_owned() + random.one(VALUES) + "\",\"id\":\"a\"";
        for _ in 0..random.below(5) {
            text.extend([",\"", random.one(NAMES), "\":"]);
            value(random, 0, &mut text);
        }
        text.push('}');
        let mut packet = u32::try_from(text.len()).unwrap().to_le_bytes().to_vec();
        packet.extend(text.as_bytes());
        for _ in 0..random.below(3) {
            let at = random.below(packet.len());
            packet.splice(at..=at, random.bytes(2));
        }
        if let Ok(message) = decode(&packet) {
            assert!(decode(&encode(&message).unwrap()).is_ok());
            let _ = (ChannelRequest::read(message.clone()), ControlRequest::read(message));
        }
        let nested = [&b"{\"version\":1,\"type\":"[..], &b"[".repeat(random.below(60_000))].concat();
        let length = u32::try_from(nested.len()).unwrap().to_le_bytes();
        assert!(decode(&[&length[..], &nested].concat()).is_err());
    });
}
