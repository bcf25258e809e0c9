//! Reading a project's profile, once and only if it is a regular file of the user's.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nono_policy::ProfileError;
use nono_policy::profile::{PROJECT_FILE, PROJECT_MAX_BYTES as MAX_BYTES};
use nono_sys::process;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use super::ProjectProfileError;

/// Read the profile, if there is one. Follows no links and never blocks.
pub(super) fn content(dir: &Path, state_dir: &Path) -> Result<Option<Vec<u8>>, ProjectProfileError> {
    let path = dir.join(PROJECT_FILE);
    let folder = path.parent().unwrap_or(dir);
    let failed = |error: Errno| ProjectProfileError::Io { path: path.clone(), source: error.into() };
    // In a home folder, `.nono` is nono's state folder.
    if same(folder, state_dir) {
        return Ok(None);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder_fd = match openat(CWD, folder, flags, Mode::empty()) {
        Ok(fd) => fd,
        // A link or no directory; behind a link there may be a profile.
        Err(Errno::NOTDIR | Errno::LOOP) if path.symlink_metadata().is_ok() => {
            return Err(ProjectProfileError::Link { path: folder.to_owned() });
        }
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let name = path.file_name().unwrap_or_default();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat(&folder_fd, name, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(ProjectProfileError::Link { path }),
        // A socket.
        Err(Errno::NXIO) => return Err(ProfileError::NotAFile { path }.into()),
        Err(error) => return Err(failed(error)),
    };
    check(&file, &path)?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| ProjectProfileError::Io { path: path.clone(), source })?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(ProfileError::TooLarge { path, limit: MAX_BYTES }.into());
    }
    Ok(Some(bytes))
}

/// Check for a regular file of this user or root that no other user can write. The user's own group counts as the user,
/// since checkouts are often group-writable.
fn check(file: &File, path: &Path) -> Result<(), ProjectProfileError> {
    let path = path.to_owned();
    let meta = file.metadata().map_err(|source| ProjectProfileError::Io { path: path.clone(), source })?;
    if !meta.is_file() {
        return Err(ProfileError::NotAFile { path }.into());
    }
    if meta.uid() != process::uid() && meta.uid() != 0 {
        return Err(ProjectProfileError::Foreign { path, uid: meta.uid() });
    }
    let mode = meta.mode() & 0o7777;
    let by_group = mode & 0o020 != 0 && meta.gid() != process::gid();
    if by_group || mode & 0o002 != 0 {
        return Err(ProjectProfileError::WritableByOthers { path, mode });
    }
    if meta.len() > MAX_BYTES {
        return Err(ProfileError::TooLarge { path, limit: MAX_BYTES }.into());
    }
    Ok(())
}

/// Whether both paths lead to the same folder.
fn same(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| -> io::Result<(u64, u64)> { path.metadata().map(|meta| (meta.dev(), meta.ino())) };
    matches!((id(one), id(other)), (Ok(one), Ok(other)) if one == other)
}
