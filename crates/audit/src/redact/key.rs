//! The key under which redacted values are digested: made once, read by nobody else.

use std::fmt;
use std::fs::OpenOptions;
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
        let failed = |source| KeyError::Io { path: path.to_owned(), source };
        match read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => make(path).map_err(failed)?,
            other => {
                return other.map_err(failed)?.map_err(|why| KeyError::Wrong { path: path.to_owned(), why });
            }
        }
        // Whoever was first: their key is everybody's.
        read(path).map_err(failed)?.map_err(|why| KeyError::Wrong { path: path.to_owned(), why })
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

fn read(path: &Path) -> io::Result<Result<Key, &'static str>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC).bits().cast_signed();
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let meta = file.metadata()?;
    let wrong = if !meta.is_file() {
        "it is not a regular file"
    } else if meta.uid() != nono_sys::process::uid() {
        "it belongs to somebody else"
    } else if meta.mode() & 0o077 != 0 {
        "others can read or write it"
    } else if meta.len() != LENGTH as u64 {
        "it does not hold 32 bytes"
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
    let linked = made.and_then(|()| std::fs::hard_link(&whole, path));
    // Best effort: what stays behind is another key or none, for nothing.
    let _ = std::fs::remove_file(&whole);
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn random() -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    // Up to 256 bytes come at once, and are never cut short by a signal.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes)
}
