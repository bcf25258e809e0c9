//! What a restore displaced: is it what the safety snapshot holds? If it was written meanwhile, its content is stored
//! before it goes. Reading it is the price of certainty: times and sizes can be set by anybody.
//!
//! A program may have the displaced file open, and save to it at any moment: before it is read, while it is, and after
//! its name is gone. Only the absence of writers ends that, and a read lease tells it exactly (`nono_sys::lease`): a file
//! without a name that others know and without a writer cannot change any more. So a file with a writer is not displaced
//! at all; if one opened it in that very moment, it keeps a name in its folder that the person is told. Where the
//! kernel does not tell (another user's file, a file system without leases) the file is read until its times stay the
//! same, and looked at once more after its name is gone; what is saved later than that is lost.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nono_sys::lease::{Writers, writers};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;

use super::meta::Handle;
use super::put::O_PATH;
use super::{KeptContent, RestoreError};
use crate::hash::{CHUNKED_ABOVE, ContentHash, ContentHasher};
use crate::node::{Entry, Kind, Time};
use crate::read;
use crate::state::Objects;

/// How often a file that changes while it is read is read again.
const ATTEMPTS: u32 = 5;
/// A program that is just saving closes the file within this: 1 + 2 + 4 + 8 + 16 ms.
const PATIENCE: [u64; 5] = [1, 2, 4, 8, 16];

#[derive(Debug)]
pub(super) enum Verdict {
    /// It is stored: it was captured, or is stored now.
    Stored(Stored),
    /// Something else that no store can hold.
    Other,
    /// A program has it open for writing, or writes to it again and again.
    Busy,
}

/// A displaced entry whose content is in the store.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// What had to be stored.
    kept: Option<KeptContent>,
    /// Where nothing tells of writers: the file, and how it was when it was read.
    watched: Option<(OwnedFd, Seen)>,
    /// The safety snapshot names its content, but there was no room to store it: it has to be moved.
    only_here: Option<(OwnedFd, ContentHash, u64)>,
}

/// What changes with every save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    size: u64,
    mtime: Time,
    ctime: Time,
}

impl Stored {
    /// Move its content into the store, where it is only here; the name `name` is gone then. False: it can go.
    pub(super) fn take(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        objects: &dyn Objects,
    ) -> Result<bool, RestoreError> {
        let Some((fd, hash, size)) = &self.only_here else { return Ok(false) };
        if self.watched.is_none() && objects.take_file(dir, name, fd.as_fd(), *hash)? {
            return Ok(true);
        }
        rustix::fs::seek(fd, SeekFrom::Start(0)).map_err(|errno| RestoreError::io(READING)(errno.into()))?;
        objects.keep_file(fd.as_fd(), *size).map(|_| false).map_err(RestoreError::from)
    }

    /// Its name is gone: what was saved through an open descriptor since it was read is stored, too.
    pub(super) fn unlinked(self, objects: &dyn Objects) -> Result<Option<KeptContent>, RestoreError> {
        let Some((fd, seen)) = self.watched else { return Ok(self.kept) };
        let now = look(fd.as_fd())?;
        // The time of change is that of the unlink.
        if (now.size, now.mtime) == (seen.size, seen.mtime) {
            return Ok(self.kept);
        }
        match settled(fd.as_fd(), None, objects)? {
            Some((kept, _)) => Ok(kept),
            None => Err(RestoreError::io("store what is still being written to it")(Errno::BUSY.into())),
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

/// Compare `name` in `dir` with what the safety snapshot had in its place.
pub(super) fn judge(
    dir: BorrowedFd<'_>,
    name: &[u8],
    old: &Entry,
    objects: &dyn Objects,
) -> Result<Verdict, RestoreError> {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    let stat = stat.map_err(|errno| RestoreError::io("look at the old one")(errno.into()))?;
    match kind_of(&stat) {
        FileType::RegularFile => {
            let expected = match &old.kind {
                Kind::File { hash, size, .. } => Some((*hash, *size)),
                _ => None,
            };
            file(dir, name, expected, objects)
        }
        FileType::Symlink => {
            let target = read_link(dir, name).map_err(RestoreError::io("read the old link"))?;
            let same = matches!(&old.kind, Kind::Symlink { target: old } if **old == *target);
            Ok(if same { Verdict::Stored(Stored::default()) } else { Verdict::Other })
        }
        FileType::Directory => Ok(Verdict::Other),
        kind if kind == expected_kind(&old.kind) => Ok(Verdict::Stored(Stored::default())),
        _ => Ok(Verdict::Other),
    }
}

pub(super) fn read_link(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<Box<[u8]>> {
    Ok(rustix::fs::readlinkat(dir, name, Vec::new())?.into_bytes().into())
}

/// Whether a program has the file `old` open for writing, and goes on having it. What cannot be opened is judged when it
/// is displaced; what was no regular file is not opened at all.
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

/// The writers that stay for longer than a save takes.
fn wait_for_writers(fd: BorrowedFd<'_>) -> Writers {
    for milliseconds in PATIENCE {
        match writers(fd) {
            Writers::Some => std::thread::sleep(Duration::from_millis(milliseconds)),
            known => return known,
        }
    }
    writers(fd)
}

/// A regular file that is to go: stored, unless it is the `expected` content.
pub(super) fn file(
    dir: BorrowedFd<'_>,
    name: &[u8],
    expected: Option<(ContentHash, u64)>,
    objects: &dyn Objects,
) -> Result<Verdict, RestoreError> {
    let fd = open(dir, name).map_err(RestoreError::io(READING))?;
    let known = wait_for_writers(fd.as_fd());
    if known == Writers::Some {
        return Ok(Verdict::Busy);
    }
    let Some((kept, seen)) = settled(fd.as_fd(), expected, objects)? else { return Ok(Verdict::Busy) };
    let only_here = match (&kept, expected) {
        (None, Some((hash, size))) if !objects.holds(hash) => {
            let fd = fd.try_clone().map_err(RestoreError::io(READING))?;
            Some((fd, hash, size))
        }
        _ => None,
    };
    Ok(match known {
        // By its temporary name it could still be opened, which nobody does; but it is cheap to ask.
        Writers::None if writers(fd.as_fd()) == Writers::Some => Verdict::Busy,
        Writers::None => Verdict::Stored(Stored { kept, watched: None, only_here }),
        _ => Verdict::Stored(Stored { kept, watched: Some((fd, seen)), only_here }),
    })
}

const READING: &str = "read the old one";

/// Read it until it stays the same meanwhile. Nothing when it never does.
fn settled(
    fd: BorrowedFd<'_>,
    expected: Option<(ContentHash, u64)>,
    objects: &dyn Objects,
) -> Result<Option<(Option<KeptContent>, Seen)>, RestoreError> {
    for attempt in 0..ATTEMPTS {
        let began = read::now();
        let seen = look(fd)?;
        let kept = store_unless(fd, seen.size, expected, objects)?;
        // A save in the same tick of the clock as the one before does not show in its times.
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
) -> Result<Option<KeptContent>, RestoreError> {
    if let Some((hash, _)) = expected.filter(|(_, expected)| *expected == size)
        && hash_file(fd, size).map_err(RestoreError::io(READING))? == Some(hash)
    {
        return Ok(None);
    }
    rustix::fs::seek(fd, SeekFrom::Start(0)).map_err(|errno| RestoreError::io(READING)(errno.into()))?;
    let hash = objects.keep_file(fd, size)?;
    Ok(Some(KeptContent::File { hash, size }))
}

fn look(fd: BorrowedFd<'_>) -> Result<Seen, RestoreError> {
    let stat = rustix::fs::fstat(fd).map_err(|errno| RestoreError::io(READING)(errno.into()))?;
    let time = |seconds, nanos| Time { seconds, nanos: u32::try_from(nanos).unwrap_or(0) };
    Ok(Seen {
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec),
        ctime: time(stat.st_ctime, stat.st_ctime_nsec),
    })
}

/// Its owner may read it even if its permissions say no: it is about to go.
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

/// The address of a file's content; `None` when its size is not what it was.
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

/// Where data goes on; the end if a hole is all there is.
fn next_data(fd: BorrowedFd<'_>, at: u64, size: u64) -> io::Result<u64> {
    match rustix::fs::seek(fd, SeekFrom::Data(at)) {
        Ok(data) => Ok(data.clamp(at, size)),
        Err(Errno::NXIO) => Ok(size),
        // A filesystem that does not know about holes.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(at),
        Err(errno) => Err(errno.into()),
    }
}
