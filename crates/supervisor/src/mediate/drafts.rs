//! Files that the command made after an answer, so that it can put them in place or remove them: to the kernel the folder is
//! read-only.
//!
//! A file that was itself asked about stands under its name. One that was made to save another file has no name at all: the
//! answer was about the file that it is for, so nothing else appears in the folder, and nothing is left there.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::resolve::Identity;

/// Each without a name holds a descriptor.
const MOST: usize = 64;
const MOST_NAMED: usize = 10_000;

#[derive(Debug)]
pub(super) enum Draft {
    /// It stands where it was made.
    Named(Identity),
    Unnamed(Unnamed),
}

#[derive(Debug)]
pub(super) struct Unnamed {
    pub(super) file: OwnedFd,
    /// The folder that the command believes it is in.
    pub(super) folder: PathBuf,
    /// What was agreed to: the file that it is for, and what stood there.
    pub(super) original: PathBuf,
    pub(super) replaces: Option<Identity>,
    pub(super) by: String,
    /// Who made it.
    pub(super) program: PathBuf,
    pub(super) pid: u32,
}

/// By the path that the command knows them by, resolved.
#[derive(Debug, Default)]
pub(super) struct Drafts {
    known: HashMap<PathBuf, Draft>,
    unnamed: usize,
}

impl Drafts {
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Whether there is room for one more without a name.
    pub(super) fn has_room(&self) -> bool {
        self.unnamed < MOST
    }

    pub(super) fn get(&self, path: &Path) -> Option<&Draft> {
        self.known.get(path)
    }

    pub(super) fn unnamed(&self, path: &Path) -> Option<&Unnamed> {
        match self.known.get(path) {
            Some(Draft::Unnamed(unnamed)) => Some(unnamed),
            _ => None,
        }
    }

    /// Keep one. What cannot be kept is only not put in place later.
    pub(super) fn keep(&mut self, path: PathBuf, draft: Draft) {
        if self.known.len() >= MOST_NAMED {
            return;
        }
        self.unnamed += usize::from(matches!(draft, Draft::Unnamed(_)));
        if let Some(Draft::Unnamed(_)) = self.known.insert(path, draft) {
            self.unnamed -= 1;
        }
    }

    pub(super) fn remove(&mut self, path: &Path) -> Option<Draft> {
        let removed = self.known.remove(path);
        self.unnamed -= usize::from(matches!(removed, Some(Draft::Unnamed(_))));
        removed
    }

    /// Those that never were put in place.
    pub(super) fn left(&mut self) -> Vec<(PathBuf, Unnamed)> {
        self.unnamed = 0;
        let left = std::mem::take(&mut self.known).into_iter();
        left.filter_map(|(path, draft)| match draft {
            Draft::Unnamed(unnamed) => Some((path, unnamed)),
            Draft::Named(_) => None,
        })
        .collect()
    }
}
