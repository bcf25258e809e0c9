//! Kit shared by the tests of the engine's laws: a world in a temporary folder, independent oracles (find, getfattr,
//! getfacl, sha256sum), and a way to run one test as an ordinary user.

pub(crate) mod user;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use nono_testkit::{git, is_root, noise, sh, skip, write};

use nono_snapshot::{
    Cause, ExclusionConfig, Limits, ManagerOptions, Manifest, RestoreOptions, Restored, SnapshotId,
    SnapshotManager,
};

/// A tree, and a session folder beside it.
pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) tree: PathBuf,
    pub(crate) session: PathBuf,
}

impl World {
    pub(crate) fn new() -> World {
        World::on(&std::env::temp_dir())
    }

    /// A world on the filesystem of that folder.
    pub(crate) fn on(place: &Path) -> World {
        let dir = tempfile::Builder::new().prefix("laws-").tempdir_in(place).unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (tree, session) = (base.join("tree"), base.join("session"));
        std::fs::create_dir(&tree).unwrap();
        World { dir, tree, session }
    }

    pub(crate) fn manager(&self) -> SnapshotManager {
        self.manager_with(ExclusionConfig::default())
    }

    pub(crate) fn manager_with(&self, exclusion: ExclusionConfig) -> SnapshotManager {
        self.manager_on(&[&self.tree], exclusion)
    }

    pub(crate) fn manager_on(&self, roots: &[&Path], exclusion: ExclusionConfig) -> SnapshotManager {
        SnapshotManager::with_options(
            &self.session,
            roots.iter().copied(),
            exclusion,
            Limits::NONE,
            by_hand(),
        )
        .unwrap()
    }

    pub(crate) fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.tree.join(name.as_ref())
    }

    /// Write a file, creating its parent directories.
    pub(crate) fn write(&self, name: impl AsRef<OsStr>, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        write(&path, text);
        path
    }

    pub(crate) fn read(&self, name: impl AsRef<OsStr>) -> String {
        String::from_utf8_lossy(&std::fs::read(self.path(name)).unwrap()).into_owned()
    }

    pub(crate) fn exists(&self, name: impl AsRef<OsStr>) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    /// Run a shell script in the tree; it must succeed.
    pub(crate) fn sh(&self, script: &str) {
        sh(&self.tree, script);
    }
}

pub(crate) fn by_hand() -> ManagerOptions {
    ManagerOptions { settle_by_hand: true, ..ManagerOptions::default() }
}

pub(crate) fn bytes(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

/// Assert that nothing failed and nothing was skipped in a restore.
pub(crate) fn clean(restored: &Restored) {
    assert!(restored.failed.is_empty(), "failed: {:#?}", restored.failed);
    assert!(restored.skipped.is_empty(), "skipped: {:#?}", restored.skipped);
    assert!(!restored.cancelled);
}

pub(crate) fn go_back(manager: &mut SnapshotManager, id: &SnapshotId) -> Restored {
    manager.restore(id, &RestoreOptions::default()).unwrap()
}

/// Number of names excluded for this cause.
pub(crate) fn left_out(manifest: &Manifest, cause: Cause) -> u64 {
    let found = manifest.coverage.left_out.iter().find(|left_out| left_out.cause == cause);
    found.map_or(0, |left_out| left_out.entries)
}

/// Assert that no file of nono's is left in the tree.
pub(crate) fn no_debris(tree: &Path) {
    let out = Command::new("find").arg(tree).args(["-name", ".nono-*"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), "", "debris");
}
