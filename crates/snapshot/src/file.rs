//! Whole small files of our own state: read in one go, replaced so that a crash leaves the old or the new.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::OFlags;

use crate::disk;

/// What a loss of power leaves of a file that was just replaced. A kill leaves the new one in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// The new file: its bytes and its name are on the disk when the call returns. For what others rely on.
    Yes,
    /// The old file or the new one, whole: its bytes are on the disk before its name changes.
    Whole,
    /// The old file, the new one, or an empty one. For what can be made again, and is read that way.
    No,
}

/// The whole file; never through a link, never anything but a regular file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a regular file"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0).saturating_add(1));
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Put `bytes` in place of the file.
pub fn replace(path: &Path, bytes: &[u8], sync: Sync) -> io::Result<()> {
    replace_by(path, sync, |file| file.write_all(bytes))
}

/// The same with what `write` writes.
pub(crate) fn replace_by(
    path: &Path,
    sync: Sync,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let temp = temp_beside(path);
    let result = fill(&temp, write, sync).and_then(|()| {
        disk::step()?;
        std::fs::rename(&temp, path)
    });
    if result.is_err() {
        // The error that matters is the one returned; what stays is swept with the other leftovers.
        let _ = std::fs::remove_file(&temp);
    }
    result?;
    if sync == Sync::Yes { sync_parent(path) } else { Ok(()) }
}

fn fill(temp: &Path, write: impl FnOnce(&mut File) -> io::Result<()>, sync: Sync) -> io::Result<()> {
    disk::step()?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(temp)?;
    disk::step()?;
    write(&mut file)?;
    if sync != Sync::No {
        disk::step()?;
        file.sync_data()?;
    }
    Ok(())
}

/// Make the names in a file's folder durable.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    disk::step()?;
    File::open(parent)?.sync_all()
}

pub(crate) const TEMP_MARK: &str = ".tmp-";

/// Remove the temporary files in `dir` whose names begin with `prefix`. For the one who alone writes such files.
pub(crate) fn sweep_temps(dir: &Path, prefix: &str) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if name.starts_with(prefix.as_bytes()) && is_temp(name) {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Whether there are temporary files in `dir`.
pub(crate) fn has_temps(dir: &Path) -> io::Result<bool> {
    for entry in std::fs::read_dir(dir)? {
        if is_temp(entry?.file_name().as_encoded_bytes()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether [`replace`] gave this name to what it had not put in place yet.
pub(crate) fn is_temp(name: &[u8]) -> bool {
    name.windows(TEMP_MARK.len()).any(|part| part == TEMP_MARK.as_bytes())
}

fn temp_beside(path: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut name = OsString::from(path.file_name().unwrap_or_default());
    let pid = rustix::process::getpid().as_raw_nonzero();
    name.push(format!("{TEMP_MARK}{pid}-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
    path.with_file_name(name)
}

/// A folder of our own state, and those above it.
pub fn make_dirs(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    disk::step()?;
    DirBuilder::new().mode(0o700).recursive(true).create(path)
}

/// The same in a folder that is there.
pub(crate) fn make_dir(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    disk::step()?;
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Remove what is there; nothing there is fine too.
pub fn remove(path: &Path) -> io::Result<()> {
    disk::step()?;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
