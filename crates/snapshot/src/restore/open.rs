//! Open directories of a plan. Each stays open while work in it remains, unless too many are: then the one opened first
//! is closed. It is reopened from a child by `..`, or from the top, beneath it and without links; in both cases it must
//! be the same inode, so a directory moved or replaced meanwhile is an error and not a way out.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::plan::{DirIndex, RestorePlan};

use crate::dirs::{Inode, inode_of, open_beneath, open_dir};
use crate::disk;
use crate::node::Name;
use crate::pool::locked as lock;

const OPEN_LIMIT: usize = 256;

#[derive(Debug)]
struct OpenedDir {
    fd: Mutex<Option<Arc<OwnedFd>>>,
    /// Set when the descriptor was closed.
    inode: OnceLock<Inode>,
    opened_up: AtomicBool,
}

#[derive(Debug)]
pub(super) struct Opened<'a> {
    plan: &'a RestorePlan,
    live: Vec<OnceLock<OpenedDir>>,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    order: VecDeque<DirIndex>,
    open: usize,
}

impl<'a> Opened<'a> {
    pub(super) fn new(plan: &'a RestorePlan) -> Opened<'a> {
        let live = std::iter::repeat_with(OnceLock::new).take(plan.dirs.len()).collect();
        Opened { plan, live, queue: Mutex::default() }
    }

    /// Keep an opened directory open.
    pub(super) fn put(&self, index: DirIndex, fd: OwnedFd) -> Arc<OwnedFd> {
        let fd = Arc::new(fd);
        let live = self.live[index].get_or_init(|| OpenedDir {
            fd: Mutex::new(None),
            inode: OnceLock::new(),
            opened_up: AtomicBool::new(false),
        });
        self.hold(index, live, &fd);
        fd
    }

    fn hold(&self, index: DirIndex, live: &OpenedDir, fd: &Arc<OwnedFd>) {
        let fresh = lock(&live.fd).replace(fd.clone()).is_none();
        if !fresh || self.plan.dirs[index].parent == index {
            return;
        }
        let mut queue = lock(&self.queue);
        queue.order.push_back(index);
        queue.open += 1;
        while queue.open > OPEN_LIMIT {
            let Some(oldest) = queue.order.pop_front() else { break };
            queue.open -= usize::from(self.live[oldest].get().is_some_and(OpenedDir::give_up));
        }
    }

    /// Close a directory in which no work remains.
    pub(super) fn close(&self, index: DirIndex) {
        let live = self.live[index].get();
        if live.is_some_and(|live| lock(&live.fd).take().is_some()) && self.plan.dirs[index].parent != index {
            lock(&self.queue).open -= 1;
        }
    }

    pub(super) fn mark_opened_up(&self, index: DirIndex) {
        if let Some(live) = self.live[index].get() {
            live.opened_up.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn is_opened_up(&self, index: DirIndex) -> bool {
        self.live[index].get().is_some_and(|live| live.opened_up.load(Ordering::Relaxed))
    }

    /// Descriptor of a directory; if it was closed, reopened from `child`, a directory in it, or from the top.
    pub(super) fn get(&self, index: DirIndex, child: Option<BorrowedFd<'_>>) -> io::Result<Arc<OwnedFd>> {
        let live = self.live[index].get().ok_or(Errno::STALE)?;
        if let Some(fd) = &*lock(&live.fd) {
            return Ok(fd.clone());
        }
        let inode = live.inode.get().ok_or(Errno::STALE)?;
        let up = child.and_then(|child| open_dir(child, b"..").ok());
        let up = up.filter(|fd| inode_of(fd.as_fd()).is_ok_and(|found| found == *inode));
        let fd = match up {
            Some(fd) => fd,
            None => self.reopen(index)?,
        };
        if inode_of(fd.as_fd())? != *inode {
            return Err(Errno::STALE.into());
        }
        let fd = Arc::new(fd);
        self.hold(index, live, &fd);
        Ok(fd)
    }

    fn reopen(&self, index: DirIndex) -> io::Result<OwnedFd> {
        let top = self.get(self.plan.top(index), None)?;
        open_path(top.as_fd(), &self.plan.names(index).1)
    }
}

impl OpenedDir {
    fn give_up(&self) -> bool {
        let mut fd = lock(&self.fd);
        let Some(inode) = fd.as_ref().and_then(|fd| inode_of(fd.as_fd()).ok()) else { return false };
        // The inode is the same each time it is opened.
        let _ = self.inode.set(inode);
        fd.take().is_some()
    }
}

/// Open a directory by its components, beneath `top` and through no link.
pub(super) fn open_path(top: BorrowedFd<'_>, names: &[&Name]) -> io::Result<OwnedFd> {
    match open_beneath(top, names.iter().map(|name| name.as_bytes()))? {
        Some(fd) => Ok(fd),
        None => open_dir(top, b"."),
    }
}

/// Open the parent directory of a root. The path is resolved, so a link in it was put there since.
pub(super) fn open_top(path: &std::path::Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), how)?)
}

/// Open an existing directory, changing its mode if it is ours and closed. True: the mode was changed.
pub(super) fn open_existing(parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<(OwnedFd, bool)> {
    match open_dir(parent, name) {
        Ok(fd) => Ok((fd, false)),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let path = rustix::fs::openat(parent, name, flags, Mode::empty())?;
            let mode = Mode::from_raw_mode(rustix::fs::fstat(&path)?.st_mode & 0o7777);
            disk::step()?;
            let itself = super::meta::proc_path(path.as_fd());
            rustix::fs::chmodat(rustix::fs::CWD, itself, mode | Mode::RWXU, AtFlags::empty())?;
            Ok((open_dir(path.as_fd(), b".")?, true))
        }
        Err(error) => Err(error),
    }
}

/// Make a directory writable. True: its mode had to be changed.
pub(super) fn open_up(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let mode = Mode::from_raw_mode(rustix::fs::fstat(fd)?.st_mode & 0o7777);
    if mode.contains(Mode::RWXU) {
        return Ok(false);
    }
    disk::step()?;
    rustix::fs::fchmod(fd, mode | Mode::RWXU)?;
    Ok(true)
}
