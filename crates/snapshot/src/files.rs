//! A snapshot's content as flat lists: the files it holds, what it left out, and the answer about one path.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::coverage::Protection;
use crate::hash::{ContentHash, HashKind, TreeId};
use crate::node::{Entry, Kind, Node, Reason, Time};
use crate::paths;
use crate::state::{ObjectError, Objects, RootContent, SnapshotState};

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

fn file_state(entry: &Entry) -> Option<FileState> {
    let Kind::File { hash, size, .. } = entry.kind else { return None };
    let hash_kind = HashKind::of(size);
    Some(FileState { hash, hash_kind, size, mtime: entry.meta.mtime, permissions: entry.meta.mode })
}

pub(crate) fn files(state: &SnapshotState, objects: &dyn Objects) -> Result<Files, ObjectError> {
    let mut files = Files::new();
    for root in &state.roots {
        if let Some(entry) = root.content.entry() {
            files.extend(file_state(entry).map(|state| (root.path.clone(), state)));
        }
    }
    walk(state, objects, |dir, node| {
        for entry in &node.entries {
            let path = || dir.join(paths::from_bytes(entry.name.as_bytes()));
            files.extend(file_state(entry).map(|state| (path(), state)));
        }
    })?;
    Ok(files)
}

/// Everything that was left out, with the reasons.
pub(crate) fn left_out(
    state: &SnapshotState,
    objects: &dyn Objects,
) -> Result<Vec<(PathBuf, Reason)>, ObjectError> {
    let mut all = Vec::new();
    for root in &state.roots {
        if let RootContent::Failed(reason) = &root.content {
            all.push((root.path.clone(), reason.clone()));
        }
    }
    walk(state, objects, |dir, node| {
        let omitted = node.omitted.iter().filter(|omitted| omitted.reason != Reason::OtherRoot);
        all.extend(omitted.map(|one| (dir.join(paths::from_bytes(one.name.as_bytes())), one.reason.clone())));
    })?;
    all.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(all)
}

/// The directories of a snapshot, each before what is in it.
pub(crate) fn directories(state: &SnapshotState, objects: &dyn Objects) -> Result<Vec<PathBuf>, ObjectError> {
    let mut all = Vec::new();
    walk(state, objects, |dir, _| all.push(dir.to_owned()))?;
    Ok(all)
}

/// Every directory of a snapshot, once for each place it stands in.
pub(crate) fn walk(
    state: &SnapshotState,
    objects: &dyn Objects,
    mut visit: impl FnMut(&Path, &Node),
) -> Result<(), ObjectError> {
    let mut waiting: Vec<(PathBuf, TreeId)> = Vec::new();
    for root in &state.roots {
        if let Some(Kind::Dir { tree, .. }) = root.content.entry().map(|entry| &entry.kind) {
            waiting.push((root.path.clone(), *tree));
        }
    }
    while let Some((path, tree)) = waiting.pop() {
        let node = objects.node(tree)?;
        visit(&path, &node);
        for entry in &node.entries {
            if let Kind::Dir { tree, .. } = entry.kind {
                waiting.push((path.join(paths::from_bytes(entry.name.as_bytes())), tree));
            }
        }
    }
    Ok(())
}

/// What a snapshot has at `path` (absolute).
enum At {
    Entry(Entry),
    /// Or why there is none.
    No(Protection),
}

fn at(state: &SnapshotState, objects: &dyn Objects, path: &Path) -> Result<At, ObjectError> {
    // Of roots in roots the innermost one counts.
    let roots = state.roots.iter().filter(|root| path.starts_with(&root.path));
    let Some(root) = roots.max_by_key(|root| root.path.components().count()) else {
        return Ok(At::No(Protection::Outside));
    };
    let mut entry = match &root.content {
        RootContent::Failed(reason) => {
            let because_of = root.path.clone();
            return Ok(At::No(Protection::LeftOut { because_of, reason: reason.clone() }));
        }
        RootContent::Absent => return Ok(At::No(Protection::NotThere)),
        RootContent::Captured(entry) => entry.clone(),
    };
    let mut here = root.path.clone();
    let below = path.strip_prefix(&root.path).unwrap_or(Path::new(""));
    for component in below.components() {
        let Component::Normal(name) = component else { return Ok(At::No(Protection::NotThere)) };
        let Kind::Dir { tree, .. } = entry.kind else { return Ok(At::No(Protection::NotThere)) };
        let node = objects.node(tree)?;
        here.push(name);
        if let Some(omitted) = node.omitted(name.as_encoded_bytes()) {
            let reason = omitted.reason.clone();
            return Ok(At::No(Protection::LeftOut { because_of: here, reason }));
        }
        match node.entry(name.as_encoded_bytes()) {
            Some(found) => entry = found.clone(),
            None => return Ok(At::No(Protection::NotThere)),
        }
    }
    Ok(At::Entry(entry))
}

/// Is `path` (absolute) protected, and if not, why.
pub(crate) fn protection(
    state: &SnapshotState,
    objects: &dyn Objects,
    path: &Path,
) -> Result<Protection, ObjectError> {
    Ok(match at(state, objects, path)? {
        At::Entry(_) => Protection::Captured,
        At::No(why) => why,
    })
}

/// What a snapshot holds at `path` (absolute).
pub(crate) fn entry(
    state: &SnapshotState,
    objects: &dyn Objects,
    path: &Path,
) -> Result<Option<Entry>, ObjectError> {
    Ok(match at(state, objects, path)? {
        At::Entry(entry) => Some(entry),
        At::No(_) => None,
    })
}
