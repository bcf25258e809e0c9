//! Replaces the bytes of files with the guarantees of a restore: the current state is captured first, the state with
//! the new bytes becomes a snapshot of its own, and the edit is then a restore of these files.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::restore::random_id;
use super::{RestoreOptions, Restored, Result, SnapshotError, SnapshotManager};
use crate::capture::{Captured, RulesFrom};
use crate::coverage::Coverage;
use crate::hash::{ContentHash, HashKind, TreeId, content_hash};
use crate::manifest::SnapshotId;
use crate::node::{Entry, Kind, Node, Time, tree_id};
use crate::objects::StoreObjects;
use crate::restore::Selection;
use crate::scan::ScanCounts;
use crate::state::{ObjectError, Objects, SnapshotState};
use crate::store::{Appender, LARGE, ObjectKey, StoreError, WriteOptions};

/// New content of a file.
#[derive(Clone, Copy)]
pub(super) struct NewContent {
    pub(super) hash: ContentHash,
    pub(super) size: u64,
}

impl SnapshotManager {
    /// Give existing regular files new bytes; everything else about them except their time stays. The current state is
    /// captured first, and restoring it undoes the edit. All names of a file in the tree get the new bytes.
    pub fn edit(&mut self, edits: &[(PathBuf, Vec<u8>)]) -> Result<Restored> {
        let held = self.enter()?;
        edits.iter().try_for_each(|(path, _)| self.ensure_tracked(path))?;
        let record = self.recorded()?;
        let rules_of = self.session.newest_sheet(&record)?.ok_or_else(|| self.no_baseline())?;
        let frozen = self.frozen_rules(&rules_of)?;
        let (rules, limits) = (RulesFrom::Frozen(&frozen), super::Limits::NONE);
        let captured = self.capture(&rules_of.state.paths(), rules, Some(&rules_of.state), limits, true)?;
        let files = self.files_to_edit(&captured.state, edits)?;
        let (edited, chosen) = self.edited(&captured, &files, edits)?;
        let id = random_id()?;
        let safety = SnapshotId::Safety(format!("safety-{id}"));
        self.publish(&held, record, captured, safety.clone(), None)?;
        let target = SnapshotId::Safety(format!("edit-{id}"));
        self.publish(&held, self.recorded()?, edited, target.clone(), None)?;
        let record = self.recorded()?;
        let [target, safety] = [target, safety].map(|id| self.session.sheet(&record, &id));
        let options = RestoreOptions::default();
        let restored =
            self.begin(id, &target?, safety?, &Selection::Paths(chosen), &options, &HashSet::new())?;
        self.settle_in_background();
        Ok(restored)
    }

    /// Current entries of the paths to edit.
    fn files_to_edit(
        &self,
        state: &SnapshotState,
        edits: &[(PathBuf, Vec<u8>)],
    ) -> Result<BTreeMap<PathBuf, Entry>> {
        let objects = StoreObjects::new(&self.store);
        let mut files = BTreeMap::new();
        for (path, _) in edits {
            let entry = crate::files::entry(state, &objects, path)?;
            let entry = entry.filter(|entry| matches!(entry.kind, Kind::File { .. }));
            let entry = entry.ok_or_else(|| SnapshotError::NoFile { path: path.clone() })?;
            if files.insert(path.clone(), entry).is_some() {
                return Err(SnapshotError::Twice { path: path.clone() });
            }
        }
        Ok(files)
    }

    /// The state with the new bytes, stored, and the paths that differ in it.
    fn edited(
        &self,
        captured: &Captured,
        files: &BTreeMap<PathBuf, Entry>,
        edits: &[(PathBuf, Vec<u8>)],
    ) -> Result<(Captured, Vec<PathBuf>)> {
        let writer = self.store.writer(WriteOptions::default())?;
        let mut appender = writer.appender()?;
        let mut new: BTreeMap<PathBuf, NewContent> = BTreeMap::new();
        for (path, bytes) in edits {
            new.insert(path.clone(), store(bytes, &mut appender)?);
        }
        let objects = StoreObjects::new(&self.store);
        other_names(&captured.state, &objects, files, &mut new)?;
        let mut trees = Trees { objects: &objects, made: HashMap::new(), now: now() };
        let mut state = captured.state.clone();
        let mut coverage: Coverage = captured.coverage.clone();
        let mut chosen = Vec::new();
        for (path, new) in new {
            let Some(old) = trees.replace(&mut state, &path, new)? else { continue };
            coverage.bytes = coverage.bytes.saturating_sub(old).saturating_add(new.size);
            chosen.push(path);
        }
        for (tree, bytes) in trees.needed(&state) {
            appender.put(ObjectKey::from(tree), &bytes)?;
        }
        appender.finish()?;
        let published = writer.publish()?;
        self.written.fetch_add(published.bytes, Ordering::Relaxed);
        let (rules, counts, deferred) = (captured.rules.clone(), ScanCounts::default(), HashSet::new());
        Ok((Captured { state, rules, coverage, counts, deferred, published }, chosen))
    }
}

fn now() -> Time {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    Time { seconds: now.tv_sec, nanos: u32::try_from(now.tv_nsec).unwrap_or(0) }
}

pub(super) fn store(bytes: &[u8], appender: &mut Appender<'_>) -> Result<NewContent> {
    let size = bytes.len() as u64;
    if size < LARGE && HashKind::of(size) != HashKind::Chunked {
        let hash = content_hash(bytes);
        appender.put(ObjectKey::from(hash), bytes)?;
        return Ok(NewContent { hash, size });
    }
    let file = in_memory(bytes).map_err(|source| StoreError::Source(source.into()))?;
    let staged = appender.put_large(file.as_fd(), size, false)?;
    let hash = staged.hash();
    staged.commit()?;
    Ok(NewContent { hash, size })
}

/// Bytes as a file in memory: large objects are stored from a file.
fn in_memory(mut bytes: &[u8]) -> Result<OwnedFd, rustix::io::Errno> {
    let file = rustix::fs::memfd_create(c"nono-edit", rustix::fs::MemfdFlags::CLOEXEC)?;
    while !bytes.is_empty() {
        let written = rustix::io::write(&file, bytes)?;
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(file)
}

/// Other names of hard-linked files: they are one file and stay one.
fn other_names(
    state: &SnapshotState,
    objects: &dyn Objects,
    files: &BTreeMap<PathBuf, Entry>,
    new: &mut BTreeMap<PathBuf, NewContent>,
) -> Result<(), ObjectError> {
    let mut linked: HashMap<(u64, ContentHash), NewContent> = HashMap::new();
    for (path, entry) in files {
        if let (Some(inode), Kind::File { hash, .. }, Some(new)) =
            (entry.meta.link, &entry.kind, new.get(path))
        {
            linked.insert((inode, *hash), *new);
        }
    }
    if linked.is_empty() {
        return Ok(());
    }
    crate::files::walk(state, objects, |dir, node| {
        for entry in &node.entries {
            let Kind::File { hash, .. } = &entry.kind else { continue };
            let Some(edit) = entry.meta.link.and_then(|inode| linked.get(&(inode, *hash))) else { continue };
            // A path that was named itself keeps its own edit.
            new.entry(dir.join(&entry.name)).or_insert(*edit);
        }
    })
}

/// Directories, as they are stored and as they become.
struct Trees<'a> {
    objects: &'a dyn Objects,
    made: HashMap<TreeId, Arc<Node>>,
    now: Time,
}

impl Trees<'_> {
    fn node(&self, tree: TreeId) -> Result<Arc<Node>, ObjectError> {
        self.made.get(&tree).map_or_else(|| self.objects.node(tree), |node| Ok(node.clone()))
    }

    /// Put new bytes into one file and return its old size; `None` if it has them already.
    fn replace(&mut self, state: &mut SnapshotState, path: &Path, new: NewContent) -> Result<Option<u64>> {
        let missing = || SnapshotError::NoFile { path: path.to_owned() };
        let roots = state.roots.iter_mut().filter(|root| path.starts_with(&root.path));
        let root = roots.max_by_key(|root| root.path.components().count()).ok_or_else(missing)?;
        let crate::state::RootContent::Captured(top) = &mut root.content else { return Err(missing()) };
        let below = path.strip_prefix(&root.path).map_err(|_| missing())?;
        // Down to the file, with the index of each entry on the way, and up again.
        let mut way: Vec<(Arc<Node>, usize)> = Vec::new();
        let mut entry = top.clone();
        for component in below.components() {
            let Kind::Dir { tree, .. } = entry.kind else { return Err(missing()) };
            let node = self.node(tree)?;
            let name = component.as_os_str().as_encoded_bytes();
            let at = node.entries.binary_search_by(|entry| entry.name.as_bytes().cmp(name));
            let at = at.map_err(|_| missing())?;
            entry = node.entries.get(at).cloned().ok_or_else(missing)?;
            way.push((node, at));
        }
        let Kind::File { hash, size, .. } = entry.kind else { return Err(missing()) };
        if hash == new.hash {
            return Ok(None);
        }
        entry.kind = Kind::File { hash: new.hash, size: new.size, sparse: false };
        entry.meta.mtime = self.now;
        while let Some((node, at)) = way.pop() {
            let mut node = Node::clone(&node);
            if let Some(place) = node.entries.get_mut(at) {
                *place = entry;
            }
            let above = way.last().and_then(|(above, at)| above.entries.get(*at)).unwrap_or(top);
            let (tree, merkle) = (tree_id(&node.encode()), node.merkle());
            entry = Entry { kind: Kind::Dir { tree, merkle }, ..above.clone() };
            self.made.insert(tree, Arc::new(node));
        }
        *top = entry;
        Ok(Some(size))
    }

    /// New directories of a state, encoded.
    fn needed(&self, state: &SnapshotState) -> Vec<(TreeId, Vec<u8>)> {
        let mut waiting: Vec<TreeId> =
            state.roots.iter().filter_map(|root| root.content.entry()?.tree()).collect();
        let (mut seen, mut needed) = (HashSet::new(), Vec::new());
        while let Some(tree) = waiting.pop() {
            let Some(node) = self.made.get(&tree).filter(|_| seen.insert(tree)) else { continue };
            waiting.extend(node.entries.iter().filter_map(Entry::tree));
            needed.push((tree, node.encode()));
        }
        needed
    }
}
