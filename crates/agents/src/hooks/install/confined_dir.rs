//! Access from outside the sandbox to files in a folder that a command could write: no link leads out of the folder, no
//! open blocks, and no read is unbounded.
//!
//! Everything is done relative to the open folder by `openat2`: the file that was checked is the one that is used,
//! whatever is exchanged meanwhile. A link that stays inside is followed, since its target belongs to the command as
//! much as the link itself.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::InstallError;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2, readlinkat};
use rustix::io::Errno;

/// Maximum size in bytes of a settings or instruction file.
pub(super) const MOST: u64 = 16 << 20;

/// Number of retries: `openat2` fails with EAGAIN while anything is renamed.
const ATTEMPTS: usize = 128;

/// An open folder.
#[derive(Debug)]
pub(super) struct ConfinedDir {
    /// The path as given; every path begins with it.
    root: PathBuf,
    folder: OwnedFd,
}

impl ConfinedDir {
    pub(super) fn open(root: &Path) -> Result<ConfinedDir, InstallError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(CWD, root, flags, Mode::empty()).map_err(failed(root))?;
        Ok(ConfinedDir { root: root.to_owned(), folder })
    }

    fn below<'p>(&self, path: &'p Path) -> &'p Path {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        if below.as_os_str().is_empty() { Path::new(".") } else { below }
    }

    fn at(&self, path: &Path, flags: OFlags, how: ResolveFlags) -> Result<OwnedFd, InstallError> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | how;
        // The kernel refuses these flags together with O_PATH.
        let waits = OFlags::NOCTTY | OFlags::NONBLOCK;
        let flags =
            flags | OFlags::CLOEXEC | if flags.contains(OFlags::PATH) { OFlags::empty() } else { waits };
        let open = || openat2(&self.folder, self.below(path), flags, Mode::empty(), resolve);
        let mut opened = open();
        for _ in 0..ATTEMPTS {
            if opened.as_ref().err() != Some(&Errno::AGAIN) {
                break;
            }
            opened = open();
        }
        opened.map_err(|error| match error {
            Errno::XDEV | Errno::LOOP => self.leads_out(path),
            // A socket.
            Errno::NXIO => InstallError::NotAFile { path: path.to_owned() },
            error => failed(path)(error),
        })
    }

    fn at_if_there(&self, path: &Path, flags: OFlags) -> Result<Option<OwnedFd>, InstallError> {
        match self.at(path, flags, ResolveFlags::empty()) {
            Err(InstallError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// The error for a link that is not followed: names the first such link in the path.
    fn leads_out(&self, path: &Path) -> InstallError {
        let mut place = self.root.clone();
        for name in self.below(path) {
            place.push(name);
            // Used for the message only.
            if let Ok(target) = std::fs::read_link(&place) {
                let whole = place.parent().unwrap_or(&place).join(&target);
                let target = whole.canonicalize().unwrap_or(whole);
                if !nono_policy::is_within(&target, &self.root) {
                    return InstallError::LeadsOut { path: place, target };
                }
            }
        }
        let target = std::fs::read_link(path).unwrap_or_default();
        InstallError::LeadsOut { path: path.to_owned(), target }
    }

    /// The real location of a path; `None` if it does not exist.
    pub(super) fn locate(&self, path: &Path) -> Result<Option<PathBuf>, InstallError> {
        let file = self.at_if_there(path, OFlags::PATH)?;
        file.map(|file| self.name(&file).map_err(failed(path))).transpose()
    }

    /// The path of an open file, beginning with the root as given.
    fn name(&self, file: &OwnedFd) -> Result<PathBuf, Errno> {
        let (root, place) = (named(&self.folder)?, named(file)?);
        let below = place.strip_prefix(&root).map_err(|_| Errno::XDEV)?;
        Ok(self.root.join(below))
    }

    /// The content of a regular file; `None` if it does not exist.
    pub(super) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, InstallError> {
        self.at_if_there(path, OFlags::RDONLY)?.map(|file| whole(File::from(file), path)).transpose()
    }

    /// Whether the path is a dangling link.
    pub(super) fn is_dangling(&self, path: &Path) -> bool {
        let Ok((folder, name)) = self.parent(path, ResolveFlags::empty()) else { return false };
        readlinkat(&folder, name, Vec::new()).is_ok() && matches!(self.locate(path), Ok(None))
    }

    /// The open folder of a file, and its name there.
    fn parent<'p>(
        &self,
        path: &'p Path,
        how: ResolveFlags,
    ) -> Result<(OwnedFd, &'p std::ffi::OsStr), InstallError> {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(InstallError::NotAFile { path: path.to_owned() });
        };
        Ok((self.at(dir, OFlags::PATH | OFlags::DIRECTORY, how)?, name))
    }

    /// The open real folder of a file and its real path, for writing it.
    pub(super) fn place(&self, path: &Path) -> Result<(OwnedFd, PathBuf), InstallError> {
        let real = if let Some(real) = self.locate(path)? {
            real
        } else {
            let (folder, name) = self.parent(path, ResolveFlags::empty())?;
            self.name(&folder).map_err(failed(path))?.join(name)
        };
        let (folder, _) = self.parent(&real, ResolveFlags::NO_SYMLINKS)?;
        Ok((folder, real))
    }

    /// Create the folders above a file; returns those that were created, outermost first.
    pub(super) fn make_folders(&self, path: &Path) -> Result<Vec<PathBuf>, InstallError> {
        let mut made = Vec::new();
        let folders: Vec<&Path> = path.ancestors().skip(1).take_while(|dir| **dir != self.root).collect();
        for dir in folders.into_iter().rev() {
            if self.locate(dir)?.is_some() {
                continue;
            }
            let (above, name) = self.parent(dir, ResolveFlags::empty())?;
            match mkdirat(&above, name, Mode::from_raw_mode(0o777)) {
                Ok(()) => made.push(dir.to_owned()),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(dir)(error)),
            }
        }
        Ok(made)
    }

    /// Remove a file, or a link of that name.
    pub(super) fn remove_file(&self, path: &Path) -> Result<(), InstallError> {
        let (folder, name) = self.parent(path, ResolveFlags::empty())?;
        rustix::fs::unlinkat(&folder, name, AtFlags::empty()).map_err(failed(path))
    }

    /// Remove an empty folder.
    pub(super) fn remove_folder(&self, path: &Path) -> Result<(), InstallError> {
        let (folder, name) = self.parent(path, ResolveFlags::NO_SYMLINKS)?;
        rustix::fs::unlinkat(&folder, name, AtFlags::REMOVEDIR).map_err(failed(path))
    }
}

fn failed(path: &Path) -> impl Fn(Errno) -> InstallError {
    let path = path.to_owned();
    move |error| InstallError::Io { path: path.clone(), source: error.into() }
}

fn named(file: &OwnedFd) -> Result<PathBuf, Errno> {
    let link = readlinkat(CWD, format!("/proc/self/fd/{}", file.as_raw_fd()), Vec::new())?;
    Ok(PathBuf::from(std::ffi::OsStr::from_bytes(link.to_bytes())))
}

/// The content of a file that was opened with `O_NONBLOCK`.
fn whole(file: File, path: &Path) -> Result<Vec<u8>, InstallError> {
    let io = |source| InstallError::Io { path: path.to_owned(), source };
    let about = file.metadata().map_err(io)?;
    if !about.is_file() {
        return Err(InstallError::NotAFile { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    if about.len() <= MOST {
        file.take(MOST + 1).read_to_end(&mut bytes).map_err(io)?;
    }
    if about.len() > MOST || bytes.len() as u64 > MOST {
        return Err(InstallError::TooLarge { path: path.to_owned(), limit: MOST });
    }
    Ok(bytes)
}

/// The content of a regular file, following links anywhere; `None` if it does not exist.
pub(super) fn read_anywhere(path: &Path) -> Result<Option<Vec<u8>>, InstallError> {
    match nono_sys::fs::open_regular(path) {
        Ok(Some(file)) => whole(file, path).map(Some),
        Ok(None) => Err(InstallError::NotAFile { path: path.to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(InstallError::Io { path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests;
