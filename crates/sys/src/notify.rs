//! Seccomp notification: the listener of a filter, and access to the memory of a waiting thread.
//!
//! A [`Notification`] names a thread that is stopped inside a system call. Its memory, its descriptors and the file
//! system may change at any moment, so what is read from it is copied once; [`Listener::is_valid`] tells afterwards
//! whether it was still the same call. Closing a listener makes every waiting and every later call fail with ENOSYS.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use crate::raw::{Errno, check_int, last_errno};

const RECEIVE: u64 = 0xc050_2100;
const SEND: u64 = 0xc018_2101;
const ID_VALID: u64 = 0x4008_2102;
const ADD_FD: u64 = 0x4018_2103;
const SET_FLAGS: u64 = 0x4008_2104;

const SYNC_WAKE_UP: u64 = 1;
const RESPONSE_CONTINUE: u32 = 1;
const ADD_FD_SEND: u32 = 2;

/// Longest path the kernel takes, its NUL included.
pub const PATH_MAX: usize = 4096;
/// Memory is read up to such a boundary: the next page may not be mapped.
const PAGE: u64 = 4096;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Data {
    nr: i32,
    arch: u32,
    instruction_pointer: u64,
    args: [u64; 6],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Raw {
    id: u64,
    pid: u32,
    flags: u32,
    data: Data,
}

#[repr(C)]
struct NotifyResponse {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

#[repr(C)]
struct AddFd {
    id: u64,
    flags: u32,
    source: u32,
    new: u32,
    new_flags: u32,
}

/// Call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub struct Notification {
    pub id: u64,
    /// Waiting thread, as this process sees it.
    pub tid: u32,
    pub nr: i64,
    pub args: [u64; 6],
}

/// Features of a listener on this kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Whether a descriptor can be handed over and the call answered in one step (5.14).
    pub add_fd_and_send: bool,
    /// Whether the waiting side and this one can take turns on one processor (6.6).
    pub sync_wake_up: bool,
}

/// Listening end of a filter.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    /// Whether to poll first: before 6.11 a blocking receive does not end when the last process behind the filter has.
    poll_first: bool,
}

impl Listener {
    pub fn new(fd: OwnedFd) -> Listener {
        Listener { fd, poll_first: crate::process::kernel_at_least(6, 11) == Some(false) }
    }

    /// Features of this kernel; makes both sides take turns, where it can.
    pub fn abilities(&self) -> Abilities {
        // Id 0 is never used: a kernel that knows the flag finds no such call, an older one rejects the flag.
        let probe = AddFd { id: 0, flags: ADD_FD_SEND, source: 0, new: 0, new_flags: 0 };
        // SAFETY: probe lives across the call.
        let added = unsafe { libc::ioctl(self.fd.as_raw_fd(), ADD_FD as _, &raw const probe) };
        let add_fd_and_send = added < 0 && last_errno() == libc::ENOENT;
        // SAFETY: the argument is a number.
        let sync_wake_up = unsafe { libc::ioctl(self.fd.as_raw_fd(), SET_FLAGS as _, SYNC_WAKE_UP) == 0 };
        Abilities { add_fd_and_send, sync_wake_up }
    }

    /// Waits for the next call. `None`: no process is left that could make one.
    pub fn receive(&self) -> io::Result<Option<Notification>> {
        loop {
            if self.poll_first && self.hung_up(-1)? {
                return Ok(None);
            }
            let mut raw = Raw::default();
            // SAFETY: raw is zeroed, as the kernel wants it, and lives across the call.
            if unsafe { libc::ioctl(self.fd.as_raw_fd(), RECEIVE as _, &raw mut raw) } == 0 {
                let Data { nr, args, .. } = raw.data;
                return Ok(Some(Notification { id: raw.id, tid: raw.pid, nr: i64::from(nr), args }));
            }
            match last_errno() {
                // No process is left that could make one; or only this call was given up before it was received.
                libc::ENOENT if self.hung_up(0)? => return Ok(None),
                libc::EINTR | libc::ENOENT => {}
                errno => return Err(crate::raw::io_error(errno)),
            }
        }
    }

    fn hung_up(&self, timeout: i32) -> io::Result<bool> {
        let mut poll = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: poll lives across the call.
        if unsafe { libc::poll(&raw mut poll, 1, timeout) } < 0 && last_errno() != libc::EINTR {
            return Err(io::Error::last_os_error());
        }
        Ok(poll.revents & libc::POLLIN == 0 && poll.revents & libc::POLLHUP != 0)
    }

    /// Whether that call still waits, and its thread is still the one that made it.
    pub fn is_valid(&self, id: u64) -> bool {
        // SAFETY: id lives across the call.
        unsafe { libc::ioctl(self.fd.as_raw_fd(), ID_VALID as _, &raw const id) == 0 }
    }

    /// Lets the kernel carry the call out, by its own rules: it reads the arguments again.
    pub fn respond_continue(&self, id: u64) {
        self.send(&NotifyResponse { id, value: 0, error: 0, flags: RESPONSE_CONTINUE });
    }

    /// Makes the call fail.
    pub fn respond_errno(&self, id: u64, errno: Errno) {
        // A zero would be a success.
        let error = if errno > 0 { -errno } else { -libc::EACCES };
        self.send(&NotifyResponse { id, value: 0, error, flags: 0 });
    }

    /// Makes the call return `value` without being carried out.
    pub fn respond_value(&self, id: u64, value: i64) {
        self.send(&NotifyResponse { id, value, error: 0, flags: 0 });
    }

    /// Sends a response. An error is ignored: the waiting thread may be gone by now.
    fn send(&self, response: &NotifyResponse) {
        // SAFETY: the response lives across the call.
        while unsafe { libc::ioctl(self.fd.as_raw_fd(), SEND as _, std::ptr::from_ref(response)) } < 0
            && last_errno() == libc::EINTR
        {}
    }

    /// Gives the caller a descriptor for `fd` and returns its number there. The call goes on waiting.
    pub fn add_fd(&self, id: u64, fd: BorrowedFd<'_>, close_on_exec: bool) -> Result<libc::c_int, Errno> {
        self.add(id, fd, close_on_exec, 0)
    }

    /// Makes the call return a new descriptor for `fd`. If that fails (it has too many), the caller has to answer.
    pub fn respond_fd(&self, id: u64, fd: BorrowedFd<'_>, close_on_exec: bool) -> Result<(), Errno> {
        self.add(id, fd, close_on_exec, ADD_FD_SEND).map(drop)
    }

    fn add(
        &self,
        id: u64,
        fd: BorrowedFd<'_>,
        close_on_exec: bool,
        flags: u32,
    ) -> Result<libc::c_int, Errno> {
        let add = AddFd {
            id,
            flags,
            source: fd.as_raw_fd().unsigned_abs(),
            new: 0,
            new_flags: if close_on_exec { libc::O_CLOEXEC.unsigned_abs() } else { 0 },
        };
        loop {
            // SAFETY: add lives across the call.
            match check_int(unsafe { libc::ioctl(self.fd.as_raw_fd(), ADD_FD as _, &raw const add) }) {
                Err(libc::EINTR) => {}
                added => return added,
            }
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Copies bytes from the memory of a waiting thread: as many as there are, at most the buffer's length.
pub fn read_memory(tid: u32, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: buffer.len() };
    // SAFETY: the local buffer is valid for its length; the remote address is checked by the kernel.
    let n =
        unsafe { libc::process_vm_readv(tid.cast_signed(), &raw const local, 1, &raw const remote, 1, 0) };
    if n < 0 { Err(last_errno()) } else { Ok(n.unsigned_abs()) }
}

/// Copies exactly as many bytes as the buffer holds.
pub fn read_exactly(tid: u32, address: u64, buffer: &mut [u8]) -> Result<(), Errno> {
    if read_memory(tid, address, buffer)? == buffer.len() { Ok(()) } else { Err(libc::EFAULT) }
}

/// Writes into the memory of a waiting thread: all of it, or `EFAULT`.
pub fn write_memory(tid: u32, address: u64, bytes: &[u8]) -> Result<(), Errno> {
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
    // SAFETY: the local bytes are only read; the remote address is checked by the kernel.
    let n =
        unsafe { libc::process_vm_writev(tid.cast_signed(), &raw const local, 1, &raw const remote, 1, 0) };
    match usize::try_from(n) {
        Err(_) => Err(last_errno()),
        Ok(n) if n == bytes.len() => Ok(()),
        Ok(_) => Err(libc::EFAULT),
    }
}

/// Copies a path, and returns its length without the NUL. One read, unless it crosses a page boundary.
pub fn read_path(tid: u32, address: u64, buffer: &mut [u8; PATH_MAX]) -> Result<usize, Errno> {
    let mut length = 0;
    while length < PATH_MAX {
        let from = address.wrapping_add(length as u64);
        let to_page_end = usize::try_from(PAGE - from % PAGE).unwrap_or(PATH_MAX);
        let end = PATH_MAX.min(length + to_page_end);
        let n = read_memory(tid, from, &mut buffer[length..end])?;
        if let Some(nul) = buffer[length..length + n].iter().position(|byte| *byte == 0) {
            return Ok(length + nul);
        }
        length += n;
        if n == 0 || length < end {
            return Err(libc::EFAULT);
        }
    }
    Err(libc::ENAMETOOLONG)
}
