//! System calls of the store: folders by descriptor, names relative to them, links never followed. Every change on disk
//! is announced to [`crate::disk`] first, and every error gets its path.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::error::{Result, StoreError, there};
use crate::disk;

pub(super) fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::Io { doing, path: path.to_owned(), source }
}

/// The same for an error number.
fn refused(doing: &'static str, path: &Path) -> impl FnOnce(Errno) -> StoreError {
    move |errno| failed(doing, path)(errno.into())
}

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
    pub(super) fn make(path: &Path) -> Result<Folder> {
        disk::step().map_err(failed("make", path))?;
        match rustix::fs::mkdir(path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(refused("make", path)(errno)),
        }
        let fd = rustix::fs::open(path, FOLDER, Mode::empty()).map_err(refused("open", path))?;
        Ok(Folder { fd, path: path.to_owned() })
    }

    pub(super) fn open_folder(&self, name: &str) -> Result<Folder> {
        let path = self.path.join(name);
        let fd = rustix::fs::openat(&self.fd, name, FOLDER, Mode::empty()).map_err(refused("open", &path))?;
        Ok(Folder { fd, path })
    }

    /// Open a folder in this one, creating it if it is missing.
    pub(super) fn make_folder(&self, name: &str) -> Result<Folder> {
        if let Some(folder) = there(self.open_folder(name))? {
            return Ok(folder);
        }
        disk::step().map_err(failed("make", &self.path.join(name)))?;
        match rustix::fs::mkdirat(&self.fd, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => self.open_folder(name),
            Err(errno) => Err(refused("make", &self.path.join(name))(errno)),
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

    pub(super) fn open(&self, name: &str) -> Result<File> {
        let open = || {
            let fd = rustix::fs::openat(&self.fd, name, READ | OFlags::RDONLY, Mode::empty())?;
            // Other kinds of files are treated like a link: no store creates them.
            if is_file(&rustix::fs::fstat(&fd)?) { Ok(fd) } else { Err(Errno::LOOP) }
        };
        open().map(File::from).map_err(refused("open", &self.path.join(name)))
    }

    /// Create a file for reading and writing; the name must be unused.
    pub(super) fn create(&self, name: &str) -> Result<File> {
        self.open_or_make(name, OFlags::EXCL)
    }

    /// Open a file that is only used for locking.
    pub(super) fn lock_file(&self, name: &str) -> Result<File> {
        self.open_or_make(name, OFlags::empty())
    }

    fn open_or_make(&self, name: &str, more: OFlags) -> Result<File> {
        let path = self.path.join(name);
        disk::step().map_err(failed("make", &path))?;
        let flags = READ | OFlags::RDWR | OFlags::CREATE | more;
        let made = rustix::fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR);
        made.map(File::from).map_err(refused("make", &path))
    }

    pub(super) fn rename(&self, name: &str, to: &Folder, new: &str) -> Result<()> {
        let path = to.path.join(new);
        disk::step().map_err(failed("make", &path))?;
        rustix::fs::renameat(&self.fd, name, &to.fd, new).map_err(refused("make", &path))
    }

    /// Remove a file; a missing one is not an error.
    pub(super) fn unlink(&self, name: &str) -> Result<()> {
        self.remove(name, AtFlags::empty())
    }

    pub(super) fn remove_folder(&self, name: &str) -> Result<()> {
        self.remove(name, AtFlags::REMOVEDIR)
    }

    fn remove(&self, name: &str, flags: AtFlags) -> Result<()> {
        let path = self.path.join(name);
        disk::step().map_err(failed("remove", &path))?;
        match rustix::fs::unlinkat(&self.fd, name, flags) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(refused("remove", &path)(errno)),
        }
    }

    /// Names in the folder; names that are not UTF-8 come out mangled and count as unexpected.
    pub(super) fn names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd).map_err(refused("read", &self.path))? {
            let entry = entry.map_err(refused("read", &self.path))?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(String::from_utf8_lossy(name).into_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    pub(super) fn stat(&self, name: &str) -> Result<Option<Stat>> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(refused("read", &self.path.join(name))(errno)),
        }
    }

    pub(super) fn own_stat(&self) -> Result<Stat> {
        rustix::fs::fstat(&self.fd).map_err(refused("read", &self.path))
    }

    /// Make the names in this folder durable.
    pub(super) fn sync(&self, fsyncs: &Fsyncs) -> Result<()> {
        disk::step().map_err(failed("sync", &self.path))?;
        fsyncs.count();
        rustix::fs::fsync(&self.fd).map_err(refused("sync", &self.path))
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
pub(super) fn sync_file(file: &File, path: &Path, all: bool, fsyncs: &Fsyncs) -> Result<()> {
    disk::step().map_err(failed("sync", path))?;
    fsyncs.count();
    let done = if all { rustix::fs::fsync(file) } else { rustix::fs::fdatasync(file) };
    done.map_err(refused("sync", path))
}

pub(super) fn chmod(file: &File, path: &Path, mode: u32) -> Result<()> {
    disk::step().map_err(failed("change", path))?;
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode)).map_err(refused("change", path))
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
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Fill the buffer from this offset on; fewer bytes only at the end of the file.
pub(crate) fn pread(fd: BorrowedFd<'_>, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::io::pread(fd, &mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(now) => filled += now,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(filled)
}

/// Read a whole file. The buffer grows with the data, whatever the file's size says.
pub(super) fn read_all(folder: &Folder, name: &str) -> Result<(Vec<u8>, Stat)> {
    use std::io::Read as _;
    let mut file = folder.open(name)?;
    let stat = file_stat(&file, &folder.path_of(name))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed("read", &folder.path_of(name)))?;
    Ok((bytes, stat))
}

pub(super) fn file_stat(file: &File, path: &Path) -> Result<Stat> {
    rustix::fs::fstat(file).map_err(refused("read", path))
}

pub(super) fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
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
    pub(super) fn take(folder: &Folder, name: &str, exclusive: bool, wait: bool) -> Result<Option<Lock>> {
        let lock = Lock(folder.lock_file(name)?);
        Ok(lock.change(&folder.path_of(name), exclusive, wait)?.then_some(lock))
    }

    fn change(&self, path: &Path, exclusive: bool, wait: bool) -> Result<bool> {
        let operation = match (exclusive, wait) {
            (true, true) => FlockOperation::LockExclusive,
            (true, false) => FlockOperation::NonBlockingLockExclusive,
            (false, true) => FlockOperation::LockShared,
            (false, false) => FlockOperation::NonBlockingLockShared,
        };
        loop {
            match rustix::fs::flock(&self.0, operation) {
                Ok(()) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => return Ok(false),
                Err(errno) => return Err(refused("lock", path)(errno)),
            }
        }
    }

    /// Downgrade from exclusive to shared.
    pub(super) fn share(&self, folder: &Folder, name: &str) -> Result<()> {
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
