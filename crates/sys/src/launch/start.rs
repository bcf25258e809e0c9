//! Steps from the fork to the command's exec, and init on the other side of it. Raw calls only: this runs in a forked
//! copy of a process that may have had threads.

use std::os::fd::RawFd;

use super::confine::at;
use super::control::{GO, SERVING, TERMINAL, receive_order, send_words};
use super::init::{CONTROL, Init, PAIRS, TTY, WATCH, is_pid_one, watch_masks};
use super::listener_handover::{self, SocketEnds};
use super::step::{Failure, Step, write_report};
use super::{LaunchPlan, NOT_RUN, Terminal, confine, setup};
use crate::raw::{Errno, check_int, sys};

/// Entry of the forked process. Never returns to the caller's code.
pub(super) fn main(plan: &mut LaunchPlan, control: RawFd, report: RawFd, parents_end: RawFd) -> ! {
    // SAFETY: closing our copy of the parent's end, so that the parent's death shows as a hang-up.
    unsafe { libc::close(parents_end) };
    let code = match start(plan, control, report) {
        Ok(command) => Init::new(plan, command).serve(),
        Err(failure) => {
            write_report(report, failure);
            i32::from(NOT_RUN)
        }
    };
    // SAFETY: ends this process without running anything of the copied one.
    unsafe { libc::_exit(code) }
}

/// Waits for "go", sets everything up, forks the command. Returns its pid as init sees it.
fn start(plan: &mut LaunchPlan, control: RawFd, report: RawFd) -> Result<i32, Failure> {
    at(Step::Fork, block_signals())?;
    at(Step::Stdio, fill_standard())?;
    at(Step::Fork, wait_for_go(control))?;
    at(Step::DeathSignal, tie_to_parent(control))?;
    setup::run(plan)?;
    if let Some(port) = plan.serve {
        at(Step::Serve, serve(port, control))?;
    }
    let slave = at(Step::Terminal, open_terminal(&plan.terminal, control))?;
    at(Step::Terminal, lead_session(&plan.terminal, slave))?;
    let watch = at(Step::Watch, watch_masks(&plan.masks))?;
    let ends = at(Step::HandOver, plan.confine.listen.then(listener_handover::ends).transpose())?;
    // After the id maps were written, which a non-dumpable process may not do.
    // SAFETY: no memory is passed.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    // SAFETY: a plain fork; both sides continue on their own copy.
    match unsafe { sys!(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } {
        Err(errno) => Err((Step::ForkCommand, 0, errno)),
        Ok(0) => command(plan, slave, report, ends),
        Ok(pid) => {
            // Init ends with this failure, and the command with it.
            let take = |ends| listener_handover::take(ends, pid as i32, control);
            let pairs = at(Step::HandOver, ends.map_or(Ok(-1), take))?;
            // Only where the command may still have to be given it.
            let tty = match plan.terminal {
                Terminal::Inherit { tty, .. } => tty,
                Terminal::Pty { foreground: false, .. } => slave,
                Terminal::Pty { .. } | Terminal::Detached => -1,
            };
            close_all_but(control, tty, watch, pairs);
            Ok(pid as i32)
        }
    }
}

fn command(plan: &mut LaunchPlan, slave: RawFd, report: RawFd, ends: Option<SocketEnds>) -> ! {
    let confined = |plan: &mut LaunchPlan| confine::run(plan, ends.map(|ends| ends.command));
    let failure = match prepare(plan, slave).and_then(|()| confined(plan)) {
        Err(failure) => failure,
        Ok(never) => match never {},
    };
    write_report(report, failure);
    // SAFETY: ends this process without running anything of the copied one.
    unsafe { libc::_exit(i32::from(NOT_RUN)) }
}

/// Sets the death signal, then a process group of its own, with the pty, or the caller's terminal where it should.
fn prepare(plan: &mut LaunchPlan, slave: RawFd) -> Result<(), Failure> {
    // SAFETY: prctl, setsid, ioctl and setpgid take numbers only here.
    unsafe {
        let tied = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        at(Step::DeathSignal, check_int(tied))?;
        at(Step::Terminal, check_int(libc::setpgid(0, 0)))?;
        let tty = match plan.terminal {
            Terminal::Pty { foreground: true, .. } => slave,
            Terminal::Inherit { tty, foreground: true } => tty,
            Terminal::Pty { .. } | Terminal::Inherit { .. } | Terminal::Detached => -1,
        };
        if tty >= 0 {
            let group = libc::getpgrp();
            at(Step::Terminal, check_int(libc::ioctl(tty, libc::TIOCSPGRP, &raw const group)))?;
        }
        if slave >= 0 {
            for fd in &mut plan.stdio {
                if *fd < 0 {
                    *fd = slave;
                }
            }
        }
    }
    Ok(())
}

/// Blocks all signals. A host that ignores SIGCHLD would hide the command's end from init.
fn block_signals() -> Result<(), Errno> {
    // SAFETY: set is initialised by sigfillset before use; SIG_DFL is a valid disposition.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        check_int(libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut())).map(drop)
    }
}

/// Opens descriptors 0 to 2 in a host without standard streams, so that nothing else takes their numbers until exec.
fn fill_standard() -> Result<(), Errno> {
    loop {
        // SAFETY: the path is NUL-terminated; the descriptor closed is the one just made.
        unsafe {
            let fd = check_int(libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC))?;
            if fd > 2 {
                libc::close(fd);
                return Ok(());
            }
        }
    }
}

fn wait_for_go(control: RawFd) -> Result<(), Errno> {
    match receive_order(control)? {
        Some(GO) => Ok(()),
        // The parent gave up or died.
        _ => Err(libc::ECANCELED),
    }
}

/// Makes a listener in this network, passes it out, and waits until the parent serves it. No copy is kept.
fn serve(port: u16, control: RawFd) -> Result<(), Errno> {
    listener_handover::pass_on(control, SERVING, setup::listen_on_loopback(port)?)?;
    wait_for_go(control)
}

/// Ties init to the parent. In a pid namespace SIGKILL on the parent's death is enough: the kernel ends the rest.
/// Elsewhere init must live on to sweep, and learns of the death from the socket.
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

/// Opens a pty from the devpts this process sees (its own instance where there is a mount namespace).
fn open_terminal(terminal: &Terminal, control: RawFd) -> Result<RawFd, Errno> {
    let Terminal::Pty { settings, size, .. } = terminal else { return Ok(-1) };
    // SAFETY: ioctl arguments are valid for their requests and live across the calls.
    unsafe {
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        let master = check_int(libc::open(c"/dev/ptmx".as_ptr(), flags | libc::O_NONBLOCK))?;
        let unlock: libc::c_int = 0;
        check_int(libc::ioctl(master, libc::TIOCSPTLCK, &raw const unlock))?;
        let slave = check_int(libc::ioctl(master, libc::TIOCGPTPEER, flags))?;
        check_int(libc::ioctl(slave, libc::TCSETS, std::ptr::from_ref::<libc::termios>(settings)))?;
        check_int(libc::ioctl(slave, libc::TIOCSWINSZ, &raw const *size))?;
        send_words(control, [TERMINAL, 0], Some(master), 0)?;
        libc::close(master);
        Ok(slave)
    }
}

/// Makes init the session leader on the pty, not the command: a group whose parents are all in other sessions is
/// orphaned, and the kernel does not let Ctrl-Z stop it.
fn lead_session(terminal: &Terminal, slave: RawFd) -> Result<(), Errno> {
    // SAFETY: only numbers are passed.
    unsafe {
        if !matches!(terminal, Terminal::Inherit { .. }) {
            check_int(libc::setsid())?;
        }
        if slave >= 0 {
            check_int(libc::ioctl(slave, libc::TIOCSCTTY, 0))?;
        }
    }
    Ok(())
}

/// Closes everything inherited, the caller's standard streams included: a reader of the command's output must see its
/// end when the command ends, not when init does. The control socket moves to descriptor 0, the terminal to 1.
fn close_all_but(control: RawFd, tty: RawFd, watch: RawFd, pairs: RawFd) {
    // SAFETY: only descriptor numbers are passed; a failing dup2 leaves nothing worse than a terminal not handed over.
    unsafe {
        let keep =
            |fd: RawFd, number: RawFd| if fd >= 0 { libc::dup2(fd, number) } else { libc::close(number) };
        let tty = if tty >= 0 { libc::dup(tty) } else { -1 };
        libc::dup2(control, CONTROL);
        keep(tty, TTY);
        keep(watch, WATCH);
        // A kept descriptor may have the number of another.
        let pairs = if pairs >= 0 { libc::fcntl(pairs, libc::F_DUPFD_CLOEXEC, PAIRS + 1) } else { -1 };
        keep(pairs, PAIRS);
        let _ = sys!(libc::SYS_close_range, PAIRS + 1, u32::MAX, 0);
    }
}
