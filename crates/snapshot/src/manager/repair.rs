//! Repairs the damaged sessions of a store, and reports what was damaged. The next command works without it: a damaged
//! record is rebuilt when its session is opened. This repairs all sessions at once.

use std::path::PathBuf;

use super::sessions::{self, drop_notes};
use crate::file::Sync;
use crate::manager::error::Result;
use crate::manifest::SnapshotId;
use crate::session::{Session, SessionError, rebuild};
use crate::store::Store;

/// Result of a repair, or of a dry run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Records rebuilt from the manifests: the session, what was wrong, and the number of snapshots in the new one.
    pub records: Vec<RepairedRecord>,
    /// Snapshots whose manifests cannot be read.
    pub lost: Vec<LostSnapshot>,
    /// Notes written anew; `notes_removed` were no longer needed, `notes_aside` could not be read.
    pub notes_replaced: Vec<PathBuf>,
    pub notes_removed: Vec<PathBuf>,
    pub notes_aside: Vec<PathBuf>,
    /// Whether the store got a new id.
    pub id: bool,
    /// Number of removed files and folders of killed writers.
    pub debris: u64,
    /// Problems that could not be repaired. Contains file names, so escape it for display.
    pub problems: Vec<String>,
}

/// A rebuilt record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairedRecord {
    pub session: PathBuf,
    pub what: String,
    pub snapshots: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostSnapshot {
    pub session: PathBuf,
    pub snapshot: Option<SnapshotId>,
    pub manifest: PathBuf,
}

impl Repaired {
    pub fn is_nothing(&self) -> bool {
        *self == Repaired::default()
    }

    fn lose(&mut self, session: &Session, snapshot: Option<SnapshotId>, manifest: PathBuf) {
        self.lost.push(LostSnapshot { session: session.dir().to_owned(), snapshot, manifest });
    }
}

/// Repair the sessions of a store, and what the store knows of them. With `dry_run` nothing is changed.
pub fn repair(store: &Store, dry_run: bool) -> Result<Repaired> {
    let mut repaired = Repaired { id: store.repair_id(dry_run)?, ..Repaired::default() };
    let found = sessions::sessions(store)?;
    for dir in &found.there {
        let session = Session::new(dir);
        if let Err(error) = repair_session(&session, dry_run, &mut repaired) {
            repaired.problems.push(error.to_string());
        }
    }
    repaired.notes_removed.clone_from(&found.needless);
    repaired.notes_removed.extend(found.gone.iter().map(|(note, _)| note.clone()));
    let away = |dir: &PathBuf| format!("{}: the disk of this session is not mounted", dir.display());
    repaired.problems.extend(found.unknown.iter().map(away));
    if !dry_run {
        drop_notes(store, &repaired.notes_removed)?;
    }
    for path in found.damaged {
        if !dry_run {
            std::fs::rename(&path, rebuild::aside(&path)).map_err(SessionError::io(&path))?;
        }
        repaired.notes_aside.push(path);
    }
    for (note, dir) in found.old {
        let session = Session::new(dir);
        if !dry_run {
            let _held = session.hold()?;
            sessions::note(store, &session, None, Sync::Yes)?;
        }
        repaired.notes_replaced.push(note);
    }
    repaired.debris = store.clear_debris(dry_run)?;
    Ok(repaired)
}

fn repair_session(session: &Session, dry_run: bool, repaired: &mut Repaired) -> Result<(), SessionError> {
    let damage = session.damage()?;
    if let Some((what, snapshots, lost)) = damage {
        if !dry_run {
            let held = session.hold()?;
            session.mend(&held)?;
        }
        for manifest in lost {
            repaired.lose(session, None, manifest);
        }
        let session = session.dir().to_owned();
        repaired.records.push(RepairedRecord { session, what, snapshots });
        return Ok(());
    }
    for (id, manifest) in session.lost_manifests()? {
        repaired.lose(session, Some(id), manifest);
    }
    Ok(())
}
