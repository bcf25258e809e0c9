//! Listening socket in a private directory.
//!
//! A socket's path holds 107 bytes and a state directory may be deeper, so the socket is bound and reached through the
//! directory's descriptor.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, chmodat, openat, statat, unlinkat};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    shutdown, socket_with,
};

/// Socket for the command, in the session directory.
pub const REQUEST_SOCKET: &str = "request.sock";

/// Socket for `nono ps`, `inspect` and `stop`.
pub const CONTROL_SOCKET: &str = "control.sock";

/// Number of connections that may wait to be accepted.
const BACKLOG: i32 = 128;

/// Bound, listening socket; its name is removed when it is dropped.
#[derive(Debug)]
pub struct Listening {
    socket: OwnedFd,
    dir: OwnedFd,
    name: &'static str,
    /// Device and inode, which identify it whatever path led there.
    pub(super) identity: (u64, u64),
}

impl Listening {
    /// Listens in `dir`, which no other user can enter.
    pub fn bind(dir: &Path, name: &'static str) -> io::Result<Listening> {
        let dir = open_dir(dir)?;
        let socket = new_socket(SocketFlags::NONBLOCK)?;
        bind(&socket, &address(dir.as_fd(), name)?)?;
        chmodat(&dir, name, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
        listen(&socket, BACKLOG)?;
        let stat = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(Listening { socket, dir, name, identity: (stat.st_dev, stat.st_ino) })
    }

    pub(super) fn accept(&self) -> io::Result<Option<OwnedFd>> {
        match accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(connection) => Ok(Some(connection)),
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Connects a socket of another process to this one.
    pub(super) fn connect(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        Ok(connect(socket, &address(self.dir.as_fd(), self.name)?)?)
    }
}

impl Listening {
    /// Stops listening; connections that wait in the queue are refused.
    pub(super) fn close(&self) {
        // A listening socket can be shut down; its name goes with its directory at the latest.
        let _ = shutdown(&self.socket, Shutdown::Both);
        let _ = unlinkat(&self.dir, self.name, AtFlags::empty());
    }
}

impl AsFd for Listening {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.close();
    }
}

fn open_dir(dir: &Path) -> io::Result<OwnedFd> {
    Ok(openat(CWD, dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

fn new_socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC | flags, None)?)
}

fn address(dir: BorrowedFd<'_>, name: &str) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", dir.as_raw_fd()))?)
}

/// Socket connected to the one at `path`. It does not wait: a channel whose queue is full counts as not answering.
pub(super) fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    let socket = new_socket(SocketFlags::NONBLOCK)?;
    match SocketAddrUnix::new(path) {
        Ok(address) => connect(&socket, &address)?,
        Err(Errno::NAMETOOLONG) => {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(Errno::NAMETOOLONG.into());
            };
            let dir = open_dir(parent)?;
            let short = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd())).join(name);
            connect(&socket, &SocketAddrUnix::new(short)?)?;
        }
        Err(errno) => return Err(errno.into()),
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn a_deep_folder_is_no_hindrance_and_the_name_goes_with_the_value() {
        let temp = tempfile::tempdir().unwrap();
        let deep = temp.path().join("d".repeat(120)).join("e".repeat(120));
        std::fs::create_dir_all(&deep).unwrap();
        let path = deep.join(CONTROL_SOCKET);
        let listening = Listening::bind(&deep, CONTROL_SOCKET).unwrap();
        let meta = path.symlink_metadata().unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
        assert_eq!(listening.identity, (meta.dev(), meta.ino()));
        assert!(listening.accept().unwrap().is_none());
        let _client = connect_to(&path).unwrap();
        assert!(listening.accept().unwrap().is_some());
        assert_eq!(Listening::bind(&deep, CONTROL_SOCKET).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(listening);
        assert!(path.symlink_metadata().is_err());
        assert_eq!(connect_to(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
