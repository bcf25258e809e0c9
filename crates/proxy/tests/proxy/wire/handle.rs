//! The proxy in a thread of its own.

use std::net::TcpListener;

use nono_proxy::{Category, Phase, Proxy};

use super::world::{Peer, config, server, token};

#[test]
fn it_starts_tells_and_ends() {
    let port = server(|mut peer| drop(peer.rest()));
    let handle = Proxy::start(config(&["127.0.0.1"]), ([127, 0, 0, 1], 0).into()).unwrap();
    let mut closed = Peer::to(handle.address());
    closed.send("CONNECT closed.test:443 HTTP/1.1\r\n\r\n");
    assert_eq!(closed.message().status(), 403);
    let (events, dropped) = handle.drain();
    assert_eq!((events[0].category, events.len(), dropped), (Some(Category::HostDenied), 1, 0));
    let mut open = Peer::to(([127, 0, 0, 1], handle.port()).into());
    open.send(format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n"));
    assert_eq!(open.head().status(), 200);
    let phases = || handle.drain().0.into_iter().map(|event| event.phase).collect::<Vec<_>>();
    assert_eq!(phases(), [Some(Phase::Opened)]);
    handle.shutdown();
    handle.shutdown();
    assert_eq!(phases(), [Some(Phase::Ended)]);
    assert!(open.is_closed());
    assert!(std::net::TcpStream::connect(handle.address()).is_err());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    assert!(Proxy::start(config(&[]), taken.local_addr().unwrap()).is_err());
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

#[test]
fn another_socket_is_served_until_its_guard_is_dropped() {
    let port = server(|mut peer| drop(peer.rest()));
    let handle = Proxy::start(token(config(&["127.0.0.1"]), "t0"), ([127, 0, 0, 1], 0).into()).unwrap();
    let also = listener();
    let there = also.local_addr().unwrap();
    let guard = handle.serve_also(also.into()).unwrap();
    let ask = |host: &str, fields: &str| {
        let mut client = Peer::to(there);
        client.send(format!("CONNECT {host}:{port} HTTP/1.1\r\n{fields}\r\n"));
        (client.head().status(), client)
    };
    assert_eq!(ask("closed.test", "").0, 403);
    assert_eq!(ask("127.0.0.1", "").0, 407);
    let (status, mut open) = ask("127.0.0.1", "Proxy-Authorization: Bearer t0\r\n");
    assert_eq!(status, 200);
    drop(guard);
    let phases: Vec<_> = handle.drain().0.into_iter().map(|event| event.phase).collect();
    assert_eq!(phases, [None, None, Some(Phase::Opened), Some(Phase::Ended)]);
    assert!(open.is_closed());
    assert!(std::net::TcpStream::connect(there).is_err());
    let mut still = Peer::to(handle.address());
    still.send("CONNECT closed.test:443 HTTP/1.1\r\n\r\n");
    assert_eq!(still.message().status(), 403);
}

#[test]
fn the_end_of_a_proxy_is_the_end_of_all_its_sockets() {
    let port = server(|mut peer| drop(peer.rest()));
    let handle = Proxy::start(config(&["127.0.0.1"]), ([127, 0, 0, 1], 0).into()).unwrap();
    let also = listener();
    let there = also.local_addr().unwrap();
    let guard = handle.serve_also(also.into()).unwrap();
    let mut open = Peer::to(there);
    open.send(format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n"));
    assert_eq!(open.head().status(), 200);
    handle.shutdown();
    assert!(open.is_closed());
    assert_eq!(handle.drain().0.len(), 2);
    assert!(std::net::TcpStream::connect(there).is_err());
    drop(guard);
    // Whether it is refused or not served: it does not hang, and nothing answers.
    let late = listener();
    let there = late.local_addr().unwrap();
    drop(handle.serve_also(late.into()));
    assert!(std::net::TcpStream::connect(there).is_err());
}

#[test]
fn a_socket_that_does_not_listen_to_the_network_is_refused() {
    let handle = Proxy::start(config(&[]), ([127, 0, 0, 1], 0).into()).unwrap();
    let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    assert!(handle.serve_also(one.into()).is_err());
}

#[test]
fn events_that_are_not_taken_are_counted() {
    let handle = Proxy::start(config(&[]), ([127, 0, 0, 1], 0).into()).unwrap();
    let mut client = Peer::to(handle.address());
    for _ in 0..4100 {
        client.send("CONNECT closed.test:443 HTTP/1.1\r\n\r\n");
        assert_eq!(client.message().status(), 403);
    }
    let (events, dropped) = handle.drain();
    assert_eq!((events.len(), dropped), (4096, 4));
}
