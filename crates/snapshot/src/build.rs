//! Builds tree nodes from directory listings, bottom up and without recursion: a directory's number is always greater
//! than its parent's. A directory in which nothing changed keeps its node.

use crate::bytes::Malformed;
use crate::cache::{Cache, NewDir};
use crate::dirs::DirId;
use crate::hash::{MerkleRoot, TreeId};
use crate::node::{Kind, Node, Omitted, Reason, Xattr, tree_id};
use crate::scan::Listing;
use crate::scan_record::{self, Entries, Links, Payload};
use crate::store::{Appender, ObjectKey, StoreError};

/// A tree that is complete in the store, and the cache for the next scan.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) tree: TreeId,
    pub(crate) merkle: MerkleRoot,
    pub(crate) xattrs: Vec<Xattr>,
    pub(crate) dirs: Vec<NewDir>,
    /// Whether the tree is the one of the last scan.
    pub(crate) unchanged: bool,
    /// Excluded entries, by directory, from the top down.
    pub(crate) omitted: Vec<(DirId, Vec<Omitted>)>,
    pub(crate) linked_outside: u64,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("an internal record is {0}")]
    Record(#[from] Malformed),
}

/// Result for a directory whose node is built.
struct Done {
    tree: TreeId,
    merkle: MerkleRoot,
    changed: bool,
    left_out: Option<Reason>,
    xattrs: Vec<Xattr>,
}

/// Build the nodes of a tree. `listings` are in the order of their numbers, without gaps.
pub(crate) fn build(
    listings: Vec<Listing>,
    links: &Links,
    cache: Option<&Cache>,
    store: &mut Appender<'_>,
) -> Result<Built, BuildError> {
    let mut done: Vec<Option<Done>> = Vec::with_capacity(listings.len());
    done.resize_with(listings.len(), || None);
    let mut dirs: Vec<NewDir> = Vec::with_capacity(listings.len());
    let mut omitted = Vec::new();
    let mut linked_outside = 0;
    for listing in listings.into_iter().rev() {
        let old = listing.old.and_then(|id| cache?.dir(id));
        let children = children_changed(&listing, &done)?;
        let mut new = NewDir {
            tree: TreeId::from_bytes([0; 32]),
            merkle: MerkleRoot::from_bytes([0; 32]),
            rules: listing.rules,
            entries: listing.entries,
            omitted: listing.omitted,
        };
        let mut empty = false;
        let reusable = old.filter(|_| listing.same && !listing.has_links && !children);
        if let Some(old) = reusable {
            (new.tree, new.merkle) = (old.tree, old.merkle);
            omitted.push((listing.id, scan_record::omitted(&new.omitted)?));
        } else {
            let node = node(&new, links, &mut done)?;
            linked_outside += node.entries.iter().filter(|entry| entry.meta.linked_outside).count() as u64;
            empty = node.entries.is_empty();
            let bytes = node.encode();
            (new.tree, new.merkle) = (tree_id(&bytes), node.merkle());
            if old.is_none_or(|old| old.tree != new.tree) {
                store.put(ObjectKey::from(new.tree), &bytes)?;
            }
            omitted.push((listing.id, node.omitted));
        }
        // A directory that was only searched, and in which nothing was found, is excluded with its parent's entry.
        let left_out = listing.left_out.filter(|_| empty);
        if left_out.is_some() {
            omitted.pop();
        }
        omitted.pop_if(|(_, omitted)| omitted.is_empty());
        let changed = left_out.is_some() || old.is_none_or(|old| old.tree != new.tree);
        if let Some(slot) = done.get_mut(listing.id as usize) {
            let (tree, merkle) = (new.tree, new.merkle);
            *slot = Some(Done { tree, merkle, changed, left_out, xattrs: listing.xattrs });
        }
        dirs.push(new);
    }
    dirs.reverse();
    omitted.reverse();
    let root = done.into_iter().next().flatten().ok_or(Malformed("a scan without its root"))?;
    Ok(Built {
        tree: root.tree,
        merkle: root.merkle,
        xattrs: root.xattrs,
        unchanged: !root.changed,
        dirs,
        omitted,
        linked_outside,
    })
}

/// Whether a subdirectory's node differs from the last scan.
fn children_changed(listing: &Listing, done: &[Option<Done>]) -> Result<bool, Malformed> {
    for known in Entries::new(&listing.entries) {
        if let Payload::Dir(id) = known?.payload {
            let child = done.get(id as usize).and_then(Option::as_ref);
            if child.is_none_or(|child| child.changed) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn node(dir: &NewDir, links: &Links, done: &mut [Option<Done>]) -> Result<Node, Malformed> {
    let mut node = Node { entries: Vec::new(), omitted: scan_record::omitted(&dir.omitted)? };
    for known in Entries::new(&dir.entries) {
        let known = known?;
        let child = match known.payload {
            Payload::Dir(id) => done.get_mut(id as usize).and_then(Option::as_mut),
            _ => None,
        };
        let reason = child.as_ref().and_then(|child| child.left_out.clone());
        let kind = child.as_ref().map(|child| Kind::Dir { tree: child.tree, merkle: child.merkle });
        let mut entry = known.entry(links, |_: DirId| kind.clone())?;
        if let Some(reason) = reason {
            let stamp = known.stat().stamp(&reason);
            node.omitted.push(Omitted { name: entry.name, is_dir: true, reason, stamp });
            continue;
        }
        if let Some(child) = child {
            entry.meta.xattrs.clone_from(&child.xattrs);
        }
        node.entries.push(entry);
    }
    node.omitted.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(node)
}
