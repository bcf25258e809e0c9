//! A repository as the rules need it: its top directory, its case sensitivity, and its tracked paths.
//!
//! The index is read once, when a rule first matches an entry; until then the repository's folder is kept open. Of a
//! tree full of repositories only a few are, to save descriptors; the index of the others is read at once.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

use super::git_dir::{GitDir, GitSettings};
use super::index::{self, Tracked};
use crate::pool::locked;

/// Maximum number of repositories that keep a folder open.
const MOST_OPEN: usize = 16;

#[derive(Debug)]
pub(super) struct Repository {
    pub(super) place: WorktreeTop,
    pub(super) fold: bool,
    tracked: OnceLock<Result<Tracked, String>>,
    unread: Mutex<Option<Unread>>,
}

/// Position of the repository's top relative to the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WorktreeTop {
    /// Above the root; the root's path relative to the top, ending with a slash.
    Above(Box<[u8]>),
    /// At or below the root; the length of the path to it, including the slash after it.
    Below(usize),
}

impl WorktreeTop {
    /// Position of a directory at `path` below the root.
    pub(super) fn below(path: &[u8]) -> WorktreeTop {
        WorktreeTop::Below(if path.is_empty() { 0 } else { path.len() + 1 })
    }

    /// Convert a path relative to the root into one relative to the top.
    pub(super) fn seen<'a>(&self, path: &'a [u8]) -> Cow<'a, [u8]> {
        match self {
            WorktreeTop::Above(start) => Cow::Owned([start, path].concat()),
            WorktreeTop::Below(skip) => Cow::Borrowed(path.get(*skip..).unwrap_or_default()),
        }
    }
}

#[derive(Debug)]
struct Unread {
    dir: GitDir,
    id_len: usize,
    _slot: OpenFolder,
}

/// Reservation of one of the open folders.
#[derive(Debug)]
struct OpenFolder(Arc<AtomicUsize>);

impl Drop for OpenFolder {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// State of a path in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not tracked.
    Unknown,
    /// In the index itself.
    Tracked,
    /// Something below it is in the index.
    HoldsTracked,
    /// The index cannot be read.
    Undecided,
}

impl Repository {
    pub(super) fn live(
        place: WorktreeTop,
        dir: GitDir,
        settings: GitSettings,
        open: &Arc<AtomicUsize>,
    ) -> Repository {
        let before = open.fetch_add(1, Relaxed);
        let unread = Unread { dir, id_len: settings.id_len, _slot: OpenFolder(Arc::clone(open)) };
        let repository = Repository {
            place,
            fold: settings.ignore_case,
            tracked: OnceLock::new(),
            unread: Mutex::new(Some(unread)),
        };
        if before >= MOST_OPEN {
            repository.tracked();
        }
        repository
    }

    pub(super) fn known(place: WorktreeTop, fold: bool, tracked: Result<Tracked, String>) -> Repository {
        Repository { place, fold, tracked: OnceLock::from(tracked), unread: Mutex::new(None) }
    }

    /// Tracked paths, or why they are unknown.
    pub(super) fn tracked(&self) -> &Result<Tracked, String> {
        self.tracked.get_or_init(|| {
            let unread = locked(&self.unread).take();
            match unread.map(|unread| (unread.dir.index(), unread.id_len)) {
                Some((Ok(Some(bytes)), id_len)) => {
                    index::parse(&bytes, id_len, self.fold).map_err(str::to_owned)
                }
                Some((Err(error), _)) => Err(error.to_string()),
                // A repository without an index: nothing was added yet.
                Some((Ok(None), _)) | None => Ok(Tracked::default()),
            }
        })
    }

    /// Error of reading the index, if it was needed so far.
    pub(super) fn failure(&self) -> Option<&str> {
        self.tracked.get()?.as_ref().err().map(String::as_str)
    }

    /// State of `path` (relative to the root) in the index.
    pub(super) fn standing(&self, path: &[u8], is_dir: bool) -> Standing {
        let Ok(tracked) = self.tracked() else { return Standing::Undecided };
        let mut path = self.place.seen(path);
        if self.fold {
            path.to_mut().make_ascii_lowercase();
        }
        // A directory in the place of a tracked file is not tracked.
        if tracked.links.contains(&path) || !is_dir && tracked.files.contains(&path) {
            return Standing::Tracked;
        }
        if is_dir && (tracked.files.any_below(&path) || tracked.links.any_below(&path)) {
            return Standing::HoldsTracked;
        }
        Standing::Unknown
    }
}
