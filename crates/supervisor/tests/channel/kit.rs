//! Channels whose decisions depend on the file name, and clients.

use std::io::{IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use nono_checkpoint::supervisor_request::RemoteAction;
use nono_policy::AccessMode;
use nono_supervisor::approval::Asker;
use nono_supervisor::channel::{
    Bounds, CONTROL_SOCKET, ChannelConnector, ChannelThreads, Channels, Listening, REQUEST_SOCKET,
    SessionInfo,
};
use nono_supervisor::report::{MediationReport, RefusalReason};
use nono_supervisor::request_service::{RequestFailure, RequestReply, RequestService, StillWanted};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use serde_json::{Value, json};

/// Recorded request: asker, path, access and reason.
type Asked = (Asker, PathBuf, AccessMode, Option<String>);

/// Grants what is called `granted`, keeps waiting for what is called `later`, and denies the rest.
#[derive(Default)]
pub(crate) struct TestService {
    pub(crate) asked: Mutex<Vec<Asked>>,
    pub(crate) report: Mutex<MediationReport>,
    waiting: AtomicU64,
    released: Mutex<bool>,
    changed: Condvar,
}

impl TestService {
    pub(crate) fn release(&self) {
        *self.released.lock().unwrap() = true;
        self.changed.notify_all();
    }

    /// Waits until released or withdrawn; returns whether it is still wanted then.
    fn wait(&self, wanted: &StillWanted<'_>) -> bool {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut released = self.released.lock().unwrap();
        while !*released && wanted() {
            // A hang-up is polled for, not signalled.
            released = self.changed.wait_timeout(released, Duration::from_millis(5)).unwrap().0;
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        wanted()
    }

    pub(crate) fn until_waiting(&self, number: u64) {
        until(|| self.waiting.load(Ordering::SeqCst) == number);
    }
}

/// Polls until it holds; a test that hangs here is ended by its runner.
pub(crate) fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        std::thread::yield_now();
    }
}

impl RequestService for TestService {
    fn capability(
        &self,
        asker: &Asker,
        path: PathBuf,
        access: AccessMode,
        reason: Option<String>,
        wanted: &StillWanted<'_>,
    ) -> RequestReply {
        self.asked.lock().unwrap().push((asker.clone(), path.clone(), access, reason));
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == "later" && !self.wait(wanted) {
            return RequestReply::Denied { because: RefusalReason::NoAnswer { why: "given up".to_owned() } };
        }
        match name.as_str() {
            "granted" | "later" => RequestReply::Granted {
                fd: std::fs::File::open(&path).unwrap().into(),
                by: "the test".to_owned(),
            },
            "open" => RequestReply::AlreadyOpen,
            _ => RequestReply::Denied { because: RefusalReason::Answered { by: "the test".to_owned() } },
        }
    }

    fn checkpoint(&self, _asker: &Asker, reason: &str) -> Result<u64, RequestFailure> {
        if reason == "good" { Ok(7) } else { Err(RequestFailure::Service("nothing is tracked".into())) }
    }

    fn restore(
        &self,
        _asker: &Asker,
        snapshot: u64,
        paths: Vec<PathBuf>,
        _wanted: &StillWanted<'_>,
    ) -> Result<String, RequestFailure> {
        if snapshot == 7 {
            Ok(format!("{} paths are back", paths.len()))
        } else {
            Err(RequestFailure::Service("no".into()))
        }
    }

    fn history(
        &self,
        _asker: &Asker,
        action: RemoteAction,
        _wanted: &StillWanted<'_>,
    ) -> Result<Value, RequestFailure> {
        match action {
            RemoteAction::List { dir } => Ok(serde_json::json!({ "dir": dir })),
            // More than a frame holds.
            RemoteAction::Diff { .. } => Ok(Value::String("x".repeat(nono_supervisor::channel::MAX_JSON))),
            _ => Err(RequestFailure::Service("not this one".into())),
        }
    }

    fn open_url(
        &self,
        _asker: &Asker,
        url: &str,
        _wanted: &StillWanted<'_>,
    ) -> Result<String, RequestFailure> {
        if url == "https://good.org/" {
            Ok("the test".to_owned())
        } else {
            Err(RequestFailure::Service("no".into()))
        }
    }

    fn report(&self) -> MediationReport {
        self.report.lock().unwrap().clone()
    }

    fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::SeqCst)
    }
}

/// Both channels of a session, in a directory of their own.
pub(crate) struct Place {
    pub(crate) service: Arc<TestService>,
    pub(crate) threads: Option<ChannelThreads>,
    pub(crate) dir: tempfile::TempDir,
    /// Stands for the sandbox's init; no process is below it.
    _childless: Childless,
}

/// Process without children.
pub(crate) struct Childless(Child);

impl Childless {
    fn new() -> Childless {
        Childless(Command::new("sleep").arg("1000").spawn().unwrap())
    }
}

impl Drop for Childless {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// Process that stands for the sandbox's init.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Init {
    /// This one: its children are inside.
    Us,
    /// Another one: every process here is outside.
    Other,
}

impl Place {
    pub(crate) fn new(init: Init, bounds: Bounds) -> Place {
        let dir = tempfile::tempdir().unwrap();
        let childless = Childless::new();
        let bind = |name| Some(Listening::bind(dir.path(), name).unwrap());
        let info = SessionInfo {
            id: "20260101-000000-1".to_owned(),
            name: Some("mine".to_owned()),
            pid: std::process::id(),
            started: "2026-01-01T00:00:00Z".to_owned(),
            command: vec!["make".to_owned(), "test".to_owned()],
            workdir: "/".into(),
            strategy: "supervised".to_owned(),
            grants: 3,
            rollback: None,
        };
        let channels =
            Channels { request: bind(REQUEST_SOCKET), control: bind(CONTROL_SOCKET), info, bounds };
        let service = Arc::new(TestService::default());
        let pid = if init == Init::Us { std::process::id() } else { childless.0.id() };
        let threads = Some(ChannelThreads::open(channels, service.clone(), pid).unwrap());
        std::fs::write(dir.path().join("granted"), "content").unwrap();
        std::fs::write(dir.path().join("later"), "late content").unwrap();
        Place { service, threads, dir, _childless: childless }
    }

    pub(crate) fn threads(&self) -> &ChannelThreads {
        self.threads.as_ref().unwrap()
    }

    pub(crate) fn connector(&self) -> ChannelConnector {
        self.threads().connector()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Connection to the request channel as the supervisor makes one on behalf of a program.
    pub(crate) fn connect(&self) -> Client {
        let socket = new_socket();
        self.connector().connect_for(asker(), socket.as_fd()).unwrap();
        Client(socket)
    }

    /// Connection to either channel, made by this process itself.
    pub(crate) fn connect_self(&self, name: &str) -> Client {
        let socket = new_socket();
        let address = rustix::net::SocketAddrUnix::new(self.path(name)).unwrap();
        rustix::net::connect(&socket, &address).unwrap();
        Client(socket)
    }

    /// Request for a file by its name in the directory.
    pub(crate) fn wanted(&self, id: &str, name: &str) -> Value {
        json!({"version": 1, "type": "capability_request", "id": id, "path": self.path(name), "access": "read",
               "reason": "because"})
    }

    /// Asks for a file and returns the answer.
    pub(crate) fn ask(&self, id: &str, name: &str) -> Value {
        let client = self.connect();
        client.send(&self.wanted(id, name));
        client.answer().unwrap()
    }
}

/// Process that the supervisor connected for.
pub(crate) fn asker() -> Asker {
    Asker { program: "/usr/bin/agent".into(), pid: 4711 }
}

pub(crate) fn new_socket() -> OwnedFd {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
}

/// One end of a connection.
pub(crate) struct Client(pub(crate) OwnedFd);

impl Client {
    pub(crate) fn send(&self, message: &Value) {
        self.send_packet(&framed(&serde_json::to_vec(message).unwrap()));
    }

    /// Sends a packet as it is. A client that was refused may find the other end closed.
    pub(crate) fn send_packet(&self, packet: &[u8]) {
        let _ = rustix::net::send(&self.0, packet, SendFlags::NOSIGNAL);
    }

    pub(crate) fn send_with(&self, message: &Value, descriptors: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
        let packet = framed(&serde_json::to_vec(message).unwrap());
        rustix::net::sendmsg(&self.0, &[IoSlice::new(&packet)], &mut control, SendFlags::NOSIGNAL).unwrap();
    }

    /// Next message; `None` when the other end is closed.
    pub(crate) fn answer(&self) -> Option<Value> {
        let mut buffer = vec![0; 70_000];
        let got = loop {
            match rustix::net::recv(&self.0, &mut buffer[..], RecvFlags::empty()) {
                // A reset is reported before the last message.
                Err(rustix::io::Errno::CONNRESET) => {}
                result => break result.unwrap().0,
            }
        };
        (got > 0).then(|| serde_json::from_slice(&buffer[4..got]).unwrap())
    }

    /// Whether nothing has come and the other end is still open.
    pub(crate) fn is_silent(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN | PollFlags::RDHUP)];
        poll(&mut fds, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap();
        fds[0].revents().is_empty()
    }

    /// Expects an error of that kind, and then the end.
    #[track_caller]
    pub(crate) fn is_refused(&self, error: &str) {
        let answer = self.answer().expect("an answer");
        assert_eq!((&answer["type"], &answer["error"]), (&json!("error"), &json!(error)), "{answer}");
        assert_eq!(self.answer(), None, "and closed");
    }
}

pub(crate) fn framed(json: &[u8]) -> Vec<u8> {
    let mut packet = u32::try_from(json.len()).unwrap().to_le_bytes().to_vec();
    packet.extend(json);
    packet
}

/// Runs the Python client as a process of its own: (exit code, output, errors).
pub(crate) fn python(socket: &Path, change: impl FnOnce(&mut Command)) -> (Option<i32>, String, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/request.py");
    let mut command = Command::new("python3");
    command.arg("-c").arg(std::fs::read_to_string(script).unwrap());
    command.env("NONO_REQUEST_SOCK", socket).current_dir("/");
    change(&mut command);
    let output = command.output().expect("python3");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim_end().to_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Reads everything until the end.
pub(crate) fn content(mut file: impl Read) -> String {
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    text
}
