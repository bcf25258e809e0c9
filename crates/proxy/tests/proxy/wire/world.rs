//! A proxy, servers and clients.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nono_policy::host_rule::HostName;
use nono_proxy::name_lookup::{Lookup, Resolve};
use nono_proxy::{Config, EventCapacity, Events, Phase, Proxy, ProxyEvent, Routes, Secret};
use tokio::sync::{oneshot, watch};

/// Long enough for a slow machine: a test that reaches it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Each name gives its answers in turn; the last one stays.
#[derive(Default)]
pub(crate) struct Names(Mutex<HashMap<String, Vec<Vec<IpAddr>>>>);

impl Names {
    pub(crate) fn lead(&self, name: &str, answers: &[&[&str]]) {
        let answers = answers.iter().map(|one| one.iter().map(|ip| ip.parse().unwrap()).collect()).collect();
        self.0.lock().unwrap().insert(name.to_owned(), answers);
    }
}

impl Resolve for Names {
    fn resolve(&self, name: &HostName) -> Lookup {
        let mut names = self.0.lock().unwrap();
        let answer = names
            .get_mut(name.as_str())
            .map(|answers| if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() });
        Box::pin(async move { answer.ok_or_else(|| ErrorKind::NotFound.into()) })
    }
}

pub(crate) struct World {
    pub(crate) port: u16,
    pub(crate) names: Arc<Names>,
    events: Receiver<ProxyEvent>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

pub(crate) fn config(allowed: &[&str]) -> Config {
    Config { allowed: allowed.iter().map(|rule| rule.parse().unwrap()).collect(), ..Config::default() }
}

/// Receiver of the events: there is room for more while the gate is open.
struct Ear {
    heard: Mutex<Sender<ProxyEvent>>,
    gate: watch::Receiver<bool>,
}

impl Events for Ear {
    fn event(&self, event: ProxyEvent) {
        // A world that has ended hears nothing.
        drop(self.heard.lock().unwrap().send(event));
    }

    fn room(&self) -> EventCapacity<'_> {
        let mut gate = self.gate.clone();
        // A gate that is gone stays as it is.
        Box::pin(async move { drop(gate.wait_for(|open| *open).await.map(|open| *open)) })
    }
}

impl World {
    pub(crate) fn open(allowed: &[&str]) -> World {
        World::new(config(allowed))
    }

    pub(crate) fn new(config: Config) -> World {
        World::behind(config, watch::channel(true).1)
    }

    /// There is room for events while `gate` is open.
    pub(crate) fn behind(config: Config, gate: watch::Receiver<bool>) -> World {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let names = Arc::new(Names::default());
        let (send, events) = channel();
        let ear = Ear { heard: Mutex::new(send), gate };
        let (stop, stopped) = oneshot::channel::<()>();
        let resolver = names.clone();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let stopped = async { drop(stopped.await) };
            let routes = Routes::new(&config).unwrap();
            runtime.block_on(Proxy::serve(listener, config, routes, resolver, ear, stopped)).unwrap();
        });
        World { port, names, events, running: Some((stop, thread)) }
    }

    pub(crate) fn client(&self) -> Peer {
        Peer::to(([127, 0, 0, 1], self.port).into())
    }

    /// Ask once on a connection of its own.
    pub(crate) fn ask(&self, request: &str) -> Message {
        let mut client = self.client();
        client.send(request);
        client.message()
    }

    /// The next event, whichever it is.
    pub(crate) fn any_event(&self) -> ProxyEvent {
        self.events.recv_timeout(PATIENCE).unwrap()
    }

    /// The next event that tells of an end.
    pub(crate) fn event(&self) -> ProxyEvent {
        std::iter::repeat_with(|| self.any_event()).find(is_end).unwrap()
    }

    /// End it; all events of ends that were not taken.
    pub(crate) fn end(mut self) -> Vec<ProxyEvent> {
        self.stop();
        self.events.try_iter().filter(is_end).collect()
    }

    fn stop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            drop(stop);
            thread.join().unwrap();
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.stop();
        }
    }
}

fn is_end(event: &ProxyEvent) -> bool {
    event.phase != Some(Phase::Opened)
}

pub(crate) fn token(mut config: Config, token: &str) -> Config {
    config.token = Some(Secret::new(token));
    config
}

/// One end of a connection, read slowly and simply.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
}

/// A request or a response, its body taken out of its framing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) first: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Message {
    pub(crate) fn status(&self) -> u16 {
        self.first.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// By its name in lower case.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap()
    }
}

impl Peer {
    pub(crate) fn to(address: SocketAddr) -> Peer {
        Peer::new(TcpStream::connect(address).unwrap())
    }

    pub(crate) fn new(stream: TcpStream) -> Peer {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Peer { stream }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        // A reset is an end too.
        match self.stream.read(&mut byte) {
            Ok(1) => Some(byte[0]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("nothing came")
            }
            _ => None,
        }
    }

    pub(crate) fn exactly(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub(crate) fn rest(&mut self) -> Vec<u8> {
        std::iter::from_fn(|| self.byte()).collect()
    }

    pub(crate) fn is_closed(&mut self) -> bool {
        self.byte().is_none()
    }

    fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.push(self.byte()?);
        }
        line.truncate(line.len() - 2);
        Some(String::from_utf8(line).unwrap())
    }

    /// A head without its body.
    pub(crate) fn try_head(&mut self) -> Option<Message> {
        let first = self.line()?;
        let mut fields = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else { break };
            fields.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        Some(Message { first, fields, body: Vec::new() })
    }

    pub(crate) fn head(&mut self) -> Message {
        self.try_head().expect("a head")
    }

    pub(crate) fn chunk(&mut self) -> Vec<u8> {
        let size = usize::from_str_radix(&self.line().unwrap(), 16).unwrap();
        let data = self.exactly(size);
        assert_eq!(self.line().unwrap(), "");
        data
    }

    /// The body that belongs to a head.
    pub(crate) fn body(&mut self, head: &Message) -> Vec<u8> {
        if let Some(length) = head.field("content-length") {
            return self.exactly(length.parse().unwrap());
        }
        if head.field("transfer-encoding").is_some() {
            return std::iter::from_fn(|| Some(self.chunk()).filter(|chunk| !chunk.is_empty()))
                .flatten()
                .collect();
        }
        if head.first.starts_with("HTTP/") { self.rest() } else { Vec::new() }
    }

    pub(crate) fn message(&mut self) -> Message {
        let mut head = self.head();
        head.body = self.body(&head);
        head
    }

    pub(crate) fn try_message(&mut self) -> Option<Message> {
        let mut head = self.try_head()?;
        head.body = self.body(&head);
        Some(head)
    }
}

/// A server on 127.0.0.1 that handles each connection in a thread of its own.
pub(crate) fn server(handle: impl Fn(Peer) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let handle = Arc::new(handle);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let handle = handle.clone();
            thread::spawn(move || handle(Peer::new(stream.unwrap())));
        }
    });
    port
}

/// A server that answers every request with what it got, and says which of its connections it came on.
pub(crate) fn echo() -> u16 {
    let count = Mutex::new(0);
    server(move |mut peer| {
        let number = {
            let mut count = count.lock().unwrap();
            *count += 1;
            *count
        };
        while let Some(request) = peer.try_message() {
            let mut body = format!("connection {number}\n{}\n", request.first);
            for (name, value) in &request.fields {
                body.extend([name, ": ", value, "\n"]);
            }
            body.push_str(str::from_utf8(&request.body).unwrap());
            peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        }
    })
}
