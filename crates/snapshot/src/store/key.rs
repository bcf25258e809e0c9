//! Addresses of objects.

use std::fmt;

use crate::hash::{ContentHash, TreeId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ObjectKind {
    /// Content of a file, by its [`ContentHash`].
    Blob = 1,
    /// Node of a directory, by its [`TreeId`].
    Tree,
    /// Frozen rules, by the [`ContentHash`] of their bytes.
    Rules,
    /// Chunk of a large file, by a hash of its own. Internal to the store.
    Chunk,
}

impl ObjectKind {
    const ALL: [ObjectKind; 4] = [ObjectKind::Blob, ObjectKind::Tree, ObjectKind::Rules, ObjectKind::Chunk];

    /// Number of the kind on disk.
    pub(super) fn byte(self) -> u8 {
        self as u8
    }

    pub(super) fn from_byte(byte: u8) -> Option<ObjectKind> {
        ObjectKind::ALL.into_iter().find(|kind| kind.byte() == byte)
    }
}

/// Address of an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    pub kind: ObjectKind,
    pub hash: [u8; 32],
}

impl ObjectKey {
    pub(super) fn chunk(hash: [u8; 32]) -> ObjectKey {
        ObjectKey { kind: ObjectKind::Chunk, hash }
    }

    pub fn rules(hash: ContentHash) -> ObjectKey {
        ObjectKey { kind: ObjectKind::Rules, hash: *hash.as_bytes() }
    }
}

impl From<ContentHash> for ObjectKey {
    fn from(hash: ContentHash) -> ObjectKey {
        ObjectKey { kind: ObjectKind::Blob, hash: *hash.as_bytes() }
    }
}

impl From<TreeId> for ObjectKey {
    fn from(tree: TreeId) -> ObjectKey {
        ObjectKey { kind: ObjectKind::Tree, hash: *tree.as_bytes() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ObjectKind::Blob => "content",
            ObjectKind::Tree => "directory",
            ObjectKind::Rules => "rules",
            ObjectKind::Chunk => "chunk",
        };
        write!(f, "{kind} {}", ContentHash::from_bytes(self.hash))
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}
