//! What `/proc` tells about the thread that asks. All of it comes from the command's side: shown, never believed.

use std::path::PathBuf;

/// The program of a process that is gone.
pub(super) const UNKNOWN: &str = "?";

/// The program it runs.
pub(super) fn program(tid: u32) -> PathBuf {
    std::fs::read_link(format!("/proc/{tid}/exe")).unwrap_or_else(|_| PathBuf::from(UNKNOWN))
}

/// The process it belongs to.
pub(super) fn pid(tid: u32) -> u32 {
    status(tid).map_or(tid, |status| status.pid)
}

/// Lines of `/proc/<tid>/status`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Status {
    /// The process, as this one sees it.
    pub(super) pid: u32,
    pub(super) umask: u32,
}

pub(super) fn status(tid: u32) -> Option<Status> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    Some(Status { pid: field("Tgid:")?.parse().ok()?, umask: u32::from_str_radix(field("Umask:")?, 8).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_belongs_to_its_process() {
        let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        assert_eq!(pid(tid), std::process::id());
        assert_eq!(program(tid), std::env::current_exe().unwrap());
        assert!(status(tid).unwrap().umask <= 0o777);
    }
}
