//! Imports a state that another tool kept: a snapshot from a list of paths and the source of their contents, without
//! reading the tree. It has what the list has and no more; contents that are not available are excluded by name.
//!
//! Names come from outside: one that leads out of the root, or into a `.git` folder, is never included.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::Ordering;

use super::edit::store;
use super::{Manifest, Result, SnapshotError, SnapshotManager};
use crate::capture::Captured;
use crate::coverage::{Coverage, CoverageNote};
use crate::exclusion::FrozenRules;
use crate::hash::{ContentHash, MerkleRoot, TreeId, content_hash};
use crate::manifest::SnapshotId;
use crate::node::{Entry, Kind, Meta, Name, Node, Omitted, Reason, Time, tree_id};
use crate::paths;
use crate::scan::ScanCounts;
use crate::session::SnapshotList;
use crate::state::{RootContent, RootState, SnapshotState};
use crate::store::{Appender, ObjectKey, StoreWriter, WriteOptions};

/// One path of an imported state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedPath {
    /// Path relative to the root, with `/` between names.
    pub path: Vec<u8>,
    pub piece: AdoptedPiece,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdoptedPiece {
    /// `content` is the caller's number for the bytes, see [`Contents`].
    File {
        executable: bool,
        content: usize,
    },
    Link {
        target: Vec<u8>,
    },
    /// Not available, and why.
    LeftOut {
        is_dir: bool,
        why: String,
    },
}

/// Failure of the caller's [`Contents`].
pub type ContentsError = Box<dyn std::error::Error + Send + Sync>;

/// Source of the contents of an imported state.
pub trait Contents {
    /// Address and size of a content that was stored before.
    fn known(&self, content: usize) -> Option<(ContentHash, u64)>;
    /// Bytes of a content, or why they are not available.
    fn read(&mut self, content: usize) -> Result<Vec<u8>, ContentsError>;
    /// Called when a content was stored.
    fn stored(&mut self, content: usize, hash: ContentHash, size: u64);
}

/// Result of an import.
#[derive(Debug)]
pub struct Adopted {
    pub manifest: Manifest,
    /// Paths that are not in it, and why.
    pub left_out: Vec<(Vec<u8>, String)>,
}

impl SnapshotManager {
    /// Make the next snapshot from a state of the first root at `time` that `from` kept. The tree is not read. If the
    /// contents need more than `budget` bytes, the import fails and changes nothing.
    pub fn adopt(
        &mut self,
        state: &[ImportedPath],
        contents: &mut dyn Contents,
        time: Time,
        from: &str,
        budget: Option<u64>,
    ) -> Result<Adopted> {
        let held = self.enter()?;
        let root = self.roots.first().cloned().ok_or_else(|| self.no_baseline())?;
        let record = self.session.record()?;
        let record = record.unwrap_or_else(|| SnapshotList::new(self.roots.clone(), self.started));
        let writer = self.store.writer(WriteOptions { compress: true, budget, ..WriteOptions::default() })?;
        let mut appender = writer.appender()?;
        let mut left_out = Vec::new();
        let mut tree = Folders::new(time);
        for foreign in state {
            let put = tree.add(foreign, contents, &mut appender, &writer);
            left_out.extend(put?.map(|why| (foreign.path.clone(), why)));
        }
        let note = CoverageNote::Foreign { from: from.to_owned() };
        let mut coverage = Coverage { notes: vec![note], ..Coverage::default() };
        let (top, merkle) = tree.build(&root, &mut appender, &mut coverage)?;
        let rules = FrozenRules::unseen(self.exclusion.clone()).encode();
        let rules_hash = content_hash(&rules);
        appender.put(ObjectKey::rules(rules_hash), &rules)?;
        appender.finish()?;
        let published = writer.publish()?;
        self.written.fetch_add(published.bytes, Ordering::Relaxed);
        let name = root.file_name().and_then(|name| Name::new(name.as_encoded_bytes()));
        let name = name.ok_or_else(|| SnapshotError::NoName { path: root.clone() })?;
        let entry = Entry { name, meta: meta(0o755, time), kind: Kind::Dir { tree: top, merkle } };
        let content = RootContent::Captured(entry);
        let state = SnapshotState { roots: vec![RootState { path: root, content }] };
        let rules = vec![Some(rules_hash)];
        let (counts, deferred) = (ScanCounts::default(), HashSet::new());
        let captured = Captured { state, rules, coverage, counts, deferred, published };
        let id = SnapshotId::Number(record.last_number().map_or(0, |last| last + 1));
        let seconds = u64::try_from(time.seconds).unwrap_or(0);
        let at = crate::time::iso_ms(seconds.saturating_mul(1000));
        let manifest = self.publish_at(&held, record, captured, id, None, at)?;
        Ok(Adopted { manifest, left_out })
    }
}

fn meta(mode: u16, mtime: Time) -> Meta {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    Meta { mode, mtime, uid, gid, ..Meta::default() }
}

/// Entry at a name.
enum NameState {
    Entry(Meta, Kind),
    Omitted {
        is_dir: bool,
        why: String,
    },
    /// A directory, whose content is in the map.
    Folder,
}

/// Directories by path, each after its parent.
struct Folders {
    time: Time,
    all: BTreeMap<Vec<u8>, BTreeMap<Name, NameState>>,
}

impl Folders {
    fn new(time: Time) -> Folders {
        Folders { time, all: BTreeMap::from([(Vec::new(), BTreeMap::new())]) }
    }

    /// Add one path; returns the reason if it cannot be added.
    fn add(
        &mut self,
        foreign: &ImportedPath,
        contents: &mut dyn Contents,
        appender: &mut Appender<'_>,
        writer: &StoreWriter<'_>,
    ) -> Result<Option<String>> {
        let names: Option<Vec<Name>> = foreign.path.split(|byte| *byte == b'/').map(Name::new).collect();
        let Some((last, above)) = names.as_deref().and_then(<[Name]>::split_last) else {
            return Ok(Some("its path leads out of the root".to_owned()));
        };
        if let Some(git) =
            names.iter().flatten().position(|name| name.as_bytes().eq_ignore_ascii_case(b".git"))
        {
            let why = "files inside a `.git` are never imported".to_owned();
            let (place, name) = (above.get(..git).unwrap_or(above), names.iter().flatten().nth(git));
            if let (Some(dir), Some(name)) = (self.folder(place), name) {
                let is_dir = git < above.len();
                dir.entry(name.clone()).or_insert(NameState::Omitted { is_dir, why: why.clone() });
            }
            return Ok(Some(why));
        }
        let time = self.time;
        let Some(dir) = self.folder(above).filter(|dir| !dir.contains_key(last)) else {
            return Ok(Some("another entry has its name".to_owned()));
        };
        let slot = match &foreign.piece {
            AdoptedPiece::LeftOut { is_dir, why } => NameState::Omitted { is_dir: *is_dir, why: why.clone() },
            AdoptedPiece::Link { target } => {
                NameState::Entry(meta(0o777, time), Kind::Symlink { target: target.clone().into() })
            }
            AdoptedPiece::File { executable, content } => match put(*content, contents, appender, writer)? {
                Ok((hash, size)) => {
                    let mode = if *executable { 0o755 } else { 0o644 };
                    NameState::Entry(meta(mode, time), Kind::File { hash, size, sparse: false })
                }
                Err(why) => NameState::Omitted { is_dir: false, why: why.to_string() },
            },
        };
        let why = match &slot {
            NameState::Omitted { why, .. } => Some(why.clone()),
            _ => None,
        };
        dir.insert(last.clone(), slot);
        Ok(why)
    }

    /// The directory at these names, created with its parents; `None` if another entry is in the way.
    fn folder(&mut self, names: &[Name]) -> Option<&mut BTreeMap<Name, NameState>> {
        let mut path = Vec::new();
        for name in names {
            let parent = self.all.entry(path.clone()).or_default();
            match parent.entry(name.clone()).or_insert(NameState::Folder) {
                NameState::Folder => {}
                _ => return None,
            }
            path.extend_from_slice(b"/");
            path.extend_from_slice(name.as_bytes());
        }
        Some(self.all.entry(path).or_default())
    }

    /// Build the nodes bottom up: a directory's path sorts after its parent's.
    fn build(
        self,
        root: &std::path::Path,
        appender: &mut Appender<'_>,
        coverage: &mut Coverage,
    ) -> Result<(TreeId, MerkleRoot)> {
        let mut done: BTreeMap<Vec<u8>, (TreeId, MerkleRoot)> = BTreeMap::new();
        let time = self.time;
        for (path, slots) in self.all.into_iter().rev() {
            let mut node = Node::default();
            for (name, slot) in slots {
                let (meta, kind) = match slot {
                    NameState::Omitted { is_dir, why } => {
                        let reason = Reason::NotHeld(why);
                        node.omitted.push(Omitted { name, is_dir, reason, stamp: None });
                        continue;
                    }
                    NameState::Entry(meta, kind) => (meta, kind),
                    NameState::Folder => {
                        let below = [path.as_slice(), b"/", name.as_bytes()].concat();
                        let Some((tree, merkle)) = done.remove(&below) else { continue };
                        (meta(0o755, time), Kind::Dir { tree, merkle })
                    }
                };
                coverage.count(&kind);
                node.entries.push(Entry { name, meta, kind });
            }
            let below = path.get(1..).unwrap_or_default();
            coverage.leave_out(&root.join(paths::from_bytes(below)), &node.omitted);
            let bytes = node.encode();
            let tree = tree_id(&bytes);
            appender.put(ObjectKey::from(tree), &bytes)?;
            done.insert(path, (tree, node.merkle()));
        }
        coverage.directories += 1;
        done.remove([].as_slice()).ok_or_else(|| SnapshotError::NoName { path: root.to_owned() })
    }
}

/// Store a content unless it is stored. The inner error says why it is not available.
fn put(
    content: usize,
    contents: &mut dyn Contents,
    appender: &mut Appender<'_>,
    writer: &StoreWriter<'_>,
) -> Result<Result<(ContentHash, u64), ContentsError>> {
    if let Some((hash, size)) = contents.known(content)
        && writer.contains(ObjectKey::from(hash))?
    {
        return Ok(Ok((hash, size)));
    }
    let bytes = match contents.read(content) {
        Ok(bytes) => bytes,
        Err(why) => return Ok(Err(why)),
    };
    let new = store(&bytes, appender)?;
    contents.stored(content, new.hash, new.size);
    Ok(Ok((new.hash, new.size)))
}
