//! Peer of a unix socket, as far as rustix does not provide it, and a descriptor at a given number.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use crate::raw::{done, io_error, socket_option};

/// Process that connected. The pid is 0 for one that this pid namespace does not see, which rustix's type cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pub pid: u32,
    pub uid: u32,
}

/// Process that made the connection, as it was then.
pub fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let nobody = libc::ucred { pid: 0, uid: 0, gid: 0 };
    // SAFETY: the kernel fills this struct for this option.
    let found = unsafe { socket_option(socket.as_raw_fd(), libc::SO_PEERCRED, nobody) };
    let found = found.map_err(io_error)?;
    Ok(Peer { pid: u32::try_from(found.pid).unwrap_or(0), uid: found.uid })
}

/// Handle on that process, valid even when the pid is reused. `None`: the kernel is older than 6.5, or it is gone.
pub fn peer_pidfd(socket: BorrowedFd<'_>) -> io::Result<Option<OwnedFd>> {
    // SAFETY: the kernel fills in a descriptor for this option.
    match unsafe { socket_option::<RawFd>(socket.as_raw_fd(), libc::SO_PEERPIDFD, -1) } {
        // SAFETY: the kernel made this descriptor for us; it has no other owner.
        Ok(found) => Ok(Some(unsafe { OwnedFd::from_raw_fd(found) })),
        Err(libc::ENOPROTOOPT | libc::ESRCH | libc::ENODATA | libc::EINVAL) => Ok(None),
        Err(errno) => Err(io_error(errno)),
    }
}

/// Keeps `fd` open under `number` for the program that replaces this one. What was open under that number is closed.
pub fn hand_down(fd: OwnedFd, number: RawFd) -> io::Result<()> {
    let own = fd.as_raw_fd();
    if own == number {
        // SAFETY: only numbers; the descriptor is ours.
        done(unsafe { libc::fcntl(own, libc::F_SETFD, 0) })?;
        std::mem::forget(fd);
        return Ok(());
    }
    // SAFETY: only numbers. The documentation says that what was open under `number` is closed.
    done(unsafe { libc::dup2(own, number) })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn the_other_end_of_a_pair_is_this_process() {
        let (one, _other) = UnixStream::pair().unwrap();
        let found = peer(one.as_fd()).unwrap();
        assert_eq!(found, Peer { pid: std::process::id(), uid: crate::process::uid() });
        if let Some(pidfd) = peer_pidfd(one.as_fd()).unwrap() {
            let ready = crate::wait::poll(&[Some((pidfd.as_fd(), false))], Some(std::time::Duration::ZERO));
            assert_eq!(ready.unwrap(), [false], "it lives");
        }
    }

    #[test]
    fn what_is_no_socket_has_no_peer() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(peer(file.as_fd()).unwrap_err().raw_os_error(), Some(libc::ENOTSOCK));
        assert_eq!(peer_pidfd(file.as_fd()).unwrap_err().raw_os_error(), Some(libc::ENOTSOCK));
    }
}
