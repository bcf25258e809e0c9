//! Reads one entry of a tree: content, link target, extended attributes.
//!
//! A file's content counts only if its stat is the same before and after reading; otherwise it is read again, and after
//! a few attempts excluded as unstable: bytes that never existed together are never stored. A file that only grows,
//! such as a log, is captured at its length at one moment. Only regular files are opened, and nothing blocks: a FIFO in
//! place of a file is opened without waiting and then detected.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno as Os;
use rustix::time::ClockId;

use crate::hash::{ContentHash, content_hash};
use crate::node::{Errno, Reason, Time, Xattr};
use crate::restore::hash_file;
use crate::stat::{FoundStat, Stat, stat_fd};
use crate::store::{Appender, LARGE, LargeSource, LargeStaged, ObjectKey, StoreError, pread};
use crate::units::SQLITE;
use crate::unlock::Unlock;

/// Number of times that a changing file is read before it is excluded.
const ATTEMPTS: usize = 4;

/// Content of a file, with its stat.
#[derive(Debug)]
pub(crate) struct ReadContent {
    pub(crate) stat: Stat,
    pub(crate) hash: ContentHash,
    pub(crate) sparse: bool,
    pub(crate) moment: Moment,
    pub(crate) xattrs: Vec<Xattr>,
    /// Number of bytes read.
    pub(crate) read: u64,
    /// Whether it is an SQLite database.
    pub(crate) database: bool,
}

/// Reliability of the stat at the time of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Every later change shows in `ctime`.
    Settled,
    /// A later change may not show.
    Recent,
    /// The file grew while it was read: this is its content at one moment.
    Growing,
}

#[derive(Debug)]
pub(crate) enum ReadOutcome {
    Content(ReadContent),
    /// Replaced by another entry, or gone: look again.
    Replaced,
    LeftOut(Reason),
}

/// Options for reading a file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadOptions {
    /// A process has it mapped writable: flush the mapping first, and never trust the stat.
    pub(crate) mapped: bool,
    /// Capture it only by reflink; exclude it rather than copy it.
    pub(crate) only_clone: Option<OnlyClone>,
    /// Content when it was last captured.
    pub(crate) before: Option<ContentHash>,
}

/// Reason why a file is not copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnlyClone {
    LargePack,
    /// Larger than this limit.
    Over(u64),
}

impl OnlyClone {
    fn reason(self, size: u64) -> Reason {
        match self {
            OnlyClone::LargePack => Reason::LargePack { size },
            OnlyClone::Over(limit) => Reason::TooLarge { size, limit },
        }
    }
}

/// Read the file `name` in `dir`, whose stat was `before`, into the store.
pub(crate) fn file(
    dir: BorrowedFd<'_>,
    name: &[u8],
    before: &FoundStat,
    how: ReadOptions,
    unlock: &dyn Unlock,
    buffer: &mut Vec<u8>,
    store: &mut Appender<'_>,
) -> Result<ReadOutcome, StoreError> {
    let mut coarse = now();
    let mut opened = open(dir, name);
    let (mut before, device) = (before.stat, before.dev);
    if matches!(opened, Err(Os::ACCESS))
        && let Some(unlocked) = unlock.open_up()
    {
        // Its mode is restored before anything is read, but its ctime has changed.
        opened = open(dir, name);
        drop(unlocked);
        if let Some(now) = opened.as_ref().ok().and_then(|file| stat_fd(file.as_fd()).ok()) {
            before = now.stat;
        }
    }
    let file = match opened {
        Ok(file) => file,
        Err(Os::NOENT | Os::LOOP | Os::NXIO) => return Ok(ReadOutcome::Replaced),
        Err(errno) => return Ok(left_out(errno)),
    };
    let final_attempt = store.compresses();
    let mut only_grows = true;
    for attempt in 0..ATTEMPTS {
        if how.mapped {
            // Dirty pages of a mapping do not change the times; after write-back the next store does.
            rustix::fs::fsync(&file).ok();
        }
        wait_for_writers(&file);
        let stored = match content(&file, (&before, device), how, buffer, store) {
            Err(ReadError::Os(errno)) => return Ok(left_out(errno)),
            // A second, compressed attempt may hold it: stop this one.
            Err(ReadError::Store(error @ StoreError::OverBudget { .. })) if !final_attempt => {
                return Err(error);
            }
            Err(ReadError::Store(StoreError::OverBudget { .. })) => {
                return Ok(ReadOutcome::LeftOut(Reason::OverBudget { size: before.size }));
            }
            Err(ReadError::NotCloned(why)) => return Ok(ReadOutcome::LeftOut(why.reason(before.size))),
            Err(ReadError::Store(StoreError::SourceChanged)) => None,
            Err(ReadError::Store(StoreError::Source(error))) => {
                return Ok(ReadOutcome::LeftOut(unreadable(&error)));
            }
            Err(ReadError::Store(error)) => return Err(error),
            Ok(stored) => stored,
        };
        let xattrs = match xattrs(file.as_fd()) {
            Ok(xattrs) => xattrs,
            Err(errno) => return Ok(left_out(errno)),
        };
        // It may be made readable right now through another of its names.
        let quiet = (before.nlink > 1).then(|| unlock.quiet());
        let after = stat_fd(file.as_fd());
        drop(quiet);
        let after = match after {
            Ok(after) => after.stat,
            Err(error) => return Ok(ReadOutcome::LeftOut(unreadable(&error))),
        };
        if let Some((hash, sparse, staged)) = stored.filter(|_| after.pack() == before.pack()) {
            let read = staged.as_ref().map_or(after.size, LargeStaged::read);
            if let Some(staged) = staged {
                staged.commit()?;
            }
            let settled = is_settled(after.ctime, coarse) && !how.mapped;
            let moment = if settled { Moment::Settled } else { Moment::Recent };
            let database = is_database(&file, after.size, buffer);
            let content = ReadContent { stat: after, hash, sparse, moment, xattrs, read, database };
            return Ok(ReadOutcome::Content(content));
        }
        if attempt == 0 && after.ino != before.ino || !after.is_file() {
            return Ok(ReadOutcome::Replaced);
        }
        only_grows &= after.size > before.size && is_same_file(&after, &before);
        before = after;
        coarse = now();
    }
    if !only_grows || how.only_clone.is_some() {
        return Ok(ReadOutcome::LeftOut(Reason::Unstable));
    }
    match start(&file, before, how, buffer, store) {
        Err(StoreError::OverBudget { .. }) if final_attempt => {
            Ok(ReadOutcome::LeftOut(Reason::OverBudget { size: before.size }))
        }
        taken => Ok(taken?.map_or(ReadOutcome::LeftOut(Reason::Unstable), ReadOutcome::Content)),
    }
}

/// Whether everything but size and times is the same.
fn is_same_file(a: &Stat, b: &Stat) -> bool {
    let Stat { size, mtime, ctime, blocks, .. } = *b;
    Stat { size, mtime, ctime, blocks, ..*a } == *b
}

/// Content of a growing file at the moment of `stat`; `None` if two reads differ.
fn start(
    file: &OwnedFd,
    stat: Stat,
    how: ReadOptions,
    buffer: &mut Vec<u8>,
    store: &mut Appender<'_>,
) -> Result<Option<ReadContent>, StoreError> {
    let again = |hash: ContentHash| {
        let same = matches!(hash_file(file.as_fd(), stat.size), Ok(Some(other)) if other == hash);
        let after = stat_fd(file.as_fd()).map(|found| found.stat);
        same && after.is_ok_and(|after| after.size >= stat.size && is_same_file(&after, &stat))
    };
    let Ok(xattrs) = xattrs(file.as_fd()) else { return Ok(None) };
    let sparse = has_holes(file, &stat);
    let hash = if stat.size >= LARGE {
        let known = LargeSource { size: stat.size, sparse, before: how.before };
        let staged = match store.put_start(file.as_fd(), &known) {
            Err(StoreError::SourceChanged | StoreError::Source(_)) => return Ok(None),
            staged => staged?,
        };
        let hash = staged.hash();
        if !again(hash) {
            return Ok(None);
        }
        staged.commit()?;
        hash
    } else {
        if !exactly(file, stat.size, buffer) {
            return Ok(None);
        }
        let hash = content_hash(buffer);
        if !again(hash) {
            return Ok(None);
        }
        store.put(ObjectKey::from(hash), buffer)?;
        hash
    };
    // A growing database is being written, which is handled elsewhere.
    if is_database(file, stat.size, buffer) {
        return Ok(None);
    }
    let (moment, database) = (Moment::Growing, false);
    Ok(Some(ReadContent { stat, hash, sparse, moment, xattrs, read: stat.size, database }))
}

/// Read the first `size` bytes of a file; false if it is shorter.
fn exactly(file: &OwnedFd, size: u64, buffer: &mut Vec<u8>) -> bool {
    buffer.resize(usize::try_from(size).unwrap_or(usize::MAX), 0);
    pread(file.as_fd(), buffer, 0).is_ok_and(|read| read == buffer.len())
}

/// Wait for a running `write`. It changes the times when it begins, not when it ends, so one that began before `before`
/// was taken may still be running, and half of it could be read unnoticed. Seeking data takes the lock that it holds:
/// after that it is complete, and one that begins later changes the times again.
fn wait_for_writers(file: &OwnedFd) {
    // The result does not matter, not even for an empty file.
    let _ = rustix::fs::seek(file, SeekFrom::Data(0));
}

/// Open without changing the atime, if permitted: only the owner may ask for that.
fn open(dir: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Os> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    match rustix::fs::openat(dir, name, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Os::PERM) => rustix::fs::openat(dir, name, flags, Mode::empty()),
        other => other,
    }
}

enum ReadError {
    Os(Os),
    Store(StoreError),
    NotCloned(OnlyClone),
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> ReadError {
        ReadError::Store(error)
    }
}

type Stored<'a, 'w> = (ContentHash, bool, Option<LargeStaged<'a, 'w>>);

/// Read and store the current content; `None` if its size differs from the expected one.
fn content<'a, 'w>(
    file: &OwnedFd,
    (stat, device): (&Stat, (u32, u32)),
    how: ReadOptions,
    buffer: &mut Vec<u8>,
    store: &'a mut Appender<'w>,
) -> Result<Option<Stored<'a, 'w>>, ReadError> {
    let sparse = has_holes(file, stat);
    if stat.size >= LARGE {
        let known = LargeSource { size: stat.size, sparse, before: how.before };
        let deferring = store.deferring(device);
        let staged = match how.only_clone {
            Some(why) => store.clone_large(file.as_fd(), &known)?.ok_or(ReadError::NotCloned(why))?,
            None => match (store.put_known(file.as_fd(), &known), deferring) {
                (Err(StoreError::OverBudget { .. }), Some(writer)) => {
                    let hash = hash_file(file.as_fd(), stat.size).map_err(StoreError::Source)?;
                    return Ok(hash.map(|hash| {
                        writer.defer(hash);
                        (hash, sparse, None)
                    }));
                }
                (staged, _) => staged?,
            },
        };
        return Ok(Some((staged.hash(), sparse, Some(staged))));
    }
    if let Some(why) = how.only_clone {
        // Only large objects are separate files that can share data.
        return Err(ReadError::NotCloned(why));
    }
    let Some(()) = whole(file, stat.size, buffer).map_err(ReadError::Os)? else { return Ok(None) };
    let hash = content_hash(buffer);
    store.put(ObjectKey::from(hash), buffer)?;
    Ok(Some((hash, sparse, None)))
}

/// Read a whole file of `size` bytes; `None` if it is shorter or longer.
fn whole(file: &OwnedFd, size: u64, buffer: &mut Vec<u8>) -> Result<Option<()>, Os> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    // One byte more than expected: a short read then shows the end, without another call.
    if buffer.len() < size + 1 {
        buffer.resize(size + 1, 0);
    }
    buffer.resize(size + 1, 0);
    let mut at = 0;
    loop {
        let part = buffer.get_mut(at..).unwrap_or_default();
        let wanted = part.len();
        match rustix::io::pread(file, part, at as u64) {
            Err(Os::INTR) => {}
            Err(errno) => return Err(errno),
            Ok(read) => {
                at += read;
                if read == 0 || read == wanted || at >= size {
                    break;
                }
            }
        }
    }
    buffer.truncate(size.min(at));
    Ok((at == size).then_some(()))
}

/// Whether a file that was read is an SQLite database; small ones are in the buffer.
fn is_database(file: &OwnedFd, size: u64, buffer: &[u8]) -> bool {
    if size < LARGE {
        return buffer.starts_with(SQLITE);
    }
    let mut head = [0; SQLITE.len()];
    rustix::io::pread(file, &mut head, 0).is_ok_and(|read| head[..read] == SQLITE[..])
}

/// Whether a file has holes. Fewer blocks may also mean that they are not written yet: the kernel knows.
fn has_holes(file: &OwnedFd, stat: &Stat) -> bool {
    const WORTH_IT: u64 = 32 << 10;
    stat.size >= WORTH_IT
        && stat.blocks * 512 < stat.size
        && rustix::fs::seek(file, SeekFrom::Hole(0)).is_ok_and(|hole| hole < stat.size)
}

/// Whether a file's stat may be trusted: it was read a clock tick after its last change, so any later one shows.
pub(crate) fn is_settled(ctime: Time, coarse: Time) -> bool {
    // The slowest kernel clock ticks a hundred times a second.
    const TICK: u32 = 10_000_000;
    let limit = if coarse.nanos >= TICK {
        Time { nanos: coarse.nanos - TICK, ..coarse }
    } else {
        Time { seconds: coarse.seconds - 1, nanos: coarse.nanos + (1_000_000_000 - TICK) }
    };
    ctime < limit
}

/// Current time of the clock that file times are taken from.
pub(crate) fn now() -> Time {
    let now = rustix::time::clock_gettime(ClockId::RealtimeCoarse);
    Time { seconds: now.tv_sec, nanos: u32::try_from(now.tv_nsec).unwrap_or(0) }
}

fn left_out(errno: Os) -> ReadOutcome {
    ReadOutcome::LeftOut(Reason::Unreadable(Errno(errno.raw_os_error())))
}

pub(crate) fn unreadable(error: &io::Error) -> Reason {
    Reason::Unreadable(Errno(error.raw_os_error().unwrap_or(0)))
}

/// Target of the link `name` in `dir`.
pub(crate) fn link(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Box<[u8]>, Os> {
    Ok(rustix::fs::readlinkat(dir, name, Vec::new())?.into_bytes().into())
}

/// Extended attributes of an open file, sorted.
pub(crate) fn xattrs(file: BorrowedFd<'_>) -> Result<Vec<Xattr>, Os> {
    list(
        |buffer| rustix::fs::flistxattr(file, buffer),
        |name, buffer| rustix::fs::fgetxattr(file, name, buffer),
    )
}

/// Extended attributes of an entry that is not opened: a link, a FIFO, a socket, a device.
pub(crate) fn xattrs_at(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Vec<Xattr>, Os> {
    let mut path = format!("/proc/self/fd/{}/", dir.as_raw_fd()).into_bytes();
    path.extend_from_slice(name);
    let path = path.as_slice();
    list(
        |buffer| rustix::fs::llistxattr(path, buffer),
        |name, buffer| rustix::fs::lgetxattr(path, name, buffer),
    )
}

fn list(
    names: impl Fn(&mut [u8]) -> Result<usize, Os>,
    value: impl Fn(&[u8], &mut [u8]) -> Result<usize, Os>,
) -> Result<Vec<Xattr>, Os> {
    let listed = match grown(|buffer| names(buffer)) {
        // Filesystems without attributes, and entries for which the kernel has none.
        Err(Os::OPNOTSUPP | Os::NOSYS) => return Ok(Vec::new()),
        other => other?,
    };
    let mut xattrs = Vec::new();
    for name in listed.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        match grown(|buffer| value(name, buffer)) {
            Ok(value) => xattrs.push(Xattr { name: name.into(), value: value.into() }),
            // Removed meanwhile: the caller notices the changed ctime.
            Err(Os::NODATA) => {}
            Err(errno) => return Err(errno),
        }
    }
    xattrs.sort();
    Ok(xattrs)
}

/// Call with a small buffer first, and with a large one if that was too small.
fn grown(ask: impl Fn(&mut [u8]) -> Result<usize, Os>) -> Result<Vec<u8>, Os> {
    let mut small = [0; 256];
    match ask(&mut small) {
        Ok(len) => return Ok(small.get(..len).unwrap_or_default().to_vec()),
        Err(Os::RANGE) => {}
        Err(errno) => return Err(errno),
    }
    // The kernel's limit for both.
    let mut large = vec![0; 64 << 10];
    let len = ask(&mut large)?;
    large.truncate(len);
    Ok(large)
}
