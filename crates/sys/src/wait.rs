//! Waiting for descriptors, timers and processes.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use crate::raw::last_errno;

/// Polls `(fd, wants_write)` entries, but no `None`; returns which became ready or hung up: none after a timeout.
pub fn poll(fds: &[Option<(BorrowedFd<'_>, bool)>], timeout: Option<Duration>) -> io::Result<Vec<bool>> {
    let mut polls: Vec<libc::pollfd> = fds
        .iter()
        .map(|entry| {
            let (fd, write) = entry.map_or((-1, false), |(fd, write)| (fd.as_raw_fd(), write));
            let events = if write { libc::POLLOUT } else { libc::POLLIN };
            libc::pollfd { fd, events, revents: 0 }
        })
        .collect();
    // Rounded up, so that a timer does not spin in its last millisecond.
    let millis = timeout.map_or(-1, |t| i32::try_from(t.as_micros().div_ceil(1000)).unwrap_or(i32::MAX));
    // SAFETY: polls lives across the call.
    let result = unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, millis) };
    if result < 0 && last_errno() != libc::EINTR {
        return Err(io::Error::last_os_error());
    }
    Ok(polls.iter().map(|p| p.revents != 0).collect())
}

/// Waits for a child by pidfd; its wait status does not matter (init reports the command's).
pub fn reap(pidfd: BorrowedFd<'_>) -> io::Result<()> {
    loop {
        // SAFETY: info is filled by the call.
        let result = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            // Also one that sends no SIGCHLD.
            let options = libc::WEXITED | libc::__WALL;
            libc::waitid(libc::P_PIDFD, pidfd.as_raw_fd().unsigned_abs(), &raw mut info, options)
        };
        if result == 0 {
            return Ok(());
        }
        if last_errno() != libc::EINTR {
            return Err(io::Error::last_os_error());
        }
    }
}

/// Decoded end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Code(i32),
    Signal(i32),
}

impl Ended {
    /// Exit code as a shell reports it.
    pub fn exit_code(self) -> i32 {
        match self {
            Ended::Code(code) => code,
            Ended::Signal(signal) => 128 + signal,
        }
    }
}

/// Decodes a wait status of an ended process.
pub fn decode(status: i32) -> Ended {
    if libc::WIFSIGNALED(status) {
        Ended::Signal(libc::WTERMSIG(status))
    } else {
        Ended::Code(libc::WEXITSTATUS(status))
    }
}

/// Name of a signal, as `kill -l` has it with SIG in front.
pub fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGTERM => "SIGTERM",
        libc::SIGSYS => "SIGSYS",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}
