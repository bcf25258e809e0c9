//! Deep trees.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use nono_snapshot::hash::{ContentHash, TreeId, content_hash};
use nono_snapshot::node::{Entry, Kind, Meta, Name, Node, Time, tree_id};
use nono_snapshot::restore::{RestoreRequest, Selection, apply, plan};
use nono_snapshot::state::{ObjectError, ObjectName, Objects, RootContent, RootState, SnapshotState};

use crate::kit::World;

#[derive(Default)]
struct Memory(Mutex<HashMap<TreeId, Arc<Node>>>);

const CONTENT: &[u8] = b"at the bottom";

impl Objects for Memory {
    fn node(&self, id: TreeId) -> Result<Arc<Node>, ObjectError> {
        let found = self.0.lock().unwrap().get(&id).cloned();
        found.ok_or(ObjectError::Missing { what: ObjectName::Tree(id) })
    }

    fn write_file(&self, _: ContentHash, _: u64, _: bool, out: BorrowedFd<'_>) -> Result<(), ObjectError> {
        assert_eq!(rustix::io::write(out, CONTENT), Ok(CONTENT.len()));
        Ok(())
    }

    fn keep_file(&self, _: BorrowedFd<'_>, _: u64) -> Result<ContentHash, ObjectError> {
        Err(ObjectError::Missing { what: ObjectName::Content(content_hash(CONTENT)) })
    }
}

impl Memory {
    fn dir(&self, name: &[u8], entries: Vec<Entry>) -> Entry {
        let node = Node { entries, omitted: Vec::new() };
        let (tree, merkle) = (tree_id(&node.encode()), node.merkle());
        self.0.lock().unwrap().insert(tree, Arc::new(node));
        entry(name, 0o755, Kind::Dir { tree, merkle })
    }
}

fn entry(name: &[u8], mode: u16, kind: Kind) -> Entry {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let meta = Meta { mode, mtime: Time { seconds: 1000, nanos: 7 }, uid, gid, ..Meta::default() };
    Entry { name: Name::new(name).unwrap(), meta, kind }
}

/// Each level has a second directory, so that descriptors that were given up are needed again on the way up.
fn deep(objects: &Memory, levels: usize, name: &[u8]) -> Entry {
    let hash = content_hash(CONTENT);
    let size = CONTENT.len() as u64;
    let mut below = entry(b"bottom", 0o644, Kind::File { hash, size, sparse: false });
    for level in 0..levels {
        let mut entries = vec![below];
        if level % 1000 == 999 {
            entries.push(objects.dir(b"z", Vec::new()));
        }
        below = objects.dir(if level + 1 == levels { b"root" } else { name }, entries);
    }
    below
}

fn there_and_back(levels: usize, name: &[u8]) {
    let world = World::in_memory();
    let objects = Memory::default();
    let state = |entry: Entry| SnapshotState {
        roots: vec![RootState { path: world.root(), content: RootContent::Captured(entry) }],
    };
    let full = state(deep(&objects, levels, name));
    let empty = state(objects.dir(b"root", Vec::new()));
    for (target, current) in [(&full, &empty), (&empty, &full)] {
        let request = RestoreRequest {
            target,
            current,
            selection: &Selection::All,
            except: &[],
            keep_changed_since: &[],
            force: false,
            resumed: None,
        };
        let plan = plan(&request, &objects).unwrap();
        let journal = world.begin().unwrap();
        let outcome = apply(&plan, &objects, &journal, &());
        journal.finish().unwrap();
        assert!(outcome.failed.is_empty() && outcome.skipped.is_empty(), "{:?}", outcome.skipped.len());
        assert_eq!(outcome.done, plan.len() as u64);
    }
    assert_eq!(std::fs::read_dir(world.root()).unwrap().count(), 0);
}

#[test]
fn a_hundred_thousand_levels() {
    there_and_back(100_000, b"d");
}

#[test]
fn longest_names_beyond_what_a_path_can_say() {
    there_and_back(500, &[b'n'; 255]);
}
