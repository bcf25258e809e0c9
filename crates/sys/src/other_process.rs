//! Access to another process: its descriptors, its working directory, its name.
//!
//! A thread that waits in a trapped call cannot move, but others of its process can: they may exchange a descriptor or
//! a directory at any moment. So a descriptor is taken once, and every later check uses what was taken. Thread ids are
//! reused; the caller checks afterwards that the call still waits.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;

use crate::raw::{Errno, check_int, last_errno, socket_option, sys};

/// Flag `PIDFD_THREAD`: one thread, which may have descriptors of its own (6.9).
const PIDFD_THREAD: libc::c_int = libc::O_EXCL;

/// Duplicates descriptor `number` of thread `tid`: the same open file.
pub fn take_descriptor(tid: u32, number: RawFd) -> Result<OwnedFd, Errno> {
    let owner = open_thread(tid)?;
    // SAFETY: only numbers are passed.
    let taken = unsafe { sys!(libc::SYS_pidfd_getfd, owner.as_raw_fd(), number, 0) }?;
    Ok(own(taken))
}

fn open_thread(tid: u32) -> Result<OwnedFd, Errno> {
    // SAFETY: only numbers are passed.
    match unsafe { sys!(libc::SYS_pidfd_open, tid, PIDFD_THREAD) } {
        // An older kernel knows only processes. A thread with a table of its own is then judged by its process's
        // descriptors, that is, by another socket of the same sandbox.
        Err(libc::EINVAL) => {
            let process = process_of(tid).ok_or(libc::ESRCH)?;
            // SAFETY: only numbers are passed.
            unsafe { sys!(libc::SYS_pidfd_open, process, 0) }.map(own)
        }
        opened => opened.map(own),
    }
}

fn own(fd: isize) -> OwnedFd {
    // SAFETY: the kernel just made it; it has no other owner.
    unsafe { OwnedFd::from_raw_fd(fd as RawFd) }
}

/// Process that a thread belongs to.
pub fn process_of(tid: u32) -> Option<u32> {
    status_line(tid, "Tgid:")?.parse().ok()
}

/// Umask of a thread.
pub fn umask_of(tid: u32) -> Option<u32> {
    u32::from_str_radix(&status_line(tid, "Umask:")?, 8).ok()
}

pub(crate) fn status_line(tid: impl std::fmt::Display, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}

/// Working directory of a thread, as it would name it itself.
pub fn working_directory(tid: u32) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/{tid}/cwd"))
}

/// File that a thread executes, as it would name it itself.
pub fn program(tid: u32) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/{tid}/exe"))
}

/// File behind one of this process's descriptors, in the kernel's own numbers: layered file systems' `stat` differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub mount: u64,
    pub inode: u64,
}

/// Identity of the file behind one of this process's own descriptors.
pub fn identity(fd: BorrowedFd<'_>) -> io::Result<Identity> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()))?;
    let number = |name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
    };
    // Kernels before 5.14 do not report the inode.
    let missing = || io::Error::from_raw_os_error(libc::ENOSYS);
    Ok(Identity { mount: number("mnt_id:").ok_or_else(missing)?, inode: number("ino:").ok_or_else(missing)? })
}

/// Device of a mount, as (major, minor), in the list of mounts that `tid` sees.
pub fn device_of_mount(tid: u32, mount: u64) -> io::Result<Option<(u32, u32)>> {
    let list = std::fs::read(format!("/proc/{tid}/mountinfo"))?;
    Ok(list.split(|byte| *byte == b'\n').find_map(|line| device_in(line, mount)))
}

fn device_in(line: &[u8], mount: u64) -> Option<(u32, u32)> {
    let mut words = line.split(|byte| *byte == b' ').map(|word| std::str::from_utf8(word).ok());
    if words.next()??.parse() != Ok(mount) {
        return None;
    }
    let (major, minor) = words.nth(1)??.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Every process below `init`, itself not counted. One that starts or ends meanwhile may be missing.
pub fn below(init: i32) -> Vec<i32> {
    let mut found = Vec::new();
    let mut waiting = children(init);
    while let Some(pid) = waiting.pop() {
        waiting.extend(children(pid));
        found.push(pid);
    }
    found
}

fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists =
        threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Whether one of these processes has the socket with that number open.
pub fn holds_socket(processes: &[i32], socket: u32) -> bool {
    let wanted = PathBuf::from(format!("socket:[{socket}]"));
    let of_process = |pid: &i32| std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    processes
        .iter()
        .flat_map(of_process)
        .any(|entry| std::fs::read_link(entry.path()).is_ok_and(|link| link == wanted))
}

/// Family of a socket.
pub fn domain(socket: BorrowedFd<'_>) -> Result<libc::c_int, Errno> {
    // SAFETY: the kernel fills in a number for this option.
    unsafe { socket_option(socket.as_raw_fd(), libc::SO_DOMAIN, 0) }
}

/// Connects a socket to an address as the kernel's own call takes it. Blocks as long as the socket does.
pub fn connect(socket: BorrowedFd<'_>, address: &[u8]) -> Result<(), Errno> {
    let length = address.len() as libc::socklen_t;
    // SAFETY: the address is valid for its length; the kernel checks what is in it.
    check_int(unsafe { libc::connect(socket.as_raw_fd(), address.as_ptr().cast(), length) }).map(drop)
}

pub fn listen(socket: BorrowedFd<'_>, backlog: libc::c_int) -> Result<(), Errno> {
    // SAFETY: only numbers are passed.
    check_int(unsafe { libc::listen(socket.as_raw_fd(), backlog) }).map(drop)
}

/// Shuts a socket down: it neither listens nor sends nor receives any more, in any process that has it.
pub fn hang_up(socket: BorrowedFd<'_>) {
    // SAFETY: only numbers are passed. It fails on a socket that is neither connected nor listening, which is what was wanted.
    unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_RDWR) };
}

/// Port an internet socket is bound to; `None` if it is not an internet socket.
pub fn local_port(socket: BorrowedFd<'_>) -> Result<Option<u16>, Errno> {
    // SAFETY: plain data; the kernel fills as much as there is room for.
    unsafe {
        let mut address: libc::sockaddr_storage = std::mem::zeroed();
        let mut size = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        if libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut size) != 0 {
            return Err(last_errno());
        }
        // The port is at the same offset in both families.
        let port = u16::from_be((*(&raw const address).cast::<libc::sockaddr_in>()).sin_port);
        let internet = [libc::AF_INET, libc::AF_INET6].contains(&libc::c_int::from(address.ss_family));
        Ok(internet.then_some(port))
    }
}

/// Status flags of a descriptor: how it was opened.
pub fn status_flags(fd: impl AsFd) -> Result<libc::c_int, Errno> {
    // SAFETY: only numbers are passed.
    check_int(unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), libc::F_GETFL) })
}

#[cfg(test)]
mod tests;
