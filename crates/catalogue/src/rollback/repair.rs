//! Repair of damaged sessions: the stores, and the records, descriptions and restore lists of sessions.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nono_history::lock::Lock;
use nono_history::removal::set_file_aside;
use nono_snapshot::session::Session;
use nono_snapshot::store::Store;
use nono_snapshot::{SessionMetadata, SnapshotError, repair};

use super::catalogue::Catalogue;
use super::error::RollbackError;
use super::folder::{self, METADATA};
use super::live_lock::is_live;
use super::restore::SessionRestores;

pub use nono_snapshot::{LostSnapshot, Repaired as RepairedStore, RepairedRecord};

/// Report of repairs, done or planned.
#[derive(Debug, Default)]
pub struct Repaired {
    /// By store: the common one, and those of sessions kept elsewhere.
    pub stores: Vec<(PathBuf, RepairedStore)>,
    /// Damaged files that were set aside; a description is rebuilt from the record.
    pub files: Vec<PathBuf>,
    /// Problems that could not be repaired. Contains file names: escape before printing to a terminal.
    pub problems: Vec<String>,
}

impl Catalogue {
    /// Repair everything that can be repaired, and report it. With `dry_run` nothing is changed.
    pub fn repair(&self, dry_run: bool) -> Result<Repaired, RollbackError> {
        let mut repaired = Repaired::default();
        for dir in self.stores()? {
            let done =
                Store::open(&dir).map_err(SnapshotError::from).and_then(|store| repair(&store, dry_run));
            match done {
                Ok(done) if done.is_nothing() => {}
                Ok(mut done) => {
                    repaired.problems.append(&mut done.problems);
                    repaired.stores.push((dir, done));
                }
                Err(error) => repaired.problems.push(error.to_string()),
            }
        }
        for place in self.places()? {
            let mended = mend_files(&place, dry_run, &mut repaired.files);
            repaired.problems.extend(mended.err().map(|error| error.to_string()));
        }
        Ok(repaired)
    }

    /// All stores used by sessions of this catalogue.
    fn stores(&self) -> Result<BTreeSet<PathBuf>, RollbackError> {
        let mut stores = BTreeSet::from([self.store_dir()]);
        for place in self.places()? {
            let elsewhere = folder::follow(&place).ok().filter(|dir| *dir != place);
            stores.extend(elsewhere.and_then(|dir| dir.parent().map(|parent| parent.join("store"))));
        }
        stores.retain(|store| store.is_dir());
        Ok(stores)
    }
}

/// Repair the files of one session that the snapshot engine does not maintain.
fn mend_files(place: &Path, dry_run: bool, files: &mut Vec<PathBuf>) -> Result<(), RollbackError> {
    let Ok(dir) = folder::follow(place) else { return Ok(()) };
    if is_live(place) || is_live(&dir) || !dir.is_dir() {
        return Ok(());
    }
    let path = dir.join(METADATA);
    let description = folder::read_if_there(&path)?;
    if description.is_some_and(|bytes| serde_json::from_slice::<SessionMetadata>(&bytes).is_err()) {
        let id = place.file_name().unwrap_or_default().to_string_lossy();
        let metadata = folder::made_up(&dir, Some(&id))?;
        if !dry_run {
            set_file_aside(&path)?;
            Session::new(&dir).save_metadata(&metadata)?;
        }
        files.push(path);
    }
    if let Some(path) = SessionRestores::damage(&dir) {
        if !dry_run {
            let _lock = Lock::take(&dir)?;
            SessionRestores::load_or_begin(&dir)?;
        }
        files.push(path);
    }
    Ok(())
}
