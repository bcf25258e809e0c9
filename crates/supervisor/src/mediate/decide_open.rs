//! Slow path of an open: resolves it, judges the object, asks for approval if that can help, and opens it for the
//! caller.
//!
//! Every path through here ends in exactly one of: the kernel carries the call out by the rules the command started
//! with (`leave_to_kernel`), it is refused (`refuse`), or the pinned object is opened and handed over (`grant`).
//! Nothing is handed over that was not judged by its own identity, and every error leads to a refusal.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nono_policy::{DeniedReason, QueryResult, is_within, query_path};
use nono_sys::{other_process, process as own};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::allow_table::{READ, WRITE};
use super::answer_cache::Answered;
use super::call::{OpenRequest, access};
use super::created_files::CreatedFile;
use super::emulate::errno_of;
use super::job::{Open, OpenSource, Waiter};
use super::pin_path::{self, Identity, OpenTarget, PinnedKind, Resolved};
use super::shared::MediatorShared;
use crate::approval::{Object, Question, Subject};
use crate::error::ServiceError;
use crate::report::{DeniedAttempt, RefusalReason};
use crate::request_service::RequestReply;

/// Verdict of the policy about an object.
pub(super) enum OpenVerdict {
    /// Allowed by the rules the command started with.
    Allowed,
    /// Closed; no approval can open it.
    Closed(DeniedReason),
    Askable,
}

impl MediatorShared {
    pub(super) fn open(&self, open: Open) {
        if let (Some(recorder), OpenSource::Call { .. }) = (&self.recorder, &open.source) {
            self.record_open(recorder, &open);
            return self.leave_to_kernel(open);
        }
        let resolved = match &open.source {
            OpenSource::Call { tid, .. } => {
                pin_path::resolve(self.root.as_fd(), *tid, open.start, &open.path, open.how)
            }
            OpenSource::Request { .. } => pin_path::from_root(self.root.as_fd(), &open.path, open.how),
        };
        match resolved {
            Ok(Resolved::Kernel) => {
                if let Some(path) = self.named_by(&open)
                    && self.open_created(&open, &path)
                {
                    return;
                }
                self.kernel_refuses(
                    open,
                    "it does not exist, or is a special file that nono cannot open for you",
                );
            }
            Ok(Resolved::Hidden) => {
                if let Some((path, reason)) = self.behind_a_mask(&open) {
                    self.count(&open, &path, open.how.rights(), &RefusalReason::Policy { reason });
                }
                self.kernel_refuses(open, "it is closed");
            }
            Ok(Resolved::Target(target)) => self.decide(open, target),
            Err(error) => {
                let path = PathBuf::from(String::from_utf8_lossy(&open.path).into_owned());
                let rights = open.how.rights();
                self.refuse(open, &path, rights, failed(&error));
            }
        }
    }

    /// Closed path behind a mask. The command cannot see the object, but this process can. Only for reports: the kernel
    /// refuses it in any case.
    pub(super) fn behind_a_mask(&self, open: &Open) -> Option<(PathBuf, DeniedReason)> {
        let path = written(open)?.canonicalize().ok().filter(|_| open.is_wanted(&self.listener))?;
        match query_path(&self.policy, &path, true, access(open.how.rights())) {
            QueryResult::Denied { reason, .. } if is_closed(&reason) => Some((path, reason)),
            _ => None,
        }
    }

    fn decide(&self, open: Open, target: OpenTarget) {
        // The call still waits, so what was read from the thread's memory and from /proc was its own.
        if !open.is_wanted(&self.listener) {
            return;
        }
        let path = target.path();
        if open.replaces.is_none() && self.open_created(&open, &path) {
            return;
        }
        let rights = wanted(&open, &target);
        match self.judge(&target, &path, rights) {
            OpenVerdict::Allowed => {
                if let Some(key) = open.remember {
                    self.verified.keep(key);
                }
                self.leave_to_kernel(open);
            }
            OpenVerdict::Closed(reason) => self.refuse(open, &path, rights, RefusalReason::Policy { reason }),
            OpenVerdict::Askable => self.consider(match self.saved_by(&open, &target, rights) {
                Some(file) => {
                    let (path, through) = (file.path(), Some(Box::new(target)));
                    Waiter { open, target: file, path, rights: WRITE, through }
                }
                None => Waiter { open, target, path, rights, through: None },
            }),
        }
    }

    pub(super) fn judge(&self, target: &OpenTarget, path: &Path, rights: u8) -> OpenVerdict {
        if self.private.iter().any(|private| is_within(path, private)) {
            return OpenVerdict::Allowed;
        }
        if self.own.iter().any(|own| is_within(path, own)) {
            return match query_path(&self.policy, path, true, access(rights)) {
                QueryResult::Allowed { .. } => OpenVerdict::Allowed,
                QueryResult::Denied { .. } => OpenVerdict::Closed(DeniedReason::NonoState),
            };
        }
        let exists = matches!(target, OpenTarget::There { .. });
        match query_path(&self.policy, path, exists, access(rights)) {
            QueryResult::Allowed { .. } => OpenVerdict::Allowed,
            QueryResult::Denied { reason, .. } if is_closed(&reason) => OpenVerdict::Closed(reason),
            QueryResult::Denied { .. } => self.by_identity(target),
        }
    }

    /// Verdict by identity: a closed file under another name is still that file.
    fn by_identity(&self, target: &OpenTarget) -> OpenVerdict {
        match target {
            OpenTarget::There { identity, links, .. } if *links > 1 => {
                self.aliases.reason(*identity).map_or(OpenVerdict::Askable, OpenVerdict::Closed)
            }
            _ => OpenVerdict::Askable,
        }
    }

    /// Handles an object that was not granted at the start: answered before, not worth asking about, or put to the
    /// approver.
    pub(super) fn consider(&self, waiter: Waiter) {
        let how = waiter.open.how;
        if let OpenTarget::There { kind, .. } = &waiter.target {
            let directory = *kind == PinnedKind::Directory;
            // The kernel returns these errors before it checks permissions.
            let kernels = how.has(libc::O_CREAT | libc::O_EXCL) && waiter.through.is_none()
                || directory && (waiter.rights & WRITE != 0 || how.creates()) && !how.has(libc::O_TMPFILE)
                || !directory && how.has(libc::O_DIRECTORY);
            if kernels {
                return self
                    .kernel_refuses(waiter.open, "the kernel refuses this kind of open for that file");
            }
            if *kind == PinnedKind::Special {
                let why = "devices, pipes and sockets can only be granted at the start".to_owned();
                return self.refuse_waiter(waiter, RefusalReason::Failed { why });
            }
        }
        // No approval is needed for what the user could not open without a sandbox.
        if !could_be_opened(&waiter) {
            return self.kernel_refuses(waiter.open, "you may not open it, even outside the sandbox");
        }
        if how.has(libc::O_TMPFILE) {
            // As on a file system without it: programs have a fallback.
            if let OpenSource::Call { id, .. } = waiter.open.source {
                self.listener.respond_errno(id, libc::EOPNOTSUPP);
            }
            return;
        }
        if let Some(by) = self.agreed(&waiter) {
            return self.grant(waiter, &by);
        }
        let Some(backend) = &self.backend else {
            let why = "the command was not started with --ask".to_owned();
            return self.refuse_waiter(waiter, RefusalReason::NoAnswer { why });
        };
        let (question, folder) = self.question(0, &waiter);
        if let Some(answer) = backend.at_once(&question) {
            return self.answer_at_once(waiter, folder.as_deref(), &answer);
        }
        let answered = self.answers().look_up(&waiter.path, waiter.rights);
        match answered {
            Some(Answered::Granted { by }) => self.grant(waiter, &by),
            Some(Answered::Denied { by }) => self.refuse_waiter(waiter, RefusalReason::Answered { by }),
            None => {
                let put = |id| (Question { id, ..question }, folder);
                if let Err(waiter) = self.questions.put(waiter, put) {
                    self.refuse_waiter(*waiter, RefusalReason::TooMany);
                }
            }
        }
    }

    fn question(&self, id: u64, waiter: &Waiter) -> (Question, Option<PathBuf>) {
        let object = match &waiter.target {
            OpenTarget::There { kind: PinnedKind::Directory, .. } => Object::Directory,
            OpenTarget::There { .. } => Object::File,
            OpenTarget::Missing { .. } => Object::New,
        };
        let folder = match object {
            Object::Directory => Some(waiter.path.clone()),
            Object::File | Object::New => waiter.path.parent().map(Path::to_owned),
        };
        let folder = folder.filter(|folder| self.may_be_granted_whole(folder));
        let subject = Subject::Access {
            path: waiter.path.clone(),
            written: written(&waiter.open).filter(|written| *written != waiter.path),
            access: access(waiter.rights),
            object,
            folder: folder.clone(),
        };
        let question = Question { id, subject, asker: waiter.open.asker(), reason: waiter.open.reason() };
        (question, folder)
    }

    /// Whether a directory may be granted with everything in it: not the root, and none that contains a closed path.
    fn may_be_granted_whole(&self, folder: &Path) -> bool {
        let holds = |path: &Path| is_within(path, folder);
        folder.parent().is_some()
            && !self.policy.closed.iter().any(|closed| holds(&closed.resolved))
            && !self.policy.names.is_any_in(folder)
            && !self.own.iter().any(|own| holds(own))
    }

    /// Opens the pinned object with the caller's flags and hands it over, or replaces it with the file the command
    /// made.
    pub(super) fn grant(&self, mut waiter: Waiter, by: &str) {
        if !waiter.open.is_wanted(&self.listener) {
            return;
        }
        if waiter.rights & WRITE != 0
            && let Err(error) = self.track(&waiter)
        {
            let why = error.to_string();
            return self.refuse_waiter(waiter, RefusalReason::Failed { why });
        }
        if let Some(source) = &waiter.open.replaces {
            return match self.put_in_place(&waiter, source) {
                Ok(()) => self.answer_zero(&waiter.open),
                Err(error) => self.fail(waiter, &error),
            };
        }
        if let Some(name) = waiter.through.take() {
            return self.grant_created(waiter, *name, by);
        }
        match open_object(&waiter) {
            Ok(fd) => self.hand_over(waiter, fd, by),
            // Another process created it meanwhile: it is another object now and is decided anew.
            Err(error)
                if error.kind() == io::ErrorKind::AlreadyExists && !waiter.open.how.has(libc::O_EXCL) =>
            {
                self.open(waiter.open);
            }
            Err(error) => self.fail(waiter, &error),
        }
    }

    /// Grants a write through a created file; `name` is the command's name for it.
    fn grant_created(&self, waiter: Waiter, name: OpenTarget, by: &str) {
        match self.create_unnamed(&waiter, &name, by) {
            Ok(fd) => self.hand_over(waiter, fd, by),
            // A file system without unnamed files: the file is asked about under its own name.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                let (path, rights) = (name.path(), wanted(&waiter.open, &name));
                self.consider(Waiter { open: waiter.open, target: name, path, rights, through: None });
            }
            Err(error) => self.fail(waiter, &error),
        }
    }

    fn fail(&self, waiter: Waiter, error: &io::Error) {
        self.count(&waiter.open, &waiter.path, waiter.rights, &failed(error));
        self.answer_errno(waiter.open, errno_of(error), failed(error));
    }

    fn answer_zero(&self, open: &Open) {
        if let OpenSource::Call { id, .. } = open.source {
            self.listener.respond_value(id, 0);
        }
    }

    /// Stores the current content before the first write.
    fn track(&self, waiter: &Waiter) -> Result<(), ServiceError> {
        let Some(snapshots) = &self.snapshots else { return Ok(()) };
        let mut tracked = self.tracked();
        if tracked.contains(&waiter.path) {
            return Ok(());
        }
        snapshots.before_write(&waiter.path)?;
        tracked.insert(waiter.path.clone());
        Ok(())
    }

    fn hand_over(&self, waiter: Waiter, fd: OwnedFd, by: &str) {
        if let (OpenTarget::Missing { .. }, Ok(made)) = (&waiter.target, rustix::fs::fstat(&fd))
            && made.st_nlink > 0
        {
            self.created_files().keep(waiter.path.clone(), CreatedFile::Named(Identity::of_stat(&made)));
        }
        match waiter.open.source {
            OpenSource::Call { id, .. } => self.respond_opened(id, waiter.open.how, Ok(fd)),
            OpenSource::Request { reply, .. } => {
                // The caller may have gone.
                let _ = reply.send(RequestReply::Granted { fd, by: by.to_owned() });
            }
        }
    }

    /// Hands over what was opened, or returns why it was not.
    pub(super) fn respond_opened(&self, id: u64, how: OpenRequest, opened: Result<OwnedFd, i32>) {
        let close_on_exec = how.has(libc::O_CLOEXEC);
        let handed = opened.and_then(|fd| self.listener.respond_fd(id, fd.as_fd(), close_on_exec));
        if let Err(errno) = handed {
            self.listener.respond_errno(id, errno);
        }
    }

    /// Leaves the decision to the kernel and the rules the command started with.
    fn leave_to_kernel(&self, open: Open) {
        conclude(open, |id| self.listener.respond_continue(id), RequestReply::AlreadyOpen);
    }

    /// Lets the kernel return its own error; a request on the socket gets the reason.
    fn kernel_refuses(&self, open: Open, why: &str) {
        let because = RefusalReason::Failed { why: why.to_owned() };
        conclude(open, |id| self.listener.respond_continue(id), RequestReply::Denied { because });
    }

    pub(super) fn refuse_waiter(&self, waiter: Waiter, because: RefusalReason) {
        self.refuse(waiter.open, &waiter.path, waiter.rights, because);
    }

    fn refuse(&self, open: Open, path: &Path, rights: u8, because: RefusalReason) {
        self.count(&open, path, rights, &because);
        self.answer_errno(open, libc::EACCES, because);
    }

    fn count(&self, open: &Open, path: &Path, rights: u8, because: &RefusalReason) {
        let attempt = DeniedAttempt::Open { path: path.to_owned(), access: access(rights) };
        self.note_refusal(attempt, because, &open.program(), || open.pid());
    }

    fn answer_errno(&self, open: Open, errno: i32, because: RefusalReason) {
        let refuse = |id| self.penalty.refuse(&self.listener, id, errno);
        conclude(open, refuse, RequestReply::Denied { because });
    }
}

/// Answers the trapped call, or the request on the socket, whose caller may have gone.
fn conclude(open: Open, call: impl FnOnce(u64), answer: RequestReply) {
    match open.source {
        OpenSource::Call { id, .. } => call(id),
        OpenSource::Request { reply, .. } => {
            let _ = reply.send(answer);
        }
    }
}

/// Whether a denial holds regardless of any approval.
fn is_closed(reason: &DeniedReason) -> bool {
    match reason {
        DeniedReason::NonoState
        | DeniedReason::AgentSettings { .. }
        | DeniedReason::Protected { .. }
        | DeniedReason::DenyRule { .. } => true,
        DeniedReason::NotGranted
        | DeniedReason::InsufficientAccess { .. }
        | DeniedReason::CarvedDirectory { .. } => false,
    }
}

fn failed(error: &io::Error) -> RefusalReason {
    RefusalReason::Failed { why: nono_sys::errno::describe(error) }
}

/// Rights an open needs. Creating an object is writing, into the directory it is created in.
fn wanted(open: &Open, target: &OpenTarget) -> u8 {
    match target {
        OpenTarget::There { .. } => open.how.rights(),
        OpenTarget::Missing { .. } => open.how.rights() | WRITE,
    }
}

/// Path as the command wrote it, made absolute.
fn written(open: &Open) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let path = PathBuf::from(std::ffi::OsString::from_vec(open.path.clone()));
    if path.is_absolute() {
        return Some(path);
    }
    let base = pin_path::base(open.tid(), open.start).ok()?;
    Some(PathBuf::from(std::ffi::OsString::from_vec(base)).join(path))
}

fn could_be_opened(waiter: &Waiter) -> bool {
    match &waiter.target {
        OpenTarget::There { path, .. } => {
            own::can_access(path, waiter.rights & READ != 0, waiter.rights & WRITE != 0)
        }
        OpenTarget::Missing { folder_path, .. } => own::can_access(folder_path, false, true),
    }
}

/// Flags always added: no controlling terminal, and no inheritance by a program started here.
pub(super) const ALWAYS: i32 = libc::O_NOCTTY | libc::O_CLOEXEC;

fn open_object(waiter: &Waiter) -> io::Result<OwnedFd> {
    match &waiter.target {
        OpenTarget::There { pin, path, identity, .. } => open_there(waiter, pin, path, *identity),
        OpenTarget::Missing { folder_path, folder_identity, name, .. } => {
            let folder = pin_path::outside(folder_path, *folder_identity)?;
            let how = waiter.open.how;
            // Exclusive: the approval was for a new file, and nothing else is opened instead.
            let flags = how.flags | libc::O_CREAT | libc::O_EXCL | ALWAYS;
            let mode = Mode::from_raw_mode(how.mode & 0o7777);
            let follow = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            with_umask(&waiter.open, || Ok(rustix::fs::openat2(&folder, name, oflags(flags), mode, follow)?))
        }
    }
}

/// Creates something with the umask of the process that asked for it.
pub(super) fn with_umask(open: &Open, make: impl FnOnce() -> io::Result<OwnedFd>) -> io::Result<OwnedFd> {
    let umask = match &open.source {
        OpenSource::Call { tid, .. } => other_process::umask_of(*tid).ok_or(io::ErrorKind::NotFound)?,
        OpenSource::Request { .. } => 0o022,
    };
    // The umask is this thread's own; see `Starting`.
    let ours = rustix::process::umask(Mode::from_raw_mode(umask));
    let made = make();
    // Snapshots are also stored by this thread.
    rustix::process::umask(ours);
    made
}

/// Opens an existing object: for reading through the command's view; for writing through the supervisor's, where the
/// same object is not mounted read-only.
fn open_there(waiter: &Waiter, pin: &OwnedFd, path: &Path, identity: Identity) -> io::Result<OwnedFd> {
    if waiter.rights & WRITE == 0 {
        return Ok(reopened(pin.as_fd(), waiter.open.how)?);
    }
    Ok(reopened(pin_path::outside(path, identity)?.as_fd(), waiter.open.how)?)
}

/// Opens the object behind a descriptor with the caller's flags.
pub(super) fn reopened(pin: BorrowedFd<'_>, how: OpenRequest) -> Result<OwnedFd, Errno> {
    let flags = how.flags & !(libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW) | ALWAYS;
    rustix::fs::open(pin_path::own_link(pin), oflags(flags), Mode::empty())
}

#[allow(clippy::cast_sign_loss, reason = "flags are bits")]
pub(super) fn oflags(flags: i32) -> OFlags {
    OFlags::from_bits_retain(flags as u32)
}
