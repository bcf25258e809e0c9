//! Renames that never overwrite, with and without filesystem support.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;

use super::journal::is_temporary;
use super::place_entry::create;
use crate::disk;

pub(super) fn is_unsupported(error: &io::Error) -> bool {
    let unsupported = [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP];
    Errno::from_io_error(error).is_some_and(|errno| unsupported.contains(&errno))
}

pub(super) fn exchange(dir: BorrowedFd<'_>, one: &[u8], other: &[u8]) -> io::Result<()> {
    disk::step()?;
    Ok(rustix::fs::renameat_with(dir, one, dir, other, RenameFlags::EXCHANGE)?)
}

/// Rename, but never over an existing entry. On filesystems without support for that (FUSE, network) a hard link is
/// used, or where those are not supported, an empty file created first.
pub(super) fn rename_free(dir: BorrowedFd<'_>, from: &[u8], to: &[u8]) -> io::Result<()> {
    disk::step()?;
    match rustix::fs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
        Err(errno) if is_unsupported(&errno.into()) => {}
        result => return Ok(result?),
    }
    disk::step()?;
    match rustix::fs::linkat(dir, from, dir, to, AtFlags::empty()) {
        Ok(()) => {
            disk::step()?;
            Ok(rustix::fs::unlinkat(dir, from, AtFlags::empty())?)
        }
        // The file system has no hard links, or no more of them.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM | Errno::MLINK) => {
            rename_over_own(dir, from, to)
        }
        Err(errno) => Err(errno.into()),
    }
}

/// Rename over an empty file created for it: from that moment the name is ours. No other process can open it meanwhile,
/// so nothing is saved to it; after a kill right here it is empty, and the previous content is stored.
fn rename_over_own(dir: BorrowedFd<'_>, from: &[u8], to: &[u8]) -> io::Result<()> {
    // Only restores create such names.
    let ours = is_temporary(to);
    if !ours {
        create(dir, to, 0)?;
    }
    disk::step()?;
    let renamed = rustix::fs::renameat(dir, from, dir, to);
    if renamed.is_err() && !ours {
        disk::step()?;
        rustix::fs::unlinkat(dir, to, AtFlags::empty())?;
    }
    Ok(renamed?)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn without_flags_and_links_nothing_is_renamed_over() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("from"), "moved").unwrap();
        std::fs::write(at("taken"), "theirs").unwrap();
        let fd = std::fs::File::open(dir.path()).unwrap();
        let error = rename_over_own(fd.as_fd(), b"from", b"taken").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_to_string(at("taken")).unwrap(), "theirs");
        rename_over_own(fd.as_fd(), b"from", b"free").unwrap();
        rename_over_own(fd.as_fd(), b"free", b".nono-0123456789abcdef-1").unwrap();
        assert_eq!(std::fs::read_to_string(at(".nono-0123456789abcdef-1")).unwrap(), "moved");
        assert!(rename_over_own(fd.as_fd(), b"gone", b"new").is_err() && !at("new").exists());
    }
}
