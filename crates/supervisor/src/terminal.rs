//! How the command is connected to the caller's terminal.
//!
//! With a terminal on both ends the command gets a pty of its own, and the caller's terminal passes bytes through
//! untouched until the end. Otherwise it keeps the caller's descriptors, in a process group of its own, which becomes
//! the foreground group when it wants to read from the terminal.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nono_sys::launch;
use nono_sys::process;
use nono_sys::terminal::{self, Settings};

/// The caller's side.
#[derive(Debug)]
pub(crate) enum Caller {
    /// The command has its own pty; these are the settings to put back.
    Raw { tty: OwnedFd, settings: Settings },
    /// The command shares what there is.
    Shared { tty: Option<OwnedFd> },
}

impl Caller {
    pub(crate) fn new(interactive: bool) -> io::Result<Caller> {
        let (stdin, stdout) = (io::stdin(), io::stdout());
        let both = terminal::is_terminal(stdin.as_fd()) && terminal::is_terminal(stdout.as_fd());
        if both && !interactive && terminal::in_foreground(stdin.as_fd()) {
            let tty = stdin.as_fd().try_clone_to_owned()?;
            let settings = Settings::of(tty.as_fd())?;
            return Ok(Caller::Raw { tty, settings });
        }
        Ok(Caller::Shared { tty: terminal::controlling() })
    }

    /// What the child's plan says.
    pub(crate) fn plan(&self, interactive: bool) -> io::Result<launch::Terminal> {
        Ok(match self {
            Caller::Raw { tty, settings } => {
                launch::Terminal::Pty { settings: settings.for_pty(), size: terminal::size(tty.as_fd())? }
            }
            Caller::Shared { tty } => launch::Terminal::Inherit {
                tty: tty.as_ref().map_or(-1, AsRawFd::as_raw_fd),
                foreground: interactive
                    && tty.as_ref().is_some_and(|tty| terminal::in_foreground(tty.as_fd())),
            },
        })
    }

    /// Begin passing bytes through.
    pub(crate) fn enter(&self) -> io::Result<()> {
        match self {
            Caller::Raw { tty, settings } => settings.raw().apply(tty.as_fd()),
            Caller::Shared { .. } => Ok(()),
        }
    }

    /// Give the terminal back to the caller as it was.
    pub(crate) fn leave(&self) {
        // A terminal that is gone needs nothing back.
        let _ = match self {
            Caller::Raw { tty, settings } => settings.apply(tty.as_fd()),
            Caller::Shared { tty: Some(tty) } => terminal::take_foreground(tty.as_fd()),
            Caller::Shared { tty: None } => Ok(()),
        };
    }

    /// Pass a changed window size on.
    pub(crate) fn resize(&self, master: BorrowedFd<'_>) -> io::Result<()> {
        match self {
            Caller::Raw { tty, .. } => terminal::set_size(master, terminal::size(tty.as_fd())?),
            Caller::Shared { .. } => Ok(()),
        }
    }

    /// The command was stopped. If it only wanted the terminal and we have it, hand it over; else stop with it, as one
    /// job, and go on together.
    pub(crate) fn stopped(&self, signal: i32, control: &launch::Control) -> io::Result<()> {
        if let Caller::Shared { tty: Some(tty) } = self {
            let wants_terminal = signal == libc::SIGTTIN || signal == libc::SIGTTOU;
            if wants_terminal && terminal::in_foreground(tty.as_fd()) {
                control.foreground()?;
                return control.signal(libc::SIGCONT);
            }
        }
        let had_terminal =
            matches!(self, Caller::Shared { tty: Some(tty) } if !terminal::in_foreground(tty.as_fd()));
        self.leave();
        process::stop_job();
        self.enter()?;
        if had_terminal
            && matches!(self, Caller::Shared { tty: Some(tty) } if terminal::in_foreground(tty.as_fd()))
        {
            control.foreground()?;
        }
        control.signal(libc::SIGCONT)
    }
}
