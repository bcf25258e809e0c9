//! Identity of the thread that asks. All of it comes from the command's side: it is shown, never trusted.

use std::path::PathBuf;

use nono_sys::other_process;

use crate::approval::Asker;

/// Program name of a process that is gone.
pub(super) const UNKNOWN: &str = "?";

/// Program the thread runs.
pub(super) fn program(tid: u32) -> PathBuf {
    other_process::program(tid).unwrap_or_else(|_| PathBuf::from(UNKNOWN))
}

/// Process the thread belongs to.
pub(super) fn pid(tid: u32) -> u32 {
    other_process::process_of(tid).unwrap_or(tid)
}

pub(super) fn asker(tid: u32) -> Asker {
    Asker { program: program(tid), pid: pid(tid) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_belongs_to_its_process() {
        let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let asker = asker(tid);
        assert_eq!(asker.pid, std::process::id());
        assert_eq!(asker.program, std::env::current_exe().unwrap());
        assert!(other_process::umask_of(tid).unwrap() <= 0o777);
    }
}
