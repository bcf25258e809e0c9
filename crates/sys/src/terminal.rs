//! Caller's terminal: settings, size, foreground group.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use crate::raw::done;

pub fn is_terminal(fd: BorrowedFd<'_>) -> bool {
    // SAFETY: only a descriptor is passed.
    unsafe { libc::isatty(fd.as_raw_fd()) == 1 }
}

/// Controlling terminal of the process, if it has one.
pub fn controlling() -> Option<OwnedFd> {
    std::fs::OpenOptions::new().read(true).write(true).open("/dev/tty").ok().map(OwnedFd::from)
}

/// Terminal settings, to be restored later.
#[derive(Clone)]
pub struct TerminalSettings(libc::termios);

impl std::fmt::Debug for TerminalSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Settings")
    }
}

impl TerminalSettings {
    pub fn of(fd: BorrowedFd<'_>) -> io::Result<TerminalSettings> {
        // SAFETY: termios is filled by the call.
        unsafe {
            let mut settings: libc::termios = std::mem::zeroed();
            done(libc::tcgetattr(fd.as_raw_fd(), &raw mut settings))?;
            Ok(TerminalSettings(settings))
        }
    }

    pub fn apply(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: the settings live across the call.
        done(unsafe { libc::tcsetattr(fd.as_raw_fd(), libc::TCSADRAIN, &raw const self.0) })
    }

    /// The same settings with every byte passed through unchanged.
    #[must_use]
    pub fn raw(&self) -> TerminalSettings {
        let mut raw = self.clone();
        // SAFETY: the settings live across the call.
        unsafe { libc::cfmakeraw(&raw mut raw.0) };
        raw
    }

    /// Whether input is given to programs line by line. A program that turned this off reads single keys.
    pub fn by_line(&self) -> bool {
        self.0.c_lflag & libc::ICANON != 0
    }

    pub fn for_pty(&self) -> Box<libc::termios> {
        Box::new(self.0)
    }
}

/// Throws away what was typed and not read yet.
pub fn discard_input(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: only numbers are passed.
    done(unsafe { libc::tcflush(fd.as_raw_fd(), libc::TCIFLUSH) })
}

pub fn size(fd: BorrowedFd<'_>) -> io::Result<libc::winsize> {
    // SAFETY: the struct is filled by the call.
    unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        done(libc::ioctl(fd.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size))?;
        Ok(size)
    }
}

pub fn set_size(fd: BorrowedFd<'_>, size: libc::winsize) -> io::Result<()> {
    // SAFETY: the struct lives across the call.
    done(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) })
}

/// Whether this process's group is the terminal's foreground group.
pub fn in_foreground(fd: BorrowedFd<'_>) -> bool {
    // SAFETY: only a descriptor is passed.
    unsafe { libc::tcgetpgrp(fd.as_raw_fd()) == libc::getpgrp() }
}

/// Makes this process's group the foreground group. The caller blocks SIGTTOU.
pub fn take_foreground(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: only numbers are passed.
    done(unsafe { libc::tcsetpgrp(fd.as_raw_fd(), libc::getpgrp()) })
}
