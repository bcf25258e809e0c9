//! Attributes of files: owner, extended attributes, permission bits, time, in this order.
//!
//! The owner comes first because changing it clears set-uid bits, the time last because everything else changes it.
//! Changes that are not permitted are collected and reported, and the rest is still done; a set-uid or set-gid bit is
//! set only on a file whose owner is right.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{AtFlags, CWD, Gid, Mode, Stat, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags};
use rustix::io::Errno;

use super::RestoreError;
use crate::diff::BITS_OF_ALL;
use crate::disk;
use crate::node::{Meta, Time, Xattr};

/// A file whose attributes are set. Never resolved through a link.
#[derive(Clone, Copy, Debug)]
pub(super) enum Handle<'a> {
    Open(BorrowedFd<'a>),
    /// Opened with `O_PATH`; not a link.
    Path(BorrowedFd<'a>),
    /// A link: only its name in a directory can be used.
    Link(BorrowedFd<'a>, &'a [u8]),
}

pub(super) fn proc_path(fd: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

impl Handle<'_> {
    /// Path to this very file, for system calls that take no descriptor.
    fn path(self) -> Vec<u8> {
        match self {
            Handle::Open(fd) | Handle::Path(fd) => proc_path(fd).into_bytes(),
            Handle::Link(dir, name) => [proc_path(dir).as_bytes(), b"/", name].concat(),
        }
    }

    pub(super) fn stat(self) -> io::Result<Stat> {
        Ok(match self {
            Handle::Open(fd) | Handle::Path(fd) => rustix::fs::fstat(fd)?,
            Handle::Link(dir, name) => rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?,
        })
    }

    fn chown(self, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        disk::step()?;
        let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
        let done = match self {
            Handle::Open(fd) => rustix::fs::fchown(fd, uid, gid),
            Handle::Path(fd) => rustix::fs::chownat(fd, c"", uid, gid, AtFlags::EMPTY_PATH),
            Handle::Link(dir, name) => rustix::fs::chownat(dir, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW),
        };
        Ok(done?)
    }

    pub(super) fn chmod(self, mode: u16) -> io::Result<()> {
        let mode = Mode::from_raw_mode(u32::from(mode));
        disk::step()?;
        let done = match self {
            Handle::Open(fd) => rustix::fs::fchmod(fd, mode),
            Handle::Path(fd) => rustix::fs::chmodat(CWD, proc_path(fd), mode, AtFlags::empty()),
            // Links have no permissions.
            Handle::Link(..) => Ok(()),
        };
        Ok(done?)
    }

    pub(super) fn set_mtime(self, time: Time) -> io::Result<()> {
        disk::step()?;
        self.set_times(Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT }, time)?;
        let stat = self.stat()?;
        if is_mtime(&stat, time) {
            return Ok(());
        }
        // FUSE filesystems of libfuse 2 report success and do nothing, unless both times are given.
        let atime = Timespec { tv_sec: stat.st_atime, tv_nsec: stat.st_atime_nsec.cast_signed() };
        self.set_times(atime, time)
    }

    fn set_times(self, last_access: Timespec, time: Time) -> io::Result<()> {
        let last_modification = Timespec { tv_sec: time.seconds, tv_nsec: i64::from(time.nanos) };
        let times = Timestamps { last_access, last_modification };
        let done = match self {
            Handle::Open(fd) => rustix::fs::futimens(fd, &times),
            Handle::Path(fd) => rustix::fs::utimensat(CWD, proc_path(fd), &times, AtFlags::empty()),
            Handle::Link(dir, name) => rustix::fs::utimensat(dir, name, &times, AtFlags::SYMLINK_NOFOLLOW),
        };
        Ok(done?)
    }

    fn set_xattr(self, name: &[u8], value: &[u8]) -> io::Result<()> {
        disk::step()?;
        let done = match self {
            Handle::Open(fd) => rustix::fs::fsetxattr(fd, name, value, XattrFlags::empty()),
            Handle::Path(_) => rustix::fs::setxattr(self.path(), name, value, XattrFlags::empty()),
            Handle::Link(..) => rustix::fs::lsetxattr(self.path(), name, value, XattrFlags::empty()),
        };
        Ok(done?)
    }

    fn remove_xattr(self, name: &[u8]) -> io::Result<()> {
        disk::step()?;
        let done = match self {
            Handle::Open(fd) => rustix::fs::fremovexattr(fd, name),
            Handle::Path(_) => rustix::fs::removexattr(self.path(), name),
            Handle::Link(..) => rustix::fs::lremovexattr(self.path(), name),
        };
        Ok(done?)
    }

    /// Whether the attribute has exactly this value.
    fn has_xattr(self, name: &[u8], value: &[u8]) -> bool {
        let mut found = vec![0u8; value.len() + 1];
        let len = match self {
            Handle::Open(fd) => rustix::fs::fgetxattr(fd, name, &mut found[..]),
            Handle::Path(_) => rustix::fs::getxattr(self.path(), name, &mut found[..]),
            Handle::Link(..) => rustix::fs::lgetxattr(self.path(), name, &mut found[..]),
        };
        len.is_ok_and(|len| found.get(..len) == Some(value))
    }
}

pub(super) fn is_mtime(stat: &Stat, time: Time) -> bool {
    stat.st_mtime == time.seconds && stat.st_mtime_nsec == u64::from(time.nanos)
}

/// Access control lists that a new file inherits from its directory.
pub(super) const INHERITED: [&[u8]; 2] = [b"system.posix_acl_access", b"system.posix_acl_default"];

/// Current attributes of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct CurrentAttributes<'a> {
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// `None`: set it in any case.
    pub(super) mode: Option<u16>,
    pub(super) xattrs: &'a [Xattr],
    /// Whether it may have inherited access control lists from its directory.
    pub(super) inherits: bool,
    /// `None`: set it in any case.
    pub(super) mtime: Option<Time>,
}

impl CurrentAttributes<'static> {
    /// Owner and permissions from a stat.
    pub(super) fn of(stat: &Stat) -> CurrentAttributes<'static> {
        let mode = u16::try_from(stat.st_mode & 0o7777).ok();
        let (uid, gid) = (stat.st_uid, stat.st_gid);
        CurrentAttributes { uid, gid, mode, xattrs: &[], inherits: false, mtime: None }
    }
}

pub(super) type Problems = Vec<RestoreError>;

/// Set the attributes `want` on a file.
pub(super) fn set(handle: Handle<'_>, has: CurrentAttributes<'_>, want: &Meta, problems: &mut Problems) {
    let uid = (has.uid != want.uid).then_some(want.uid);
    let gid = (has.gid != want.gid).then_some(want.gid);
    let chown = uid.is_some() || gid.is_some();
    let given = if chown { handle.chown(uid, gid) } else { Ok(()) };
    let owned = given.is_ok();
    problems.extend(given.err().map(|source| RestoreError::Owner { source }));
    let xattrs = set_xattrs(handle, &has, want, problems);
    // Set-uid and set-gid bits of another user's file must not be set on ours.
    let mode = if owned { want.mode } else { want.mode & BITS_OF_ALL };
    let mut note = |result: io::Result<()>, doing| {
        problems.extend(result.err().map(RestoreError::io(doing)));
    };
    if chown || xattrs || has.mode != Some(mode) {
        note(handle.chmod(mode), "change its permissions");
    }
    if has.mtime != Some(want.mtime) {
        note(handle.set_mtime(want.mtime), "set its time");
    }
}

/// Set the extended attributes. True if any changed: access control lists change the permission bits.
fn set_xattrs(handle: Handle<'_>, has: &CurrentAttributes<'_>, want: &Meta, problems: &mut Problems) -> bool {
    let named = |list: &[Xattr], name: &[u8]| list.iter().any(|xattr| *xattr.name == *name);
    let old = has.xattrs.iter().map(|xattr| &*xattr.name);
    let inherited = INHERITED.iter().copied().filter(|_| has.inherits);
    let extra: Vec<&[u8]> = old.chain(inherited).filter(|name| !named(&want.xattrs, name)).collect();
    let differing: Vec<&Xattr> =
        want.xattrs.iter().filter(|xattr| has.inherits || !has.xattrs.contains(xattr)).collect();
    for name in &extra {
        if let Err(source) = writable(handle, || handle.remove_xattr(name)) {
            let gone = [Errno::NODATA, Errno::OPNOTSUPP];
            if !gone.contains(&Errno::from_io_error(&source).unwrap_or(Errno::IO)) {
                problems.push(RestoreError::Xattr { name: lossy(name), source });
            }
        }
    }
    for Xattr { name, value } in &differing {
        if let Err(source) = writable(handle, || handle.set_xattr(name, value))
            && !handle.has_xattr(name, value)
        {
            problems.push(RestoreError::Xattr { name: lossy(name), source });
        }
    }
    !extra.is_empty() || !differing.is_empty()
}

/// Retry a change after making the file writable for its owner. The permission bits are set afterwards in any case.
fn writable(handle: Handle<'_>, change: impl Fn() -> io::Result<()>) -> io::Result<()> {
    match change() {
        Err(error) if error.raw_os_error() == Some(Errno::ACCESS.raw_os_error()) => {
            handle.chmod(0o700)?;
            change()
        }
        result => result,
    }
}

fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
