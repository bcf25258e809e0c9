//! Init of the sandbox: sets up the namespaces, forks the command, reaps, forwards signals, and ends remaining
//! processes.
//!
//! In a pid namespace it is pid 1, so its death ends every process there; elsewhere it is a subreaper that sweeps its
//! children. It is not confined by Landlock (it has to mount masks again) but it is non-dumpable, takes orders from the
//! control socket only, and runs nothing but this file. The parent's death closes the socket, and that ends the tree.
//! Raw calls only: it runs in a forked copy of a process that may have had threads.

use std::cell::Cell;
use std::ffi::CStr;
use std::os::fd::RawFd;

use super::control::{
    CONTINUED, COUNTED, END_ALL, ENDED, FOREGROUND, KILL_ALL, MEASURE, PAUSE_ALL, STOPPED, TIME_OVER,
    receive_order, send_words,
};
use super::{Cover, LaunchPlan, NOT_RUN, WatchedMask, setup, shared_memory, socketpairs};
use crate::raw::{Errno, check_int, last_errno, sys};

/// Descriptors that init keeps: see `start::close_all_but`.
pub(super) const CONTROL: RawFd = 0;
pub(super) const TTY: RawFd = 1;
pub(super) const WATCH: RawFd = 2;
pub(super) const PAIRS: RawFd = 3;
/// Number of ended processes reaped before orders are read again.
const REAP_AT_ONCE: usize = 256;

pub(super) fn is_pid_one() -> bool {
    // SAFETY: no memory is passed. The raw call, because libc's view may be that of the forking process.
    let pid = unsafe { sys!(libc::SYS_getpid) };
    pid == Ok(1)
}

pub(super) struct Init<'a> {
    plan: &'a LaunchPlan,
    command: i32,
    pid_one: bool,
    /// Whether everything was stopped together with the parent, and goes on together with it.
    paused: Cell<bool>,
    /// Notices of the command's end and of the time limit that could not be sent at once.
    untold: Cell<Option<i32>>,
    untold_time: Cell<bool>,
    deadline: Option<i64>,
}

/// Result of one turn of reaping.
#[derive(Clone, Copy)]
struct Reaped {
    ended: bool,
    more: bool,
}

/// Way to end the command's tree.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// Kill at once: the parent is gone, or requested it.
    AtOnce,
    WithGrace,
}

impl Init<'_> {
    /// Init for `command`, the pid of the forked command as this process sees it.
    pub(super) fn new(plan: &LaunchPlan, command: i32) -> Init<'_> {
        Init {
            plan,
            command,
            pid_one: is_pid_one(),
            paused: Cell::new(false),
            untold: Cell::new(None),
            untold_time: Cell::new(false),
            deadline: plan.time_ms.map(|time| now_ms() + i64::from(time)),
        }
    }

    /// Serves until the command's tree is gone; returns the exit code.
    pub(super) fn serve(self) -> i32 {
        let Ok(children) = signal_fd(libc::SIGCHLD) else { return i32::from(NOT_RUN) };
        let watch = if self.plan.masks.is_empty() { -1 } else { WATCH };
        let mut pairs = if self.plan.confine.listen { PAIRS } else { -1 };
        let mut ended = false;
        let mut more = false;
        loop {
            let mut polls = [poll_in(CONTROL), poll_in(children), poll_in(watch), poll_in(pairs)];
            let wait = if more { 0 } else { self.remaining() };
            // SAFETY: polls lives across the call.
            let polled = unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, wait) };
            if polled < 0 && last_errno() != libc::EINTR {
                // Orders cannot be read any more: nothing may go on without them.
                return self.end_rest(children, End::AtOnce);
            }
            if polls[2].revents != 0 {
                drain(watch);
                remask(&self.plan.masks);
            }
            if polls[3].revents & libc::POLLIN != 0 {
                socketpairs::serve(PAIRS);
            } else if polls[3].revents != 0 {
                pairs = -1;
            }
            if more || polls[1].revents != 0 {
                drain(children);
                let reaped = self.reap();
                ended |= reaped.ended;
                more = reaped.more;
            }
            if ended {
                return self.end_rest(children, End::WithGrace);
            }
            if polls[0].revents != 0
                && let Some(end) = self.obey()
            {
                return self.end_rest(children, end);
            }
            if self.remaining() == 0 {
                let told = send_words(CONTROL, [TIME_OVER, 0], None, libc::MSG_DONTWAIT);
                self.untold_time.set(told == Err(libc::EAGAIN));
                return self.end_rest(children, End::WithGrace);
            }
        }
    }

    /// Milliseconds until the time limit; -1: none.
    fn remaining(&self) -> libc::c_int {
        let left =
            |deadline: i64| libc::c_int::try_from(deadline - now_ms()).unwrap_or(libc::c_int::MAX).max(0);
        self.deadline.map_or(-1, left)
    }

    /// Carries out one order from the parent; `Some` when the tree has to end.
    fn obey(&self) -> Option<End> {
        match receive_order(CONTROL) {
            Ok(Some(END_ALL)) => Some(End::WithGrace),
            Ok(Some(KILL_ALL)) => Some(End::AtOnce),
            Ok(Some(PAUSE_ALL)) => {
                self.signal_all(libc::SIGSTOP);
                self.paused.set(true);
                None
            }
            Ok(Some(signal)) if i32::from(signal) == libc::SIGCONT && self.paused.replace(false) => {
                self.signal_all(libc::SIGCONT);
                None
            }
            Ok(Some(MEASURE)) => {
                // A parent that does not read asks again.
                let _ = send_words(CONTROL, [COUNTED, shared_memory::pages()], None, libc::MSG_DONTWAIT);
                None
            }
            Ok(Some(FOREGROUND)) => {
                // SAFETY: the pid lives across the call; SIGTTOU is blocked here, so the change is not refused.
                unsafe { libc::ioctl(TTY, libc::TIOCSPGRP, &raw const self.command) };
                None
            }
            Ok(Some(signal @ 1..=64)) => {
                // SAFETY: only numbers. The group may be gone already, which is fine.
                unsafe { libc::kill(-self.command, i32::from(signal)) };
                None
            }
            Ok(Some(_)) | Err(libc::EINTR) => None,
            Ok(None) | Err(_) => Some(End::AtOnce),
        }
    }

    /// Reaps ended processes, a bounded number at a time: a tree that ends processes as fast as they are reaped must
    /// not keep orders waiting. Stops matter only for the command.
    fn reap(&self) -> Reaped {
        let mut status = 0;
        let flags = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
        // SAFETY: status lives across the call.
        let changed = unsafe { libc::waitpid(self.command, &raw mut status, flags) } == self.command;
        let mut ended = changed && self.tell(status);
        for _ in 0..REAP_AT_ONCE {
            // SAFETY: status lives across the call.
            let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
            if pid <= 0 {
                return Reaped { ended, more: false };
            }
            if pid == self.command {
                ended |= self.tell(status);
            }
        }
        Reaped { ended, more: true }
    }

    /// Sends a change of the command's state; true when it ended. Never waits for a parent that does not read.
    fn tell(&self, status: i32) -> bool {
        let message = if libc::WIFSTOPPED(status) {
            [STOPPED, libc::WSTOPSIG(status)]
        } else if libc::WIFCONTINUED(status) {
            [CONTINUED, 0]
        } else {
            [ENDED, status]
        };
        let told = send_words(CONTROL, message, None, libc::MSG_DONTWAIT);
        let ended = message[0] == ENDED;
        if ended && told == Err(libc::EAGAIN) {
            self.untold.set(Some(status));
        }
        ended
    }

    /// Ends the remaining processes: TERM, the grace period, KILL; then only init is left.
    fn end_rest(&self, children: RawFd, end: End) -> i32 {
        let grace = if end == End::AtOnce { 0 } else { i64::from(self.plan.grace_ms) };
        let deadline = now_ms() + grace;
        let mut terminated = false;
        loop {
            let more = self.reap().more;
            if !has_children() {
                if self.untold_time.take() {
                    let _ = send_words(CONTROL, [TIME_OVER, 0], None, 0);
                }
                if let Some(status) = self.untold.take() {
                    let _ = send_words(CONTROL, [ENDED, status], None, 0);
                }
                return 0;
            }
            let remaining_ms = deadline - now_ms();
            if !terminated && remaining_ms > 0 {
                self.signal_all(libc::SIGTERM);
                // A stopped process takes TERM only when it runs.
                self.signal_all(libc::SIGCONT);
                terminated = true;
            }
            if remaining_ms <= 0 {
                self.signal_all(libc::SIGKILL);
            }
            let mut poll = poll_in(children);
            let wait = if more {
                0
            } else if remaining_ms > 0 {
                remaining_ms
            } else {
                20
            };
            // SAFETY: poll lives across the call.
            unsafe { libc::poll(&raw mut poll, 1, wait as libc::c_int) };
            drain(children);
        }
    }

    fn signal_all(&self, signal: i32) {
        if self.pid_one {
            // As pid 1 of its own namespace: -1 is every process in there and no other.
            // SAFETY: only numbers.
            unsafe { libc::kill(-1, signal) };
        } else {
            signal_children(signal);
        }
    }
}

fn has_children() -> bool {
    // SAFETY: a zeroed siginfo is valid to write into; WNOWAIT leaves the child to be reaped later.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_ALL, 0, &raw mut info, flags) == 0
    }
}

/// Signals the direct children listed by the kernel; orphans become direct children, so repeating reaches all.
fn signal_children(signal: i32) {
    let mut buffer = [0u8; 4096];
    // SAFETY: the path is NUL-terminated, the buffer valid for its size.
    let n = unsafe {
        let fd = libc::open(c"/proc/thread-self/children".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return;
        }
        let n = libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len());
        libc::close(fd);
        n
    };
    let mut pid = 0i32;
    for byte in &buffer[..usize::try_from(n).unwrap_or(0)] {
        if byte.is_ascii_digit() {
            pid = pid * 10 + i32::from(byte - b'0');
        } else if pid > 1 {
            // SAFETY: only numbers; the pid is our own unreaped child, so it cannot have been reused.
            unsafe { libc::kill(pid, signal) };
            pid = 0;
        }
    }
}

fn now_ms() -> i64 {
    // SAFETY: time lives across the call.
    unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time);
        time.tv_sec * 1000 + time.tv_nsec / 1_000_000
    }
}

fn poll_in(fd: RawFd) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

fn signal_fd(signal: i32) -> Result<RawFd, Errno> {
    // SAFETY: set is initialised before use.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        check_int(libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC))
    }
}

/// Reads a non-blocking descriptor empty.
fn drain(fd: RawFd) {
    let mut buffer = [0u8; 4096];
    // SAFETY: the buffer is valid for its size.
    while unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) } > 0 {}
}

/// Watches the directories of masked names, before the command runs: a mask that cannot be watched is an error.
pub(super) fn watch_masks(masks: &[WatchedMask]) -> Result<RawFd, Errno> {
    if masks.is_empty() {
        return Ok(-1);
    }
    // SAFETY: no memory is passed.
    let fd = check_int(unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) })?;
    for mask in masks {
        watch(fd, mask)?;
    }
    Ok(fd)
}

fn watch(fd: RawFd, mask: &WatchedMask) -> Result<(), Errno> {
    let events =
        libc::IN_CREATE | libc::IN_MOVED_TO | libc::IN_MOVED_FROM | libc::IN_DELETE | libc::IN_MOVE_SELF;
    // SAFETY: the path is NUL-terminated.
    check_int(unsafe { libc::inotify_add_watch(fd, mask.parent.as_ptr(), events) }).map(drop)
}

/// Restores every mask that a process outside removed by replacing the name, also if a directory replaced a file.
fn remask(masks: &[WatchedMask]) {
    for mask in masks {
        // The directory itself may be a new one of the old name.
        let _ = watch(WATCH, mask);
        // Nothing can be reported from here; the next event tries again.
        let _ = match &mask.cover {
            Cover::Itself => match setup::is_held(&mask.target) {
                Ok(false) => setup::hold(&mask.target),
                known => known.map(drop),
            },
            Cover::Nothing { dir, file } => match identity(&mask.target) {
                Some((_, is_dir)) => recover(if is_dir { dir } else { file }, &mask.target, setup::mask),
                None => Ok(()),
            },
            Cover::Copy(copy) => recover(copy, &mask.target, setup::copy),
        };
    }
}

/// Covers `target` by `source` again, unless it is covered.
fn recover(
    source: &CStr,
    target: &CStr,
    cover: impl Fn(&CStr, &CStr) -> Result<(), Errno>,
) -> Result<(), Errno> {
    match (identity(source), identity(target)) {
        (Some((source_id, _)), Some((target_id, _))) if source_id != target_id => cover(source, target),
        _ => Ok(()),
    }
}

/// Identity of the object at a path, and whether it is a directory.
fn identity(path: &CStr) -> Option<((libc::dev_t, libc::ino_t), bool)> {
    // SAFETY: path is NUL-terminated, stat lives across the call.
    let stat = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        if libc::lstat(path.as_ptr(), &raw mut stat) != 0 {
            return None;
        }
        stat
    };
    Some(((stat.st_dev, stat.st_ino), stat.st_mode & libc::S_IFMT == libc::S_IFDIR))
}
