//! System calls as `Result<isize, errno>`, usable between fork and exec: no allocation, no locks, no libc caches.

use libc::{c_int, c_long};

pub(crate) type Errno = c_int;

/// System call by number with up to six arguments.
macro_rules! sys {
    ($nr:expr $(, $arg:expr)* $(,)?) => {
        $crate::raw::check(libc::syscall($nr as libc::c_long $(, $arg as libc::c_long)*))
    };
}
pub(crate) use sys;

pub(crate) fn check(result: c_long) -> Result<isize, Errno> {
    if result < 0 { Err(last_errno()) } else { Ok(result as isize) }
}

pub(crate) fn check_int(result: c_int) -> Result<c_int, Errno> {
    if result < 0 { Err(last_errno()) } else { Ok(result) }
}

/// The same as an error of std, for calls whose result says nothing more.
pub(crate) fn done(result: c_int) -> std::io::Result<()> {
    check_int(result).map(drop).map_err(io_error)
}

/// Pair of connected unix sockets that keep message boundaries.
pub(crate) fn socket_pair(flags: c_int) -> Result<[c_int; 2], Errno> {
    let mut fds = [-1; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | flags;
    // SAFETY: fds has room for two descriptors.
    check_int(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) }).map(|_| fds)
}

/// Option of a socket, whose value is a `T`: plain data, for which every bit pattern is valid.
///
/// # Safety
///
/// The kernel fills in a `T` for this option.
pub(crate) unsafe fn socket_option<T>(socket: c_int, option: c_int, mut value: T) -> Result<T, Errno> {
    let mut size = size_of::<T>() as libc::socklen_t;
    // SAFETY: value and size live across the call.
    check_int(unsafe {
        libc::getsockopt(socket, libc::SOL_SOCKET, option, (&raw mut value).cast(), &raw mut size)
    })?;
    Ok(value)
}

pub(crate) fn last_errno() -> Errno {
    // SAFETY: __errno_location returns this thread's errno slot, always valid.
    unsafe { *libc::__errno_location() }
}

#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

const RESOLVE_NO_SYMLINKS: u64 = 4;

/// Opens the object at `path` with `O_PATH`, refusing any link on the way (`ELOOP`): the path was resolved before, so a
/// link in it was put there since and would lead elsewhere.
pub(crate) fn open_exact(path: &std::ffi::CStr) -> Result<std::os::fd::RawFd, Errno> {
    open_how(path, libc::O_PATH | libc::O_CLOEXEC)
}

/// The same, but a link at the end is opened itself.
pub(crate) fn open_exact_or_link(path: &std::ffi::CStr) -> Result<std::os::fd::RawFd, Errno> {
    open_how(path, libc::O_PATH | libc::O_CLOEXEC | libc::O_NOFOLLOW)
}

fn open_how(path: &std::ffi::CStr, flags: libc::c_int) -> Result<std::os::fd::RawFd, Errno> {
    let how = OpenHow { flags: flags as u64, mode: 0, resolve: RESOLVE_NO_SYMLINKS };
    // SAFETY: path is NUL-terminated, how lives across the call and its size is passed along.
    let fd = unsafe {
        sys!(libc::SYS_openat2, libc::AT_FDCWD, path.as_ptr(), &raw const how, size_of::<OpenHow>())
    }?;
    Ok(fd as std::os::fd::RawFd)
}

pub(crate) fn io_error(errno: Errno) -> std::io::Error {
    std::io::Error::from_raw_os_error(errno)
}
