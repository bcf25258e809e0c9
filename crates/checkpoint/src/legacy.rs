//! Superseded state formats: moved as a whole to `legacy-<time>/`, listed, and removed by the user or by retention.
//! They are no longer read, but what they reference in the store stays as long as they do.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use nono_history::quota::disk_bytes;
use nono_sys::time::stamp;
use nono_sys::{fs, time};
use serde::Deserialize;

use crate::error::{CheckpointError, Result};
use crate::history;
use crate::manager::CheckpointManager;
use crate::project;

const PREFIX: &str = "legacy-";
/// Folder of the format before projects had folders of their own.
const BEFORE: &str = "checkpoints";

/// A folder of superseded formats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Legacy {
    pub path: PathBuf,
    pub bytes: u64,
    /// Time of the move in seconds since 1970, from its name; otherwise the time of its last change.
    pub since: u64,
}

impl Legacy {
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

pub(crate) fn is_name(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
}

/// Inverse of `stamp`, in seconds since 1970.
fn moment(name: &str) -> Option<u64> {
    let (date, clock) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let [year, month, day] = [date.get(..4)?, date.get(4..6)?, date.get(6..)?];
    let [hour, minute, second] = [clock.get(..2)?, clock.get(2..4)?, clock.get(4..6)?];
    time::seconds(&format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z"))
}

#[derive(Deserialize)]
struct LegacyFormat {
    #[serde(default)]
    format: u32,
}

impl CheckpointManager {
    /// Moves state of an older format aside. Returns its new path, if there was any.
    pub fn migrate(&self) -> Result<Option<PathBuf>> {
        let is_old = |dir: &PathBuf| {
            let bytes = nono_snapshot::file::read(&dir.join(history::FILE)).unwrap_or_default();
            serde_json::from_slice(&bytes).is_ok_and(|found: LegacyFormat| found.format < history::FORMAT)
        };
        let mut old: Vec<PathBuf> = self.project_dirs()?.into_iter().filter(is_old).collect();
        let before = self.host().state_dir.join(BEFORE);
        if before.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            old.push(before);
        }
        if old.is_empty() {
            return Ok(None);
        }
        let place = self.new_place()?;
        for path in old {
            let to = place.join(path.file_name().unwrap_or_default());
            // The store still finds it there, like every session in the state folder.
            std::fs::rename(&path, &to).map_err(CheckpointError::io(&path))?;
        }
        Ok(Some(place))
    }

    fn new_place(&self) -> Result<PathBuf> {
        let now = stamp(&time::now_iso());
        for count in 0..u32::MAX {
            let more = if count == 0 { String::new() } else { format!("-{count}") };
            let path = self.host().state_dir.join(format!("{PREFIX}{now}{more}"));
            match fs::make_dir(&path, 0o700) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                other => return other.map(|()| path.clone()).map_err(CheckpointError::io(path)),
            }
        }
        Err(CheckpointError::damaged(&self.host().state_dir, "it is full"))
    }

    /// Folders of superseded formats, oldest first.
    pub fn legacy(&self) -> Result<Vec<Legacy>> {
        let mut all = Vec::new();
        for path in entries(&self.host().state_dir)? {
            let name = path.file_name().unwrap_or_default();
            let Ok(meta) = path.symlink_metadata() else { continue };
            if !is_name(name) || !meta.is_dir() {
                continue;
            }
            let changed = meta.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
            let since = moment(&name.to_string_lossy()).or(changed.map(|changed| changed.as_secs()));
            all.push(Legacy { bytes: disk_bytes(&path)?, since: since.unwrap_or(0), path });
        }
        all.sort_by(|a, b| (a.since, &a.path).cmp(&(b.since, &b.path)));
        Ok(all)
    }

    /// Removes all folders of superseded formats, and returns them.
    pub fn clear_legacy(&self, dry_run: bool) -> Result<Vec<Legacy>> {
        let all = self.legacy()?;
        if !dry_run && !all.is_empty() {
            for legacy in &all {
                fs::remove_tree(&legacy.path).map_err(CheckpointError::io(&legacy.path))?;
            }
            self.collect()?;
        }
        Ok(all)
    }

    pub fn store_dir(&self) -> PathBuf {
        self.host().state_dir.join("store")
    }

    /// Folder of the project of this path, which has to be there; without a path, those of all projects.
    pub(crate) fn dirs_of(
        &self,
        path: Option<&Path>,
        is_there: impl FnOnce(&Path) -> Result<bool>,
    ) -> Result<Vec<PathBuf>> {
        let Some(path) = path else { return self.project_dirs() };
        let root = self.root_of(path)?.dir;
        let folder = project::folder_of(self.host(), &root);
        if is_there(&folder)? { Ok(vec![folder]) } else { Err(CheckpointError::NoProject { path: root }) }
    }

    /// Folders of all projects, sorted.
    pub(crate) fn project_dirs(&self) -> Result<Vec<PathBuf>> {
        let all = entries(&project::projects_dir(self.host()))?;
        let visible = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            !name.starts_with(b".") && path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
        };
        Ok(all.into_iter().filter(visible).collect())
    }
}

/// Entries of a folder, sorted; empty if it does not exist.
pub(crate) fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut all = nono_snapshot::file::entries(dir).map_err(CheckpointError::io(dir))?;
    all.sort();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_when() {
        assert_eq!(stamp("2026-05-06T05:06:16Z"), "20260506-050616");
        assert_eq!(moment("legacy-20260506-050616"), time::seconds("2026-05-06T05:06:16Z"));
        assert_eq!(moment("legacy-20260506-050616-2"), time::seconds("2026-05-06T05:06:16Z"));
        for wrong in ["legacy-", "legacy-x", "legacy-20260506", "legacy-2026é506-050616"] {
            assert_eq!(moment(wrong), None, "{wrong}");
        }
    }
}
