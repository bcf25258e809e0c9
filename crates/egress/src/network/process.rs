//! Supervisor's side of the proxy process.
//!
//! The process is not trusted beyond what it was given: what it sends is counted and passed on as data. If it dies or
//! violates the protocol, it is killed, and later connections are closed by [`turn_away`]: the network stays closed.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nono_proxy::{Config, ProxyEvent};
use rustix::io::Errno;

use super::report::NetworkReport;
use super::wire::{HelperFrame, HelperMessage, SAID, TOLD};
use crate::helper::{self, HelperProcessError, Incoming, Process, START};

/// Maximum time without a message while it ends.
const SILENCE: Duration = Duration::from_secs(5);
/// Maximum number of such periods: it has a minute to send everything.
const SILENCES: u32 = 12;

/// Receives the proxy's events. Called from a thread of its own.
pub trait NetworkObserver: Send + Sync {
    /// A tunnel or request ended, or was refused. The text comes from a process that the command talks to: escape
    /// before printing.
    fn event(&self, event: &ProxyEvent);
    /// The proxy ended unexpectedly. Nothing goes out any more.
    fn lost(&self, why: &str);
}

/// Ignores all events.
impl NetworkObserver for () {
    fn event(&self, _event: &ProxyEvent) {}

    fn lost(&self, _why: &str) {}
}

/// A proxy that is confined and waits for its socket.
#[derive(Debug)]
pub(super) struct Waiting {
    process: Process,
    socket: UnixStream,
    said: Incoming<UnixStream>,
    pub(super) authority: Option<String>,
}

impl Waiting {
    pub(super) fn start(command: &[OsString], config: Config) -> Result<Waiting, HelperProcessError> {
        let (socket, theirs) = UnixStream::pair().map_err(HelperProcessError::Start)?;
        let process = Process::start(command, Stdio::from(OwnedFd::from(theirs)), Stdio::null())?;
        // A proxy that does not read must not block the supervisor.
        socket.set_write_timeout(Some(START)).map_err(HelperProcessError::Start)?;
        let said = Incoming::new(socket.try_clone().map_err(HelperProcessError::Start)?, SAID);
        let mut waiting = Waiting { process, socket, said, authority: None };
        waiting.tell(&HelperFrame::Setup { config: Box::new(config) })?;
        match waiting.hear()? {
            HelperMessage::Ready { authority } => Ok(Waiting { authority, ..waiting }),
            HelperMessage::Unable { why } => Err(HelperProcessError::Unable(why)),
            HelperMessage::Serving | HelperMessage::Event { .. } | HelperMessage::Done => {
                Err(HelperProcessError::OutOfTurn)
            }
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    fn tell(&self, told: &HelperFrame) -> Result<(), HelperProcessError> {
        let frame = TOLD.encode(told).map_err(HelperProcessError::Garbled)?;
        (&self.socket).write_all(&frame).map_err(|_| HelperProcessError::Ended)
    }

    fn hear(&mut self) -> Result<HelperMessage, HelperProcessError> {
        self.said.receive(Instant::now() + START, &|| true)
    }

    /// Hand over the socket. From here on a thread reads the proxy's messages.
    pub(super) fn serve(
        mut self,
        listener: OwnedFd,
        observer: Arc<dyn NetworkObserver>,
    ) -> Result<Serving, HelperProcessError> {
        let frame = TOLD.encode(&HelperFrame::Listener).map_err(HelperProcessError::Garbled)?;
        helper::send(&self.socket, &frame, listener.as_fd()).map_err(|_| HelperProcessError::Ended)?;
        match self.hear()? {
            HelperMessage::Serving => {}
            HelperMessage::Unable { why } => return Err(HelperProcessError::Unable(why)),
            HelperMessage::Ready { .. } | HelperMessage::Event { .. } | HelperMessage::Done => {
                return Err(HelperProcessError::OutOfTurn);
            }
        }
        let shared = Arc::new(Shared {
            process: Mutex::new(Some(self.process)),
            listener,
            given_up: OnceLock::new(),
            heard: AtomicU64::new(0),
        });
        let (over, is_over) = channel();
        let ear = HelperReader { said: self.said, observer, shared: shared.clone(), over };
        let builder = std::thread::Builder::new().name("proxy events".to_owned());
        let ear = builder.spawn(move || ear.listen()).map_err(HelperProcessError::Start)?;
        Ok(Serving { socket: self.socket, shared, is_over, ear: Some(ear) })
    }
}

/// A running proxy. Ended when dropped.
#[derive(Debug)]
pub(super) struct Serving {
    socket: UnixStream,
    shared: Arc<Shared>,
    is_over: Receiver<()>,
    ear: Option<JoinHandle<NetworkReport>>,
}

/// State of a running proxy that its reader uses too.
#[derive(Debug)]
struct Shared {
    process: Mutex<Option<Process>>,
    /// Listener that keeps the address occupied after the proxy is gone; nothing is accepted on it before.
    listener: OwnedFd,
    given_up: OnceLock<String>,
    /// Number of frames so far.
    heard: AtomicU64,
}

impl Shared {
    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Serving {
    pub(super) fn pid(&self) -> Option<u32> {
        self.shared.process().as_ref().map(Process::id)
    }

    /// Let the proxy close its connections and send its remaining events, as long as it keeps sending.
    pub(super) fn finish(mut self) -> NetworkReport {
        self.stop()
    }

    fn stop(&mut self) -> NetworkReport {
        let Some(ear) = self.ear.take() else { return NetworkReport::default() };
        // If it is gone already, the reading thread has noticed.
        let _ = TOLD.write(&mut &self.socket, &HelperFrame::End);
        let over = |wait| self.is_over.recv_timeout(wait).is_ok();
        if let Some(why) = hear_out(over, || self.shared.heard.load(Ordering::SeqCst)) {
            // The only place that knows the reason.
            let _ = self.shared.given_up.set(why);
        }
        // Kills it if it has not ended: its end of the socket closes, which ends the reading thread.
        drop(self.shared.process().take());
        // Wakes a thread that closes connections. Fails if the socket is not listening any more.
        let _ = rustix::net::shutdown(&self.shared.listener, rustix::net::Shutdown::Both);
        ear.join()
            .unwrap_or_else(|_| NetworkReport::without_a_word("the thread that reads its events failed"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop();
    }
}

struct HelperReader {
    said: Incoming<UnixStream>,
    observer: Arc<dyn NetworkObserver>,
    shared: Arc<Shared>,
    over: Sender<()>,
}

impl HelperReader {
    fn listen(mut self) -> NetworkReport {
        let mut report = NetworkReport::default();
        let trouble = loop {
            let said = self.said.wait::<HelperMessage>();
            self.shared.heard.fetch_add(1, Ordering::SeqCst);
            match said {
                Ok(HelperMessage::Event { event, untold }) => {
                    report.note(&event);
                    report.untold = untold;
                    self.observer.event(&event);
                }
                Ok(HelperMessage::Done) => {
                    self.is_over();
                    return report;
                }
                Ok(HelperMessage::Ready { .. } | HelperMessage::Unable { .. } | HelperMessage::Serving) => {
                    break HelperProcessError::OutOfTurn;
                }
                Err(trouble) => break trouble,
            }
        };
        // It may have violated the protocol and still run: kill it.
        drop(self.shared.process().take());
        let why = self.shared.given_up.get().cloned().unwrap_or_else(|| trouble.to_string());
        self.observer.lost(&why);
        report.lost = Some(why);
        self.is_over();
        turn_away(&self.shared.listener);
        report
    }

    fn is_over(&self) {
        // Unread if the proxy ended by itself.
        let _ = self.over.send(());
    }
}

/// Wait for its end as long as it sends messages; otherwise return why the wait was given up. `over` waits for the end
/// for the given time.
fn hear_out(over: impl Fn(Duration) -> bool, heard: impl Fn() -> u64) -> Option<String> {
    for _ in 0..SILENCES {
        let before = heard();
        if over(SILENCE) {
            return None;
        }
        if heard() == before {
            return Some(format!("it sent nothing for {} s", SILENCE.as_secs()));
        }
    }
    Some(format!("it did not end within {} s", (SILENCE * SILENCES).as_secs()))
}

/// Accept and close every connection until the listener is shut down. Otherwise clients would wait for ever or, if the
/// listener were closed, another process could listen at its address.
fn turn_away(listener: &OwnedFd) {
    loop {
        if nono_sys::wait::poll(&[Some((listener.as_fd(), false))], None).is_err() {
            return;
        }
        match rustix::net::accept(listener) {
            Ok(connection) => drop(connection),
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => {}
            // Shut down; or no descriptors are left, and clients wait.
            Err(_) => return,
        }
    }
}

/// Listening socket for the proxy on this machine's own loopback.
pub fn bind() -> io::Result<std::net::TcpListener> {
    std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::wire::UnsentCounts;
    use super::super::wire::tests::event;
    use super::*;

    #[test]
    fn unsent_events_of_a_dead_helper_are_counted() {
        let (here, mut there) = UnixStream::pair().unwrap();
        for untold in [UnsentCounts { allowed: 9, refused: 9 }, UnsentCounts { allowed: 2, refused: 3 }] {
            SAID.write(&mut there, &HelperMessage::Event { event: Box::new(event("h", true)), untold })
                .unwrap();
        }
        drop(there);
        let listener = OwnedFd::from(bind().unwrap());
        // No connections to close.
        rustix::net::shutdown(&listener, rustix::net::Shutdown::Both).unwrap();
        let (over, is_over) = channel();
        let ear = HelperReader {
            said: Incoming::new(here, SAID),
            observer: Arc::new(()),
            shared: Arc::new(Shared {
                process: Mutex::default(),
                listener,
                given_up: OnceLock::new(),
                heard: AtomicU64::new(0),
            }),
            over,
        };
        let report = ear.listen();
        assert_eq!((report.allowed, report.untold), (2, UnsentCounts { allowed: 2, refused: 3 }));
        assert_eq!(report.lost.as_deref(), Some("its helper ended"));
        assert_eq!(is_over.try_recv(), Ok(()));
    }

    #[test]
    fn a_helper_is_awaited_while_it_sends_events() {
        let (waited, said) = (Cell::new(0), Cell::new(0));
        // It sends something in each of the first `speaks` waits, and ends in the one after `ends`.
        let outcome = |speaks: u32, ends: u32| {
            waited.set(0);
            let over = |_| {
                waited.set(waited.get() + 1);
                said.set(said.get() + u64::from(waited.get() <= speaks));
                waited.get() > ends
            };
            (hear_out(over, || said.get()), waited.get())
        };
        assert_eq!(outcome(0, 0), (None, 1));
        assert_eq!(outcome(7, 7), (None, 8));
        assert_eq!(outcome(0, 99), (Some("it sent nothing for 5 s".to_owned()), 1));
        assert_eq!(outcome(3, 99), (Some("it sent nothing for 5 s".to_owned()), 4));
        assert_eq!(outcome(99, 99), (Some("it did not end within 60 s".to_owned()), 12));
    }
}
