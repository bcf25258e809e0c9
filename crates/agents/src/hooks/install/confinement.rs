//! File access for a scope: the user's files through any symlinks, a project's files only beneath the project. A
//! command that ran in the project may have left any symlink there.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::confined_dir::{self, ConfinedDir};
use super::{FileEdit, InstallError, Purpose, Scope};
use crate::replace_file::{ReplaceError, replace, replace_in};

#[derive(Clone, Debug)]
pub(super) enum PathConfinement {
    Anywhere,
    Beneath(Arc<ConfinedDir>),
}

impl PathConfinement {
    pub(super) fn of(scope: &Scope) -> Result<PathConfinement, InstallError> {
        match scope {
            Scope::User => Ok(PathConfinement::Anywhere),
            Scope::Project(dir) => Ok(PathConfinement::Beneath(Arc::new(ConfinedDir::open(dir)?))),
        }
    }

    /// nono's own settings are never in a project.
    pub(super) fn for_change(&self, change: &FileEdit) -> PathConfinement {
        if change.purpose == Purpose::Config { PathConfinement::Anywhere } else { self.clone() }
    }

    /// Content of a file; `None` if there is none.
    pub(super) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, InstallError> {
        let (read, is_dangling) = match self {
            PathConfinement::Anywhere => (confined_dir::read_anywhere(path)?, path.is_symlink()),
            PathConfinement::Beneath(project) => (project.read(path)?, project.is_dangling(path)),
        };
        match read {
            None if is_dangling => Err(InstallError::Dangling { path: path.to_owned() }),
            read => Ok(read),
        }
    }

    /// Target of a path, if it is elsewhere.
    pub(super) fn leads_to(&self, path: &Path) -> Result<Option<PathBuf>, InstallError> {
        let place = match self {
            PathConfinement::Anywhere => path.canonicalize().ok().or_else(|| {
                let folder = path.parent()?.canonicalize().ok()?;
                Some(folder.join(path.file_name()?))
            }),
            // For a file that does not exist yet, possibly in a folder that does not either.
            PathConfinement::Beneath(project) => match project.locate(path)? {
                None => project.place(path).ok().map(|(_, place)| place),
                place => place,
            },
        };
        Ok(place.filter(|place| place != path))
    }

    /// Create the folders above a file; returns those created, outermost first.
    pub(super) fn make_folders(&self, path: &Path) -> Result<Vec<PathBuf>, InstallError> {
        match self {
            PathConfinement::Anywhere => make_folders(path),
            PathConfinement::Beneath(project) => project.make_folders(path),
        }
    }

    pub(super) fn write(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), InstallError> {
        let written = match self {
            PathConfinement::Anywhere => replace(path, bytes, mode),
            PathConfinement::Beneath(project) => {
                let (folder, place) = project.place(path)?;
                replace_in(&folder, &place, bytes, mode)
            }
        };
        written.map_err(|error| match error {
            ReplaceError::Foreign { path } => InstallError::Foreign { path },
            ReplaceError::Io { path, source } => InstallError::Io { path, source },
        })
    }

    pub(super) fn remove_file(&self, path: &Path) -> Result<(), InstallError> {
        match self {
            PathConfinement::Anywhere => fs::remove_file(path).map_err(InstallError::io(path)),
            PathConfinement::Beneath(project) => project.remove_file(path),
        }
    }

    pub(super) fn remove_folder(&self, path: &Path) -> Result<(), InstallError> {
        match self {
            PathConfinement::Anywhere => fs::remove_dir(path).map_err(InstallError::io(path)),
            PathConfinement::Beneath(project) => project.remove_folder(path),
        }
    }
}

fn make_folders(path: &Path) -> Result<Vec<PathBuf>, InstallError> {
    let missing: Vec<PathBuf> = path
        .ancestors()
        .skip(1)
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        .map(Path::to_owned)
        .collect();
    let missing: Vec<PathBuf> = missing.into_iter().rev().collect();
    for folder in &missing {
        match fs::create_dir(folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            result => result.map_err(InstallError::io(folder))?,
        }
    }
    Ok(missing)
}
