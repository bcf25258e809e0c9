//! Files and folders of nono's own state folder, read whole.

use std::fs::{DirEntry, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Read a whole file; never through a symlink, and only if it is a regular file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Paths of the entries of a folder that are `wanted`, by name; none if there is no such folder.
pub(crate) fn entries(
    dir: &Path,
    wanted: impl Fn(&DirEntry) -> io::Result<bool>,
) -> io::Result<Vec<PathBuf>> {
    let all = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut found = Vec::new();
    for entry in all {
        let entry = entry?;
        if wanted(&entry)? {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
