//! The file with the version of the store's format.

use std::os::fd::AsFd as _;

use super::error::{Result, StoreError, there};
use super::files::{Folder, failed, pwrite_all, read_all, unique};

pub(super) const FORMAT: &str = "FORMAT";
/// Format line with the version; a checksum follows. Version 1 would take packs of chunks for empty ones.
pub(super) const VERSION: &str = "nono store 2";
pub(super) const WITHOUT_CHUNKS: &str = "nono store 1";

/// State of the format file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreFormat {
    Ours,
    /// Version 1, which is read like this one.
    Old,
    Damaged,
    Missing,
}

pub(super) fn read_format(root: &Folder) -> Result<StoreFormat> {
    let Some((bytes, _)) = there(read_all(root, FORMAT))? else { return Ok(StoreFormat::Missing) };
    if bytes == format_text(VERSION).as_bytes() {
        return Ok(StoreFormat::Ours);
    }
    if bytes == format_text(WITHOUT_CHUNKS).as_bytes() {
        return Ok(StoreFormat::Old);
    }
    let is_other = |text: &str| {
        let named = text.strip_suffix('\n').and_then(|text| text.rsplit_once(' '));
        named.is_some_and(|(named, _)| named.starts_with("nono store ") && format_text(named) == text)
    };
    if std::str::from_utf8(&bytes).is_ok_and(is_other) {
        return Err(StoreError::Version { path: root.path_of(FORMAT) });
    }
    Ok(StoreFormat::Damaged)
}

pub(super) fn format_text(version: &str) -> String {
    format!("{version} {:016x}\n", xxhash_rust::xxh3::xxh3_64(version.as_bytes()))
}

/// Check the format file. A store of another version is refused. A damaged file is not: packs and indexes have their
/// own version, and one flipped bit must not make all snapshots unusable; `verify` reports it.
pub(super) fn check_format(root: &Folder) -> Result<StoreFormat> {
    let found = read_format(root)?;
    if found == StoreFormat::Missing {
        write_format(root)?;
    }
    Ok(found)
}

pub(super) fn write_format(root: &Folder) -> Result<()> {
    put_file(root, FORMAT, format_text(VERSION).as_bytes())
}

/// Put a small file in place atomically.
pub(super) fn put_file(root: &Folder, file: &str, bytes: &[u8]) -> Result<()> {
    let name = format!("{file}.{}", unique());
    let temp = root.create(&name)?;
    let written = pwrite_all(temp.as_fd(), bytes, 0)
        .map_err(failed("write", &root.path_of(&name)))
        .and_then(|()| root.rename(&name, root, file));
    match written {
        // Another process removed it as debris: it put the file in place itself, or we retry.
        Err(error) if error.is_not_found() => match root.stat(file)? {
            Some(_) => Ok(()),
            None => put_file(root, file, bytes),
        },
        Err(error) => {
            root.unlink(&name)?;
            Err(error)
        }
        Ok(()) => Ok(()),
    }
}
