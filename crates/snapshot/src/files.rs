//! A snapshot's content as flat lists: the files it holds, the excluded entries, and the protection of one path.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::coverage::Protection;
use crate::hash::{ContentHash, HashKind, TreeId};
use crate::node::{Entry, Kind, Node, Reason, Time};
use crate::paths;
use crate::state::{Objects, Result, RootContent, SnapshotState};

/// A regular file in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    pub hash: ContentHash,
    pub hash_kind: HashKind,
    pub size: u64,
    pub mtime: Time,
    /// The 12 permission bits.
    pub permissions: u16,
}

/// The regular files of a snapshot, by absolute path.
pub type Files = BTreeMap<PathBuf, FileState>;

impl FileState {
    /// State of a regular file; `None` for any other entry.
    pub fn of(entry: &Entry) -> Option<FileState> {
        let Kind::File { hash, size, .. } = entry.kind else { return None };
        let hash_kind = HashKind::of(size);
        Some(FileState { hash, hash_kind, size, mtime: entry.meta.mtime, permissions: entry.meta.mode })
    }
}

pub(crate) fn files(state: &SnapshotState, objects: &dyn Objects) -> Result<Files> {
    let mut files = Vec::new();
    each_entry(state, objects, |path, entry| {
        files.extend(FileState::of(entry).map(|state| (path.to_owned(), state)));
    })?;
    Ok(files.into_iter().collect())
}

/// Visit every entry of a snapshot, roots included, in the order of paths by components.
pub(crate) fn each_entry(
    state: &SnapshotState,
    objects: &dyn Objects,
    mut visit: impl FnMut(&Path, &Entry),
) -> Result<()> {
    let mut path = PathBuf::new();
    for root in &state.roots {
        let Some(entry) = root.content.entry() else { continue };
        path.clone_from(&root.path);
        visit(&path, entry);
        let node = |entry: &Entry| entry.tree().map(|tree| objects.node(tree)).transpose();
        // Open directories, each with the number of entries seen and the length of its path.
        let mut open: Vec<(Arc<Node>, usize, usize)> = Vec::new();
        open.extend(node(entry)?.map(|node| (node, 0, paths::bytes(&path).len())));
        while let Some((dir, seen, length)) = open.last_mut() {
            let Some(entry) = dir.entries.get(*seen) else {
                open.pop();
                continue;
            };
            *seen += 1;
            cut(&mut path, *length);
            path.push(&entry.name);
            visit(&path, entry);
            let below = node(entry)?.map(|node| (node, 0, paths::bytes(&path).len()));
            open.extend(below);
        }
    }
    Ok(())
}

/// Truncate a path to this length. Cheaper than `pop`, which has to find the last component.
fn cut(path: &mut PathBuf, length: usize) {
    let mut bytes = std::mem::take(path).into_os_string().into_vec();
    bytes.truncate(length);
    *path = OsString::from_vec(bytes).into();
}

/// All excluded entries, with their reasons.
pub(crate) fn left_out(state: &SnapshotState, objects: &dyn Objects) -> Result<Vec<(PathBuf, Reason)>> {
    let mut all = Vec::new();
    for root in &state.roots {
        if let RootContent::Failed(reason) = &root.content {
            all.push((root.path.clone(), reason.clone()));
        }
    }
    walk(state, objects, |dir, node| {
        let omitted = node.omitted.iter().filter(|omitted| omitted.reason != Reason::OtherRoot);
        all.extend(omitted.map(|one| (dir.join(&one.name), one.reason.clone())));
    })?;
    all.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(all)
}

/// Directories of a snapshot, each before its content.
pub(crate) fn directories(state: &SnapshotState, objects: &dyn Objects) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    walk(state, objects, |dir, _| all.push(dir.to_owned()))?;
    Ok(all)
}

/// Visit every directory of a snapshot, once for each path it has.
pub(crate) fn walk(
    state: &SnapshotState,
    objects: &dyn Objects,
    mut visit: impl FnMut(&Path, &Node),
) -> Result<()> {
    let mut waiting: Vec<(PathBuf, TreeId)> = Vec::new();
    for root in &state.roots {
        waiting.extend(root.content.entry().and_then(Entry::tree).map(|tree| (root.path.clone(), tree)));
    }
    while let Some((path, tree)) = waiting.pop() {
        let node = objects.node(tree)?;
        visit(&path, &node);
        let below = |entry: &Entry| Some((path.join(&entry.name), entry.tree()?));
        waiting.extend(node.entries.iter().filter_map(below));
    }
    Ok(())
}

/// Entry of a snapshot at an absolute path; the inner error says why there is none.
fn at(state: &SnapshotState, objects: &dyn Objects, path: &Path) -> Result<Result<Entry, Protection>> {
    // Of nested roots the innermost one counts.
    let roots = state.roots.iter().filter(|root| path.starts_with(&root.path));
    let root = roots.max_by_key(|root| root.path.components().count());
    let Some(root) = root else { return Ok(Err(Protection::Outside)) };
    let mut entry = match &root.content {
        RootContent::Failed(reason) => {
            let because_of = root.path.clone();
            return Ok(Err(Protection::LeftOut { because_of, reason: reason.clone() }));
        }
        RootContent::Absent => return Ok(Err(Protection::NotThere)),
        RootContent::Captured(entry) => entry.clone(),
    };
    let mut here = root.path.clone();
    let below = path.strip_prefix(&root.path).unwrap_or(Path::new(""));
    for component in below.components() {
        let Component::Normal(name) = component else { return Ok(Err(Protection::NotThere)) };
        let Some(tree) = entry.tree() else { return Ok(Err(Protection::NotThere)) };
        let node = objects.node(tree)?;
        here.push(name);
        if let Some(omitted) = node.omitted(name.as_encoded_bytes()) {
            let reason = omitted.reason.clone();
            return Ok(Err(Protection::LeftOut { because_of: here, reason }));
        }
        match node.entry(name.as_encoded_bytes()) {
            Some(found) => entry = found.clone(),
            None => return Ok(Err(Protection::NotThere)),
        }
    }
    Ok(Ok(entry))
}

/// Whether `path` (absolute) is protected, and if not, why.
pub(crate) fn protection(state: &SnapshotState, objects: &dyn Objects, path: &Path) -> Result<Protection> {
    Ok(at(state, objects, path)?.err().unwrap_or(Protection::Captured))
}

/// Entry of a snapshot at `path` (absolute).
pub(crate) fn entry(state: &SnapshotState, objects: &dyn Objects, path: &Path) -> Result<Option<Entry>> {
    Ok(at(state, objects, path)?.ok())
}
