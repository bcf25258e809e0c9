//! System calls of the store: folders by descriptor, names relative to them, links never followed. Every change on disk
//! is announced to [`crate::disk`] first, and every error gets its path.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, Stat};

use super::error::StoreError;
use crate::disk;

pub(super) fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::Io { doing, path: path.to_owned(), source }
}

/// A folder of the store.
#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// `NONBLOCK`: a planted FIFO must not block.
const READ: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

impl Folder {
    /// Open a folder by its path, creating it if it is missing.
    pub(super) fn make(path: &Path) -> Result<Folder, StoreError> {
        disk::step().map_err(failed("make", path))?;
        match rustix::fs::mkdir(path, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(errno) => return Err(failed("make", path)(errno.into())),
        }
        let fd = rustix::fs::open(path, FOLDER, Mode::empty())
            .map_err(|errno| failed("open", path)(errno.into()))?;
        Ok(Folder { fd, path: path.to_owned() })
    }

    pub(super) fn open_folder(&self, name: &str) -> Result<Folder, StoreError> {
        let path = self.path.join(name);
        let fd = rustix::fs::openat(&self.fd, name, FOLDER, Mode::empty())
            .map_err(|errno| failed("open", &path)(errno.into()))?;
        Ok(Folder { fd, path })
    }

    /// Open a folder in this one, creating it if it is missing.
    pub(super) fn make_folder(&self, name: &str) -> Result<Folder, StoreError> {
        match self.open_folder(name) {
            Err(error) if error.is_not_found() => {}
            other => return other,
        }
        disk::step().map_err(failed("make", &self.path.join(name)))?;
        match rustix::fs::mkdirat(&self.fd, name, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => self.open_folder(name),
            Err(errno) => Err(failed("make", &self.path.join(name))(errno.into())),
        }
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.fd)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn open(&self, name: &str) -> Result<File, StoreError> {
        let path = self.path.join(name);
        let fail = || failed("open", &path);
        let fd = rustix::fs::openat(&self.fd, name, READ | OFlags::RDONLY, Mode::empty())
            .map_err(|errno| fail()(errno.into()))?;
        let stat = rustix::fs::fstat(&fd).map_err(|errno| fail()(errno.into()))?;
        if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile {
            // Other kinds of files are treated like a link (ELOOP): no store creates them.
            return Err(fail()(rustix::io::Errno::LOOP.into()));
        }
        Ok(File::from(fd))
    }

    /// Create a file for reading and writing; the name must be unused.
    pub(super) fn create(&self, name: &str) -> Result<File, StoreError> {
        let path = self.path.join(name);
        disk::step().map_err(failed("make", &path))?;
        let flags = READ | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| failed("make", &path)(errno.into()))?;
        Ok(File::from(fd))
    }

    /// Open a file that is only used for locking.
    pub(super) fn lock_file(&self, name: &str) -> Result<File, StoreError> {
        let path = self.path.join(name);
        disk::step().map_err(failed("make", &path))?;
        let flags = READ | OFlags::RDWR | OFlags::CREATE;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| failed("make", &path)(errno.into()))?;
        Ok(File::from(fd))
    }

    pub(super) fn rename(&self, name: &str, to: &Folder, new: &str) -> Result<(), StoreError> {
        let path = to.path.join(new);
        disk::step().map_err(failed("make", &path))?;
        rustix::fs::renameat(&self.fd, name, &to.fd, new).map_err(|errno| failed("make", &path)(errno.into()))
    }

    /// Remove a file; a missing one is not an error.
    pub(super) fn unlink(&self, name: &str) -> Result<(), StoreError> {
        self.remove(name, AtFlags::empty())
    }

    pub(super) fn remove_folder(&self, name: &str) -> Result<(), StoreError> {
        self.remove(name, AtFlags::REMOVEDIR)
    }

    fn remove(&self, name: &str, flags: AtFlags) -> Result<(), StoreError> {
        let path = self.path.join(name);
        disk::step().map_err(failed("remove", &path))?;
        match rustix::fs::unlinkat(&self.fd, name, flags) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(errno) => Err(failed("remove", &path)(errno.into())),
        }
    }

    /// Names in the folder; names that are not UTF-8 come out mangled and count as unexpected.
    pub(super) fn names(&self) -> Result<Vec<String>, StoreError> {
        let fail = |errno: rustix::io::Errno| failed("read", &self.path)(errno.into());
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(String::from_utf8_lossy(name).into_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    pub(super) fn stat(&self, name: &str) -> Result<Option<Stat>, StoreError> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(errno) => Err(failed("read", &self.path.join(name))(errno.into())),
        }
    }

    pub(super) fn own_stat(&self) -> Result<Stat, StoreError> {
        rustix::fs::fstat(&self.fd).map_err(|errno| failed("read", &self.path)(errno.into()))
    }

    /// Make the names in this folder durable.
    pub(super) fn sync(&self, fsyncs: &Fsyncs) -> Result<(), StoreError> {
        disk::step().map_err(failed("sync", &self.path))?;
        fsyncs.count();
        rustix::fs::fsync(&self.fd).map_err(|errno| failed("sync", &self.path)(errno.into()))
    }
}

/// Number of sync calls: a cost that a fast disk hides.
#[derive(Debug, Default)]
pub(super) struct Fsyncs(AtomicU64);

impl Fsyncs {
    fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Make a file's content durable, and with `all` its attributes too.
pub(super) fn sync_file(file: &File, path: &Path, all: bool, fsyncs: &Fsyncs) -> Result<(), StoreError> {
    disk::step().map_err(failed("sync", path))?;
    fsyncs.count();
    let done = if all { rustix::fs::fsync(file) } else { rustix::fs::fdatasync(file) };
    done.map_err(|errno| failed("sync", path)(errno.into()))
}

pub(super) fn chmod(file: &File, path: &Path, mode: u32) -> Result<(), StoreError> {
    disk::step().map_err(failed("change", path))?;
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode)).map_err(|errno| failed("change", path)(errno.into()))
}

pub(super) fn pwrite_all(fd: BorrowedFd<'_>, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        disk::step()?;
        match rustix::io::pwrite(fd, bytes, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(now) => {
                bytes = &bytes[now..];
                at += now as u64;
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Fill the buffer from this offset on; fewer bytes only at the end of the file.
pub(super) fn pread(fd: BorrowedFd<'_>, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::io::pread(fd, &mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(now) => filled += now,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(filled)
}

/// Read a whole file. The buffer grows with the data, whatever the file's size says.
pub(super) fn read_all(folder: &Folder, name: &str) -> Result<(Vec<u8>, Stat), StoreError> {
    use std::io::Read as _;
    let mut file = folder.open(name)?;
    let stat = file_stat(&file, &folder.path_of(name))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed("read", &folder.path_of(name)))?;
    Ok((bytes, stat))
}

pub(super) fn file_stat(file: &File, path: &Path) -> Result<Stat, StoreError> {
    rustix::fs::fstat(file).map_err(|errno| failed("read", path)(errno.into()))
}

pub(super) fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// Allocated bytes on disk.
pub(super) fn allocated(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0) * 512
}

/// A lock held as long as the value exists.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Take the lock. Waits if `wait`; otherwise returns `None` if another process has it.
    pub(super) fn take(
        folder: &Folder,
        name: &str,
        exclusive: bool,
        wait: bool,
    ) -> Result<Option<Lock>, StoreError> {
        let lock = Lock(folder.lock_file(name)?);
        Ok(lock.change(&folder.path_of(name), exclusive, wait)?.then_some(lock))
    }

    fn change(&self, path: &Path, exclusive: bool, wait: bool) -> Result<bool, StoreError> {
        let operation = match (exclusive, wait) {
            (true, true) => FlockOperation::LockExclusive,
            (true, false) => FlockOperation::NonBlockingLockExclusive,
            (false, true) => FlockOperation::LockShared,
            (false, false) => FlockOperation::NonBlockingLockShared,
        };
        loop {
            match rustix::fs::flock(&self.0, operation) {
                Ok(()) => return Ok(true),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(false),
                Err(errno) => return Err(failed("lock", path)(errno.into())),
            }
        }
    }

    /// Downgrade from exclusive to shared.
    pub(super) fn share(&self, folder: &Folder, name: &str) -> Result<(), StoreError> {
        self.change(&folder.path_of(name), false, true).map(drop)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a process being forked by another thread has the descriptor until it executes.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Whether a name is one that [`unique`] could have made.
pub(super) fn is_unique_name(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
}

/// A name never used before, in any process: other processes may still know an older one.
pub(super) fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let nanos =
        now.tv_sec.cast_unsigned().wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec.cast_unsigned());
    let pid = std::process::id();
    let count = COUNT.fetch_add(1, Ordering::Relaxed) & 0xffff_ffff;
    format!("{nanos:016x}{pid:08x}{count:08x}")
}
