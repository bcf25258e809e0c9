//! Terminal leases: use of the user's terminal by nono while a command has it.
//!
//! The loop in `run.rs` passes bytes between the command's own terminal and the user's. A prompt needs that terminal
//! for itself: [`TerminalLeases::lend`] makes the loop stop passing bytes both ways, and dropping the [`Lease`] lets it go on
//! and redraws what the prompt covered. There is one lease at a time; a second prompt waits for it. When the run ends
//! the lease is taken back: [`Lease::listen`] reports that.

use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nono_sys::{terminal, wait};

/// Time a prompt has to end once the run is over.
const TAKING_BACK: Duration = Duration::from_secs(2);

/// Source of leases. Cheap to clone; works from any thread. A `TerminalLeases` belongs to one run.
#[derive(Clone, Debug)]
pub struct TerminalLeases {
    shared: Arc<TerminalShared>,
}

#[derive(Debug)]
struct TerminalShared {
    phase: Mutex<Phase>,
    changed: Condvar,
    /// Written to by threads that want the terminal or bring it back; the loop polls the other end.
    bell: UnixStream,
    heard: UnixStream,
    disturbances: AtomicU64,
    /// Time at which a prompt of this run was last withdrawn.
    withdrawn: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
enum Phase {
    /// There is no loop to lease from: not yet, or not any more.
    #[default]
    Shut,
    Free,
    /// A prompt waits for it.
    Wanted,
    /// Answer of the loop, until it is taken.
    Offered(Option<LeaseParts>),
    /// Leased. The run ends the lease by closing this.
    Out(Option<PipeWriter>),
    /// Brought back; the loop has to go on.
    Back,
}

/// Terminal and its state, as the loop hands them over.
#[derive(Debug)]
pub(crate) struct LeaseParts {
    pub(crate) tty: File,
    pub(crate) full_screen: bool,
    pub(crate) last_key: Option<Instant>,
    /// Bytes to write first.
    pub(crate) opening: Vec<u8>,
}

impl TerminalLeases {
    pub fn new() -> io::Result<TerminalLeases> {
        let (bell, heard) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        heard.set_nonblocking(true)?;
        let shared = TerminalShared {
            phase: Mutex::default(),
            changed: Condvar::new(),
            bell,
            heard,
            disturbances: AtomicU64::new(0),
            withdrawn: Mutex::default(),
        };
        Ok(TerminalLeases { shared: Arc::new(shared) })
    }

    /// Leases the terminal for one prompt; waits while another one has it. `None` where there is no terminal, where
    /// this job is not in its foreground, or where the run is over.
    pub fn lend(&self) -> Option<Lease> {
        let mut phase = self.phase();
        while !matches!(*phase, Phase::Free) {
            if matches!(*phase, Phase::Shut) {
                return None;
            }
            phase = self.wait(phase);
        }
        *phase = Phase::Wanted;
        self.ring();
        while matches!(*phase, Phase::Wanted) {
            phase = self.wait(phase);
        }
        // Without an offer it was shut meanwhile.
        let Phase::Offered(offer) = &mut *phase else { return None };
        let Some(prop) = offer.take() else {
            *phase = Phase::Free;
            self.shared.changed.notify_all();
            return None;
        };
        let Ok((ended, end)) = io::pipe() else {
            *phase = Phase::Back;
            self.ring();
            return None;
        };
        *phase = Phase::Out(Some(end));
        self.shared.changed.notify_all();
        drop(phase);
        let lease = Lease {
            tty: prop.tty,
            full_screen: prop.full_screen,
            last_key: prop.last_key,
            last_withdrawn: *self.shared.withdrawn.lock().unwrap_or_else(PoisonError::into_inner),
            ended,
            leases: self.clone(),
        };
        // On a terminal that cannot be written to no prompt can be seen or answered.
        (&lease.tty).write_all(&prop.opening).ok().map(|()| lease)
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        // Every change is one assignment: a thread that panicked left nothing half done.
        self.shared.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, phase: MutexGuard<'a, Phase>) -> MutexGuard<'a, Phase> {
        self.shared.changed.wait(phase).unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        // If the socket is full, it is readable already.
        let _ = (&self.shared.bell).write(&[0]);
    }

    /// Offers leases: the loop is running.
    pub(crate) fn open(&self) -> Opened {
        *self.phase() = Phase::Free;
        Opened(self.clone())
    }

    /// Descriptor that the loop polls.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.shared.heard.as_fd()
    }

    pub(crate) fn hush(&self) {
        let mut bytes = [0; 64];
        // An error means that it is empty.
        while (&self.shared.heard).read(&mut bytes).is_ok_and(|n| n > 0) {}
    }

    pub(crate) fn is_wanted(&self) -> bool {
        matches!(*self.phase(), Phase::Wanted)
    }

    pub(crate) fn is_back(&self) -> bool {
        matches!(*self.phase(), Phase::Back)
    }

    /// Answers the thread that waits.
    pub(crate) fn offer(&self, prop: Option<LeaseParts>) {
        let mut phase = self.phase();
        if matches!(*phase, Phase::Wanted) {
            *phase = Phase::Offered(prop);
            self.shared.changed.notify_all();
        }
    }

    pub(crate) fn free(&self) {
        *self.phase() = Phase::Free;
        self.shared.changed.notify_all();
    }

    /// Notes that the terminal looks different, or was used by another job for a while.
    pub(crate) fn disturb(&self) {
        self.shared.disturbances.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends a lease; it comes back when its holder has seen that.
    pub(crate) fn revoke(&self) {
        if let Phase::Out(end) = &mut *self.phase() {
            *end = None;
        }
    }

    /// Ends leasing. A current lease is taken back first, unless its holder does not react in time.
    fn shut(&self) {
        let out = |phase: &mut Phase| matches!(phase, Phase::Offered(Some(_)) | Phase::Out(_));
        let mut phase = self.phase();
        // A lease taken from here on ends at once.
        let deadline = Instant::now() + TAKING_BACK;
        while out(&mut phase) {
            if let Phase::Out(end) = &mut *phase {
                *end = None;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.shared.changed.wait_timeout(phase, left);
            phase = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *phase = Phase::Shut;
        self.shared.changed.notify_all();
    }
}

/// Keeps leases on offer while it lives.
#[derive(Debug)]
pub(crate) struct Opened(TerminalLeases);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.shut();
    }
}

/// Lease of the user's terminal. What was typed before is thrown away.
#[derive(Debug)]
pub struct Lease {
    /// Terminal in raw mode.
    tty: File,
    /// Whether the command draws the whole screen: the prompt has to fit on it, starts at the first line, and goes when
    /// the lease is dropped. Otherwise it begins on a line of its own, and stays.
    pub full_screen: bool,
    /// Time at which the user last typed something for the command. A person who is typing has not seen the prompt yet.
    pub last_key: Option<Instant>,
    /// Time at which a prompt of this run was last withdrawn. A person who was about to answer that one has not seen
    /// yet that this is another.
    pub last_withdrawn: Option<Instant>,
    ended: PipeReader,
    leases: TerminalLeases,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalInput {
    Keys(Vec<u8>),
    /// Timeout: nothing was typed in the given time.
    Nothing,
    /// End of input: the terminal is gone, or this job has lost it.
    Closed,
    /// The run is over: the lease has to be dropped now.
    Ended,
}

impl Lease {
    /// Waits for the next keys.
    pub fn listen(&self, patience: Duration) -> TerminalInput {
        let fds = [Some((self.ended.as_fd(), false)), Some((self.tty.as_fd(), false))];
        let Ok(ready) = wait::poll(&fds, Some(patience)) else { return TerminalInput::Closed };
        if ready[0] {
            return TerminalInput::Ended;
        }
        if !ready[1] {
            return TerminalInput::Nothing;
        }
        let mut bytes = [0; 1024];
        match (&self.tty).read(&mut bytes) {
            Ok(0) => TerminalInput::Closed,
            Ok(n) => TerminalInput::Keys(bytes[..n].to_vec()),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {
                TerminalInput::Nothing
            }
            // In the background, or hung up.
            Err(_) => TerminalInput::Closed,
        }
    }

    /// Writes text as it is: text from the command must be escaped before. The terminal is raw, so a line ends with `\r
    /// `.
    pub fn show(&self, text: &str) -> io::Result<()> {
        (&self.tty).write_all(text.as_bytes())
    }

    /// Size in rows and columns.
    pub fn size(&self) -> (u16, u16) {
        let size = terminal::size(self.tty.as_fd()).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
        size.map_or((24, 80), |size| (size.ws_row, size.ws_col))
    }

    /// Counts up when the prompt has to be drawn again: another window size, or this job was stopped and goes on.
    pub fn disturbances(&self) -> u64 {
        self.leases.shared.disturbances.load(Ordering::Relaxed)
    }

    /// Notes that the prompt was withdrawn now, for the next one.
    pub fn withdrawn(&self) {
        let mut withdrawn = self.leases.shared.withdrawn.lock().unwrap_or_else(PoisonError::into_inner);
        *withdrawn = Some(Instant::now());
    }

    /// Lease of a terminal that no run uses, for trying a backend by itself.
    pub fn of(tty: File, full_screen: bool, last_key: Option<Instant>) -> io::Result<(Lease, PipeWriter)> {
        let (ended, end) = io::pipe()?;
        let leases = TerminalLeases::new()?;
        Ok((Lease { tty, full_screen, last_key, last_withdrawn: None, ended, leases }, end))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut phase = self.leases.phase();
        if matches!(*phase, Phase::Out(_)) {
            *phase = Phase::Back;
            self.leases.shared.changed.notify_all();
            self.leases.ring();
        }
    }
}
