use std::sync::Arc;

use proptest::prelude::*;

use super::*;

/// ClientHello of a real client, without its record.
fn greeting(name: &str, sni: bool) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    config.enable_sni = sni;
    let name = rustls::pki_types::ServerName::try_from(name.to_owned()).unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes.split_off(5)
}

/// Splits a message into records of these sizes, in turn.
fn records(message: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = message;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        let length = u16::try_from(piece.len()).unwrap().to_be_bytes();
        bytes.extend_from_slice(&[22, 3, 1, length[0], length[1]]);
        bytes.extend_from_slice(piece);
        rest = after;
    }
    bytes
}

/// ClientHello with these extensions.
fn made(extensions: &[(u16, &[u8])]) -> Vec<u8> {
    let mut list = Vec::new();
    for (kind, body) in extensions {
        list.extend_from_slice(&kind.to_be_bytes());
        list.extend_from_slice(&u16::try_from(body.len()).unwrap().to_be_bytes());
        list.extend_from_slice(body);
    }
    let mut hello = vec![3, 3];
    hello.extend_from_slice(&[7; 32]);
    hello.extend_from_slice(&[0, 0, 2, 0x13, 1, 1, 0]);
    hello.extend_from_slice(&u16::try_from(list.len()).unwrap().to_be_bytes());
    hello.extend_from_slice(&list);
    let mut message = vec![1, 0];
    message.extend_from_slice(&u16::try_from(hello.len()).unwrap().to_be_bytes());
    message.extend_from_slice(&hello);
    records(&message, &[MAX_RECORD])
}

fn entry(kind: u8, name: &[u8]) -> Vec<u8> {
    let mut entry = vec![kind];
    entry.extend_from_slice(&u16::try_from(name.len()).unwrap().to_be_bytes());
    entry.extend_from_slice(name);
    entry
}

fn list(entries: &[Vec<u8>]) -> Vec<u8> {
    let entries = entries.concat();
    let mut list = u16::try_from(entries.len()).unwrap().to_be_bytes().to_vec();
    list.extend_from_slice(&entries);
    list
}

fn name(text: &str) -> ServerName {
    ServerName(text.parse().unwrap())
}

#[test]
fn a_real_greeting() {
    assert_eq!(parse(&records(&greeting("a.test", true), &[16000])), Ok(Some(name("a.test"))));
    assert_eq!(parse(&records(&greeting("a.test", false), &[16000])), Ok(None));
    assert_eq!(parse(&records(&greeting("127.0.0.1", true), &[16000])), Ok(None));
}

#[test]
fn names_that_are_wrong() {
    let of = |body: &[u8]| parse(&made(&[(10, &[0, 0]), (0, body)]));
    assert_eq!(of(&list(&[entry(0, b"A.Test")])), Ok(Some(name("a.test"))));
    assert_eq!(parse(&made(&[(10, &[0, 0])])), Ok(None));
    let good = list(&[entry(0, b"a.test")]);
    assert_eq!(parse(&made(&[(0, &good), (0, &good)])), Err(Unread::Malformed));
    let wrong: &[Vec<u8>] = &[
        Vec::new(),
        list(&[]),
        list(&[entry(0, b"")]),
        list(&[entry(1, b"a.test")]),
        list(&[entry(0, b"a.test"), entry(0, b"b.test")]),
        list(&[entry(0, b"a.test\0")]),
        list(&[entry(0, b"a.test/")]),
        list(&[entry(0, "b\u{fc}.test".as_bytes())]),
        list(&[entry(0, b"0x7f.1")]),
        [list(&[entry(0, b"a.test")]), vec![0]].concat(),
        list(&[entry(0, b"a.test")])[..5].to_vec(),
    ];
    for body in wrong {
        assert_eq!(of(body), Err(Unread::Malformed), "{body:?}");
    }
}

#[test]
fn what_is_no_greeting() {
    let good = records(&greeting("a.test", true), &[16000]);
    for (at, byte) in [(0, 23), (1, 2), (5, 2), (6, 1)] {
        let mut wrong = good.clone();
        wrong[at] = byte;
        assert_eq!(parse(&wrong), Err(Unread::Malformed), "{at}");
    }
    assert_eq!(parse(&[22, 3, 1, 0, 0]), Err(Unread::Malformed));
    assert_eq!(parse(&[22, 3, 1, 0xff, 0xff]), Err(Unread::Malformed));
    assert_eq!(parse(b"\x16GET"), Err(Unread::Malformed));
    // Another record between the pieces of the ClientHello.
    let mut split = records(&greeting("a.test", true), &[20]);
    split[25] = 21;
    assert_eq!(parse(&split), Err(Unread::Malformed));
}

proptest! {
    /// The name is found however the message is split and whatever follows; every proper prefix is incomplete.
    #[test]
    fn any_split(sizes in prop::collection::vec(1usize..600, 1..10), at in any::<prop::sample::Index>()) {
        let bytes = records(&greeting("www.a.test", true), &sizes);
        prop_assert_eq!(parse(&bytes), Ok(Some(name("www.a.test"))));
        prop_assert_eq!(parse(&bytes[..at.index(bytes.len())]), Err(Unread::Incomplete));
        let more = [bytes.as_slice(), b"whatever"].concat();
        prop_assert_eq!(parse(&more), Ok(Some(name("www.a.test"))));
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..300, byte in any::<u8>()) {
        let _answer = parse(&bytes);
        let mut greeting = records(&greeting("a.test", true), &[100]);
        if let Some(old) = greeting.get_mut(at) {
            *old = byte;
        }
        let _answer = parse(&greeting);
    }
}
