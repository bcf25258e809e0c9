//! Check whether a file is open for writing anywhere. The kernel counts the writers of each file, mappings included,
//! and reveals the count in one way only: it refuses a read lease while there is one.

use std::os::fd::{AsRawFd, BorrowedFd};

/// Command number that the `libc` crate does not have for every platform.
const F_SETSIG: libc::c_int = 10;

/// Writers of a file at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// No process has it open for writing, or mapped shared from such a descriptor.
    None,
    Some,
    /// The kernel does not tell: the file belongs to another user, or its file system has no leases.
    Unknown,
}

/// Asks for the writers of `file`, which must be open for reading only.
pub fn writers(file: BorrowedFd<'_>) -> Writers {
    let fd = file.as_raw_fd();
    // A writer that opens the file while the lease is held makes the kernel send a signal; SIGIO, the default one, would
    // end this process, SIGURG is ignored unless a handler is set.
    // SAFETY: only numbers; the descriptor is open for the time of these calls.
    let lease = unsafe {
        if libc::fcntl(fd, F_SETSIG, libc::SIGURG) != 0 {
            return Writers::Unknown;
        }
        libc::fcntl(fd, libc::F_SETLEASE, libc::F_RDLCK)
    };
    if lease != 0 {
        let busy = std::io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN);
        return if busy { Writers::Some } else { Writers::Unknown };
    }
    // SAFETY: as above. It cannot fail for a lease that is held; a writer that waits for it goes on.
    unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK) };
    Writers::None
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_file_open_for_writing_has_writers() {
        let path = std::env::temp_dir().join(format!("nono-lease-{}", std::process::id()));
        let writer = File::create(&path).unwrap();
        let reader = File::open(&path).unwrap();
        let second = OpenOptions::new().append(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let open = writers(reader.as_fd());
        drop(writer);
        let still_open = writers(reader.as_fd());
        drop(second);
        let closed = writers(reader.as_fd());
        if closed == Writers::Unknown {
            eprintln!("skipped: the file system of {} knows no leases", std::env::temp_dir().display());
            return;
        }
        assert_eq!((open, still_open, closed), (Writers::Some, Writers::Some, Writers::None));
        // Another reader does not count.
        assert_eq!(writers(reader.try_clone().unwrap().as_fd()), Writers::None);
    }
}
