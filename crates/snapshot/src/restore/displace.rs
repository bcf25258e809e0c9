//! What a restore displaced: is it what the safety snapshot holds? If somebody wrote it meanwhile, its content is stored
//! before it goes. Reading it is the price of certainty: times and sizes can be set by anybody.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;

use super::meta::Handle;
use super::put::O_PATH;
use super::{KeptContent, RestoreError};
use crate::hash::{CHUNKED_ABOVE, ContentHash, ContentHasher};
use crate::node::{Entry, Kind};
use crate::state::Objects;

#[derive(Debug)]
pub(super) enum Verdict {
    /// It is stored: it was captured, or is stored now.
    Stored(Option<KeptContent>),
    /// Something else that no store can hold.
    Other,
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
            file(dir, name, expected, objects).map(Verdict::Stored)
        }
        FileType::Symlink => {
            let target = read_link(dir, name).map_err(RestoreError::io("read the old link"))?;
            let same = matches!(&old.kind, Kind::Symlink { target: old } if **old == *target);
            Ok(if same { Verdict::Stored(None) } else { Verdict::Other })
        }
        FileType::Directory => Ok(Verdict::Other),
        kind => Ok(if kind == expected_kind(&old.kind) { Verdict::Stored(None) } else { Verdict::Other }),
    }
}

pub(super) fn read_link(dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<Box<[u8]>> {
    Ok(rustix::fs::readlinkat(dir, name, Vec::new())?.into_bytes().into())
}

/// A regular file that is to go: stored, unless it is the `expected` content.
pub(super) fn file(
    dir: BorrowedFd<'_>,
    name: &[u8],
    expected: Option<(ContentHash, u64)>,
    objects: &dyn Objects,
) -> Result<Option<KeptContent>, RestoreError> {
    let reading = "read the old one";
    let fd = open(dir, name).map_err(RestoreError::io(reading))?;
    let stat = rustix::fs::fstat(&fd).map_err(|errno| RestoreError::io(reading)(errno.into()))?;
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    if let Some((hash, _)) = expected.filter(|(_, expected)| *expected == size)
        && hash_file(fd.as_fd(), size).map_err(RestoreError::io(reading))? == Some(hash)
    {
        return Ok(None);
    }
    rustix::fs::seek(&fd, SeekFrom::Start(0)).map_err(|errno| RestoreError::io(reading)(errno.into()))?;
    let hash = objects.keep_file(fd.as_fd(), size)?;
    Ok(Some(KeptContent::File { hash, size }))
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
pub(super) fn hash_file(fd: BorrowedFd<'_>, size: u64) -> io::Result<Option<ContentHash>> {
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
