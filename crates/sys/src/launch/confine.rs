//! Confinement of the command itself, from limits to exec. Raw calls only, each failing step named.

use std::convert::Infallible;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, RawFd};

use super::step::{Failure, Step};
use super::{CStringArray, ChildTask, Executable, LaunchPlan, listener_handover};
use crate::raw::{Errno, check_int, sys};

/// Confines this process and executes the program. `Infallible`: success does not return.
///
/// The listener, if there is to be one, is offered to `init`.
pub(super) fn run(plan: &LaunchPlan, init: Option<RawFd>) -> Result<Infallible, Failure> {
    let confine = &plan.confine;
    at(Step::Limits, set_limits(&confine.limits))?;
    at(Step::DropCapabilities, drop_capabilities())?;
    at(Step::NoNewPrivs, no_new_privs())?;
    if let Some(ruleset) = &confine.ruleset {
        at(Step::Landlock, crate::landlock::restrict(ruleset.as_raw_fd(), 0))?;
    }
    at(Step::WorkDir, enter(&confine.workdir))?;
    at(Step::Stdio, connect_stdio(plan.stdio))?;
    at(Step::CloseFds, close_on_exec())?;
    at(Step::Stdio, reset_signals(&confine.signal_mask))?;
    if let Some(init) = init {
        // Init takes the listener out of this process, which a non-dumpable one does not allow.
        // SAFETY: no memory is passed.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) };
        let listener = at(Step::Seccomp, crate::seccomp::install_with_listener(&confine.filter))?;
        at(Step::HandOver, listener_handover::offer(init, listener))?;
    } else if !confine.filter.is_empty() {
        at(Step::Seccomp, crate::seccomp::install_raw(&confine.filter, false))?;
    }
    match &plan.program.0 {
        ChildTask::Execute(program) => at(Step::Exec, execute(program)),
        ChildTask::Probe { secret, target } => exit(probe(secret, target)),
        ChildTask::Nothing => exit(0),
    }
}

fn exit(code: i32) -> ! {
    // SAFETY: ends this process without running anything of the copied one.
    unsafe { libc::_exit(code) }
}

fn probe(secret: &CStr, target: &CStr) -> i32 {
    // SAFETY: both paths are NUL-terminated.
    unsafe {
        let read = libc::open(secret.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) >= 0;
        let write = libc::open(target.as_ptr(), libc::O_WRONLY | libc::O_CREAT | libc::O_CLOEXEC, 0o600) >= 0;
        i32::from(read) | (i32::from(write) << 1)
    }
}

/// Names the step of a failed call.
pub(super) fn at<T>(step: Step, result: Result<T, Errno>) -> Result<T, Failure> {
    result.map_err(|errno| (step, 0, errno))
}

fn set_limits(limits: &[(u32, u64)]) -> Result<(), Errno> {
    for (resource, limit) in limits {
        let value = libc::rlimit { rlim_cur: *limit, rlim_max: *limit };
        // SAFETY: value lives across the call.
        check_int(unsafe { libc::setrlimit(*resource as _, &raw const value) })?;
    }
    Ok(())
}

#[repr(C)]
struct CapHeader {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct CapData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const CAP_VERSION_3: u32 = 0x2008_0522;
/// Bits NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, each with its lock: uid 0 alone gives nothing back.
const SECUREBITS: u64 = 0b1100_1111;

/// Empties every capability set, so that nothing executed later has one. Without CAP_SETPCAP the bounding set cannot be
/// emptied; it does not have to be then, since no_new_privs keeps the rest empty.
pub(super) fn drop_capabilities() -> Result<(), Errno> {
    // SAFETY: prctl takes numbers here; capset's header and data live across the call.
    unsafe {
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0);
        for cap in 0..64 {
            if libc::prctl(libc::PR_CAPBSET_DROP, cap, 0, 0, 0) != 0 {
                break;
            }
        }
        let header = CapHeader { version: CAP_VERSION_3, pid: 0 };
        let none = [CapData { effective: 0, permitted: 0, inheritable: 0 }; 2];
        sys!(libc::SYS_capset, &raw const header, none.as_ptr()).map(drop)
    }
}

pub(super) fn no_new_privs() -> Result<(), Errno> {
    // SAFETY: no memory is passed.
    check_int(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }).map(drop)
}

fn enter(dir: &CStr) -> Result<(), Errno> {
    // SAFETY: dir is NUL-terminated.
    check_int(unsafe { libc::chdir(dir.as_ptr()) }).map(drop)
}

fn connect_stdio(stdio: [RawFd; 3]) -> Result<(), Errno> {
    for (target, source) in (0..).zip(stdio) {
        if source >= 0 {
            // SAFETY: both are descriptors; a bad one is an error, not undefined.
            check_int(unsafe { libc::dup2(source, target) })?;
        }
    }
    Ok(())
}

/// Marks every descriptor from 3 up close-on-exec; until exec the report pipe is still needed.
fn close_on_exec() -> Result<(), Errno> {
    // SAFETY: no memory is passed.
    unsafe { sys!(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) }.map(drop)
}

/// Restores default signal dispositions. Rust ignores SIGPIPE at start and Python also SIGXFSZ; the command expects the
/// default. A shell may ignore SIGTTIN and SIGTTOU, and the command's group is in the background until it asks for the
/// terminal. Other ignored signals (nohup) stay ignored.
fn reset_signals(mask: &libc::sigset_t) -> Result<(), Errno> {
    // SAFETY: mask lives across the call; SIG_DFL is a valid disposition.
    unsafe {
        for signal in [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGTTIN, libc::SIGTTOU] {
            libc::signal(signal, libc::SIG_DFL);
        }
        check_int(libc::sigprocmask(libc::SIG_SETMASK, mask, std::ptr::null_mut())).map(drop)
    }
}

fn execute(program: &Executable) -> Result<Infallible, Errno> {
    // As execve does it, under another number: where starting programs is trapped, no supervisor answers yet.
    let start = |path: &CStr, argv: &CStringArray| {
        // SAFETY: all arrays are NULL-terminated arrays of C strings that outlive the call.
        unsafe {
            sys!(libc::SYS_execveat, libc::AT_FDCWD, path.as_ptr(), argv.as_ptr(), program.envp.as_ptr(), 0)
        }
    };
    let errno = start(&program.path, &program.argv).err().unwrap_or(libc::EINVAL);
    if errno == libc::ENOEXEC {
        // Its own failure says less than the first one.
        let _ = start(c"/bin/sh", &program.script_argv);
    }
    Err(errno)
}
