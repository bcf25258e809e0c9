//! Packets that are not messages: an error, the end of the connection, and no decision is asked for.

use std::fs::File;
use std::os::fd::AsFd;

use nono_supervisor::channel::Bounds;
use serde_json::json;

use crate::kit::{Init, Place, content, framed};

#[test]
fn what_is_no_frame_is_refused() {
    let place = Place::new(Init::Other, Bounds::default());
    let whole = framed(&serde_json::to_vec(&place.wanted("1", "granted")).unwrap());
    let giant = [&u32::MAX.to_le_bytes()[..], b"{}"].concat();
    let packets: Vec<(&str, Vec<u8>)> = vec![
        ("one byte", vec![7]),
        ("half a length", vec![7, 0]),
        ("a length alone", vec![7, 0, 0, 0]),
        ("half a frame", whole[..whole.len() / 2].to_vec()),
        ("one byte less", whole[..whole.len() - 1].to_vec()),
        ("one byte more", [&whole[..], b" "].concat()),
        ("two frames", [&whole[..], &whole[..]].concat()),
        ("a giant length", giant),
        ("a giant", framed(&vec![b' '; (64 << 10) + 1])),
        ("much more than a giant", vec![0; 150_000]),
        ("no JSON", framed(b"please")),
        ("no object", framed(b"[1]")),
        ("nothing", framed(b"")),
        ("no version", framed(br#"{"type":"status","id":"1"}"#)),
        ("another version", framed(br#"{"version":2,"type":"status","id":"1"}"#)),
        ("no type", framed(br#"{"version":1,"id":"1"}"#)),
        ("an unknown type", framed(br#"{"version":1,"type":"please","id":"1"}"#)),
        ("of the other channel", framed(br#"{"version":1,"type":"stop","id":"1"}"#)),
        ("deep", framed(&[b"{\"a\":".repeat(5000), b"1".to_vec(), b"}".repeat(5000)].concat())),
    ];
    let number = u64::try_from(packets.len()).unwrap();
    for (what, packet) in packets {
        eprintln!("{what}");
        let client = place.connect();
        client.send_packet(&packet);
        client.is_refused("malformed");
    }
    assert!(place.service.asked.lock().unwrap().is_empty());
    assert_eq!(place.threads().request_counts().malformed, number);
    assert_eq!(place.ask("2", "granted")["granted"], true, "and it goes on");
}

#[test]
fn a_request_that_does_not_hold_together_is_refused() {
    let place = Place::new(Init::Other, Bounds::default());
    for (field, value) in [
        ("path", json!("relative")),
        ("path", json!("/with\u{0}zero")),
        ("access", json!("execute")),
        ("id", json!("")),
        ("extra", json!(1)),
    ] {
        let mut message = place.wanted("1", "granted");
        message[field] = value;
        let client = place.connect();
        client.send(&message);
        client.is_refused("malformed");
    }
    assert!(place.service.asked.lock().unwrap().is_empty());
}

/// The kernel closes passed descriptors: none of them stays open here.
#[test]
fn descriptors_are_not_taken() {
    let place = Place::new(Init::Other, Bounds::default());
    for number in [1, 3] {
        let (reads, writes) = rustix::pipe::pipe().unwrap();
        let client = place.connect();
        client.send_with(&place.wanted("1", "granted"), &vec![writes.as_fd(); number]);
        client.is_refused("malformed");
        drop(writes);
        assert_eq!(content(File::from(reads)), "", "the other end is closed");
    }
    assert!(place.service.asked.lock().unwrap().is_empty());
}

#[test]
fn one_request_to_a_connection() {
    let place = Place::new(Init::Other, Bounds::default());
    let client = place.connect();
    client.send(&place.wanted("1", "granted"));
    assert_eq!(client.answer().unwrap()["granted"], true);
    client.send(&place.wanted("2", "granted"));
    assert_eq!(client.answer(), None);
    assert_eq!(place.service.asked.lock().unwrap().len(), 1);
}
