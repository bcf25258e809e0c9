//! Makes an entry, complete, under a temporary name, and puts it in its place.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::displace::{self, DisplaceVerdict};
use super::journal::PREFIX;
use super::meta::{self, CurrentAttributes, Handle, Problems};
use super::rename::{exchange, is_unsupported, rename_free};
use super::{KeptContent, RestoreError, Result, Why};
use crate::disk;
use crate::hash::content_hash;
use crate::node::{Entry, Kind, Reason};
use crate::state::Objects;

/// Reason why a step was not done.
#[derive(Debug)]
pub(super) enum NotDone {
    Skipped(Why),
    Failed(RestoreError),
}

impl<E: Into<RestoreError>> From<E> for NotDone {
    fn from(error: E) -> NotDone {
        NotDone::Failed(error.into())
    }
}

/// Result for a displaced entry.
#[derive(Debug, Default)]
pub(super) struct Displaced {
    /// Content that had to be stored.
    pub(super) kept: Option<KeptContent>,
    /// Name under which the file stays, because a program writes to it.
    pub(super) beside: Option<Vec<u8>>,
}

/// A directory in which names are changed.
pub(super) struct TargetDir<'a> {
    pub(super) dir: BorrowedFd<'a>,
    pub(super) objects: &'a dyn Objects,
    /// Attributes of files created here; known from the first one.
    birth: Option<Birth>,
    /// Whether new files are made without a name, and linked when they are complete.
    unnamed: bool,
}

/// Number of steps in one directory from which on unnamed files are cheaper than temporary names. In a large ext4
/// directory each name takes a search of its own: a directory of 300,000 files is restored faster without temporary
/// names. In a small directory it is the other way round.
const MANY: usize = 2048;

#[derive(Clone, Copy, Debug)]
struct Birth {
    uid: u32,
    gid: u32,
    /// Requested permission bits that new files were seen to get.
    given: u16,
    /// Whether a default access control list is in force.
    inherits: bool,
}

/// Skip an entry that cannot be stored because the disk is full.
fn no_room(error: RestoreError, old: &Entry) -> NotDone {
    match old.kind {
        Kind::File { size, .. } if error.is_full() => {
            NotDone::Skipped(Why::NotStored(Reason::OverBudget { size }))
        }
        _ => error.into(),
    }
}

fn io_error<T, E: Into<io::Error>>(result: Result<T, E>, doing: &'static str) -> Result<T> {
    result.map_err(RestoreError::io(doing))
}

impl<'a> TargetDir<'a> {
    pub(super) fn new(dir: BorrowedFd<'a>, objects: &'a dyn Objects) -> TargetDir<'a> {
        TargetDir { dir, objects, birth: None, unnamed: false }
    }

    /// Prepare for this many steps.
    pub(super) fn with_steps(self, steps: usize) -> TargetDir<'a> {
        TargetDir { unnamed: steps >= MANY, ..self }
    }

    /// Make a complete file directly under its final name. False: not possible here, use a temporary name.
    pub(super) fn make_unnamed(&mut self, entry: &Entry, problems: &mut Problems) -> Result<bool, NotDone> {
        if !self.unnamed || !matches!(entry.kind, Kind::File { .. }) {
            return Ok(false);
        }
        let asked = self.mode_for(entry);
        let Ok(fd) = create_unnamed(self.dir, asked) else {
            // Not supported by the filesystem; any other error shows when the file is made with a name.
            self.unnamed = false;
            return Ok(false);
        };
        let mut own = Problems::new();
        self.fill(&fd, entry, asked, &mut own)?;
        match link_unnamed(&fd, self.dir, entry.name.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(NotDone::Skipped(Why::Appeared));
            }
            Err(_) => {
                self.unnamed = false;
                return Ok(false);
            }
            Ok(()) => {}
        }
        problems.extend(own);
        Ok(true)
    }

    /// Make `entry`, not a directory, under the name `temp`. Attributes that cannot be set go to `problems`.
    pub(super) fn make(&mut self, temp: &[u8], entry: &Entry, problems: &mut Problems) -> Result<()> {
        let made = match &entry.kind {
            Kind::File { .. } => self.make_file(temp, entry, problems),
            Kind::Symlink { target } => {
                let make = || -> io::Result<_> {
                    disk::step()?;
                    Ok(rustix::fs::symlinkat(&target[..], self.dir, temp)?)
                };
                io_error(make(), "create the link")
                    .and_then(|()| finish_special(Handle::Link(self.dir, temp), entry, problems))
            }
            Kind::Fifo => self.make_node(temp, entry, FileType::Fifo, 0, problems),
            Kind::Socket => self.make_node(temp, entry, FileType::Socket, 0, problems),
            Kind::CharDevice { rdev } => {
                self.make_node(temp, entry, FileType::CharacterDevice, *rdev, problems)
            }
            Kind::BlockDevice { rdev } => self.make_node(temp, entry, FileType::BlockDevice, *rdev, problems),
            Kind::Dir { .. } => Err(RestoreError::io("make it")(Errno::ISDIR)),
        };
        if made.is_err() {
            // If this fails too, the rest is found by its name.
            let _ = self.unlink(temp);
        }
        made
    }

    fn make_file(&mut self, temp: &[u8], entry: &Entry, problems: &mut Problems) -> Result<()> {
        let asked = self.mode_for(entry);
        let fd = io_error(create(self.dir, temp, asked), "create it")?;
        self.fill(&fd, entry, asked, problems)
    }

    /// Permissions to create a file with: the final ones, unless its owner, attributes or special bits differ.
    fn mode_for(&self, entry: &Entry) -> u16 {
        let meta = &entry.meta;
        let expected = self.birth.is_some_and(|birth| {
            (birth.uid, birth.gid) == (meta.uid, meta.gid) && !birth.inherits && meta.xattrs.is_empty()
        });
        if expected && meta.mode < 0o1000 { meta.mode } else { 0o600 }
    }

    /// Give a new file, created with the permissions `asked`, its content and attributes.
    fn fill(&mut self, fd: &OwnedFd, entry: &Entry, asked: u16, problems: &mut Problems) -> Result<()> {
        let Kind::File { hash, size, sparse } = entry.kind else { return Ok(()) };
        let birth = io_error(self.birth(fd.as_fd(), asked), "stat it")?;
        if size > 0 || hash != content_hash(b"") {
            self.objects.write_file(hash, size, sparse, fd.as_fd())?;
        }
        let has = CurrentAttributes {
            uid: birth.uid,
            gid: birth.gid,
            mode: (asked & !birth.given == 0).then_some(asked),
            xattrs: &[],
            inherits: birth.inherits,
            mtime: None,
        };
        meta::set(Handle::Open(fd.as_fd()), has, &entry.meta, problems);
        Ok(())
    }

    /// Attributes of the file just created. Only checked for the first files in a directory.
    fn birth(&mut self, fd: BorrowedFd<'_>, asked: u16) -> io::Result<Birth> {
        if let Some(birth) = self.birth.filter(|birth| asked & !birth.given == 0) {
            return Ok(birth);
        }
        let stat = rustix::fs::fstat(fd)?;
        let got = u16::try_from(stat.st_mode & 0o7777).unwrap_or(0);
        let before = self.birth.map_or(0, |birth| birth.given);
        let inherits = match self.birth {
            Some(birth) => birth.inherits,
            None => rustix::fs::fgetxattr_query(self.dir, meta::INHERITED[1]).is_ok(),
        };
        let birth = Birth { uid: stat.st_uid, gid: stat.st_gid, given: before | (asked & got), inherits };
        self.birth = Some(birth);
        Ok(birth)
    }

    fn make_node(
        &self,
        temp: &[u8],
        entry: &Entry,
        kind: FileType,
        device: u64,
        problems: &mut Problems,
    ) -> Result<()> {
        let make = || -> io::Result<_> {
            disk::step()?;
            rustix::fs::mknodat(self.dir, temp, kind, Mode::RUSR | Mode::WUSR, device)?;
            Ok(rustix::fs::openat(self.dir, temp, O_PATH, Mode::empty())?)
        };
        let fd = io_error(make(), "create the special file")?;
        finish_special(Handle::Path(fd.as_fd()), entry, problems)
    }

    /// Rename `temp` to an unused name.
    pub(super) fn put(&self, temp: &[u8], name: &[u8]) -> Result<(), NotDone> {
        let put = rename_free(self.dir, temp, name);
        if put.is_err() {
            let _ = self.unlink(temp);
        }
        match put {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(NotDone::Skipped(Why::Appeared))
            }
            put => Ok(io_error(put, "rename it into place")?),
        }
    }

    /// Put `temp`, made from `new`, in the place of `old`. `spare` is a second temporary name.
    pub(super) fn replace(
        &self,
        temp: &[u8],
        spare: &[u8],
        old: &Entry,
        new: &Entry,
    ) -> Result<Displaced, NotDone> {
        let name = old.name.as_bytes();
        if displace::is_written(self.dir, old) {
            let _ = self.unlink(temp);
            return Err(NotDone::Skipped(Why::OpenForWriting));
        }
        match exchange(self.dir, temp, name) {
            Ok(()) => self.clear_displaced(temp, old, || exchange(self.dir, temp, name), Some((temp, new))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.put(temp, name)?;
                Ok(Displaced::default())
            }
            Err(error) if is_unsupported(&error) => self.replace_in_steps(temp, spare, old, new),
            Err(error) => {
                let _ = self.unlink(temp);
                Err(RestoreError::io("rename it into place")(error).into())
            }
        }
    }

    /// The same if two names cannot be exchanged: for a moment the name does not exist.
    fn replace_in_steps(
        &self,
        temp: &[u8],
        spare: &[u8],
        old: &Entry,
        new: &Entry,
    ) -> Result<Displaced, NotDone> {
        let name = old.name.as_bytes();
        let away = rename_free(self.dir, name, spare);
        if away.is_err() {
            let _ = self.unlink(temp);
        }
        io_error(away, "move the old file away")?;
        let back = || {
            rename_free(self.dir, name, temp)?;
            rename_free(self.dir, spare, name)
        };
        if let Err(error) = rename_free(self.dir, temp, name) {
            let _ = self.unlink(temp);
            io_error(rename_free(self.dir, spare, name), "put it back")?;
            return Err(RestoreError::io("rename it into place")(error).into());
        }
        self.clear_displaced(spare, old, back, Some((temp, new)))
    }

    /// Remove `old`, by way of the name `temp`.
    pub(super) fn delete(&self, temp: &[u8], old: &Entry) -> Result<Displaced, NotDone> {
        let name = old.name.as_bytes();
        if displace::is_written(self.dir, old) {
            return Err(NotDone::Skipped(Why::OpenForWriting));
        }
        match rename_free(self.dir, name, temp) {
            Ok(()) => self.clear_displaced(temp, old, || rename_free(self.dir, temp, name), None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Displaced::default()),
            Err(error) => Err(RestoreError::io("remove it")(error).into()),
        }
    }

    /// Clear the displaced entry `gone` away. If it is as expected, or could be stored, it is removed; otherwise it is put
    /// back, and its replacement, then at `undone`, is removed. If a program writes to it, it cannot be removed:
    /// without a replacement it is put back, otherwise it stays beside the replacement, which may be in use by now too.
    fn clear_displaced(
        &self,
        gone: &[u8],
        old: &Entry,
        back: impl Fn() -> io::Result<()>,
        undone: Option<(&[u8], &Entry)>,
    ) -> Result<Displaced, NotDone> {
        let not_done = match displace::judge(self.dir, gone, old, self.objects) {
            Ok(DisplaceVerdict::Stored(stored)) => {
                let taken = match stored.take(self.dir, gone, self.objects) {
                    Ok(taken) => taken,
                    Err(error) => return Err(self.undo(back, undone, no_room(error, old))),
                };
                let removed = if taken { Ok(()) } else { self.unlink(gone) };
                return match removed {
                    Ok(()) => Ok(Displaced { kept: stored.unlinked(self.objects)?, beside: None }),
                    // Stored, but it cannot be removed: put it back.
                    Err(error) => {
                        Err(self.undo(back, undone, RestoreError::io("remove the old file")(error).into()))
                    }
                };
            }
            Ok(DisplaceVerdict::Busy) if undone.is_some() => {
                let beside = self.keep_beside(gone, old.name.as_bytes())?;
                return Ok(Displaced { kept: None, beside: Some(beside) });
            }
            Ok(DisplaceVerdict::Busy) => NotDone::Skipped(Why::OpenForWriting),
            Ok(DisplaceVerdict::Other) => NotDone::Skipped(Why::ChangedMeanwhile),
            Err(error) => no_room(error, old),
        };
        Err(self.undo(back, undone, not_done))
    }

    fn undo(
        &self,
        back: impl Fn() -> io::Result<()>,
        undone: Option<(&[u8], &Entry)>,
        why: NotDone,
    ) -> NotDone {
        if let Err(error) = back() {
            return RestoreError::io("put it back")(error).into();
        }
        match undone.map_or(Ok(()), |(temp, new)| self.discard(temp, new)) {
            Ok(()) => why,
            Err(error) => error.into(),
        }
    }

    /// Remove what was made from `new` and was in place for a moment: a program may have saved to it.
    fn discard(&self, temp: &[u8], new: &Entry) -> Result<()> {
        match displace::judge(self.dir, temp, new, self.objects)? {
            DisplaceVerdict::Stored(stored) => {
                io_error(self.unlink(temp), "remove its replacement")?;
                stored.unlinked(self.objects).map(drop)
            }
            DisplaceVerdict::Busy | DisplaceVerdict::Other => {
                let beside = self.keep_beside(temp, new.name.as_bytes())?;
                Err(RestoreError::Beside { name: String::from_utf8_lossy(&beside).into_owned() })
            }
        }
    }

    /// Give a displaced file a permanent name in the same directory: `<name>.nono-kept-<restore>-<number>`.
    pub(super) fn keep_beside(&self, temp: &[u8], name: &[u8]) -> Result<Vec<u8>> {
        const LONGEST: usize = 255;
        let own = temp.strip_prefix(PREFIX).unwrap_or(temp);
        let end = [b".nono-kept-", own].concat();
        let name = name.get(..LONGEST.saturating_sub(end.len())).unwrap_or(name);
        let beside = [name, &end].concat();
        io_error(rename_free(self.dir, temp, &beside), "rename the old file")?;
        Ok(beside)
    }

    pub(super) fn unlink(&self, name: &[u8]) -> io::Result<()> {
        disk::step()?;
        Ok(rustix::fs::unlinkat(self.dir, name, AtFlags::empty())?)
    }

    /// Change the attributes of a file that stays.
    pub(super) fn change(&self, old: &Entry, new: &Entry, problems: &mut Problems) -> Result<(), NotDone> {
        let name = new.name.as_bytes();
        let fd = io_error(rustix::fs::openat(self.dir, name, O_PATH, Mode::empty()), "open it")?;
        let stat = io_error(rustix::fs::fstat(&fd), "stat it")?;
        // Another process may have put another file there, or a hard link to a file elsewhere.
        let expected = displace::kind_of(&stat) == displace::expected_kind(&new.kind)
            && old.meta.link.map_or(stat.st_nlink == 1, |inode| inode == stat.st_ino);
        if !expected {
            return Err(NotDone::Skipped(Why::ChangedMeanwhile));
        }
        let handle = match new.kind {
            Kind::Symlink { .. } => Handle::Link(self.dir, name),
            _ => Handle::Path(fd.as_fd()),
        };
        let has = CurrentAttributes { xattrs: &old.meta.xattrs, ..CurrentAttributes::of(&stat) };
        meta::set(handle, has, &new.meta, problems);
        Ok(())
    }
}

pub(super) const O_PATH: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

pub(super) fn create(dir: BorrowedFd<'_>, name: &[u8], mode: u16) -> io::Result<OwnedFd> {
    disk::step()?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(u32::from(mode)))?)
}

fn create_unnamed(dir: BorrowedFd<'_>, mode: u16) -> io::Result<OwnedFd> {
    disk::step()?;
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, ".", flags, Mode::from_raw_mode(u32::from(mode)))?)
}

/// Give an unnamed file its name, if that is unused.
fn link_unnamed(fd: &OwnedFd, dir: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
    disk::step()?;
    let from = meta::proc_path(fd.as_fd());
    Ok(rustix::fs::linkat(rustix::fs::CWD, from, dir, name, AtFlags::SYMLINK_FOLLOW)?)
}

fn finish_special(handle: Handle<'_>, entry: &Entry, problems: &mut Problems) -> Result<()> {
    let stat = io_error(handle.stat(), "stat it")?;
    if displace::kind_of(&stat) != displace::expected_kind(&entry.kind) {
        return Err(RestoreError::io("stat it")(Errno::STALE));
    }
    let is_link = matches!(entry.kind, Kind::Symlink { .. });
    let mode = is_link.then_some(entry.meta.mode);
    let has = CurrentAttributes { mode, inherits: !is_link, ..CurrentAttributes::of(&stat) };
    meta::set(handle, has, &entry.meta, problems);
    Ok(())
}
