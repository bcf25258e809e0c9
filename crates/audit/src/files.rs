//! Opening of files in an audit folder: never through a link, never one that could block.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

fn opened(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok(file)
}

pub(crate) fn open(path: &Path) -> io::Result<File> {
    opened(path, OFlags::RDONLY)
}

/// Creates a new file with mode 0600.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    opened(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
}

/// Opens an existing file for reading and writing.
pub(crate) fn open_to_write(path: &Path) -> io::Result<File> {
    opened(path, OFlags::RDWR)
}

/// Opens a file for reading and writing; creates it with mode 0600 if missing.
pub(crate) fn open_or_create(path: &Path) -> io::Result<File> {
    opened(path, OFlags::RDWR | OFlags::CREATE)
}

/// Reads a small file; one larger than `limit` is an error.
pub(crate) fn read_all(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(io::Error::other(format!("larger than {limit} bytes")));
    }
    Ok(content)
}
