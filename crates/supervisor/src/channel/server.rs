//! Thread that accepts on both sockets, and connections made for the command by the supervisor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nono_sys::socket::peer;
use nono_sys::wait;
use rustix::event::{EventfdFlags, eventfd};

use super::Channels;
use super::message::{RequestProblem, SessionInfo};
use super::peer::PeerSide;
use super::rate_limit::{Bounds, ChannelCounts, RateLimit};
use super::serve::{refuse, serve};
use super::socket::Listening;
use crate::approval::Asker;
use crate::mediate::emulate::RequestSocket;
use crate::request_service::RequestService;

/// One channel: its socket, its limits, and the side its clients are on.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) side: PeerSide,
    pub(super) gate: Arc<RateLimit>,
    listening: Listening,
    /// Held while connections are accepted: a connection made for the command is accepted by the thread that made it.
    accepting: Mutex<()>,
}

impl Channel {
    fn new(listening: Listening, side: PeerSide, bounds: Bounds) -> Arc<Channel> {
        Arc::new(Channel { side, gate: RateLimit::new(bounds), listening, accepting: Mutex::new(()) })
    }

    fn accepting(&self) -> MutexGuard<'_, ()> {
        self.accepting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(&self) -> io::Result<Option<OwnedFd>> {
        let _turn = self.accepting();
        self.listening.accept()
    }
}

/// State shared by all threads.
pub(super) struct ChannelServer {
    pub(super) request_service: Arc<dyn RequestService>,
    pub(super) info: SessionInfo,
    /// Pid of the sandbox's init in the supervisor's pid namespace.
    pub(super) init: u32,
    request: Option<Arc<Channel>>,
    control: Option<Arc<Channel>>,
    closing: OwnedFd,
    stop: OwnedFd,
    /// Number of connections being served.
    busy: Mutex<usize>,
    left: Condvar,
}

impl ChannelServer {
    pub(super) fn closing(&self) -> BorrowedFd<'_> {
        self.closing.as_fd()
    }

    pub(super) fn is_closing(&self) -> bool {
        // An error counts as the end.
        wait::poll(&[Some((self.closing(), false))], Some(Duration::ZERO)).map_or(true, |ready| ready[0])
    }

    pub(super) fn ring_stop(&self) {
        ring(&self.stop);
    }

    pub(super) fn request_counts(&self) -> ChannelCounts {
        self.request.as_ref().map(|channel| channel.gate.counts()).unwrap_or_default()
    }

    fn busy(&self) -> MutexGuard<'_, usize> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a connection in a thread of its own, or refuses it at once.
    fn admit(self: &Arc<ChannelServer>, channel: &Arc<Channel>, connection: OwnedFd, known: Option<Asker>) {
        let pass = match channel.gate.enter() {
            Ok(pass) => pass,
            Err(problem) => {
                let message = match problem {
                    RequestProblem::TooManyConnections => "too many connections",
                    _ => "too many requests",
                };
                return refuse(connection.as_fd(), None, problem, message.to_owned());
            }
        };
        *self.busy() += 1;
        let here = BusyThread(self.clone());
        let served = channel.clone();
        let serving = move || {
            let _pass = pass;
            serve(&here.0, &served, &connection, known);
        };
        // No thread can be started: the connection is dropped, which is a refusal too.
        if thread::Builder::new().name("nono-request".to_owned()).stack_size(STACK).spawn(serving).is_err() {
            channel.gate.count(RequestProblem::TooManyConnections);
        }
    }
}

/// Stack size of a serving thread, which needs little.
const STACK: usize = 512 << 10;

/// Counts one thread for as long as it serves.
struct BusyThread(Arc<ChannelServer>);

impl Drop for BusyThread {
    fn drop(&mut self) {
        *self.0.busy() -= 1;
        self.0.left.notify_all();
    }
}

fn ring(bell: &OwnedFd) {
    // Fails only when the counter is full, and then it is readable anyway.
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

/// Both channels, served until this value is dropped; their sockets are removed with it.
pub struct ChannelThreads {
    server: Arc<ChannelServer>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for ChannelThreads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelThreads").field("session", &self.server.info.id).finish_non_exhaustive()
    }
}

/// Time that connections being served may still take once the session has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Pause where a connection cannot be accepted for lack of descriptors.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(100);

impl ChannelThreads {
    /// Serves `channels` for the sandbox whose init is `init`; `request_service` decides.
    pub fn open(
        channels: Channels,
        request_service: Arc<dyn RequestService>,
        init: u32,
    ) -> io::Result<ChannelThreads> {
        let Channels { request, control, info, bounds } = channels;
        let bell = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let server = Arc::new(ChannelServer {
            request_service,
            info,
            init,
            request: request.map(|listening| Channel::new(listening, PeerSide::Inside, bounds)),
            control: control.map(|listening| Channel::new(listening, PeerSide::Outside, bounds)),
            closing: bell()?,
            stop: bell()?,
            busy: Mutex::new(0),
            left: Condvar::new(),
        });
        let shared = server.clone();
        let thread =
            thread::Builder::new().name("nono-channels".to_owned()).spawn(move || receive(&shared))?;
        Ok(ChannelThreads { server, thread: Some(thread) })
    }

    /// Descriptor that becomes readable once a client asks for the command to stop.
    pub fn stop_wanted(&self) -> BorrowedFd<'_> {
        self.server.stop.as_fd()
    }

    /// Handle for connecting the command's sockets to the request channel on its behalf.
    pub fn connector(&self) -> ChannelConnector {
        ChannelConnector(self.server.clone())
    }

    pub fn request_counts(&self) -> ChannelCounts {
        self.server.request_counts()
    }
}

impl Drop for ChannelThreads {
    fn drop(&mut self) {
        ring(&self.server.closing);
        if let Some(thread) = self.thread.take() {
            // A panic of that thread changes nothing here: it serves no connection any more either way.
            let _ = thread.join();
        }
        // Threads that wait for a frame see `closing`; those that wait for a decision are left behind after a while,
        // with a connection whose other end is gone.
        let busy = self.server.busy();
        let _ = self.server.left.wait_timeout_while(busy, LAST_WORDS, |busy| *busy > 0);
        for channel in [&self.server.request, &self.server.control].into_iter().flatten() {
            channel.listening.close();
        }
    }
}

/// Accepts connections until the session ends.
fn receive(server: &Arc<ChannelServer>) {
    let channels = [&server.request, &server.control];
    loop {
        let listening =
            channels.map(|channel| channel.as_ref().map(|channel| (channel.listening.as_fd(), false)));
        let fds = [Some((server.closing(), false)), listening[0], listening[1]];
        // Without poll nothing can be served; the sockets stay silent, which denies.
        let Ok(ready) = wait::poll(&fds, None) else { return };
        if ready[0] {
            return;
        }
        for (channel, _) in channels.into_iter().zip(&ready[1..]).filter(|(_, ready)| **ready) {
            let Some(channel) = channel else { continue };
            match channel.accept() {
                Ok(Some(connection)) => server.admit(channel, connection, None),
                // Another thread accepted it, or the client gave up.
                Ok(None) => {}
                Err(_) => {
                    // Waiting connections go on waiting; the loop must not spin.
                    let _ = wait::poll(&fds[..1], Some(OUT_OF_DESCRIPTORS));
                }
            }
        }
    }
}

/// Connects sockets of the command on its behalf. Cheap to clone, works from any thread.
#[derive(Clone)]
pub struct ChannelConnector(Arc<ChannelServer>);

impl std::fmt::Debug for ChannelConnector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChannelConnector")
    }
}

/// Maximum number of connections accepted ahead of one's own; more is an attack.
const QUEUE: usize = 512;

impl ChannelConnector {
    /// Whether this inode is the session's own request socket.
    pub fn is_request_socket(&self, device: u64, inode: u64) -> bool {
        self.0.request.as_ref().is_some_and(|channel| channel.listening.identity == (device, inode))
    }

    /// Connects `socket`, which belongs to the asker, to the request channel. The kernel takes this process for the one
    /// that connected, so the connection is picked out here, under the same lock, and served as the asker's.
    pub fn connect_for(&self, asker: Asker, socket: BorrowedFd<'_>) -> io::Result<()> {
        let channel = self.0.request.as_ref().ok_or(io::ErrorKind::ConnectionRefused)?;
        let mut others = Vec::new();
        let own = {
            let _turn = channel.accepting();
            // The queue is emptied first: a full one would make a blocking socket wait for this very thread.
            while others.len() < QUEUE {
                match channel.listening.accept()? {
                    Some(connection) => others.push(connection),
                    None => break,
                }
            }
            channel.listening.connect(socket).and_then(|()| own_connection(channel, &mut others))
        };
        for connection in others {
            self.0.admit(channel, connection, None);
        }
        self.0.admit(channel, own?, Some(asker));
        Ok(())
    }
}

impl RequestSocket for ChannelConnector {
    fn is_at(&self, device: u64, inode: u64) -> bool {
        self.is_request_socket(device, inode)
    }

    fn connect(&self, asker: Asker, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.connect_for(asker, socket)
    }
}

/// Finds the connection that this process has just made; those before it go to `others`.
fn own_connection(channel: &Channel, others: &mut Vec<OwnedFd>) -> io::Result<OwnedFd> {
    for _ in 0..QUEUE {
        let connection = channel.listening.accept()?.ok_or(io::ErrorKind::ConnectionRefused)?;
        if peer(connection.as_fd())?.pid == std::process::id() {
            return Ok(connection);
        }
        others.push(connection);
    }
    Err(io::ErrorKind::ConnectionRefused.into())
}
