//! A place for fault tests: a tree, a session folder, perhaps a store beside it; saved once and put back for each round
//! (records and notes hold absolute paths, so every round is at the same place).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nono_snapshot::{ExclusionConfig, Limits, ManagerOptions, SnapshotError, SnapshotManager};

/// A folder in memory if possible, so that syncing costs nothing.
pub(crate) fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    match tempfile::tempdir_in(memory) {
        Ok(dir) => dir,
        Err(_) => tempfile::tempdir().unwrap(),
    }
}

pub(crate) struct Lab {
    pub(crate) base: PathBuf,
}

impl Lab {
    pub(crate) fn at(base: &Path) -> Lab {
        let base = base.canonicalize().unwrap();
        fs::create_dir_all(base.join("now/tree")).unwrap();
        Lab { base }
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.base.join("now/tree")
    }

    pub(crate) fn session(&self) -> PathBuf {
        self.base.join("now/session")
    }

    /// The shared store, if it is not the session's own.
    pub(crate) fn shared(&self) -> PathBuf {
        self.base.join("now/shared")
    }

    pub(crate) fn manager(&self) -> Result<SnapshotManager, SnapshotError> {
        let store = self.shared();
        self.manager_with(self.session(), store.is_dir().then_some(store))
    }

    pub(crate) fn manager_with(
        &self,
        session: PathBuf,
        store: Option<PathBuf>,
    ) -> Result<SnapshotManager, SnapshotError> {
        let options = ManagerOptions { store, settle_by_hand: true, ..ManagerOptions::default() };
        SnapshotManager::with_options(session, [self.tree()], plain(), Limits::NONE, options)
    }

    pub(crate) fn save(&self, name: &str) {
        copy(&self.base.join("now"), &self.base.join(name));
    }

    /// Restore a saved state.
    pub(crate) fn reset(&self, name: &str) {
        let now = self.base.join("now");
        if now.exists() {
            fs::remove_dir_all(&now).unwrap();
        }
        copy(&self.base.join(name), &now);
    }

    /// Folder of the store in use.
    pub(crate) fn store(&self) -> PathBuf {
        if self.shared().is_dir() { self.shared() } else { self.session().join("store") }
    }

    /// Everything in the tree, the session and the store that nothing refers to.
    pub(crate) fn debris(&self) -> Vec<PathBuf> {
        let mut debris: Vec<PathBuf> = files(&self.tree()).into_iter().filter(|path| is_ours(path)).collect();
        let record = self.recorded();
        for path in files(&self.session()).into_iter().chain(files(&self.shared())) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let stem = name.trim_end_matches(".json").to_owned();
            let parent =
                path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
            let manifest = parent == "snapshots" || parent == "safety";
            let orphan = match parent.as_str() {
                "packs" => !path.with_extension("idx").exists() || !path.with_extension("pack").exists(),
                _ => manifest && !record.contains(&stem),
            };
            let in_tmp = path.starts_with(self.store().join("tmp"));
            let temporary = name.contains(".tmp")
                || name == "restore.journal"
                || name == "unlocked"
                || name.starts_with("FORMAT.");
            if orphan || in_tmp || temporary {
                debris.push(path);
            }
        }
        if let Ok(entries) = fs::read_dir(self.store().join("tmp")) {
            debris.extend(entries.map(|entry| entry.unwrap().path()));
        }
        debris
    }

    /// Names of the manifests that the record names and did not drop.
    fn recorded(&self) -> BTreeSet<String> {
        let Ok(text) = fs::read_to_string(self.session().join("record.json")) else { return BTreeSet::new() };
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        let name = |one: &serde_json::Value| {
            let file = Path::new(one["file"].as_str().unwrap());
            file.file_stem().unwrap().to_string_lossy().into_owned()
        };
        let there = record["snapshots"].as_array().unwrap().iter();
        there.filter(|one| one["thinned"] == false).map(name).collect()
    }
}

fn is_ours(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".nono-"))
}

pub(crate) fn plain() -> ExclusionConfig {
    ExclusionConfig::default()
}

/// All files below that are not directories.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(dir) = waiting.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for entry in entries {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            } else {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn copy(from: &Path, to: &Path) {
    run(Command::new("cp").arg("-a").arg(from).arg(to));
}

#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {}\n{text}", String::from_utf8_lossy(&output.stderr));
    text
}

#[track_caller]
pub(crate) fn assert_clean(manager: &mut SnapshotManager, when: &str) {
    let report = manager.verify().unwrap_or_else(|error| panic!("{when}: verify: {error}"));
    assert!(report.is_clean(), "{when}: {report:?}");
}

pub(crate) use nono_testkit::skip;
