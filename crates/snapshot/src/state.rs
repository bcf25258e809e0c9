//! A captured state as a value, and what comparison and restore need from whoever holds the objects.
//!
//! A root is an entry of the directory it stands in, so a root that is a single file or a link, and a root that is gone,
//! are no special cases. Nothing here knows the store, a session or a terminal: the edge implements the two traits.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::hash::{ContentHash, TreeId};
use crate::node::{Entry, Node, Reason};

/// All roots of one snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotState {
    pub roots: Vec<RootState>,
}

impl SnapshotState {
    pub fn root(&self, path: &std::path::Path) -> Option<&RootState> {
        self.roots.iter().find(|root| root.path == path)
    }

    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.roots.iter().map(|root| root.path.clone()).collect()
    }
}

/// One root: an entry in its parent directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootState {
    /// Absolute and resolved: no `.`, `..` or link in it.
    pub path: PathBuf,
    pub content: RootContent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootContent {
    /// The entry's name is the last component of the root's path.
    Captured(Entry),
    /// It was captured before, and is gone now.
    Absent,
    /// It could not be captured: nothing ever touches it because of this snapshot.
    Failed(Reason),
}

impl RootContent {
    pub fn entry(&self) -> Option<&Entry> {
        match self {
            RootContent::Captured(entry) => Some(entry),
            RootContent::Absent | RootContent::Failed(_) => None,
        }
    }
}

/// What an address names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectName {
    Tree(TreeId),
    Content(ContentHash),
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectName::Tree(id) => write!(f, "tree {}", id.hex()),
            ObjectName::Content(hash) => write!(f, "content {}", hash.hex()),
        }
    }
}

/// An object that cannot be had, or stored.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    #[error("{what} is not in the store")]
    Missing { what: ObjectName },
    #[error("{what} is damaged in the store")]
    Damaged { what: ObjectName },
    /// The path is empty where the error says what it is about.
    #[error("{}{source}", about(path))]
    Io { path: PathBuf, source: io::Error },
}

fn about(path: &Path) -> String {
    if path.as_os_str().is_empty() { String::new() } else { format!("{}: ", path.display()) }
}

/// Where nodes and contents come from. Whatever is given was checked against its address.
pub trait Objects: Sync {
    fn node(&self, id: TreeId) -> Result<Arc<Node>, ObjectError>;

    /// Write a content from the start of the empty file `out`, and check it on the way; on an error the file's content is of no use.
    fn write_file(
        &self,
        hash: ContentHash,
        size: u64,
        sparse: bool,
        out: BorrowedFd<'_>,
    ) -> Result<(), ObjectError>;

    /// Store the first `size` bytes of a file that a restore displaced and nobody had captured. Gives their address.
    fn keep_file(&self, file: BorrowedFd<'_>, size: u64) -> Result<ContentHash, ObjectError>;

    /// Whether a content that the safety snapshot names is stored, and not only in the tree: on a full disk it may be
    /// stored by [`Objects::take_file`] only.
    fn holds(&self, _hash: ContentHash) -> bool {
        true
    }

    /// Move the file `name` in `dir`, which `file` is and which nobody can write to any more, to the stored contents.
    /// False: that is not possible here, and it is where it was.
    fn take_file(
        &self,
        _dir: BorrowedFd<'_>,
        _name: &[u8],
        _file: BorrowedFd<'_>,
        _hash: ContentHash,
    ) -> Result<bool, ObjectError> {
        Ok(false)
    }
}

/// Who wants to know how far long work is, and may end it.
pub trait Observer: Sync {
    /// Called from several threads, and often.
    fn progress(&self, done: u64, total: u64);
    /// Asked again and again; once true, the work ends at the next point where it can.
    fn cancelled(&self) -> bool;
    /// From here on files are changed. Work that is cancelled after this is completed by the next operation.
    fn changing(&self) {}
}

/// Nobody is watching.
impl Observer for () {
    fn progress(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        false
    }
}
