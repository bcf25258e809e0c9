//! The process the proxy runs in: what it gave up, and how it ends.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nono_proxy::{Config, Limits, Phase};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use serde_json::{Value, json};

use super::kit::{Begun, LONG, Server, exchange, serving};
use super::world::{World, is_root};

/// The helper, started by hand as an ordinary user, and the supervisor's end of its socket.
struct Helper {
    child: Child,
    socket: UnixStream,
    _world: World,
}

impl Helper {
    fn start() -> Helper {
        let world = World::new();
        let (socket, theirs) = UnixStream::pair().unwrap();
        socket.set_read_timeout(Some(LONG)).unwrap();
        let child = world
            .command(world.path("bin/nono").to_str().unwrap())
            .arg("__proxy")
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Helper { child, socket, _world: world }
    }

    fn send(&mut self, value: &Value) {
        self.socket.write_all(&frame(value)).unwrap();
    }

    fn send_with(&mut self, value: &Value, passed: impl AsFd) {
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let passed = [passed.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&passed)));
        let bytes = frame(value);
        let sent = sendmsg(&self.socket, &[std::io::IoSlice::new(&bytes)], &mut control, SendFlags::empty());
        assert_eq!(sent.unwrap(), bytes.len());
    }

    fn receive(&mut self) -> Value {
        let mut length = [0; 4];
        self.socket.read_exact(&mut length).unwrap();
        let mut json = vec![0; u32::from_be_bytes(length) as usize];
        self.socket.read_exact(&mut json).unwrap();
        serde_json::from_slice(&json).unwrap()
    }

    /// Confined, and waiting.
    fn ready(allowed: &[String]) -> Helper {
        Helper::limited(allowed, Limits::default())
    }

    fn limited(allowed: &[String], limits: Limits) -> Helper {
        let mut helper = Helper::start();
        let allowed = allowed.iter().map(|host| host.parse().unwrap()).collect();
        let config = Config { allowed, limits, ..Config::default() };
        helper.send(&json!({"type": "setup", "config": config}));
        assert_eq!(helper.receive(), json!({"type": "ready", "authority": null}));
        helper
    }

    /// The place where it serves.
    fn serves(&mut self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        self.send_with(&json!({"type": "listener"}), &listener);
        assert_eq!(self.receive(), json!({"type": "serving"}));
        listener.local_addr().unwrap()
    }

    /// Waits until it has ended by itself.
    fn ends(&mut self) {
        let patience = Instant::now() + LONG;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < patience, "it outlives its supervisor");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn frame(value: &Value) -> Vec<u8> {
    let json = value.to_string();
    [u32::try_from(json.len()).unwrap().to_be_bytes().as_slice(), json.as_bytes()].concat()
}

fn status(pid: u32, key: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    line.unwrap().trim().to_owned()
}

/// What a process has open.
fn open(pid: u32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    entries.map(|entry| fs::read_link(entry.unwrap().path()).unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn it_has_given_everything_up_before_it_serves() {
    // A descriptor that every child process inherits.
    let leaked = tempfile::NamedTempFile::new().unwrap();
    fcntl_setfd(leaked.as_file(), FdFlags::empty()).unwrap();
    let mut helper = Helper::ready(&[]);
    helper.serves();
    let pid = helper.child.id();
    assert_eq!(status(pid, "Seccomp"), "2");
    assert_eq!(status(pid, "NoNewPrivs"), "1");
    assert_eq!(status(pid, "CapEff"), "0000000000000000");
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().collect::<Vec<_>>()[4..6], ["0", "0"], "{core}");
    if is_root() {
        // What an ordinary user's process may not be looked into belongs to root.
        assert_ne!(status(pid, "Uid").split_whitespace().next().unwrap(), "0");
        assert_eq!(fs::metadata(format!("/proc/{pid}/mem")).unwrap().uid(), 0);
        let own = leaked.path().to_str().unwrap();
        assert!(open(std::process::id()).iter().any(|target| target == own), "the file is there to leak");
        for target in open(pid) {
            let fine =
                target.starts_with("socket:") || target.starts_with("anon_inode:") || target == "/dev/null";
            assert!(fine, "{target}");
        }
    }
}

#[test]
fn it_ends_with_its_parent_whatever_is_open() {
    // A server that says nothing, and a tunnel to it that stays open.
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = server.local_addr().unwrap();
    let mut helper = Helper::ready(&[target.to_string()]);
    let mut client = TcpStream::connect(helper.serves()).unwrap();
    write!(client, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").unwrap();
    let mut answer = [0; 12];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    // As when the supervisor is killed: its end is gone.
    let (other, _) = UnixStream::pair().unwrap();
    drop(std::mem::replace(&mut helper.socket, other));
    helper.ends();
}

#[test]
fn it_ends_when_it_is_told_something_else() {
    for wrong in [json!({"type": "listener"}), json!({"type": "setup"}), json!({"type": "x"}), json!(1)] {
        let mut helper = Helper::ready(&[]);
        helper.send(&wrong);
        helper.ends();
    }
}

#[test]
fn events_at_the_end_are_reported() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = server.local_addr().unwrap();
    let begun = serving(&[target.to_string()]);
    let mut client = TcpStream::connect(begun.address).unwrap();
    let authorization = begun.authorization();
    write!(client, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{authorization}\r\n").unwrap();
    let mut answer = [0; 12];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    // The tunnel is open, and that is told at once.
    let opened = begun.told.first();
    assert_eq!((opened.phase, opened.allowed, opened.port), (Some(Phase::Opened), true, target.port()));
    let report = begun.network.finish();
    assert_eq!((report.allowed, report.lost), (1, None));
    let events = begun.told.events.lock().unwrap();
    assert_eq!(
        events.iter().map(|event| event.phase).collect::<Vec<_>>(),
        [Some(Phase::Opened), Some(Phase::Ended)]
    );
}

/// Ask for each of these URLs on one connection, and return it with a thread that counts the answers.
fn ask_all(begun: &Begun, urls: Vec<String>) -> (JoinHandle<()>, Receiver<()>) {
    let mut client = TcpStream::connect(begun.address).unwrap();
    client.set_read_timeout(Some(LONG)).unwrap();
    let authorization = begun.authorization();
    let answers = BufReader::new(client.try_clone().unwrap());
    let sender = std::thread::spawn(move || {
        for url in urls {
            let host = url.split('/').nth(2).unwrap();
            write!(client, "GET {url} HTTP/1.1\r\nHost: {host}\r\n{authorization}\r\n").unwrap();
        }
        client.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let (answered, count) = channel();
    std::thread::spawn(move || {
        for line in answers.lines().map_while(Result::ok) {
            if line.starts_with("HTTP/1.1 403") && answered.send(()).is_err() {
                return;
            }
        }
    });
    (sender, count)
}

#[test]
fn a_flood_of_refusals_hides_no_request() {
    let server = Server::start();
    let begun = serving(&[server.0.to_string()]);
    // Nothing is taken off the supervisor's hands meanwhile.
    let busy = begun.told.events.lock().unwrap();
    let long = "x".repeat(990);
    let urls = (0..6000).map(|number| format!("http://closed.test/{long}{number}")).collect();
    let (sender, answers) = ask_all(&begun, urls);
    assert_eq!(answers.iter().count(), 6000);
    sender.join().unwrap();
    let (target, authorization) = (server.0, begun.authorization());
    let post = format!(
        "POST http://{target}/out HTTP/1.1\r\nHost: {target}\r\n{authorization}Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    assert!(exchange(begun.address, &post).starts_with("HTTP/1.1 200"));
    drop(busy);
    let report = begun.network.finish();
    assert_eq!((&report.lost, report.missing()), (&None, None));
    assert_eq!((report.allowed, report.refused, report.hosts[0].count), (1, 6000, 6000));
    let events = begun.told.events.lock().unwrap();
    assert!(events.len() < 6000, "they are told together");
    let post = events.last().unwrap();
    assert_eq!(
        (post.method.as_deref(), post.path.as_deref(), post.allowed),
        (Some("POST"), Some("/out"), true)
    );
}

#[test]
fn events_wait_while_the_observer_is_busy() {
    let begun = serving(&[]);
    let busy = begun.told.events.lock().unwrap();
    let urls = (0..3000).map(|number| format!("http://closed{number}.test/")).collect();
    let (sender, answers) = ask_all(&begun, urls);
    // This many are answered while no observer listens; not all of them, but only time would show that.
    assert_eq!(answers.iter().take(1000).count(), 1000);
    drop(busy);
    assert_eq!(answers.iter().count(), 2000);
    sender.join().unwrap();
    let report = begun.network.finish();
    assert_eq!((&report.lost, report.missing(), report.refused), (&None, None, 3000));
    assert_eq!(begun.told.events.lock().unwrap().len(), 3000);
}

/// Heads of the largest size, on as many connections as there may be, each whole or not.
fn fill_with_heads(whole: bool) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    // It takes every connection and never answers.
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let target = server.local_addr().unwrap();
    let mut helper = Helper::limited(
        &[target.to_string()],
        Limits { head_time: Duration::from_secs(4), ..Limits::default() },
    );
    let address = helper.serves();
    let before = peak(&helper);
    let fields = format!("X-Field: {}\r\n", "x".repeat(270)).repeat(115);
    let end = if whole { "\r\n" } else { "" };
    let head = format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n{fields}{end}");
    let clients = (0..1000).map(|_| {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(head.as_bytes()).unwrap();
        client.set_nonblocking(true).unwrap();
        client
    });
    let mut waiting: Vec<_> = clients.collect();
    let mut taken = Vec::new();
    let patience = Instant::now() + LONG;
    // Each of them was either passed on or refused.
    while taken.len() < waiting.len() {
        assert!(Instant::now() < patience, "{} of {} wait", waiting.len() - taken.len(), waiting.len());
        taken.extend(std::iter::from_fn(|| server.accept().ok()));
        waiting.retain(|client| client.peek(&mut [0]).is_err());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(taken.is_empty(), !whole);
    peak(&helper) - before
}

/// The most memory it had, in KiB.
fn peak(helper: &Helper) -> u64 {
    status(helper.child.id(), "VmHWM").split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn its_memory_has_a_bound_whatever_it_is_sent() {
    for whole in [true, false] {
        let grown = fill_with_heads(whole);
        assert!(grown < 32 << 10, "{grown} KiB, whole: {whole}");
    }
}

#[test]
fn nothing_goes_out_when_it_is_gone() {
    let begun = serving(&[]);
    let pid = begun.network.helper_pid().unwrap();
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    assert_eq!(begun.told.lost(), "its helper ended");
    let answer = exchange(begun.address, "CONNECT a.example.org:443 HTTP/1.1\r\n\r\n");
    assert_eq!(answer, "", "turned away, at once");
    assert!(TcpListener::bind(begun.address).is_err(), "no other process can answer in its place");
    let report = begun.network.finish();
    assert_eq!(report.lost.as_deref(), Some("its helper ended"));
    assert!(!fs::exists(format!("/proc/{pid}")).unwrap());
}

#[test]
fn a_stopped_helper_is_killed_and_reported() {
    let begun = serving(&[]);
    let pid = begun.network.helper_pid().unwrap();
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::STOP).unwrap();
    let report = begun.network.finish();
    assert_eq!(report.lost.as_deref(), Some("it sent nothing for 5 s"));
    assert!(!fs::exists(format!("/proc/{pid}")).unwrap());
}

#[test]
fn dropping_the_network_ends_the_helper() {
    let begun = serving(&[]);
    let pid = begun.network.helper_pid().unwrap();
    drop(begun.network);
    assert!(!fs::exists(format!("/proc/{pid}")).unwrap());
}
