//! Changes that take effect in sandboxed runs of one project only, kept from run to run.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nono_sys::fs;
use nono_sys::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::merge::KeyChange;

/// The kept changes of one project, by the settings file they belong to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct KeptChanges {
    #[serde(with = "nono_sys::path_serde")]
    project: PathBuf,
    files: BTreeMap<String, Vec<KeyChange>>,
}

/// Folder of kept changes, with one file per project.
#[derive(Clone, Debug)]
pub(super) struct KeptDir {
    dir: PathBuf,
}

impl KeptDir {
    pub(super) fn new(state_dir: &Path) -> KeptDir {
        KeptDir { dir: state_dir.join("agents") }
    }

    fn file(&self, project: &Path) -> PathBuf {
        let digest = Sha256::digest(project.as_os_str().as_encoded_bytes());
        self.dir.join(hex::encode(digest.get(..8).unwrap_or(&digest))).with_extension("json")
    }

    /// Read the kept changes of a project. If they cannot be read, the agent asks its questions again.
    pub(super) fn load(&self, project: &Path) -> KeptChanges {
        let read = std::fs::read(self.file(project)).ok();
        let kept = read.and_then(|bytes| serde_json::from_slice::<KeptChanges>(&bytes).ok());
        let own = kept.filter(|kept| kept.project == project);
        own.unwrap_or_else(|| KeptChanges { project: project.to_owned(), ..KeptChanges::default() })
    }

    /// Change the record of a project under the lock.
    pub(super) fn update(&self, project: &Path, change: impl FnOnce(&mut KeptChanges)) -> io::Result<()> {
        let _held = self.lock()?;
        let mut kept = self.load(project);
        change(&mut kept);
        fs::write_whole(&self.file(project), &serde_json::to_vec(&kept)?)
    }

    /// Wait for other sessions to finish saving, and hold the lock.
    pub(super) fn lock(&self) -> io::Result<File> {
        match fs::make_dir(&self.dir, 0o700) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => result?,
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(self.dir.join("lock"))?;
        file.lock()?;
        Ok(file)
    }
}

impl KeptChanges {
    pub(super) fn of(&self, outside: &Path) -> &[KeyChange] {
        self.files.get(&key(outside)).map_or(&[], Vec::as_slice)
    }

    /// Add changes to the kept ones; a later change to the same key replaces the earlier one.
    pub(super) fn add(&mut self, outside: &Path, changes: &[KeyChange]) {
        let known = self.files.entry(key(outside)).or_default();
        for change in changes {
            let concerns = |other: &KeyChange| {
                other.key.starts_with(&change.key)
                    || change.value.is_some() && change.key.starts_with(&other.key)
            };
            // A key below an object that is kept as a whole is kept separately.
            known
                .retain(|other| !concerns(other) || (other.key.len() < change.key.len() && is_object(other)));
            known.push(change.clone());
        }
    }
}

fn is_object(change: &KeyChange) -> bool {
    change.value.as_ref().is_some_and(serde_json::Value::is_object)
}

fn key(outside: &Path) -> String {
    outside.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(key: &[&str], value: Option<serde_json::Value>) -> KeyChange {
        KeyChange { key: key.iter().map(|name| (*name).to_owned()).collect(), value }
    }

    #[test]
    fn the_later_change_counts_and_others_stay() {
        let mut kept = KeptChanges::default();
        let file = Path::new("/h/.x.json");
        kept.add(file, &[change(&["a", "b"], Some(json!(1))), change(&["c"], Some(json!({})))]);
        kept.add(file, &[change(&["a", "b"], None), change(&["c", "d"], Some(json!(2)))]);
        assert_eq!(
            kept.of(file),
            [change(&["c"], Some(json!({}))), change(&["a", "b"], None), change(&["c", "d"], Some(json!(2)))]
        );
        assert!(kept.of(Path::new("/other")).is_empty());
    }

    #[test]
    fn projects_are_kept_apart_and_damage_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let kept = KeptDir::new(dir.path());
        let file = Path::new("/h/.x.json");
        kept.update(Path::new("/p"), |kept| kept.add(file, &[change(&["a"], Some(json!(1)))])).unwrap();
        assert_eq!(kept.load(Path::new("/p")).of(file).len(), 1);
        assert!(kept.load(Path::new("/q")).of(file).is_empty());
        std::fs::write(kept.file(Path::new("/p")), "{").unwrap();
        assert!(kept.load(Path::new("/p")).of(file).is_empty());
    }
}
