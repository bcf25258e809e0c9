//! A proxy with one route, in front of one server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nono_proxy::{ClientTls, Config, Handle, Inject, Phase, Proxy, ProxyEvent, Route, Secret};

use super::origin::{Origin, PLACEHOLDER, SECRET};

pub(crate) struct World {
    pub(crate) origin: Origin,
    pub(crate) proxy: Handle,
    dir: tempfile::TempDir,
}

pub(crate) fn bearer() -> Inject {
    Inject::Header { name: "Authorization".to_owned(), format: "Bearer {}".to_owned() }
}

impl World {
    pub(crate) fn new(origin: Origin) -> World {
        World::with(origin, bearer(), |_| {})
    }

    /// The route is by TLS where the server is.
    pub(crate) fn with(origin: Origin, inject: Inject, change: impl Fn(&mut Config)) -> World {
        let route = Route {
            name: "api".to_owned(),
            prefix: "api".to_owned(),
            https: !origin.pem.is_empty(),
            host: "localhost".to_owned(),
            port: origin.port,
            base: "/v1".to_owned(),
            inject,
            secret: Secret::new(SECRET).into(),
            placeholder: PLACEHOLDER.to_owned(),
            endpoints: Vec::new(),
            tls: ClientTls::default(),
        };
        let mut config = Config {
            allowed: vec!["localhost".parse().unwrap()],
            routes: vec![route],
            certificates: origin.pem.clone(),
            ..Config::default()
        };
        change(&mut config);
        let proxy = Proxy::start(config, "127.0.0.1:0".parse().unwrap()).unwrap();
        World { origin, proxy, dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.proxy.address()).unwrap();
        // So that a test that would wait for ever fails instead.
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// Everything that comes back.
    pub(crate) fn request(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    }

    pub(crate) fn reverse(&self, path: &str, headers: &str) -> String {
        let host = self.proxy.address();
        self.request(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"))
    }

    pub(crate) fn forward(&self, path: &str, headers: &str) -> String {
        self.request(&self.forward_request(path, headers))
    }

    pub(crate) fn forward_request(&self, path: &str, headers: &str) -> String {
        let host = format!("localhost:{}", self.origin.port);
        format!("GET http://{host}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n")
    }

    /// All events of ends, when everything has ended.
    pub(crate) fn events(&self) -> Vec<ProxyEvent> {
        self.proxy.shutdown();
        let is_end = |event: &ProxyEvent| event.phase != Some(Phase::Opened);
        self.proxy.drain().0.into_iter().filter(is_end).collect()
    }

    /// First event of an end, waited for: the proxy may notice an end later than the client that caused it.
    pub(crate) fn first_end(&self) -> ProxyEvent {
        let patience = Instant::now() + Duration::from_secs(60);
        loop {
            let ends = |event: &ProxyEvent| event.phase != Some(Phase::Opened);
            if let Some(event) = self.proxy.drain().0.into_iter().find(ends) {
                return event;
            }
            assert!(Instant::now() < patience, "no event");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The file that a program has to trust.
    pub(crate) fn ca_file(&self) -> PathBuf {
        let path = self.dir.path().join("ca.pem");
        std::fs::write(&path, self.proxy.ca_pem().expect("a route has TLS")).unwrap();
        path
    }
}
