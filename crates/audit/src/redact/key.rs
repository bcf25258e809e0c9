//! Key for the digests of redacted values: created once, readable by its owner only.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use thiserror::Error;

const LENGTH: usize = 32;

#[derive(Debug, Error)]
pub enum KeyError {
    #[error("{}: {}", .path.display(), nono_sys::errno::describe(.source))]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: not a redaction key: {why}", .path.display())]
    Wrong { path: PathBuf, why: &'static str },
}

#[derive(Clone)]
pub struct RedactionKey([u8; LENGTH]);

impl RedactionKey {
    pub const fn from_bytes(bytes: [u8; LENGTH]) -> RedactionKey {
        RedactionKey(bytes)
    }

    pub(super) const fn as_bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }

    /// Temporary key, which is not stored.
    pub fn passing() -> io::Result<RedactionKey> {
        Ok(RedactionKey(nono_sys::random::bytes()?))
    }

    /// Loads or creates the key; a damaged one is moved aside and replaced, and its new path is returned. Later records
    /// cannot be compared with earlier ones then. A key of another user, or one that others can read, is an error, not
    /// damage.
    pub fn load_or_replace(path: &Path) -> Result<(RedactionKey, Option<PathBuf>), KeyError> {
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

/// Maximum number of attempts while other processes create or replace the key.
const ATTEMPTS: usize = 8;

enum Flaw {
    /// Wrong length, as after a power loss.
    Length,
    Other(&'static str),
}

/// Moves a damaged key aside, to a free name; returns `None` if another process did. The lock is on the damaged file
/// itself, so that no process moves the new one away.
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
    let aside = free.ok_or_else(|| io::Error::other("no free name to move the damaged key to"))?;
    std::fs::rename(path, &aside)?;
    Ok(Some(aside))
}

impl fmt::Debug for RedactionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

fn read(path: &Path) -> io::Result<Result<RedactionKey, Flaw>> {
    let mut file = open(path)?;
    let meta = file.metadata()?;
    let wrong = if !meta.is_file() {
        Flaw::Other("it is not a regular file")
    } else if meta.uid() != nono_sys::process::uid() {
        Flaw::Other("it belongs to another user")
    } else if meta.mode() & 0o077 != 0 {
        Flaw::Other("other users can read or write it")
    } else if meta.len() != LENGTH as u64 {
        Flaw::Length
    } else {
        let mut bytes = [0; LENGTH];
        file.read_exact(&mut bytes)?;
        return Ok(Ok(RedactionKey(bytes)));
    };
    Ok(Err(wrong))
}

/// Creates the key atomically: it is linked to its name when it is complete.
fn make(path: &Path) -> io::Result<()> {
    let bytes = nono_sys::random::bytes::<LENGTH>()?;
    let whole = nono_sys::fs::temporary_beside(path, ".tmp-")?;
    let made = nono_sys::fs::make_file(&whole, 0o600, &bytes);
    // Created once and needed by every run: on disk before its first use.
    let made = made.and_then(|()| File::open(&whole)?.sync_all());
    let linked = made.and_then(|()| std::fs::hard_link(&whole, path));
    // Best effort: a file left behind is an unused key.
    let _ = std::fs::remove_file(&whole);
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => nono_sys::fs::sync_parent(path),
    }
}
