//! Frame format: one packet holds one message, four bytes of length (little-endian), then a JSON object of that length.
//!
//! The sockets are `SEQPACKET`, so a packet arrives whole or not at all and the length only confirms it: a packet that
//! is shorter, longer or larger than it says, or that carries unexpected descriptors, is an error and never the start
//! of another message.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde_json::{Map, Value};
use thiserror::Error;

pub const VERSION: u64 = 1;

/// Maximum length of the JSON, in bytes.
pub const MAX: usize = 64 << 10;

const HEADER: usize = 4;

/// Reason a packet is not a message.
#[derive(Debug, Error)]
pub enum FrameError {
    #[error("the connection was closed")]
    Closed,
    #[error("the frame has {got} bytes, fewer than its {HEADER}-byte header")]
    Short { got: usize },
    #[error("a frame has at most {MAX} bytes of JSON")]
    TooLong,
    #[error("the frame says {stated} bytes and has {got}")]
    Length { stated: usize, got: usize },
    #[error("the frame is not valid JSON: {0}")]
    NotJson(serde_json::Error),
    #[error("a message must be a JSON object")]
    NotAnObject,
    #[error("version {found} is not supported, only {VERSION}")]
    Version { found: String },
    #[error("a message must have a type")]
    NoType,
    #[error("descriptors are not accepted here")]
    Descriptors,
    #[error("{}", nono_sys::errno::describe(.0))]
    Io(#[from] std::io::Error),
}

impl From<Errno> for FrameError {
    fn from(errno: Errno) -> FrameError {
        FrameError::Io(errno.into())
    }
}

/// Message without its version, which was checked; it has a `type`.
pub(super) type Message = Map<String, Value>;

/// Encodes a value that serialises to a JSON object as a packet.
pub(super) fn encode(message: &impl Serialize) -> Result<Vec<u8>, FrameError> {
    let Value::Object(fields) = serde_json::to_value(message).map_err(FrameError::NotJson)? else {
        return Err(FrameError::NotAnObject);
    };
    let mut whole = Message::new();
    whole.insert("version".to_owned(), VERSION.into());
    whole.extend(fields);
    let json = serde_json::to_vec(&whole).map_err(FrameError::NotJson)?;
    let length = u32::try_from(json.len()).ok().filter(|_| json.len() <= MAX).ok_or(FrameError::TooLong)?;
    let mut packet = length.to_le_bytes().to_vec();
    packet.extend(json);
    Ok(packet)
}

pub(super) fn decode(packet: &[u8]) -> Result<Message, FrameError> {
    let Some((header, json)) = packet.split_first_chunk::<HEADER>() else {
        return Err(FrameError::Short { got: packet.len() });
    };
    let stated = usize::try_from(u32::from_le_bytes(*header)).unwrap_or(usize::MAX);
    if stated > MAX || json.len() > MAX {
        return Err(FrameError::TooLong);
    }
    if stated != json.len() {
        return Err(FrameError::Length { stated, got: json.len() });
    }
    let Value::Object(mut message) = serde_json::from_slice(json).map_err(FrameError::NotJson)? else {
        return Err(FrameError::NotAnObject);
    };
    match message.shift_remove("version") {
        Some(Value::Number(found)) if found.as_u64() == Some(VERSION) => {}
        Some(found) => return Err(FrameError::Version { found: short(&found) }),
        None => return Err(FrameError::Version { found: "none".to_owned() }),
    }
    match message.get("type") {
        Some(Value::String(_)) => Ok(message),
        _ => Err(FrameError::NoType),
    }
}

/// Shortened text of an invalid version, for the error.
fn short(value: &Value) -> String {
    value.to_string().chars().take(20).collect()
}

/// Descriptors that may accompany a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllowedDescriptors {
    Nothing,
    OneDescriptor,
}

/// Receives the packet that waits on `socket`, with a descriptor if one is allowed and came. `None`: nothing has
/// arrived yet. The kernel itself closes descriptors that are not allowed.
pub(super) fn receive(
    socket: BorrowedFd<'_>,
    along: AllowedDescriptors,
) -> Result<Option<(Message, Option<OwnedFd>)>, FrameError> {
    // One byte more than the maximum, to detect a longer packet.
    let mut bytes = vec![0; HEADER + MAX + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let room = if along == AllowedDescriptors::Nothing { &mut space[..0] } else { &mut space[..] };
    let mut control = RecvAncillaryBuffer::new(room);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let got = match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
        Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
        Err(Errno::CONNRESET) => return Err(FrameError::Closed),
        result => result?,
    };
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    if got.flags.contains(ReturnFlags::CTRUNC) {
        return Err(FrameError::Descriptors);
    }
    if got.bytes == 0 {
        return Err(FrameError::Closed);
    }
    if got.flags.contains(ReturnFlags::TRUNC) {
        return Err(FrameError::TooLong);
    }
    Ok(Some((decode(&bytes[..got.bytes.min(bytes.len())])?, descriptor)))
}

/// Sends without blocking: a peer that does not read its earlier messages gets no more.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    packet: &[u8],
    descriptor: Option<&OwnedFd>,
) -> Result<(), FrameError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let passed = descriptor.map(|fd| [fd.as_fd()]);
    if let Some(passed) = &passed
        && !control.push(SendAncillaryMessage::ScmRights(passed))
    {
        return Err(FrameError::Descriptors);
    }
    sendmsg(socket, &[IoSlice::new(packet)], &mut control, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use serde_json::json;

    use super::*;

    fn framed(json: &[u8]) -> Vec<u8> {
        let mut packet = u32::try_from(json.len()).unwrap().to_le_bytes().to_vec();
        packet.extend(json);
        packet
    }

    #[test]
    fn what_is_wrong_is_named() {
        let packets: &[(&[u8], &str)] = &[
            (b"", "the frame has 0 bytes, fewer than its 4-byte header"),
            (b"\x01\0", "the frame has 2 bytes, fewer than its 4-byte header"),
            (b"\x05\0\0\0{}", "the frame says 5 bytes and has 2"),
            (b"\x02\0\0\0{}x", "the frame says 2 bytes and has 3"),
            (b"\xff\xff\xff\xff{}", "a frame has at most 65536 bytes of JSON"),
            (b"\x02\0\0\0[]", "a message must be a JSON object"),
            (b"\x02\0\0\0{}", "version none is not supported, only 1"),
        ];
        for (packet, words) in packets {
            assert_eq!(decode(packet).unwrap_err().to_string(), *words);
        }
        for (json, words) in [
            (r#"{"version":2,"type":"x"}"#, "version 2 is not supported, only 1"),
            (r#"{"version":"1","type":"x"}"#, "version \"1\" is not supported, only 1"),
            (r#"{"version":1}"#, "a message must have a type"),
            (r#"{"version":1,"type":7}"#, "a message must have a type"),
        ] {
            assert_eq!(decode(&framed(json.as_bytes())).unwrap_err().to_string(), words);
        }
        let deep = [b"[".repeat(30_000), b"]".repeat(30_000)].concat();
        assert!(matches!(decode(&framed(&deep)), Err(FrameError::NotJson(_))), "no stack is that deep");
    }

    #[test]
    fn the_largest_goes_through_and_one_byte_more_does_not() {
        let frame = |length: usize| encode(&json!({"type": "x", "fill": "a".repeat(length)}));
        let empty = frame(0).unwrap().len() - HEADER;
        let largest = frame(MAX - empty).unwrap();
        assert_eq!(largest.len(), HEADER + MAX);
        assert!(decode(&largest).is_ok());
        assert!(matches!(frame(MAX - empty + 1), Err(FrameError::TooLong)));
    }

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
    }

    #[test]
    fn descriptors_come_only_where_they_may() {
        let packet = encode(&json!({"type": "x"})).unwrap();
        let file: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
        let (ours, theirs) = pair();
        assert!(receive(ours.as_fd(), AllowedDescriptors::Nothing).unwrap().is_none(), "nothing has come");
        send(theirs.as_fd(), &packet, Some(&file)).unwrap();
        assert!(matches!(receive(ours.as_fd(), AllowedDescriptors::Nothing), Err(FrameError::Descriptors)));
        send(theirs.as_fd(), &packet, Some(&file)).unwrap();
        let (_, descriptor) = receive(ours.as_fd(), AllowedDescriptors::OneDescriptor).unwrap().unwrap();
        assert!(descriptor.is_some());
        send(theirs.as_fd(), &packet, None).unwrap();
        assert!(receive(ours.as_fd(), AllowedDescriptors::OneDescriptor).unwrap().unwrap().1.is_none());
        drop(theirs);
        assert!(matches!(receive(ours.as_fd(), AllowedDescriptors::Nothing), Err(FrameError::Closed)));
    }

    #[test]
    fn who_does_not_read_is_not_waited_for() {
        let (ours, _theirs) = pair();
        let packet = encode(&json!({"type": "x", "fill": "a".repeat(60_000)})).unwrap();
        let refused = (0..1000).find_map(|_| send(ours.as_fd(), &packet, None).err());
        assert!(matches!(refused, Some(FrameError::Io(_))), "{refused:?}");
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(packet in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&packet);
        }

        #[test]
        fn only_the_exact_length_is_a_frame(stated in any::<u32>(), fill in 0..200_usize) {
            let json = serde_json::to_vec(&json!({"version": 1, "type": "x", "fill": "a".repeat(fill)})).unwrap();
            let packet = [&stated.to_le_bytes()[..], &json[..]].concat();
            prop_assert_eq!(decode(&packet).is_ok(), usize::try_from(stated).unwrap() == json.len());
        }

        #[test]
        fn every_beginning_is_refused(text in ".{0,40}", cut in any::<prop::sample::Index>()) {
            let packet = encode(&json!({"type": "x", "text": text})).unwrap();
            prop_assert!(decode(&packet[..cut.index(packet.len())]).is_err());
            prop_assert!(decode(&[&packet[..], b" "].concat()).is_err());
        }

        #[test]
        fn a_message_comes_back(kind in "[a-z_]{1,20}", text in any::<String>(), number in any::<u64>()) {
            let message = json!({"type": kind, "text": text, "number": number});
            let back = decode(&encode(&message).unwrap()).unwrap();
            prop_assert_eq!(Value::Object(back), message);
        }

        #[test]
        fn changed_bytes_never_panic(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut packet = encode(&json!({"type": "x", "path": "/a/b", "list": [1, 2, {"c": null}]})).unwrap();
            let at = at.index(packet.len());
            packet[at] = byte;
            let _ = decode(&packet);
        }
    }
}
