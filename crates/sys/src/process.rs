//! This process: identity, hardening, limits, signals as values.

use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::other_process::status_line;
use crate::raw::{check_int, done, io_error};

pub fn uid() -> u32 {
    // SAFETY: cannot fail, passes no memory.
    unsafe { libc::geteuid() }
}

/// Leaves the terminal and the session of the parent process, and lowers its priority for processor and disk. What is
/// not allowed is left as it is: nothing depends on it.
///
/// Not `SCHED_IDLE`: on a busy machine it gets no time at all, and this process holds a lock that others wait for.
pub fn step_aside() {
    const IOPRIO_WHO_PROCESS: libc::c_int = 1;
    const IOPRIO_IDLE: libc::c_int = 3 << 13;
    // SAFETY: all take numbers only, and a parameter that lives across the call. A group leader cannot leave its session.
    unsafe {
        libc::setsid();
        libc::setpriority(libc::PRIO_PROCESS, 0, 19);
        let mut parameter: libc::sched_param = std::mem::zeroed();
        parameter.sched_priority = 0;
        libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameter);
        libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE);
    }
}

pub fn gid() -> u32 {
    // SAFETY: cannot fail, passes no memory.
    unsafe { libc::getegid() }
}

/// Sets whether other processes of the same uid may trace this process; returns the former setting.
pub fn set_dumpable(dumpable: bool) -> io::Result<bool> {
    // SAFETY: prctl takes numbers only here.
    unsafe {
        let before = check_int(libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0)).map_err(io_error)?;
        done(libc::prctl(libc::PR_SET_DUMPABLE, libc::c_int::from(dumpable), 0, 0, 0))?;
        Ok(before == 1)
    }
}

/// Forbids core files of this process.
pub fn forbid_core_dumps() -> io::Result<()> {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit lives across the call.
    done(unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) })
}

/// Closes every descriptor from `first` on. For a process that has just begun, where nothing owns any of them yet.
pub fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: only numbers.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Shows these arguments in `/proc/<pid>/cmdline`, cut to the available room, instead of those this process was started
/// with. Any later reader of its arguments, inside or outside, gets these.
pub fn show_arguments(arguments: &[&OsStr]) -> io::Result<()> {
    let (start, end) = argument_area()?;
    let mut shown: Vec<u8> =
        arguments.iter().flat_map(|word| word.as_bytes().iter().chain(b"\0")).copied().collect();
    // A cut argument ends with a zero; the rest is empty.
    shown.resize(end - start, 0);
    if let Some(last) = shown.last_mut() {
        *last = 0;
    }
    // SAFETY: the kernel put the arguments there, in writable memory that stays for as long as the process does.
    // Nothing else in this process writes there; a concurrent reader gets some mixture of bytes, ended by a zero.
    unsafe { std::ptr::copy_nonoverlapping(shown.as_ptr(), start as *mut u8, shown.len()) };
    Ok(())
}

/// Start and end of the memory where the kernel finds this process's arguments.
fn argument_area() -> io::Result<(usize, usize)> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    // The name in parentheses may contain anything, so count from its end.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut numbers =
        fields.split_ascii_whitespace().skip(45).map(|field| field.parse::<usize>().unwrap_or(0));
    match (numbers.next(), numbers.next()) {
        (Some(start), Some(end)) if start > 0 && end > start => Ok((start, end)),
        _ => Err(io::Error::other("the kernel does not report where the arguments are")),
    }
}

pub fn no_new_privs() -> io::Result<()> {
    // SAFETY: prctl takes numbers only here.
    done(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })
}

/// Whether the kernel would let this process administer its mount namespace without a user namespace.
pub fn has_sys_admin() -> bool {
    const CAP_SYS_ADMIN: u32 = 21;
    let effective = status_line("self", "CapEff:");
    let effective = effective.and_then(|digits| u64::from_str_radix(&digits, 16).ok());
    effective.is_some_and(|caps| caps & (1 << CAP_SYS_ADMIN) != 0)
}

/// Kernel release, as `uname -r` prints it.
pub fn kernel_release() -> String {
    // SAFETY: uname fills the struct with NUL-terminated strings.
    unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        libc::uname(&raw mut name);
        std::ffi::CStr::from_ptr(name.release.as_ptr()).to_string_lossy().into_owned()
    }
}

/// Gives the calling thread a umask (and a working directory and root) of its own.
pub fn own_umask() -> io::Result<()> {
    // SAFETY: no memory is passed; what std knows of this thread does not change.
    done(unsafe { libc::unshare(libc::CLONE_FS) })
}

/// Whether the kernel is at least this version; `None` where its release does not begin with one.
pub fn kernel_at_least(major: u32, minor: u32) -> Option<bool> {
    let release = kernel_release();
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().ok());
    Some((parts.next()??, parts.next()??) >= (major, minor))
}

/// Number of threads of this process, from the directory's link count: readable in a sandbox without `/proc`.
pub fn thread_count() -> io::Result<usize> {
    use std::os::unix::fs::MetadataExt;
    let links = std::fs::metadata("/proc/self/task")?.nlink();
    usize::try_from(links.saturating_sub(2)).map_err(io::Error::other)
}

/// Whether this process's group is one that a shell made for this job alone: its parent is in another.
pub fn has_own_job() -> bool {
    // SAFETY: only numbers. A parent in another pid namespace is 0, which asks about this process itself.
    unsafe { libc::getpgid(libc::getppid()) != libc::getpgrp() }
}

/// Stops this process, or all of its group, as Ctrl-Z would; returns when it is continued. Where no shell could
/// continue it (an orphaned group) the kernel ignores the signal and this returns at once.
pub fn stop(whole_group: bool) {
    // SAFETY: the set is initialised before use; the former mask comes back before this returns.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGTSTP);
        libc::kill(if whole_group { 0 } else { libc::getpid() }, libc::SIGTSTP);
        // Pending until here, where it takes effect.
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
    }
}

/// Continues what was stopped in this process's group.
pub fn continue_job() {
    // SAFETY: only numbers.
    unsafe { libc::kill(0, libc::SIGCONT) };
}

/// Makes a write beyond `ulimit -f` fail with EFBIG instead of ending this process; a command gets the default back.
pub fn ignore_file_size_signal() {
    // SAFETY: only numbers.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Ends this process by `signal`, so that the caller's shell sees what happened to the command.
pub fn kill_self(signal: i32) {
    // SAFETY: only numbers.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Sends `signal` to `pid`.
pub fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: only numbers.
    done(unsafe { libc::kill(pid, signal) })
}

/// Signals that a supervisor reads as data instead of being interrupted by them.
pub const HANDLED: [i32; 9] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGTSTP,
    libc::SIGCONT,
    libc::SIGWINCH,
    libc::SIGUSR1,
    libc::SIGTTIN,
];

/// Blocked set of signals, readable as a descriptor; the former mask comes back on drop.
#[derive(Debug)]
pub struct Signals {
    /// Descriptor of the signals; `None` if other threads of this process receive them.
    fd: Option<OwnedFd>,
    former: libc::sigset_t,
}

/// Signals that a thread causes itself; blocked, they would end the process without a message.
const OWN_FAULT: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];

/// One received signal. `from_terminal`: the kernel's line discipline sent it to the whole foreground group.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    pub signal: i32,
    pub from_terminal: bool,
}

impl Received {
    /// Whether the signal asks this process to end.
    pub fn asks_for_an_end(self) -> bool {
        matches!(self.signal, libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT)
    }
}

impl Signals {
    /// Blocks [`HANDLED`] and SIGTTOU (so that taking the terminal back is never refused).
    pub fn block() -> io::Result<Signals> {
        // SAFETY: the sets are initialised before use and live across the calls.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in HANDLED {
                libc::sigaddset(&raw mut set, signal);
            }
            let fd = check_int(libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC))
                .map_err(io_error)?;
            libc::sigaddset(&raw mut set, libc::SIGTTOU);
            let fd = OwnedFd::from_raw_fd(fd);
            let mut former: libc::sigset_t = std::mem::zeroed();
            done(libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut former))?;
            Ok(Signals { fd: Some(fd), former })
        }
    }

    /// Blocks signals for a thread in a process of another program (a library's host): the calling thread, and those it
    /// starts, receive no signal until this is dropped, so that no call of theirs is interrupted. The signals reach the
    /// other threads as ever; none is ever read here.
    pub fn aside() -> io::Result<Signals> {
        // SAFETY: the sets are initialised before use and live across the calls.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut set);
            for signal in OWN_FAULT {
                libc::sigdelset(&raw mut set, signal);
            }
            let mut former: libc::sigset_t = std::mem::zeroed();
            done(libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, &raw mut former))?;
            Ok(Signals { fd: None, former })
        }
    }

    /// Descriptor to poll for signals, if they are received here.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// Signal mask to give the command.
    pub fn former_mask(&self) -> libc::sigset_t {
        self.former
    }

    /// Takes one signal out of those that are pending; returns whether it was among them.
    pub fn take(&self, signal: i32) -> bool {
        // SAFETY: the set and the time are initialised before use and live across the call.
        self.fd.is_some()
            && unsafe {
                let mut set: libc::sigset_t = std::mem::zeroed();
                libc::sigemptyset(&raw mut set);
                libc::sigaddset(&raw mut set, signal);
                let at_once: libc::timespec = std::mem::zeroed();
                libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const at_once) == signal
            }
    }

    /// Next pending signal, if any.
    pub fn next(&self) -> Option<Received> {
        let fd = self.fd.as_ref()?;
        // SAFETY: info is plain data, valid for its size.
        unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let size = size_of::<libc::signalfd_siginfo>();
            let n = libc::read(fd.as_raw_fd(), (&raw mut info).cast(), size);
            (n == size as isize).then(|| Received {
                signal: i32::try_from(info.ssi_signo).unwrap_or(0),
                from_terminal: info.ssi_code == libc::SI_KERNEL,
            })
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: former was filled by the kernel.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.former, std::ptr::null_mut()) };
    }
}

/// Signal mask of the calling thread, for a process that replaces itself.
pub fn current_mask() -> libc::sigset_t {
    // SAFETY: with no new set the call only fills `mask`.
    unsafe {
        let mut mask: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut mask);
        mask
    }
}

/// Gives the calling thread a third of the processor share that others have. On Linux a thread has a priority of its
/// own, and so do those that it starts. If that fails, it stays as it was.
///
/// Not the lowest priority: others wait for such a thread's end, and on a busy machine that took most of a minute.
pub fn low_priority() {
    // SAFETY: 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 5) };
}

/// Gives freed memory back to the system. Allocators keep it for the next time, which may be hours away.
pub fn give_back_memory() {
    // SAFETY: it takes no pointers and may be called at any time from any thread.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Whether two descriptors are the same open file, as after `2>&1`.
pub fn same_open_file(a: RawFd, b: RawFd) -> bool {
    const KCMP_FILE: i32 = 0;
    // SAFETY: only numbers.
    unsafe {
        let pid = libc::getpid();
        libc::syscall(libc::SYS_kcmp, pid, pid, KCMP_FILE, a, b) == 0
    }
}

/// Start time of a process, in clock ticks since boot: with its pid, an identity that is not used twice.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything, so count from its end.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Whether a process of that number exists, even one that `/proc` hides.
pub fn exists(pid: u32) -> bool {
    let Ok(pid) = i32::try_from(pid) else { return false };
    // SAFETY: only numbers; signal 0 is not delivered.
    pid > 0 && check_int(unsafe { libc::kill(pid, 0) }) != Err(libc::ESRCH)
}

/// Number of the pid namespace this process is in: pids mean nothing in another one.
pub fn pid_namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |meta| meta.ino())
}

/// Whether a seccomp filter is already installed on this process.
pub fn is_filtered() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("\nSeccomp:\t2"))
}

/// Current time as `YYYYMMDD-HHMMSS` in UTC.
pub fn timestamp() -> String {
    crate::time::stamp(&crate::time::now_iso())
}

/// Whether this process may execute the file, by its real user.
pub fn can_execute(path: &Path) -> bool {
    access(path, libc::X_OK)
}

/// Whether the user may read or write `path` by modes and owners; a name that does not exist, by its directory.
pub fn can_access(path: &Path, read: bool, write: bool) -> bool {
    let wanted = if read { libc::R_OK } else { 0 } | if write { libc::W_OK } else { 0 };
    if path.symlink_metadata().is_ok() {
        access(path, wanted)
    } else {
        path.parent().is_some_and(|dir| access(dir, wanted))
    }
}

fn access(path: &Path, mode: libc::c_int) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: path is NUL-terminated.
    unsafe { libc::access(path.as_ptr(), mode) == 0 }
}
