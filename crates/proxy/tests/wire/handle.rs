//! The proxy in a thread of its own.

use nono_proxy::{Category, Phase, Proxy};

use crate::world::{Peer, config, server};

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

#[test]
fn events_that_nobody_takes_are_counted() {
    let handle = Proxy::start(config(&[]), ([127, 0, 0, 1], 0).into()).unwrap();
    let mut client = Peer::to(handle.address());
    for _ in 0..4100 {
        client.send("CONNECT closed.test:443 HTTP/1.1\r\n\r\n");
        assert_eq!(client.message().status(), 403);
    }
    let (events, dropped) = handle.drain();
    assert_eq!((events.len(), dropped), (4096, 4));
}
