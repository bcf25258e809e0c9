//! File operations with guarantees that std does not give: path descriptors, private directories, atomic writes.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Number of bytes collected before they are written.
const PIECE: usize = 16 << 10;

/// Descriptor that names an object without opening it; a link anywhere in the path is an error (`ELOOP`).
#[cfg(target_os = "linux")]
pub fn open_path(path: &Path) -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    let fd = crate::raw::open_exact(&path).map_err(crate::raw::io_error)?;
    // SAFETY: the kernel just made it; it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Resolved path and metadata of what a path leads to, links followed: one walk by the kernel, which then names the
/// object. (A canonicalisation in user space checks every component of the path.)
pub fn locate(path: &Path) -> io::Result<(PathBuf, std::fs::Metadata)> {
    use std::os::fd::AsRawFd;
    let file = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)?;
    let metadata = file.metadata()?;
    let name = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    match name {
        // The kernel marks a removed name this way; a file may also be called so, and then the slow way decides.
        Ok(name) if name.is_absolute() && !name.as_os_str().as_encoded_bytes().ends_with(b" (deleted)") => {
            Ok((name, metadata))
        }
        _ => Ok((path.canonicalize()?, metadata)),
    }
}

/// Opens a regular file for reading without waiting for it, as a pipe would for a writer. `None` if it is none.
pub fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        // A socket.
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Ok(None),
        other => other?,
    };
    let is_file = file.metadata()?.is_file();
    Ok(is_file.then_some(file))
}

/// Whether this process may write there, by modes and access lists.
pub fn is_writable(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: the string ends in a zero and lives across the call.
    unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK, libc::AT_EACCESS) == 0 }
}

/// Reason a directory cannot be trusted with nono's own state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untrusted {
    Symlink,
    NotADirectory,
    ForeignOwner(u32),
    WritableByOthers(u32),
}

/// Checks that `path` itself is a real directory of `uid` that no other user can write.
pub fn check_private_dir(path: &Path, uid: u32) -> io::Result<Result<(), Untrusted>> {
    let meta = std::fs::symlink_metadata(path)?;
    Ok(if meta.is_symlink() {
        Err(Untrusted::Symlink)
    } else if !meta.is_dir() {
        Err(Untrusted::NotADirectory)
    } else if meta.uid() != uid {
        Err(Untrusted::ForeignOwner(meta.uid()))
    } else if meta.mode() & 0o022 != 0 {
        Err(Untrusted::WritableByOthers(meta.mode() & 0o7777))
    } else {
        Ok(())
    })
}

/// Makes one new directory with exactly this mode; an existing one is an error.
pub fn make_dir(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilder::new().mode(mode).create(path)?;
    // The umask may have removed bits.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

/// Makes one new file with exactly this mode and content; an existing one is an error.
pub fn make_file(path: &Path, mode: u32, content: &[u8]) -> io::Result<()> {
    make_file_by(path, mode, |file| file.write_all(content))
}

/// The same with content that is written piece by piece.
pub fn make_file_by(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    let mut file = BufWriter::with_capacity(PIECE, file);
    write(&mut file)?;
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

/// Replaces `path` by a file with `content`: old or new, never half. After a power failure it may be empty: only for
/// data that can be made again, and whose readers expect that.
pub fn write_atomic(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, content, |_| Ok(()))
}

/// The same, and a power failure leaves the old or the new file as well: its bytes are on disk before its name is.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    replace(path, content, |temp| File::open(temp)?.sync_data())
}

/// Waits until a new file, and its name, survive a power failure.
pub fn sync_new(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()?;
    sync_parent(path)
}

/// Waits until the names in a file's directory survive a power failure.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

/// Name for a temporary file in the same directory: the name of the file, `mark` and a random number. Threads that replace
/// one file at once, and what a killed process left, never have the same.
pub fn temporary_beside(path: &Path, mark: &str) -> io::Result<PathBuf> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(mark);
    name.push(crate::random::id::<8>()?);
    Ok(path.with_file_name(name))
}

fn replace(path: &Path, content: &[u8], sync: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let temp = temporary_beside(path, ".tmp-")?;
    let made = make_file(&temp, 0o600, content).and_then(|()| sync(&temp));
    let result = made.and_then(|()| std::fs::rename(&temp, path));
    if result.is_err() {
        // Best effort: the error that matters is the one returned.
        let _ = std::fs::remove_file(&temp);
    }
    result
}

/// Opens a file that is only locked, and creates it if it is missing.
pub fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Exclusive lock on a file, held until drop or death; `None` when another process holds it.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    pub fn try_exclusive(path: &Path) -> io::Result<Option<Lock>> {
        let file = open_lock(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock(file))),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a child between fork and exec still has the descriptor.
        let _ = self.0.unlock();
    }
}

/// Whether an exclusive lock is held on a file that was opened for this question.
pub fn is_locked(file: &File) -> io::Result<bool> {
    match file.try_lock_shared() {
        // Closing is not enough: a child between fork and exec would keep the lock, and whoever wants it would be refused.
        Ok(()) => file.unlock().map(|()| false),
        Err(std::fs::TryLockError::WouldBlock) => Ok(true),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

/// Allocated blocks of a file or a tree, as `du` counts; zero for what does not exist. The error names the path.
pub fn disk_bytes(path: &Path) -> Result<u64, (PathBuf, io::Error)> {
    let mut bytes = 0u64;
    let mut waiting = vec![path.to_owned()];
    while let Some(path) = waiting.pop() {
        let mut read = || -> io::Result<()> {
            let meta = path.symlink_metadata()?;
            bytes = bytes.saturating_add(meta.blocks() * 512);
            if meta.is_dir() {
                for entry in std::fs::read_dir(&path)? {
                    waiting.push(entry?.path());
                }
            }
            Ok(())
        };
        match read() {
            // Files come and go while other processes work.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err((path, error)),
            Ok(()) => {}
        }
    }
    Ok(bytes)
}

/// Removes a tree with hostile content: links are not followed, and directories closed to their owner are opened up.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path)?;
            std::fs::remove_dir_all(path)
        }
        result => result,
    }
}

/// Gives the owner full access to a directory and to those in it, never through a link.
fn open_up(path: &Path) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_DIRECTORY;
    let dir = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let itself = format!("/proc/self/fd/{}", dir.as_raw_fd());
    std::fs::set_permissions(itself, std::fs::Permissions::from_mode(0o700))?;
    // A deep tree must not use up all descriptors.
    drop(dir);
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_with_closed_directories_is_removed() {
        let dir = std::env::temp_dir().join(format!("nono-sys-remove-{}", std::process::id()));
        make_dir(&dir, 0o700).unwrap();
        make_dir(&dir.join("inner"), 0o700).unwrap();
        make_file(&dir.join("inner/file"), 0o400, b"x").unwrap();
        std::fs::set_permissions(dir.join("inner"), std::fs::Permissions::from_mode(0o000)).unwrap();
        remove_tree(&dir).unwrap();
        assert!(!dir.exists());
    }

    /// The paths of rules and mounts were resolved before. If a link has replaced a directory since then, following it
    /// would grant what it leads to.
    #[test]
    fn a_link_put_into_a_resolved_path_is_refused() {
        let base = std::env::temp_dir().canonicalize().unwrap();
        let dir = base.join(format!("nono-sys-link-{}", std::process::id()));
        make_dir(&dir, 0o700).unwrap();
        make_dir(&dir.join("real"), 0o700).unwrap();
        make_file(&dir.join("real/file"), 0o600, b"x").unwrap();
        std::os::unix::fs::symlink("real", dir.join("link")).unwrap();
        assert!(open_path(&dir.join("real/file")).is_ok());
        for path in ["link", "link/file"] {
            let refused = open_path(&dir.join(path)).map_err(|error| error.raw_os_error());
            assert_eq!(refused.unwrap_err(), Some(libc::ELOOP), "{path}");
        }
        remove_tree(&dir).unwrap();
    }

    /// A thread that finds another's temporary file in its way fails, and removes it: then the other fails too.
    #[test]
    fn threads_that_replace_one_file_do_not_meet() {
        let dir = std::env::temp_dir().join(format!("nono-sys-replace-{}", std::process::id()));
        make_dir(&dir, 0o700).unwrap();
        let file = dir.join("file");
        std::thread::scope(|scope| {
            for letter in [b'a', b'b', b'c', b'd'] {
                let file = &file;
                scope.spawn(move || (0..200).for_each(|_| write_atomic(file, &[letter; 4000]).unwrap()));
            }
        });
        let content = std::fs::read(&file).unwrap();
        assert!(content.len() == 4000 && content.iter().all(|byte| *byte == content[0]));
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
        remove_tree(&dir).unwrap();
    }

    /// A child that another thread forks meanwhile has copies of all descriptors until it executes.
    #[test]
    fn a_copy_of_the_descriptor_keeps_no_lock() {
        let path = std::env::temp_dir().join(format!("nono-sys-lock-{}", std::process::id()));
        let held = Lock::try_exclusive(&path).unwrap().unwrap();
        let copy = held.0.try_clone().unwrap();
        let asked = File::open(&path).unwrap();
        assert!(is_locked(&asked).unwrap());
        drop(held);
        let copy_of_asked = asked.try_clone().unwrap();
        assert!(!is_locked(&asked).unwrap());
        drop(asked);
        assert!(Lock::try_exclusive(&path).unwrap().is_some());
        drop((copy, copy_of_asked));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn an_untrusted_folder_is_named() {
        let dir = std::env::temp_dir().join(format!("nono-sys-trust-{}", std::process::id()));
        make_dir(&dir, 0o777).unwrap();
        let uid = std::fs::metadata(&dir).unwrap().uid();
        assert_eq!(check_private_dir(&dir, uid).unwrap(), Err(Untrusted::WritableByOthers(0o777)));
        assert_eq!(check_private_dir(&dir, uid + 1).unwrap(), Err(Untrusted::ForeignOwner(uid)));
        std::fs::remove_dir(&dir).unwrap();
    }
}
