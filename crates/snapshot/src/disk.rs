//! The steps that change something on disk. Every one of them, in the store, in a session folder and in the user's own
//! tree, is announced here first, so that a test can end the process, or make the disk full or broken, at each.

use std::io;

/// Announce a change on disk: called right before the system call that makes it.
#[cfg(not(feature = "failpoints"))]
#[inline]
#[allow(clippy::unnecessary_wraps, reason = "it fails where tests want it to")]
pub(crate) fn step() -> io::Result<()> {
    Ok(())
}

#[cfg(feature = "failpoints")]
pub(crate) fn step() -> io::Result<()> {
    failpoint::step()
}

/// Where to fail. For tests: built only with the feature `failpoints`.
#[cfg(feature = "failpoints")]
pub mod failpoint {
    use std::io;
    use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};

    static COUNT: AtomicU64 = AtomicU64::new(0);
    static AT: AtomicU64 = AtomicU64::new(u64::MAX);
    /// The error to give at that step and every later one; 0: end the process there.
    static ERRNO: AtomicI32 = AtomicI32::new(0);

    /// End the process, as `kill -9` does, right before step `at` (counted from 0, from now).
    pub fn abort_at(at: u64) {
        arm(at, 0);
    }

    /// Fail with `errno` at step `at` and at every later step, as a full disk does, until [`disarm`].
    pub fn fail_from(at: u64, errno: i32) {
        arm(at, errno);
    }

    /// Do nothing more, and count from 0.
    pub fn disarm() {
        arm(u64::MAX, 0);
    }

    /// How many steps were announced since the last call of one of the above.
    pub fn steps() -> u64 {
        COUNT.load(SeqCst)
    }

    fn arm(at: u64, errno: i32) {
        AT.store(u64::MAX, SeqCst);
        COUNT.store(0, SeqCst);
        ERRNO.store(errno, SeqCst);
        AT.store(at, SeqCst);
    }

    pub(super) fn step() -> io::Result<()> {
        let count = COUNT.fetch_add(1, SeqCst);
        if count < AT.load(SeqCst) {
            return Ok(());
        }
        match ERRNO.load(SeqCst) {
            0 => {
                // Not a panic and not an exit: nothing may be cleaned up on the way.
                let _ =
                    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
                std::process::abort()
            }
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}
