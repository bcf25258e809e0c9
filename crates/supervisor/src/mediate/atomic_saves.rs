//! Saving of a file through a temporary one: it is made, written, and renamed to the file. In a directory that was not
//! granted the kernel allows none of that, so what was approved is done here, and nothing else.
//!
//! The request is about the file that is saved. What the command writes meanwhile has no name in the directory; it gets
//! one when the command renames it to the approved path. A rename to any other path is a request of its own.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use nono_sys::notify::Notification;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, ResolveFlags};

use super::allow_table::WRITE;
use super::answer_cache::Answered;
use super::call::{OpenRequest, PathStart};
use super::call_effect::{CallEffect, PathArgument};
use super::created_files::{CreatedFile, UnnamedFile};
use super::decide_open::{ALWAYS, OpenVerdict, oflags, reopened, with_umask};
use super::emulate::errno_of;
use super::job::{Open, OpenSource, Waiter};
use super::pin_path::{self, Identity, OpenTarget, PinnedKind, Resolved};
use super::shared::MediatorShared;
use super::temp_names::originals;
use crate::report::{DeniedAttempt, RefusalReason};

/// Flags to resolve a name that is to be replaced, never through a link.
const IN_PLACE: OpenRequest =
    OpenRequest { flags: libc::O_WRONLY | libc::O_CREAT | libc::O_NOFOLLOW, mode: 0, resolve: 0 };

/// Permission bits the command may set: no approval covers setuid programs.
const PERMISSIONS: u32 = 0o777;

impl MediatorShared {
    /// File that is probably saved by making this one, if it can be asked about.
    pub(super) fn saved_by(&self, open: &Open, target: &OpenTarget, rights: u8) -> Option<OpenTarget> {
        let OpenTarget::Missing { folder_path, name, .. } = target else { return None };
        let writes = open.how.rights() & WRITE != 0;
        let is_call = matches!(open.source, OpenSource::Call { .. }) && open.replaces.is_none();
        if !writes || !is_call || self.backend.is_none() || !self.created_files().has_room() {
            return None;
        }
        // A name that was approved is made under that name.
        let answered = self.answers().look_up(&target.path(), rights);
        if matches!(answered, Some(Answered::Granted { .. })) {
            return None;
        }
        let exclusive = open.how.has(libc::O_CREAT | libc::O_EXCL);
        let found = originals(name.as_bytes(), exclusive).into_iter().filter_map(|original| {
            let path = folder_path.join(OsStr::from_bytes(original.name)).into_os_string().into_vec();
            match pin_path::from_root(self.root.as_fd(), &path, IN_PLACE) {
                Ok(Resolved::Target(file)) => Some((original.certain, file)),
                _ => None,
            }
        });
        let found: Vec<(bool, OpenTarget)> = found.collect();
        let is_file = |file: &OpenTarget| matches!(file, OpenTarget::There { kind: PinnedKind::File, .. });
        let at = found.iter().position(|(_, file)| is_file(file));
        let at = at.or_else(|| {
            found.iter().position(|(certain, file)| *certain && matches!(file, OpenTarget::Missing { .. }))
        })?;
        let (_, file) = found.into_iter().nth(at)?;
        matches!(self.judge(&file, &file.path(), WRITE), OpenVerdict::Askable).then_some(file)
    }

    /// Approver of exactly this replacement, if it was approved before.
    pub(super) fn agreed(&self, waiter: &Waiter) -> Option<String> {
        let created_files = self.created_files();
        let created = created_files.unnamed(waiter.open.replaces.as_deref()?)?;
        let same = created.original == waiter.path && created.replaces == waiter.target.identity();
        same.then(|| created.by.clone())
    }

    /// Makes an unnamed file for the command to write, in the file system of the one that is saved.
    pub(super) fn create_unnamed(&self, waiter: &Waiter, name: &OpenTarget, by: &str) -> io::Result<OwnedFd> {
        let OpenTarget::Missing { folder_path, folder_identity, .. } = name else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let folder = pin_path::outside(folder_path, *folder_identity)?;
        let how = waiter.open.how;
        let kept = libc::O_ACCMODE | libc::O_APPEND | libc::O_NONBLOCK | libc::O_SYNC | libc::O_NOATIME;
        let flags = how.flags & kept | libc::O_TMPFILE | ALWAYS;
        let mode = Mode::from_raw_mode(how.mode & PERMISSIONS);
        let file = with_umask(&waiter.open, || Ok(rustix::fs::openat(&folder, c".", oflags(flags), mode)?))?;
        let created = UnnamedFile {
            file: file.try_clone()?,
            folder: folder_path.clone(),
            original: waiter.path.clone(),
            replaces: waiter.target.identity(),
            by: by.to_owned(),
            program: waiter.open.program(),
            pid: waiter.open.pid(),
        };
        self.created_files().keep(name.path(), CreatedFile::Unnamed(created));
        Ok(file)
    }

    /// Reopens an unnamed file. True if it was one; the call is answered then.
    pub(super) fn open_created(&self, open: &Open, path: &Path) -> bool {
        let OpenSource::Call { id, .. } = open.source else { return false };
        let opened = {
            let created_files = self.created_files();
            let Some(created) = created_files.unnamed(path) else { return false };
            if open.how.has(libc::O_CREAT | libc::O_EXCL) {
                Err(libc::EEXIST)
            } else {
                reopened(created.file.as_fd(), open.how).map_err(rustix::io::Errno::raw_os_error)
            }
        };
        self.respond_opened(id, open.how, opened);
        true
    }

    /// Path of an open whose last component does not exist for the kernel.
    pub(super) fn named_by(&self, open: &Open) -> Option<PathBuf> {
        if self.created_files().is_empty() {
            return None;
        }
        let named = pin_path::last_name(self.root.as_fd(), open.tid(), open.start, &open.path)?;
        open.is_wanted(&self.listener).then(|| named.path())
    }

    /// Handles renames, removals and modes of created files. False if the call concerns something else.
    pub(super) fn handle_created_file(&self, call: &Notification) -> bool {
        if self.created_files().is_empty() {
            return false;
        }
        match call.nr {
            libc::SYS_fchmodat => self.change_mode(call, from(call, 0), call.args[2]),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_chmod => self.change_mode(
                call,
                PathArgument { start: PathStart::WorkingDirectory, path: call.args[0] },
                call.args[1],
            ),
            libc::SYS_unlinkat if low(call.args[2]) != 0 => false,
            libc::SYS_renameat2 if low(call.args[4]) != 0 => false,
            _ => match CallEffect::of(call).as_deref() {
                Some([CallEffect::Remove(old), CallEffect::Make { at, over: true, .. }]) => {
                    self.rename_created(call, *old, *at)
                }
                Some([CallEffect::Remove(at)]) => self.remove_created(call, *at),
                _ => false,
            },
        }
    }

    /// Decides about a rename as about opening its target for writing.
    fn rename_created(&self, call: &Notification, old: PathArgument, new: PathArgument) -> bool {
        let Some(source) = self.named(call, old).map(|named| named.path()) else { return false };
        if self.created_files().get(&source).is_none() {
            return false;
        }
        let Some(path) = self.path_of(call, new) else { return false };
        self.open(Open {
            source: OpenSource::Call { id: call.id, tid: call.tid },
            start: new.start,
            path,
            how: IN_PLACE,
            remember: None,
            replaces: Some(source),
        });
        true
    }

    fn remove_created(&self, call: &Notification, at: PathArgument) -> bool {
        let Some(path) = self.named(call, at).map(|named| named.path()) else { return false };
        let mut created_files = self.created_files();
        let removed = match created_files.get(&path) {
            None => return false,
            Some(CreatedFile::Unnamed(_)) => Ok(()),
            Some(CreatedFile::Named(identity)) => remove(&path, *identity),
        };
        if removed.is_ok() {
            created_files.remove(&path);
        }
        self.respond(call.id, removed.map_err(|error| errno_of(&error)).into());
        true
    }

    #[allow(clippy::cast_possible_truncation, reason = "the kernel takes this argument as a short, too")]
    fn change_mode(&self, call: &Notification, at: PathArgument, mode: u64) -> bool {
        let Some(path) = self.named(call, at).map(|named| named.path()) else { return false };
        let mode = Mode::from_raw_mode(mode as u32 & PERMISSIONS);
        let changed = match self.created_files().get(&path) {
            None => return false,
            Some(CreatedFile::Unnamed(created)) => {
                rustix::fs::fchmod(&created.file, mode).map_err(io::Error::from)
            }
            Some(CreatedFile::Named(identity)) => pin_path::outside(&path, *identity)
                .and_then(|pin| Ok(rustix::fs::chmod(pin_path::own_link(pin.as_fd()), mode)?)),
        };
        self.respond(call.id, changed.map_err(|error| errno_of(&error)).into());
        true
    }

    /// Carries out an approved rename: the created file becomes the file that was shown.
    pub(super) fn put_in_place(&self, waiter: &Waiter, source: &Path) -> io::Result<()> {
        let (folder, name) = place_of(&waiter.target)?;
        let mut created_files = self.created_files();
        match created_files.get(source) {
            None => return Err(io::ErrorKind::NotFound.into()),
            Some(CreatedFile::Unnamed(created)) => {
                if waiter.path.parent() != Some(&*created.folder) {
                    return Err(io::Error::from_raw_os_error(libc::EXDEV));
                }
                link(created, &folder, name, waiter.target.identity().is_some())?;
            }
            Some(CreatedFile::Named(identity)) => {
                let (own, own_name) = in_folder(source, *identity)?;
                let flags = match waiter.target {
                    OpenTarget::There { .. } => RenameFlags::empty(),
                    OpenTarget::Missing { .. } => RenameFlags::NOREPLACE,
                };
                rustix::fs::renameat_with(&own, own_name, &folder, name, flags)?;
            }
        }
        created_files.remove(source);
        Ok(())
    }

    /// Reports created files that were neither put in place nor removed: their content is lost.
    pub(super) fn note_created_left(&self) {
        let left = self.created_files().left();
        for (path, created) in left {
            let access = nono_policy::AccessMode::Write;
            let why = format!(
                "only {} was approved, and the file was never renamed to it",
                created.original.display()
            );
            let attempt = DeniedAttempt::Open { path, access };
            self.note_refusal(attempt, &RefusalReason::Failed { why }, &created.program, || created.pid);
        }
    }
}

fn from(call: &Notification, index: usize) -> PathArgument {
    PathArgument { start: PathStart::of(call.args[index]), path: call.args[index + 1] }
}

/// Lower half of an argument, which the kernel takes as an `int`.
fn low(argument: u64) -> u64 {
    argument & u64::from(u32::MAX)
}

const PLAIN: ResolveFlags = ResolveFlags::NO_SYMLINKS.union(ResolveFlags::NO_MAGICLINKS);

/// Directory of an object in this process's view, and its name there; fails if the name is another object.
fn in_folder(path: &Path, identity: Identity) -> io::Result<(OwnedFd, &OsStr)> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat2(rustix::fs::CWD, folder, flags, Mode::empty(), PLAIN)?;
    let stat = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if Identity::of_stat(&stat) == identity {
        Ok((folder, name))
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

fn place_of(target: &OpenTarget) -> io::Result<(OwnedFd, &OsStr)> {
    match target {
        OpenTarget::There { path, identity, .. } => in_folder(path, *identity),
        OpenTarget::Missing { folder_path, folder_identity, name, .. } => {
            Ok((pin_path::outside(folder_path, *folder_identity)?, name))
        }
    }
}

fn remove(path: &Path, identity: Identity) -> io::Result<()> {
    let (folder, name) = in_folder(path, identity)?;
    Ok(rustix::fs::unlinkat(&folder, name, AtFlags::empty())?)
}

static LINKED: AtomicU64 = AtomicU64::new(0);

/// Links an unnamed file into a directory; `over`: atomically replaces what is there.
fn link(created: &UnnamedFile, folder: &OwnedFd, name: &OsStr, over: bool) -> io::Result<()> {
    let file = CString::new(pin_path::own_link(created.file.as_fd()).into_os_string().into_vec())?;
    let linked =
        |name: &CStr| rustix::fs::linkat(rustix::fs::CWD, &*file, folder, name, AtFlags::SYMLINK_FOLLOW);
    let name = CString::new(name.as_bytes())?;
    if !over {
        return Ok(linked(&name)?);
    }
    let number = LINKED.fetch_add(1, Ordering::Relaxed);
    let beside = CString::new(format!(".nono-{}-{number}", std::process::id()))?;
    linked(&beside)?;
    let renamed = rustix::fs::renameat(folder, &*beside, folder, &*name);
    if renamed.is_err() {
        // Best effort: the error that matters is the one returned.
        let _ = rustix::fs::unlinkat(folder, &*beside, AtFlags::empty());
    }
    Ok(renamed?)
}
