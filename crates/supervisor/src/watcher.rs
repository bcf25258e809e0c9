//! Watching of directories for changes, to know when a snapshot is worth taking.
//!
//! It only reports *that* something changed, so nothing depends on it but the moment of a scan: a full queue counts as
//! a change, and what cannot be watched (a limit of the kernel, a path too long) makes [`Watcher::is_complete`] false;
//! then the caller scans at intervals. Directories are opened without following any link and watched by descriptor, so
//! that a command cannot have something outside its grants watched by swapping a directory for a link.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Events that mean a change of a tree. Reading causes none of them, so a scan does not see itself.
const CHANGES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);

/// Watch on some directories and files.
#[derive(Debug)]
pub struct Watcher {
    fd: OwnedFd,
    /// Highest watch number. The kernel numbers watches upwards; the same inode keeps its number.
    highest: i32,
    complete: bool,
}

impl Watcher {
    pub fn new() -> io::Result<Watcher> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(Watcher { fd, highest: 0, complete: true })
    }

    /// Watches these too, unless `ended`; returns whether one of them was not watched before.
    pub fn watch<'a>(
        &mut self,
        places: impl IntoIterator<Item = &'a Path>,
        ended: &dyn Fn() -> bool,
    ) -> bool {
        let before = self.highest;
        self.complete = true;
        for place in places {
            if ended() {
                self.complete = false;
                break;
            }
            match add(&self.fd, place) {
                Ok(number) => self.highest = self.highest.max(number),
                // Gone or replaced since it was listed: its parent's events report it.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                // No more watches for this user: more attempts would find the same.
                Err(Errno::NOSPC | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => {
                    self.complete = false;
                    break;
                }
                Err(_) => self.complete = false,
            }
        }
        self.highest > before
    }

    /// Whether everything it was given is watched.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether something changed since the last call.
    pub fn changed(&self) -> io::Result<bool> {
        let mut buffer = [0u8; 16 << 10];
        let mut seen = false;
        loop {
            match rustix::io::read(&self.fd, &mut buffer) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(seen),
                Ok(_) => seen = true,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Watcher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn add(inotify: &OwnedFd, place: &Path) -> rustix::io::Result<i32> {
    let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat2(rustix::fs::CWD, place, flags, Mode::empty(), how)?;
    inotify::add_watch(inotify, format!("/proc/self/fd/{}", opened.as_raw_fd()), CHANGES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn changes_are_seen_and_reading_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().canonicalize().unwrap();
        fs::write(place.join("a"), "a").unwrap();
        let mut watcher = Watcher::new().unwrap();
        assert!(watcher.watch([&*place], &|| false), "new");
        assert!(!watcher.watch([&*place], &|| false), "known");
        assert!(watcher.is_complete());
        fs::read(place.join("a")).unwrap();
        fs::read_dir(&place).unwrap().count();
        assert!(!watcher.changed().unwrap(), "reading is no change");
        fs::write(place.join("a"), "b").unwrap();
        assert!(watcher.changed().unwrap());
        assert!(!watcher.changed().unwrap(), "asked once, it is forgotten");
        fs::create_dir(place.join("new")).unwrap();
        assert!(watcher.changed().unwrap());
        assert!(watcher.watch([&*place, &*place.join("new")], &|| false), "a new directory");
        fs::write(place.join("new/file"), "c").unwrap();
        assert!(watcher.changed().unwrap());
    }

    #[test]
    fn nothing_behind_a_link_is_watched() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().canonicalize().unwrap();
        fs::create_dir_all(place.join("outside/deep")).unwrap();
        std::os::unix::fs::symlink(place.join("outside"), place.join("link")).unwrap();
        let mut watcher = Watcher::new().unwrap();
        let behind = [place.join("link/deep"), place.join("gone")];
        assert!(!watcher.watch(behind.iter().map(|path| &**path), &|| false));
        fs::write(place.join("outside/deep/file"), "x").unwrap();
        assert!(!watcher.changed().unwrap());
    }
}
