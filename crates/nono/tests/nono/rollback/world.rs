//! A state folder, a project, and sessions in it that are made by the engine and the files that a run writes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nono::rollback::live_lock::LiveLock;
use nono::rollback::{Catalogue, ChangeCounts, RollbackSession, seals};
use nono::snapshot::{ExclusionConfig, Limits, ManagerOptions, SessionMetadata, SnapshotManager};

pub(crate) struct World {
    _temp: Option<tempfile::TempDir>,
    pub(crate) base: PathBuf,
    pub(crate) project: PathBuf,
    pub(crate) catalogue: Catalogue,
}

/// A session that runs.
pub(crate) struct Running {
    pub(crate) id: String,
    pub(crate) dir: PathBuf,
    pub(crate) manager: SnapshotManager,
    pub(crate) metadata: SessionMetadata,
    live: LiveLock,
    catalogue: Catalogue,
}

impl World {
    pub(crate) fn new() -> World {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        World { _temp: Some(temp), ..World::at(&base) }
    }

    /// The world in this folder, with what is there already.
    pub(crate) fn at(base: &Path) -> World {
        let (state, project) = (base.join("state"), base.join("project"));
        fs::create_dir_all(&state).unwrap();
        fs::create_dir_all(&project).unwrap();
        World { _temp: None, base: base.to_owned(), catalogue: Catalogue::new(state), project }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.project.join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Begin a session; `second` is the moment it starts, and its id.
    pub(crate) fn begin(&self, second: u32) -> Running {
        self.begin_on(second, &[&self.project])
    }

    pub(crate) fn begin_on(&self, second: u32, roots: &[&Path]) -> Running {
        let id = id(second);
        let (dir, live) = self.catalogue.begin_session(&id, &[]).unwrap();
        let roots: Vec<PathBuf> = roots.iter().map(|root| root.to_path_buf()).collect();
        let mut metadata = SessionMetadata::new(&id, vec!["make".to_owned()], roots.clone());
        metadata.started = format!("2026-01-01T00:{:02}:{:02}Z", second / 60, second % 60);
        let options = ManagerOptions {
            store: Some(self.catalogue.store_dir()),
            own: vec![self.base.join("state")],
            settle_by_hand: true,
            ..ManagerOptions::default()
        };
        let manager = SnapshotManager::with_options(
            &dir,
            &roots,
            ExclusionConfig::default(),
            Limits::default(),
            options,
        );
        let mut manager = manager.unwrap();
        manager.save_session_metadata(&metadata).unwrap();
        metadata.coverage = Some(manager.create_baseline().unwrap().coverage);
        Running { id, dir, manager, metadata, live, catalogue: self.catalogue.clone() }
    }

    /// A whole session: `work` is what its command does.
    pub(crate) fn session(&self, second: u32, work: impl FnOnce()) -> String {
        let running = self.begin(second);
        work();
        running.end()
    }

    pub(crate) fn open(&self, id: &str) -> RollbackSession {
        self.catalogue.open(self.catalogue.find(id).unwrap()).unwrap()
    }

    pub(crate) fn tree(&self) -> Tree {
        tree(&self.project)
    }
}

impl Running {
    /// The last snapshot, the record, the seal: as at the end of a run.
    pub(crate) fn end(mut self) -> String {
        let (last, _) = self.manager.create_incremental().unwrap();
        self.metadata.final_snapshot = Some(last.number);
        self.close()
    }

    /// The same without the last snapshot: it failed.
    pub(crate) fn close(mut self) -> String {
        self.metadata.ended = Some(self.metadata.started.replace("2026-01-01", "2026-01-02"));
        self.metadata.changes =
            self.metadata.changes.or(Some(ChangeCounts { modified: 1, ..ChangeCounts::default() }));
        self.metadata.exit_code = Some(0);
        self.write_end();
        seals::seal(&self.catalogue, &self.id, &self.dir).unwrap();
        self.live.end(&self.dir).unwrap();
        self.id
    }

    pub(crate) fn write_end(&mut self) {
        let record = self.manager.session().record().unwrap().unwrap();
        self.metadata.merkle_roots = record.snapshots.iter().map(|recorded| recorded.merkle_root).collect();
        self.metadata.snapshot_count = u32::try_from(record.snapshots.len()).unwrap();
        self.manager.save_session_metadata(&self.metadata).unwrap();
    }

    /// The supervisor is gone, and says nothing any more.
    pub(crate) fn killed(self) -> String {
        self.id
    }
}

pub(crate) fn id(second: u32) -> String {
    format!("20260101-00{:02}{:02}-77", second / 60, second % 60)
}

/// Everything about a tree that a restore puts back.
pub(crate) type Tree = BTreeMap<PathBuf, (String, u32, i64, i64, Vec<u8>)>;

pub(crate) fn tree(dir: &Path) -> Tree {
    let mut all = Tree::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(path) = waiting.pop() {
        let meta = path.symlink_metadata().unwrap();
        let content = if meta.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            Vec::new()
        } else if meta.is_symlink() {
            fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
        } else {
            fs::read(&path).unwrap()
        };
        let kind = format!("{:?}", meta.file_type());
        all.insert(path, (kind, meta.permissions().mode(), meta.mtime(), meta.mtime_nsec(), content));
    }
    all
}

/// The paths of a list, below the project.
pub(crate) fn names<'a>(world: &World, paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<String> {
    let name = |path: &PathBuf| path.strip_prefix(&world.project).unwrap().to_string_lossy().into_owned();
    paths.into_iter().map(name).collect()
}
