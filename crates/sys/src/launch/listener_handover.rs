//! Transfer of the listener for trapped calls from the confined command to the parent outside.
//!
//! The command cannot send it itself, since the call for that may be trapped with no supervisor to answer yet. It
//! writes the number to a socket that init kept, init takes the descriptor out of the command (`pidfd_getfd`) and
//! passes it on, together with the root and a list of sockets as the command sees them, and lets the command go on to
//! its program.

use std::os::fd::RawFd;

use super::control::{LISTENER, PAIRS, ROOT, SOCKET_LIST, send_words};
use crate::raw::{Errno, check_int, last_errno, socket_pair, sys};

/// Both ends of the socket between init and the command.
#[derive(Clone, Copy)]
pub(super) struct SocketEnds {
    pub(super) init: RawFd,
    pub(super) command: RawFd,
}

pub(super) fn ends() -> Result<SocketEnds, Errno> {
    socket_pair(0).map(|[init, command]| SocketEnds { init, command })
}

/// Command's side, filter in place: sends the listener's number and waits until it was taken.
pub(super) fn offer(end: RawFd, listener: RawFd) -> Result<(), Errno> {
    let mut taken = 0u8;
    // SAFETY: both buffers are valid for their sizes. read and write are never trapped.
    unsafe {
        if libc::write(end, (&raw const listener).cast(), size_of::<RawFd>()) < 0 {
            return Err(last_errno());
        }
        match libc::read(end, (&raw mut taken).cast(), 1) {
            1 => Ok(()),
            0 => Err(libc::ECANCELED),
            _ => Err(last_errno()),
        }
    }
}

/// Init's side; returns the socket for requests of socket pairs. A command that failed before reports that itself.
pub(super) fn take(ends: SocketEnds, command: i32, control: RawFd) -> Result<RawFd, Errno> {
    // SAFETY: closing our copy of the command's end, so that its failure shows as an end of file.
    unsafe { libc::close(ends.command) };
    let mut number: RawFd = -1;
    // SAFETY: the buffer is valid for its size.
    let n = unsafe { libc::read(ends.init, (&raw mut number).cast(), size_of::<RawFd>()) };
    if n <= 0 {
        return Ok(-1);
    }
    let pairs = self::ends()?;
    pass_on(control, ROOT, open_root()?)?;
    pass_on(control, SOCKET_LIST, socket_list()?)?;
    pass_on(control, PAIRS, pairs.command)?;
    pass_on(control, LISTENER, listener_of(command, number)?)?;
    // SAFETY: one byte, valid across the call.
    let told = unsafe { libc::write(ends.init, c"!".as_ptr().cast(), 1) };
    if told == 1 { Ok(pairs.init) } else { Err(last_errno()) }
}

/// Sends a descriptor to the parent, and keeps no copy of it.
pub(super) fn pass_on(control: RawFd, what: i32, fd: RawFd) -> Result<(), Errno> {
    let sent = send_words(control, [what, 0], Some(fd), 0);
    // SAFETY: our own descriptor, just passed on or of no use.
    unsafe { libc::close(fd) };
    sent
}

fn open_root() -> Result<RawFd, Errno> {
    // SAFETY: the path is NUL-terminated.
    check_int(unsafe { libc::open(c"/".as_ptr(), libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC) })
}

fn socket_list() -> Result<RawFd, Errno> {
    // SAFETY: only numbers are passed.
    check_int(unsafe {
        libc::socket(libc::AF_NETLINK, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, libc::NETLINK_SOCK_DIAG)
    })
}

fn listener_of(command: i32, number: RawFd) -> Result<RawFd, Errno> {
    // SAFETY: only numbers are passed; the pid is our own unreaped child, so it cannot have been reused.
    unsafe {
        let pidfd = sys!(libc::SYS_pidfd_open, command, 0)?;
        let listener = sys!(libc::SYS_pidfd_getfd, pidfd, number, 0);
        libc::close(pidfd as RawFd);
        Ok(listener? as RawFd)
    }
}
