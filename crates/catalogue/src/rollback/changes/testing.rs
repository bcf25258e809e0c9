//! Test fixture: two states of a tree as values, on disk, and as the two snapshots of a session.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use nono_snapshot::{ExclusionConfig, Limits, SnapshotManager};
use tempfile::TempDir;

use super::{ChangeSet, Item};

/// Content of a path. Directories are implied by what they contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::rollback) enum TestNode {
    File(Vec<u8>, bool),
    Link(Vec<u8>),
}

/// Nodes by path below the root (any bytes).
pub(in crate::rollback) type TestTree = BTreeMap<Vec<u8>, TestNode>;

pub(in crate::rollback) fn file(content: impl AsRef<[u8]>) -> TestNode {
    TestNode::File(content.as_ref().to_vec(), false)
}

pub(in crate::rollback) fn program(content: impl AsRef<[u8]>) -> TestNode {
    TestNode::File(content.as_ref().to_vec(), true)
}

pub(in crate::rollback) fn link(target: impl AsRef<[u8]>) -> TestNode {
    TestNode::Link(target.as_ref().to_vec())
}

pub(in crate::rollback) fn tree(nodes: &[(&str, TestNode)]) -> TestTree {
    nodes.iter().map(|(path, node)| (path.as_bytes().to_vec(), node.clone())).collect()
}

/// Text with one line for each number.
pub(in crate::rollback) fn numbered(numbers: std::ops::Range<usize>) -> String {
    numbers.fold(String::new(), |text, number| text + &format!("this is line number {number}\n"))
}

pub(in crate::rollback) fn path(bytes: &[u8]) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

pub(in crate::rollback) fn write(root: &Path, tree: &TestTree) {
    fs::create_dir_all(root).unwrap();
    for (name, node) in tree {
        let path = root.join(path(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match node {
            TestNode::File(content, executable) => {
                fs::write(&path, content).unwrap();
                let mode = if *executable { 0o755 } else { 0o644 };
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
            TestNode::Link(target) => symlink(self::path(target), &path).unwrap(),
        }
    }
}

pub(in crate::rollback) fn read(root: &Path) -> TestTree {
    let mut tree = TestTree::new();
    let mut dirs = vec![root.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
            if meta.is_dir() {
                dirs.push(path);
            } else if meta.is_symlink() {
                tree.insert(name, TestNode::Link(fs::read_link(&path).unwrap().into_os_string().into_vec()));
            } else {
                let executable = meta.permissions().mode() & 0o100 != 0;
                tree.insert(name, TestNode::File(fs::read(&path).unwrap(), executable));
            }
        }
    }
    tree
}

/// A session whose baseline is one tree and whose last snapshot is another.
pub(in crate::rollback) struct Sample {
    _dir: TempDir,
    pub(in crate::rollback) manager: SnapshotManager,
    pub(in crate::rollback) root: PathBuf,
}

pub(in crate::rollback) fn everything() -> ExclusionConfig {
    ExclusionConfig { use_gitignore: false, artifacts: false, ..ExclusionConfig::default() }
}

impl Sample {
    pub(in crate::rollback) fn new(old: &TestTree, new: &TestTree) -> Sample {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("root");
        write(&root, old);
        let session = dir.path().join("session");
        let mut manager = SnapshotManager::new(session, [&root], everything(), Limits::NONE).unwrap();
        manager.create_baseline().unwrap();
        fs::remove_dir_all(&root).unwrap();
        write(&root, new);
        manager.create_incremental().unwrap();
        Sample { _dir: dir, manager, root }
    }

    pub(in crate::rollback) fn changes(&self) -> ChangeSet {
        ChangeSet::between(&self.manager, &0.into(), &1.into()).unwrap()
    }

    /// One line for each change: `created a`, `renamed a -> b`.
    pub(in crate::rollback) fn summary(&self) -> Vec<String> {
        let set = self.changes();
        set.items.iter().map(|item| line(&set, item)).collect()
    }
}

fn line(set: &ChangeSet, item: &Item) -> String {
    let shown = |path: &Path| set.shown(path).to_string_lossy().into_owned();
    match &item.kind {
        super::ItemKind::Renamed { from } => format!("renamed {} -> {}", shown(from), shown(&item.path)),
        kind => format!("{kind:?} {}", shown(&item.path)).to_lowercase(),
    }
}
