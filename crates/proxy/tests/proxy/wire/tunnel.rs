//! `CONNECT`.

use std::net::Shutdown;
use std::sync::Arc;

use nono_proxy::{Category, Mode, Phase};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};

use super::world::{Peer, World, echo, server};

fn connect(world: &World, target: &str) -> Peer {
    let mut client = world.client();
    client.send(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"));
    assert_eq!(client.head().status(), 200);
    client
}

/// A server that tells what it heard, in capital letters.
fn loud() -> u16 {
    server(|mut peer| {
        while let Some(byte) = peer.byte() {
            peer.send([byte.to_ascii_uppercase()]);
        }
        peer.stream.shutdown(Shutdown::Write).unwrap();
    })
}

#[test]
fn bytes_go_both_ways_and_each_way_ends_alone() {
    let port = loud();
    let world = World::open(&["127.0.0.1"]);
    let mut client = connect(&world, &format!("127.0.0.1:{port}"));
    client.send("\0hello");
    assert_eq!(client.exactly(6), b"\0HELLO");
    client.send("bye");
    client.stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.rest(), b"BYE");
    let event = world.event();
    assert_eq!((event.mode, event.allowed, event.status), (Mode::Connect, true, Some(200)));
    assert_eq!((event.bytes_sent, event.bytes_received, event.reason), (9, 9, None));
}

#[test]
fn it_is_told_when_it_opens_and_when_it_ends() {
    let port = loud();
    let world = World::open(&["127.0.0.1"]);
    let mut client = connect(&world, &format!("127.0.0.1:{port}"));
    let opened = world.any_event();
    assert_eq!((opened.phase, opened.allowed, opened.status), (Some(Phase::Opened), true, Some(200)));
    assert_eq!(
        (opened.host.as_str(), opened.port, opened.address.as_deref()),
        ("127.0.0.1", port, Some("127.0.0.1"))
    );
    assert_eq!((opened.bytes_sent, opened.bytes_received), (0, 0));
    client.send("\0hello");
    assert_eq!(client.exactly(6), b"\0HELLO");
    drop(client);
    let ended = world.any_event();
    assert_eq!((ended.phase, ended.bytes_sent, ended.port), (Some(Phase::Ended), 6, port));
    // What is refused, or told once, has no two ends.
    world.ask("CONNECT closed.test:443 HTTP/1.1\r\n\r\n");
    assert_eq!(world.any_event().phase, None);
}

/// A server that skips what it does not understand would read a request there.
#[test]
fn a_request_after_something_else_has_to_name_the_host_too() {
    let world = World::open(&["127.0.0.1"]);
    for (host, answer) in
        [("127.0.0.1", "HELO X\r\nGET / HTTP/1.1\r\nHOST: 127.0.0.1\r\n"), ("b.test", "HELO X\r\n")]
    {
        let port = loud();
        let mut client = connect(&world, &format!("127.0.0.1:{port}"));
        client.send("helo x\r\n");
        assert_eq!(client.exactly(8), b"HELO X\r\n");
        client.send(format!("get / http/1.1\r\nhost: {host}\r\n"));
        client.stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.rest(), &answer.as_bytes()[8..]);
        let event = world.event();
        let expected = (host == "b.test").then_some(Category::SniMismatch);
        assert_eq!(event.category, expected, "{event:?}");
    }
}

#[test]
fn a_server_may_speak_first() {
    let port = server(|mut peer| {
        peer.send("SSH-2.0-server\r\n");
        assert_eq!(peer.exactly(16), b"SSH-2.0-client\r\n");
        peer.send("fine");
    });
    let world = World::open(&["127.0.0.1"]);
    let mut client = connect(&world, &format!("127.0.0.1:{port}"));
    assert_eq!(client.exactly(16), b"SSH-2.0-server\r\n");
    client.send("SSH-2.0-client\r\n");
    assert_eq!(client.rest(), b"fine");
}

#[test]
fn nothing_is_established_where_no_process_listens() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let world = World::open(&["127.0.0.1"]);
    let answer = world.ask(&format!("CONNECT 127.0.0.1:{free} HTTP/1.1\r\n\r\n"));
    assert_eq!(answer.status(), 502);
    let event = world.event();
    assert_eq!((event.allowed, event.category), (true, Some(Category::UpstreamConnectFailed)));
}

#[test]
fn a_plain_request_in_a_tunnel_has_to_name_its_host() {
    let port = echo();
    let world = World::open(&["localhost"]);
    let target = format!("localhost:{port}");
    for host in [target.as_str(), "localhost", "LOCALHOST."] {
        let mut client = connect(&world, &target);
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        for _ in 0..2 {
            client.send(&request);
            let answer = client.message();
            assert!(
                answer.text().contains(&format!("GET / HTTP/1.1\nhost: localhost:{port}\n")),
                "{answer:?}"
            );
        }
        // A later one is judged too.
        client.send("GET / HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n");
        assert_eq!(client.message().status(), 403);
        assert!(client.is_closed());
        drop(client);
        let mut events: Vec<_> = (0..4).map(|_| world.event()).collect();
        let tunnel = events.iter().position(|event| event.mode == Mode::Connect).unwrap();
        assert_eq!(events.remove(tunnel).category, None);
        let categories: Vec<_> = events.iter().map(|event| event.category).collect();
        assert_eq!(categories, [None, None, Some(Category::SniMismatch)]);
    }
    for head in [
        "Host: other.test",
        "Host: localhost:1",
        "Host: localhost\r\nHost: other.test",
        "X: y",
        "Host : localhost",
    ] {
        let mut client = connect(&world, &target);
        client.send(format!("GET / HTTP/1.1\r\n{head}\r\n\r\n"));
        assert!(client.is_closed(), "{head}");
        let event = world.event();
        assert!(!event.allowed && event.category.is_some(), "{head}: {event:?}");
        assert_eq!(event.bytes_sent, 0);
    }
}

/// What some servers take for a request although it is none, in one piece and byte by byte.
#[test]
fn what_a_server_could_take_for_a_request_to_another_host_does_not_reach_it() {
    let port = echo();
    let world = World::open(&["localhost"]);
    let host = "Host: other.test\r\n\r\n";
    for first in [
        "\r\nGET / HTTP/1.1\r\n",
        "\nGET / HTTP/1.1\r\n",
        " GET / HTTP/1.1\r\n",
        "GET\t/ HTTP/1.1\r\n",
        "GET / HTTP/1.1 \r\n",
        "M-SEARCH / HTTP/1.1\r\n",
        "GET /\r\n",
        "PRI * HTTP/2.0\r\n",
        "\x14\x03\x03\0\x01\x01",
        "\x15\x03\x01\0\x02\x01\x70",
    ] {
        for whole in [true, false] {
            let mut client = connect(&world, &format!("localhost:{port}"));
            if whole {
                client.send(format!("{first}{host}"));
            } else {
                // It is closed in the middle of it.
                let _sent =
                    format!("{first}{host}").bytes().try_for_each(|byte| client.stream.write_all(&[byte]));
            }
            assert!(client.is_closed(), "{first:?}");
            let event = world.event();
            assert!(!event.allowed && event.category.is_some(), "{first:?}: {event:?}");
            assert_eq!(event.bytes_sent, 0);
        }
    }
}

fn tls_server(name: &str) -> (u16, RootCertStore) {
    let signed = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(signed.cert.der().clone()).unwrap();
    let key = PrivateKeyDer::try_from(signed.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![signed.cert.der().clone()], key).unwrap());
    let port = server(move |peer| {
        let mut tls = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), peer.stream);
        let mut heard = [0; 5];
        // A client that is refused never gets here.
        if tls.read_exact(&mut heard).is_ok() {
            tls.write_all(&heard.to_ascii_uppercase()).unwrap();
            tls.conn.send_close_notify();
            tls.flush().unwrap();
        }
    });
    (port, roots)
}

fn tls_client(roots: RootCertStore, name: &str, sni: bool) -> ClientConnection {
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.enable_sni = sni;
    ClientConnection::new(Arc::new(config), ServerName::try_from(name.to_owned()).unwrap()).unwrap()
}

#[test]
fn tls_to_the_host_that_was_asked_for() {
    let (port, roots) = tls_server("localhost");
    let world = World::open(&["localhost"]);
    let client = connect(&world, &format!("LOCALHOST.:{port}"));
    let mut tls = StreamOwned::new(tls_client(roots, "localhost", true), client.stream);
    tls.write_all(b"hello").unwrap();
    let mut heard = Vec::new();
    tls.read_to_end(&mut heard).unwrap();
    assert_eq!(heard, b"HELLO");
    drop(tls);
    let event = world.event();
    assert_eq!((event.host.as_str(), event.category), ("localhost", None));
    assert!(event.bytes_sent > 100 && event.bytes_received > 100);
}

#[test]
fn tls_that_names_another_host_or_none_is_ended() {
    let (port, roots) = tls_server("localhost");
    let world = World::open(&["localhost"]);
    for (name, sni) in [("other.test", true), ("localhost", false)] {
        let client = connect(&world, &format!("localhost:{port}"));
        let mut tls = StreamOwned::new(tls_client(roots.clone(), name, sni), client.stream);
        assert!(tls.write_all(b"hello").and_then(|()| tls.flush()).is_err());
        let event = world.event();
        assert_eq!((event.allowed, event.category), (false, Some(Category::SniMismatch)));
        assert_eq!(event.bytes_sent, 0);
    }
}

#[test]
fn a_greeting_may_come_byte_by_byte() {
    let (port, roots) = tls_server("localhost");
    let world = World::open(&["localhost"]);
    let mut client = connect(&world, &format!("localhost:{port}"));
    let mut tls = tls_client(roots, "localhost", true);
    let mut hello = Vec::new();
    tls.write_tls(&mut hello).unwrap();
    for byte in hello {
        client.send([byte]);
    }
    let mut tls = StreamOwned::new(tls, client.stream);
    tls.write_all(b"hello").unwrap();
    let mut heard = [0; 5];
    tls.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"HELLO");
}
