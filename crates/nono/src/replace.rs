//! Replacing a file that is a person's: old or new, never half, in the place a link points to, with the mode and owner it
//! had.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use nono_sys::errno;
use thiserror::Error;

/// Why a file was not replaced.
#[derive(Debug, Error)]
pub(crate) enum ReplaceError {
    #[error("{path} belongs to somebody else", path = .path.display())]
    Foreign { path: PathBuf },
    #[error("{path}: {}", errno::describe(.source), path = .path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Replace the file at `path`. A new one has `mode`, less what the umask takes.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), ReplaceError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ReplaceError::Io { path, source }
    };
    let target = match fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
        other => other.map_err(failed(path))?,
    };
    let old = match fs::metadata(&target) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        other => Some(other.map_err(failed(&target))?),
    };
    let mut name = target.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".nono-{}", std::process::id()));
    let temp = target.with_file_name(name);
    let written = fill(&temp, bytes, old.as_ref(), mode)
        .map_err(|source| {
            if source.kind() == ErrorKind::PermissionDenied && old.is_some() && temp.exists() {
                ReplaceError::Foreign { path: target.clone() }
            } else {
                ReplaceError::Io { path: temp.clone(), source }
            }
        })
        .and_then(|()| fs::rename(&temp, &target).map_err(failed(&target)));
    if written.is_err() {
        // Best effort: the error that matters is the one returned.
        let _ = fs::remove_file(&temp);
    }
    written
}

fn fill(temp: &Path, bytes: &[u8], old: Option<&fs::Metadata>, mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(temp)?;
    if let Some(old) = old {
        let mode = keep_owner(&file, old)?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

/// Give the file the owner of the old one; the mode that it may then have.
fn keep_owner(file: &File, old: &fs::Metadata) -> io::Result<u32> {
    let new = file.metadata()?;
    let mode = old.mode() & 0o7777;
    if (new.uid(), new.gid()) == (old.uid(), old.gid()) {
        return Ok(mode);
    }
    match fchown(file, Some(old.uid()), Some(old.gid())) {
        // A group that this user is not in: its rights would go to the user's own group, so nobody gets them.
        Err(error) if error.kind() == ErrorKind::PermissionDenied && new.uid() == old.uid() => {
            Ok(mode & !0o070)
        }
        result => result.map(|()| mode),
    }
}
