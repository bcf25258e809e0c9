//! Removal of an owner (session or project): its folder is renamed in one step, so that it is there as a whole or not
//! at all. A removal interrupted by a kill is finished by the next one.

use std::path::{Path, PathBuf};

use nono_snapshot::file::existing;
use nono_snapshot::session::aside;
use nono_snapshot::store::Store;
use nono_snapshot::{GcReport, SnapshotError};
use nono_sys::fs;

use crate::error::{HistoryError, Result};

/// Name prefix of an owner's folder that is being removed.
const ASIDE: &str = ".removing-";

/// Whether this is the name of a folder that is being removed.
pub fn is_aside(name: &[u8]) -> bool {
    name.starts_with(ASIDE.as_bytes())
}

/// Rename an owner's folder: it is gone, and the caller removes the returned path. None if another process took it.
pub fn set_aside(dir: &Path, owners: &Path, name: &str) -> Result<Option<PathBuf>> {
    let renamed = owners.join(format!("{ASIDE}{name}"));
    let done = existing(std::fs::rename(dir, &renamed)).map_err(HistoryError::io(dir))?;
    Ok(done.map(|()| renamed))
}

/// Rename a damaged file, next to its place; nothing if another process did already.
pub fn set_file_aside(path: &Path) -> Result<()> {
    existing(std::fs::rename(path, aside(path))).map(drop).map_err(HistoryError::io(path))
}

/// Remove a tree, unless another process has removed it already.
pub fn remove_tree(path: &Path) -> Result<()> {
    existing(fs::remove_tree(path)).map(drop).map_err(HistoryError::io(path))
}

/// Free what nothing references in the store at `dir`, if there is one; `how` is the engine's `gc` or `gc_compact`.
pub fn collect(dir: &Path, how: fn(&Store) -> Result<GcReport, SnapshotError>) -> Result<()> {
    if dir.is_dir() {
        how(&Store::open(dir).map_err(SnapshotError::from)?)?;
    }
    Ok(())
}
