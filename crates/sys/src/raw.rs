//! System calls as `Result<isize, errno>`, usable between fork and exec: no allocation, no locks, no libc caches.

use libc::{c_int, c_long};

pub(crate) type Errno = c_int;

/// A system call by number with up to six arguments.
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

pub(crate) fn last_errno() -> Errno {
    // SAFETY: __errno_location returns this thread's errno slot, always valid.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn io_error(errno: Errno) -> std::io::Error {
    std::io::Error::from_raw_os_error(errno)
}
