//! Moves a file into the store instead of copying it: takes no space, which matters on a full disk.
//!
//! The file becomes the object, so no process may be able to write to it any more: the caller has given it an unknown
//! name, then checked that no descriptor is open for writing (`nono_sys::lease`), then hashed it.

use std::fs::File;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use super::error::{Result, StoreError};
use super::files::Lock;
use super::files::{Fsyncs, chmod, failed, sync_file};
use super::handle::Store;
use super::key::ObjectKey;
use super::large::{LargeName, folder_name, name_of};
use super::names::{LARGE, LOCK, NEW};
use crate::disk;
use crate::hash::ContentHash;

impl Store {
    /// Move the file `name` in `dir`, which is open as `file`, into the store as the content `hash`. False: it cannot
    /// be moved (another filesystem, more names, another owner, too small for a large object) and stays where it was.
    pub(crate) fn take_in(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        file: BorrowedFd<'_>,
        hash: ContentHash,
    ) -> Result<bool> {
        let folder_name = folder_name(hash.as_bytes());
        let path = self.large.path_of(&folder_name);
        let fail = |errno: Errno| failed("move a file into", &path)(errno.into());
        let stat = rustix::fs::fstat(file).map_err(fail)?;
        let mine = stat.st_uid == rustix::process::geteuid().as_raw();
        if stat.st_nlink != 1 || !mine || super::files::size_of(&stat) < LARGE {
            return Ok(false);
        }
        let lock = Lock::take(&self.root, LOCK, false, true)?;
        let lock = lock.ok_or_else(|| StoreError::Busy { path: self.root.path_of(LOCK) })?;
        if self.contains(ObjectKey::from(hash))? {
            return Ok(false);
        }
        let folder = self.large.make_folder(&folder_name)?;
        let own = File::from(file.try_clone_to_owned().map_err(failed("open", &path))?);
        chmod(&own, &path, NEW)?;
        let fsyncs = Fsyncs::default();
        sync_file(&own, &path, true, &fsyncs)?;
        disk::step().map_err(failed("move a file into", &path))?;
        let moved =
            match rustix::fs::renameat(dir, name, folder.as_fd(), name_of(hash.as_bytes(), LargeName::Plain))
            {
                Ok(()) => true,
                Err(Errno::XDEV | Errno::PERM | Errno::ACCESS) => false,
                Err(errno) => return Err(fail(errno)),
            };
        if moved {
            folder.sync(&fsyncs)?;
            self.charge(super::files::allocated(&stat))?;
        } else {
            // Restore its mode, if possible: the caller puts it back.
            chmod(&own, &path, stat.st_mode & 0o7777)?;
        }
        drop(lock);
        Ok(moved)
    }
}
