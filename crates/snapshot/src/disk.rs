//! Announces the steps that change something on disk. Every such step, in the store, in a session folder and in the
//! user's tree, calls [`step`] first, so that a test can kill the process or inject a disk error at each of them.

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

/// Fault injection for tests; built only with the feature `failpoints`.
#[cfg(feature = "failpoints")]
pub mod failpoint {
    use std::io;
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};
    use std::sync::{Mutex, PoisonError};

    pub use nono_sys::power::LostWrites;

    static COUNT: AtomicU64 = AtomicU64::new(0);
    static AT: AtomicU64 = AtomicU64::new(u64::MAX);
    static FAULT: Mutex<Fault> = Mutex::new(Fault::Kill);
    /// Seconds since 1970; 0 for never.
    static REBOOTED: AtomicI64 = AtomicI64::new(0);

    /// Fault injected at the chosen step.
    #[derive(Clone)]
    enum Fault {
        /// Kill the process, as `kill -9` does.
        Kill,
        /// Fail this step and every later one with this error.
        Error(i32),
        /// Cut the filesystem at this path off from its disk, then kill the process.
        Power(PathBuf, LostWrites),
    }

    /// Kill the process right before step `at`, counted from 0 and from now.
    pub fn abort_at(at: u64) {
        arm(at, Fault::Kill);
    }

    /// Fail with `errno` at step `at` and every later one, as a full disk does, until [`disarm`].
    pub fn fail_from(at: u64, errno: i32) {
        arm(at, Fault::Error(errno));
    }

    /// Cut the filesystem at `mount` off from its disk right before step `at`, and kill the process.
    pub fn cut_power_at(at: u64, mount: &Path, cut: LostWrites) {
        arm(at, Fault::Power(mount.to_owned(), cut));
    }

    /// Stop injecting faults, and count from 0.
    pub fn disarm() {
        arm(u64::MAX, Fault::Kill);
    }

    /// Number of steps announced since the last call of one of the functions above.
    pub fn steps() -> u64 {
        COUNT.load(SeqCst)
    }

    /// Simulate a reboot: this process treats everything on disk as written before the last boot.
    pub fn reboot() {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        // Files written in this very second are older as well.
        REBOOTED.store(now.tv_sec + 1, SeqCst);
    }

    /// Simulated boot time, if [`reboot`] was called.
    pub(crate) fn rebooted() -> Option<i64> {
        Some(REBOOTED.load(SeqCst)).filter(|at| *at != 0)
    }

    fn arm(at: u64, fault: Fault) {
        AT.store(u64::MAX, SeqCst);
        COUNT.store(0, SeqCst);
        *FAULT.lock().unwrap_or_else(PoisonError::into_inner) = fault;
        AT.store(at, SeqCst);
    }

    pub(super) fn step() -> io::Result<()> {
        let count = COUNT.fetch_add(1, SeqCst);
        if count < AT.load(SeqCst) {
            return Ok(());
        }
        let fault = FAULT.lock().unwrap_or_else(PoisonError::into_inner);
        match &*fault {
            Fault::Error(errno) => return Err(io::Error::from_raw_os_error(*errno)),
            Fault::Power(mount, cut) => nono_sys::power::cut(mount, *cut)?,
            Fault::Kill => {}
        }
        // A signal instead of a panic or exit: nothing may be cleaned up.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        std::process::abort()
    }
}
