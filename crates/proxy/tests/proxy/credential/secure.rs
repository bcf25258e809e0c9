//! Tunnels to a service: real programs, real TLS on both sides.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output};
use std::sync::Arc;

use nono_proxy::tls::{client_config, server_name};
use nono_proxy::{Category, Mode, Secret, Upstream};
use rustls::{ClientConnection, StreamOwned};

use super::origin::{Origin, PLACEHOLDER, SECRET};
use super::relay::Relay;
use super::world::{World, bearer};
use super::{bearer as header, checked};

fn secure() -> World {
    World::new(Origin::secure("localhost"))
}

/// A program that goes through the proxy and trusts the session's authority.
fn run(world: &World, program: &str, args: &[&str]) -> Output {
    let proxy = format!("http://nono:the-token@{}", world.proxy.address());
    let ca = world.ca_file();
    let mut command = Command::new(program);
    command.args(args).env_remove("NO_PROXY").env_remove("no_proxy");
    for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"] {
        command.env(name, &proxy);
    }
    for name in ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"] {
        command.env(name, &ca);
    }
    command.output().unwrap()
}

fn shown(output: &Output) -> String {
    let both = [output.stdout.as_slice(), &output.stderr].concat();
    checked(String::from_utf8(both).unwrap())
}

fn curl(world: &World, args: &[&str]) -> String {
    let url = format!("https://localhost:{}", world.origin.port);
    let args: Vec<String> = args.iter().map(|arg| arg.replace("URL", &url)).collect();
    let mut all = vec!["--silent", "--show-error", "--include", "--max-time", "30", "--noproxy", ""];
    all.extend(args.iter().map(String::as_str));
    shown(&run(world, "curl", &all))
}

/// TLS through a tunnel of the proxy, with the session's authority as the only one.
fn tunnel(world: &World) -> StreamOwned<ClientConnection, TcpStream> {
    let mut stream = world.connect();
    let target = format!("localhost:{}", world.origin.port);
    write!(stream, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    let config =
        Arc::new(client_config(world.proxy.ca_pem().unwrap(), &nono_proxy::ClientTls::default()).unwrap());
    let name = server_name(&"localhost".parse().unwrap()).unwrap();
    StreamOwned::new(ClientConnection::new(config, name).unwrap(), stream)
}

/// Say something inside, and hear everything.
fn said(world: &World, request: &str) -> String {
    let mut stream = tunnel(world);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

#[test]
fn curl_gets_through_with_the_placeholder() {
    let world = secure();
    let authorization = format!("Authorization: Bearer {PLACEHOLDER}");
    for path in ["echo", "chunks", "close", "error", "redirect"] {
        let answer = curl(&world, &["-H", &authorization, &format!("URL/v1/{path}")]);
        assert!(answer.contains(PLACEHOLDER), "{path}: {answer}");
        let seen = world.origin.last();
        assert!(seen.contains(&format!("Authorization: Bearer {SECRET}\r\n")), "{path}: {seen}");
    }
    let answer = curl(&world, &["-H", "Authorization: Bearer my-own", "URL/v1/echo"]);
    assert!(answer.contains("Authorization: Bearer my-own"), "{answer}");
    let body = "x".repeat(300_000);
    let answer = curl(&world, &["-H", &authorization, "--data-binary", &body[..100_000], "URL/v1/echo"]);
    assert!(answer.contains(&body[..100_000]));
    let events = world.events();
    let inside = events.iter().filter(|event| event.method.as_deref() != Some("CONNECT"));
    assert!(inside.clone().all(|event| event.mode == Mode::ConnectIntercept && event.status.is_some()));
    assert_eq!(inside.filter(|event| event.credential.as_deref() == Some("api")).count(), 6);
}

#[test]
fn python_and_node_get_through_with_the_placeholder() {
    let world = secure();
    let url = format!("https://localhost:{}/v1/chunks", world.origin.port);
    let python = format!(
        "import ssl, urllib.request as u; trust = ssl.create_default_context(); \
         trust.verify_flags |= ssl.VERIFY_X509_STRICT; \
         r = u.Request('{url}', headers={{'Authorization': 'Bearer {PLACEHOLDER}'}}); \
         print(u.urlopen(r, context=trust).read().decode())"
    );
    let output = shown(&run(&world, "python3", &["-c", &python]));
    assert!(output.contains(PLACEHOLDER), "{output}");
    assert!(world.origin.last().contains(SECRET));
    // Its fetch knows no proxies in all versions: the tunnel is made by hand, TLS and trust are its own.
    let node = format!(
        "const [http, https, tls] = ['http', 'https', 'tls'].map(require); \
         const at = new URL(process.env.HTTPS_PROXY); \
         http.request({{ host: at.hostname, port: at.port, method: 'CONNECT', path: 'localhost:{0}' }}) \
         .on('connect', (_, socket) => https.get('{url}', {{ \
            createConnection: () => tls.connect({{ socket, servername: 'localhost', ALPNProtocols: ['h2', 'http/1.1'] }}), \
            headers: {{ authorization: 'Bearer {PLACEHOLDER}', connection: 'close' }} }}, \
            answer => answer.pipe(process.stdout))).end()",
        world.origin.port
    );
    let output = shown(&run(&world, "node", &["-e", &node]));
    assert!(output.contains(PLACEHOLDER), "{output}");
    assert_eq!(world.origin.seen().len(), 2);
    assert!(world.origin.last().contains(SECRET));
}

#[test]
fn by_the_prefix_the_way_to_the_server_is_secure() {
    let world = secure();
    let answer = checked(world.reverse("/api/echo", &header()));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(world.origin.last().contains(SECRET));
}

#[test]
fn the_secret_never_goes_over_a_plain_connection_to_the_same_place() {
    let world = secure();
    let mut stream = world.connect();
    let at = format!("localhost:{}", world.origin.port);
    // The server speaks TLS only: what is plain breaks there, and no kept connection is mistaken for the other kind.
    for (request, status) in [
        (format!("GET /api/echo HTTP/1.1\r\nHost: x\r\n{}\r\n", header()), "HTTP/1.1 200"),
        (format!("GET http://{at}/v1/echo HTTP/1.1\r\nHost: {at}\r\n{}\r\n", header()), "HTTP/1.1 502"),
        (
            format!("GET /api/echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{}\r\n", header()),
            "HTTP/1.1 200",
        ),
    ] {
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !(answer.ends_with(b"0\r\n\r\n")
            || answer.ends_with(b"\n")
                && answer.starts_with(b"HTTP/1.1 502")
                && answer.windows(5).any(|window| window == b"nono:"))
        {
            let mut byte = [0];
            assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&answer));
            answer.push(byte[0]);
        }
        let answer = checked(String::from_utf8(answer).unwrap());
        assert!(answer.starts_with(status), "{answer}");
    }
    assert_eq!(world.origin.seen().len(), 2);
}

#[test]
fn a_tunnel_leads_to_its_host_only() {
    let world = secure();
    let at = format!("localhost:{}", world.origin.port);
    for request in [
        format!("GET /v1/echo HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n{}\r\n", header()),
        format!("GET /v1/echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{}\r\n", header()),
        format!("GET http://{at}/v1/echo HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n{}\r\n", header()),
        format!(
            "GET https://other.example/ HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n{}\r\n",
            header()
        ),
        "CONNECT other.example:443 HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n".to_owned(),
    ] {
        let answer = said(&world, &request);
        assert!(answer.starts_with("HTTP/1.1 421 "), "{request}: {answer}");
    }
    assert_eq!(world.origin.seen().len(), 0);
    let answer = checked(said(
        &world,
        &format!("GET https://{at}/v1/echo HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n{}\r\n", header()),
    ));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(world.origin.last().contains(SECRET));
    let smuggled =
        "POST /v1/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(said(&world, smuggled).starts_with("HTTP/1.1 400 "));
    let refused = world.events().into_iter().filter(|event| !event.allowed).count();
    assert_eq!(refused, 6);
}

#[test]
fn a_server_with_the_wrong_certificate_gets_nothing() {
    // Its certificate is good, for another name; then: from an unknown authority.
    let elsewhere = Origin::secure("other.example").pem;
    for world in [
        World::new(Origin::secure("other.example")),
        World::with(Origin::secure("localhost"), bearer(), |config| config.certificates = elsewhere.clone()),
    ] {
        let answer = checked(world.reverse("/api/echo", &header()));
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
        assert_eq!(world.origin.seen().len(), 0);
        assert_eq!(world.events()[0].category, Some(Category::UpstreamConnectFailed));
    }
}

#[test]
fn other_hosts_are_not_intercepted() {
    let world = secure();
    let other = Origin::secure("localhost");
    let url = format!("https://localhost:{}/v1/echo", other.port);
    // The session's authority is of no use there; the server's own is.
    let refused = curl(&world, &[&url]);
    assert!(refused.contains("certificate"), "{refused}");
    let own = world.ca_file().with_file_name("own.pem");
    std::fs::write(&own, &other.pem).unwrap();
    let authorization = format!("Authorization: Bearer {PLACEHOLDER}");
    let answer = curl(&world, &["--cacert", own.to_str().unwrap(), "-H", &authorization, &url]);
    assert!(answer.contains(&authorization), "{answer}");
    assert!(!other.last().contains(SECRET));
    assert!(world.events().iter().all(|event| event.mode == Mode::Connect && event.credential.is_none()));
}

#[test]
fn a_program_that_does_not_trust_the_session_is_told_of() {
    let world = secure();
    let own = world.ca_file().with_file_name("own.pem");
    std::fs::write(&own, &world.origin.pem).unwrap();
    let answer = curl(&world, &["--cacert", own.to_str().unwrap(), "URL/v1/echo"]);
    assert!(answer.contains("certificate"), "{answer}");
    assert_eq!(world.origin.seen().len(), 0);
    let event = world.first_end();
    assert_eq!(event.category, Some(Category::InterceptHandshakeFailed));
    assert_eq!(event.mode, Mode::ConnectIntercept);
}

#[test]
fn the_token_opens_the_tunnel() {
    let world = World::with(Origin::secure("localhost"), bearer(), |config| {
        config.token = Some(Secret::new("another-token"));
    });
    let answer = curl(&world, &["-H", &header().replace("\r\n", ""), "URL/v1/echo"]);
    assert!(answer.contains("407"), "{answer}");
    let world = World::with(Origin::secure("localhost"), bearer(), |config| {
        config.token = Some(Secret::new("the-token"));
    });
    let answer = curl(&world, &["-H", &header().replace("\r\n", ""), "URL/v1/echo"]);
    assert!(answer.contains("HTTP/1.1 200 OK"), "{answer}");
}

#[test]
fn another_proxy_on_the_way_sees_a_tunnel_only() {
    let origin = Origin::secure("api.example");
    let way = Relay::start(origin.port);
    let port = way.port;
    let world = World::with(origin, bearer(), |config| {
        config.allowed = vec!["api.example".parse().unwrap()];
        config.routes[0].host = "api.example".to_owned();
        let authorization = Some(Secret::new("Basic cHJveHk6cGFzcw=="));
        let host = "127.0.0.1".to_owned();
        config.upstream = Some(Upstream { host, port, authorization, bypass: Vec::new() });
    });
    let answer = checked(world.reverse("/api/echo", &header()));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let seen = world.origin.last();
    assert!(
        seen.contains(SECRET) && seen.contains(&format!("Host: api.example:{}", world.origin.port)),
        "{seen}"
    );
    assert!(!seen.contains("cHJveHk6cGFzcw"), "{seen}");
    let carried = way.carried.lock().unwrap().clone();
    let asked = format!("CONNECT api.example:{} HTTP/1.1\r\n", world.origin.port);
    assert!(carried.starts_with(asked.as_bytes()));
    assert!(!carried.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()));
}

#[test]
fn a_websocket_works_in_a_tunnel_until_the_secret_comes() {
    let world = secure();
    let mut stream = tunnel(&world);
    let at = format!("localhost:{}", world.origin.port);
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    write!(stream, "GET /v1/socket HTTP/1.1\r\nHost: {at}\r\n{upgrade}{}\r\n", header()).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&answer));
    assert!(world.origin.last().contains(SECRET));
    stream.write_all(b"hello").unwrap();
    let mut back = [0; 5];
    stream.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"hello");
    stream.write_all(b"leak").unwrap();
    let mut rest = Vec::new();
    // It may end without a word.
    let _ = stream.read_to_end(&mut rest);
    assert_eq!(String::from_utf8_lossy(&rest), "");
    let told = world.events().into_iter().find(|event| event.status == Some(101)).unwrap();
    assert!(told.reason.unwrap().contains("sent the credential back"));
}

#[test]
fn a_host_that_is_not_listed_is_closed_in_every_way() {
    let world = World::with(Origin::secure("localhost"), bearer(), |config| config.allowed.clear());
    assert!(world.reverse("/api/echo", &header()).starts_with("HTTP/1.1 403 "));
    let answer = curl(&world, &["-H", &header().replace("\r\n", ""), "URL/v1/echo"]);
    assert!(answer.contains("403"), "{answer}");
    assert_eq!(world.origin.seen().len(), 0);
}

#[test]
fn events_stream_through_a_tunnel_without_delay() {
    let world = secure();
    let mut stream = tunnel(&world);
    let at = format!("localhost:{}", world.origin.port);
    write!(stream, "GET /v1/events HTTP/1.1\r\nHost: {at}\r\n{}\r\n", header()).unwrap();
    let mut answer = String::new();
    let mut until = |text: &str| {
        let mut byte = [0];
        while !answer.contains(text) {
            stream.read_exact(&mut byte).unwrap();
            answer.push(char::from(byte[0]));
        }
    };
    until("data: one sk-re\n\n");
    world.origin.go.send(()).unwrap();
    until("data: two\n\n");
    world.origin.go.send(()).unwrap();
    until("0\r\n\r\n");
}
