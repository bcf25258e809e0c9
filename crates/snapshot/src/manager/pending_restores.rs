//! Running restores, by the folders that they change. A journal lies with the session or project that restores, but the
//! half-restored tree may belong to several. So each restore leaves a note in the store before its journal exists, and
//! removes it after the journal is gone. Every operation first looks for notes about its own roots, waits for a running
//! restore, and completes an interrupted one, whichever session started it.
//!
//! A note without a journal is void: its restore was interrupted before it touched anything, or right after its end. A
//! restore that cannot be completed is reported and blocks no other session; temporary files are never captured.

use std::fs::File;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::restore::{JOURNAL, Restored};
use super::{ManagerOptions, Result, SnapshotError, SnapshotManager, hold};
use crate::file::{self, Sync};
use crate::paths;
use crate::restore::RestoreId;
use crate::session::{Session, SessionError};

const FOLDER: &str = "restores";
const LOCK: &str = "lock";
const FORMAT: u32 = 1;

/// Interrupted restore of another session or project in the same folders, and the result of completing it.
#[derive(Debug)]
pub struct CompletedOther {
    /// Folder of the session or project.
    pub session: PathBuf,
    /// Root that both have.
    pub root: PathBuf,
    /// Result of completing it, or why it cannot be completed.
    pub restored: Result<Restored>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct UnderWayNote {
    format: u32,
    /// Path relative to the store if both are in one folder, which may be moved.
    #[serde(with = "paths")]
    session: PathBuf,
    #[serde(with = "paths::list")]
    roots: Vec<PathBuf>,
}

/// Note of another session about one of our roots.
struct NoteOfOther {
    note: PathBuf,
    session: PathBuf,
    root: PathBuf,
}

impl SnapshotManager {
    fn notes_dir(&self) -> PathBuf {
        self.store.dir().join(FOLDER)
    }

    /// Leave a note that this restore is about to begin; refused while another one is running on the same folders.
    pub(super) fn announce(&self, id: RestoreId) -> Result<()> {
        let dir = self.notes_dir();
        file::make_dirs(&dir).map_err(SessionError::io(&dir))?;
        let _alone = lock(&dir.join(LOCK))?;
        file::sweep_temps(&dir, "").map_err(SessionError::io(&dir))?;
        for other in self.notes_of_others()? {
            if Session::new(&other.session).is_held() {
                return Err(SnapshotError::Restoring { root: other.root, session: other.session });
            }
        }
        let note =
            UnderWayNote { format: FORMAT, session: self.session_from_store(), roots: self.roots.clone() };
        let path = dir.join(id.to_string());
        let bytes = serde_json::to_vec(&note).map_err(|error| SessionError::damaged(&path, error))?;
        Ok(file::replace(&path, &bytes, Sync::Yes).map_err(SessionError::io(&path))?)
    }

    /// Remove the note at the end of the restore.
    pub(super) fn withdraw(&self, id: RestoreId) -> Result<()> {
        let path = self.notes_dir().join(id.to_string());
        Ok(file::remove(&path).map_err(SessionError::io(&path))?)
    }

    fn session_from_store(&self) -> PathBuf {
        let (store, session) = (self.store.dir(), self.session.dir());
        match store.parent().and_then(|state| session.strip_prefix(state).ok()) {
            Some(below) => Path::new("..").join(below),
            None => session.to_owned(),
        }
    }

    fn notes_of_others(&self) -> Result<Vec<NoteOfOther>> {
        let dir = self.notes_dir();
        let mut others = Vec::new();
        for path in file::entries(&dir).map_err(SessionError::io(&dir))? {
            // An unreadable note was half written before a power loss, and its journal does not exist.
            let Some(note) = read(&path) else { continue };
            let session = resolve(self.store.dir(), &note.session);
            let overlap =
                |root: &&PathBuf| self.roots.iter().any(|own| own.starts_with(root) || root.starts_with(own));
            if let Some(root) = note.roots.iter().find(overlap).filter(|_| session != self.session.dir()) {
                others.push(NoteOfOther { root: root.clone(), note: path, session });
            }
        }
        Ok(others)
    }

    /// Wait for running restores of other sessions on our roots, and complete interrupted ones.
    pub(super) fn complete_others(&mut self) -> Result<()> {
        let dir = self.notes_dir();
        if !dir.is_dir() {
            return Ok(());
        }
        sweep(&dir)?;
        for other in self.notes_of_others()? {
            // A removed session took its journal with it.
            let there = other.session.is_dir().then(|| Session::new(&other.session));
            let held = there.map(|session| hold(&session, &*self.observer)).transpose()?;
            if other.session.join(JOURNAL).symlink_metadata().is_err() {
                file::remove(&other.note).map_err(SessionError::io(&other.note))?;
                continue;
            }
            drop(held);
            let restored = self.complete_other(&other.session);
            self.completed.push(CompletedOther { session: other.session, root: other.root, restored });
        }
        Ok(())
    }

    fn complete_other(&self, session: &Path) -> Result<Restored> {
        let options = ManagerOptions {
            store: Some(self.store.dir().to_owned()),
            own: self.own(),
            settle_by_hand: true,
            ..ManagerOptions::default()
        };
        let mut other = SnapshotManager::resume(session, options)?;
        let none = || SnapshotError::NoSession { dir: session.to_owned() };
        other.recover()?.ok_or_else(none)
    }

    /// Complete all interrupted restores on these roots, as every operation does first; returns others' ones.
    pub fn complete_cut_off(&mut self) -> Result<Vec<CompletedOther>> {
        let _held = self.enter()?;
        Ok(self.take_completed())
    }

    /// Restores of other sessions and projects that an operation completed. Cleared by the call.
    pub fn take_completed(&mut self) -> Vec<CompletedOther> {
        std::mem::take(&mut self.completed)
    }
}

impl std::fmt::Display for CompletedOther {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (root, session) = (self.root.display(), self.session.display());
        match &self.restored {
            Ok(restored) if restored.failed.is_empty() => {
                write!(f, "completed an interrupted restore of {root} first")
            }
            Ok(restored) => write!(
                f,
                "completed an interrupted restore of {root} first, but could not restore {} paths",
                restored.failed.len()
            ),
            Err(error) => write!(
                f,
                "cannot complete an interrupted restore of {root}: {error}; its journal is in {session}"
            ),
        }
    }
}

fn read(path: &Path) -> Option<UnderWayNote> {
    let note: UnderWayNote = serde_json::from_slice(&file::read(path).ok()?).ok()?;
    (note.format == FORMAT).then_some(note)
}

fn resolve(store: &Path, session: &Path) -> PathBuf {
    let mut parts = session.components();
    match (parts.next(), store.parent()) {
        (Some(Component::ParentDir), Some(state)) => state.join(parts.as_path()),
        _ => session.to_owned(),
    }
}

/// Remove temporary files of processes killed while writing a note. The lock keeps live writers out.
fn sweep(dir: &Path) -> Result<()> {
    if file::has_temps(dir).map_err(SessionError::io(dir))? {
        let _alone = lock(&dir.join(LOCK))?;
        file::sweep_temps(dir, "").map_err(SessionError::io(dir))?;
    }
    Ok(())
}

/// Lock held while a note is checked and written.
fn lock(path: &Path) -> Result<File> {
    let file = nono_sys::fs::open_lock(path).map_err(SessionError::io(path))?;
    file.lock().map_err(SessionError::io(path))?;
    Ok(file)
}
