//! A real server that shows what it was sent, in every way that a server might.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

pub(crate) const SECRET: &str = "sk-real/0123+456=&\"x";
pub(crate) const PLACEHOLDER: &str = "nono-dummy-0123456789abcdef";

pub(crate) struct Origin {
    pub(crate) port: u16,
    /// Whom to believe its certificate from.
    pub(crate) pem: String,
    seen: Arc<Mutex<Vec<String>>>,
    /// Lets a waiting answer go on.
    pub(crate) go: Sender<()>,
}

impl Origin {
    pub(crate) fn plain() -> Origin {
        Origin::start(None, String::new())
    }

    /// Its certificate is for `name`.
    pub(crate) fn secure(name: &str) -> Origin {
        let (config, pem) = certified(name);
        Origin::start(Some(config), pem)
    }

    fn start(tls: Option<Arc<ServerConfig>>, pem: String) -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (go, wait) = channel();
        let wait = Arc::new(Mutex::new(wait));
        let shared = seen.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (seen, wait, tls) = (shared.clone(), wait.clone(), tls.clone());
                let stream = stream.unwrap();
                thread::spawn(move || match tls {
                    Some(config) => {
                        let connection = ServerConnection::new(config).unwrap();
                        serve(&mut StreamOwned::new(connection, stream), &seen, &wait);
                    }
                    None => serve(&mut { stream }, &seen, &wait),
                });
            }
        });
        Origin { port, pem, seen, go }
    }

    /// The heads of all requests so far.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// The control of every test about leaks: the server did have the secret.
    pub(crate) fn last(&self) -> String {
        self.seen().last().cloned().expect("a request reached the server")
    }
}

fn certified(name: &str) -> (Arc<ServerConfig>, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, "the server's authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .unwrap();
    (Arc::new(config), pem)
}

type Wait = Arc<Mutex<Receiver<()>>>;

trait Stream: Read + Write {}
impl Stream for TcpStream {}
impl Stream for StreamOwned<ServerConnection, TcpStream> {}

fn serve(stream: &mut dyn Stream, seen: &Mutex<Vec<String>>, wait: &Wait) {
    while let Some(request) = read_request(stream) {
        seen.lock().unwrap().push(request.clone());
        // A client that went away has had enough.
        if !answer(stream, &request, wait).unwrap_or(false) {
            return;
        }
    }
}

fn read_request(stream: &mut dyn Stream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        bytes.push(byte[0]);
    }
    let text = String::from_utf8(bytes).unwrap();
    let length = text
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    Some(text + &String::from_utf8(body).unwrap())
}

/// Whether another request may follow.
fn answer(stream: &mut dyn Stream, request: &str, wait: &Wait) -> std::io::Result<bool> {
    let path = request.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let whole = |status: &str, extra: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{extra}\r\n{body}", body.len())
    };
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    match path {
        "/v1/echo" => stream.write_all(whole("200 OK", "X-Kept: yes\r\n", request).as_bytes())?,
        "/v1/chunks" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            for at in 0..request.len().div_ceil(3) {
                stream.write_all(chunk(&request[at * 3..request.len().min(at * 3 + 3)]).as_bytes())?;
                stream.flush()?;
            }
            stream.write_all(format!("0\r\nX-Trailer: {SECRET}\r\n\r\n").as_bytes())?;
        }
        "/v1/close" => {
            stream.write_all(format!("HTTP/1.1 200 OK\r\n\r\n{request}").as_bytes())?;
            stream.flush()?;
            return Ok(false);
        }
        "/v1/redirect" => {
            let location =
                format!("https://other.example/?key={}", SECRET.replace('/', "%2F").replace('&', "%26"));
            stream.write_all(whole("302 Found", &format!("Location: {location}\r\n"), "").as_bytes())?;
        }
        "/v1/around" => stream.write_all(whole("302 Found", "Location: /v1/echo\r\n", "").as_bytes())?,
        "/v1/error" => {
            let status = format!("401 Bad key {SECRET}");
            let extra = format!("WWW-Authenticate: Bearer error=\"{SECRET}\"\r\nSet-Cookie: k={SECRET}\r\n");
            stream.write_all(whole(&status, &extra, &format!("<p>{SECRET}</p>")).as_bytes())?;
        }
        "/v1/hint" => {
            stream.write_all(format!("HTTP/1.1 103 Early Hints\r\nLink: <{SECRET}>\r\n\r\n").as_bytes())?;
            stream.write_all(whole("200 OK", "", "hinted").as_bytes())?;
        }
        "/v1/gzip" => stream.write_all(whole("200 OK", "Content-Encoding: gzip\r\n", SECRET).as_bytes())?,
        "/v1/part" => stream.write_all(whole("206 Partial Content", "", &SECRET[..4]).as_bytes())?,
        "/v1/short" => {
            let half = &SECRET[..10];
            stream
                .write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nkey {half}").as_bytes())?;
            stream.flush()?;
            return Ok(false);
        }
        "/v1/events" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
            for event in ["data: one sk-re\n\n", "data: two\n\n"] {
                stream.write_all(chunk(event).as_bytes())?;
                stream.flush()?;
                wait.lock().unwrap().recv().unwrap();
            }
            stream.write_all(b"0\r\n\r\n")?;
        }
        "/v1/socket" => return socket(stream).map(|()| false),
        _ => stream.write_all(whole("404 Not Found", "", "no such page").as_bytes())?,
    }
    stream.flush()?;
    Ok(true)
}

/// Says back what it hears, and the secret when it hears `leak`.
fn socket(stream: &mut dyn Stream) -> std::io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    )?;
    stream.flush()?;
    let mut heard = [0; 64];
    loop {
        let length = stream.read(&mut heard)?;
        match &heard[..length] {
            b"" => return Ok(()),
            b"leak" => stream.write_all(SECRET.as_bytes())?,
            other => stream.write_all(other)?,
        }
        stream.flush()?;
    }
}
