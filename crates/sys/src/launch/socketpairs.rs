//! Socket pairs, made by init in the command's network namespace when the parent asks for one.
//!
//! A pair belongs to the namespace of the process that makes it: made by the parent, its ends could be bound to names
//! of the host's network and asked about the host's interfaces.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use super::control::{receive_order, receive_words, send_words};
use crate::raw::{Errno, last_errno, socket_pair};

/// Source of socket pairs.
#[derive(Debug)]
pub struct Pairs(OwnedFd);

impl Pairs {
    pub(super) fn new(fd: OwnedFd) -> Pairs {
        Pairs(fd)
    }

    /// Makes a pair of connected sockets that keep message boundaries and reach only each other. One caller at a time.
    pub fn make(&self, nonblocking: bool) -> Result<(OwnedFd, OwnedFd), Errno> {
        let order = u8::from(nonblocking);
        // SAFETY: one byte, valid across the call.
        let sent =
            unsafe { libc::send(self.0.as_raw_fd(), (&raw const order).cast(), 1, libc::MSG_NOSIGNAL) };
        if sent != 1 {
            return Err(last_errno());
        }
        Ok((self.receive()?, self.receive()?))
    }

    fn receive(&self) -> Result<OwnedFd, Errno> {
        match receive_words(self.0.as_raw_fd())? {
            Some((_, Some(fd))) => Ok(fd),
            Some(([errno, _], None)) => Err(errno),
            None => Err(libc::ECONNRESET),
        }
    }
}

/// Init's side: one request, and its answer.
pub(super) fn serve(end: RawFd) {
    let Ok(Some(nonblocking)) = receive_order(end) else { return };
    // A parent that is gone needs no answer.
    let _ = match socket_pair(if nonblocking == 0 { 0 } else { libc::SOCK_NONBLOCK }) {
        Err(errno) => send_words(end, [errno, 0], None, 0),
        Ok(pair) => {
            let sent = pair.map(|fd| send_words(end, [0, 0], Some(fd), 0));
            // SAFETY: our own descriptors, just passed on or of no use.
            unsafe {
                libc::close(pair[0]);
                libc::close(pair[1]);
            }
            sent[0].and(sent[1])
        }
    };
}
