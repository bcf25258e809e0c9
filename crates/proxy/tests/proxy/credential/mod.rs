//! Credentials against real servers: the secret reaches the server, and never the client.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed step of a test ends it")]

mod origin;
mod relay;
mod routes;
mod secure;
mod world;

use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nono_proxy::{Category, Inject, Mode};
use origin::{Origin, PLACEHOLDER, SECRET};
use world::World;

/// The head and body that came back, and that the secret did not.
fn checked(answer: String) -> String {
    assert!(!answer.contains(SECRET), "{answer}");
    // The beginning of it alone says enough.
    assert!(!answer.contains("sk-real/0"), "{answer}");
    answer
}

fn bearer() -> String {
    format!("Authorization: Bearer {PLACEHOLDER}\r\n")
}

#[test]
fn by_the_prefix_the_placeholder_becomes_the_secret() {
    let world = World::new(Origin::plain());
    let answer = checked(world.reverse("/api/echo?a=b", &bearer()));
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let seen = world.origin.last();
    assert!(seen.starts_with("GET /v1/echo?a=b HTTP/1.1\r\n"), "{seen}");
    assert!(seen.contains(&format!("Authorization: Bearer {SECRET}\r\n")), "{seen}");
    assert!(seen.contains(&format!("Host: localhost:{}\r\n", world.origin.port)), "{seen}");
    // What the server says of it is what the client sent.
    assert!(answer.contains(&format!("Authorization: Bearer {PLACEHOLDER}\r\n")), "{answer}");
    assert!(answer.contains("X-Kept: yes\r\n"), "{answer}");
    let event = world.events().remove(0);
    assert_eq!((event.mode, event.allowed, event.status), (Mode::Reverse, true, Some(200)));
    assert_eq!((event.credential.as_deref(), event.path.as_deref()), (Some("api"), Some("/v1/echo")));
}

/// A program that has a proxy for everything asks it for the prefix too. The proxy never dials itself for that, not even
/// where its address is open.
#[test]
fn a_prefix_may_be_asked_for_through_the_proxy() {
    let world = World::with(Origin::plain(), world::bearer(), |config| {
        config.token = Some(nono_proxy::Secret::new("the-token"));
        config.allowed.push("127.0.0.1".parse().unwrap());
    });
    let own = world.proxy.address();
    for host in [own.to_string(), format!("localhost:{}", own.port())] {
        let ask = |path: &str, headers: &str| {
            let head = format!("GET http://{host}{path} HTTP/1.1\r\nHost: {host}\r\n");
            world.request(&format!(
                "{head}Connection: close\r\nProxy-Authorization: Bearer the-token\r\n{headers}\r\n"
            ))
        };
        let answer = checked(ask("/api/echo", &bearer()));
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let seen = world.origin.last();
        assert!(seen.starts_with("GET /v1/echo HTTP/1.1\r\n") && seen.contains(SECRET), "{seen}");
        assert!(!seen.contains("the-token"), "{seen}");
        assert!(ask("/api/echo", "").starts_with("HTTP/1.1 401 "));
        assert!(ask("/else", &bearer()).starts_with("HTTP/1.1 400 "));
        let tunnel = format!(
            "CONNECT {host} HTTP/1.1\r\nHost: {host}\r\nProxy-Authorization: Bearer the-token\r\n\r\n"
        );
        assert!(world.request(&tunnel).contains("this is the proxy itself"));
    }
    let events = world.events();
    let modes: Vec<_> = events.iter().map(|event| event.mode).collect();
    assert_eq!(modes, [Mode::Reverse, Mode::Reverse, Mode::Reverse, Mode::Connect].repeat(2));
}

#[test]
fn by_the_prefix_nothing_but_the_placeholder_is_let_in() {
    let world = World::new(Origin::plain());
    for headers in ["", "Authorization: Bearer my-own\r\n", "X-Other: nono-dummy-0123456789abcdef\r\n"] {
        let answer = checked(world.reverse("/api/echo", headers));
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    }
    assert!(checked(world.reverse("/other/echo", &bearer())).starts_with("HTTP/1.1 400 "));
    assert_eq!(world.origin.seen().len(), 0);
    let events = world.events();
    assert_eq!(events[0].category, Some(Category::AuthenticationFailed));
    assert!(events.iter().all(|event| !event.allowed), "{events:?}");
}

#[test]
fn forward_replaces_the_placeholder_and_leaves_other_keys_alone() {
    let world = World::new(Origin::plain());
    checked(world.forward("/v1/echo", &bearer()));
    assert!(world.origin.last().contains(SECRET));
    for headers in ["", "Authorization: Bearer my-own\r\n", "X-Other: nono-dummy-0123456789abcdef\r\n"] {
        let answer = checked(world.forward("/v1/echo", headers));
        assert!(answer.contains(headers), "{answer}");
        let seen = world.origin.last();
        assert!(!seen.contains(SECRET) && seen.contains(headers), "{seen}");
    }
    let credentials: Vec<_> = world.events().into_iter().map(|event| event.credential).collect();
    assert_eq!(credentials, [Some("api".to_owned()), None, None, None]);
}

/// Through a tunnel, everything that comes back after it is there.
fn tunnelled(world: &World, inside: &str) -> String {
    let mut stream = world.connect();
    let target = format!("localhost:{}", world.origin.port);
    stream.write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes()).unwrap();
    let mut established = [0; 39];
    stream.read_exact(&mut established).unwrap();
    assert!(established.ends_with(b"established\r\n\r\n"));
    stream.write_all(inside.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

/// The server shows the secret without having been given it in this request.
#[test]
fn a_tunnel_to_a_plain_service_is_served_like_its_plain_requests() {
    let world = World::new(Origin::plain());
    let ask = |path: &str, host: &str, headers: &str| {
        tunnelled(
            &world,
            &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"),
        )
    };
    let error = checked(ask("/v1/error", "localhost", ""));
    assert!(error.contains(&format!("<p>{PLACEHOLDER}</p>")), "{error}");
    assert!(!world.origin.last().contains(SECRET));
    let echo = checked(ask("/v1/echo", &format!("localhost:{}", world.origin.port), &bearer()));
    assert!(echo.starts_with("HTTP/1.1 200 ") && echo.contains(PLACEHOLDER), "{echo}");
    assert!(world.origin.last().contains(SECRET));
    assert!(ask("/v1/echo", "other.test", "").starts_with("HTTP/1.1 421 "));
    for other in ["SSH-2.0-x\r\n\r\n", "\x16\x03\x01\0\x05\x01", "\r\nGET /v1/error HTTP/1.1\r\n\r\n", "\0"] {
        assert!(checked(tunnelled(&world, other)).starts_with("HTTP/1.1 400 "), "{other:?}");
    }
    assert_eq!(world.origin.seen().len(), 2);
    let events = world.events();
    assert!(events.iter().all(|event| event.mode == Mode::ConnectIntercept), "{events:?}");
    assert_eq!(events.iter().filter(|event| event.credential.is_some()).count(), 1);
}

#[test]
fn another_port_of_the_same_host_gets_no_secret() {
    let world = World::new(Origin::plain());
    let other = Origin::plain();
    let answer = checked(world.request(&format!(
        "GET http://localhost:{0}/v1/echo HTTP/1.1\r\nHost: localhost:{0}\r\nConnection: close\r\n{1}\r\n",
        other.port,
        bearer()
    )));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(other.last().contains(PLACEHOLDER) && !other.last().contains(SECRET));
}

#[test]
fn no_way_of_answering_shows_the_secret() {
    let world = World::new(Origin::plain());
    for (path, expected) in [
        ("/v1/echo", "200 OK"),
        ("/v1/chunks", "200 OK"),
        ("/v1/close", "200 OK"),
        ("/v1/redirect", "302 Found"),
        ("/v1/error", "401 Bad key"),
        ("/v1/hint", "hinted"),
        ("/v1/gzip", "502 "),
        ("/v1/part", "502 "),
    ] {
        let answer = checked(world.forward(path, &bearer()));
        assert!(answer.contains(expected), "{path}: {answer}");
        assert!(world.origin.last().contains(SECRET), "{path}");
        assert!(world.origin.last().contains("accept-encoding: identity\r\n"), "{path}");
    }
    let redirect = checked(world.forward("/v1/redirect", &bearer()));
    assert!(
        redirect.contains(&format!("Location: https://other.example/?key={PLACEHOLDER}\r\n")),
        "{redirect}"
    );
    let error = checked(world.forward("/v1/error", &bearer()));
    assert!(error.contains(&format!("Set-Cookie: k={PLACEHOLDER}\r\n")), "{error}");
    assert!(error.contains(&format!("<p>{PLACEHOLDER}</p>")), "{error}");
    let told = format!("{:?}", world.events());
    assert!(!told.contains("sk-real"), "{told}");
}

#[test]
fn an_answer_that_breaks_off_shows_no_beginning_of_it() {
    let world = World::new(Origin::plain());
    let answer = checked(world.forward("/v1/short", &bearer()));
    assert!(!answer.contains("sk-"), "{answer}");
    // It must not look complete.
    assert!(!answer.ends_with("0\r\n\r\n"), "{answer}");
}

#[test]
fn trace_and_parts_are_not_asked_for() {
    let world = World::new(Origin::plain());
    let url = format!("http://localhost:{}/v1/echo", world.origin.port);
    let host = format!("Host: localhost:{}\r\nConnection: close\r\n", world.origin.port);
    let answer = world.request(&format!("TRACE {url} HTTP/1.1\r\n{host}{}\r\n", bearer()));
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    assert_eq!(world.origin.seen().len(), 0);
    let wants = "Range: bytes=0-9\r\nIf-Range: x\r\nAccept-Encoding: gzip\r\nTE: trailers\r\n";
    checked(world.forward("/v1/echo", &format!("{wants}{}", bearer())));
    let seen = world.origin.last().to_ascii_lowercase();
    assert!(!seen.contains("range") && !seen.contains("gzip") && !seen.contains("te: "), "{seen}");
}

#[test]
fn a_redirect_within_the_service_keeps_the_prefix() {
    let world = World::new(Origin::plain());
    let answer = world.reverse("/api/around", &bearer());
    assert!(answer.contains("Location: /api/echo\r\n"), "{answer}");
    let answer = world.forward("/v1/around", &bearer());
    assert!(answer.contains("Location: /v1/echo\r\n"), "{answer}");
}

#[test]
fn query_and_basic() {
    let world = World::with(Origin::plain(), Inject::Query { name: "key".to_owned() }, |_| {});
    let answer = checked(world.reverse(&format!("/api/echo?a=1&key={PLACEHOLDER}"), ""));
    assert!(answer.contains(&format!("GET /v1/echo?a=1&key={PLACEHOLDER} HTTP")), "{answer}");
    assert!(world.origin.last().contains("key=sk-real%2F0123%2B456%3D%26%22x "));
    assert_eq!(world.events()[0].path.as_deref(), Some("/v1/echo"));

    let world = World::with(Origin::plain(), Inject::Basic { user: "me".to_owned() }, |_| {});
    let pair = |word: &str| STANDARD.encode(format!("me:{word}"));
    let answer = world.reverse("/api/echo", &format!("Authorization: Basic {}\r\n", pair(PLACEHOLDER)));
    assert!(world.origin.last().contains(&pair(SECRET)));
    assert!(!answer.contains(pair(SECRET).trim_end_matches('=')), "{answer}");
    assert!(answer.contains(pair(PLACEHOLDER).trim_end_matches('=')), "{answer}");
}

#[test]
fn a_streamed_answer_is_not_held_up() {
    let world = World::new(Origin::plain());
    let mut stream = world.connect();
    stream.write_all(world.forward_request("/v1/events", &bearer()).as_bytes()).unwrap();
    let mut answer = String::new();
    let mut until = |text: &str| {
        let mut byte = [0];
        while !answer.contains(text) {
            assert_eq!(stream.read(&mut byte).unwrap(), 1, "{answer}");
            answer.push(char::from(byte[0]));
        }
    };
    // Each part is there before the server is told to go on.
    until("data: one sk-re\n\n");
    world.origin.go.send(()).unwrap();
    until("data: two\n\n");
    world.origin.go.send(()).unwrap();
    until("0\r\n\r\n");
}

#[test]
fn an_old_client_gets_a_body_that_ends_with_the_connection() {
    let world = World::new(Origin::plain());
    for path in ["/v1/echo", "/v1/chunks", "/v1/close"] {
        let request = world.forward_request(path, &bearer()).replacen("HTTP/1.1", "HTTP/1.0", 1);
        let answer = checked(world.request(&request));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(!head.to_ascii_lowercase().contains("chunked"), "{head}");
        assert!(
            body.starts_with("GET /v1/") && body.contains(PLACEHOLDER) && body.ends_with("\r\n\r\n"),
            "{body}"
        );
    }
    let head = world.forward_request("/v1/echo", &bearer()).replacen("GET", "HEAD", 1);
    assert!(checked(world.request(&head)).to_ascii_lowercase().contains("content-length: "));
}

#[test]
fn one_connection_serves_many_requests() {
    let world = World::new(Origin::plain());
    let mut stream = world.connect();
    let request = world.forward_request("/v1/chunks", &bearer()).replace("Connection: close\r\n", "");
    for _ in 0..3 {
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"0\r\n\r\n") {
            let mut byte = [0];
            assert_eq!(stream.read(&mut byte).unwrap(), 1);
            answer.push(byte[0]);
        }
        assert!(checked(String::from_utf8(answer).unwrap()).starts_with("HTTP/1.1 200 OK\r\n"));
    }
    assert_eq!(world.origin.seen().len(), 3);
}

#[test]
fn a_websocket_ends_when_the_secret_comes() {
    let world = World::new(Origin::plain());
    let mut stream = world.connect();
    let upgrade =
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate\r\n";
    let request = world.forward_request("/v1/socket", &format!("{upgrade}{}", bearer()));
    stream.write_all(request.replace("Connection: close\r\n", "").as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&answer));
        answer.push(byte[0]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer));
    assert!(!world.origin.last().to_ascii_lowercase().contains("extensions"));
    stream.write_all(b"hello").unwrap();
    let mut back = [0; 5];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"hello");
    stream.write_all(b"leak").unwrap();
    let mut rest = Vec::new();
    // It may end with a reset.
    let _ = stream.read_to_end(&mut rest);
    assert_eq!(String::from_utf8_lossy(&rest), "");
}

#[test]
fn no_token_is_needed_where_the_placeholder_is_one_and_elsewhere_it_is() {
    let world = World::with(Origin::plain(), world::bearer(), |config| {
        config.token = Some(nono_proxy::Secret::new("the-token"));
    });
    assert!(world.reverse("/api/echo", &bearer()).starts_with("HTTP/1.1 200 "));
    assert!(world.forward("/v1/echo", &bearer()).starts_with("HTTP/1.1 407 "));
}
