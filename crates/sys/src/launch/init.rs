//! The tiny init: sets up the namespaces, forks the command, reaps, forwards signals, and ends what the command left.
//!
//! In a pid namespace it is pid 1, so its death is everybody's death; elsewhere it is a subreaper that sweeps its
//! children. It is not confined by Landlock (it has to mount masks again) but it is non-dumpable, takes orders from the
//! control socket only, and runs nothing but this file. The parent's death closes the socket, and that ends the tree.
//! Raw calls only: it runs in a forked copy of a process that may have had threads.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use super::step::{Failure, Step, write_report};
use super::{Plan, Terminal, WatchedMask, confine, setup};
use crate::raw::{Errno, check_int, io_error, last_errno, sys};

/// Orders from the parent are one byte: a signal number for the command's process group, or one of these.
pub(super) const GO: u8 = 200;
const END_ALL: u8 = 201;
const FOREGROUND: u8 = 202;
const KILL_ALL: u8 = 203;

/// What init tells the parent.
#[derive(Debug)]
pub enum Notice {
    /// The master of the command's own terminal.
    Terminal(OwnedFd),
    /// The command was stopped by this signal.
    Stopped(i32),
    Continued,
    /// The command ended with this wait status; what it left behind is being ended.
    Ended(i32),
}

const TERMINAL: i32 = 1;
const STOPPED: i32 = 2;
const CONTINUED: i32 = 3;
const ENDED: i32 = 4;

/// The parent's end of the control socket.
#[derive(Debug)]
pub struct Control(OwnedFd);

impl Control {
    pub(super) fn new(fd: OwnedFd) -> Control {
        Control(fd)
    }

    pub(super) fn send(&self, order: u8) -> io::Result<()> {
        // SAFETY: one byte, valid across the call. MSG_NOSIGNAL: a gone init is an error here, not a SIGPIPE.
        let n = unsafe { libc::send(self.0.as_raw_fd(), (&raw const order).cast(), 1, libc::MSG_NOSIGNAL) };
        if n == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Deliver `signal` to the command's process group.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        let order = u8::try_from(signal).ok().filter(|s| (1..=64).contains(s));
        self.send(order.ok_or_else(|| io_error(libc::EINVAL))?)
    }

    /// End the command and everything it started: TERM, grace, KILL.
    pub fn end_all(&self) -> io::Result<()> {
        self.send(END_ALL)
    }

    /// End everything at once, without manners.
    pub fn kill_all(&self) -> io::Result<()> {
        self.send(KILL_ALL)
    }

    /// Make the command's process group the terminal's foreground group again (after a stop).
    pub fn foreground(&self) -> io::Result<()> {
        self.send(FOREGROUND)
    }

    /// The next notice; `None` when init is gone. Call it when the socket is readable.
    pub fn receive(&self) -> io::Result<Option<Notice>> {
        let (words, fd) = match receive_words(self.0.as_raw_fd()) {
            Ok(Some(message)) => message,
            Ok(None) | Err(libc::ECONNRESET) => return Ok(None),
            Err(errno) => return Err(io_error(errno)),
        };
        Ok(Some(match (words[0], fd) {
            (TERMINAL, Some(fd)) => Notice::Terminal(fd),
            (STOPPED, _) => Notice::Stopped(words[1]),
            (CONTINUED, _) => Notice::Continued,
            (ENDED, _) => Notice::Ended(words[1]),
            _ => return Err(io_error(libc::EPROTO)),
        }))
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Entry of the forked process. Never returns to the caller's code.
pub(super) fn main(plan: &mut Plan, control: RawFd, report: RawFd, parents_end: RawFd) -> ! {
    // SAFETY: closing our copy of the parent's end, so that the parent's death shows as a hang-up.
    unsafe { libc::close(parents_end) };
    let code = match start(plan, control, report) {
        Ok(command) => Init { plan, control, command, pid_one: is_pid_one() }.serve(),
        Err(failure) => {
            write_report(report, failure);
            125
        }
    };
    // SAFETY: ends this process without running anything of the copied one.
    unsafe { libc::_exit(code) }
}

fn is_pid_one() -> bool {
    // SAFETY: no memory is passed. The raw call, because libc's view may be that of the forking process.
    let pid = unsafe { sys!(libc::SYS_getpid) };
    pid == Ok(1)
}

/// Wait for "go", set everything up, fork the command. Returns its pid as init sees it.
fn start(plan: &mut Plan, control: RawFd, report: RawFd) -> Result<i32, Failure> {
    block_signals().map_err(|e| (Step::Fork, 0, e))?;
    wait_for_go(control).map_err(|e| (Step::Fork, 0, e))?;
    tie_to_parent(control).map_err(|e| (Step::DeathSignal, 0, e))?;
    setup::run(plan)?;
    let slave = open_terminal(&plan.terminal, control).map_err(|e| (Step::Terminal, 0, e))?;
    // After the id maps were written, which a non-dumpable process may not.
    // SAFETY: no memory is passed.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    // SAFETY: a plain fork; both sides continue on their own copy.
    match unsafe { sys!(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } {
        Err(errno) => Err((Step::ForkCommand, 0, errno)),
        Ok(0) => command(plan, slave, report),
        Ok(pid) => {
            let tty = if let Terminal::Inherit { tty, .. } = plan.terminal { tty } else { -1 };
            close_all_but(control, tty);
            Ok(pid as i32)
        }
    }
}

fn command(plan: &mut Plan, slave: RawFd, report: RawFd) -> ! {
    let failure = match prepare(plan, slave).and_then(|()| confine::run(plan)) {
        Err(failure) => failure,
        Ok(never) => match never {},
    };
    write_report(report, failure);
    // SAFETY: ends this process without running anything of the copied one.
    unsafe { libc::_exit(125) }
}

/// Death signal, then a session on the pty or a process group of its own.
fn prepare(plan: &mut Plan, slave: RawFd) -> Result<(), Failure> {
    // SAFETY: prctl, setsid, ioctl and setpgid take numbers only here.
    unsafe {
        check_int(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0))
            .map_err(|e| (Step::DeathSignal, 0, e))?;
        if slave >= 0 {
            check_int(libc::setsid()).map_err(|e| (Step::Terminal, 0, e))?;
            check_int(libc::ioctl(slave, libc::TIOCSCTTY, 0)).map_err(|e| (Step::Terminal, 0, e))?;
            for fd in &mut plan.stdio {
                if *fd < 0 {
                    *fd = slave;
                }
            }
        } else {
            check_int(libc::setpgid(0, 0)).map_err(|e| (Step::Terminal, 0, e))?;
            if let Terminal::Inherit { tty, foreground: true } = plan.terminal {
                let group = libc::getpgrp();
                check_int(libc::ioctl(tty, libc::TIOCSPGRP, &raw const group))
                    .map_err(|e| (Step::Terminal, 0, e))?;
            }
        }
    }
    Ok(())
}

fn block_signals() -> Result<(), Errno> {
    // SAFETY: set is initialised by sigfillset before use.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        check_int(libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()))?;
    }
    Ok(())
}

fn wait_for_go(control: RawFd) -> Result<(), Errno> {
    match receive_order(control)? {
        Some(GO) => Ok(()),
        // The parent gave up or died.
        _ => Err(libc::ECANCELED),
    }
}

/// In a pid namespace SIGKILL on the parent's death is enough: the kernel ends the rest. Elsewhere init must live on
/// to sweep, and learns of the death from the socket.
fn tie_to_parent(control: RawFd) -> Result<(), Errno> {
    // SAFETY: prctl takes numbers; poll's array lives across the call.
    unsafe {
        if is_pid_one() {
            check_int(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0))?;
        } else {
            check_int(libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))?;
        }
        let mut poll = libc::pollfd { fd: control, events: 0, revents: 0 };
        libc::poll(&raw mut poll, 1, 0);
        if poll.revents & libc::POLLHUP != 0 { Err(libc::ECANCELED) } else { Ok(()) }
    }
}

/// A pty from the devpts this process sees (its own instance where there is a mount namespace).
fn open_terminal(terminal: &Terminal, control: RawFd) -> Result<RawFd, Errno> {
    let Terminal::Pty { settings, size } = terminal else { return Ok(-1) };
    // SAFETY: ioctl arguments are valid for their requests and live across the calls.
    unsafe {
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        let master = check_int(libc::open(c"/dev/ptmx".as_ptr(), flags | libc::O_NONBLOCK))?;
        let unlock: libc::c_int = 0;
        check_int(libc::ioctl(master, libc::TIOCSPTLCK, &raw const unlock))?;
        let slave = check_int(libc::ioctl(master, libc::TIOCGPTPEER, flags))?;
        check_int(libc::ioctl(slave, libc::TCSETS, std::ptr::from_ref::<libc::termios>(settings)))?;
        check_int(libc::ioctl(slave, libc::TIOCSWINSZ, &raw const *size))?;
        send_words(control, [TERMINAL, 0], Some(master))?;
        libc::close(master);
        Ok(slave)
    }
}

/// Drop everything inherited, the caller's standard streams included: a reader of the command's output must see its
/// end when the command ends, not when init does. The control socket moves to descriptor 0, the terminal to 1.
fn close_all_but(control: RawFd, tty: RawFd) {
    // SAFETY: only descriptor numbers are passed; a failing dup2 leaves nothing worse than a terminal not handed over.
    unsafe {
        let tty = if tty >= 0 { libc::dup(tty) } else { -1 };
        libc::dup2(control, CONTROL);
        if tty >= 0 {
            libc::dup2(tty, TTY);
        } else {
            libc::close(TTY);
        }
        let _ = sys!(libc::SYS_close_range, 2, u32::MAX, 0);
    }
}

const CONTROL: RawFd = 0;
const TTY: RawFd = 1;

struct Init<'a> {
    plan: &'a Plan,
    control: RawFd,
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
    fn serve(mut self) -> i32 {
        self.control = CONTROL;
        let Ok(children) = signal_fd(libc::SIGCHLD) else { return 125 };
        let watch = watch_masks(&self.plan.masks);
        let mut ended = false;
        loop {
            let mut polls = [poll_in(self.control), poll_in(children), poll_in(watch)];
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
        match receive_order(self.control) {
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
                ended |= self.tell(status);
            }
        }
    }

    fn tell(&self, status: i32) -> bool {
        let message = if libc::WIFSTOPPED(status) {
            [STOPPED, libc::WSTOPSIG(status)]
        } else if libc::WIFCONTINUED(status) {
            [CONTINUED, 0]
        } else {
            [ENDED, status]
        };
        // A parent that cannot be told is gone; the hang-up ends the tree.
        let _ = send_words(self.control, message, None);
        message[0] == ENDED
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

fn receive_order(fd: RawFd) -> Result<Option<u8>, Errno> {
    let mut order = 0u8;
    // SAFETY: one byte, valid across the call.
    match unsafe { libc::recv(fd, (&raw mut order).cast(), 1, 0) } {
        0 => Ok(None),
        1 => Ok(Some(order)),
        _ => Err(last_errno()),
    }
}

/// Room for one descriptor in a control message, aligned as the kernel wants it.
#[repr(C, align(8))]
struct Ancillary([u8; 32]);

fn send_words(fd: RawFd, words: [i32; 2], pass: Option<RawFd>) -> Result<(), Errno> {
    let mut ancillary = Ancillary([0; 32]);
    let mut iov = libc::iovec { iov_base: words.as_ptr().cast_mut().cast(), iov_len: size_of_val(&words) };
    // SAFETY: every pointer in msg is valid across the call; the control buffer holds exactly one descriptor.
    unsafe {
        let mut msg: libc::msghdr = std::mem::zeroed();
        msg.msg_iov = &raw mut iov;
        msg.msg_iovlen = 1;
        if let Some(passed) = pass {
            msg.msg_control = ancillary.0.as_mut_ptr().cast();
            msg.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
            let header = libc::CMSG_FIRSTHDR(&raw const msg);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
            libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(passed);
        }
        if libc::sendmsg(fd, &raw const msg, libc::MSG_NOSIGNAL) < 0 { Err(last_errno()) } else { Ok(()) }
    }
}

type Received = Option<([i32; 2], Option<OwnedFd>)>;

fn receive_words(fd: RawFd) -> Result<Received, Errno> {
    let mut words = [0i32; 2];
    let mut ancillary = Ancillary([0; 32]);
    let mut iov = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of_val(&words) };
    // SAFETY: every pointer in msg is valid across the call; a received descriptor is ours.
    unsafe {
        let mut msg: libc::msghdr = std::mem::zeroed();
        msg.msg_iov = &raw mut iov;
        msg.msg_iovlen = 1;
        msg.msg_control = ancillary.0.as_mut_ptr().cast();
        msg.msg_controllen = ancillary.0.len() as _;
        let n = libc::recvmsg(fd, &raw mut msg, libc::MSG_CMSG_CLOEXEC);
        if n < 0 {
            return Err(last_errno());
        }
        if n == 0 {
            return Ok(None);
        }
        let header = libc::CMSG_FIRSTHDR(&raw const msg);
        let passed = (!header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS)
            .then(|| OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned()));
        Ok(Some((words, passed)))
    }
}
