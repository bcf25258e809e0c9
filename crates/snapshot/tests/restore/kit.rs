//! A tree, a tiny scanner, and objects as plain files.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use nono_snapshot::hash::{ContentHash, TreeId, content_hash};
use nono_snapshot::node::{Entry, Kind, Meta, Name, Node, Omitted, Reason, Time, Xattr, tree_id};
use nono_snapshot::restore::{
    Journal, JournalRecord, RestoreId, RestoreOutcome, RestorePlan, RestoreRequest, Selection, apply, plan,
    preflight, verify,
};
use nono_snapshot::state::{
    ObjectError, ObjectName, Objects, Observer, RootContent, RootState, SnapshotState,
};

/// Tests that make the disk fail run alone.
static ALONE: RwLock<()> = RwLock::new(());

#[derive(Debug)]
pub(crate) enum Guard {
    Shared { _guard: RwLockReadGuard<'static, ()> },
    Alone { _guard: RwLockWriteGuard<'static, ()> },
}

#[derive(Debug)]
pub(crate) struct Files(pub(crate) PathBuf);

impl Files {
    fn save(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.join(name), bytes).unwrap();
    }

    pub(crate) fn content(&self, hash: ContentHash) -> Option<Vec<u8>> {
        fs::read(self.0.join(format!("c{hash}"))).ok()
    }

    pub(crate) fn add_content(&self, bytes: &[u8]) -> ContentHash {
        let hash = content_hash(bytes);
        self.save(&format!("c{hash}"), bytes);
        hash
    }

    pub(crate) fn add_node(&self, node: &Node) -> Kind {
        let bytes = node.encode();
        let tree = tree_id(&bytes);
        self.save(&format!("t{tree}"), &bytes);
        Kind::Dir { tree, merkle: node.merkle() }
    }
}

impl Objects for Files {
    fn node(&self, id: TreeId) -> Result<Arc<Node>, ObjectError> {
        let missing = || ObjectError::Missing { what: ObjectName::Tree(id) };
        let bytes = fs::read(self.0.join(format!("t{id}"))).map_err(|_| missing())?;
        Ok(Arc::new(Node::decode(&bytes).unwrap()))
    }

    fn write_file(
        &self,
        hash: ContentHash,
        size: u64,
        _sparse: bool,
        out: BorrowedFd<'_>,
    ) -> Result<(), ObjectError> {
        let missing = ObjectError::Missing { what: ObjectName::Content(hash) };
        let bytes = self.content(hash).filter(|bytes| bytes.len() as u64 == size).ok_or(missing)?;
        let io = |source| ObjectError::Io { path: self.0.clone(), source };
        File::from(out.try_clone_to_owned().map_err(io)?).write_all(&bytes).map_err(io)
    }

    fn keep_file(&self, file: BorrowedFd<'_>, size: u64) -> Result<ContentHash, ObjectError> {
        let io = |source| ObjectError::Io { path: self.0.clone(), source };
        let mut bytes = Vec::new();
        let file = File::from(file.try_clone_to_owned().map_err(io)?);
        file.take(size).read_to_end(&mut bytes).map_err(io)?;
        Ok(self.add_content(&bytes))
    }
}

/// Selects entries that a scan excludes.
pub(crate) type Omit<'a> = &'a dyn Fn(&Path) -> Option<Reason>;

pub(crate) struct World {
    pub(crate) base: tempfile::TempDir,
    pub(crate) objects: Files,
    /// A process works in the tree while it is restored.
    pub(crate) is_racing: std::cell::Cell<bool>,
    _guard: Guard,
}

impl World {
    pub(crate) fn new() -> World {
        Self::with(Guard::Shared { _guard: ALONE.read().unwrap_or_else(std::sync::PoisonError::into_inner) })
    }

    #[allow(dead_code, reason = "for tests with failpoints")]
    pub(crate) fn alone() -> World {
        Self::with(Guard::Alone { _guard: ALONE.write().unwrap_or_else(std::sync::PoisonError::into_inner) })
    }

    /// In memory, if possible: for trees that take minutes on a disk.
    pub(crate) fn in_memory() -> World {
        let guard = Guard::Shared { _guard: ALONE.read().unwrap_or_else(std::sync::PoisonError::into_inner) };
        match tempfile::tempdir_in("/dev/shm") {
            Ok(base) => Self::furnished(base, guard),
            Err(_) => Self::with(guard),
        }
    }

    fn with(guard: Guard) -> World {
        Self::furnished(tempfile::tempdir().unwrap(), guard)
    }

    fn furnished(base: tempfile::TempDir, guard: Guard) -> World {
        let objects = Files(base.path().join("objects"));
        fs::create_dir(&objects.0).unwrap();
        let world = World { base, objects, is_racing: std::cell::Cell::new(false), _guard: guard };
        fs::create_dir(world.root()).unwrap();
        world
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.base.path().canonicalize().unwrap().join("root")
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    pub(crate) fn mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn snap(&self) -> SnapshotState {
        self.snap_without(&|_| None)
    }

    pub(crate) fn snap_without(&self, omit: Omit<'_>) -> SnapshotState {
        scan(&self.root(), &self.objects, omit)
    }

    /// A whole restore: plan with a new safety snapshot, journal, apply.
    pub(crate) fn restore(&self, target: &SnapshotState) -> RestoreOutcome {
        self.restore_with(target, &self.snap(), &Selection::All)
    }

    pub(crate) fn restore_with(
        &self,
        target: &SnapshotState,
        current: &SnapshotState,
        selection: &Selection,
    ) -> RestoreOutcome {
        self.apply(&self.plan(target, current, selection), &())
    }

    pub(crate) fn plan(
        &self,
        target: &SnapshotState,
        current: &SnapshotState,
        selection: &Selection,
    ) -> RestorePlan {
        let request = RestoreRequest {
            target,
            current,
            selection,
            except: &[],
            keep_changed_since: &[],
            force: false,
            resumed: None,
        };
        plan(&request, &self.objects).unwrap()
    }

    pub(crate) fn apply(&self, plan: &RestorePlan, observer: &dyn Observer) -> RestoreOutcome {
        preflight(plan).unwrap();
        let journal = self.begin().unwrap();
        let outcome = apply(plan, &self.objects, &journal, observer);
        journal.finish().unwrap();
        let wrong = verify(plan, &outcome);
        assert!(wrong.is_empty() || outcome.cancelled || self.is_racing.get(), "{wrong:?}");
        outcome
    }

    pub(crate) fn journal_path(&self) -> PathBuf {
        self.base.path().join("journal")
    }

    pub(crate) fn begin(&self) -> Result<Journal, nono_snapshot::restore::JournalError> {
        let record = JournalRecord {
            id: RestoreId::random().unwrap(),
            target: "target".into(),
            safety: "safety".into(),
            keep_changed_since: Vec::new(),
            force: false,
            roots: vec![self.root()],
            selection: Selection::All,
            except: Vec::new(),
        };
        Journal::begin(&self.journal_path(), record)
    }

    /// Everything that a restore must put back, as text.
    pub(crate) fn dump(&self) -> String {
        dump(&self.snap(), &self.objects)
    }

    /// Restore, and check that everything is back and nothing was left over or reported.
    pub(crate) fn check(&self, target: &SnapshotState) -> RestoreOutcome {
        let outcome = self.restore(target);
        assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
        assert!(outcome.skipped.is_empty(), "{:?}", outcome.skipped);
        assert_eq!(dump(target, &self.objects), self.dump());
        outcome
    }
}

pub(crate) fn scan(root: &Path, objects: &Files, omit: Omit<'_>) -> SnapshotState {
    let mut names: HashMap<u64, u64> = HashMap::new();
    count_names(root, &mut names);
    let content = match fs::symlink_metadata(root) {
        Ok(_) => RootContent::Captured(entry(root, objects, omit, &names)),
        Err(_) => RootContent::Absent,
    };
    SnapshotState { roots: vec![RootState { path: root.to_path_buf(), content }] }
}

fn children(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
    paths
}

fn count_names(path: &Path, names: &mut HashMap<u64, u64>) {
    let Ok(meta) = fs::symlink_metadata(path) else { return };
    if meta.is_dir() {
        children(path).iter().for_each(|child| count_names(child, names));
    } else {
        *names.entry(meta.ino()).or_default() += 1;
    }
}

fn entry(path: &Path, objects: &Files, omit: Omit<'_>, names: &HashMap<u64, u64>) -> Entry {
    let meta = fs::symlink_metadata(path).unwrap();
    let kind = if meta.is_dir() {
        let mut node = Node::default();
        for child in children(path) {
            let name = Name::new(child.file_name().unwrap().as_bytes()).unwrap();
            match omit(&child) {
                Some(reason) => {
                    node.omitted.push(Omitted { name, is_dir: child.is_dir(), reason, stamp: None });
                }
                None => node.entries.push(entry(&child, objects, omit, names)),
            }
        }
        objects.add_node(&node)
    } else if meta.is_symlink() {
        Kind::Symlink { target: fs::read_link(path).unwrap().as_os_str().as_bytes().into() }
    } else if meta.file_type().is_fifo() {
        Kind::Fifo
    } else if meta.file_type().is_socket() {
        Kind::Socket
    } else if meta.file_type().is_char_device() {
        Kind::CharDevice { rdev: meta.rdev() }
    } else {
        let bytes = fs::read(path).unwrap();
        Kind::File { hash: objects.add_content(&bytes), size: bytes.len() as u64, sparse: false }
    };
    let several = !meta.is_dir() && meta.nlink() > 1;
    let link = several.then_some(meta.ino());
    let linked_outside = several && names.get(&meta.ino()).is_some_and(|found| *found < meta.nlink());
    let meta = Meta {
        mode: u16::try_from(meta.mode() & 0o7777).unwrap(),
        mtime: Time { seconds: meta.mtime(), nanos: u32::try_from(meta.mtime_nsec()).unwrap() },
        uid: meta.uid(),
        gid: meta.gid(),
        link,
        linked_outside,
        xattrs: xattrs(path),
    };
    Entry { name: Name::new(path.file_name().unwrap().as_bytes()).unwrap(), meta, kind }
}

pub(crate) fn xattrs(path: &Path) -> Vec<Xattr> {
    let mut list = vec![0u8; 4096];
    let len = rustix::fs::llistxattr(path, &mut list[..]).unwrap_or(0);
    let mut found: Vec<Xattr> = list[..len]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| {
            let mut value = vec![0u8; 4096];
            let len = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap();
            Xattr { name: name.into(), value: value[..len].into() }
        })
        .collect();
    found.sort();
    found
}

/// One line for each entry; groups of names by the first of them.
pub(crate) fn dump(state: &SnapshotState, objects: &Files) -> String {
    let mut out = String::new();
    let mut groups: HashMap<u64, String> = HashMap::new();
    for root in &state.roots {
        if let RootContent::Captured(entry) = &root.content {
            dump_entry(entry, "", objects, &mut groups, &mut out);
        }
    }
    out
}

fn dump_entry(
    entry: &Entry,
    above: &str,
    objects: &Files,
    groups: &mut HashMap<u64, String>,
    out: &mut String,
) {
    let path = format!("{above}/{:?}", entry.name);
    let Meta { mode, mtime, uid, gid, link, xattrs, .. } = &entry.meta;
    let group = link.map(|link| groups.entry(link).or_insert_with(|| path.clone()).clone());
    let kind = match &entry.kind {
        Kind::Dir { .. } => "dir".to_string(),
        other => format!("{other:?}"),
    };
    writeln!(out, "{path} {mode:o} {mtime:?} {uid}:{gid} {group:?} {xattrs:?} {kind}").unwrap();
    if let Kind::Dir { tree, .. } = &entry.kind {
        let node = objects.node(*tree).unwrap();
        node.entries.iter().for_each(|entry| dump_entry(entry, &path, objects, groups, out));
        node.omitted.iter().for_each(|omitted| writeln!(out, "{path} {omitted:?}").unwrap());
    }
}

pub(crate) fn set_mtime(path: &Path, seconds: i64, nanos: i64) {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_OMIT};
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: nanos },
    };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

pub(crate) fn set_xattr(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::lsetxattr(path, name, value, rustix::fs::XattrFlags::empty()).unwrap();
}

pub(crate) fn inode(path: &Path) -> u64 {
    fs::symlink_metadata(path).unwrap().ino()
}
