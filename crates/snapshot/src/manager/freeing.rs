//! Computes how much space removing sessions or single snapshots would free, without removing anything.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::upkeep::{LiveObjects, each_object, live};
use crate::hash::ContentHash;
use crate::manager::error::Result;
use crate::manifest::SnapshotId;
use crate::objects::StoreObjects;
use crate::session::Session;
use crate::store::{ObjectKey, Store};

/// A session to remove, or some of its snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Folder of the session, resolved.
    pub dir: PathBuf,
    /// Snapshots to remove; `None` for the whole session.
    pub snapshots: Option<BTreeSet<SnapshotId>>,
}

impl Candidate {
    fn has(&self, dir: &Path, id: Option<&SnapshotId>) -> bool {
        self.dir == dir
            && match (&self.snapshots, id) {
                (None, _) => true,
                (Some(ids), Some(id)) => ids.contains(id),
                (Some(_), None) => false,
            }
    }
}

/// Bytes in the store that would be freed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Freed {
    /// Garbage: bytes that no snapshot needs any more.
    pub garbage: u64,
    /// Bytes freed by each candidate, when all before it are removed.
    pub each: Vec<u64>,
}

/// Bytes freed by each candidate when they are removed in this order. Two passes over the objects of snapshots: what
/// stays is marked first, then the candidates from the last to the first, and each frees what it newly marks.
pub fn freed(store: &Store, candidates: &[Candidate]) -> Result<Freed> {
    let stays = |dir: &Path, id: Option<&SnapshotId>| !candidates.iter().any(|one| one.has(dir, id));
    let (mut marked, _) = live(store, &stays)?;
    let mut chunks = Vec::new();
    for key in &marked.others {
        chunks.extend(store.chunks_in(*key)?);
    }
    marked.others.extend(chunks);
    let mut needed = 0u64;
    for tree in &marked.trees {
        needed += store.stored_size(ObjectKey::from(*tree))?;
    }
    for key in &marked.others {
        needed += store.stored_size(*key)?;
    }
    let mut each = Vec::with_capacity(candidates.len());
    for candidate in candidates.iter().rev() {
        each.push(add(store, candidate, &mut marked)?);
    }
    each.reverse();
    let all = needed + each.iter().sum::<u64>();
    let usage = store.usage()?;
    Ok(Freed { garbage: (usage.packs + usage.indexes + usage.large).saturating_sub(all), each })
}

/// Mark what a candidate needs; returns the bytes newly marked.
fn add(store: &Store, candidate: &Candidate, marked: &mut LiveObjects) -> Result<u64> {
    let session = Session::new(&candidate.dir);
    // Objects of a damaged record or manifest are not known to be freed.
    let Ok(Some(record)) = session.record() else { return Ok(0) };
    let mut new: Vec<ObjectKey> = Vec::new();
    let there = record.snapshots.iter().filter(|recorded| !recorded.thinned);
    for id in there.map(crate::session::Recorded::snapshot) {
        if !candidate.has(&candidate.dir, Some(&id)) {
            continue;
        }
        let Ok(sheet) = session.sheet(&record, &id) else { continue };
        let mut others: Vec<ObjectKey> =
            sheet.rules.iter().flatten().map(|hash| ObjectKey::rules(*hash)).collect();
        let content = |hash: ContentHash| others.push(ObjectKey::from(hash));
        each_object(&sheet.state, &StoreObjects::new(store), &mut marked.trees, content, |tree, _| {
            new.push(ObjectKey::from(tree));
        })?;
        new.extend(others.into_iter().filter(|key| marked.others.insert(*key)));
    }
    if candidate.snapshots.is_none() {
        let kept = session.kept()?.into_iter().map(ObjectKey::from);
        new.extend(kept.filter(|key| marked.others.insert(*key)));
    }
    let mut bytes = 0u64;
    for key in new {
        bytes += store.stored_size(key)?;
        for chunk in store.chunks_in(key)? {
            if marked.others.insert(chunk) {
                bytes += store.stored_size(chunk)?;
            }
        }
    }
    Ok(bytes)
}
