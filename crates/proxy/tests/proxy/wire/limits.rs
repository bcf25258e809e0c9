//! Limits on sizes, times and numbers of connections.

use std::net::TcpListener;
use std::time::Duration;

use nono_proxy::{Category, Limits};
use tokio::sync::watch;

use super::world::{Peer, World, config, echo, server};

fn limited(limits: Limits) -> World {
    World::new(nono_proxy::Config { limits, ..config(&["127.0.0.1"]) })
}

/// This process has both ends of every connection: four descriptors for each.
fn raise_descriptors() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
}

#[test]
fn a_head_that_takes_too_long_is_ended() {
    let world = limited(Limits { head_time: Duration::from_millis(300), ..Limits::default() });
    let mut client = world.client();
    client.send("GET http://127.0.0.1/ HT");
    assert_eq!(client.message().status(), 408);
    assert_eq!(world.event().category, Some(Category::Timeout));
    assert!(world.client().is_closed());
}

#[test]
fn a_large_head_is_refused() {
    let world = limited(Limits { head_bytes: 1000, headers: 10, ..Limits::default() });
    let start = "GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n";
    for fields in [format!("X: {}\r\n", "x".repeat(2000)), "X: y\r\n".repeat(10)] {
        assert_eq!(world.ask(&format!("{start}{fields}\r\n")).status(), 431);
        assert_eq!(world.event().category, Some(Category::MalformedRequest));
    }
    let mut client = world.client();
    client.send("G".repeat(1001));
    assert_eq!(client.message().status(), 431);
}

#[test]
fn one_more_than_there_is_room_for_is_told_so_at_once() {
    let port = echo();
    let world = limited(Limits { connections: 2, ..Limits::default() });
    let request = format!("GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    let mut clients = [world.client(), world.client()];
    for client in &mut clients {
        client.send(&request);
        assert_eq!(client.message().status(), 200);
        world.event();
    }
    assert_eq!(world.ask(&request).status(), 503);
    assert_eq!(world.event().category, Some(Category::TooManyConnections));
    clients[0].send(&request);
    assert_eq!(clients[0].message().status(), 200);
    drop(clients);
    // A place is free again as soon as the proxy has seen that they left.
    while world.ask(&request).status() != 200 {}
}

#[test]
fn nothing_is_begun_without_room_to_tell_of_it() {
    let (gate, room) = watch::channel(false);
    let seen = room.clone();
    let port = server(move |mut peer| {
        peer.message();
        let open = *seen.borrow();
        peer.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n{}",
            if open { "open" } else { "shut" }
        ));
    });
    let world = World::behind(config(&["127.0.0.1"]), room);
    let mut client = world.client();
    client.send(format!("GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"));
    // One that has not said anything yet needs no room: it is turned away while the first one waits.
    let mut silent = world.client();
    silent.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(silent.is_closed());
    gate.send(true).unwrap();
    assert_eq!(client.message().text(), "open");
    assert_eq!(world.event().status, Some(200));
}

#[test]
fn large_heads_take_turns() {
    raise_descriptors();
    // It takes connections, and says nothing on them until they are dropped.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    silent.set_nonblocking(true).unwrap();
    let target = silent.local_addr().unwrap();
    let world = limited(Limits { head_time: Duration::from_secs(2), ..Limits::default() });
    let large = |target: &str| {
        format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\nX: {}\r\n\r\n", "x".repeat(31_000))
    };
    let mut clients = Vec::new();
    for _ in 0..400 {
        let mut client = world.client();
        client.send(large(&target.to_string()));
        clients.push(client);
    }
    let mut taken = Vec::new();
    let answered = |client: &Peer| {
        client.stream.set_nonblocking(true).unwrap();
        let answered = client.stream.peek(&mut [0]).is_ok();
        client.stream.set_nonblocking(false).unwrap();
        answered
    };
    // Each of them is passed on, or refused.
    while taken.len() + clients.iter().filter(|client| answered(client)).count() < clients.len() {
        taken.extend(std::iter::from_fn(|| silent.accept().ok()));
        std::thread::sleep(Duration::from_millis(10));
    }
    let passed = taken.len();
    assert!((100..300).contains(&passed), "{passed}");
    drop(taken);
    let answers: Vec<_> = clients.iter_mut().map(|client| client.message().status()).collect();
    let count = |status| answers.iter().filter(|given| **given == status).count();
    assert_eq!((count(502), count(503)), (passed, clients.len() - passed));
    // Nothing stays taken.
    let port = echo();
    assert_eq!(world.ask(&large(&format!("127.0.0.1:{port}"))).status(), 200);
}

#[test]
fn a_silent_tunnel_is_ended() {
    let port = super::world::server(|mut peer| drop(peer.rest()));
    let world = limited(Limits { idle: Duration::from_millis(300), ..Limits::default() });
    let mut client = world.client();
    client.send(format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n"));
    assert_eq!(client.head().status(), 200);
    assert!(client.is_closed());
    assert_eq!(world.event().category, Some(Category::Timeout));
}

#[test]
fn five_hundred_connections_at_once() {
    let port = echo();
    raise_descriptors();
    let world = limited(Limits::default());
    let request = format!("GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    let mut clients: Vec<_> = (0..500).map(|_| world.client()).collect();
    for _ in 0..3 {
        for client in &mut clients {
            client.send(&request);
        }
        assert!(clients.iter_mut().all(|client| client.message().status() == 200));
    }
    drop(clients);
    assert_eq!(world.end().iter().filter(|event| event.status == Some(200)).count(), 1500);
}
