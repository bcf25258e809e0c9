//! Created files: files that the command made after an approval, so that it can put them in place or remove them. To the
//! kernel the directory is read-only.
//!
//! A file that was itself approved has its name. One made to save another file has no name at all: the approval was for
//! the file that it will replace, so nothing else appears in the directory, and nothing is left there.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::pin_path::Identity;

/// Maximum number of unnamed files; each holds a descriptor.
const MOST: usize = 64;
const MOST_NAMED: usize = 10_000;

#[derive(Debug)]
pub(super) enum CreatedFile {
    /// File in the directory under its name.
    Named(Identity),
    Unnamed(UnnamedFile),
}

#[derive(Debug)]
pub(super) struct UnnamedFile {
    pub(super) file: OwnedFd,
    /// Directory that the command believes it is in.
    pub(super) folder: PathBuf,
    /// Approved file that it is for, and the object that was there.
    pub(super) original: PathBuf,
    pub(super) replaces: Option<Identity>,
    pub(super) by: String,
    pub(super) program: PathBuf,
    pub(super) pid: u32,
}

/// Created files by the resolved path the command knows them by.
#[derive(Debug, Default)]
pub(super) struct CreatedFiles {
    known: HashMap<PathBuf, CreatedFile>,
    unnamed: usize,
}

impl CreatedFiles {
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Whether there is room for one more unnamed file.
    pub(super) fn has_room(&self) -> bool {
        self.unnamed < MOST
    }

    pub(super) fn get(&self, path: &Path) -> Option<&CreatedFile> {
        self.known.get(path)
    }

    pub(super) fn unnamed(&self, path: &Path) -> Option<&UnnamedFile> {
        match self.known.get(path) {
            Some(CreatedFile::Unnamed(unnamed)) => Some(unnamed),
            _ => None,
        }
    }

    /// Keeps a created file. One that cannot be kept is not put in place later.
    pub(super) fn keep(&mut self, path: PathBuf, created: CreatedFile) {
        if self.known.len() >= MOST_NAMED {
            return;
        }
        self.unnamed += usize::from(matches!(created, CreatedFile::Unnamed(_)));
        if let Some(CreatedFile::Unnamed(_)) = self.known.insert(path, created) {
            self.unnamed -= 1;
        }
    }

    pub(super) fn remove(&mut self, path: &Path) -> Option<CreatedFile> {
        let removed = self.known.remove(path);
        self.unnamed -= usize::from(matches!(removed, Some(CreatedFile::Unnamed(_))));
        removed
    }

    /// Created files that were never put in place.
    pub(super) fn left(&mut self) -> Vec<(PathBuf, UnnamedFile)> {
        self.unnamed = 0;
        let left = std::mem::take(&mut self.known).into_iter();
        left.filter_map(|(path, created)| match created {
            CreatedFile::Unnamed(unnamed) => Some((path, unnamed)),
            CreatedFile::Named(_) => None,
        })
        .collect()
    }
}
