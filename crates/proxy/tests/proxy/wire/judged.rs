//! Access decisions: hosts, tokens and addresses.

use nono_proxy::{Category, Mode};

use super::world::{World, config, echo, token};

#[test]
fn a_closed_host_is_said_before_the_token_is_asked_for() {
    let world = World::new(token(config(&["open.test"]), "secret"));
    let answer = world.ask("CONNECT closed.test:443 HTTP/1.1\r\nHost: closed.test:443\r\n\r\n");
    assert!(answer.first.starts_with("HTTP/1.1 403 ") && answer.first.contains("not in the allowlist"));
    assert!(answer.text().contains("nono run --allow-domain closed.test:443"), "{answer:?}");
    let event = world.event();
    assert_eq!(
        (event.mode, event.allowed, event.category),
        (Mode::Connect, false, Some(Category::HostDenied))
    );
    assert_eq!((event.host.as_str(), event.port, event.status), ("closed.test", 443, Some(403)));
}

#[test]
fn the_token_has_to_be_shown() {
    let port = echo();
    let world = World::new(token(config(&["127.0.0.1"]), "secret"));
    let ask = |authorization: &str| {
        world.ask(&format!(
            "GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{authorization}\r\n"
        ))
    };
    // nono:secret, :secret, nono:Secret, nono:secret2, nono:secre
    for fine in ["Basic bm9ubzpzZWNyZXQ=", "basic OnNlY3JldA==", "Bearer secret"] {
        assert_eq!(ask(&format!("Proxy-Authorization: {fine}\r\n")).status(), 200, "{fine}");
        assert_eq!(world.event().status, Some(200));
    }
    for wrong in [
        "Basic bm9ubzpTZWNyZXQ=",
        "Basic bm9ubzpzZWNyZXQy",
        "Basic bm9ubzpzZWNyZQ==",
        "Basic !",
        "Bearer x",
        "x",
    ] {
        let answer = ask(&format!("Proxy-Authorization: {wrong}\r\n"));
        assert_eq!(answer.status(), 407, "{wrong}");
        assert_eq!(answer.field("proxy-authenticate"), Some("Basic realm=\"nono\""));
        assert_eq!(world.event().category, Some(Category::AuthenticationFailed));
    }
    assert_eq!(ask("Authorization: Bearer secret\r\n").status(), 407);
    let twice = "Proxy-Authorization: Bearer secret\r\nProxy-Authorization: Bearer secret\r\n";
    assert_eq!(ask(twice).status(), 407);
}

#[test]
fn a_client_may_try_again_with_its_token_on_the_same_connection() {
    let port = echo();
    let world = World::new(token(config(&["127.0.0.1"]), "secret"));
    let mut client = world.client();
    let request = format!("GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n");
    client.send(format!("{request}\r\n"));
    assert_eq!(client.message().status(), 407);
    client.send(format!("{request}Proxy-Authorization: Bearer secret\r\n\r\n"));
    let answer = client.message();
    assert_eq!(answer.status(), 200);
    assert!(!answer.text().contains("secret"));
}

#[test]
fn a_name_that_leads_to_a_closed_address_is_closed() {
    let port = echo();
    let world = World::open(&["*.test", "metadata.google.internal"]);
    world.names.lead("inner.test", &[&["127.0.0.1", "10.0.0.1", "::1"]]);
    world.names.lead("metadata.google.internal", &[&["8.8.8.8"]]);
    for host in ["inner.test", "metadata.google.internal"] {
        let answer = world.ask(&format!("CONNECT {host}:{port} HTTP/1.1\r\n\r\n"));
        assert_eq!(answer.status(), 403, "{host}");
        let event = world.event();
        assert_eq!((event.allowed, event.category), (false, Some(Category::AddressDenied)), "{host}");
    }
    let answer = world.ask(&format!("CONNECT unknown.test:{port} HTTP/1.1\r\n\r\n"));
    assert_eq!((answer.status(), world.event().category), (502, Some(Category::ResolveFailed)));
}

#[test]
fn a_granted_address_opens_the_names_that_lead_to_it() {
    let port = echo();
    let world = World::open(&["inner.test", &format!("127.0.0.1:{port}")]);
    world.names.lead("inner.test", &[&["10.0.0.1", "127.0.0.1"]]);
    let request = format!("GET http://inner.test:{port}/ HTTP/1.1\r\nHost: inner.test:{port}\r\n\r\n");
    assert_eq!(world.ask(&request).status(), 200);
    assert_eq!(world.event().address.as_deref(), Some("127.0.0.1"));
}

/// The first answer is granted, the next one is not: what was judged is what is dialled, and the next connection is
/// judged by its own answer.
#[test]
fn a_name_that_changes_its_mind_is_judged_by_what_is_dialled() {
    let port = echo();
    let world = World::open(&["inner.test", "127.0.0.2"]);
    world.names.lead("inner.test", &[&["127.0.0.2"], &["127.0.0.1"]]);
    let listener = std::net::TcpListener::bind(("127.0.0.2", port));
    let request = format!("GET http://inner.test:{port}/ HTTP/1.1\r\nHost: inner.test:{port}\r\n\r\n");
    let first = std::thread::scope(|scope| {
        scope.spawn(|| {
            let (stream, _) = listener.unwrap().accept().unwrap();
            let mut peer = super::world::Peer::new(stream);
            for _ in 0..2 {
                peer.head();
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
        });
        let mut client = world.client();
        for _ in 0..2 {
            client.send(&request);
            assert_eq!(client.message().status(), 200);
        }
        world.event()
    });
    assert_eq!(first.address.as_deref(), Some("127.0.0.2"));
    assert_eq!(world.event().address.as_deref(), Some("127.0.0.2"));
    assert_eq!(world.ask(&request).status(), 403);
    assert_eq!(world.event().category, Some(Category::AddressDenied));
}

#[test]
fn localhost_is_this_machine_whatever_a_resolver_says() {
    let port = echo();
    let world = World::open(&[&format!("localhost:{port}"), "*.localhost"]);
    world.names.lead("localhost", &[&["10.0.0.1"]]);
    for host in ["localhost", "LocalHost.", "app.localhost"] {
        let answer = world.ask(&format!("GET http://{host}:{port}/ HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n"));
        assert_eq!(answer.status(), 200, "{host}");
    }
    let other = format!("GET http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    assert_eq!(world.ask(&other).status(), 403);
}

#[test]
fn what_is_not_a_request_to_a_proxy_is_said_so() {
    let world = World::open(&["open.test"]);
    for (request, said) in [
        ("GET / HTTP/1.1\r\nHost: open.test\r\n\r\n", "this is a proxy"),
        ("OPTIONS * HTTP/1.1\r\nHost: open.test\r\n\r\n", "this is a proxy"),
        ("GET https://open.test/ HTTP/1.1\r\nHost: open.test\r\n\r\n", "CONNECT"),
        ("\x16\x03\x01\x02\x00\x01\x00", "METHOD"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "version"),
        ("CONNECT 0x7f.1:443 HTTP/1.1\r\n\r\n", "host"),
        ("CONNECT open.test HTTP/1.1\r\n\r\n", "port"),
        ("CONNECT open.test:0 HTTP/1.1\r\n\r\n", "port"),
        ("CONNECT open.test:65536 HTTP/1.1\r\n\r\n", "port"),
    ] {
        let answer = world.ask(request);
        assert_eq!((answer.status(), answer.field("connection")), (400, Some("close")), "{request:?}");
        assert!(answer.text().contains(said), "{request:?}: {answer:?}");
        assert_eq!(world.event().category, Some(Category::MalformedRequest));
    }
}
