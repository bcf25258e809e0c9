//! The proxy's process, as the supervisor sees it.
//!
//! It is not trusted beyond what it was given: whatever it says is counted and handed on as data. If it dies, or says what
//! it should not, it is ended, and whoever connects afterwards is turned away by [`turn_away`]: the network stays closed.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nono_proxy::{Config, Event};
use rustix::io::Errno;

use super::report::NetworkReport;
use super::wire::{SAID, Said, TOLD, Told};
use crate::helper::{self, Incoming, Process, START, Trouble};

/// How long it may be silent before its last word.
const SILENCE: Duration = Duration::from_secs(5);
/// How often: it has a minute for all it has to say.
const SILENCES: u32 = 12;

/// Who is told what the proxy did. Called from a thread of its own.
pub trait NetworkObserver: Send + Sync {
    /// A tunnel or request ended, or was refused. It comes from a process that the command talks to: not to be shown
    /// unescaped.
    fn event(&self, event: &Event);
    /// The proxy is gone before its time. Nothing goes out any more.
    fn lost(&self, why: &str);
}

/// Nobody is told.
impl NetworkObserver for () {
    fn event(&self, _event: &Event) {}

    fn lost(&self, _why: &str) {}
}

/// Confined, and waiting for its socket.
#[derive(Debug)]
pub(super) struct Waiting {
    process: Process,
    socket: UnixStream,
    said: Incoming<UnixStream>,
    pub(super) authority: Option<String>,
}

impl Waiting {
    pub(super) fn start(command: &[OsString], config: Config) -> Result<Waiting, Trouble> {
        let (socket, theirs) = UnixStream::pair().map_err(Trouble::Start)?;
        let process = Process::start(command, Stdio::from(OwnedFd::from(theirs)), Stdio::null())?;
        // One that does not read does not hold the supervisor up.
        socket.set_write_timeout(Some(START)).map_err(Trouble::Start)?;
        let said = Incoming::new(socket.try_clone().map_err(Trouble::Start)?, SAID);
        let mut waiting = Waiting { process, socket, said, authority: None };
        waiting.tell(&Told::Setup { config: Box::new(config) })?;
        match waiting.hear()? {
            Said::Ready { authority } => Ok(Waiting { authority, ..waiting }),
            Said::Unable { why } => Err(Trouble::Unable(why)),
            Said::Serving | Said::Event { .. } | Said::Done => Err(Trouble::OutOfTurn),
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    fn tell(&self, told: &Told) -> Result<(), Trouble> {
        let frame = TOLD.encode(told).map_err(Trouble::Garbled)?;
        (&self.socket).write_all(&frame).map_err(|_| Trouble::Ended)
    }

    fn hear(&mut self) -> Result<Said, Trouble> {
        self.said.receive(Instant::now() + START, &|| true)
    }

    /// Hand the socket over. From here on a thread listens to what is said.
    pub(super) fn serve(
        mut self,
        listener: OwnedFd,
        observer: Arc<dyn NetworkObserver>,
    ) -> Result<Serving, Trouble> {
        let frame = TOLD.encode(&Told::Listener).map_err(Trouble::Garbled)?;
        helper::send(&self.socket, &frame, listener.as_fd()).map_err(|_| Trouble::Ended)?;
        match self.hear()? {
            Said::Serving => {}
            Said::Unable { why } => return Err(Trouble::Unable(why)),
            Said::Ready { .. } | Said::Event { .. } | Said::Done => return Err(Trouble::OutOfTurn),
        }
        let listener = Arc::new(listener);
        let process = Arc::new(Mutex::new(Some(self.process)));
        let given_up = Arc::new(OnceLock::new());
        let heard = Arc::new(AtomicU64::new(0));
        let (over, is_over) = channel();
        let ear = Ear {
            said: self.said,
            observer,
            process: process.clone(),
            listener: listener.clone(),
            given_up: given_up.clone(),
            heard: heard.clone(),
            over,
        };
        let builder = std::thread::Builder::new().name("proxy events".to_owned());
        let ear = builder.spawn(move || ear.listen()).map_err(Trouble::Start)?;
        Ok(Serving { socket: self.socket, process, listener, given_up, heard, is_over, ear: Some(ear) })
    }
}

/// The proxy at work. Ended when it is dropped.
#[derive(Debug)]
pub(super) struct Serving {
    socket: UnixStream,
    process: Arc<Mutex<Option<Process>>>,
    /// Never accepted on here while the proxy lives: it keeps the address taken when it is gone.
    listener: Arc<OwnedFd>,
    given_up: Arc<OnceLock<String>>,
    heard: Arc<AtomicU64>,
    is_over: Receiver<()>,
    ear: Option<JoinHandle<NetworkReport>>,
}

impl Serving {
    pub(super) fn pid(&self) -> Option<u32> {
        locked(&self.process).as_ref().map(Process::id)
    }

    /// Let it end what is open and say the rest, as long as it speaks.
    pub(super) fn finish(mut self) -> NetworkReport {
        self.stop()
    }

    fn stop(&mut self) -> NetworkReport {
        let Some(ear) = self.ear.take() else { return NetworkReport::default() };
        // One that is gone already was noticed by the ear.
        let _ = TOLD.write(&mut &self.socket, &Told::End);
        let over = |wait| self.is_over.recv_timeout(wait).is_ok();
        if let Some(why) = hear_out(over, || self.heard.load(Ordering::SeqCst)) {
            // Nobody else says why.
            let _ = self.given_up.set(why);
        }
        // Killed, if it has not ended: its end of the socket closes, and the ear hears that.
        drop(locked(&self.process).take());
        // Whoever still waits for connections to turn away wakes up. It fails where nobody listens there any more.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
        ear.join().unwrap_or_else(|_| NetworkReport::without_a_word("whoever listened to it failed"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.stop();
    }
}

fn locked(process: &Mutex<Option<Process>>) -> std::sync::MutexGuard<'_, Option<Process>> {
    process.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hears what the proxy says, to its end.
struct Ear {
    said: Incoming<UnixStream>,
    observer: Arc<dyn NetworkObserver>,
    process: Arc<Mutex<Option<Process>>>,
    listener: Arc<OwnedFd>,
    given_up: Arc<OnceLock<String>>,
    /// Frames so far.
    heard: Arc<AtomicU64>,
    over: Sender<()>,
}

impl Ear {
    fn listen(mut self) -> NetworkReport {
        let mut report = NetworkReport::default();
        let trouble = loop {
            let said = self.said.wait::<Said>();
            self.heard.fetch_add(1, Ordering::SeqCst);
            match said {
                Ok(Said::Event { event, untold }) => {
                    report.note(&event);
                    report.untold = untold;
                    self.observer.event(&event);
                }
                Ok(Said::Done) => {
                    self.is_over();
                    return report;
                }
                Ok(Said::Ready { .. } | Said::Unable { .. } | Said::Serving) => break Trouble::OutOfTurn,
                Err(trouble) => break trouble,
            }
        };
        // It may only have broken its word: then it is ended now.
        drop(locked(&self.process).take());
        let why = self.given_up.get().cloned().unwrap_or_else(|| trouble.to_string());
        self.observer.lost(&why);
        report.lost = Some(why);
        self.is_over();
        turn_away(&self.listener);
        report
    }

    fn is_over(&self) {
        // Nobody waits for it where the proxy ended by itself.
        let _ = self.over.send(());
    }
}

/// Wait for its end, while it speaks. Otherwise: why it is not waited for any more. `over` waits that long for the end.
fn hear_out(over: impl Fn(Duration) -> bool, heard: impl Fn() -> u64) -> Option<String> {
    for _ in 0..SILENCES {
        let before = heard();
        if over(SILENCE) {
            return None;
        }
        if heard() == before {
            return Some(format!("it said nothing for {} s", SILENCE.as_secs()));
        }
    }
    Some(format!("it did not end within {} s", (SILENCE * SILENCES).as_secs()))
}

/// Take every connection and close it, until the listener is shut down. Without this they would wait for ever, or, with
/// the listener closed, somebody else could answer at its address.
fn turn_away(listener: &OwnedFd) {
    loop {
        if nono_sys::wait::poll(&[Some((listener.as_fd(), false))], None).is_err() {
            return;
        }
        match rustix::net::accept(listener) {
            Ok(connection) => drop(connection),
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => {}
            // Shut down; or no descriptors are left, and whoever connects waits.
            Err(_) => return,
        }
    }
}

/// A place for the proxy on this machine's own loopback.
pub fn bind() -> io::Result<std::net::TcpListener> {
    std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::wire::Untold;
    use super::super::wire::tests::event;
    use super::*;

    #[test]
    fn what_it_had_not_told_is_known_when_it_is_gone() {
        let (here, mut there) = UnixStream::pair().unwrap();
        for untold in [Untold { allowed: 9, refused: 9 }, Untold { allowed: 2, refused: 3 }] {
            SAID.write(&mut there, &Said::Event { event: Box::new(event("h", true)), untold }).unwrap();
        }
        drop(there);
        let listener = OwnedFd::from(bind().unwrap());
        // Nobody has to be turned away.
        rustix::net::shutdown(&listener, rustix::net::Shutdown::Both).unwrap();
        let (over, is_over) = channel();
        let ear = Ear {
            said: Incoming::new(here, SAID),
            observer: Arc::new(()),
            process: Arc::default(),
            listener: Arc::new(listener),
            given_up: Arc::default(),
            heard: Arc::default(),
            over,
        };
        let report = ear.listen();
        assert_eq!((report.allowed, report.untold), (2, Untold { allowed: 2, refused: 3 }));
        assert_eq!(report.lost.as_deref(), Some("its helper ended"));
        assert_eq!(is_over.try_recv(), Ok(()));
    }

    #[test]
    fn it_is_heard_out_while_it_speaks() {
        let (waited, said) = (Cell::new(0), Cell::new(0));
        // It says something in each of the first `speaks` waits, and ends in the one after `ends`.
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
        assert_eq!(outcome(0, 99), (Some("it said nothing for 5 s".to_owned()), 1));
        assert_eq!(outcome(3, 99), (Some("it said nothing for 5 s".to_owned()), 4));
        assert_eq!(outcome(99, 99), (Some("it did not end within 60 s".to_owned()), 12));
    }
}
