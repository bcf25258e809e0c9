//! Socket between the parent and init: one-byte orders in, small notices out, at most one descriptor with each.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::raw::{Errno, io_error, last_errno};

/// Orders from the parent are one byte: a signal number for the command's process group, or one of these.
pub(super) const GO: u8 = 200;
pub(super) const END_ALL: u8 = 201;
pub(super) const FOREGROUND: u8 = 202;
pub(super) const KILL_ALL: u8 = 203;
pub(super) const PAUSE_ALL: u8 = 204;
pub(super) const MEASURE: u8 = 205;

/// Notice from init to the parent.
#[derive(Debug)]
pub enum Notice {
    /// Master of the command's own terminal.
    Terminal(OwnedFd),
    /// Root directory as the command sees it.
    Root(OwnedFd),
    /// Netlink socket of the command's network namespace that lists its sockets.
    SocketList(OwnedFd),
    /// Socket on which init makes socket pairs in the command's network namespace.
    Pairs(OwnedFd),
    /// Listener for the command's trapped calls.
    Listener(OwnedFd),
    /// TCP socket that listens in the command's network: [`super::LaunchPlan::serve`].
    Serving(OwnedFd),
    /// The command was stopped by this signal.
    Stopped(i32),
    Continued,
    /// Pages of memory that belong to no process: [`Control::measure`].
    Counted(i32),
    /// The time limit was reached ([`super::LaunchPlan::time_ms`]); everything is being ended.
    TimeOver,
    /// The command ended with this wait status; its remaining processes are being ended.
    Ended(i32),
}

pub(super) const TERMINAL: i32 = 1;
pub(super) const STOPPED: i32 = 2;
pub(super) const CONTINUED: i32 = 3;
pub(super) const ENDED: i32 = 4;
pub(super) const ROOT: i32 = 5;
pub(super) const SOCKET_LIST: i32 = 6;
pub(super) const LISTENER: i32 = 7;
pub(super) const SERVING: i32 = 8;
pub(super) const PAIRS: i32 = 9;
pub(super) const TIME_OVER: i32 = 10;
pub(super) const COUNTED: i32 = 11;

/// Parent's end of the control socket.
#[derive(Debug)]
pub struct Control(OwnedFd);

impl Control {
    pub(super) fn new(fd: OwnedFd) -> Control {
        Control(fd)
    }

    pub(super) fn send(&self, order: u8) -> io::Result<()> {
        self.send_with(order, 0)
    }

    fn send_with(&self, order: u8, flags: libc::c_int) -> io::Result<()> {
        let flags = flags | libc::MSG_NOSIGNAL;
        // SAFETY: one byte, valid across the call. MSG_NOSIGNAL: a gone init is an error here, not a SIGPIPE.
        let n = unsafe { libc::send(self.0.as_raw_fd(), (&raw const order).cast(), 1, flags) };
        if n == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Delivers `signal` to the command's process group.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        let order = u8::try_from(signal).ok().filter(|s| (1..=64).contains(s));
        self.send(order.ok_or_else(|| io_error(libc::EINVAL))?)
    }

    /// Ends the command and everything it started: TERM, grace period, KILL.
    pub fn end_all(&self) -> io::Result<()> {
        self.send(END_ALL)
    }

    /// Kills everything at once.
    pub fn kill_all(&self) -> io::Result<()> {
        self.send(KILL_ALL)
    }

    /// Stops everything the command started, not only the command: nothing may run on while the supervisor is stopped.
    pub fn pause_all(&self) -> io::Result<()> {
        self.send(PAUSE_ALL)
    }

    /// Asks for a count of memory that belongs to no process, see [`Notice::Counted`]; returns whether init was asked.
    pub fn measure(&self) -> io::Result<bool> {
        // Not waiting for an init that does not read.
        let sent = self.send_with(MEASURE, libc::MSG_DONTWAIT);
        let refused = [libc::EAGAIN, libc::EPIPE, libc::ECONNRESET].map(Some);
        match sent {
            Err(error) if refused.contains(&error.raw_os_error()) => Ok(false),
            sent => sent.map(|()| true),
        }
    }

    /// Makes the command's process group the terminal's foreground group again (after a stop).
    pub fn foreground(&self) -> io::Result<()> {
        self.send(FOREGROUND)
    }

    /// Next notice; `None` when init is gone. Call it when the socket is readable.
    pub fn receive(&self) -> io::Result<Option<Notice>> {
        let received = match receive_words(self.0.as_raw_fd()) {
            // Init ended with an order unread. That error is reported once, and before its last notices.
            Err(libc::ECONNRESET) => receive_words(self.0.as_raw_fd()),
            received => received,
        };
        let (words, fd) = match received {
            Ok(Some(message)) => message,
            Ok(None) | Err(libc::ECONNRESET) => return Ok(None),
            Err(errno) => return Err(io_error(errno)),
        };
        Ok(Some(match (words[0], fd) {
            (TERMINAL, Some(fd)) => Notice::Terminal(fd),
            (ROOT, Some(fd)) => Notice::Root(fd),
            (SOCKET_LIST, Some(fd)) => Notice::SocketList(fd),
            (PAIRS, Some(fd)) => Notice::Pairs(fd),
            (LISTENER, Some(fd)) => Notice::Listener(fd),
            (SERVING, Some(fd)) => Notice::Serving(fd),
            (STOPPED, _) => Notice::Stopped(words[1]),
            (CONTINUED, _) => Notice::Continued,
            (TIME_OVER, _) => Notice::TimeOver,
            (COUNTED, _) => Notice::Counted(words[1]),
            (ENDED, _) => Notice::Ended(words[1]),
            _ => return Err(io_error(libc::EPROTO)),
        }))
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub(super) fn receive_order(fd: RawFd) -> Result<Option<u8>, Errno> {
    let mut order = 0u8;
    // SAFETY: one byte, valid across the call.
    match unsafe { libc::recv(fd, (&raw mut order).cast(), 1, 0) } {
        0 => Ok(None),
        1 => Ok(Some(order)),
        _ => Err(last_errno()),
    }
}

/// Room for one descriptor in a control message, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Ancillary([u8; 32]);

pub(super) fn send_words(fd: RawFd, words: [i32; 2], pass: Option<RawFd>, flags: i32) -> Result<(), Errno> {
    let mut ancillary = Ancillary([0; 32]);
    let mut iov = libc::iovec { iov_base: words.as_ptr().cast_mut().cast(), iov_len: size_of_val(&words) };
    // SAFETY: every pointer in msg is valid across the call; the control buffer holds exactly one descriptor.
    unsafe {
        let mut msg: libc::msghdr = std::mem::zeroed();
        msg.msg_iov = &raw mut iov;
        msg.msg_iovlen = 1;
        if let Some(passed) = pass {
            msg.msg_control = ancillary.0.as_mut_ptr().cast();
            msg.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
            let header = libc::CMSG_FIRSTHDR(&raw const msg);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
            libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(passed);
        }
        if libc::sendmsg(fd, &raw const msg, libc::MSG_NOSIGNAL | flags) < 0 {
            Err(last_errno())
        } else {
            Ok(())
        }
    }
}

pub(super) type Received = Option<([i32; 2], Option<OwnedFd>)>;

pub(super) fn receive_words(fd: RawFd) -> Result<Received, Errno> {
    let mut words = [0i32; 2];
    let mut ancillary = Ancillary([0; 32]);
    let mut iov = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of_val(&words) };
    // SAFETY: every pointer in msg is valid across the call; a received descriptor is ours.
    unsafe {
        let mut msg: libc::msghdr = std::mem::zeroed();
        msg.msg_iov = &raw mut iov;
        msg.msg_iovlen = 1;
        msg.msg_control = ancillary.0.as_mut_ptr().cast();
        msg.msg_controllen = ancillary.0.len() as _;
        let n = libc::recvmsg(fd, &raw mut msg, libc::MSG_CMSG_CLOEXEC);
        if n < 0 {
            return Err(last_errno());
        }
        if n == 0 {
            return Ok(None);
        }
        let header = libc::CMSG_FIRSTHDR(&raw const msg);
        let passed = (!header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS)
            .then(|| OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned()));
        Ok(Some((words, passed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Init ends with an order unread where two came at once: HUP, which ended the command, and CONT. Without its last
    /// notice the command would be taken for killed.
    #[test]
    fn the_last_notice_of_an_init_that_ended_with_an_order_unread_is_received() {
        let (own, init) = crate::launch::socket_pair().unwrap();
        let control = Control::new(own);
        control.signal(libc::SIGCONT).unwrap();
        send_words(init.as_raw_fd(), [ENDED, libc::SIGHUP], None, 0).unwrap();
        drop(init);
        let notice = control.receive().unwrap();
        assert!(matches!(notice, Some(Notice::Ended(libc::SIGHUP))), "{notice:?}");
        assert!(control.receive().unwrap().is_none());
    }
}
