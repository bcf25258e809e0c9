//! Atomic replacement of a user's file: through links, keeping mode and owner.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use nono_sys::errno;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use thiserror::Error;

/// Reasons why a file was not replaced.
#[derive(Debug, Error)]
pub(crate) enum ReplaceError {
    #[error("{path} belongs to another user", path = .path.display())]
    Foreign { path: PathBuf },
    #[error("{path}: {}", errno::describe(.source), path = .path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Replace the file at `path`, following links. A new file gets `mode` less the umask.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), ReplaceError> {
    let failed = |source| ReplaceError::Io { path: path.to_owned(), source };
    let parent = |path: &Path| path.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned);
    let target = match fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let folder = parent(path).canonicalize().map_err(failed)?;
            folder.join(path.file_name().unwrap_or_default())
        }
        other => other.map_err(failed)?,
    };
    let folder = nono_sys::fs::open_path(&parent(&target)).map_err(failed)?;
    replace_in(&folder, &target, bytes, mode)
}

/// Replace a file in an open folder. Only the name of `target` is used to find it.
pub(crate) fn replace_in(
    folder: &OwnedFd,
    target: &Path,
    bytes: &[u8],
    mode: u32,
) -> Result<(), ReplaceError> {
    let failed = |source: io::Error| ReplaceError::Io { path: target.to_owned(), source };
    let name = target.file_name().unwrap_or_default();
    let old = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => None,
        other => Some(other.map_err(|error| failed(error.into()))?),
    };
    if old.as_ref().is_some_and(|old| FileType::from_raw_mode(old.st_mode) != FileType::RegularFile) {
        return Err(failed(io::Error::other("it is no longer a regular file")));
    }
    let temporary = nono_sys::fs::temporary_beside(target, ".nono-").map_err(failed)?;
    let temp = temporary.file_name().unwrap_or_default();
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, temp, flags, Mode::from_raw_mode(mode))
        .map_err(|error| ReplaceError::Io { path: temporary.clone(), source: error.into() })?;
    let written = fill(File::from(file), bytes, old.as_ref())
        .map_err(|source| {
            if source.kind() == ErrorKind::PermissionDenied && old.is_some() {
                ReplaceError::Foreign { path: target.to_owned() }
            } else {
                failed(source)
            }
        })
        .and_then(|()| renameat(folder, temp, folder, name).map_err(|error| failed(error.into())));
    if written.is_err() {
        // Best effort: the error that matters is the one returned.
        let _ = unlinkat(folder, temp, AtFlags::empty());
    }
    written
}

fn fill(mut file: File, bytes: &[u8], old: Option<&Stat>) -> io::Result<()> {
    if let Some(old) = old {
        let mode = keep_owner(&file, old)?;
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

/// Give the file the owner of the old one; returns the mode that it may have then.
fn keep_owner(file: &File, old: &Stat) -> io::Result<u32> {
    let new = file.metadata()?;
    let mode = old.st_mode & 0o7777;
    if (new.uid(), new.gid()) == (old.st_uid, old.st_gid) {
        return Ok(mode);
    }
    match fchown(file, Some(old.st_uid), Some(old.st_gid)) {
        // The user is not in the old group: drop the group's rights, which would otherwise go to the user's own group.
        Err(error) if error.kind() == ErrorKind::PermissionDenied && new.uid() == old.st_uid => {
            Ok(mode & !0o070)
        }
        result => result.map(|()| mode),
    }
}
