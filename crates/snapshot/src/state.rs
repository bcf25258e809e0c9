//! A captured state as a value, and the interface to objects that comparison and restore need.
//!
//! A root is an entry of its parent directory, so a root that is a single file or a link, and a missing root, are no
//! special cases. This module does not know the store, a session or a terminal: the caller implements the two traits.

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
    pub fn root(&self, path: &Path) -> Option<&RootState> {
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
    /// Captured before, and gone now.
    Absent,
    /// Could not be captured: this snapshot never causes a change to it.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectName {
    #[error("tree {0}")]
    Tree(TreeId),
    #[error("content {0}")]
    Content(ContentHash),
}

/// Result with [`ObjectError`], unless another error is named.
pub(crate) type Result<T, E = ObjectError> = std::result::Result<T, E>;

/// Error of loading or storing an object.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    #[error("{what} is not in the store")]
    Missing { what: ObjectName },
    #[error("{what} is damaged in the store")]
    Damaged { what: ObjectName },
    /// The path is empty if the error names its subject itself.
    #[error("{}{source}", about(path))]
    Io { path: PathBuf, source: io::Error },
}

fn about(path: &Path) -> String {
    if path.as_os_str().is_empty() { String::new() } else { format!("{}: ", path.display()) }
}

/// Source of nodes and contents. Everything returned was checked against its address.
pub trait Objects: Sync {
    fn node(&self, id: TreeId) -> Result<Arc<Node>>;

    /// Write a content to the empty file `out`, checking it on the way; after an error the file's content is invalid.
    fn write_file(&self, hash: ContentHash, size: u64, sparse: bool, out: BorrowedFd<'_>) -> Result<()>;

    /// Store the first `size` bytes of a file that a restore displaced and no snapshot holds. Returns their address.
    fn keep_file(&self, file: BorrowedFd<'_>, size: u64) -> Result<ContentHash>;

    /// Whether a content is stored, and not only in the tree: on a full disk [`Objects::take_file`] may have to.
    fn holds(&self, _hash: ContentHash) -> bool {
        true
    }

    /// Move the file `name` in `dir`, open as `file`, without writers, into the store. False: it stays where it was.
    fn take_file(
        &self,
        _dir: BorrowedFd<'_>,
        _name: &[u8],
        _file: BorrowedFd<'_>,
        _hash: ContentHash,
    ) -> Result<bool> {
        Ok(false)
    }
}

/// Receives the progress of long operations, and may cancel them.
pub trait Observer: Sync {
    /// Reports progress; called from several threads, and often.
    fn progress(&self, done: u64, total: u64);
    /// Polled repeatedly; once true, the operation ends at the next point where it can.
    fn cancelled(&self) -> bool;
    /// Called before files are changed. An operation cancelled after this is completed by the next one.
    fn changing(&self) {}
}

/// An observer shared by several operations.
impl<O: Observer + Send + ?Sized> Observer for Arc<O> {
    fn progress(&self, done: u64, total: u64) {
        (**self).progress(done, total);
    }

    fn cancelled(&self) -> bool {
        (**self).cancelled()
    }

    fn changing(&self) {
        (**self).changing();
    }
}

/// An observer that does nothing.
impl Observer for () {
    fn progress(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        false
    }
}
