//! Plain requests.

use std::sync::mpsc::channel;
use std::sync::{Mutex, mpsc};

use nono_proxy::{Category, Mode};

use super::world::{PATIENCE, Peer, World, echo, server};

fn get(port: u16, path: &str) -> String {
    format!("GET http://127.0.0.1:{port}{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")
}

#[test]
fn a_request_is_written_anew() {
    let port = echo();
    let world = World::open(&["127.0.0.1"]);
    let answer = world.ask(&format!(
        "POST http://127.0.0.1:{port}/a/b?secret=1 HTTP/1.1\r\nhost:127.0.0.1:{port}\r\nX-One:  1 \r\n\
         Connection: keep-alive, X-Two\r\nX-Two: 2\r\nKeep-Alive: 5\r\nProxy-Connection: keep-alive\r\n\
         Proxy-Authorization: Basic eA==\r\nProxy-Other: 1\r\nTE: trailers\r\nUpgrade: h2c\r\n\
         Content-Length: 5\r\n\r\nhello"
    ));
    assert_eq!(answer.status(), 200);
    let expected = format!(
        "connection 1\nPOST /a/b?secret=1 HTTP/1.1\nhost: 127.0.0.1:{port}\nx-one: 1\ncontent-length: 5\nhello"
    );
    assert_eq!(answer.text(), expected);
    let event = world.event();
    assert_eq!((event.mode, event.allowed, event.status), (Mode::Forward, true, Some(200)));
    assert_eq!((event.host.as_str(), event.port), ("127.0.0.1", port));
    assert_eq!((event.method.as_deref(), event.path.as_deref()), (Some("POST"), Some("/a/b")));
    assert_eq!(event.address.as_deref(), Some("127.0.0.1"));
    assert!(event.bytes_sent > 5 && event.bytes_received > 100);
    assert_eq!((event.reason, event.category), (None, None));
}

#[test]
fn every_request_of_a_connection_is_judged_and_a_server_is_kept_for_the_same_host_only() {
    let (one, two, closed) = (echo(), echo(), echo());
    let world = World::open(&[&format!("127.0.0.1:{one}"), &format!("localhost:{two}")]);
    let mut client = world.client();
    let mut ask = |request: String| {
        client.send(request);
        let answer = client.message();
        (answer.status(), answer.text().lines().next().unwrap_or_default().to_owned())
    };
    assert_eq!(ask(get(one, "/")), (200, "connection 1".to_owned()));
    assert_eq!(ask(get(one, "/")), (200, "connection 1".to_owned()));
    let other = format!("GET http://localhost:{two}/ HTTP/1.1\r\nHost: localhost:{two}\r\n\r\n");
    assert_eq!(ask(other), (200, "connection 1".to_owned()));
    assert_eq!(ask(get(closed, "/")).0, 403);
    assert_eq!(ask(get(one, "/")), (200, "connection 2".to_owned()));
    drop(client);
    let events = world.end();
    let seen: Vec<_> = events.iter().map(|event| (event.allowed, event.status)).collect();
    let fine = (true, Some(200));
    assert_eq!(seen, [fine, fine, fine, (false, Some(403)), fine]);
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let port = echo();
    let world = World::open(&["127.0.0.1"]);
    let mut client = world.client();
    let body = format!(
        "POST http://127.0.0.1:{port}/1 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nTransfer-Encoding: chunked\r\n\r\n\
         3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\n"
    );
    client.send(get(port, "/0") + &body + &get(port, "/2"));
    for (number, end) in [(0, ""), (1, "abcde"), (2, "")] {
        let answer = client.message();
        assert!(answer.text().contains(&format!(" /{number} HTTP/1.1")), "{answer:?}");
        assert!(answer.text().ends_with(&format!("\n{end}")), "{answer:?}");
    }
}

#[test]
fn a_stream_arrives_as_it_is_sent() {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let port = server(move |mut peer| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n");
        for number in 0..3 {
            wait.lock().unwrap().recv().unwrap();
            peer.send(format!("8\r\ndata: {number}\n\r\n"));
        }
        wait.lock().unwrap().recv().unwrap();
        peer.send("0\r\n\r\n");
    });
    let world = World::open(&["127.0.0.1"]);
    let mut client = world.client();
    client.send(get(port, "/"));
    assert_eq!(client.head().field("transfer-encoding"), Some("chunked"));
    for number in 0..3 {
        go.send(()).unwrap();
        assert_eq!(client.chunk(), format!("data: {number}\n").as_bytes());
    }
    go.send(()).unwrap();
    assert_eq!(client.chunk(), b"");
    assert_eq!(world.event().status, Some(200));
}

#[test]
fn a_body_is_sent_on_before_it_is_whole_and_an_early_answer_ends_it() {
    let (seen, at_server) = channel();
    let seen = Mutex::new(seen);
    let port = server(move |mut peer| {
        peer.head();
        seen.lock().unwrap().send(peer.exactly(4)).unwrap();
        peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
        peer.rest();
    });
    let world = World::open(&["127.0.0.1"]);
    let mut client = world.client();
    client.send(format!(
        "PUT http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 1000\r\n\r\npart"
    ));
    assert_eq!(at_server.recv().unwrap(), b"part");
    let answer = client.message();
    assert_eq!((answer.status(), answer.text()), (413, "no"));
    // What follows would be the body, not a request.
    client.send(get(port, "/"));
    assert!(client.is_closed());
}

#[test]
fn interim_answers_are_passed_on() {
    let port = server(|mut peer| {
        assert_eq!(peer.head().field("expect"), Some("100-continue"));
        peer.send("HTTP/1.1 100 Continue\r\n\r\n");
        let body = String::from_utf8(peer.exactly(2)).unwrap();
        peer.send(format!(
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{body}"
        ));
    });
    let world = World::open(&["127.0.0.1"]);
    let mut client = world.client();
    client.send(format!(
        "PUT http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    ));
    assert_eq!(client.head().status(), 100);
    client.send("hi");
    assert_eq!(client.head().field("link"), Some("</a>"));
    assert_eq!(client.message().text(), "hi");
}

#[test]
fn answers_without_a_body_end_at_their_head() {
    for (method, head) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"),
        ("HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n"),
    ] {
        let port = server(move |mut peer| {
            while peer.try_head().is_some() {
                peer.send(head);
            }
        });
        let world = World::open(&["127.0.0.1"]);
        let mut client = world.client();
        for _ in 0..2 {
            client.send(get(port, "/").replace("GET", method));
            let answer = client.head();
            assert_eq!(answer.first, head.lines().next().unwrap());
            assert_eq!(answer.field("content-length").is_some(), head.contains("500"));
        }
    }
}

#[test]
fn a_body_until_the_end_is_told_from_a_broken_one() {
    let port = server(|mut peer| {
        peer.head();
        peer.send("HTTP/1.0 200 OK\r\n\r\nall of it");
    });
    let world = World::open(&["127.0.0.1"]);
    let mut client = world.client();
    client.send(get(port, "/"));
    let answer = client.message();
    assert_eq!((answer.field("transfer-encoding"), answer.text()), (Some("chunked"), "all of it"));
    client.send(get(port, "/"));
    assert_eq!(client.message().status(), 200);
    let old = format!("GET http://127.0.0.1:{port}/ HTTP/1.0\r\n\r\n");
    let answer = world.ask(&old);
    assert_eq!((answer.field("connection"), answer.text()), (Some("close"), "all of it"));
}

#[test]
fn a_broken_answer_is_not_passed_off_as_whole() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalfXX",
    ] {
        let port = server(move |mut peer| {
            peer.head();
            peer.send(answer);
        });
        let world = World::open(&["127.0.0.1"]);
        let mut client = world.client();
        client.send(get(port, "/"));
        // What is wrong from the start is not even begun.
        if client.head().status() == 200 {
            let rest = client.rest();
            assert!(!rest.ends_with(b"0\r\n\r\n") && rest.len() < 30, "{rest:?}");
        }
        assert_eq!(world.event().category, Some(Category::UpstreamFailed), "{answer}");
    }
}

#[test]
fn a_server_that_could_be_understood_in_two_ways_is_not_believed() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        "HTTP/1.1 200 OK\r\nX : y\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "nonsense\r\n\r\n",
        "",
    ] {
        let port = server(move |mut peer| {
            peer.head();
            peer.send(answer);
        });
        let world = World::open(&["127.0.0.1"]);
        let said = world.ask(&get(port, "/"));
        assert_eq!(said.status(), 502, "{answer:?}");
        assert_eq!(world.event().category, Some(Category::UpstreamFailed), "{answer:?}");
    }
}

#[test]
fn a_kept_server_that_has_gone_is_replaced() {
    let port = server(|mut peer: Peer| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    });
    let world = World::open(&["127.0.0.1"]);
    let mut client = world.client();
    for _ in 0..20 {
        client.send(get(port, "/"));
        assert_eq!(client.message().status(), 200);
    }
}

#[test]
fn a_client_that_leaves_is_not_answered_and_one_that_says_more_is() {
    let (arrived, arrivals) = channel();
    let (go, wait) = channel::<()>();
    let (arrived, wait) = (Mutex::new(arrived), Mutex::new(wait));
    let port = server(move |mut peer| {
        let first = peer.head().first;
        arrived.lock().unwrap().send(first.clone()).unwrap();
        if first.contains("/leave") {
            // It ends although nothing was answered.
            arrived.lock().unwrap().send(format!("{} more", peer.rest().len())).unwrap();
            return;
        }
        wait.lock().unwrap().recv().unwrap();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none");
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo");
    });
    let world = World::open(&["127.0.0.1"]);
    let mut client = world.client();
    client.send(get(port, "/leave"));
    assert_eq!(arrivals.recv_timeout(PATIENCE).unwrap(), "GET /leave HTTP/1.1");
    drop(client);
    assert_eq!(arrivals.recv_timeout(PATIENCE).unwrap(), "0 more");
    let event = world.event();
    assert_eq!((event.allowed, event.status, event.category), (true, None, None));

    let mut client = world.client();
    client.send(get(port, "/stay"));
    arrivals.recv_timeout(PATIENCE).unwrap();
    let (start, rest) = ("GET http", get(port, "/next").split_off(8));
    client.send(start);
    go.send(()).unwrap();
    assert_eq!(client.message().text(), "one");
    client.send(rest);
    assert_eq!(client.message().text(), "two");
}

#[test]
fn a_websocket_becomes_a_tunnel() {
    let port = server(|mut peer| {
        let request = peer.head();
        assert_eq!(request.field("upgrade"), Some("websocket"));
        assert_eq!(request.field("connection"), Some("Upgrade"));
        peer.send(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst",
        );
        let heard = peer.exactly(4);
        peer.send(heard);
    });
    let world = World::open(&["127.0.0.1"]);
    let mut client = world.client();
    client.send(
        get(port, "/chat").replace("\r\n\r\n", "\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n\r\n"),
    );
    let head = client.head();
    assert_eq!((head.status(), head.field("upgrade")), (101, Some("websocket")));
    assert_eq!(client.exactly(5), b"first");
    client.send("ping");
    assert_eq!(client.exactly(4), b"ping");
    assert!(client.is_closed());
    drop(client);
    assert_eq!(world.event().status, Some(101));
}

#[test]
fn what_is_open_at_the_end_is_told() {
    let (ready, wait) = mpsc::channel::<()>();
    let ready = Mutex::new(ready);
    let port = server(move |mut peer| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome");
        ready.lock().unwrap().send(()).unwrap();
        peer.rest();
    });
    let world = World::open(&["127.0.0.1"]);
    let mut client = world.client();
    client.send(get(port, "/"));
    wait.recv().unwrap();
    client.head();
    assert_eq!(client.exactly(4), b"some");
    let events = world.end();
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].allowed, events[0].status), (true, Some(200)));
    assert!(events[0].bytes_received > 4);
    assert!(events[0].reason.as_deref().is_some_and(|reason| reason.contains("the proxy ended")));
    assert!(client.is_closed());
}
