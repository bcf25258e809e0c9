//! Kernel's list of unix sockets (`NETLINK_SOCK_DIAG`): which ones listen, under which name, on which file.
//!
//! A list covers one network namespace: that in which the netlink socket was opened. Files are given as the kernel's
//! own numbers, with the inode cut to 32 bits; a caller that compares them must allow for two files that look the same.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::raw::{check_int, io_error, last_errno};

/// Listening unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    /// Number in `socket:[…]`.
    pub socket: u32,
    /// Name as it was bound; abstract names begin with a NUL.
    pub name: Vec<u8>,
    /// File it made, where it was bound to a path.
    pub file: Option<BoundFile>,
}

/// File as the list gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundFile {
    pub device: u32,
    /// Low half of the inode number.
    pub inode: u32,
}

impl BoundFile {
    pub fn new(device: (u32, u32), inode: u64) -> BoundFile {
        BoundFile { device: device.0 << 20 | device.1, inode: inode as u32 }
    }
}

const BY_FAMILY: u16 = 20;
const DONE: u16 = libc::NLMSG_DONE as u16;
const ERROR: u16 = libc::NLMSG_ERROR as u16;
const HEADER: usize = 16;
const MESSAGE: usize = 16;
const STATE_LISTEN: u32 = 1 << 10;
const SHOW_NAME: u32 = 1;
const SHOW_FILE: u32 = 2;
const ATTRIBUTE_NAME: u16 = 0;
const ATTRIBUTE_FILE: u16 = 1;
const SHOW_PEER: u32 = 4;
const SHOW_QUEUES: u32 = 0x10;
const SHOW_MEMORY: u32 = 0x20;
const ATTRIBUTE_PEER: u16 = 2;
const ATTRIBUTE_QUEUES: u16 = 4;
const ATTRIBUTE_MEMORY: u16 = 5;
/// Index of the bytes sent among the numbers about a socket's memory.
const SENT: usize = 2;
/// Twice the default of `net.core.wmem_max`, which is what the kernel makes of it.
const MOST_SENT: u64 = 2 * 212_992;
/// Size of one part of a list, as the kernel sends it.
const PART: usize = 32 * 1024;

/// Socket that lists those of the calling thread's network namespace.
pub fn open() -> io::Result<OwnedFd> {
    // SAFETY: only numbers are passed; the new descriptor is ours.
    unsafe {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        let fd =
            check_int(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG)).map_err(io_error)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// All listening unix sockets. One caller at a time for one `list`: the answer comes in parts.
pub fn listening(list: BorrowedFd<'_>) -> io::Result<Vec<Listening>> {
    let mut found = Vec::new();
    dump(list, STATE_LISTEN, SHOW_NAME | SHOW_FILE, |message| {
        found.push(parse(message)?);
        Some(())
    })?;
    Ok(found)
}

/// Bytes that wait in unix sockets to be read. One caller at a time for one `list`.
pub fn waiting_memory(list: BorrowedFd<'_>) -> io::Result<u64> {
    let mut total = 0;
    dump(list, u32::MAX, SHOW_PEER | SHOW_QUEUES | SHOW_MEMORY, |message| {
        total += waiting(message)?;
        Some(())
    })?;
    Ok(total)
}

/// Bytes that wait in one socket. What a socket sent counts as its own until it is read. A closed socket is not listed
/// any more: if its peer has anything to read, as much is counted as a socket may ever have sent.
fn waiting(message: &[u8]) -> Option<u64> {
    let (mut peer, mut unread, mut sent) = (0, 0, 0);
    for_each_attribute(message.get(MESSAGE..)?, |kind, value| {
        match kind {
            ATTRIBUTE_PEER => peer = word(value, 0)?,
            ATTRIBUTE_QUEUES => unread = word(value, 0)?,
            ATTRIBUTE_MEMORY => sent = word(value, 4 * SENT)?,
            _ => {}
        }
        Some(())
    })?;
    let orphaned = peer == 0 && unread > 0;
    Some(u64::from(sent) + if orphaned { MOST_SENT } else { 0 })
}

/// Requests all sockets in these states and passes the answer on, one message at a time.
fn dump(
    list: BorrowedFd<'_>,
    states: u32,
    show: u32,
    mut each: impl FnMut(&[u8]) -> Option<()>,
) -> io::Result<()> {
    ask(list, states, show)?;
    let mut part = vec![0u8; PART];
    loop {
        // SAFETY: the buffer is valid for its length. The kernel's answer is there as soon as it was asked.
        let n = unsafe {
            libc::recv(
                list.as_raw_fd(),
                part.as_mut_ptr().cast(),
                part.len(),
                libc::MSG_DONTWAIT | libc::MSG_TRUNC,
            )
        };
        if n < 0 {
            return Err(io_error(last_errno()));
        }
        let n = n.unsigned_abs();
        let answer = part.get(..n).ok_or_else(|| io_error(libc::EMSGSIZE))?;
        if take(answer, &mut each)? {
            return Ok(());
        }
    }
}

fn ask(list: BorrowedFd<'_>, states: u32, show: u32) -> io::Result<()> {
    const LENGTH: usize = HEADER + 24;
    let mut request = [0u8; LENGTH];
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    request[0..4].copy_from_slice(&(LENGTH as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    request[6..8].copy_from_slice(&flags.to_ne_bytes());
    request[16] = libc::AF_UNIX as u8;
    request[20..24].copy_from_slice(&states.to_ne_bytes());
    request[28..32].copy_from_slice(&show.to_ne_bytes());
    // SAFETY: the request is valid for its length; without an address it goes to the kernel.
    let n = unsafe { libc::send(list.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
    if n < 0 { Err(io_error(last_errno())) } else { Ok(()) }
}

/// Parses one part of the answer; `true` when it was the last.
fn take(mut part: &[u8], each: &mut impl FnMut(&[u8]) -> Option<()>) -> io::Result<bool> {
    let malformed = || io_error(libc::EPROTO);
    while !part.is_empty() {
        let length = word(part, 0).ok_or_else(malformed)? as usize;
        let message = part.get(..length).filter(|message| message.len() >= HEADER).ok_or_else(malformed)?;
        match half(message, 4).ok_or_else(malformed)? {
            DONE => return Ok(true),
            ERROR => {
                let errno = word(message, HEADER).ok_or_else(malformed)?.cast_signed().unsigned_abs();
                return Err(io_error(errno.cast_signed()));
            }
            BY_FAMILY => each(&message[HEADER..]).ok_or_else(malformed)?,
            _ => {}
        }
        part = part.get(aligned(length)..).unwrap_or_default();
    }
    Ok(false)
}

fn parse(message: &[u8]) -> Option<Listening> {
    let mut found = Listening { socket: word(message, 4)?, name: Vec::new(), file: None };
    for_each_attribute(message.get(MESSAGE..)?, |kind, value| {
        match kind {
            ATTRIBUTE_NAME => found.name = value.to_vec(),
            ATTRIBUTE_FILE => {
                found.file = Some(BoundFile { inode: word(value, 0)?, device: word(value, 4)? });
            }
            _ => {}
        }
        Some(())
    })?;
    Some(found)
}

fn for_each_attribute(mut attributes: &[u8], mut each: impl FnMut(u16, &[u8]) -> Option<()>) -> Option<()> {
    while !attributes.is_empty() {
        let length = usize::from(half(attributes, 0)?);
        each(half(attributes, 2)?, attributes.get(4..length)?)?;
        attributes = attributes.get(aligned(length)..).unwrap_or_default();
    }
    Some(())
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    #[test]
    fn a_listener_is_listed_with_its_file() {
        let dir = std::env::temp_dir().join(format!("nono-diag-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let path = dir.join("listener");
        let _door = UnixListener::bind(&path).unwrap();
        let pinned = crate::fs::open_path(&path.canonicalize().unwrap()).unwrap();
        let identity = crate::other_process::identity(pinned.as_fd()).unwrap();
        let device =
            crate::other_process::device_of_mount(std::process::id(), identity.mount).unwrap().unwrap();
        let file = BoundFile::new(device, identity.inode);
        let list = open().unwrap();
        let matching = || -> Vec<Listening> {
            let all = listening(list.as_fd()).unwrap();
            all.into_iter().filter(|socket| socket.file == Some(file)).collect()
        };
        let found = matching();
        assert_eq!(found.len(), 1);
        assert!(found[0].name.starts_with(path.as_os_str().as_encoded_bytes()));
        assert!(crate::other_process::holds_socket(&[std::process::id() as i32], found[0].socket));
        assert!(!crate::other_process::holds_socket(&[std::process::id() as i32], u32::MAX));
        // The name belongs to another socket by now; the file the first one was bound to does not.
        std::fs::remove_file(&path).unwrap();
        let other = UnixListener::bind(&path).unwrap();
        assert_eq!(matching(), found);
        drop(other);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    /// Waits for what is so when all copies of a socket are closed: other tests fork, and a forked process has a copy
    /// until it executes a program or ends.
    fn eventually(is_so: impl Fn() -> bool) {
        let start = std::time::Instant::now();
        while !is_so() {
            assert!(start.elapsed().as_secs() < 60, "not in time");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    #[test]
    fn many_and_abstract_ones_are_listed() {
        let name = |i| format!("nono-diag-{}-{i}", std::process::id());
        let doors: Vec<_> = (0..1500)
            .map(|i| UnixListener::bind_addr(&SocketAddr::from_abstract_name(name(i)).unwrap()).unwrap())
            .collect();
        let list = open().unwrap();
        let all = listening(list.as_fd()).unwrap();
        for i in 0..doors.len() {
            let bound = [b"\0", name(i).as_bytes()].concat();
            assert!(all.iter().any(|socket| socket.name == bound && socket.file.is_none()), "{i}");
        }
        drop(doors);
        eventually(|| {
            let left = listening(list.as_fd()).unwrap();
            !left.iter().any(|socket| socket.name == [b"\0", name(0).as_bytes()].concat())
        });
    }

    #[test]
    fn bytes_waiting_in_sockets_are_counted() {
        use std::io::Write;
        use std::os::unix::net::UnixStream;
        let list = open().unwrap();
        let before = waiting_memory(list.as_fd()).unwrap();
        let pairs: Vec<_> = (0..64).map(|_| UnixStream::pair().unwrap()).collect();
        for (sender, _) in &pairs {
            sender.set_nonblocking(true).unwrap();
            while (&*sender).write(&[0; 4096]).is_ok() {}
        }
        let full = waiting_memory(list.as_fd()).unwrap();
        assert!(full > before + 64 * 100_000, "{before} {full}");
        let receivers: Vec<_> = pairs.into_iter().map(|(_, receiver)| receiver).collect();
        let orphaned = waiting_memory(list.as_fd()).unwrap();
        assert!(orphaned > before + 64 * 100_000, "{before} {orphaned}");
        drop(receivers);
        eventually(|| waiting_memory(list.as_fd()).unwrap() < before + 64 * 100_000);
    }

    #[test]
    fn broken_answers_are_errors() {
        for part in [&[1u8, 0, 0, 0][..], &[0; 8], &[200, 0, 0, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]] {
            assert!(take(part, &mut |_: &[u8]| Some(())).is_err(), "{part:?}");
        }
    }
}
