//! Makes entries readable that are closed to their own owner: a command may have removed the permissions of its files,
//! and their owner can restore them. A restore does this to capture what it is about to replace, and so does the last
//! snapshot of a session. The mode is restored when the guard is dropped.
//!
//! Each change is logged first ([`log`]), so that a kill at that moment has no lasting effect: the next operation that
//! enters the session restores the mode. Without the log no mode is changed.

mod log;

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

pub(crate) use self::log::{UnlockLog, close_again};
use crate::dirs::{DirId, Dirs};
use crate::disk;
use crate::paths;
use crate::pool::locked as lock;
use crate::stat::stat_fd;

/// Changed mode of an entry, and its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Opened {
    inode: u64,
    uid: u32,
    old: u32,
    new: u32,
}

/// A file or directory with added permissions.
#[derive(Debug)]
#[must_use = "the permissions go with it"]
pub(crate) struct Unlocked<'a> {
    fd: OwnedFd,
    opened: Opened,
    path: ScanPosition<'a>,
    log: &'a UnlockLog,
    /// A file may have two names: a thread that comes by the other one must not find its mode changed.
    _alone: Option<MutexGuard<'a, ()>>,
}

/// Location of an entry: a root, or a name in a directory of a scan.
#[derive(Clone, Copy, Debug)]
enum ScanPosition<'a> {
    Root(&'a Path),
    In(&'a OpenedUp<'a>, DirId, &'a [u8]),
}

impl ScanPosition<'_> {
    fn path(&self) -> std::path::PathBuf {
        match self {
            ScanPosition::Root(root) => root.to_path_buf(),
            ScanPosition::In(scan, dir, name) => {
                scan.root.join(paths::from_bytes(&scan.dirs.path(*dir))).join(paths::from_bytes(name))
            }
        }
    }
}

/// Entries whose mode a scan changes. Its directories stay accessible until it ends. They are remembered by their
/// place, not by a descriptor: there may be more of them than files can be open.
#[derive(Debug)]
pub(crate) struct OpenedUp<'a> {
    log: &'a UnlockLog,
    root: &'a Path,
    dirs: &'a Dirs,
    /// Number of the scan in the log.
    scan: u32,
    /// Directories whose place is in the log.
    noted: Mutex<HashSet<DirId>>,
    opened: Mutex<Vec<(DirId, Opened)>>,
}

impl<'a> OpenedUp<'a> {
    pub(crate) fn new(log: &'a UnlockLog, root: &'a Path, dirs: &'a Dirs) -> OpenedUp<'a> {
        let scan = log.next_scan();
        OpenedUp { log, root, dirs, scan, noted: Mutex::default(), opened: Mutex::default() }
    }

    /// Make the directory `name` in `parent`, which is the scan's directory `id`, accessible if necessary and possible.
    pub(crate) fn add(&self, id: DirId, parent: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
        let Some((fd, opened)) = look(parent, name, 0o500)? else { return Ok(()) };
        let (above, _) = self.dirs.entry(id).ok_or(Errno::STALE)?;
        self.note(above, name, opened)?;
        open_up(&fd, opened)?;
        lock(&self.opened).push((id, opened));
        Ok(())
    }

    /// Make the file `name` in `parent`, which is the scan's directory `dir`, readable as long as the guard exists.
    fn file<'b>(
        &'b self,
        dir: DirId,
        parent: BorrowedFd<'_>,
        name: &'b [u8],
    ) -> io::Result<Option<Unlocked<'b>>> {
        let alone = self.log.alone();
        let Some((fd, opened)) = look(parent, name, 0o400)? else { return Ok(None) };
        self.note(dir, name, opened)?;
        open_up(&fd, opened)?;
        let path = ScanPosition::In(self, dir, name);
        Ok(Some(Unlocked { fd, opened, path, log: self.log, _alone: Some(alone) }))
    }

    /// Log the mode that is about to be changed, with the directories that lead there and are not in the log yet.
    fn note(&self, dir: DirId, name: &[u8], opened: Opened) -> io::Result<()> {
        // Held until it is written: another thread's note may build on these directories.
        let mut noted = lock(&self.noted);
        let mut fresh = Vec::new();
        let mut at = dir;
        while at != 0 && !noted.contains(&at) {
            let (above, name) = self.dirs.entry(at).ok_or(Errno::STALE)?;
            fresh.push((at, above, name));
            at = above;
        }
        fresh.reverse();
        self.log.note(self.root, self.scan, &fresh, dir, name, opened)?;
        noted.extend(fresh.into_iter().map(|(id, ..)| id));
        Ok(())
    }

    fn close(&self, id: DirId, opened: Opened) -> io::Result<()> {
        let Some((above, name)) = self.dirs.entry(id) else { return Ok(()) };
        announce();
        let found = self.dirs.reopen(above).and_then(|above| find(above.as_fd(), &name));
        match found {
            Ok(fd) => close(&fd, opened),
            Err(error) if is_gone(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Drop for OpenedUp<'_> {
    fn drop(&mut self) {
        let mut all = std::mem::take(&mut *lock(&self.opened));
        // Each directory after its content: behind a closed directory nothing can be reached.
        all.sort_unstable_by_key(|(id, _)| std::cmp::Reverse(*id));
        for (id, opened) in all {
            if let Err(error) = self.close(id, opened) {
                self.log.stays_open(self.root.join(paths::from_bytes(&self.dirs.path(id))), error);
            }
        }
    }
}

/// Access to a file that is closed to its own owner.
pub(crate) trait Unlock {
    /// Make it readable, if necessary and possible. Otherwise reading it reports the error.
    fn open_up(&self) -> Option<Unlocked<'_>>;

    /// Lock that keeps every file's mode unchanged while it is held.
    fn quiet(&self) -> Option<MutexGuard<'_, ()>>;
}

/// A file in a directory of a scan.
pub(crate) struct ScannedFile<'a> {
    pub(crate) scan: Option<&'a OpenedUp<'a>>,
    pub(crate) dir: DirId,
    pub(crate) parent: BorrowedFd<'a>,
    pub(crate) name: &'a [u8],
}

impl Unlock for ScannedFile<'_> {
    fn open_up(&self) -> Option<Unlocked<'_>> {
        self.scan?.file(self.dir, self.parent, self.name).ok().flatten()
    }

    fn quiet(&self) -> Option<MutexGuard<'_, ()>> {
        Some(self.scan?.log.alone())
    }
}

/// A root that is a file. No other thread works on it.
pub(crate) struct RootFile<'a> {
    pub(crate) log: Option<&'a UnlockLog>,
    pub(crate) root: &'a Path,
    pub(crate) parent: BorrowedFd<'a>,
    pub(crate) name: &'a [u8],
}

impl Unlock for RootFile<'_> {
    fn open_up(&self) -> Option<Unlocked<'_>> {
        Unlocked::root(self.log?, self.root, self.parent, self.name, 0o400).ok().flatten()
    }

    fn quiet(&self) -> Option<MutexGuard<'_, ()>> {
        None
    }
}

impl<'a> Unlocked<'a> {
    /// Add `bits` to the mode of a root, `name` in `parent`, if it lacks them.
    pub(crate) fn root(
        log: &'a UnlockLog,
        root: &'a Path,
        parent: BorrowedFd<'_>,
        name: &[u8],
        bits: u32,
    ) -> io::Result<Option<Unlocked<'a>>> {
        let Some((fd, opened)) = look(parent, name, bits)? else { return Ok(None) };
        log.note(root, 0, &[], 0, b"", opened)?;
        open_up(&fd, opened)?;
        Ok(Some(Unlocked { fd, opened, path: ScanPosition::Root(root), log, _alone: None }))
    }
}

impl Drop for Unlocked<'_> {
    fn drop(&mut self) {
        announce();
        if let Err(error) = close(&self.fd, self.opened) {
            self.log.stays_open(self.path.path(), error);
        }
    }
}

/// Open an entry without following links.
fn find(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?)
}

/// The change that adds `bits` to the mode of `name` in `dir`; `None` if it is not ours or has them already.
fn look(dir: BorrowedFd<'_>, name: &[u8], bits: u32) -> io::Result<Option<(OwnedFd, Opened)>> {
    let fd = find(dir, name)?;
    let stat = stat_fd(fd.as_fd())?.stat;
    let ours = stat.uid == rustix::process::geteuid().as_raw();
    if !ours || stat.mode & bits == bits || !(stat.is_dir() || stat.is_file()) {
        return Ok(None);
    }
    let old = stat.mode & 0o7777;
    Ok(Some((fd, Opened { inode: stat.ino, uid: stat.uid, old, new: old | bits })))
}

fn open_up(fd: &OwnedFd, opened: Opened) -> io::Result<()> {
    disk::step()?;
    set(fd, opened.new)
}

/// Announce that a mode is restored. The answer is ignored: a full disk does not prevent setting a mode.
fn announce() {
    let _ = disk::step();
}

/// Restore the old mode, if the entry is still as it was left.
fn close(fd: &OwnedFd, opened: Opened) -> io::Result<()> {
    let stat = stat_fd(fd.as_fd())?.stat;
    let is = Opened { inode: stat.ino, uid: stat.uid, old: opened.old, new: stat.mode & 0o7777 };
    let possible = stat.is_dir() || stat.is_file();
    if is == opened && possible { set(fd, opened.old) } else { Ok(()) }
}

/// Whether the entry is gone, or cannot be reached any more.
fn is_gone(error: &io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::STALE, Errno::ACCESS, Errno::XDEV];
    Errno::from_io_error(error).is_some_and(|errno| gone.contains(&errno))
}

/// Set the mode by way of `/proc`: the descriptor is `O_PATH`.
fn set(fd: &OwnedFd, mode: u32) -> io::Result<()> {
    Ok(rustix::fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), Mode::from_raw_mode(mode))?)
}
