//! The key under which redacted values are digested: made once, read by nobody else.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::rand::{GetRandomFlags, getrandom};
use thiserror::Error;

const LENGTH: usize = 32;

#[derive(Debug, Error)]
pub enum KeyError {
    #[error("{}: {}", .path.display(), nono_sys::errno::describe(.source))]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: it is no key for redaction: {why}", .path.display())]
    Wrong { path: PathBuf, why: &'static str },
}

#[derive(Clone)]
pub struct Key([u8; LENGTH]);

impl Key {
    pub const fn from_bytes(bytes: [u8; LENGTH]) -> Key {
        Key(bytes)
    }

    pub(super) const fn as_bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }

    /// One that nobody keeps.
    pub fn passing() -> io::Result<Key> {
        Ok(Key(random()?))
    }

    /// The key in this file; a new one where there is no such file.
    pub fn load_or_make(path: &Path) -> Result<Key, KeyError> {
        Ok(Key::load_or_replace(path)?.0)
    }

    /// The same, and where the damaged one was put that was replaced: what is recorded from now on cannot be compared
    /// with earlier records. A key of somebody else, or one that others can read, is an error: it was not damage.
    pub fn load_or_replace(path: &Path) -> Result<(Key, Option<PathBuf>), KeyError> {
        let failed = |source| KeyError::Io { path: path.to_owned(), source };
        let mut aside = None;
        for _ in 0..ATTEMPTS {
            match read(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => make(path).map_err(failed)?,
                Err(source) => return Err(failed(source)),
                Ok(Ok(key)) => return Ok((key, aside)),
                Ok(Err(Flaw::Length)) => aside = put_aside(path).map_err(failed)?.or(aside),
                Ok(Err(Flaw::Other(why))) => return Err(KeyError::Wrong { path: path.to_owned(), why }),
            }
        }
        Err(KeyError::Wrong { path: path.to_owned(), why: "it does not hold 32 bytes" })
    }
}

/// Made, read, replaced by somebody else meanwhile: more often than this it is not that.
const ATTEMPTS: usize = 8;

/// What is wrong with a key file.
enum Flaw {
    /// Cut short, as by a loss of power.
    Length,
    Other(&'static str),
}

/// Put a damaged key aside, under a name of its own; nothing where somebody else did. The lock is on the damaged file
/// itself, so that nobody takes the new one away.
fn put_aside(path: &Path) -> io::Result<Option<PathBuf>> {
    let file = match open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    file.lock()?;
    let (locked, now) = (file.metadata()?, path.symlink_metadata());
    let same = now.is_ok_and(|now| (now.dev(), now.ino()) == (locked.dev(), locked.ino()));
    if !same || locked.len() == LENGTH as u64 {
        return Ok(None);
    }
    let name = |number: u32| path.with_extension(format!("key.damaged-{number}"));
    let free = (1..=u32::MAX).map(name).find(|aside| aside.symlink_metadata().is_err());
    let aside = free.ok_or_else(|| io::Error::other("no name is left for it"))?;
    std::fs::rename(path, &aside)?;
    Ok(Some(aside))
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn read(path: &Path) -> io::Result<Result<Key, Flaw>> {
    let mut file = open(path)?;
    let meta = file.metadata()?;
    let wrong = if !meta.is_file() {
        Flaw::Other("it is not a regular file")
    } else if meta.uid() != nono_sys::process::uid() {
        Flaw::Other("it belongs to somebody else")
    } else if meta.mode() & 0o077 != 0 {
        Flaw::Other("others can read or write it")
    } else if meta.len() != LENGTH as u64 {
        Flaw::Length
    } else {
        let mut bytes = [0; LENGTH];
        file.read_exact(&mut bytes)?;
        return Ok(Ok(Key(bytes)));
    };
    Ok(Err(wrong))
}

/// Complete under its name, or not there: it is linked to it when it is whole.
fn make(path: &Path) -> io::Result<()> {
    // The key has nothing to do with its passing name.
    let (mark, bytes) = (random()?, random()?);
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".tmp-{}-{:02x}{:02x}{:02x}", std::process::id(), mark[0], mark[1], mark[2]));
    let whole = path.with_file_name(name);
    let made = nono_sys::fs::make_file(&whole, 0o600, &bytes);
    // Made once and needed by every run: on the disk before anything is digested with it.
    let made = made.and_then(|()| File::open(&whole)?.sync_all());
    let linked = made.and_then(|()| std::fs::hard_link(&whole, path));
    // Best effort: what stays behind is another key or none, for nothing.
    let _ = std::fs::remove_file(&whole);
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => nono_sys::fs::sync_parent(path),
    }
}

fn random() -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    // Up to 256 bytes come at once, and are never cut short by a signal.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes)
}
