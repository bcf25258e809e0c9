//! Purging a path from all snapshots of a session.
//!
//! A purged path is listed in each snapshot as excluded, with the reason, so that no restore ever touches it. The
//! rewritten snapshots take effect all at once, when the record names them; the old manifests are removed after that,
//! and the bytes by a collection that leaves nothing behind ([`super::gc_compact`]).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Result, SnapshotError, SnapshotManager, sessions};
use crate::coverage::Coverage;
use crate::file::Sync;
use crate::hash::{ContentHash, TreeId};
use crate::manifest::ManifestBody;
use crate::node::{Entry, Kind, Node, Omitted, Reason, tree_id};
use crate::objects::StoreObjects;
use crate::session::Session;
use crate::state::{ObjectError, Objects, RootContent, SnapshotState};
use crate::store::{ObjectKey, Store, WriteOptions};

/// Result of purging a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Number of snapshots that held it.
    pub snapshots: u64,
    /// Contents that it had in them.
    pub contents: Vec<ContentHash>,
}

impl SnapshotManager {
    /// Remove a path (absolute, below a root) from all snapshots. Its bytes stay in the store until they are purged.
    pub fn forget(&mut self, path: &Path) -> Result<Forgotten> {
        self.ensure_tracked(path)?;
        let held = self.enter()?;
        let mut record = self.recorded()?;
        let store = Arc::clone(&self.store);
        let writer = store.writer(WriteOptions::default())?;
        let mut appender = writer.appender()?;
        let mut purge = Purge { objects: &StoreObjects::new(&store), path, contents: HashSet::new() };
        let mut made: HashMap<TreeId, Vec<u8>> = HashMap::new();
        let mut rewritten = Vec::new();
        for (at, recorded) in record.snapshots.iter().enumerate() {
            // A snapshot with a damaged manifest keeps nothing in the store.
            let Some(sheet) = self.session.sheet_if_readable(&record, &recorded.snapshot())? else {
                continue;
            };
            rewritten.extend(purge.sheet(sheet, &mut made)?.map(|sheet| (at, sheet)));
        }
        for (tree, bytes) in made {
            appender.put(ObjectKey::from(tree), &bytes)?;
        }
        appender.finish()?;
        let published = writer.publish()?;
        self.written.fetch_add(published.bytes, Ordering::Relaxed);
        let snapshots = rewritten.len() as u64;
        for (at, sheet) in rewritten {
            let new = self.session.save_manifest(&sheet)?;
            if let Some(place) = record.snapshots.get_mut(at) {
                *place = new;
            }
        }
        self.session.save_record(&record, Sync::Yes)?;
        drop(published);
        let contents = purge.contents;
        let kept = self.session.kept_keys()?;
        let stays: Vec<ContentHash> = kept.iter().filter(|hash| !contents.contains(hash)).copied().collect();
        if stays.len() != kept.len() {
            self.session.save_kept(&stays)?;
        }
        self.session.tidy(&held)?;
        Ok(Forgotten { snapshots, contents: contents.into_iter().collect() })
    }
}

/// Removes one path from states.
struct Purge<'a> {
    objects: &'a dyn Objects,
    path: &'a Path,
    /// Contents of the removed entries.
    contents: HashSet<ContentHash>,
}

impl Purge<'_> {
    /// The snapshot without the path; `None` if it does not have it.
    fn sheet(
        &mut self,
        mut sheet: ManifestBody,
        made: &mut HashMap<TreeId, Vec<u8>>,
    ) -> Result<Option<ManifestBody>> {
        let path = self.path;
        let roots = sheet.state.roots.iter_mut().filter(|root| path.starts_with(&root.path));
        let Some(root) = roots.max_by_key(|root| root.path.components().count()) else { return Ok(None) };
        let RootContent::Captured(top) = &mut root.content else { return Ok(None) };
        let below = path.strip_prefix(&root.path).unwrap_or(Path::new(""));
        let names: Vec<&[u8]> = below.components().map(|name| name.as_os_str().as_encoded_bytes()).collect();
        let Some((last, above)) = names.split_last() else {
            return Err(SnapshotError::NotTracked { path: path.to_owned() });
        };
        let mut way: Vec<Arc<Node>> = Vec::new();
        let mut entry = top.clone();
        for name in above {
            let Kind::Dir { tree, .. } = entry.kind else { return Ok(None) };
            let node = self.objects.node(tree)?;
            let Some(next) = node.entry(name).cloned() else { return Ok(None) };
            way.push(node);
            entry = next;
        }
        let Kind::Dir { tree, .. } = entry.kind else { return Ok(None) };
        let mut node = Node::clone(&*self.objects.node(tree)?);
        let Some(gone) = node.entry(last).cloned() else { return Ok(None) };
        self.count(&gone, path, &mut sheet.coverage)?;
        let (name, is_dir, reason) = (gone.name.clone(), gone.is_dir(), Reason::Forgotten);
        let omitted = Omitted { name, is_dir, reason, stamp: None };
        node.entries.retain(|entry| entry.name != gone.name);
        sheet.coverage.leave_out(path.parent().unwrap_or(path), std::slice::from_ref(&omitted));
        let at = node.omitted.partition_point(|other| other.name < omitted.name);
        node.omitted.insert(at, omitted);
        // Up again, with the new address of each directory in its parent.
        let mut kind = keep(&node, made);
        for (node, name) in way.into_iter().zip(above).rev() {
            let mut node = Node::clone(&node);
            if let Some(entry) = node.entries.iter_mut().find(|entry| entry.name.as_bytes() == *name) {
                entry.kind = kind;
            }
            kind = keep(&node, made);
        }
        top.kind = kind;
        Ok(Some(sheet))
    }

    /// Record the contents of a removed entry, and subtract it from the coverage.
    fn count(&mut self, gone: &Entry, path: &Path, coverage: &mut Coverage) -> Result<(), ObjectError> {
        let less = |number: &mut u64, by: u64| *number = number.saturating_sub(by);
        let mut one = |entry: &Entry| match &entry.kind {
            Kind::File { hash, size, .. } => {
                self.contents.insert(*hash);
                less(&mut coverage.files, 1);
                less(&mut coverage.bytes, *size);
            }
            Kind::Dir { .. } => less(&mut coverage.directories, 1),
            _ => less(&mut coverage.others, 1),
        };
        one(gone);
        let content = RootContent::Captured(gone.clone());
        let root = crate::state::RootState { path: path.to_owned(), content };
        let state = SnapshotState { roots: vec![root] };
        crate::files::walk(&state, self.objects, |_, node| node.entries.iter().for_each(&mut one))
    }
}

fn keep(node: &Node, made: &mut HashMap<TreeId, Vec<u8>>) -> Kind {
    let bytes = node.encode();
    let tree = tree_id(&bytes);
    made.insert(tree, bytes);
    Kind::Dir { tree, merkle: node.merkle() }
}

/// Sessions of a store that hold one of these contents, and the paths that have it there.
pub fn holders(store: &Store, contents: &[ContentHash]) -> Result<Vec<(PathBuf, BTreeSet<PathBuf>)>> {
    let wanted: HashSet<ContentHash> = contents.iter().copied().collect();
    let objects = StoreObjects::new(store);
    let mut all = Vec::new();
    for dir in sessions::session_dirs(store)? {
        let session = Session::new(&dir);
        // A session whose record cannot be read holds nothing.
        let Ok(Some(record)) = session.record() else { continue };
        let mut paths = BTreeSet::new();
        let mut seen = HashSet::new();
        for (recorded, sheet) in session.sheets(&record) {
            if let Some(sheet) = sheet?
                && seen.insert(recorded.merkle_root)
            {
                let files = crate::files::files(&sheet.state, &objects)?;
                let holds = files.into_iter().filter(|(_, file)| wanted.contains(&file.hash));
                paths.extend(holds.map(|(path, _)| path));
            }
        }
        if !paths.is_empty() || session.kept_keys()?.iter().any(|hash| wanted.contains(hash)) {
            all.push((dir, paths));
        }
    }
    Ok(all)
}
