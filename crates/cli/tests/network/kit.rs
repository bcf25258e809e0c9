//! A server on loopback, a proxy in front of it, and the observer of its events.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use nono::network::{
    Listen, Network, NetworkError, NetworkObserver, NetworkSettings, NetworkStart, Networking, bind,
};
use nono::{CapabilitySet, NetworkPolicy, ResolvedPolicy};
use nono_proxy::ProxyEvent;

/// It only keeps a hang from hanging the suite.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Answers every request with the request's own head.
pub(crate) struct Server(pub(crate) SocketAddr, Arc<Mutex<Vec<u8>>>);

impl Server {
    pub(crate) fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let got = Arc::new(Mutex::new(Vec::new()));
        let heads = got.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = client.unwrap();
                let head = head(&mut client);
                heads.lock().unwrap().extend_from_slice(&head);
                let answer =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", head.len());
                // A client may have gone.
                let _ = client.write_all(&[answer.as_bytes(), &head].concat());
            }
        });
        Server(address, got)
    }

    /// Every request's head so far.
    pub(crate) fn got(&self) -> String {
        String::from_utf8(self.1.lock().unwrap().clone()).unwrap()
    }
}

fn head(client: &mut TcpStream) -> Vec<u8> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).unwrap_or(0) == 1 {
        head.push(byte[0]);
    }
    head
}

#[derive(Default)]
pub(crate) struct Told {
    pub(crate) events: Mutex<Vec<ProxyEvent>>,
    heard: Condvar,
    lost: Mutex<Option<String>>,
    changed: Condvar,
}

impl NetworkObserver for Told {
    fn event(&self, event: &ProxyEvent) {
        self.events.lock().unwrap().push(event.clone());
        self.heard.notify_all();
    }

    fn lost(&self, why: &str) {
        *self.lost.lock().unwrap() = Some(why.to_owned());
        self.changed.notify_all();
    }
}

impl Told {
    /// Wait for the first event.
    pub(crate) fn first(&self) -> ProxyEvent {
        let events = self.events.lock().unwrap();
        let (events, time) = self.heard.wait_timeout_while(events, LONG, |events| events.is_empty()).unwrap();
        assert!(!time.timed_out(), "nothing was told");
        events[0].clone()
    }

    /// Wait until the proxy is lost, and say why.
    pub(crate) fn lost(&self) -> String {
        let lost = self.lost.lock().unwrap();
        let (lost, time) = self.changed.wait_timeout_while(lost, LONG, |lost| lost.is_none()).unwrap();
        assert!(!time.timed_out(), "the loss was not reported");
        lost.clone().unwrap()
    }
}

pub(crate) type Variables = Vec<(OsString, OsString)>;

pub(crate) fn variables(pairs: &[(&str, &str)]) -> Variables {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

pub(crate) fn value(env: &Variables, name: &str) -> Option<String> {
    let found = env.iter().find(|(given, _)| given == name)?;
    Some(found.1.to_str().unwrap().to_owned())
}

pub(crate) fn policy(hosts: &[String]) -> ResolvedPolicy {
    let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
    let mut policy = CapabilitySet::new().to_policy().unwrap();
    policy.network = NetworkPolicy::Filtered { hosts, connect: Vec::new(), listen: Vec::new() };
    policy
}

pub(crate) fn networking(credentials: &[&str], settings: &NetworkSettings) -> Networking {
    let credentials = credentials.iter().map(|text| text.parse().unwrap()).collect();
    let mut networking = Networking::new(credentials, None, settings).unwrap();
    networking.helper = vec![env!("CARGO_BIN_EXE_nono").into(), "__proxy".into()];
    networking
}

/// A proxy on this machine's loopback, started but not serving.
pub(crate) struct Begun {
    pub(crate) network: Network,
    pub(crate) address: SocketAddr,
    pub(crate) told: Arc<Told>,
    pub(crate) folder: tempfile::TempDir,
}

pub(crate) fn start(
    networking: &Networking,
    hosts: &[String],
    env: &Variables,
) -> Result<Begun, NetworkError> {
    let listener = bind().unwrap();
    let (address, folder, told) =
        (listener.local_addr().unwrap(), tempfile::tempdir().unwrap(), Arc::new(Told::default()));
    let policy = policy(hosts);
    let start = NetworkStart {
        policy: &policy,
        env,
        cwd: Path::new("/"),
        folder: folder.path(),
        state_dir: None,
        listen: Listen::Here(listener),
    };
    let network = Network::start(networking, start, told.clone())?;
    Ok(Begun { network, address, told, folder })
}

pub(crate) fn serving(hosts: &[String]) -> Begun {
    let begun = start(&networking(&[], &NetworkSettings::default()), hosts, &Vec::new()).unwrap();
    begun.network.serve_here().unwrap();
    begun
}

impl Begun {
    /// The command's environment.
    pub(crate) fn env(&self, caller: &Variables) -> Variables {
        let mut env = caller.clone();
        self.network.apply(&mut env);
        env
    }

    pub(crate) fn authorization(&self) -> String {
        let token = value(&self.env(&Vec::new()), "NONO_PROXY_TOKEN").unwrap();
        format!("Proxy-Authorization: {}\r\n", nono_proxy::Secret::basic("nono", &token).reveal())
    }
}

/// Send these bytes, and return what comes until the other end closes.
pub(crate) fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    // What the other end does not read any more it answered already.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        result => drop(result.unwrap()),
    }
    String::from_utf8_lossy(&answer).into_owned()
}
