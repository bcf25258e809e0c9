//! Finds a repository's own folder: `.git` as a directory, or as a file that names one (worktrees, submodules).
//!
//! As in git, symbolic links inside that folder are followed: the folder may be anywhere anyway, since a `.git` file
//! may name any path. Only regular files of bounded size are read, and nothing here can block.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

/// Maximum size of an ignore file.
pub(super) const LARGEST_IGNORE_FILE: u64 = 4 << 20;
const LARGEST_INDEX: u64 = 1 << 28;
const SMALL: u64 = 1 << 20;

/// The folder of one working tree, and the one that it shares with others.
#[derive(Debug)]
pub(super) struct GitDir {
    own: OwnedFd,
    common: Option<OwnedFd>,
}

/// The settings of a repository's configuration that matter here.
#[derive(Clone, Copy, Debug)]
pub(super) struct GitSettings {
    pub(super) ignore_case: bool,
    pub(super) id_len: usize,
}

/// Look for a repository at `.git` in a directory. An error means that it cannot be read.
pub(super) fn find(dir: BorrowedFd<'_>) -> io::Result<Option<GitDir>> {
    let Some(stat) = absent_is_none(statat(dir, ".git", AtFlags::empty()))? else { return Ok(None) };
    let own = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => open_dir(dir, b".git")?,
        FileType::RegularFile => match read(dir, b".git", SMALL)?.as_deref().and_then(named_dir) {
            Some(path) => open_dir(dir, path)?,
            None => None,
        },
        _ => None,
    };
    let Some(own) = own else { return Ok(None) };
    let common = match read(own.as_fd(), b"commondir", SMALL)? {
        Some(path) => match open_dir(own.as_fd(), without_line_end(&path))? {
            Some(common) => Some(common),
            None => return Ok(None),
        },
        None => None,
    };
    let found = GitDir { own, common };
    Ok(found.is_repository()?.then_some(found))
}

impl GitDir {
    fn common(&self) -> BorrowedFd<'_> {
        self.common.as_ref().unwrap_or(&self.own).as_fd()
    }

    /// Git's own test: a valid HEAD, objects and refs.
    fn is_repository(&self) -> io::Result<bool> {
        let is_dir = |name| -> io::Result<bool> {
            let stat = absent_is_none(statat(self.common(), name, AtFlags::empty()))?;
            Ok(stat.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory))
        };
        Ok(is_dir("objects")? && is_dir("refs")? && self.has_head()?)
    }

    fn has_head(&self) -> io::Result<bool> {
        // Old style: HEAD is a link into refs/, perhaps to a branch that does not exist yet.
        if let Ok(target) = rustix::fs::readlinkat(&self.own, "HEAD", Vec::new()) {
            return Ok(target.as_bytes().starts_with(b"refs/"));
        }
        let Some(head) = read(self.own.as_fd(), b"HEAD", SMALL)? else { return Ok(false) };
        let named =
            head.strip_prefix(b"ref:").is_some_and(|name| name.trim_ascii_start().starts_with(b"refs/"));
        let id = head.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        Ok(named || id >= 40)
    }

    pub(super) fn exclude(&self) -> io::Result<Option<Vec<u8>>> {
        read(self.common(), b"info/exclude", LARGEST_IGNORE_FILE)
    }

    pub(super) fn index(&self) -> io::Result<Option<Vec<u8>>> {
        read(self.own.as_fd(), b"index", LARGEST_INDEX)
    }

    pub(super) fn settings(&self) -> io::Result<GitSettings> {
        let mut settings = GitSettings { ignore_case: false, id_len: 20 };
        if let Some(text) = read(self.common(), b"config", SMALL)? {
            super::git_config::settings(&text, |section, key, value| match (section, key) {
                (b"core", b"ignorecase") => settings.ignore_case = super::git_config::is_true(value),
                (b"extensions", b"objectformat") => {
                    let sha256 = value.is_some_and(|value| value.eq_ignore_ascii_case(b"sha256"));
                    settings.id_len = if sha256 { 32 } else { 20 };
                }
                _ => {}
            });
        }
        Ok(settings)
    }
}

/// Directory that a `.git` file names.
fn named_dir(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"gitdir: ").map(without_line_end).filter(|path| !path.is_empty())
}

fn without_line_end(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r')).map_or(0, |last| last + 1);
    &text[..end]
}

fn open_dir(at: BorrowedFd<'_>, path: &[u8]) -> io::Result<Option<OwnedFd>> {
    if path.contains(&0) {
        return Ok(None);
    }
    // O_PATH: entries in it must be reachable, its listing need not be readable.
    absent_is_none(openat(at, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()))
}

/// Read a regular file; `None` if it does not exist.
fn read(at: BorrowedFd<'_>, path: &[u8], largest: u64) -> io::Result<Option<Vec<u8>>> {
    match absent_is_none(statat(at, path, AtFlags::empty()))? {
        Some(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
            read_opened(at, path, OFlags::empty(), largest)
        }
        _ => Ok(None),
    }
}

/// Read a `.gitignore`, like git never through a symbolic link.
pub(super) fn read_ignore_file(dir: BorrowedFd<'_>) -> io::Result<Option<Vec<u8>>> {
    match read_opened(dir, b".gitignore", OFlags::NOFOLLOW, LARGEST_IGNORE_FILE) {
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Ok(None),
        // A socket, or a device without a driver.
        Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => Ok(None),
        other => other,
    }
}

fn read_opened(at: BorrowedFd<'_>, path: &[u8], flags: OFlags, largest: u64) -> io::Result<Option<Vec<u8>>> {
    let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let Some(file) = absent_is_none(openat(at, path, flags, Mode::empty()))? else { return Ok(None) };
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    File::from(file).take(largest + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > largest {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    Ok(Some(bytes))
}

fn absent_is_none<T>(result: Result<T, Errno>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
