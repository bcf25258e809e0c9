//! Resolution of a path given by the command to a pinned object.
//!
//! Every path is followed in the command's own view of the file system (its root, its mounts, its masks) and never
//! through a magic link. The object is pinned by a descriptor, and from then on that object is shown, judged and
//! opened; what the path leads to later does not matter.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::call::{OpenRequest, PathStart};

/// Maximum number of attempts to open.
const TRIES: usize = 100;

/// Calls `openat2`. While anything is renamed or mounted anywhere on the machine the kernel cannot tell whether a `..`
/// stays below, and returns `EAGAIN`. That must not decide the command's call: left to the kernel, it would be refused
/// without being judged.
pub(super) fn open_how(
    dir: impl AsFd,
    path: &OsStr,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> rustix::io::Result<OwnedFd> {
    for _ in 0..TRIES {
        match rustix::fs::openat2(dir.as_fd(), path, flags, mode, resolve) {
            Err(Errno::AGAIN) => {}
            result => return result,
        }
    }
    Err(Errno::AGAIN)
}

/// Device and inode: unique as long as the object is pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    pub(super) dev: u64,
    pub(super) ino: u64,
}

impl Identity {
    pub(super) fn of(meta: &std::fs::Metadata) -> Identity {
        use std::os::unix::fs::MetadataExt;
        Identity { dev: meta.dev(), ino: meta.ino() }
    }

    pub(super) fn of_stat(stat: &rustix::fs::Stat) -> Identity {
        Identity { dev: stat.st_dev, ino: stat.st_ino }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PinnedKind {
    File,
    Directory,
    /// Device, pipe or socket.
    Special,
}

#[derive(Debug)]
pub(super) enum OpenTarget {
    There {
        pin: OwnedFd,
        path: PathBuf,
        identity: Identity,
        kind: PinnedKind,
        links: u64,
    },
    /// Name that does not exist, in a directory that does.
    Missing {
        /// Held open so that its identity is not reused.
        _folder: OwnedFd,
        folder_path: PathBuf,
        folder_identity: Identity,
        name: OsString,
    },
}

impl OpenTarget {
    /// Path without links, as the command sees it.
    pub(super) fn path(&self) -> PathBuf {
        match self {
            OpenTarget::There { path, .. } => path.clone(),
            OpenTarget::Missing { folder_path, name, .. } => folder_path.join(name),
        }
    }

    pub(super) fn identity(&self) -> Option<Identity> {
        match self {
            OpenTarget::There { identity, .. } => Some(*identity),
            OpenTarget::Missing { .. } => None,
        }
    }
}

#[derive(Debug)]
pub(super) enum Resolved {
    Target(OpenTarget),
    /// The command cannot see it, because of a mask or of permissions: the kernel refuses it.
    Hidden,
    /// Nothing to decide: the kernel returns its own error, or judges what only it can (`/proc`).
    Kernel,
}

/// Maximum number of dangling links followed.
const MOST_LINKS: usize = 16;
const PROC_MAGIC: i64 = 0x9fa0;
/// Flags that anchor a path at its start, so that it cannot be made absolute.
const ANCHORED: u64 = 0x01 | BENEATH | IN_ROOT;
const BENEATH: u64 = 0x08;
const IN_ROOT: u64 = 0x10;
const NO_SYMLINKS: u64 = 0x04;

/// Directory a relative path starts at, as text.
pub(super) fn base(tid: u32, start: PathStart) -> io::Result<Vec<u8>> {
    let link = std::fs::read_link(base_link(tid, start))?.into_os_string().into_vec();
    if link.first() == Some(&b'/') { Ok(link) } else { Err(io::ErrorKind::NotADirectory.into()) }
}

fn base_link(tid: u32, start: PathStart) -> String {
    match start {
        PathStart::WorkingDirectory => format!("/proc/{tid}/cwd"),
        PathStart::Descriptor(fd) => format!("/proc/{tid}/fd/{fd}"),
    }
}

/// Follows `path` for the thread `tid`, whose root is `root`.
pub(super) fn resolve(
    root: BorrowedFd<'_>,
    tid: u32,
    start: PathStart,
    path: &[u8],
    how: OpenRequest,
) -> io::Result<Resolved> {
    if path.is_empty() {
        return Ok(Resolved::Kernel);
    }
    if how.resolve & ANCHORED != 0 {
        return anchored(root, tid, start, path, how);
    }
    let mut absolute = path.to_vec();
    if path[0] != b'/' {
        let Ok(mut base) = base(tid, start) else { return Ok(Resolved::Kernel) };
        base.push(b'/');
        base.extend_from_slice(path);
        absolute = base;
    }
    from_root(root, &absolute, how)
}

/// Follows an absolute path.
pub(super) fn from_root(root: BorrowedFd<'_>, path: &[u8], how: OpenRequest) -> io::Result<Resolved> {
    let mut path = path.to_vec();
    for _ in 0..MOST_LINKS {
        let follow = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | no_symlinks(how);
        match open_how(root, OsStr::from_bytes(&path), named(how), Mode::empty(), follow) {
            Ok(pin) => return pinned(pin),
            Err(Errno::NOENT) if how.creates() => {}
            Err(Errno::ACCESS) => return Ok(Resolved::Hidden),
            // The kernel returns the same error to the command.
            Err(_) => return Ok(Resolved::Kernel),
        }
        match missing(root, &path, how)? {
            Missed::Resolved(resolved) => return Ok(resolved),
            Missed::LeadsTo(next) => path = next,
        }
    }
    Ok(Resolved::Kernel)
}

fn no_symlinks(how: OpenRequest) -> ResolveFlags {
    if how.resolve & NO_SYMLINKS != 0 { ResolveFlags::NO_SYMLINKS } else { ResolveFlags::empty() }
}

fn named(how: OpenRequest) -> OFlags {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    // An exclusive creation does not follow a link in the last component either.
    let stays = how.has(libc::O_NOFOLLOW) || how.has(libc::O_CREAT | libc::O_EXCL);
    if stays { flags | OFlags::NOFOLLOW } else { flags }
}

enum Missed {
    Resolved(Resolved),
    /// The name is a link to something that does not exist.
    LeadsTo(Vec<u8>),
}

fn missing(root: BorrowedFd<'_>, path: &[u8], how: OpenRequest) -> io::Result<Missed> {
    let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    let (folder, name) = (&path[..=end], OsStr::from_bytes(&path[end + 1..]));
    if name.is_empty() || name == "." || name == ".." {
        return Ok(Missed::Resolved(Resolved::Kernel));
    }
    let follow = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS | no_symlinks(how);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = open_how(root, OsStr::from_bytes(folder), flags, Mode::empty(), follow) else {
        return Ok(Missed::Resolved(Resolved::Kernel));
    };
    if on_proc(folder.as_fd())? {
        return Ok(Missed::Resolved(Resolved::Kernel));
    }
    let folder_path = path_of(folder.as_fd())?;
    if let Ok(link) = rustix::fs::readlinkat(&folder, name, Vec::new()) {
        let stays = how.has(libc::O_NOFOLLOW) || how.has(libc::O_EXCL) || how.resolve & NO_SYMLINKS != 0;
        let leads = folder_path.join(OsStr::from_bytes(link.as_bytes())).into_os_string().into_vec();
        return Ok(if stays { Missed::Resolved(Resolved::Kernel) } else { Missed::LeadsTo(leads) });
    }
    let stat = rustix::fs::fstat(&folder)?;
    Ok(Missed::Resolved(Resolved::Target(OpenTarget::Missing {
        folder_identity: Identity::of_stat(&stat),
        _folder: folder,
        folder_path,
        name: name.to_owned(),
    })))
}

/// Follows a path beneath a descriptor, or with it as the root: then it must be that descriptor.
fn anchored(
    root: BorrowedFd<'_>,
    tid: u32,
    start: PathStart,
    path: &[u8],
    how: OpenRequest,
) -> io::Result<Resolved> {
    // An absolute path leaves every anchor but a root; then it starts at the command's root, which is not the
    // supervisor's.
    let absolute = path.first() == Some(&b'/') && how.resolve & IN_ROOT == 0;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let base = if absolute {
        root.try_clone_to_owned()?
    } else {
        match rustix::fs::open(base_link(tid, start), flags, Mode::empty()) {
            Ok(base) => base,
            Err(_) => return Ok(Resolved::Kernel),
        }
    };
    let Some(resolve) = u32::try_from(how.resolve).ok().and_then(|bits| ResolveFlags::from_bits(bits.into()))
    else {
        return Ok(Resolved::Kernel);
    };
    let rooted =
        if absolute && how.resolve & BENEATH == 0 { ResolveFlags::IN_ROOT } else { ResolveFlags::empty() };
    let follow = (resolve | rooted | ResolveFlags::NO_MAGICLINKS) - ResolveFlags::CACHED;
    match open_how(&base, OsStr::from_bytes(path), named(how), Mode::empty(), follow) {
        Ok(pin) => pinned(pin),
        Err(_) => Ok(Resolved::Kernel),
    }
}

fn pinned(pin: OwnedFd) -> io::Result<Resolved> {
    let stat = rustix::fs::fstat(&pin)?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => PinnedKind::File,
        FileType::Directory => PinnedKind::Directory,
        // Only where links are not followed: the kernel returns the error.
        FileType::Symlink => return Ok(Resolved::Kernel),
        _ => PinnedKind::Special,
    };
    if on_proc(pin.as_fd())? || stat.st_nlink == 0 {
        return Ok(Resolved::Kernel);
    }
    let path = path_of(pin.as_fd())?;
    if !path.is_absolute() {
        return Ok(Resolved::Kernel);
    }
    let identity = Identity::of_stat(&stat);
    #[allow(clippy::useless_conversion, reason = "its size depends on the architecture")]
    let links = stat.st_nlink.into();
    Ok(Resolved::Target(OpenTarget::There { pin, path, identity, kind, links }))
}

/// Name in a directory, whatever it leads to.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) folder: PathBuf,
    name: OsString,
    pub(super) is_there: bool,
}

impl Named {
    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }
}

/// Follows all of `path` but its last component. `None`: there is no such directory, or it is on procfs.
pub(super) fn last_name(root: BorrowedFd<'_>, tid: u32, start: PathStart, path: &[u8]) -> Option<Named> {
    let mut path = path.to_vec();
    while path.len() > 1 && path.last() == Some(&b'/') {
        path.pop();
    }
    let (folder, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(end) => (&path[..=end], &path[end + 1..]),
        None => (&b"."[..], &path[..]),
    };
    if matches!(name, b"" | b"." | b"..") {
        return None;
    }
    let how = OpenRequest { flags: libc::O_DIRECTORY, mode: 0, resolve: 0 };
    match resolve(root, tid, start, folder, how).ok()? {
        Resolved::Target(OpenTarget::There { pin, path, kind: PinnedKind::Directory, .. }) => {
            let name = OsStr::from_bytes(name).to_owned();
            let is_there = rustix::fs::statat(&pin, &name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok();
            Some(Named { folder: path, name, is_there })
        }
        _ => None,
    }
}

/// Whether it is on procfs, whose content depends on the process that reads it: it is never opened for another one.
pub(super) fn on_proc(fd: BorrowedFd<'_>) -> io::Result<bool> {
    #[allow(clippy::useless_conversion, reason = "its size depends on the architecture")]
    let kind: i64 = rustix::fs::fstatfs(fd)?.f_type.into();
    Ok(kind == PROC_MAGIC)
}

pub(super) fn path_of(fd: BorrowedFd<'_>) -> io::Result<PathBuf> {
    std::fs::read_link(own_link(fd))
}

/// Path under which this process can reopen a pinned object.
pub(super) fn own_link(fd: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// Pins the same object in *this* process's view of the file system, where the mounts are not read-only. An error if
/// another object is there: the command's view has a mask or a mount of its own at that path.
pub(super) fn outside(path: &Path, identity: Identity) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let follow = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let pin = rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), follow)?;
    let stat = rustix::fs::fstat(&pin)?;
    if Identity::of_stat(&stat) == identity { Ok(pin) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(flags: i32) -> OpenRequest {
        OpenRequest { flags, mode: 0o666, resolve: 0 }
    }

    fn root() -> OwnedFd {
        rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap()
    }

    fn at(path: &Path, flags: i32) -> Resolved {
        let own = std::process::id();
        let path = path.as_os_str().as_bytes();
        resolve(root().as_fd(), own, PathStart::WorkingDirectory, path, how(flags)).unwrap()
    }

    fn target(resolved: Resolved) -> OpenTarget {
        match resolved {
            Resolved::Target(target) => target,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn links_are_followed_to_what_they_mean() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().canonicalize().unwrap();
        std::fs::write(dir.join("real"), "x").unwrap();
        std::os::unix::fs::symlink("real", dir.join("link")).unwrap();
        std::os::unix::fs::symlink(dir.join("later"), dir.join("dangling")).unwrap();
        assert_eq!(target(at(&dir.join("link"), 0)).path(), dir.join("real"));
        assert!(matches!(at(&dir.join("link"), libc::O_NOFOLLOW), Resolved::Kernel));
        assert!(matches!(at(&dir.join("dangling"), 0), Resolved::Kernel), "the kernel says ENOENT");
        let made = target(at(&dir.join("dangling"), libc::O_CREAT));
        assert_eq!(made.path(), dir.join("later"));
        assert!(matches!(made, OpenTarget::Missing { .. }));
        assert!(matches!(at(&dir.join("dangling"), libc::O_CREAT | libc::O_EXCL), Resolved::Kernel));
    }

    #[test]
    fn nothing_on_proc_is_ours_to_open() {
        for path in ["/proc/self/status", "/proc/self/fd/0", "/proc/1/root/etc/passwd", "/dev/stdin"] {
            assert!(!matches!(at(Path::new(path), 0), Resolved::Target(_)), "{path}");
        }
    }

    #[test]
    fn the_object_outside_must_be_the_same() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().canonicalize().unwrap();
        std::fs::write(dir.join("a"), "a").unwrap();
        let OpenTarget::There { identity, path, .. } = target(at(&dir.join("a"), 0)) else { panic!() };
        assert!(outside(&path, identity).is_ok());
        std::fs::write(dir.join("b"), "b").unwrap();
        std::fs::rename(dir.join("b"), dir.join("a")).unwrap();
        assert!(outside(&path, identity).is_err());
    }
}
