//! Checks displaced entries against the safety snapshot. A file that was written meanwhile is stored before it is
//! removed. The content is read, since any process can set times and sizes.
//!
//! A program may have the displaced file open, and save to it at any moment: before it is read, during that, and after
//! its name is gone. Only a file without writers is safe, and a read lease detects them exactly (`nono_sys::lease`): a
//! file without a name that others know and without a writer cannot change any more. So a file with a writer is not
//! displaced; if a program opens it at that very moment, it keeps a name in its folder, which is reported to the user.
//! Where the kernel cannot tell (another user's file, a filesystem without leases) the file is read until its times
//! stay the same, and checked once more after its name is gone; data saved later than that is lost.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nono_sys::lease::{Writers, writers};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;

use super::meta::Handle;
use super::place_entry::O_PATH;
use super::{KeptContent, RestoreError, Result};
use crate::hash::{CHUNKED_ABOVE, ContentHash, ContentHasher};
use crate::node::{Entry, Kind, Stamp};
use crate::read;
use crate::stat::stat_fd;
use crate::state::Objects;

/// Number of times that a file is read again because it changed meanwhile.
const ATTEMPTS: u32 = 5;
/// Pauses in milliseconds to wait for a program that is just saving: 1 + 2 + 4 + 8 + 16 ms.
const PATIENCE: [u64; 5] = [1, 2, 4, 8, 16];

#[derive(Debug)]
pub(super) enum DisplaceVerdict {
    /// Stored: it was captured before, or is stored now.
    Stored(Stored),
    /// Another kind of entry that the store cannot hold.
    Other,
    /// Open for writing in a program, or changed again and again.
    Busy,
}

/// A displaced entry whose content is in the store.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// Content that had to be stored.
    kept: Option<KeptContent>,
    /// If writers cannot be detected: the file, and its state when it was read.
    watched: Option<(OwnedFd, Stamp)>,
    /// Content in the safety snapshot that there was no space to store: the file has to be moved into the store.
    only_here: Option<(OwnedFd, ContentHash, u64)>,
}

impl Stored {
    /// Move the file into the store if its content is only here; then `name` is gone. False: it can be removed.
    pub(super) fn take(&self, dir: BorrowedFd<'_>, name: &[u8], objects: &dyn Objects) -> Result<bool> {
        let Some((fd, hash, size)) = &self.only_here else { return Ok(false) };
        if self.watched.is_none() && objects.take_file(dir, name, fd.as_fd(), *hash)? {
            return Ok(true);
        }
        rustix::fs::seek(fd, SeekFrom::Start(0)).map_err(RestoreError::io(READING))?;
        objects.keep_file(fd.as_fd(), *size).map(|_| false).map_err(RestoreError::from)
    }

    /// Store data saved through an open descriptor since it was read; called after its name is gone.
    pub(super) fn unlinked(self, objects: &dyn Objects) -> Result<Option<KeptContent>> {
        let Some((fd, seen)) = self.watched else { return Ok(self.kept) };
        let now = look(fd.as_fd())?;
        // The ctime is that of the unlink.
        if (now.size, now.mtime) == (seen.size, seen.mtime) {
            return Ok(self.kept);
        }
        match read_until_stable(fd.as_fd(), None, objects)? {
            Some((kept, _)) => Ok(kept),
            None => Err(RestoreError::io("store a file that is still being written")(Errno::BUSY)),
        }
    }
}

pub(super) fn kind_of(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

pub(super) fn expected_kind(kind: &Kind) -> FileType {
    match kind {
        Kind::File { .. } => FileType::RegularFile,
        Kind::Dir { .. } => FileType::Directory,
        Kind::Symlink { .. } => FileType::Symlink,
        Kind::Fifo => FileType::Fifo,
        Kind::Socket => FileType::Socket,
        Kind::CharDevice { .. } => FileType::CharacterDevice,
        Kind::BlockDevice { .. } => FileType::BlockDevice,
    }
}

/// Compare `name` in `dir` with its entry in the safety snapshot.
pub(super) fn judge(
    dir: BorrowedFd<'_>,
    name: &[u8],
    old: &Entry,
    objects: &dyn Objects,
) -> Result<DisplaceVerdict> {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    let stat = stat.map_err(RestoreError::io("stat the old file"))?;
    match kind_of(&stat) {
        FileType::RegularFile => {
            let expected = match &old.kind {
                Kind::File { hash, size, .. } => Some((*hash, *size)),
                _ => None,
            };
            file(dir, name, expected, objects)
        }
        FileType::Symlink => {
            let target = read::link(dir, name).map_err(RestoreError::io("read the old link"))?;
            let same = matches!(&old.kind, Kind::Symlink { target: old } if **old == *target);
            Ok(if same { DisplaceVerdict::Stored(Stored::default()) } else { DisplaceVerdict::Other })
        }
        FileType::Directory => Ok(DisplaceVerdict::Other),
        kind if kind == expected_kind(&old.kind) => Ok(DisplaceVerdict::Stored(Stored::default())),
        _ => Ok(DisplaceVerdict::Other),
    }
}

/// Whether a program keeps the file `old` open for writing. One that cannot be opened is judged when displaced.
pub(super) fn is_written(dir: BorrowedFd<'_>, old: &Entry) -> bool {
    if !matches!(old.kind, Kind::File { .. }) {
        return false;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::openat(dir, old.name.as_bytes(), flags, Mode::empty()) {
        Ok(fd) => wait_for_writers(fd.as_fd()) == Writers::Some,
        Err(_) => false,
    }
}

/// Writers that remain longer than a save takes.
fn wait_for_writers(fd: BorrowedFd<'_>) -> Writers {
    for milliseconds in PATIENCE {
        match writers(fd) {
            Writers::Some => std::thread::sleep(Duration::from_millis(milliseconds)),
            known => return known,
        }
    }
    writers(fd)
}

/// Store a regular file that is to be removed, unless it has the `expected` content.
pub(super) fn file(
    dir: BorrowedFd<'_>,
    name: &[u8],
    expected: Option<(ContentHash, u64)>,
    objects: &dyn Objects,
) -> Result<DisplaceVerdict> {
    let fd = open(dir, name).map_err(RestoreError::io(READING))?;
    let known = wait_for_writers(fd.as_fd());
    if known == Writers::Some {
        return Ok(DisplaceVerdict::Busy);
    }
    let Some((kept, seen)) = read_until_stable(fd.as_fd(), expected, objects)? else {
        return Ok(DisplaceVerdict::Busy);
    };
    let only_here = match (&kept, expected) {
        (None, Some((hash, size))) if !objects.holds(hash) => {
            let fd = fd.try_clone().map_err(RestoreError::io(READING))?;
            Some((fd, hash, size))
        }
        _ => None,
    };
    Ok(match known {
        // A process could still open it by its temporary name; the check is cheap.
        Writers::None if writers(fd.as_fd()) == Writers::Some => DisplaceVerdict::Busy,
        Writers::None => DisplaceVerdict::Stored(Stored { kept, watched: None, only_here }),
        _ => DisplaceVerdict::Stored(Stored { kept, watched: Some((fd, seen)), only_here }),
    })
}

const READING: &str = "read the old file";

/// Read it until it stays the same meanwhile. `None` if it never does.
fn read_until_stable(
    fd: BorrowedFd<'_>,
    expected: Option<(ContentHash, u64)>,
    objects: &dyn Objects,
) -> Result<Option<(Option<KeptContent>, Stamp)>> {
    for attempt in 0..ATTEMPTS {
        let began = read::now();
        let seen = look(fd)?;
        let kept = store_unless(fd, seen.size, expected, objects)?;
        // A save in the same clock tick as the previous one does not show in the times.
        if look(fd)? == seen && (read::is_settled(seen.mtime, began) || writers(fd) == Writers::None) {
            return Ok(Some((kept, seen)));
        }
        std::thread::sleep(Duration::from_millis(10 << attempt));
    }
    Ok(None)
}

/// Store its content, unless it is the `expected` one.
fn store_unless(
    fd: BorrowedFd<'_>,
    size: u64,
    expected: Option<(ContentHash, u64)>,
    objects: &dyn Objects,
) -> Result<Option<KeptContent>> {
    if let Some((hash, _)) = expected.filter(|(_, expected)| *expected == size)
        && hash_file(fd, size).map_err(RestoreError::io(READING))? == Some(hash)
    {
        return Ok(None);
    }
    rustix::fs::seek(fd, SeekFrom::Start(0)).map_err(RestoreError::io(READING))?;
    let hash = objects.keep_file(fd, size)?;
    Ok(Some(KeptContent::File { hash, size }))
}

/// Attributes that change with every save.
fn look(fd: BorrowedFd<'_>) -> Result<Stamp> {
    let stat = stat_fd(fd).map_err(RestoreError::io(READING))?.stat;
    Ok(Stamp { size: stat.size, mtime: stat.mtime, ctime: stat.ctime })
}

/// Open a file for reading, even if its permissions deny that to its owner: it is about to be removed.
fn open(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = match rustix::fs::openat(dir, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let path = rustix::fs::openat(dir, name, O_PATH, Mode::empty())?;
            Handle::Path(path.as_fd()).chmod(0o400)?;
            rustix::fs::openat(dir, name, flags, Mode::empty())?
        }
        fd => fd?,
    };
    if kind_of(&rustix::fs::fstat(&fd)?) != FileType::RegularFile {
        return Err(Errno::STALE.into());
    }
    Ok(fd)
}

/// Address of a file's content; `None` if its size changed.
pub(crate) fn hash_file(fd: BorrowedFd<'_>, size: u64) -> io::Result<Option<ContentHash>> {
    let mut hasher = ContentHasher::new(size);
    let mut buffer = vec![0; usize::try_from(size.clamp(1, 1 << 18)).unwrap_or(1)];
    let mut at = 0;
    while at < size {
        // Holes of terabytes are not read.
        let data = if size > CHUNKED_ABOVE { next_data(fd, at, size)? } else { at };
        hasher.zeros(data - at);
        at = data;
        let want = usize::try_from(size - at).unwrap_or(usize::MAX).min(buffer.len());
        if want == 0 {
            break;
        }
        let got = match rustix::io::pread(fd, &mut buffer[..want], at) {
            Err(Errno::INTR) => continue,
            Ok(0) => return Ok(None),
            got => got?,
        };
        hasher.data(&buffer[..got]);
        at += got as u64;
    }
    Ok(hasher.finish())
}

/// Offset of the next data; the end if only a hole follows.
fn next_data(fd: BorrowedFd<'_>, at: u64, size: u64) -> io::Result<u64> {
    match rustix::fs::seek(fd, SeekFrom::Data(at)) {
        Ok(data) => Ok(data.clamp(at, size)),
        Err(Errno::NXIO) => Ok(size),
        // A filesystem that does not support holes.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(at),
        Err(errno) => Err(errno.into()),
    }
}
