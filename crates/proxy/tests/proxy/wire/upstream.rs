//! Another proxy on the way.

use nono_proxy::{Category, Config, Secret, Upstream};

use super::world::{World, config, echo, server};

fn through(port: u16, bypass: &[&str], allowed: &[&str]) -> World {
    let upstream = Upstream {
        host: "127.0.0.1".to_owned(),
        port,
        authorization: Some(Secret::new("Basic dTpw")),
        bypass: bypass.iter().map(|rule| rule.parse().unwrap()).collect(),
    };
    World::new(Config { upstream: Some(upstream), ..config(allowed) })
}

/// A proxy that makes no tunnel but answers in it.
fn proxy(answer: &'static str) -> u16 {
    server(move |mut peer| {
        let request = peer.head();
        assert_eq!(request.first, "CONNECT far.test:22 HTTP/1.1");
        assert_eq!(request.field("proxy-authorization"), Some("Basic dTpw"));
        peer.send(answer);
        let heard = peer.rest();
        peer.send(heard);
    })
}

#[test]
fn a_tunnel_is_asked_for() {
    let world = through(proxy("HTTP/1.1 200 fine\r\nX: y\r\n\r\nSSH-2.0-x\r\n"), &[], &["far.test"]);
    let mut client = world.client();
    client.send("CONNECT far.test:22 HTTP/1.1\r\n\r\n");
    assert_eq!(client.head().status(), 200);
    assert_eq!(client.exactly(11), b"SSH-2.0-x\r\n");
    client.send("SSH-2.0-y\r\n");
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.rest(), b"SSH-2.0-y\r\n");
}

#[test]
fn its_no_is_passed_on_as_ours() {
    for answer in
        ["HTTP/1.1 407 Auth\r\nProxy-Authenticate: Basic\r\n\r\n", "HTTP/1.1 503 No\r\n\r\n", "what\r\n\r\n"]
    {
        let world = through(proxy(answer), &[], &["far.test"]);
        let said = world.ask("CONNECT far.test:22 HTTP/1.1\r\n\r\n");
        assert_eq!((said.status(), said.field("proxy-authenticate")), (502, None), "{answer}");
        assert_eq!(world.event().category, Some(Category::UpstreamProxyRejected), "{answer}");
    }
}

#[test]
fn plain_requests_are_absolute_there_and_the_allowlist_still_holds() {
    let world = through(echo(), &[], &["far.test", "10.9.8.7"]);
    let ask = |host: &str| world.ask(&format!("GET http://{host}/x HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    let answer = ask("far.test");
    assert!(answer.text().contains("GET http://far.test/x HTTP/1.1\nhost: far.test\n"), "{answer:?}");
    assert!(answer.text().contains("proxy-authorization: Basic dTpw\n"), "{answer:?}");
    assert_eq!(ask("10.9.8.7").status(), 200);
    assert_eq!(ask("other.test").status(), 403);
}

#[test]
fn addresses_are_judged_and_this_machine_and_the_bypass_are_reached_directly() {
    let direct = echo();
    let world = through(1, &["near.test"], &["*.test", &format!("127.0.0.1:{direct}"), "169.254.169.253"]);
    world.names.lead("near.test", &[&["127.0.0.1"]]);
    for host in ["near.test", "127.0.0.1"] {
        let answer =
            world.ask(&format!("GET http://{host}:{direct}/ HTTP/1.1\r\nHost: {host}:{direct}\r\n\r\n"));
        assert_eq!(answer.status(), 200, "{host}");
        world.event();
    }
    let answer = world.ask("GET http://far.test/ HTTP/1.1\r\nHost: far.test\r\n\r\n");
    assert_eq!((answer.status(), world.event().category), (502, Some(Category::UpstreamConnectFailed)));
}

#[test]
fn a_plain_request_in_a_tunnel_stays_in_a_tunnel() {
    let port = server(|mut peer| {
        assert_eq!(peer.head().first, "CONNECT far.test:80 HTTP/1.1");
        peer.send("HTTP/1.1 200 fine\r\n\r\n");
        let request = peer.head();
        assert_eq!((request.first.as_str(), request.field("proxy-authorization")), ("GET /x HTTP/1.1", None));
        // The next one needs a new connection, and with it a new tunnel.
        peer.send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    });
    let world = through(port, &[], &["far.test"]);
    let mut client = world.client();
    client.send("CONNECT far.test:80 HTTP/1.1\r\n\r\n");
    assert_eq!(client.head().status(), 200);
    for _ in 0..2 {
        client.send("GET /x HTTP/1.1\r\nHost: far.test\r\n\r\n");
        assert_eq!(client.head().status(), 204);
    }
}
