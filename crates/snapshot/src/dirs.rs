//! The directories of a tree by number, and the few of them that are open.
//!
//! Everything below a root is reached from its parent's descriptor, one component at a time, so no path is resolved
//! twice and no link is followed. A queued directory keeps its descriptor unless too many do; then it is opened again
//! from the root, beneath it and without links, and must be the same inode.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, StatxFlags};

use crate::node::Name;
use crate::pool::locked;

/// Maximum number of queued directories that keep an open descriptor.
const OPEN_LIMIT: usize = 256;
/// Length of the path pieces given to the kernel, which takes up to 4096 bytes.
const PATH_PIECE: usize = 3800;

const OPEN_DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK);

/// A directory's number in [`Dirs`]; the root has number 0.
pub(crate) type DirId = u32;

pub(crate) struct Dirs {
    root: OwnedFd,
    table: Mutex<Vec<(DirId, Box<[u8]>)>>,
    open: Arc<AtomicUsize>,
}

impl fmt::Debug for Dirs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dirs({})", self.len())
    }
}

/// A directory that may or may not be open.
#[derive(Debug)]
pub(crate) struct Dir {
    pub(crate) id: DirId,
    pub(crate) inode: Inode,
    fd: Option<OwnedFd>,
    open: Arc<AtomicUsize>,
}

/// Identity of a directory, to detect a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inode {
    pub(crate) dev: (u32, u32),
    pub(crate) ino: u64,
}

impl Drop for Dir {
    fn drop(&mut self) {
        if self.fd.is_some() {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A directory's descriptor: kept by its [`Dir`], or opened for this use.
#[derive(Debug)]
pub(crate) enum DirFd<'a> {
    Kept(BorrowedFd<'a>),
    Opened(OwnedFd),
}

impl AsFd for DirFd<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            DirFd::Kept(fd) => *fd,
            DirFd::Opened(fd) => fd.as_fd(),
        }
    }
}

impl Dirs {
    pub(crate) fn new(root: OwnedFd) -> Dirs {
        Dirs { root, table: Mutex::new(vec![(0, Box::default())]), open: Arc::default() }
    }

    pub(crate) fn len(&self) -> usize {
        locked(&self.table).len()
    }

    /// The root, to start from. Opened anew: a duplicated descriptor would share the read offset of the listing.
    pub(crate) fn root(&self) -> io::Result<Dir> {
        self.keep(0, open_dir(self.root.as_fd(), b".")?)
    }

    /// Assign a number to the directory `name` in `parent`.
    pub(crate) fn add(&self, parent: DirId, name: &[u8]) -> DirId {
        let mut table = locked(&self.table);
        table.push((parent, name.into()));
        DirId::try_from(table.len() - 1).unwrap_or(DirId::MAX)
    }

    /// Keep an opened directory for later.
    pub(crate) fn keep(&self, id: DirId, fd: OwnedFd) -> io::Result<Dir> {
        let inode = inode_of(fd.as_fd())?;
        let open = self.open.fetch_add(1, Ordering::Relaxed);
        let fd = (open < OPEN_LIMIT).then_some(fd);
        if fd.is_none() {
            self.open.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(Dir { id, inode, fd, open: self.open.clone() })
    }

    /// Descriptor of a directory, reopened if it was not kept. A different directory in its place is an error.
    pub(crate) fn fd<'a>(&self, dir: &'a Dir) -> io::Result<DirFd<'a>> {
        if let Some(fd) = &dir.fd {
            return Ok(DirFd::Kept(fd.as_fd()));
        }
        let fd = self.reopen(dir.id)?;
        if inode_of(fd.as_fd())? != dir.inode {
            return Err(rustix::io::Errno::STALE.into());
        }
        Ok(DirFd::Opened(fd))
    }

    /// Path relative to the root, with `/` between components; empty for the root.
    pub(crate) fn path(&self, id: DirId) -> Vec<u8> {
        self.names(id).join(&b'/')
    }

    fn names(&self, mut id: DirId) -> Vec<Box<[u8]>> {
        let table = locked(&self.table);
        let mut names = Vec::new();
        while let Some((parent, name)) = table.get(id as usize).filter(|_| id != 0) {
            names.push(name.clone());
            id = *parent;
        }
        names.reverse();
        names
    }

    /// Parent and name; `None` for the root.
    pub(crate) fn entry(&self, id: DirId) -> Option<(DirId, Box<[u8]>)> {
        locked(&self.table).get(id as usize).filter(|_| id != 0).cloned()
    }

    /// Open a directory from the root, beneath it and without links.
    pub(crate) fn reopen(&self, id: DirId) -> io::Result<OwnedFd> {
        let below = open_beneath(self.root.as_fd(), self.names(id).iter().map(|name| &**name))?;
        below.map_or_else(|| self.root.try_clone(), Ok)
    }
}

/// Open a directory by its components, in pieces that the kernel accepts, beneath `top` and through no link.
pub(crate) fn open_beneath<'n>(
    top: BorrowedFd<'_>,
    names: impl Iterator<Item = &'n [u8]>,
) -> io::Result<Option<OwnedFd>> {
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let mut fd: Option<OwnedFd> = None;
    let mut piece: Vec<u8> = Vec::new();
    let open = |from: Option<OwnedFd>, path: &[u8]| {
        let from = from.as_ref().map_or(top, |fd| fd.as_fd());
        rustix::fs::openat2(from, path, OPEN_DIR, Mode::empty(), how)
    };
    for name in names {
        if !piece.is_empty() && piece.len() + name.len() > PATH_PIECE {
            fd = Some(open(fd, &piece)?);
            piece.clear();
        }
        piece.extend_from_slice(name);
        piece.push(b'/');
    }
    if piece.is_empty() { Ok(fd) } else { Ok(Some(open(fd, &piece)?)) }
}

/// Open the directory `name` in `dir`, never through a link.
pub(crate) fn open_dir(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(dir, name, OPEN_DIR, Mode::empty())?)
}

/// Parent directory of a root, opened without following links, and the root's name in it.
pub(crate) fn place_of(root: &Path) -> io::Result<(OwnedFd, Name)> {
    let name = root.file_name().and_then(|name| Name::new(name.as_encoded_bytes()));
    let name = name.ok_or(rustix::io::Errno::INVAL)?;
    let parent = root.parent().unwrap_or(Path::new("/"));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok((rustix::fs::openat2(rustix::fs::CWD, parent, flags, Mode::empty(), how)?, name))
}

pub(crate) fn inode_of(fd: BorrowedFd<'_>) -> io::Result<Inode> {
    let stat = rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::INO)?;
    Ok(Inode { dev: (stat.stx_dev_major, stat.stx_dev_minor), ino: stat.stx_ino })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More directories than may be open, nested deeper than the maximum path length.
    #[test]
    fn deep_directories_are_opened_again() {
        let base = tempfile::tempdir().unwrap();
        let root = open_dir(rustix::fs::CWD, base.path().as_os_str().as_encoded_bytes()).unwrap();
        let dirs = Dirs::new(root);
        let mut kept = vec![dirs.root().unwrap()];
        let name = [b'n'; 100];
        for _ in 0..400 {
            let parent = kept.last().unwrap();
            let fd = dirs.fd(parent).unwrap();
            rustix::fs::mkdirat(&fd, &name[..], Mode::RWXU).unwrap();
            let child = open_dir(fd.as_fd(), &name).unwrap();
            let id = dirs.add(parent.id, &name);
            drop(fd);
            kept.push(dirs.keep(id, child).unwrap());
        }
        assert!(kept.last().unwrap().fd.is_none());
        assert_eq!(dirs.path(kept.last().unwrap().id).len(), 400 * 101 - 1);
        // A different directory in its place is detected.
        let [.., parent, last] = &kept[..] else { panic!("two at least") };
        let parent = dirs.fd(parent).unwrap();
        rustix::fs::renameat(&parent, &name[..], &parent, "moved").unwrap();
        rustix::fs::mkdirat(&parent, &name[..], Mode::RWXU).unwrap();
        assert!(dirs.fd(last).is_err());
    }
}
