//! The store as comparison and restore see it: nodes, of which recently read ones are cached, and contents, checked.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use crate::hash::{ContentHash, HashKind, TreeId, content_hash};
use crate::node::Node;
use crate::pool::locked;
use crate::state::{ObjectError, ObjectName, Objects, Result};
use crate::store::{LARGE, ObjectKey, Published, Store, StoreError, WriteOptions, pread};

/// Maximum number of cached nodes, and of entries in them: an entry takes some 200 bytes.
const KEPT: usize = 1024;
const KEPT_ENTRIES: usize = 50_000;

#[derive(Debug)]
pub(crate) struct StoreObjects<'a> {
    store: &'a Store,
    nodes: Mutex<Nodes>,
}

#[derive(Debug, Default)]
struct Nodes {
    by_id: HashMap<TreeId, Arc<Node>>,
    entries: usize,
}

impl Nodes {
    fn keep(&mut self, id: TreeId, node: &Arc<Node>) {
        // One for the node itself: an empty directory takes space too.
        let weight = 1 + node.entries.len();
        if self.by_id.len() >= KEPT || self.entries + weight > KEPT_ENTRIES {
            self.by_id.clear();
            self.entries = 0;
        }
        if weight <= KEPT_ENTRIES && self.by_id.insert(id, node.clone()).is_none() {
            self.entries += weight;
        }
    }
}

impl<'a> StoreObjects<'a> {
    pub(crate) fn new(store: &'a Store) -> StoreObjects<'a> {
        StoreObjects { store, nodes: Mutex::default() }
    }
}

impl Objects for StoreObjects<'_> {
    fn node(&self, id: TreeId) -> Result<Arc<Node>> {
        if let Some(node) = locked(&self.nodes).by_id.get(&id) {
            return Ok(node.clone());
        }
        let what = ObjectName::Tree(id);
        let bytes = self.store.read(ObjectKey::from(id)).map_err(|error| object_error(what, error))?;
        let node = Arc::new(Node::decode(&bytes).map_err(|_| ObjectError::Damaged { what })?);
        locked(&self.nodes).keep(id, &node);
        Ok(node)
    }

    fn write_file(&self, hash: ContentHash, size: u64, sparse: bool, out: BorrowedFd<'_>) -> Result<()> {
        let written = self.store.write_to(hash, size, sparse, out);
        written.map_err(|error| object_error(ObjectName::Content(hash), error))
    }

    fn keep_file(&self, file: BorrowedFd<'_>, size: u64) -> Result<ContentHash> {
        self.keep(file, size).map(|(hash, _published)| hash)
    }
}

impl StoreObjects<'_> {
    /// Store a content; it is kept from collection until the second value is dropped.
    pub(crate) fn keep(&self, file: BorrowedFd<'_>, size: u64) -> Result<(ContentHash, Published)> {
        self.store_file(file, size)
            .map_err(|error| object_error(ObjectName::Content(content_hash(b"")), error))
    }

    /// Whether a content is stored. False if the lookup fails.
    pub(crate) fn contains(&self, hash: ContentHash) -> bool {
        self.store.contains(ObjectKey::from(hash)).unwrap_or(false)
    }

    /// Move a file into the store: see [`Objects::take_file`].
    pub(crate) fn take(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        file: BorrowedFd<'_>,
        hash: ContentHash,
    ) -> Result<bool> {
        let taken = self.store.take_in(dir, name, file, hash);
        taken.map_err(|error| object_error(ObjectName::Content(hash), error))
    }

    /// Make stored contents survive a power loss.
    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        self.store.sync().map(drop)
    }

    fn store_file(&self, file: BorrowedFd<'_>, size: u64) -> Result<(ContentHash, Published), StoreError> {
        let writer = self.store.writer(WriteOptions::default())?;
        let mut appender = writer.appender()?;
        let hash = if size >= LARGE || HashKind::of(size) == HashKind::Chunked {
            let staged = appender.put_large(file, size, true)?;
            let hash = staged.hash();
            staged.commit()?;
            hash
        } else {
            let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
            let read = pread(file, &mut bytes, 0).map_err(StoreError::Source)?;
            bytes.truncate(read);
            let hash = content_hash(&bytes);
            appender.put(ObjectKey::from(hash), &bytes)?;
            hash
        };
        appender.finish()?;
        Ok((hash, writer.publish()?))
    }
}

fn object_error(what: ObjectName, error: StoreError) -> ObjectError {
    match error {
        StoreError::Missing { .. } => ObjectError::Missing { what },
        StoreError::Damaged { .. } => ObjectError::Damaged { what },
        StoreError::Io { path, source, .. } => ObjectError::Io { path, source },
        other => ObjectError::Io { path: PathBuf::new(), source: std::io::Error::other(other) },
    }
}
