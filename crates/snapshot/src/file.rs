//! Small state files, read and replaced as a whole: a crash leaves the old or the new one.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::OFlags;

use crate::disk;

/// Durability of a replaced file after a power loss. After a kill the new file is in place in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// The new file: bytes and name are on disk when the call returns. For files that others rely on.
    Yes,
    /// The old file or the new one, complete: the bytes are on disk before the name changes.
    Whole,
    /// The old file, the new one, or an empty one. For files that can be made again and whose readers allow for that.
    No,
}

/// Read a whole regular file, never through a link.
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

/// The same; `None` if there is no such file.
pub fn read_existing(path: &Path) -> io::Result<Option<Vec<u8>>> {
    existing(read(path))
}

/// Paths of the entries in a folder, in no particular order; none if there is no such folder.
pub fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(entries) = existing(std::fs::read_dir(dir))? else { return Ok(Vec::new()) };
    entries.map(|entry| Ok(entry?.path())).collect()
}

/// What was found; `None` where nothing of that name exists.
pub fn existing<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Replace the file with `bytes`.
pub fn replace(path: &Path, bytes: &[u8], sync: Sync) -> io::Result<()> {
    replace_by(path, sync, |file| file.write_all(bytes))
}

/// Replace the file with what `write` writes.
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
        // The first error counts; a temporary file that stays is swept with the other leftovers.
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

/// Remove the temporary files in `dir` whose names begin with `prefix`, which only the caller writes.
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

/// Whether this is a name that [`replace`] gives to temporary files.
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

/// Create a folder of nono's own state and its parents.
pub fn make_dirs(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    disk::step()?;
    DirBuilder::new().mode(0o700).recursive(true).create(path)
}

/// Create one folder in an existing folder.
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

/// Remove a file; a missing one is not an error.
pub fn remove(path: &Path) -> io::Result<()> {
    disk::step()?;
    existing(std::fs::remove_file(path)).map(drop)
}
