//! Launcher: one straight line from fork to exec, compiled before it starts.
//!
//! A [`LaunchPlan`] holds every path, map, rule and program as the kernel wants it. After the fork only raw calls run: no
//! allocation, no locks, no policy decisions. In the supervised form the forked process becomes a small init (pid 1 of
//! a pid namespace where there is one) which sets up the namespaces, forks the command and outlives it; see `init.rs`.
//! A failing step is reported as ([`Step`], errno) and nothing after it happens.

mod confine;
mod control;
mod init;
mod listener_handover;
mod setup;
mod shared_memory;
mod socketpairs;
mod start;
mod step;

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use libc::c_char;

use crate::process::Signals;
use crate::raw::{Errno, io_error, sys};
use crate::seccomp::Instruction;
pub use control::{Control, Notice};
pub use socketpairs::Pairs;
pub use step::{LaunchError, Step};

/// Exit code when the command was not run.
pub const NOT_RUN: u8 = 125;

/// One operation on the namespaces of the process that performs it.
#[derive(Debug)]
pub enum SetupOp {
    /// Maps one user and one group to themselves; `setgroups` is given up for it.
    MapIds { uid_map: CString, gid_map: CString },
    /// Keeps changes of this mount namespace here, and later ones of the host out.
    MakePrivate,
    /// Keeps a detached copy of the mounts at `path` in `slot`.
    CloneTree { path: CString, slot: usize },
    /// Makes everything from `path` down read-only and without setuid.
    ReadOnly { path: CString },
    /// Puts the copy kept in `slot` at `target`.
    PlaceTree { slot: usize, target: CString },
    /// Mounts `source` over `target`, read-only. With `if_there`, a target that even the child cannot reach is skipped.
    Mask { source: CString, target: CString, if_there: bool },
    /// Mounts `path` over itself, so that no process in this mount namespace can rename or remove it.
    Pin { path: CString },
    /// Mounts a read-only copy of this object over itself, also of a link.
    Hold { path: CString },
    /// Mounts `source` over `target`, writable.
    Copy { source: CString, target: CString },
    /// Mounts a new file system.
    Mount { kind: CString, target: CString, flags: libc::c_ulong, data: CString },
    /// Brings up `lo` in a new network namespace.
    LoopbackUp,
    /// Adds a Landlock rule for a path as it is now, in this mount namespace.
    AllowPath { path: CString, access: u64 },
}

/// Mask that a process outside could remove by replacing the name, so that init has to watch it.
#[derive(Debug)]
pub struct WatchedMask {
    pub target: CString,
    pub parent: CString,
    pub cover: Cover,
}

/// Cover of a watched name.
#[derive(Debug)]
pub enum Cover {
    /// An empty mask: `dir` while it is a directory, `file` while it is anything else.
    Nothing { dir: CString, file: CString },
    /// The object itself, read-only.
    Itself,
    /// This file, writable.
    Copy(CString),
}

/// Terminal of the child.
#[derive(Debug)]
pub enum Terminal {
    /// As the caller has it; the command gets a process group of its own. `tty` is the controlling terminal, or -1;
    /// with `foreground` the command's group becomes the one that may read from it and gets its Ctrl-C.
    Inherit { tty: RawFd, foreground: bool },
    /// A pty of its own, with these settings; its master reaches the parent as a notice. Without `foreground` the
    /// command is in its background, and stops when it wants to read from it.
    Pty { settings: Box<libc::termios>, size: libc::winsize, foreground: bool },
    /// None: a session of its own, which has no terminal and cannot get the caller's.
    Detached,
}

/// Confinement of the command itself, in this order, ending in exec.
#[derive(Debug)]
pub struct Confine {
    /// Limits as (resource, soft and hard limit).
    pub limits: Vec<(u32, u64)>,
    pub ruleset: Option<OwnedFd>,
    pub filter: Vec<Instruction>,
    /// Whether calls that the filter does not decide go to the parent: see [`Launched::hand_over`]. Needs an init.
    pub listen: bool,
    pub workdir: CString,
    pub signal_mask: libc::sigset_t,
}

/// Task of the confined process.
#[derive(Debug)]
pub struct ChildProgram(ChildTask);

#[derive(Debug)]
enum ChildTask {
    Execute(Executable),
    /// Exits with 0 if neither file could be opened; bit 0: `secret` was read, bit 1: `target` was written.
    Probe {
        secret: CString,
        target: CString,
    },
    /// Exits with 0.
    Nothing,
}

#[derive(Debug)]
struct Executable {
    path: CString,
    argv: CStringArray,
    /// Arguments `sh path args…`, for a script without an interpreter line, as `execvp` would do it.
    script_argv: CStringArray,
    envp: CStringArray,
}

impl ChildProgram {
    /// Program at `path`, the resolved file; `argv[0]` stays what the caller wrote.
    pub fn new(path: CString, argv: Vec<CString>, env: Vec<CString>) -> ChildProgram {
        let mut script = vec![c"sh".to_owned(), path.clone()];
        script.extend(argv.iter().skip(1).cloned());
        ChildProgram(ChildTask::Execute(Executable {
            path,
            argv: CStringArray::new(argv),
            script_argv: CStringArray::new(script),
            envp: CStringArray::new(env),
        }))
    }

    /// Probe that tries to escape instead of executing anything; see `nono setup`'s canary.
    pub fn probe(secret: CString, target: CString) -> ChildProgram {
        ChildProgram(ChildTask::Probe { secret, target })
    }

    /// Program that just ends, once everything before was set up.
    pub fn nothing() -> ChildProgram {
        ChildProgram(ChildTask::Nothing)
    }
}

#[derive(Debug)]
pub struct LaunchPlan {
    /// Flags `CLONE_NEW*`; 0 where namespaces are not available.
    pub namespaces: i32,
    pub setup: Vec<SetupOp>,
    /// Detached mounts between `CloneTree` and `PlaceTree`.
    pub slots: Vec<RawFd>,
    pub masks: Vec<WatchedMask>,
    /// TCP port of the command's own loopback on which the parent serves: see [`Launched::serving`]. Needs an init.
    pub serve: Option<u16>,
    pub confine: Confine,
    pub program: ChildProgram,
    /// Descriptors that become 0, 1 and 2; -1 keeps the caller's.
    pub stdio: [RawFd; 3],
    pub terminal: Terminal,
    /// Milliseconds between TERM and KILL for remaining processes of the command.
    pub grace_ms: u32,
    /// Milliseconds after which everything is ended, stopped or not, whatever the parent does.
    pub time_ms: Option<u32>,
}

/// Started command, seen from outside.
#[derive(Debug)]
pub struct Launched {
    /// Pid of init in the caller's pid namespace.
    pub pid: i32,
    pub pidfd: OwnedFd,
    pub control: Control,
    report: OwnedFd,
}

/// Forks init, which waits for [`Launched::go`].
pub fn spawn(plan: &mut LaunchPlan) -> Result<Launched, LaunchError> {
    let (ours, theirs) = socket_pair().map_err(|e| LaunchError::new(Step::Fork, e))?;
    let (report_read, report_write) = pipe().map_err(|e| LaunchError::new(Step::Fork, e))?;
    let mut pidfd: RawFd = -1;
    // No SIGCHLD at its end: the host's own handler, and its waiting for children, must not see this one.
    let flags = plan.namespaces | libc::CLONE_PIDFD;
    // A handler of the host must not run in the child; its first step is to block signals for itself.
    let quiet = Signals::aside().map_err(|e| LaunchError::io(Step::Fork, &e))?;
    // SAFETY: a fork (no CLONE_VM): the child continues on its own copy of this stack; pidfd is valid for the write.
    let pid = unsafe { sys!(libc::SYS_clone, flags, 0, &raw mut pidfd, 0, 0) };
    if pid != Ok(0) {
        drop(quiet);
    }
    match pid {
        Err(errno) => {
            Err(LaunchError::new(if plan.namespaces == 0 { Step::Fork } else { Step::Namespaces }, errno))
        }
        Ok(0) => start::main(plan, theirs.as_raw_fd(), report_write.as_raw_fd(), ours.as_raw_fd()),
        Ok(pid) => {
            drop(theirs);
            drop(report_write);
            // SAFETY: the kernel stored a new descriptor there; it has no other owner.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            let pid = i32::try_from(pid).map_err(|_| LaunchError::new(Step::Fork, libc::EOVERFLOW))?;
            Ok(Launched { pid, pidfd, control: Control::new(ours), report: report_read })
        }
    }
}

/// Descriptors that a mediator needs of its sandbox.
#[derive(Debug)]
pub struct HandedOver {
    pub listener: OwnedFd,
    /// Root directory as the command sees it, mounts and masks included. Only a start for path resolution.
    pub root: OwnedFd,
    /// Lists the sockets of the command's network namespace.
    pub socket_list: OwnedFd,
    /// Makes socket pairs there.
    pub pairs: Pairs,
    /// Master of the command's terminal, where it has one of its own.
    pub terminal: Option<OwnedFd>,
}

impl Launched {
    /// Receives what init handed over for mediation. Call it once the command runs.
    pub fn hand_over(&self) -> io::Result<HandedOver> {
        let (mut root, mut socket_list, mut pairs, mut terminal) = (None, None, None, None);
        let missing = || io_error(libc::EPROTO);
        loop {
            match self.control.receive()?.ok_or_else(missing)? {
                Notice::Root(fd) => root = Some(fd),
                Notice::SocketList(fd) => socket_list = Some(fd),
                Notice::Pairs(fd) => pairs = Some(Pairs::new(fd)),
                Notice::Terminal(fd) => terminal = Some(fd),
                Notice::Listener(listener) => {
                    let root = root.ok_or_else(missing)?;
                    let socket_list = socket_list.ok_or_else(missing)?;
                    let pairs = pairs.ok_or_else(missing)?;
                    return Ok(HandedOver { listener, root, socket_list, pairs, terminal });
                }
                // What comes only once the command runs.
                _ => return Err(missing()),
            }
        }
    }

    /// Lets the child make the listener of a plan with a port to serve, and takes it; then comes [`Launched::go`].
    pub fn serving(&self) -> Result<OwnedFd, LaunchError> {
        self.begin()?;
        match self.control.receive() {
            Ok(Some(Notice::Serving(listener))) => Ok(listener),
            Err(error) => Err(LaunchError::io(Step::Serve, &error)),
            // Init is gone, and reported the reason if it could.
            Ok(None) => {
                self.begun()?;
                Err(LaunchError::new(Step::Serve, libc::EPROTO))
            }
            Ok(Some(_)) => Err(LaunchError::new(Step::Serve, libc::EPROTO)),
        }
    }

    /// Lets the child go on, and waits until the command was executed or a step failed.
    pub fn go(&self) -> Result<(), LaunchError> {
        self.begin()?;
        self.begun()
    }

    /// Lets the child go on.
    pub fn begin(&self) -> Result<(), LaunchError> {
        self.control.send(control::GO).map_err(|e| LaunchError::io(Step::Fork, &e))
    }

    /// Waits until the command was executed or a step failed.
    pub fn begun(&self) -> Result<(), LaunchError> {
        step::read_report(self.report.as_raw_fd())
    }

    /// Waits until init is gone, and returns the command's wait status, if it got that far.
    pub fn finish(self) -> Option<i32> {
        let mut ended = None;
        while let Ok(Some(notice)) = self.control.receive() {
            if let Notice::Ended(status) = notice {
                ended = Some(status);
            }
        }
        ended
    }
}

/// Dropping a launched command ends it, and leaves no zombie to a host that goes on.
impl Drop for Launched {
    fn drop(&mut self) {
        // A failure means that init is gone already and was reaped.
        let _ = self.control.kill_all();
        let _ = crate::wait::reap(std::os::fd::AsFd::as_fd(&self.pidfd));
    }
}

/// Confines and replaces the calling process. Returns only on failure; the process is then half confined and must exit.
pub fn replace(plan: &mut LaunchPlan) -> LaunchError {
    let result = unshare(plan.namespaces)
        .map_err(|e| (Step::Namespaces, 0, e))
        .and_then(|()| setup::run(plan))
        .and_then(|()| confine::run(plan, None));
    match result {
        Err((step, index, errno)) => LaunchError { step, index, errno },
        Ok(never) => match never {},
    }
}

/// Confines the calling process and carries on in it (the parent of a monitored run).
pub fn confine_self(ruleset: &crate::landlock::Ruleset, filter: &[Instruction]) -> Result<(), LaunchError> {
    confine::drop_capabilities().map_err(|e| LaunchError::new(Step::DropCapabilities, e))?;
    confine::no_new_privs().map_err(|e| LaunchError::new(Step::NoNewPrivs, e))?;
    ruleset.restrict_self(false).map_err(|e| LaunchError::io(Step::Landlock, &e))?;
    crate::seccomp::install(filter, false).map_err(|e| LaunchError::io(Step::Seccomp, &e))
}

/// Empties every capability set of the calling thread.
pub fn drop_capabilities() -> io::Result<()> {
    confine::drop_capabilities().map_err(io_error)
}

fn unshare(flags: i32) -> Result<(), Errno> {
    if flags == 0 {
        return Ok(());
    }
    // SAFETY: no memory is passed.
    unsafe { sys!(libc::SYS_unshare, flags) }.map(|_| ())
}

pub(crate) fn socket_pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    above_standard(own_pair(crate::raw::socket_pair(0)?))
}

pub(crate) fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let mut fds: [RawFd; 2] = [-1; 2];
    // SAFETY: fds has room for two descriptors.
    crate::raw::check_int(unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) })?;
    above_standard(own_pair(fds))
}

fn own_pair(fds: [RawFd; 2]) -> (OwnedFd, OwnedFd) {
    // SAFETY: the kernel just made both; they have no other owner.
    unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) }
}

/// Moves both descriptors above 2: without standard streams they would have the numbers that the command's need.
fn above_standard(pair: (OwnedFd, OwnedFd)) -> Result<(OwnedFd, OwnedFd), Errno> {
    let above = |fd: OwnedFd| -> Result<OwnedFd, Errno> {
        if fd.as_raw_fd() > 2 {
            return Ok(fd);
        }
        // SAFETY: only numbers; the new descriptor has no other owner.
        unsafe {
            let moved = crate::raw::check_int(libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3))?;
            Ok(OwnedFd::from_raw_fd(moved))
        }
    };
    Ok((above(pair.0)?, above(pair.1)?))
}

/// Pipe for a child's output: (read end, write end), both close-on-exec.
pub fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    pipe().map_err(io_error)
}

/// NULL-terminated array of C strings that can be handed to execve after a fork.
#[derive(Debug)]
struct CStringArray {
    pointers: Vec<*const c_char>,
    // The pointers point into these.
    _strings: Vec<CString>,
}

impl CStringArray {
    fn new(strings: Vec<CString>) -> CStringArray {
        let mut pointers: Vec<*const c_char> = strings.iter().map(|s| s.as_ptr()).collect();
        pointers.push(std::ptr::null());
        CStringArray { pointers, _strings: strings }
    }

    fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}

/// Descriptor of a borrowed handle, for [`LaunchPlan::stdio`].
pub fn raw(fd: BorrowedFd<'_>) -> RawFd {
    fd.as_raw_fd()
}
