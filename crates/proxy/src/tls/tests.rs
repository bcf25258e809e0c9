use std::io::{Read, Write};
use std::sync::Arc;

use nono_policy::host_rule::Host;
use rustls::{ClientConnection, ServerConnection};

use super::{SessionCa, client_config, server_name};
use crate::config::ClientTls;

fn host(text: &str) -> Host {
    text.parse().unwrap()
}

/// Handshake in memory: a client of `asked` with `trust` as its only authority, and the identity for `shown`.
fn handshake(ca: &SessionCa, trust: &str, shown: &str, asked: &str) -> Result<(), rustls::Error> {
    let config = Arc::new(client_config(trust, &ClientTls::default()).unwrap());
    let mut client = ClientConnection::new(config, server_name(&host(asked)).unwrap()).unwrap();
    let mut server = ServerConnection::new(ca.identity(&host(shown)).unwrap()).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut &wire[..]).unwrap();
        server.process_new_packets()?;
        wire.clear();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut &wire[..]).unwrap();
        client.process_new_packets()?;
    }
    assert_eq!(client.alpn_protocol(), Some(&b"http/1.1"[..]));
    client.writer().write_all(b"ping").unwrap();
    let mut wire = Vec::new();
    client.write_tls(&mut wire).unwrap();
    server.read_tls(&mut &wire[..]).unwrap();
    server.process_new_packets()?;
    let mut said = [0; 4];
    server.reader().read_exact(&mut said).unwrap();
    assert_eq!(&said, b"ping");
    Ok(())
}

#[test]
fn names_and_addresses_get_an_identity_of_their_own() {
    let ca = SessionCa::new(&[host("api.example.com"), host("127.0.0.1"), host("[::1]")]).unwrap();
    for name in ["api.example.com", "127.0.0.1", "[::1]"] {
        handshake(&ca, ca.pem(), name, name).unwrap();
    }
    assert!(ca.identity(&host("example.com")).is_none());
}

#[test]
fn only_this_sessions_authority_and_only_this_host() {
    let ca = SessionCa::new(&[host("api.example.com"), host("other.example.com")]).unwrap();
    let elsewhere = SessionCa::new(&[host("api.example.com")]).unwrap();
    assert!(handshake(&ca, elsewhere.pem(), "api.example.com", "api.example.com").is_err());
    assert!(handshake(&ca, ca.pem(), "other.example.com", "api.example.com").is_err());
}

#[test]
fn trust_in_the_authority_ends_at_its_hosts() {
    // As if its key had been kept and misused: the identity is signed by an authority made for other hosts.
    let key = rcgen::KeyPair::generate().unwrap();
    for (made_for, signed, good) in [
        ("api.example.com", "api.example.com", true),
        ("api.example.com", "mail.example.com", false),
        ("api.example.com", "127.0.0.1", false),
        ("127.0.0.1", "127.0.0.1", true),
        ("127.0.0.1", "127.0.0.2", false),
        ("127.0.0.1", "api.example.com", false),
    ] {
        let params = super::authority(&[host(made_for)]);
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = rcgen::Issuer::new(params, rcgen::KeyPair::try_from(key.serialized_der()).unwrap());
        let identity = Arc::new(super::identity(&host(signed), &issuer).unwrap());
        let ca = SessionCa { pem, identities: [(host(signed), identity)].into() };
        let outcome = handshake(&ca, ca.pem(), signed, signed);
        assert_eq!(outcome.is_ok(), good, "{made_for} signed {signed}: {outcome:?}");
    }
}

#[test]
fn no_certificates_is_an_error() {
    assert!(client_config("", &ClientTls::default()).is_err());
    assert!(
        client_config(
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            &ClientTls::default()
        )
        .is_err()
    );
}
