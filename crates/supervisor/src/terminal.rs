//! Connection of the command to the caller's terminal.
//!
//! With a terminal on both ends the command gets a pty of its own, and the caller's terminal passes bytes through
//! unchanged until the end. Otherwise it keeps the caller's descriptors, in a process group of its own, which becomes
//! the foreground group when it wants to read from the terminal. Where prompts may be shown, the command never has the
//! caller's terminal: it gets a pty in place of each descriptor that is one, or no terminal at all.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nono_sys::launch;
use nono_sys::process;
use nono_sys::terminal::{self, TerminalSettings};

use crate::options::Options;

/// Caller's side of the terminal.
#[derive(Debug)]
pub(crate) enum Caller {
    /// The command has its own pty; these are the settings to restore. `raw`: the bytes pass through now, which they do
    /// only while this job has the terminal. `reads`: what is typed is for the command; if not from the start, then
    /// once it wants to read from its terminal.
    Raw { tty: OwnedFd, settings: TerminalSettings, raw: Cell<bool>, reads: Cell<bool> },
    /// The command shares the caller's terminal. `lent`: its group has the terminal, and it is taken back later.
    Shared { tty: Option<OwnedFd>, lent: Cell<bool> },
    /// The command has no terminal.
    None,
}

impl Caller {
    pub(crate) fn of(options: &Options) -> io::Result<Caller> {
        match (&options.streams, &options.asking) {
            (Some(_), _) => Ok(Caller::None),
            (None, Some(_)) => Caller::asking(),
            (None, None) => Caller::new(options.interactive),
        }
    }

    /// Terminal for a run with prompts. Without a terminal to prompt on there is none to keep from the command.
    fn asking() -> io::Result<Caller> {
        let Some(tty) = terminal::controlling() else { return Caller::new(false) };
        let streams = [0, 1, 2].map(is_terminal);
        if !streams.contains(&true) {
            return Ok(Caller::None);
        }
        let settings = TerminalSettings::of(tty.as_fd())?;
        // In a pipeline the keys may be for another program, such as a pager.
        let reads = streams[0] && streams[1];
        Ok(Caller::Raw { tty, settings, raw: Cell::new(false), reads: Cell::new(reads) })
    }

    fn new(interactive: bool) -> io::Result<Caller> {
        let (stdin, stdout) = (io::stdin(), io::stdout());
        let both = terminal::is_terminal(stdin.as_fd()) && terminal::is_terminal(stdout.as_fd());
        if both && !interactive && terminal::in_foreground(stdin.as_fd()) {
            let tty = stdin.as_fd().try_clone_to_owned()?;
            let settings = TerminalSettings::of(tty.as_fd())?;
            return Ok(Caller::Raw { tty, settings, raw: Cell::new(false), reads: Cell::new(true) });
        }
        let tty = terminal::controlling();
        let lend =
            both && interactive && tty.as_ref().is_some_and(|tty| terminal::in_foreground(tty.as_fd()));
        Ok(Caller::Shared { tty, lent: Cell::new(lend) })
    }

    pub(crate) fn plan(&self) -> io::Result<launch::Terminal> {
        Ok(match self {
            Caller::Raw { tty, settings, reads, .. } => launch::Terminal::Pty {
                settings: settings.for_pty(),
                size: terminal::size(tty.as_fd())?,
                foreground: reads.get(),
            },
            Caller::None => launch::Terminal::Detached,
            Caller::Shared { tty, lent } => launch::Terminal::Inherit {
                tty: tty.as_ref().map_or(-1, AsRawFd::as_raw_fd),
                foreground: lent.get(),
            },
        })
    }

    /// Begins passing bytes through, if this job has the terminal; a background job leaves it alone.
    pub(crate) fn enter(&self) -> io::Result<()> {
        if let Caller::Raw { tty, settings, raw, reads } = self {
            raw.set(reads.get() && terminal::in_foreground(tty.as_fd()));
            if raw.get() {
                settings.raw().apply(tty.as_fd())?;
            }
        }
        Ok(())
    }

    /// Restores the terminal as the caller had it.
    pub(crate) fn leave(&self) {
        // A terminal that is gone needs nothing back.
        let _ = match self {
            Caller::Raw { tty, settings, raw, .. } if raw.replace(false) => settings.apply(tty.as_fd()),
            Caller::Shared { tty: Some(tty), lent } if lent.replace(false) => {
                terminal::take_foreground(tty.as_fd())
            }
            _ => Ok(()),
        };
    }

    /// Whether what the user types is for the command.
    pub(crate) fn listens(&self) -> bool {
        matches!(self, Caller::Raw { tty, raw, .. } if raw.get() && terminal::in_foreground(tty.as_fd()))
    }

    /// Takes a lent terminal back; returns whether it was lent. The command asks again when it needs it.
    pub(crate) fn take_back(&self) -> bool {
        let was_lent = self.has_lent();
        self.leave();
        was_lent
    }

    /// Restores the terminal after the command's end, while `signals` blocks SIGTTOU (taking it back is a background
    /// group's call) and SIGTTIN: a pager that began to read as the command ended stopped the whole job, and has the
    /// terminal now.
    pub(crate) fn end(&self, signals: &process::Signals) {
        if self.take_back() && signals.take(libc::SIGTTIN) {
            process::continue_job();
        }
    }

    /// Whether the command has a pty while this job is in the background: there is no signal when that changes.
    pub(crate) fn waits_for_foreground(&self) -> bool {
        matches!(self, Caller::Raw { raw, reads, .. } if reads.get() && !raw.get())
    }

    /// Passes a changed window size on.
    pub(crate) fn resize(&self, master: BorrowedFd<'_>) -> io::Result<()> {
        match self {
            Caller::Raw { tty, .. } => terminal::set_size(master, terminal::size(tty.as_fd())?),
            Caller::Shared { .. } | Caller::None => Ok(()),
        }
    }

    /// Handles a stop of the command. If it only wanted the terminal and this job has it, hands it over; else stops
    /// with it, as one job, and goes on together. `false`: only the command stays stopped.
    ///
    /// Only a job of a terminal is stopped: elsewhere no user would see and continue it. What the terminal sends is for
    /// the whole job, other parts of a pipeline included, unless the parent of this process is in the same group: a
    /// command must not stop a script that runs it.
    pub(crate) fn stopped(&self, signal: i32, control: &launch::Control) -> io::Result<bool> {
        let wants_terminal = signal == libc::SIGTTIN || signal == libc::SIGTTOU;
        if wants_terminal && self.lend(control)? {
            return control.signal(libc::SIGCONT).map(|()| true);
        }
        if !self.is_job(wants_terminal) {
            return Ok(false);
        }
        let had_terminal = self.take_back();
        control.pause_all()?;
        process::stop(signal != libc::SIGSTOP && process::has_own_job());
        self.enter()?;
        if had_terminal {
            self.lend(control)?;
        }
        control.signal(libc::SIGCONT).map(|()| true)
    }

    /// Whether this is the job in the foreground of a terminal, or one in its background that has to wait for it.
    fn is_job(&self, wants_terminal: bool) -> bool {
        match self {
            Caller::Raw { tty, .. } | Caller::Shared { tty: Some(tty), .. } => {
                wants_terminal || self.has_lent() || terminal::in_foreground(tty.as_fd())
            }
            Caller::Shared { tty: None, .. } | Caller::None => false,
        }
    }

    fn has_lent(&self) -> bool {
        matches!(self, Caller::Shared { lent, .. } if lent.get())
    }

    /// Hands a shared terminal to the command, or lets it read from its own, if this job has the user's terminal.
    fn lend(&self, control: &launch::Control) -> io::Result<bool> {
        let (tty, lent) = match self {
            Caller::Shared { tty: Some(tty), lent } => (tty, lent),
            Caller::Raw { tty, reads, .. } if !reads.get() => (tty, reads),
            _ => return Ok(false),
        };
        let ours = terminal::in_foreground(tty.as_fd());
        if ours {
            control.foreground()?;
            lent.set(true);
            self.enter()?;
        }
        Ok(ours)
    }

    /// Ends of the command's own terminal: where input comes from, and where output goes.
    pub(crate) fn ends(&self) -> io::Result<(OwnedFd, OwnedFd)> {
        let (stdin, stdout) = (io::stdin(), io::stdout());
        let tty = if let Caller::Raw { tty, .. } = self { tty.as_fd() } else { stdin.as_fd() };
        let seen = if is_terminal(1) { stdout.as_fd() } else { tty };
        Ok((tty.try_clone_to_owned()?, seen.try_clone_to_owned()?))
    }
}

/// Whether a standard stream of this process is a terminal.
pub(crate) fn is_terminal(stream: i32) -> bool {
    match stream {
        0 => terminal::is_terminal(io::stdin().as_fd()),
        1 => terminal::is_terminal(io::stdout().as_fd()),
        _ => terminal::is_terminal(io::stderr().as_fd()),
    }
}
