//! Receiver of trapped calls, and fast path of an open.
//!
//! One thread. An open that the rules allow costs one read of the path from the thread's memory, one lookup in the
//! table and one call to check for links on the way; no lock, no allocation. A path with a link in it may lead outside
//! the rules and need an approval, so it goes to the other threads, as everything else does.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use nono_sys::notify::{self, Notification, PATH_MAX};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::time::ClockId;

use super::allow_table::{Table, TableAnswer, WRITE};
use super::call::{OpenRequest, Opening, PathStart};
use super::job::{Job, Open, OpenSource};
use super::process;
use super::shared::MediatorShared;
use crate::report::{DeniedAttempt, RefusalReason};

pub(super) struct Receiver {
    shared: Arc<MediatorShared>,
    table: Table,
    jobs: SyncSender<Job>,
    bases: Bases,
    path: Box<[u8; PATH_MAX]>,
    /// Buffer for a path made absolute.
    whole: Box<[u8; 2 * PATH_MAX]>,
}

impl Receiver {
    pub(super) fn new(shared: Arc<MediatorShared>, table: Table, jobs: SyncSender<Job>) -> Receiver {
        Receiver {
            shared,
            table,
            jobs,
            bases: Bases::new(),
            path: Box::new([0; PATH_MAX]),
            whole: Box::new([0; 2 * PATH_MAX]),
        }
    }

    /// Receives calls until no process is left that could make one, then returns true. False: calls cannot be received
    /// any more, and the remaining processes wait in vain.
    pub(super) fn serve(mut self) -> bool {
        loop {
            let call = match self.shared.listener.receive() {
                Ok(Some(call)) => call,
                Ok(None) => return true,
                Err(_) => return false,
            };
            match Opening::of(&call) {
                Some(opening) => self.opening(&call, opening),
                None if matches!(call.nr, libc::SYS_chdir | libc::SYS_fchdir) => {
                    self.bases.forget();
                    self.shared.listener.respond_continue(call.id);
                }
                None => self.pass_on(&call, Job::Call(call)),
            }
        }
    }

    fn opening(&mut self, call: &Notification, opening: Opening) {
        let read = opening.how(call.tid).and_then(|how| {
            notify::read_path(call.tid, opening.path, &mut self.path).map(|length| (how, length))
        });
        match read {
            // `O_PATH` opens nothing that would be refused; for `open` and `openat` the filter checks that itself.
            Ok((how, _)) if !how.is_sound() || how.has(libc::O_PATH) => {
                self.shared.listener.respond_continue(call.id);
            }
            Ok((how, length)) => {
                let remember = match self.known(call.tid, opening.start, how, length) {
                    Fast::Allowed => return self.shared.listener.respond_continue(call.id),
                    Fast::Slow { remember } => remember,
                };
                let open = Open {
                    source: OpenSource::Call { id: call.id, tid: call.tid },
                    start: opening.start,
                    path: self.path[..length].to_vec(),
                    how,
                    remember,
                    replaces: None,
                };
                self.pass_on(call, Job::Open(open));
            }
            Err(errno @ (libc::EFAULT | libc::ENAMETOOLONG | libc::EINVAL | libc::E2BIG)) => {
                self.shared.listener.respond_errno(call.id, errno);
            }
            // The memory may not be read: nothing can be judged.
            Err(_) => self.shared.listener.respond_errno(call.id, libc::EACCES),
        }
    }

    /// Looks an open up in the table. With a recorder everything takes the slow path.
    fn known(&mut self, tid: u32, start: PathStart, how: OpenRequest, length: usize) -> Fast {
        match self.shared.recorder {
            Some(_) => Fast::Slow { remember: None },
            None => self.fast(tid, start, how, length),
        }
    }

    fn fast(&mut self, tid: u32, start: PathStart, how: OpenRequest, length: usize) -> Fast {
        let path = &self.path[..length];
        let base = match path.first() {
            None => return Fast::Slow { remember: None },
            Some(b'/') => &[][..],
            Some(_) => match self.bases.of(tid, start) {
                Some(base) => base,
                None => return Fast::Slow { remember: None },
            },
        };
        let TableAnswer::Allowed { rights, hash } = self.table.look_up(base, path) else {
            return Fast::Slow { remember: None };
        };
        let wanted = how.rights() | if how.creates() { WRITE } else { 0 };
        // Only where the command cannot put a link, and only for opens of existing objects.
        let key = hash ^ u64::from(wanted) << 60;
        let remember = (rights & WRITE == 0 && wanted & WRITE == 0 && how.resolve == 0).then_some(key);
        if remember.is_some_and(|key| self.shared.verified.has(key)) {
            return Fast::Allowed;
        }
        if rights & wanted != wanted || how.resolve != 0 || how.has(libc::O_TMPFILE) {
            return Fast::Slow { remember };
        }
        let Some(whole) = join(&mut self.whole, base, path) else { return Fast::Slow { remember: None } };
        let plain = has_no_link(&self.shared, whole);
        match (plain, remember) {
            (Plain::Link, _) => return Fast::Slow { remember },
            (Plain::There, Some(key)) => self.shared.verified.keep(key),
            _ => {}
        }
        Fast::Allowed
    }

    /// Passes a job on; if the queue is full, it is refused or goes unrecorded.
    fn pass_on(&self, call: &Notification, job: Job) {
        match self.jobs.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => match &self.shared.recorder {
                Some(recorder) if job.is_only_recorded() => {
                    recorder.missed();
                    self.shared.listener.respond_continue(call.id);
                }
                _ => self.too_many(call),
            },
        }
    }

    fn too_many(&self, call: &Notification) {
        let attempt = DeniedAttempt::Other { what: "more calls at once than can be judged".to_owned() };
        let program = process::program(call.tid);
        self.shared.note_refusal(attempt, &RefusalReason::TooMany, &program, || process::pid(call.tid));
        self.shared.penalty.refuse(&self.shared.listener, call.id, libc::EACCES);
    }
}

enum Fast {
    Allowed,
    Slow { remember: Option<u64> },
}

/// Joined path with a NUL.
fn join<'a>(whole: &'a mut [u8; 2 * PATH_MAX], base: &[u8], path: &[u8]) -> Option<&'a CStr> {
    let mut length = 0;
    for part in [base, if base.is_empty() { b"" } else { b"/" }, path, b"\0"] {
        whole.get_mut(length..length + part.len())?.copy_from_slice(part);
        length += part.len();
    }
    CStr::from_bytes_with_nul(&whole[..length]).ok()
}

enum Plain {
    Link,
    There,
    /// Nothing there yet, or an error that the kernel itself returns.
    Unknown,
}

/// Checks a path for links by walking it without following any. It is opened as a directory, because for anything else
/// the kernel returns an error and no descriptor that would have to be closed.
fn has_no_link(shared: &MediatorShared, path: &CStr) -> Plain {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let follow = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(shared.root.as_fd(), path, flags, Mode::empty(), follow) {
        Err(Errno::LOOP) => Plain::Link,
        Ok(_) | Err(Errno::NOTDIR) => Plain::There,
        Err(_) => Plain::Unknown,
    }
}

/// Directories that relative paths start from. A thread's working directory is remembered for a moment: chdir is
/// trapped, so it becomes stale only when a thread id is reused.
struct Bases {
    known: Box<[Base]>,
    /// Path of a descriptor, or one too long to be remembered.
    other: Box<[MaybeUninit<u8>; PATH_MAX]>,
}

#[derive(Clone)]
struct Base {
    tid: u32,
    until: Duration,
    length: usize,
    path: [u8; LONGEST],
}

const LONGEST: usize = 256;
const REMEMBERED: usize = 256;
const MOMENT: Duration = Duration::from_millis(50);

impl Bases {
    fn new() -> Bases {
        let none = Base { tid: 0, until: Duration::ZERO, length: 0, path: [0; LONGEST] };
        Bases {
            known: vec![none; REMEMBERED].into_boxed_slice(),
            other: Box::new([MaybeUninit::uninit(); PATH_MAX]),
        }
    }

    fn forget(&mut self) {
        for base in &mut self.known {
            base.tid = 0;
        }
    }

    fn of(&mut self, tid: u32, start: PathStart) -> Option<&[u8]> {
        let PathStart::WorkingDirectory = start else { return self.read(tid, start) };
        let now = now();
        let at = tid as usize % REMEMBERED;
        if self.known[at].tid != tid || self.known[at].until < now {
            let read = self.read(tid, start)?;
            let length = read.len();
            if length > LONGEST {
                return self.read(tid, start);
            }
            let mut path = [0; LONGEST];
            path[..length].copy_from_slice(read);
            self.known[at] = Base { tid, until: now + MOMENT, length, path };
        }
        Some(&self.known[at].path[..self.known[at].length])
    }

    fn read(&mut self, tid: u32, start: PathStart) -> Option<&[u8]> {
        let mut name = Name::new();
        name.push(b"/proc/");
        name.number(tid);
        match start {
            PathStart::WorkingDirectory => name.push(b"/cwd\0"),
            PathStart::Descriptor(fd) => {
                name.push(b"/fd/");
                name.number(u32::try_from(fd).ok()?);
                name.push(b"\0");
            }
        }
        let link = CStr::from_bytes_with_nul(name.bytes()).ok()?;
        let (read, _) = rustix::fs::readlinkat_raw(rustix::fs::CWD, link, &mut self.other[..]).ok()?;
        // A name that just fits may have been cut.
        (read.first() == Some(&b'/') && read.len() < PATH_MAX).then_some(&*read)
    }
}

fn now() -> Duration {
    let time = rustix::time::clock_gettime(ClockId::MonotonicCoarse);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Short name, built without allocation.
struct Name {
    bytes: [u8; 48],
    length: usize,
}

impl Name {
    fn new() -> Name {
        Name { bytes: [0; 48], length: 0 }
    }

    fn push(&mut self, part: &[u8]) {
        if let Some(room) = self.bytes.get_mut(self.length..self.length + part.len()) {
            room.copy_from_slice(part);
            self.length += part.len();
        }
    }

    fn number(&mut self, mut number: u32) {
        let mut digits = [0u8; 10];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b'0' + u8::try_from(number % 10).unwrap_or(0);
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.push(&digits[at..]);
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
