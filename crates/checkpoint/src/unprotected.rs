//! Failed checkpoints, until one succeeds: `unprotected.json` in a project's folder, or beside all projects.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nono_snapshot::file::{self, Sync};
use serde::{Deserialize, Serialize};

use crate::error::{CheckpointError, Result};
use crate::folder::Folder;
use crate::host::Host;
use crate::json;
use crate::project;

const FILE: &str = "unprotected.json";
/// Maximum number of folders without a project that are kept.
const FOLDERS: usize = 50;

/// Failure of the last attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unprotected {
    /// ISO 8601, UTC.
    pub time: String,
    #[serde(with = "nono_sys::path_serde")]
    pub dir: PathBuf,
    /// Reason. It may contain file names: escape it before printing.
    pub why: String,
}

pub(crate) fn note(host: &Host, dir: &Path, error: &CheckpointError) -> Result<()> {
    let time = nono_sys::time::now_iso();
    let note = Unprotected { time, dir: dir.to_owned(), why: error.to_string() };
    let folder = project::folder_of(host, dir);
    if folder.join(project::PROJECT).is_file() {
        return json::save(&folder.join(FILE), &note, Sync::No);
    }
    file::make_dirs(&host.state_dir).map_err(CheckpointError::io(&host.state_dir))?;
    let mut all = others(host);
    all.insert(dir.to_owned(), note);
    while all.len() > FOLDERS {
        let oldest = all.values().min_by(|a, b| a.time.cmp(&b.time)).map(|note| note.dir.clone());
        all.remove(&oldest.unwrap_or_default());
    }
    save(host, all)
}

/// Clears the failure, after a checkpoint was taken or was not needed.
pub(crate) fn clear(host: &Host, folder: &Folder) -> Result<()> {
    let path = folder.file(FILE);
    if path.exists() {
        file::remove(&path).map_err(CheckpointError::io(&path))?;
    }
    if host.state_dir.join(FILE).exists() {
        let mut all = others(host);
        if all.remove(&folder.project.workdir).is_some() {
            save(host, all)?;
        }
    }
    Ok(())
}

/// Failure of a project, by its folder in `projects/`.
pub fn of_project(folder: &Path) -> Option<Unprotected> {
    json::load(&folder.join(FILE)).ok().flatten()
}

/// Failures of folders that have no project.
pub fn without_project(host: &Host) -> Vec<Unprotected> {
    others(host).into_values().collect()
}

/// Stored failures of folders without a project; none if unreadable, so that the next one can be stored.
fn others(host: &Host) -> BTreeMap<PathBuf, Unprotected> {
    let all: Option<Vec<Unprotected>> = json::load(&host.state_dir.join(FILE)).ok().flatten();
    all.unwrap_or_default().into_iter().map(|note| (note.dir.clone(), note)).collect()
}

fn save(host: &Host, all: BTreeMap<PathBuf, Unprotected>) -> Result<()> {
    let all: Vec<Unprotected> = all.into_values().collect();
    json::save(&host.state_dir.join(FILE), &all, Sync::No)
}
