//! Identification of the peer: inside the sandbox or outside it.
//!
//! The kernel names the process that connected. Whether it belongs to the command follows from its parents, up to the
//! sandbox's init, which also adopts the command's orphans. Pids are reused, so every parent must have started before
//! its child, and the process must still be the one that connected when the walk is over. A peer that cannot be
//! identified is refused on both channels.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use nono_sys::socket::{peer, peer_pidfd};
use nono_sys::{process, wait};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use thiserror::Error;

use crate::approval::Asker;

#[derive(Debug, Error)]
pub(super) enum PeerRefusal {
    #[error("this channel belongs to another user")]
    User,
    #[error("your process is not visible to the supervisor")]
    Unseen,
    #[error("this channel is only for processes inside the sandbox")]
    Outside,
    #[error("this channel is only for processes outside the sandbox")]
    Inside,
    #[error("your process has ended, or its parents are not known")]
    Gone,
}

/// Side of the sandbox a peer must be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerSide {
    Inside,
    Outside,
}

/// Identifies the process that connected, if it is on that side of the sandbox whose init is `init`.
pub(super) fn check(socket: BorrowedFd<'_>, side: PeerSide, init: u32) -> Result<Asker, PeerRefusal> {
    let found = peer(socket).map_err(|_| PeerRefusal::Gone)?;
    if found.uid != process::uid() {
        return Err(PeerRefusal::User);
    }
    let Some(pid) = i32::try_from(found.pid).ok().and_then(Pid::from_raw) else {
        return Err(PeerRefusal::Unseen);
    };
    let handle = handle(socket, pid)?;
    let inside = descends(found.pid, init).ok_or(PeerRefusal::Gone)?;
    let asker = asker(found.pid);
    // Up to here it was the same process: a pid is not reused while the process lives.
    if has_ended(&handle) {
        return Err(PeerRefusal::Gone);
    }
    match (side, inside) {
        (PeerSide::Inside, false) => Err(PeerRefusal::Outside),
        (PeerSide::Outside, true) => Err(PeerRefusal::Inside),
        _ => Ok(asker),
    }
}

/// Handle of the process itself, not its pid. Kernels before 6.5 cannot tell which process connected: there it is the
/// one that has the pid now.
fn handle(socket: BorrowedFd<'_>, pid: Pid) -> Result<OwnedFd, PeerRefusal> {
    match peer_pidfd(socket) {
        Ok(Some(handle)) => Ok(handle),
        Ok(None) => pidfd_open(pid, PidfdFlags::empty()).map_err(|_| PeerRefusal::Gone),
        Err(_) => Err(PeerRefusal::Gone),
    }
}

fn has_ended(handle: &OwnedFd) -> bool {
    match wait::poll(&[Some((handle.as_fd(), false))], Some(Duration::ZERO)) {
        Ok(ready) => ready.contains(&true),
        Err(_) => true,
    }
}

/// Longest chain of parents that is followed.
const GENERATIONS: usize = 4096;

/// Number of walks tried. A parent that ends during a walk breaks it; its children have another parent then.
const ATTEMPTS: usize = 5;

/// Whether `pid` is `init` or below it; `None` where that is not known.
fn descends(pid: u32, init: u32) -> Option<bool> {
    (0..ATTEMPTS).find_map(|_| walk(pid, init).ok())
}

fn walk(pid: u32, init: u32) -> io::Result<bool> {
    let mut at = pid;
    let mut family = Family::of(at)?;
    for _ in 0..GENERATIONS {
        if at == init {
            return Ok(true);
        }
        if family.parent == 0 {
            return Ok(false);
        }
        let above = Family::of(family.parent)?;
        if above.started > family.started {
            return Err(io::Error::other("a reused pid"));
        }
        (at, family) = (family.parent, above);
    }
    Err(io::Error::other("too many parents"))
}

struct Family {
    parent: u32,
    started: u64,
}

impl Family {
    fn of(pid: u32) -> io::Result<Family> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let unreadable = || io::Error::other("unexpected format of /proc/PID/stat");
        // The name in parentheses may contain anything, so count from its end.
        let (_, rest) = stat.rsplit_once(')').ok_or_else(unreadable)?;
        let mut fields = rest.split_ascii_whitespace().skip(1);
        let parent = fields.next().and_then(|field| field.parse().ok());
        let started = fields.nth(17).and_then(|field| field.parse().ok());
        let (Some(parent), Some(started)) = (parent, started) else { return Err(unreadable()) };
        Ok(Family { parent, started })
    }
}

/// Program that runs as `pid`, as far as `/proc` says.
pub(super) fn asker(pid: u32) -> Asker {
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    let name =
        || std::fs::read_to_string(format!("/proc/{pid}/comm")).map(|name| PathBuf::from(name.trim_end()));
    // For a process that hides its name the pid is enough: it is only shown.
    Asker { program: program.or_else(|_| name()).unwrap_or_default(), pid }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn families() {
        let me = std::process::id();
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = child.id();
        assert_eq!(descends(pid, me), Some(true));
        assert_eq!(descends(pid, pid), Some(true));
        assert_eq!(descends(me, pid), Some(false));
        assert_eq!(Family::of(pid).unwrap().parent, me);
        assert_eq!(Some(Family::of(pid).unwrap().started), process::start_time(pid));
        assert!(asker(me).program.is_absolute());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(descends(pid, me), None, "it is gone");
    }
}
