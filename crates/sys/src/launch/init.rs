//! The tiny init: sets up the namespaces, forks the command, reaps, forwards signals, and ends what the command left.
//!
//! In a pid namespace it is pid 1, so its death is everybody's death; elsewhere it is a subreaper that sweeps its
//! children. It is not confined by Landlock (it has to mount masks again) but it is non-dumpable, takes orders from the
//! control socket only, and runs nothing but this file. The parent's death closes the socket, and that ends the tree.
//! Raw calls only: it runs in a forked copy of a process that may have had threads.

use std::ffi::CStr;
use std::os::fd::RawFd;

use super::control::{CONTINUED, END_ALL, ENDED, FOREGROUND, KILL_ALL, STOPPED, receive_order, send_words};
use super::{Plan, WatchedMask, setup};
use crate::raw::{Errno, check_int, sys};

/// Where init keeps what it needs: see `start::close_all_but`.
pub(super) const CONTROL: RawFd = 0;
pub(super) const TTY: RawFd = 1;

pub(super) fn is_pid_one() -> bool {
    // SAFETY: no memory is passed. The raw call, because libc's view may be that of the forking process.
    let pid = unsafe { sys!(libc::SYS_getpid) };
    pid == Ok(1)
}

pub(super) struct Init<'a> {
    plan: &'a Plan,
    command: i32,
    pid_one: bool,
}

/// How the command's tree is to be ended.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// The parent is gone, or wants it so: nobody waits for manners.
    AtOnce,
    WithGrace,
}

impl Init<'_> {
    /// `command` is the pid of the forked command as this process sees it.
    pub(super) fn new(plan: &Plan, command: i32) -> Init<'_> {
        Init { plan, command, pid_one: is_pid_one() }
    }

    /// Serve until the command's tree is gone; returns the exit code.
    pub(super) fn serve(self) -> i32 {
        let Ok(children) = signal_fd(libc::SIGCHLD) else { return 125 };
        let watch = watch_masks(&self.plan.masks);
        let mut ended = false;
        loop {
            let mut polls = [poll_in(CONTROL), poll_in(children), poll_in(watch)];
            // SAFETY: polls lives across the call.
            unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, -1) };
            if polls[2].revents != 0 {
                drain(watch);
                remask(&self.plan.masks);
            }
            if polls[1].revents != 0 {
                drain(children);
                ended |= self.reap();
            }
            if ended {
                return self.end_rest(children, End::WithGrace);
            }
            if polls[0].revents != 0
                && let Some(end) = self.obey()
            {
                let code = self.end_rest(children, end);
                return code;
            }
        }
    }

    /// One order from the parent; `Some` when the tree has to end.
    fn obey(&self) -> Option<End> {
        match receive_order(CONTROL) {
            Ok(Some(END_ALL)) => Some(End::WithGrace),
            Ok(Some(KILL_ALL)) => Some(End::AtOnce),
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

    /// Reap whatever changed state; true when the command itself ended.
    fn reap(&self) -> bool {
        let mut ended = false;
        loop {
            let mut status = 0;
            let flags = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
            // SAFETY: status lives across the call.
            let pid = unsafe { libc::waitpid(-1, &raw mut status, flags) };
            if pid <= 0 {
                return ended;
            }
            if pid == self.command {
                ended |= tell(status);
            }
        }
    }

    /// End what is left: TERM, the grace period, KILL; then nobody but init is there.
    fn end_rest(&self, children: RawFd, end: End) -> i32 {
        let mut remaining_ms = if end == End::AtOnce { 0 } else { i64::from(self.plan.grace_ms) };
        let mut terminated = false;
        loop {
            self.reap();
            if !has_children() {
                return 0;
            }
            if !terminated && remaining_ms > 0 {
                self.signal_all(libc::SIGTERM);
                // A stopped process takes TERM only when it runs.
                self.signal_all(libc::SIGCONT);
                terminated = true;
            }
            if remaining_ms <= 0 {
                self.signal_all(libc::SIGKILL);
            }
            let before = now_ms();
            let mut poll = poll_in(children);
            let wait = if remaining_ms > 0 { remaining_ms } else { 20 };
            // SAFETY: poll lives across the call.
            unsafe { libc::poll(&raw mut poll, 1, wait as libc::c_int) };
            drain(children);
            remaining_ms -= now_ms() - before;
        }
    }

    fn signal_all(&self, signal: i32) {
        if self.pid_one {
            // Pid 1 of its own namespace: -1 is everybody in there and nobody else.
            // SAFETY: only numbers.
            unsafe { libc::kill(-1, signal) };
        } else {
            signal_children(signal);
        }
    }
}

/// Pass a change of the command's state on; true when it ended.
fn tell(status: i32) -> bool {
    let message = if libc::WIFSTOPPED(status) {
        [STOPPED, libc::WSTOPSIG(status)]
    } else if libc::WIFCONTINUED(status) {
        [CONTINUED, 0]
    } else {
        [ENDED, status]
    };
    // A parent that cannot be told is gone; the hang-up ends the tree.
    let _ = send_words(CONTROL, message, None);
    message[0] == ENDED
}

fn has_children() -> bool {
    // SAFETY: a zeroed siginfo is valid to write into; WNOWAIT leaves the child to be reaped later.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_ALL, 0, &raw mut info, flags) == 0
    }
}

/// Signal the direct children listed by the kernel; orphans become direct children, so repeating reaches all.
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

/// Read a non-blocking descriptor empty.
fn drain(fd: RawFd) {
    let mut buffer = [0u8; 4096];
    // SAFETY: the buffer is valid for its size.
    while unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) } > 0 {}
}

/// Watch the folders of masked names; -1 (which poll passes over) when there is nothing to watch.
fn watch_masks(masks: &[WatchedMask]) -> RawFd {
    if masks.is_empty() {
        return -1;
    }
    let events =
        libc::IN_CREATE | libc::IN_MOVED_TO | libc::IN_MOVED_FROM | libc::IN_DELETE | libc::IN_MOVE_SELF;
    // SAFETY: the paths are NUL-terminated.
    unsafe {
        let fd = libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC);
        for mask in masks {
            libc::inotify_add_watch(fd, mask.parent.as_ptr(), events);
        }
        fd
    }
}

/// Put every mask back that somebody outside removed by replacing the name.
fn remask(masks: &[WatchedMask]) {
    for mask in masks {
        if let (Some(source), Some(target)) = (identity(&mask.source), identity(&mask.target))
            && source != target
        {
            // Nothing can be reported from here; the next event tries again.
            let _ = setup::mask(&mask.source, &mask.target);
        }
    }
}

fn identity(path: &CStr) -> Option<(libc::dev_t, libc::ino_t)> {
    // SAFETY: path is NUL-terminated, stat lives across the call.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        (libc::lstat(path.as_ptr(), &raw mut stat) == 0).then_some((stat.st_dev, stat.st_ino))
    }
}
